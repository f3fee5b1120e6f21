/* policy.c - see policy.h. */
#include "checkpoint/policy.h"
#include "checkpoint/internal.h"
#include "checkpoint/prepare.h"
#include "checkpoint/self.h"
#include "base/cleanup.h"
#include "base/log.h"

#include <string.h>

static const char *const autos[] = { [CHECKPOINT_BEFORE_NONE] = "off",
				     [CHECKPOINT_BEFORE_ALL] = "exec",
				     [CHECKPOINT_BEFORE_CELL] = "cell",
				     [CHECKPOINT_BEFORE_TOOL] = "tool" };

void checkpoint_policy_read(const struct store_box *row, struct checkpoint_policy *out)
{
	json_t *doc = row->checkpoints ? json_loads(row->checkpoints, 0, NULL) : NULL;
	const char *word = json_string_value(json_object_get(doc, "auto"));
	json_int_t keep = json_integer_value(json_object_get(doc, "keep")),
		   interval = json_integer_value(json_object_get(doc, "interval_ms"));

	*out = (struct checkpoint_policy){ .keep = keep > 0 ? (unsigned)keep : CHECKPOINT_AUTO_LAST,
					   .interval_ms = interval > 0 ? (uint64_t)interval : 0,
					   .self = json_is_true(json_object_get(doc, "self")),
					   .prepare = json_is_true(json_object_get(doc, "prepare")),
					   .track = json_is_true(json_object_get(doc, "track")) };
	for (unsigned i = 0; word && i < ARRAY_LEN(autos); i++)
		if (!strcmp(word, autos[i]))
			out->before = (enum checkpoint_auto)i;
	json_decref(doc);
}

json_t *checkpoint_policy_json(const struct store_box *row)
{
	struct checkpoint_policy p;

	checkpoint_policy_read(row, &p);
	return json_pack("{s:s, s:I, s:i, s:b, s:b, s:b}", "auto", autos[p.before], "interval_ms",
			 (json_int_t)p.interval_ms, "keep", (int)p.keep, "self", p.self, "prepare",
			 p.prepare, "track", p.track);
}

int checkpoint_policy_covers(const struct checkpoint_policy *p, enum checkpoint_step step)
{
	return p->before == CHECKPOINT_BEFORE_ALL ||
	       (p->before == CHECKPOINT_BEFORE_CELL && step == CHECKPOINT_STEP_CELL) ||
	       (p->before == CHECKPOINT_BEFORE_TOOL && step == CHECKPOINT_STEP_TOOL);
}

const char *checkpoint_step_reason(enum checkpoint_step step)
{
	static const char *const names[] = { [CHECKPOINT_STEP_EXEC] = "exec",
					     [CHECKPOINT_STEP_CELL] = "cell",
					     [CHECKPOINT_STEP_TOOL] = "tool" };

	return names[step];
}

int checkpoint_reason_is_automatic(const char *reason)
{
	static const char *const all[] = { "exec", "cell", "tool", CHECKPOINT_INTERVAL,
					   CHECKPOINT_PROGRAM };

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(reason, all[i]))
			return 1;
	return 0;
}

/* ---- interval ---- */

enum { POLICY_TICK_MS = 1000 };

/* An idle box does not change, so only boxes with activity since their last checkpoint are looked
 * at. */
static int policy_is_due(struct box *b)
{
	struct checkpoint_policy p;

	if (!b->row.checkpoints || b->state != BOX_RUNNING)
		return 0;
	checkpoint_policy_read(&b->row, &p);
	if (!p.interval_ms)
		return 0;
	if (!b->checkpoint_ms)
		b->checkpoint_ms = b->asked_ms;
	return loop_now_ms() - b->checkpoint_ms >= p.interval_ms &&
	       (b->nruns || b->active_ms >= b->checkpoint_ms);
}

void checkpoint_interval_due(struct timer *t)
{
	struct checkpoints *c = loop_owner(t, struct checkpoints, interval);
	struct checkpoint_want want = { .reason = CHECKPOINT_INTERVAL, .unless_same = 1 };
	struct checkpoint_job *j;
	struct err e;

	for (struct box *b = fleet_next(c->fleet, NULL); b; b = fleet_next(c->fleet, b)) {
		if (!policy_is_due(b))
			continue;
		b->checkpoint_ms = loop_now_ms(); /* also if it fails: not again at once */
		if (checkpoint_take(c, b, &want, NULL, NULL, &j, &e) < 0)
			log_warn("no checkpoint of the interval", LOG_S("box", b->row.id),
				 LOG_E(&e));
	}
	checkpoint_self_turn(c);
	checkpoint_prepare_turn(c);
	timer_set(t, POLICY_TICK_MS);
}
