/* proof.c - see proof.h. */
#include "prove/proof.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "prove/build_id.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

void prove_keys_here(struct prove_keys *k, const char *tier, const char *settings)
{
	uint8_t hash[SHA256_BYTES];
	struct sha256 sum;
	struct utsname u;

	*k = (struct prove_keys){ 0 };
	snprintf(k->tier, sizeof(k->tier), "%s", tier);
	if (uname(&u) == 0)
		snprintf(k->kernel, sizeof(k->kernel), "%.*s", STORE_PROOF_KEY, u.release);
	build_id_text(k->build);
	sha256_init(&sum);
	sha256_add(&sum, settings, strlen(settings));
	sha256_end(&sum, hash);
	hex_encode(k->settings, hash, sizeof(hash));
}

static const struct {
	const char *what;
	size_t of_keys, of_proof;
} proof_keys[] = {
	{ "tier", offsetof(struct prove_keys, tier), offsetof(struct store_proof, tier) },
	{ "kernel", offsetof(struct prove_keys, kernel), offsetof(struct store_proof, kernel) },
	{ "engine", offsetof(struct prove_keys, engine), offsetof(struct store_proof, engine) },
	{ "version of the engine", offsetof(struct prove_keys, version),
	  offsetof(struct store_proof, version) },
	{ "engine file", offsetof(struct prove_keys, engine_sha256),
	  offsetof(struct store_proof, engine_sha256) },
	{ "platform of the engine", offsetof(struct prove_keys, platform),
	  offsetof(struct store_proof, platform) },
	{ "build of Atoll", offsetof(struct prove_keys, build),
	  offsetof(struct store_proof, build) },
	{ "[isolation] settings", offsetof(struct prove_keys, settings),
	  offsetof(struct store_proof, settings) },
};

/* NULL: nothing. */
static const char *proof_changed_key(const struct prove_keys *now, const struct store_proof *p)
{
	for (unsigned i = 0; i < ARRAY_LEN(proof_keys); i++)
		if (strcmp((const char *)now + proof_keys[i].of_keys,
			   (const char *)p + proof_keys[i].of_proof) != 0)
			return proof_keys[i].what;
	return NULL;
}

void prove_valid(const struct prove_keys *now, const struct store_proof *p, int64_t now_ns,
		 struct prove_status *out)
{
	const int64_t most_ns = PROVE_DAYS * INT64_C(86400) * 1000000000;
	const char *changed = p ? proof_changed_key(now, p) : NULL;

	*out = (struct prove_status){ 0 };
	if (!p) {
		snprintf(out->why, sizeof(out->why), "not proven (atoll prove %s)", now->tier);
		return;
	}
	memcpy(out->id, p->id, sizeof(out->id));
	out->at_ns = p->at_ns;
	out->state = PROVE_STALE;
	if (changed)
		snprintf(out->why, sizeof(out->why),
			 "the %s has changed since proof %s (atoll prove %s)", changed, p->id,
			 now->tier);
	else if (p->at_ns > now_ns)
		snprintf(out->why, sizeof(out->why),
			 "proof %s is from the future: the clock was set back (atoll prove %s)",
			 p->id, now->tier);
	else if (now_ns - p->at_ns > most_ns)
		snprintf(out->why, sizeof(out->why),
			 "proof %s is older than %d days (atoll prove %s)", p->id, PROVE_DAYS,
			 now->tier);
	else if (p->passed)
		out->state = PROVE_VALID;
	else {
		out->state = PROVE_FAILED;
		snprintf(out->why, sizeof(out->why),
			 "proof %s failed: %u probes (atoll prove %s shows them)", p->id, p->failed,
			 now->tier);
	}
}

const char *prove_evidence(const struct prove_status *s)
{
	return s->state == PROVE_VALID ? s->id : "";
}

int prove_look_up(struct store *s, const struct prove_keys *k, int64_t now_ns,
		  struct prove_status *out, struct err *e)
{
	struct store_proof p = { 0 };
	struct err why;

	if (store_proof_newest(s, k->tier, &p, &why) < 0) {
		if (why.kind != ERR_NOT_FOUND) {
			*e = why;
			return -1;
		}
		prove_valid(k, NULL, now_ns, out);
		return 0;
	}
	prove_valid(k, &p, now_ns, out);
	store_proof_fini(&p);
	return 0;
}
