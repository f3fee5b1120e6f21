/* prove.h - proves an isolation tier: starts the probe program (probe.h) in ordinary boxes of the tier, and verifies
 * outside of them that its attempts had no effect. docs/tiers.md, "Evidence".
 * Owns:         the boxes and canaries of one proof, until prove_run() returns. If its process is killed, the boxes end with
 *               its connections, and a guard process removes the folder.
 * Does not own: the stored proof (store/proofs.h).
 *
 * Runs as root, in a process that is not the server: it blocks, reads /proc of the host and traces the processes of its
 * boxes for a moment. */
#pragma once
#include "base/err.h"
#include "prove/proof.h"
#include "wire/wire.h"
#include <jansson.h>

struct prove_want {
	unsigned tier;         /* enum wire_tier */
	const char *tier_name; /* "gvisor" */
	const char *
		modules; /* tier wasm, whose boxes are containers: folder of its modules; else NULL */
	const char *settings; /* text of the [isolation] settings: part of the keys */
	int start_keeper;     /* start one if none runs */
	uint64_t without_launch, without_init; /* test builds: rows to leave out ... */
	int on_host;                           /* ... or the whole box */
	/* Called for each finished row, in order; NULL: not called. */
	void (*each)(void *ctx, json_t *row);
	void *ctx;
};

/* Sets tier, tier_name and modules. */
void prove_want_tier(struct prove_want *w, unsigned tier);

/* Fills out with a complete row, which the caller stores or prints, and frees. A tier that is not offered, a box that was
 * not created and a missing privilege are errors; a failed probe is a result. */
must_check int prove_run(const struct prove_want *w, struct store_proof *out, struct err *e);

/* The keys of a proof of this tier by the facts of the keeper. */
void prove_keys_of(struct prove_keys *k, const char *tier, const char *settings,
		   const struct wire_tier_facts *f);

/* As an object of the API: keys, result, and with `whole` all probes. */
json_t *prove_json(const struct store_proof *p, int whole);
/* The same for the way from the process of the checker to the server; to be freed. */
char *prove_pack(const struct store_proof *p);
must_check int prove_unpack(const json_t *doc, struct store_proof *out, struct err *e);
