/* contexts.c - see contexts.h. */
#include "v1run/contexts.h"
#include "v1box/boxes.h"
#include "api/quota.h"
#include "notebook/context.h"
#include "lang/driver.h"
#include "lang/lang.h"

const struct field contexts_create_fields[] = {
	{ "language", FIELD_TEXT, 1, 1, 32, "language: python, node, bash, ..., or jupyter:NAME",
	  NULL },
	{ "cwd", FIELD_TEXT, 0, 0, 4095, "working folder (default /home/user)", NULL },
	{ "env", FIELD_MAP, 0, 0, 1000, "environment variables, added to those of the box", NULL },
	{ 0 },
};
const struct field contexts_input_fields[] = {
	{ "text", FIELD_TEXT, 0, 0, CONTEXT_INPUT, "the input line, without a newline", NULL },
	{ "end", FIELD_BOOL, 0, 0, 0, "instead of text: end of input", NULL },
	{ 0 },
};

const char *contexts_language(const char *name)
{
	const struct lang *l = lang_named(name);

	return l ? l->name : name;
}

struct context *contexts_of(struct call *c)
{
	struct box *b = call_box(c, 0);
	struct context *x = b ? context_find(b, call_param(c, 1)) : NULL;

	/* The other server of a reload or an upgrade may have created the context. */
	if (b && !x && !c->api->fleet.alone) {
		box_resync(b);
		x = context_find(b, call_param(c, 1));
	}
	if (b && !x)
		call_error(c, 404, "not_found", "there is no such context in this box",
			   call_param(c, 1), "list them: GET /v1/boxes/ID/contexts");
	return x;
}

/* ---- create ---- */

struct contexts_making {
	struct context_wait wait;
	struct call *call;
};

static void stop_waiting(struct call *c)
{
	struct contexts_making *m = c->state;

	context_wait_cancel(&m->wait);
}

static void contexts_made(struct context_wait *w, struct context *x)
{
	struct call *c = loop_owner(w, struct contexts_making, wait)->call;

	if (x->state == CONTEXT_DEAD)
		call_error(c, 409, "conflict", "the interpreter did not start",
			   x->end.why ? x->end.why : x->end.cause, x->end.hint);
	else
		call_json(c, 201, context_json(x));
}

static void answer_when_ready(struct call *c, struct context *x)
{
	struct contexts_making *m = call_alloc(c, sizeof(*m));

	*m = (struct contexts_making){ .wait.done = contexts_made, .call = c };
	c->state = m;
	c->drop = stop_waiting;
	context_await(x, &m->wait);
}

void contexts_create(struct call *c)
{
	struct context_want want = { .language = contexts_language(call_text(c, "language", "")),
				     .cwd = call_text(c, "cwd", NULL),
				     .env = call_get(c, "env") };
	struct box *b = call_box(c, 0);
	struct context *x;
	struct err e;

	if (!b)
		return;
	if (box_check_env(want.env, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (!quota_run(c))
		return;
	box_wake(b);
	if (context_new(b, &want, &x, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit(c, "context.create", x->row.id, "ok");
	answer_when_ready(c, x);
}

/* ---- list, show ---- */

void contexts_list(struct call *c)
{
	struct box *b = call_box(c, 0);
	json_t *items;

	if (!b)
		return;
	items = json_array();
	for (const struct context *x = b->contexts; x; x = x->next)
		json_array_append_new(items, context_json(x));
	call_list(c, items, NULL);
}

void contexts_show(struct call *c)
{
	const struct context *x = contexts_of(c);

	if (x)
		call_json(c, 200, context_json(x));
}

/* ---- delete, interrupt, restart, input ---- */

void contexts_delete(struct call *c)
{
	struct context *x = contexts_of(c);

	if (!x)
		return;
	context_end(x);
	call_empty(c, 204);
}

void contexts_interrupt(struct call *c)
{
	struct context *x = contexts_of(c);

	if (!x)
		return;
	if (context_interrupt(x))
		call_empty(c, 204);
	else
		call_error(c, 409, "conflict", "nothing runs in this context",
			   context_state_name(x->state), NULL);
}

void contexts_restart(struct call *c)
{
	struct context *x = contexts_of(c);
	struct err e;

	if (!x || !quota_run(c))
		return;
	box_wake(x->box);
	if (context_restart(x, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit(c, "context.restart", x->row.id, "ok");
	answer_when_ready(c, x);
}

void contexts_input(struct call *c)
{
	const json_t *text = call_get(c, "text");
	struct context *x = contexts_of(c);
	struct err e;

	if (!x)
		return;
	if (!text == !call_flag(c, "end", 0)) {
		call_error(c, 400, "invalid", "give either text, or end: true", NULL, NULL);
		return;
	}
	if (context_input(x, json_string_value(text), json_string_length(text), &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}
