/* run_shares.h - links that show one run without a key: an id, the hash of a token, and an end. */
#pragma once
#include "base/sha256.h"
#include "store/store.h"

enum { RUN_SHARES = 32 }; /* of one run */

struct store_run_share {
	char id[ID_MAX + 1];
	uint8_t hash[SHA256_BYTES];
	char run[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char who[STORE_NAME + 1]; /* id of the key that created it */
	int64_t created_ns, expires_ns;
};
struct store_run_shares {
	struct store_run_share *v;
	unsigned n;
};
void store_run_shares_fini(struct store_run_shares *l);

/* Expired ones of all runs are removed first. ERR_LIMIT: the run has RUN_SHARES. */
must_check int store_run_share_add(struct store *s, const struct store_run_share *x, struct err *e);
/* ERR_NOT_FOUND: unknown or expired. */
must_check int store_run_share_find(struct store *s, const uint8_t hash[SHA256_BYTES],
				    int64_t now_ns, struct store_run_share *out, struct err *e);
/* Of a run, newest first, without expired ones. */
must_check int store_run_share_list(struct store *s, const char *run, int64_t now_ns,
				    struct store_run_shares *out, struct err *e);
must_check int store_run_share_remove(struct store *s, const char *run, const char *id,
				      struct err *e);
