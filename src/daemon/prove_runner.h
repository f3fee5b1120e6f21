/* prove_runner.h - decides when tiers are proven, and stores the proofs; in the server.
 * Owns:         the request in progress, the states of the tiers as they were last judged, and their figures.
 * Does not own: the proof itself, which a child of the supervisor makes (prove_child.h); the choice of tiers.
 *
 * A stronger tier without a valid proof is proven soon after the start. The container tier is proven when no box and no
 * program has started for half a minute. A tier whose proof failed is not proven again until something changes:
 * `atoll prove` shows why. */
#pragma once
#include "fleet/isolation.h"
#include "loop/loop.h"
#include "metrics/metrics.h"
#include "prove/proof.h"

struct prove_runner {
	struct fleet *fleet;
	const char *settings;                         /* prove_settings.h */
	int enabled;                                  /* isolation.prove */
	void (*need)(void *user, unsigned wire_tier); /* requests a proof from the supervisor */
	void *user;
	struct timer tick;
	struct watch result;
	int fd;    /* -1: no proof is in progress */
	int asked; /* enum choose_tier that was requested; -1: none */
	uint64_t asked_ms;
	uint64_t activity, calm_since_ms;
	struct prove_runner_tier {
		int is_known; /* judged before */
		enum prove_state state;
		uint64_t tried_ms;
		uint64_t passed, failed, errors, withdrawn;
	} tiers[CHOOSE_TIERS];
	struct metrics_source source;
};

void prove_runner_init(struct prove_runner *r, struct fleet *f, struct metrics *m);
void prove_runner_fini(struct prove_runner *r);
/* For isolation.proof: the newest proof of the tier, judged by these facts. */
void prove_runner_judge(struct prove_runner *r, enum choose_tier tier,
			const struct wire_tier_facts *x, struct isolation_proof *out);
void prove_runner_connect(struct prove_runner *r, int take_fd); /* the proof arrives here */

/* Pure: the enum choose_tier that is to be proven now; -1: none. calm_ms: since a box or a program was started. */
int prove_runner_due(const struct wire_tier_facts facts[CHOOSE_TIERS],
		     const struct prove_runner_tier tiers[CHOOSE_TIERS], uint64_t now_ms,
		     uint64_t calm_ms);
