/* quota_share.c - see quota_share.h. */
#include "cluster/quota_share.h"

enum { QUOTA_SHARE_FIRST = 4 }; /* asked for by a gateway that has nothing */

int quota_share_take(struct quota_share *s, uint64_t n, uint64_t now_ms)
{
	s->last_ms = now_ms;
	if (s->used > s->held || n > s->held - s->used) {
		s->is_short = 1;
		return 0;
	}
	s->used += n;
	return 1;
}

void quota_share_release(struct quota_share *s, uint64_t n, uint64_t now_ms)
{
	(void)now_ms;
	s->used -= n < s->used ? n : s->used;
}

static uint64_t quota_share_target(const struct quota_share *s, uint64_t now_ms)
{
	if (s->is_short || s->used > s->held / 2) /* more than half of it is used */
		return 2 * s->used + QUOTA_SHARE_FIRST;
	if (now_ms - s->last_ms >= QUOTA_SHARE_IDLE_MS)
		return s->used;
	return s->held;
}

int quota_share_next(struct quota_share *s, uint64_t now_ms, uint64_t *out_want)
{
	uint64_t want = s->is_unknown ? s->wanted : quota_share_target(s, now_ms);

	if (s->is_asking || now_ms < s->next_ms || (!s->is_unknown && want == s->held))
		return 0;
	if (s->is_unknown && want < s->used) /* used more since then, within what it has */
		want = s->held;
	if (want < s->held)
		s->held = want; /* before the database gives it to others */
	s->wanted = *out_want = want;
	s->is_asking = 1;
	return 1;
}

void quota_share_granted(struct quota_share *s, uint64_t amount, uint64_t now_ms)
{
	int more = amount > s->held;

	s->is_asking = s->is_unknown = 0;
	s->held = amount;
	s->is_short = 0;
	if (!more)
		s->next_ms = now_ms + QUOTA_SHARE_EMPTY_MS;
}

void quota_share_unknown(struct quota_share *s, uint64_t now_ms)
{
	s->is_asking = 0;
	s->is_unknown = 1;
	s->next_ms = now_ms + QUOTA_SHARE_RETRY_MS;
}

uint64_t quota_share_grant(uint64_t limit, uint64_t others, uint64_t own, uint64_t want)
{
	uint64_t most = limit > others ? limit - others : 0; /* that this gateway could have */
	uint64_t left = most > own ? most - own : 0, more;

	if (own > most) /* the limit was lowered */
		own = most;
	if (want <= own)
		return want;
	more = want - own;
	if (more > (left + 1) / 2)
		more = (left + 1) / 2;
	return own + more;
}
