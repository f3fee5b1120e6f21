/* proofs.h - proofs of isolation tiers (docs/tiers.md, "Evidence"): what was attempted in a box of the tier, what was
 * observed outside, and for which kernel, engine, build and settings. The newest STORE_PROOFS of each tier are kept. */
#pragma once
#include "store/store.h"

enum { STORE_PROOFS = 20, STORE_PROOF_KEY = 80 };

struct store_proof {
	char id[ID_MAX + 1];
	char tier[STORE_WORD + 1];
	int64_t at_ns; /* of its end */
	uint64_t duration_us;
	int passed;
	unsigned failed; /* probes */
	/* Equal to those of this machine, or the proof is not valid. */
	char kernel[STORE_PROOF_KEY + 1]; /* release */
	char engine[STORE_PROOF_KEY + 1]; /* "": none */
	char version[STORE_PROOF_KEY + 1];
	char engine_sha256[65];
	char platform[STORE_WORD + 1];
	char build[STORE_PROOF_KEY + 1];
	char settings[65];
	char *probes; /* JSON: an array, one object for each probe */
};
void store_proof_fini(struct store_proof *p);

struct store_proofs {
	struct store_proof *v;
	unsigned n;
	int more;
};
void store_proofs_fini(struct store_proofs *l);

/* Removes the oldest ones of the tier, too. ERR_CONFLICT: the id exists. */
must_check int store_proof_add(struct store *s, const struct store_proof *p, struct err *e);
must_check int store_proof_get(struct store *s, const char *id, struct store_proof *out,
			       struct err *e);
/* ERR_NOT_FOUND: the tier has none. */
must_check int store_proof_newest(struct store *s, const char *tier, struct store_proof *out,
				  struct err *e);
/* Newest first; tier NULL: of all tiers; limit 0: STORE_PAGE. */
must_check int store_proof_list(struct store *s, const char *tier, const struct store_cursor *after,
				unsigned limit, struct store_proofs *out, struct err *e);
