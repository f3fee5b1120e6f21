/* race.c - see race.h.
 *
 *   checkpoint of the box -> [copy -> program -> check] of each attempt -> checkpoint of the winner -> rollback to it
 *
 * The steps of an attempt are requests of the caller (api/internal_call.h), so its role, quotas and audit log apply. */
#include "v1run/race_internal.h"
#include "api/fields.h"
#include "api/quota.h"
#include "base/cleanup.h"
#include "v1box/checkpoints.h"

#include <stdio.h>
#include <string.h>

enum { RACE_AT_ONCE = 8, RACE_WALL_MS = 300000, RACE_WALL_MOST_MS = 3600000 };

static const struct field race_keep_values[] = {
	FIELD_VALUE("first"), FIELD_VALUE("best"), FIELD_VALUE("none"), { 0 }
};
/* clang-format off */
#define RACE_PROGRAM \
	{ "command", FIELD_COMMAND, 0, 0, 1 << 20, "a command: a string for the shell, or an array of arguments", NULL }, \
	{ "language", FIELD_TEXT, 0, 0, 64, "language of code", NULL }, \
	{ "code", FIELD_TEXT, 0, 0, 1 << 22, "a complete program, in place of command", NULL }, \
	{ "files", FIELD_ANY, 0, 0, 0, "files to write before the start: {path: text or {\"base64\": ...}}", NULL }, \
	{ "env", FIELD_MAP, 0, 0, 1000, "environment variables, added to those of the box", NULL }, \
	{ "cwd", FIELD_TEXT, 0, 0, 4095, "working folder (default /home/user)", NULL }, \
	{ "stdin", FIELD_TEXT, 0, 0, 1 << 22, "the complete standard input", NULL }, \
	{ "timeout_ms", FIELD_INT, 0, 1, UINT32_MAX, "time limit of the program; at most what is left of budget.wall_ms", NULL }
const struct field race_program_fields[] = { RACE_PROGRAM, { 0 } };
static const struct field race_attempt_fields[] = {
	{ "agent", FIELD_ANY, 0, 0, 0, "in place of a program: an agent, as the body of POST /v1/agents without box, and with no member beside it", NULL },
	RACE_PROGRAM,
	{ 0 },
};
/* clang-format on */
const struct field race_budget_fields[] = {
	{ "wall_ms", FIELD_INT, 0, 1, RACE_WALL_MOST_MS, "time of the whole race (default 300000)",
	  NULL },
	{ "cpu_ms", FIELD_INT, 0, 1, INT64_C(1) << 53,
	  "CPU time of each attempt with its check (default: the limit of the box)", NULL },
	{ 0 },
};
static const struct field race_volume_values[] = { FIELD_VALUE("read-only"),
						   FIELD_VALUE("drop"),
						   { 0 } };
const struct field race_fields[] = {
	/* clang-format off */
	{ "attempts", FIELD_ANY, 1, 0, 0, "1 to 32 programs, each in a copy of the box: [{command, or language and code, files, env, cwd, stdin, timeout_ms}, or {agent: {task, max_steps, ...}}]", NULL },
	{ "check", FIELD_OBJECT, 1, 0, 0, "the program that runs after each attempt in its copy: exit code 0 means passed", race_program_fields },
	{ "keep", FIELD_CHOICE, 0, 0, 0, "the box gets the files of the first attempt that passes (first, default); of the one with the highest score, which is the last line of the output of its check, then of the quickest (best); or stays as it is (none)", race_keep_values },
	{ "budget", FIELD_OBJECT, 0, 0, 0, "limits", race_budget_fields },
	{ "volumes", FIELD_CHOICE, 0, 0, 0, "if the box has volumes: mount them read-only in the copies, or drop them", race_volume_values },
	{ 0 },
	/* clang-format on */
};

/* ---- end ---- */

