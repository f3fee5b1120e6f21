/* prove_runner.c - see prove_runner.h. */
#include "daemon/prove_runner.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fleet/fleet.h"
#include "prove/prove.h"

#include <stdio.h>
#include <sys/socket.h>

enum {
	TICK_MS = 5000,
	CALM_MS = 30000,     /* for the container tier */
	AGAIN_MS = 600000,   /* after a proof without a result */
	LONGEST_MS = 600000, /* a proof takes less */
	RESULT_BYTES = 200 << 10
};

int prove_runner_due(const struct wire_tier_facts facts[CHOOSE_TIERS],
		     const struct prove_runner_tier tiers[CHOOSE_TIERS], uint64_t now_ms,
		     uint64_t calm_ms)
{
	for (unsigned i = 0; i < CHOOSE_TIERS; i++) {
		const struct prove_runner_tier *t = &tiers[i];

		/* plain is for tests, and process is used without a proof. */
		if (facts[i].state != WIRE_TIER_OFFERED || facts[i].tier >= WIRE_TIER_COUNT ||
		    i == CHOOSE_PLAIN || i == CHOOSE_PROCESS)
			continue;
		if (t->state == PROVE_VALID || t->state == PROVE_FAILED)
			continue;
		if (t->tried_ms && now_ms - t->tried_ms < AGAIN_MS)
			continue;
		if (i == CHOOSE_CONTAINER && calm_ms < CALM_MS)
			continue;
		return (int)i;
	}
	return -1;
}

/* ---- requests ---- */

static void prove_runner_stop(struct prove_runner *r)
{
	watch_stop(&r->result);
	own_close_fd(&r->fd);
	r->asked = -1;
}

static void prove_runner_tick(struct timer *timer)
{
	struct prove_runner *r = loop_owner(timer, struct prove_runner, tick);
	const struct fleet_figures *f = &r->fleet->figures;
	const struct wire_tier_facts *facts = r->fleet->isolation.facts;
	uint64_t activity = f->created + f->runs_started, now_ms = loop_now_ms();

	timer_set(&r->tick, TICK_MS);
	if (activity != r->activity || !r->calm_since_ms) {
		r->activity = activity;
		r->calm_since_ms = now_ms;
	}
	if (r->asked >= 0 && now_ms - r->asked_ms > LONGEST_MS)
		prove_runner_stop(r);
	if (r->asked >= 0 || !r->fleet->alone)
		return;
	r->asked = prove_runner_due(facts, r->tiers, now_ms, now_ms - r->calm_since_ms);
	if (r->asked < 0)
		return;
	r->asked_ms = r->tiers[r->asked].tried_ms = now_ms;
	r->need(r->user, facts[r->asked].tier);
}

/* ---- results ---- */

static void prove_runner_store(struct prove_runner *r, struct prove_runner_tier *t, json_t *doc)
{
	const char *error = json_string_value(json_object_get(doc, "error"));
	struct store_proof p;
	struct err e;

	if (error)
		err_set(&e, ERR_SYS, "%.200s", error);
	if (error || prove_unpack(doc, &p, &e) < 0) {
		t->errors++;
		log_warn("a tier could not be proven", LOG_E(&e));
		return;
	}
	if (store_proof_add(r->fleet->store, &p, &e) < 0)
		log_warn("a proof was not stored", LOG_E(&e));
	if (p.passed)
		t->passed++;
	else
		t->failed++;
	log_info(p.passed ? "a tier was proven" : "a tier was NOT proven", LOG_S("tier", p.tier),
		 LOG_S("proof", p.id), LOG_U("failed", p.failed));
	store_proof_fini(&p);
	isolation_prove(r->fleet);
}

static void prove_runner_ready(struct watch *w, unsigned what)
{
	struct prove_runner *r = loop_owner(w, struct prove_runner, result);
	static char text[RESULT_BYTES];
	ssize_t n = recv(r->fd, text, sizeof(text), MSG_DONTWAIT);
	json_t *doc = n > 0 ? json_loadb(text, (size_t)n, 0, NULL) : NULL;
	int tier = r->asked;

	(void)what;
	prove_runner_stop(r);
	if (tier >= 0)
		prove_runner_store(r, &r->tiers[tier], doc);
	json_decref(doc);
}

