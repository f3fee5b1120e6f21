/* roles.c - see roles.h. */
#include "pipeline/roles.h"
#include "pipeline/reply_schema.h"
#include "pipeline/prompt.h"
#include "pipeline/reply_validate.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_BACK = 64 << 10 }; /* bytes of an invalid answer that are shown to the model */

static const struct role {
	const char *name;
	enum reply_schema form;
	uint32_t max_tokens, deadline_ms;
} roles[] = {
	[FORM_PLAN] = { "planner", FORM_PLAN, 4096, 180000 },
	[FORM_CODE] = { "coder", FORM_CODE, 16384, 420000 },
	[FORM_DIAGNOSIS] = { "debugger", FORM_DIAGNOSIS, 16384, 420000 },
};

struct roles_ask {
	const struct role *role;
	struct roles_owner *owner;
	struct llm_client *line;
	struct llm_request ask;
	struct trace_context trace;     /* of the stage */
	struct timer soon;              /* reports a request that could not be sent */
	json_t *a, *b;                  /* task; plan; artifact and result */
	json_t *messages, *usage, *doc; /* doc: the outcome */
	unsigned level, asked;
	uint32_t max_tokens;
	struct err err;
	struct buf why;
};

/* ---- usage ---- */

static json_t *no_usage(void)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:f}", "calls", 0, "in", 0, "out", 0,
			 "cache_read", 0, "cache_write", 0, "cost", 0.0);
}

static void add_usage(json_t *to, const json_t *more)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)more, name, v)
	{
		if (json_is_true(v))
			json_object_set(to, name, v);
		else if (json_is_integer(v))
			json_object_set_new(
				to, name,
				json_integer(json_integer_value(json_object_get(to, name)) +
					     json_integer_value(v)));
		else if (json_is_real(v))
			json_object_set_new(to, name,
					    json_real(json_number_value(json_object_get(to, name)) +
						      json_real_value(v)));
	}
}

/* ---- the end ---- */

static void free_ask(struct roles_ask *x)
{
	llm_cancel(&x->ask);
	timer_fini(&x->soon);
	json_decref(x->a);
	json_decref(x->b);
	json_decref(x->messages);
	json_decref(x->usage);
	json_decref(x->doc);
	buf_fini(&x->why);
	free(x);
}

static void roles_tell(struct roles_ask *x)
{
	struct roles_owner *o = x->owner;
	json_t *doc = steal(&x->doc), *usage = steal(&x->usage);
	struct err e = x->err;

	if (doc)
		json_object_set_new(doc, "why", json_stringn(buf_str(&x->why), x->why.len));
	free_ask(x);
	o->done(o, doc, usage, doc ? NULL : &e);
	json_decref(usage);
}

static void tell_soon(struct timer *t)
{
	roles_tell(loop_owner(t, struct roles_ask, soon));
}

/* ---- an answer ---- */

/* -1: err has the error. Else doc is set. */
static int roles_understand(struct roles_ask *x, const json_t *answer)
{
	const char *stop = doc_text(answer, "stop"), *model = doc_text(answer, "model");
	json_t *text = json_object_get(answer, "text"), *form;

	/* Before parsing: a truncated answer can still be valid JSON. */
	if (strcmp(stop, "length") == 0)
		return err_set(&x->err, ERR_LIMIT, "the answer was cut at %u tokens",
			       x->max_tokens);
	if (strcmp(stop, "end") != 0)
		return err_set(&x->err, ERR_DENIED, "the model stopped for another reason: %.20s",
			       stop);
	form = reply_schema_parse(x->role->form, json_string_value(text) ?: "",
				  json_string_length(text), &x->err);
	if (!form)
		return -1;
	if (x->role->form == FORM_PLAN)
		x->doc = reply_validate_plan(form, x->a, model, &x->err);
	else if (x->role->form == FORM_CODE)
		x->doc = reply_validate_code(form, x->a, model, &x->err);
	else
		x->doc = reply_validate_diagnosis(form, x->a, x->b, model, &x->err);
	json_decref(form);
	return x->doc ? 0 : -1;
}

static void tell_call(struct roles_ask *x, const json_t *answer, const char *outcome)
{
	json_t *event;

	if (!x->owner->called)
		return;
	event = json_pack("{s:s, s:s, s:s, s:O*, s:O*, s:s, s:s, s:s}", "type", "model_call",
			  "role", x->role->name, "model", doc_text(answer, "model"), "usage",
			  json_object_get(answer, "usage"), "ms", json_object_get(answer, "ms"),
			  "route", buf_str(&x->why), "why", doc_text(answer, "why"), "outcome",
			  outcome);
	x->owner->called(x->owner, event);
	json_decref(event);
}

static int ask_now(struct roles_ask *x, struct err *e);

