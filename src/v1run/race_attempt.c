/* race_attempt.c - one attempt of a race: its box, its program, its check. */
#include "v1run/race_internal.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "v1run/execs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RACE_OUTPUT = 16 << 10 }; /* bytes of each stream in the answer */

int race_attempt_has_ended(const struct race_attempt *a)
{
	return a->state >= RACE_PASSED;
}

void race_attempt_end_box(struct race_attempt *a)
{
	struct box *b = a->box[0] ? fleet_find(&a->race->call->api->fleet, a->box) : a->made.box;

	box_wait_cancel(&a->made);
	a->box[0] = 0;
	if (b)
		box_end(b, CAUSE_EXIT, NULL);
}

static void attempt_set_over(struct race_attempt *a, enum race_state state)
{
	a->state = state;
	a->took_ms = loop_now_ms() - a->began_ms;
	if (state != RACE_PASSED)
		race_attempt_end_box(a);
	race_attempt_over(a);
}

static void attempt_fail(struct race_attempt *a, const char *message)
{
	snprintf(a->message, sizeof(a->message), "%s", message);
	attempt_set_over(a, RACE_ERROR);
}

/* ---- programs ---- */

static json_t *attempt_brief(const json_t *record)
{
	static const char *const told[] = { "id", "cause", "exit_code", "cpu_s", "stdout",
					    "stdout_encoding", "stderr", "stderr_encoding",
					    "truncated", "summary",
					    /* of an agent: */
					    "outcome", "why", "result", "steps" };
	json_t *doc = json_object();

	for (unsigned i = 0; i < ARRAY_LEN(told); i++)
		if (json_object_get(record, told[i]))
			json_object_set(doc, told[i], json_object_get(record, told[i]));
	return doc;
}

static int attempt_is_ok(const json_t *record)
{
	return json_integer_value(json_object_get(record, "status")) == 0;
}

/* The last line of the output of a check, if it is a number. */
static double attempt_score(const json_t *record)
{
	const char *text = json_string_value(json_object_get(record, "stdout")), *line, *end;
	char *rest;
	double n;

	if (!text)
		return 0;
	for (end = text + strlen(text); end > text && end[-1] == '\n';)
		end--;
	for (line = end; line > text && line[-1] != '\n';)
		line--;
	n = strtod(line, &rest);
	return rest == end && rest > line && isfinite(n) ? n : 0;
}

static void attempt_call(struct race_attempt *a, const json_t *program,
			 void (*answered)(void *user, int status, const json_t *doc));

static void attempt_refused(struct race_attempt *a, const json_t *doc)
{
	const char *why =
		json_string_value(json_object_get(json_object_get(doc, "error"), "message"));

	attempt_fail(a, why ? why : "the request for its program failed");
}

static void attempt_checked(void *user, int status, const json_t *doc)
{
	struct race_attempt *a = user;

	a->calling = NULL;
	if (status != 200) {
		attempt_refused(a, doc);
		return;
	}
	a->check = attempt_brief(doc);
	a->score = attempt_score(doc);
	attempt_set_over(a, attempt_is_ok(doc) ? RACE_PASSED : RACE_FAILED);
}

/* The check decides, also about a program that has failed. */
static void attempt_ran(void *user, int status, const json_t *doc)
{
	struct race_attempt *a = user;

	a->calling = NULL;
	if (status != 200) {
		attempt_refused(a, doc);
		return;
	}
	a->program = attempt_brief(doc);
	a->state = RACE_CHECKING;
	attempt_call(a, a->race->check, attempt_checked);
}

static void attempt_run(struct call *c, void *user)
{
	(void)user;
	execs_start(c);
}

/* No program may run longer than the race. */
static json_t *attempt_body(const struct race_attempt *a, const json_t *program)
{
	uint64_t now = loop_now_ms(), left = a->race->ends_ms > now ? a->race->ends_ms - now : 1;
	json_t *body = json_deep_copy(program), *asked = json_object_get(body, "timeout_ms");

	if (!asked || (uint64_t)json_integer_value(asked) > left)
		json_object_set_new(body, "timeout_ms", json_integer((json_int_t)left));
	json_object_set_new(body, "max_output", json_integer(RACE_OUTPUT));
	return body;
}