static void race_free_parts(struct race *r)
{
	timer_fini(&r->budget);
	checkpoint_leave(r->job);
	rollback_leave(r->rollback);
	r->job = NULL;
	r->rollback = NULL;
	r->deciding = 1;
	for (unsigned i = 0; i < r->n; i++)
		race_attempt_fini(&r->v[i]);
}

static void race_left(struct call *c)
{
	race_free_parts(c->state);
}

static json_t *race_winner(const struct race *r)
{
	return r->winner < 0 ? json_null() : json_integer(r->winner);
}

/* take_promoted NULL: the box has its own files. */
static void race_answer(struct race *r, json_t *take_promoted)
{
	struct call *c = r->call;
	json_t *results = json_array(), *doc;

	for (unsigned i = 0; i < r->n; i++)
		json_array_append_new(results, race_attempt_json(&r->v[i]));
	doc = json_pack("{s:s, s:o, s:o, s:o, s:I, s:b}", "checkpoint", r->checkpoint, "winner",
			race_winner(r), "promoted", take_promoted ? take_promoted : json_null(),
			"results", results, "took_ms", (json_int_t)(loop_now_ms() - r->began_ms),
			"out_of_time", r->is_spent);
	fleet_emit(&c->api->fleet, c->who.team, r->box, "race.ended",
		   json_pack("{s:s, s:o, s:b}", "checkpoint", r->checkpoint, "winner",
			     race_winner(r), "promoted", take_promoted != NULL));
	c->drop = NULL;
	race_free_parts(r);
	call_audit(c, "box.race", r->box, "ok");
	call_json(c, 200, doc);
}

static void race_fail(struct race *r, const struct err *e)
{
	struct call *c = r->call;

	c->drop = NULL;
	race_free_parts(r);
	call_fail(c, e);
}

/* ---- promotion ---- */

static void race_promoted(void *ctx, struct box *b, const char *safety, const struct err *e)
{
	struct race *r = ctx;

	(void)b;
	r->rollback = NULL;
	if (e)
		race_fail(r, e);
	else
		race_answer(r, json_pack("{s:s, s:s}", "checkpoint", r->kept, "safety", safety));
}

static int race_promote(struct race *r, const struct store_checkpoint *to, struct err *e)
{
	struct call *c = r->call;
	struct box *b = fleet_find(&c->api->fleet, r->box);

	if (!b)
		return err_set(e, ERR_NOT_FOUND, "box %s has ended", r->box);
	return rollback_start(c->api->checkpoints, b, to, ROLLBACK_SAVE, "box.promoted", c->who.id,
			      race_promoted, r, &r->rollback, e);
}

static void race_saved(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct race *r = ctx;
	struct err own;

	r->job = NULL;
	if (row)
		memcpy(r->kept, row->id, sizeof(r->kept));
	if (e)
		race_fail(r, e);
	else if (race_promote(r, row, &own) < 0)
		race_fail(r, &own);
}

static void race_keep_winner(struct race *r)
{
	struct call *c = r->call;
	struct checkpoint_want want = { .reason = CHECKPOINT_FORK, .author = c->who.id };
	struct box *b = fleet_find(&c->api->fleet, r->v[r->winner].box);
	struct err e;

	if (!b)
		err_set(&e, ERR_NOT_FOUND, "the box of the winner has ended");
	if (!b || checkpoint_take(c->api->checkpoints, b, &want, race_saved, r, &r->job, &e) < 0)
		race_fail(r, &e);
}

/* ---- attempts ---- */

/* 1: a is better than the winner so far. */
static int race_is_better(const struct race *r, const struct race_attempt *a)
{
	const struct race_attempt *w = r->winner < 0 ? NULL : &r->v[r->winner];

	if (a->state != RACE_PASSED)
		return 0;
	return !w || (r->keep != RACE_KEEP_FIRST &&
		      (a->score > w->score || (a->score == w->score && a->took_ms < w->took_ms)));
}

