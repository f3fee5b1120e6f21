/* state.c - see state.h. */
#include "alert/state.h"

#define NS INT64_C(1000000000)

int alert_is_breached(const struct alert_rule *r, const struct alert_sample *s)
{
	if (!s->known || s->count < r->min_count)
		return 0;
	return r->below ? s->value < r->threshold : s->value > r->threshold;
}

/* A clock that was set back must not extend a wait. */
static int state_passed(int64_t since_ns, uint32_t s, int64_t now_ns)
{
	return now_ns < since_ns || now_ns - since_ns >= s * NS;
}

static enum alert_change state_fire(const struct alert_rule *r, struct alert_state *st,
				    int64_t now_ns)
{
	int rested = !st->fired_ns || state_passed(st->fired_ns, r->cooldown_s, now_ns);

	if (!rested || !state_passed(st->since_ns, r->for_s, now_ns))
		return ALERT_SAME;
	*st = (struct alert_state){ .phase = ALERT_FIRING, .since_ns = now_ns, .fired_ns = now_ns };
	return ALERT_FIRED;
}

static enum alert_change state_bad(const struct alert_rule *r, struct alert_state *st,
				   int64_t now_ns)
{
	enum alert_change change;

	st->good_ns = 0;
	if (st->phase == ALERT_FIRING)
		return ALERT_SAME;
	if (st->phase == ALERT_PENDING)
		return state_fire(r, st, now_ns);
	st->phase = ALERT_PENDING;
	st->since_ns = now_ns;
	change = state_fire(r, st, now_ns);
	return change == ALERT_FIRED ? change : ALERT_BEGAN;
}

enum alert_change alert_step(const struct alert_rule *r, struct alert_state *st,
			     const struct alert_sample *s, int64_t now_ns)
{
	if (r->enabled && alert_is_breached(r, s))
		return state_bad(r, st, now_ns);
	if (st->phase == ALERT_PENDING) {
		st->phase = ALERT_OK;
		return ALERT_ENDED;
	}
	if (st->phase == ALERT_OK)
		return ALERT_SAME;
	if (!st->good_ns)
		st->good_ns = now_ns;
	if (r->enabled && !state_passed(st->good_ns, r->for_s, now_ns))
		return ALERT_SAME;
	st->phase = ALERT_OK;
	st->good_ns = 0;
	return ALERT_RESOLVED;
}