/* Sends the request again, with the answer and its error. */
static int ask_again(struct roles_ask *x, const json_t *answer, struct err *e)
{
	int too_long = strcmp(doc_text(answer, "stop"), "length") == 0;
	const char *said = doc_text(answer, "text");
	size_t n = strlen(said);

	if (n > ANSWER_BACK || !n || too_long)
		said = "(an answer that was not accepted)";
	if (too_long)
		x->max_tokens *= 2;
	json_array_append_new(x->messages,
			      json_pack("{s:s, s:s}", "role", "assistant", "text", said));
	json_array_append_new(x->messages, prompt_again(x->err.msg, too_long));
	buf_printf(&x->why, "; asked again: %s", x->err.msg);
	return ask_now(x, e);
}

static void roles_answered(struct llm_request *m, const json_t *answer, const struct err *e)
{
	struct roles_ask *x = loop_owner(m, struct roles_ask, ask);
	struct err failed = { 0 };
	char outcome[280];

	add_usage(x->usage, json_object_get(answer, "usage"));
	if (e) {
		x->err = *e;
		tell_call(x, answer, e->msg);
		roles_tell(x);
		return;
	}
	if (roles_understand(x, answer) == 0) {
		buf_printf(&x->why, "; %s", doc_text(answer, "why"));
		tell_call(x, answer, "accepted");
		roles_tell(x);
		return;
	}
	snprintf(outcome, sizeof(outcome), "not accepted: %s", x->err.msg);
	tell_call(x, answer, outcome);
	log_info("a model's answer was not accepted", LOG_S("role", x->role->name),
		 LOG_S("model", doc_text(answer, "model")), LOG_E(&x->err));
	/* A refusal is not retried. */
	if (x->asked > 1 || x->err.kind == ERR_DENIED || ask_again(x, answer, &failed) < 0) {
		err_in(&x->err, "%s", x->role->name);
		roles_tell(x);
	}
}

/* ---- a question ---- */

static int ask_now(struct roles_ask *x, struct err *e)
{
	json_t *request =
		json_pack("{s:s, s:i, s:o, s:O, s:{s:s, s:O}, s:I, s:I}", "role", x->role->name,
			  "level", (int)x->level, "system", prompt_system(x->role->form),
			  "messages", x->messages, "schema", "name",
			  reply_schema_name(x->role->form), "schema",
			  reply_schema_json(x->role->form), "max_tokens", (json_int_t)x->max_tokens,
			  "deadline_ms", (json_int_t)x->role->deadline_ms);
	struct trace_context before;
	int done;

	x->asked++;
	x->ask = (struct llm_request){ .done = roles_answered };
	before = trace_enter(&x->trace);
	done = llm_start(x->line, &x->ask, request, e);
	trace_leave(&before);
	return done;
}

static struct roles_ask *roles_begin(struct llm_client *line, enum reply_schema form,
				     unsigned level, json_t *take_message, const json_t *a,
				     const json_t *b, struct roles_owner *o)
{
	struct roles_ask *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	*x = (struct roles_ask){ .role = &roles[form],
				 .owner = o,
				 .line = line,
				 .level = level,
				 .usage = no_usage(),
				 .max_tokens = roles[form].max_tokens,
				 .trace = *trace_current(),
				 .a = json_incref((json_t *)a) };
	x->b = b ? json_incref((json_t *)b) : NULL;
	x->messages = json_pack("[o]", take_message);
	timer_init(&x->soon, llm_loop(line), tell_soon);
	buf_printf(&x->why, "%s, level %u", x->role->name, level);
	if (ask_now(x, &x->err) < 0)
		timer_set(&x->soon, 0);
	return x;
}

int roles_has(const struct llm_client *line, const char *role)
{
	return json_array_size(json_object_get(llm_roles(line), role)) > 0;
}

struct roles_ask *roles_plan(struct llm_client *line, const json_t *task, struct roles_owner *o)
{
	return roles_begin(line, FORM_PLAN, 0, prompt_plan(task), task, NULL, o);
}

struct roles_ask *roles_code(struct llm_client *line, const json_t *plan, struct roles_owner *o)
{
	return roles_begin(line, FORM_CODE, 0, prompt_code(plan), plan, NULL, o);
}

struct roles_ask *roles_debug(struct llm_client *line, const json_t *plan, const json_t *artifact,
			      const json_t *result, const json_t *before, unsigned level,
			      struct roles_owner *o)
{
	return roles_begin(line, FORM_DIAGNOSIS, level,
			   prompt_debug(plan, artifact, result, before), artifact, result, o);
}

void roles_cancel(struct roles_ask *x)
{
	if (x)
		free_ask(x);
}

/* ---- which debugger ---- */

unsigned roles_level(const json_t *before, const json_t *now, const char **out_why)
{
	const char *category = doc_text(now, "category");
	unsigned same = 0;
	json_t *d;
	size_t i;

	json_array_foreach(before, i, d) same +=
		!json_equal(d, now) && *category && strcmp(doc_text(d, "category"), category) == 0;
	*out_why = "the first debugger: nothing says that it takes more";
	if (strcmp(category, "wrong_output") == 0 || strcmp(category, "unknown") == 0) {
		*out_why = "the next debugger: this category takes thought";
		return 1;
	}
	if (same) {
		*out_why = "the next debugger: the same category a second time";
		return 1;
	}
	return 0;
}