void prove_runner_connect(struct prove_runner *r, int take_fd)
{
	if (r->asked < 0 || r->fd >= 0) {
		close(take_fd);
		return;
	}
	r->fd = take_fd;
	watch_init(&r->result, r->fleet->loop, r->fd, prove_runner_ready);
	watch_want(&r->result, LOOP_READ);
}

/* ---- judging ---- */

static void prove_runner_emit(struct prove_runner *r, const char *type, const char *tier,
			      const struct prove_status *s)
{
	fleet_emit(r->fleet, "default", "", type,
		   json_pack("{s:s, s:s, s:s}", "tier", tier, "proof", s->id, "why", s->why));
}

static void prove_runner_note(struct prove_runner *r, enum choose_tier tier,
			      const struct prove_status *s)
{
	struct prove_runner_tier *t = &r->tiers[tier];
	const char *name = choose_tier_name(tier);
	/* A server that starts assumes that a tier with a proof was offered before. */
	int was = t->is_known ? t->state == PROVE_VALID : s->state != PROVE_NONE;
	int is = s->state == PROVE_VALID;

	if (was && !is) {
		t->withdrawn++;
		log_warn("an isolation tier is withdrawn", LOG_S("tier", name),
			 LOG_S("why", s->why));
		prove_runner_emit(r, "tier.withdrawn", name, s);
	} else if (is && !was) {
		prove_runner_emit(r, "tier.proven", name, s);
	}
	t->is_known = 1;
	t->state = s->state;
}

void prove_runner_judge(struct prove_runner *r, enum choose_tier tier,
			const struct wire_tier_facts *x, struct isolation_proof *out)
{
	struct prove_status s;
	struct prove_keys k;
	struct err e;

	prove_keys_of(&k, choose_tier_name(tier), r->settings, x);
	if (prove_look_up(r->fleet->store, &k, fleet_now_ns(), &s, &e) < 0) {
		log_warn("cannot read proofs of isolation tiers", LOG_E(&e));
		return; /* a stronger tier is not offered then */
	}
	prove_runner_note(r, tier, &s);
	out->state = s.state == PROVE_VALID    ? CHOOSE_PROVEN
		     : s.state == PROVE_FAILED ? CHOOSE_WITHDRAWN
					       : CHOOSE_UNPROVEN;
	out->at_ns = s.at_ns;
	snprintf(out->id, sizeof(out->id), "%s", prove_evidence(&s));
}

/* ---- figures ---- */

static void prove_runner_figures(struct metrics_source *source, struct metrics *m)
{
	struct prove_runner *r = loop_owner(source, struct prove_runner, source);

	for (unsigned i = 0; i < CHOOSE_TIERS; i++) {
		const struct prove_runner_tier *t = &r->tiers[i];
		const char *name = choose_tier_name((enum choose_tier)i);

		if (!t->is_known)
			continue;
		metrics_put(m, METRIC_TIER_PROVEN, t->state == PROVE_VALID, name, NULL);
		metrics_put(m, METRIC_TIER_WITHDRAWN, (double)t->withdrawn, name, NULL);
		metrics_put(m, METRIC_TIER_PROOFS, (double)t->passed, name, "passed");
		metrics_put(m, METRIC_TIER_PROOFS, (double)t->failed, name, "failed");
		metrics_put(m, METRIC_TIER_PROOFS, (double)t->errors, name, "error");
	}
}

void prove_runner_init(struct prove_runner *r, struct fleet *f, struct metrics *m)
{
	r->fleet = f;
	r->fd = r->asked = -1;
	r->source.read = prove_runner_figures;
	metrics_add_source(m, &r->source);
	timer_init(&r->tick, f->loop, prove_runner_tick);
	if (r->enabled)
		timer_set(&r->tick, TICK_MS);
}

void prove_runner_fini(struct prove_runner *r)
{
	if (!r->fleet)
		return;
	prove_runner_stop(r);
	timer_fini(&r->tick);
}