/* All other boxes end before the files of the winner are read. */
static void race_decide(struct race *r)
{
	r->deciding = 1;
	timer_fini(&r->budget);
	for (int i = 0; i < (int)r->n; i++)
		if (i != r->winner || r->keep == RACE_KEEP_NONE)
			race_attempt_stop(&r->v[i]);
	if (r->winner >= 0 && r->keep != RACE_KEEP_NONE)
		race_keep_winner(r);
	else
		race_answer(r, NULL);
}

static int race_is_decided(const struct race *r)
{
	return r->over == r->n || (r->winner >= 0 && r->keep == RACE_KEEP_FIRST);
}

/* Attempts beyond the quota of boxes wait for the end of others. */
static void race_begin_more(struct race *r)
{
	struct call *c = r->call;

	r->beginning = 1;
	while (!race_is_decided(r) && r->begun < r->n && r->begun - r->over < RACE_AT_ONCE &&
	       (r->begun == r->over || quota_boxes_left(c->api, c->who.team) > 0))
		race_attempt_begin(&r->v[r->begun++]);
	r->beginning = 0;
	if (race_is_decided(r))
		race_decide(r);
}

void race_attempt_over(struct race_attempt *a)
{
	struct race *r = a->race;
	int loser = -1;

	r->over++;
	if (race_is_better(r, a)) {
		loser = r->winner;
		r->winner = (int)(a - r->v);
	} else if (a->state == RACE_PASSED) {
		loser = (int)(a - r->v);
	}
	if (loser >= 0)
		race_attempt_end_box(&r->v[loser]);
	if (!r->beginning)
		race_begin_more(r);
}

static void race_is_out_of_time(struct timer *t)
{
	struct race *r = loop_owner(t, struct race, budget);

	r->is_spent = 1;
	race_decide(r);
}

/* ---- start ---- */

static void race_begin(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct race *r = ctx;
	struct call *c = r->call;
	char *env = r->want.row.env;

	r->job = NULL;
	if (e) {
		race_fail(r, e);
		return;
	}
	memcpy(r->checkpoint, row->id, sizeof(r->checkpoint));
	checkpoints_spec(c, row, &r->want);
	r->want.row.env = env; /* of the box, as it is now */
	fleet_emit(&c->api->fleet, c->who.team, r->box, "race.started",
		   json_pack("{s:s, s:i}", "checkpoint", row->id, "attempts", (int)r->n));
	timer_set(&r->budget, r->ends_ms > loop_now_ms() ? r->ends_ms - loop_now_ms() : 1);
	race_begin_more(r);
}

static int race_check_program(const json_t *one, const char *at, struct err *e)
{
	int command = json_object_get(one, "command") != NULL,
	    code = json_object_get(one, "code") != NULL;

	if (fields_check(one, race_program_fields, at, e) < 0)
		return -1;
	if (command == code)
		return err_set(e, ERR_INVALID, "%s: needs command, or language and code", at);
	if (code && !json_object_get(one, "language"))
		return err_set(e, ERR_INVALID, "%s: code needs language", at);
	return 0;
}

/* Its members are checked when it begins, by the route of agents. */
static int race_check_agent(const json_t *one, const char *at, struct err *e)
{
	const json_t *agent = json_object_get(one, "agent");

	if (!json_is_object(agent) || !json_is_string(json_object_get(agent, "task")))
		return err_set(e, ERR_INVALID, "%s.agent: must be an object with a task", at);
	if (json_object_get(agent, "box"))
		return err_set(e, ERR_INVALID,
			       "%s.agent.box: is not allowed, because it works in a copy", at);
	if (json_object_size(one) != 1)
		return err_set(e, ERR_INVALID, "%s: agent allows no further member", at);
	return 0;
}

static int race_check_attempt(const json_t *one, const char *at, struct err *e)
{
	if (fields_check(one, race_attempt_fields, at, e) < 0)
		return -1;
	return json_object_get(one, "agent") ? race_check_agent(one, at, e)
					     : race_check_program(one, at, e);
}

