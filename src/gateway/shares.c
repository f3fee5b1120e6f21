/* shares.c - see shares.h. */
#include "gateway/shares.h"
#include "base/hex.h"
#include "base/id.h"
#include "cluster/quota_share.h"
#include "coordinator/cluster_client.h"
#include "coordinator/queries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARES_TICK_MS = 50, SHARES_LOW = 2, SHARES_TOUCH_MS = 5000 };

struct shares_team {
	struct shares_team *next;
	struct gateway_shares *shares;
	char name[STORE_NAME + 1];
	uint64_t limit;
	struct quota_share share;
	struct cluster_request request;
	struct shares_ask *asks, **end;
	uint64_t sent_ms, answered_ms;
	uint64_t spent;  /* since the request in progress was sent */
	int was_lowered; /* the limit, since then: what is answered may be too much */
};

struct gateway_shares {
	struct loop *loop;
	struct cluster_client *engines;
	unsigned number;
	char holder[17]; /* of this process: the next one of this gateway has another share */
	struct shares_team *teams;
	struct timer tick;
};

static struct shares_team *shares_team(struct gateway_shares *s, const char *name)
{
	struct shares_team *t = s->teams;

	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		abort();
	t->shares = s;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->end = &t->asks;
	t->next = s->teams;
	s->teams = t;
	return t;
}

/* ---- callers that wait ---- */

static void shares_give(struct shares_team *t, int result)
{
	struct shares_ask *a = t->asks;

	t->asks = a->next;
	if (!t->asks)
		t->end = &t->asks;
	a->team = NULL;
	a->done(a, result);
}

/* After an answer. Without more for them, the callers that are left get 429; else the next request asks for more. */
static void shares_serve(struct shares_team *t, int is_limited)
{
	while (t->asks) {
		if (quota_share_take(&t->share, 1, loop_now_ms()))
			shares_give(t, 1);
		else if (is_limited)
			shares_give(t, 0);
		else
			break;
	}
}

/* ---- the database ---- */

static void shares_give_back(struct shares_team *t)
{
	if (t->share.held > t->share.used)
		t->share.held = t->share.used;
}

static void shares_answered(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct shares_team *t = loop_owner(r, struct shares_team, request);
	uint64_t now = loop_now_ms(), before = t->share.held;
	const json_t *row = e ? NULL : json_array_get(query_rows(answer, 3), 0);
	uint64_t amount;
	int is_limited;

	if (!row) {
		quota_share_unknown(&t->share, now);
		return; /* callers wait until their time has expired */
	}
	/* What was spent since the request was sent is a live box now, and a part of this amount, too. */
	amount = (uint64_t)query_int(row, 0);
	/* Half of what was left is not the end of it: the next request gets half of the rest. */
	is_limited = !t->was_lowered && amount < t->share.wanted && amount <= before;
	t->answered_ms = now;
	quota_share_granted(&t->share, amount > t->spent ? amount - t->spent : 0, now);
	if (t->was_lowered)
		shares_give_back(t);
	shares_serve(t, is_limited);
	if (t->asks)
		timer_set(&t->shares->tick, 0);
}

static void shares_send(struct shares_team *t, uint64_t want)
{
	char number[12], wanted[24], limit[24], held[24];

	snprintf(number, sizeof(number), "%u", t->shares->number);
	snprintf(wanted, sizeof(wanted), "%llu", (unsigned long long)want);
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)t->limit);
	snprintf(held, sizeof(held), "%llu", (unsigned long long)t->share.held);
	t->sent_ms = loop_now_ms();
	t->spent = 0;
	t->was_lowered = 0;
	t->request.done = shares_answered;
	query_request(t->shares->engines, &t->request, "share_boxes",
		      json_pack("[s, s, s, s, s, s]", t->name, number, t->shares->holder, wanted,
				limit, held));
}

static void shares_tick_team(struct shares_team *t, uint64_t now)
{
	uint64_t want;

	if (t->asks)
		t->share.next_ms = 0; /* a caller waits */
	if (t->share.held - t->share.used < SHARES_LOW &&
	    t->share.last_ms + QUOTA_SHARE_IDLE_MS > now)
		t->share.is_short = 1;
	/* A share that the database has forgotten is none. */
	if (now - t->answered_ms > SHARES_KEEP_MS)
		shares_give_back(t);
	if (quota_share_next(&t->share, now, &want)) {
		shares_send(t, want);
	} else if (!t->share.is_asking && t->share.held && now - t->sent_ms > SHARES_TOUCH_MS) {
		t->share.is_asking = 1; /* shows that this process still has it */
		t->share.wanted = t->share.held;
		shares_send(t, t->share.held);
	}
	while (t->asks && t->asks->until_ms <= now)
		shares_give(t, t->share.is_asking || t->share.is_unknown ? -1 : 0);
}

static void shares_tick(struct timer *timer)
{
	struct gateway_shares *s = loop_owner(timer, struct gateway_shares, tick);
	uint64_t now = loop_now_ms();

	for (struct shares_team *t = s->teams; t; t = t->next)
		shares_tick_team(t, now);
	timer_set(&s->tick, SHARES_TICK_MS);
}

/* ---- callers ---- */

int shares_take(struct gateway_shares *s, struct shares_ask *a, const char *team, uint64_t limit)
{
	struct shares_team *t = shares_team(s, team);

	if (limit < t->limit) {
		shares_give_back(t);
		t->was_lowered = 1;
	}
	t->limit = limit;
	if (!t->asks && quota_share_take(&t->share, 1, loop_now_ms()))
		return 1;
	a->next = NULL;
	a->team = t;
	a->until_ms = loop_now_ms() + SHARES_ANSWER_MS;
	*t->end = a;
	t->end = &a->next;
	timer_set(&s->tick, 0);
	return 0;
}

void shares_cancel(struct shares_ask *a)
{
	struct shares_team *t = a->team;
	struct shares_ask **at;

	if (!t)
		return;
	for (at = &t->asks; *at != a; at = &(*at)->next)
		;
	*at = a->next;
	if (!*at)
		t->end = at;
	a->team = NULL;
}

void shares_release(struct gateway_shares *s, const char *team)
{
	quota_share_release(&shares_team(s, team)->share, 1, loop_now_ms());
}

void shares_spend(struct gateway_shares *s, const char *team)
{
	struct shares_team *t = shares_team(s, team);

	quota_share_release(&t->share, 1, loop_now_ms());
	t->share.held -= t->share.held > 0;
	t->spent++;
}

int gateway_shares_new(struct gateway_shares **out, struct loop *l, struct cluster_client *engines,
		       unsigned number, struct err *e)
{
	struct gateway_shares *s = calloc(1, sizeof(*s));
	uint8_t random[8];

	if (!s)
		abort();
	if (id_random(random, sizeof(random), e) < 0) {
		free(s);
		return -1;
	}
	hex_encode(s->holder, random, sizeof(random));
	s->loop = l;
	s->engines = engines;
	s->number = number;
	timer_init(&s->tick, l, shares_tick);
	timer_set(&s->tick, SHARES_TICK_MS);
	*out = s;
	return 0;
}

void gateway_shares_free(struct gateway_shares *s)
{
	struct shares_team *next;

	if (!s)
		return;
	for (struct shares_team *t = s->teams; t; t = next) {
		next = t->next;
		cluster_client_cancel(&t->request);
		free(t);
	}
	timer_fini(&s->tick);
	free(s);
}