/* An agent is a request to its route, for the copy. */
static json_t *attempt_agent_body(const struct race_attempt *a, const json_t *agent)
{
	uint64_t now = loop_now_ms(), left = a->race->ends_ms > now ? a->race->ends_ms - now : 1;
	json_t *body = json_deep_copy(agent), *budget = json_object_get(body, "budget"), *asked;

	json_object_set_new(body, "box", json_string(a->box));
	if (!budget) {
		budget = json_object();
		json_object_set_new(body, "budget", budget);
	}
	asked = json_object_get(budget, "max_wall_ms");
	if (json_is_object(budget) &&
	    (!asked || (json_is_integer(asked) && (uint64_t)json_integer_value(asked) > left)))
		json_object_set_new(budget, "max_wall_ms", json_integer((json_int_t)left));
	return body;
}

static void attempt_call(struct race_attempt *a, const json_t *program,
			 void (*answered)(void *user, int status, const json_t *doc))
{
	const json_t *agent = json_object_get(program, "agent");
	struct internal_call_spec spec = { .api = a->race->call->api,
					   .who = &a->race->call->who,
					   .method = "POST",
					   .path = agent ? "/v1/agents" : a->path,
					   .run = agent ? NULL : attempt_run,
					   .answered = answered,
					   .user = a };

	a->calling = internal_call_begin(&spec, agent ? attempt_agent_body(a, agent)
						      : attempt_body(a, program));
}

/* ---- box ---- */

static void attempt_made(struct box_wait *w, struct box *b, const struct err *e)
{
	struct race_attempt *a = loop_owner(w, struct race_attempt, made);
	struct race *r = a->race;

	if (e) {
		attempt_fail(a, e->msg);
		return;
	}
	memcpy(a->box, b->row.id, sizeof(a->box));
	snprintf(a->path, sizeof(a->path), "/v1/boxes/%s/execs", a->box);
	a->state = RACE_RUNNING;
	attempt_call(a, json_array_get(r->programs, (size_t)(a - r->v)), attempt_ran);
}

/* Read for each copy: layers of a checkpoint may be merged while a race runs. */
static int attempt_read_layers(struct race *r, struct err *e)
{
	struct store_checkpoint row = { 0 };

	if (store_checkpoint_get(r->call->api->store, r->call->who.team, r->checkpoint, &row, e) <
	    0)
		return -1;
	r->want.nchain = row.nchain;
	memcpy(r->want.chain, row.chain, sizeof(row.chain));
	store_checkpoint_fini(&row);
	return 0;
}

void race_attempt_begin(struct race_attempt *a)
{
	struct call *c = a->race->call;
	struct box *b;
	struct err e;

	a->state = RACE_STARTING;
	a->began_ms = loop_now_ms();
	a->made = (struct box_wait){ .done = attempt_made };
	if (quota_boxes_left(c->api, c->who.team) == 0)
		attempt_fail(a, "the team has as many boxes as it may (quota)");
	else if (attempt_read_layers(a->race, &e) < 0 ||
		 box_create(&c->api->fleet, &a->race->want, &a->made, &b, &e) < 0)
		attempt_fail(a, e.msg);
}

void race_attempt_stop(struct race_attempt *a)
{
	if (a->calling)
		internal_call_drop(a->calling);
	a->calling = NULL;
	if (a->state > RACE_WAITING)
		race_attempt_end_box(a);
	if (!race_attempt_has_ended(a)) {
		if (a->state > RACE_WAITING)
			a->took_ms = loop_now_ms() - a->began_ms;
		a->state = RACE_CANCELLED;
	}
}

/* ---- answer ---- */

static json_t *attempt_part(json_t *part)
{
	return part ? json_incref(part) : json_null();
}

json_t *race_attempt_json(const struct race_attempt *a)
{
	static const char *const names[] = {
		[RACE_WAITING] = "waiting", [RACE_STARTING] = "running",
		[RACE_RUNNING] = "running", [RACE_CHECKING] = "running",
		[RACE_PASSED] = "passed",   [RACE_FAILED] = "failed",
		[RACE_ERROR] = "error",     [RACE_CANCELLED] = "cancelled"
	};
	json_t *doc = json_pack("{s:i, s:s, s:I, s:o, s:o, s:o}", "attempt", (int)(a - a->race->v),
				"state", names[a->state], "took_ms", (json_int_t)a->took_ms,
				"score", a->check ? json_real(a->score) : json_null(), "program",
				attempt_part(a->program), "check", attempt_part(a->check));

	if (a->message[0])
		json_object_set_new(doc, "message", json_string(a->message));
	return doc;
}

void race_attempt_fini(struct race_attempt *a)
{
	race_attempt_stop(a);
	json_decref(a->program);
	json_decref(a->check);
	a->program = a->check = NULL;
}