static int race_check_body(struct call *c, struct err *e)
{
	json_t *attempts = call_get(c, "attempts"), *one;
	char at[32];
	size_t i;

	if (!json_is_array(attempts) || !json_array_size(attempts) ||
	    json_array_size(attempts) > RACE_ATTEMPTS)
		return err_set(e, ERR_INVALID, "attempts: must be a list of 1 to %d programs",
			       RACE_ATTEMPTS);
	json_array_foreach(attempts, i, one)
	{
		snprintf(at, sizeof(at), "attempts[%zu]", i);
		if (race_check_attempt(one, at, e) < 0)
			return -1;
		fields_prune(one, race_attempt_fields);
	}
	return race_check_program(call_get(c, "check"), "check", e);
}

static enum race_keep race_read_keep(struct call *c)
{
	const char *word = call_text(c, "keep", "first");

	return !strcmp(word, "best")   ? RACE_KEEP_BEST
	       : !strcmp(word, "none") ? RACE_KEEP_NONE
				       : RACE_KEEP_FIRST;
}

/* The copies end when the server that owns the race no longer exists. */
static void race_describe(struct race *r, uint64_t wall_ms)
{
	const json_t *cpu = json_object_get(call_get(r->call, "budget"), "cpu_ms");
	struct box_spec *w = &r->want;

	w->row.metadata = (char *)"{\"" BOX_EPHEMERAL "\":\"1\",\"" BOX_RACE "\":\"1\"}";
	w->row.surface = NULL;
	w->row.checkpoints = NULL;
	w->row.on_timeout = STORE_TIMEOUT_KILL;
	w->row.lifetime_ms = wall_ms + 60000;
	w->row.idle_ms = 0;
	if (cpu && (!w->limits.cpu_ms || (uint64_t)json_integer_value(cpu) < w->limits.cpu_ms))
		w->limits.cpu_ms = (uint64_t)json_integer_value(cpu);
}

static struct race *race_new(struct call *c, const struct box *b)
{
	const json_t *attempts = call_get(c, "attempts"),
		     *wall = json_object_get(call_get(c, "budget"), "wall_ms");
	unsigned n = (unsigned)json_array_size(attempts);
	uint64_t wall_ms = wall ? (uint64_t)json_integer_value(wall) : RACE_WALL_MS;
	struct race *r = call_alloc(c, sizeof(*r) + n * sizeof(r->v[0]));

	memset(r, 0, sizeof(*r) + n * sizeof(r->v[0]));
	*r = (struct race){ .call = c,
			    .n = n,
			    .programs = attempts,
			    .check = call_get(c, "check"),
			    .keep = race_read_keep(c),
			    .winner = -1,
			    .began_ms = loop_now_ms(),
			    .ends_ms = loop_now_ms() + wall_ms };
	memcpy(r->box, b->row.id, sizeof(r->box));
	for (unsigned i = 0; i < n; i++)
		r->v[i].race = r;
	if (!checkpoints_describe_copy(c, b, &r->want))
		return NULL;
	race_describe(r, wall_ms);
	return r;
}

/* A client that sends no more has usually closed its connection, and copies cost too much to find that out later. */
static void race_on_eof(struct http_req *req)
{
	struct call *c = req->user;

	if (c->drop == race_left)
		http_abort(req);
}

void race_start(struct call *c)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_FORK, .author = c->who.id };
	struct box *b = call_box(c, 0);
	struct race *r;
	struct err e;

	if (!b)
		return;
	if (race_check_body(c, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (c->who.box[0]) {
		call_error(c, 403, "denied",
			   "this key is bound to one box, and cannot create others", c->who.box,
			   "an editor of the team can: POST /v1/boxes/BOX/race");
		return;
	}
	if (!quota_box(c))
		return;
	r = race_new(c, b);
	if (!r)
		return;
	if (checkpoint_take(c->api->checkpoints, b, &want, race_begin, r, &r->job, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	timer_init(&r->budget, c->api->loop, race_is_out_of_time);
	c->state = r;
	c->drop = race_left;
	c->req->on_eof = race_on_eof;
}
