/* Shares of a limit: the sum never exceeds it, also when answers are lost, repeated or late, and all of it can be used. */
#include "cluster/quota_share.h"
#include "tap.h"

#include <string.h>

TEST(a_grant_is_at_most_half_of_the_rest)
{
	CHECK_INT(quota_share_grant(100, 0, 0, 1000), 50);
	CHECK_INT(quota_share_grant(100, 50, 0, 1000), 25);
	CHECK_INT(quota_share_grant(100, 99, 0, 10), 1); /* the last one is not lost to rounding */
	CHECK_INT(quota_share_grant(100, 100, 0, 10), 0);
	CHECK_INT(quota_share_grant(100, 0, 50, 10), 10); /* returned at once */
	CHECK_INT(quota_share_grant(10, 20, 30, 100), 0); /* the limit was lowered */
	CHECK_INT(quota_share_grant(0, 0, 0, 7), 0);
	CHECK_INT(quota_share_grant(UINT64_MAX, 0, 5, 9), 9);
}

TEST(a_share_is_used_without_a_request_and_refilled_at_half)
{
	struct quota_share s = { 0 };
	uint64_t want;

	CHECK_INT(quota_share_take(&s, 1, 10), 0);
	CHECK_INT(quota_share_next(&s, 10, &want), 1);
	CHECK_INT(quota_share_next(&s, 10, &want), 0); /* one request at a time */
	quota_share_granted(&s, 10, 11);
	for (unsigned i = 0; i < 5; i++)
		CHECK_INT(quota_share_take(&s, 1, 12), 1);
	CHECK_INT(quota_share_next(&s, 12, &want), 0);
	CHECK_INT(quota_share_take(&s, 1, 12), 1);
	CHECK_INT(quota_share_next(&s, 12, &want), 1);
	CHECK(want > 10);
	quota_share_unknown(&s, 13); /* the database does not answer: what is held can be used */
	for (unsigned i = 0; i < 4; i++)
		CHECK_INT(quota_share_take(&s, 1, 13), 1);
	CHECK_INT(quota_share_take(&s, 1, 13), 0);
}

TEST(an_idle_share_is_returned_before_the_request)
{
	struct quota_share s = { .held = 100, .used = 3, .last_ms = 1000 };
	uint64_t want;

	CHECK_INT(quota_share_next(&s, 2000, &want), 0);
	CHECK_INT(quota_share_next(&s, 6001, &want), 1);
	CHECK_INT(want, 3);
	CHECK_INT(s.held, 3);
	quota_share_unknown(&s, 6002);
	CHECK_INT(quota_share_take(&s, 1, 6003), 0);
	CHECK_INT(quota_share_next(&s, 6003 + QUOTA_SHARE_RETRY_MS, &want), 1); /* the same again */
	CHECK_INT(want, 3);
}

/* ---- simulation: gateways, one database, messages that are lost or late ---- */

enum { GATEWAYS = 5, STEPS = 200000 };

static uint64_t seed;
static unsigned dice(unsigned n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % n;
}

struct world {
	uint64_t limit, stored[GATEWAYS]; /* by the database */
	struct quota_share share[GATEWAYS];
	struct {
		int is_open;
		uint64_t want, done_ms, answer;
		int is_executed, is_lost;
	} request[GATEWAYS];
};

static uint64_t sum_stored(const struct world *w, int without)
{
	uint64_t n = 0;

	for (int i = 0; i < GATEWAYS; i++)
		n += i == without ? 0 : w->stored[i];
	return n;
}

static void world_step(struct world *w, int g, uint64_t now, int wants)
{
	struct quota_share *s = &w->share[g];

	if (wants)
		quota_share_take(s, 1 + dice(3), now);
	else if (s->used && dice(2))
		quota_share_release(s, 1, now);
	if (!w->request[g].is_open && quota_share_next(s, now, &w->request[g].want)) {
		w->request[g].is_open = 1;
		w->request[g].done_ms = now + dice(40);
		w->request[g].is_executed = dice(10) > 0; /* else it did not reach the database */
		w->request[g].is_lost = dice(10) == 0;    /* its answer */
		return;
	}
	if (!w->request[g].is_open || now < w->request[g].done_ms)
		return;
	w->request[g].is_open = 0;
	if (w->request[g].is_executed)
		w->stored[g] = quota_share_grant(w->limit, sum_stored(w, g), w->stored[g],
						 w->request[g].want);
	if (w->request[g].is_executed && !w->request[g].is_lost)
		quota_share_granted(s, w->stored[g], now);
	else
		quota_share_unknown(s, now);
}

TEST(the_sum_of_all_uses_never_exceeds_the_limit)
{
	for (uint64_t first = 1; first <= 40 && tap_now == TAP_OK; first++) {
		struct world w = { 0 };
		uint64_t most = 0;

		seed = first;
		w.limit = 20 + dice(2000);

		for (unsigned i = 0; i < STEPS / 40; i++) {
			uint64_t used = 0, held = 0;

			world_step(&w, (int)dice(GATEWAYS), i, dice(4) > 0);
			for (int g = 0; g < GATEWAYS; g++) {
				used += w.share[g].used;
				held += w.share[g].held;
				CHECK(w.share[g].held <= w.stored[g]);
			}
			CHECK(held <= w.limit);
			CHECK(used <= w.limit);
			CHECK(sum_stored(&w, -1) <= w.limit);
			most = used > most ? used : most;
		}
		CHECK(most > w.limit / 2 || most > 100);
	}
}

TEST(one_busy_gateway_gets_the_whole_limit_when_others_are_idle)
{
	struct world w = { .limit = 1000 };
	uint64_t now = 0;

	seed = 7;
	for (unsigned i = 0; i < 20000; i++) /* all */
		world_step(&w, (int)dice(GATEWAYS), now++, dice(3) == 0);
	for (int g = 1; g < GATEWAYS; g++)
		quota_share_release(&w.share[g], UINT64_MAX, now);
	for (unsigned i = 0; i < 60000; i++) { /* only the first */
		world_step(&w, (int)(i % GATEWAYS), now++, i % GATEWAYS == 0);
		CHECK(sum_stored(&w, -1) <= w.limit);
	}
	CHECK(w.share[0].used > 950);
}
