/* automatic.c - see automatic.h. */
#include "v1box/automatic.h"
#include "checkpoint/checkpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct field automatic_values[] = {
	FIELD_VALUE("off"), FIELD_VALUE("exec"), FIELD_VALUE("cell"), FIELD_VALUE("tool"), { 0 }
};
const struct field automatic_fields[] = {
	/* clang-format off */
	{ "auto", FIELD_CHOICE, 0, 0, 0, "take a checkpoint before each program, cell and call of a tool (exec), only before cells, only before calls of tools, or none (off, default)", automatic_values },
	{ "interval_ms", FIELD_INT, 0, 0, INT64_C(1) << 40, "take one after this time, while programs run or have run; 0: none (default); at least 1000", NULL },
	{ "keep", FIELD_INT, 0, 1, 1000, "number of automatic checkpoints that are kept, besides one per hour for a day (default 20)", NULL },
	{ "prepare", FIELD_BOOL, 0, 0, 0, "while the box is idle, keep an image of its running programs ready, so that a fork with memory copies nothing; it needs as much memory again (false)", NULL },
	{ "track", FIELD_BOOL, 0, 0, 0, "track changes of files, so that a checkpoint examines only these: quicker for boxes with many files; each file that the box opens or changes costs some microseconds (false)", NULL },
	{ "self", FIELD_BOOL, 0, 0, 0, "programs of the box may take checkpoints of its files: /opt/atoll/bin/checkpoint [NAME] (false)", NULL },
	{ 0 },
	/* clang-format on */
};

struct automatic_wait {
	struct call *call;
	struct checkpoint_job *job;
	struct timer patience;
	void (*then)(struct call *c);
};

static void automatic_left(struct call *c)
{
	struct automatic_wait *w = c->state;

	timer_fini(&w->patience);
	checkpoint_leave(w->job);
}

static void automatic_go(struct automatic_wait *w)
{
	struct call *c = w->call;
	struct trace_context before;

	automatic_left(c);
	c->drop = NULL;
	c->state = NULL;
	if (c->held[0] && !fleet_find(&c->api->fleet, c->held)) {
		call_no_box(c, c->held); /* it has ended; surfaces have a pointer to it */
		return;
	}
	before = trace_enter(&c->trace);
	w->then(c);
	trace_leave(&before);
}

static void automatic_skip(struct call *c, const char *why)
{
	snprintf(c->before.skipped, sizeof(c->before.skipped), "%.119s", why);
}

static void automatic_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct automatic_wait *w = ctx;

	w->job = NULL;
	if (e)
		automatic_skip(w->call, e->msg);
	else
		memcpy(w->call->before.checkpoint, row->id, sizeof(row->id));
	automatic_go(w);
}

/* What the checkpoint contains may be changed by the step, so it is not the one before it. */
static void automatic_is_late(struct timer *t)
{
	struct automatic_wait *w = loop_owner(t, struct automatic_wait, patience);

	automatic_skip(w->call, "late: the checkpoint took longer than limits.checkpoint_wait");
	automatic_go(w);
}

/* 1: the checkpoint would contain a part of what another step does. */
static int automatic_is_shared(const struct call *c, const struct box *b)
{
	for (const struct call *x = c->api->calls; x; x = x->next)
		if (x != c && x->before.wanted && !strcmp(x->held, b->row.id))
			return 1;
	return 0;
}

int automatic_before(struct call *c, struct box *b, enum checkpoint_step step,
		     void (*then)(struct call *c))
{
	struct checkpoint_want want = { .reason = checkpoint_step_reason(step),
					.author = c->who.id,
					.unless_same = 1 };
	struct checkpoint_policy policy;
	struct automatic_wait *w;
	struct err e;

	if (!b->row.checkpoints || !b->row.checkpoints[strlen("{}")] || c->before.wanted)
		return 0;
	checkpoint_policy_read(&b->row, &policy);
	if (!checkpoint_policy_covers(&policy, step))
		return 0;
	c->before = (struct exec_before){ .wanted = 1 };
	if (automatic_is_shared(c, b)) {
		automatic_skip(c, "busy: another step of the box was in progress");
		return 0;
	}
	w = call_alloc(c, sizeof(*w));
	*w = (struct automatic_wait){ .call = c, .then = then };
	if (checkpoint_take(c->api->checkpoints, b, &want, automatic_taken, w, &w->job, &e) < 0) {
		automatic_skip(c, e.msg);
		return 0;
	}
	timer_init(&w->patience, c->api->loop, automatic_is_late);
	timer_set(&w->patience, c->api->conf.checkpoint_wait_ms);
	c->state = w;
	c->drop = automatic_left;
	return 1;
}

int automatic_read(const json_t *field, const char *had, char **out, struct err *e)
{
	enum { INTERVAL_LEAST = 1000 };
	json_int_t interval = json_integer_value(json_object_get(field, "interval_ms"));
	json_t *doc = had ? json_loads(had, 0, NULL) : NULL, *value;
	const char *name;

	if (interval && interval < INTERVAL_LEAST) {
		json_decref(doc);
		return err_set(e, ERR_INVALID,
			       "checkpoints.interval_ms: %lld is less than %d; 0: no interval",
			       (long long)interval, INTERVAL_LEAST);
	}
	if (!doc)
		doc = json_object();
	json_object_foreach((json_t *)field, name, value) if (!json_is_null(value))
		json_object_set(doc, name, value);
	*out = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!*out)
		abort(); /* JSON of the server is always valid */
	return 0;
}
