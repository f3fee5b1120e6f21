/* proof.h - whether a stored proof still holds for this machine, and which proof a box of a tier cites.
 *
 * A proof holds for seven days, while the tier, kernel release, engine (its file's SHA-256, version, platform), build of
 * Atoll and [isolation] settings are the same. */
#pragma once
#include "store/proofs.h"

enum { PROVE_DAYS = 7 };

/* What must be equal. Fill it with prove_keys_here(), then the engine's values from the facts of the tier. */
struct prove_keys {
	char tier[STORE_WORD + 1];
	char kernel[STORE_PROOF_KEY + 1];
	char engine[STORE_PROOF_KEY + 1]; /* "": the tier has none; so are the next three */
	char version[STORE_PROOF_KEY + 1];
	char engine_sha256[65];
	char platform[STORE_WORD + 1];
	char build[STORE_PROOF_KEY + 1];
	char settings[65]; /* SHA-256 of the text of the [isolation] settings */
};

/* Kernel release and build of this process, and the hash of `settings`; no engine. */
void prove_keys_here(struct prove_keys *k, const char *tier, const char *settings);

enum prove_state {
	PROVE_NONE,   /* the tier was never proven */
	PROVE_VALID,  /* passed, and everything is as it was */
	PROVE_STALE,  /* too old, or something has changed since */
	PROVE_FAILED, /* failed, and everything is as it was */
};

struct prove_status {
	enum prove_state state;
	char id[ID_MAX + 1]; /* of the newest proof; "": none */
	int64_t at_ns;
	char why[160]; /* "the engine has changed since proof q7...", for lines of `isolation_unavailable` */
};

/* Pure. p NULL: there is no proof. A clock that was set back makes no proof younger than its end: one from the future is
 * stale. */
void prove_valid(const struct prove_keys *now, const struct store_proof *p, int64_t now_ns,
		 struct prove_status *out);

/* What a box of the tier may cite as `isolation.evidence`: the id of a valid proof, or "". */
const char *prove_evidence(const struct prove_status *s);

/* The newest proof of k->tier in the store, judged. */
must_check int prove_look_up(struct store *s, const struct prove_keys *k, int64_t now_ns,
			     struct prove_status *out, struct err *e);
