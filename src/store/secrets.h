/* secrets.h - secrets of teams: name, encrypted value, version. The value is encrypted before it
 * comes here (secret/vault.h); the key is not in the database. */
#pragma once
#include "store/store.h"
#include <stddef.h>

enum { STORE_KEY_ID = 16 };

struct store_secret {
	char team[STORE_NAME + 1];
	char name[STORE_NAME + 1];  /* one of the team's */
	char key[STORE_KEY_ID + 1]; /* id of the key that encrypted the value */
	char *hosts;                /* JSON array; not []: only for requests to these hosts */
	void *sealed;               /* the encrypted value */
	size_t sealed_n;
	uint64_t version; /* 1, and one more with each new value */
	int64_t created_ns, updated_ns;
};
void store_secret_fini(struct store_secret *x); /* fine on a zeroed one */

struct store_secrets {
	struct store_secret *v; /* without sealed */
	unsigned n;
	int more; /* next page: after = name of the last one */
};
void store_secrets_fini(struct store_secrets *l);

/* Inserts it with version 1, or replaces value, key, hosts and updated_ns and counts the version up.
 * x->version and x->created_ns are set. ERR_NOT_FOUND: no such team. */
must_check int store_secret_put(struct store *s, struct store_secret *x, struct err *e);
must_check int store_secret_find(struct store *s, const char *team, const char *name,
				 struct store_secret *out, struct err *e);
/* By name; after NULL: from the start. */
must_check int store_secret_list(struct store *s, const char *team, const char *after,
				 unsigned limit, struct store_secrets *out, struct err *e);
must_check int store_secret_remove(struct store *s, const char *team, const char *name,
				   struct err *e);
/* team NULL: of all; not_key NULL: with any key, else only those with another one. */
must_check int store_secret_count(struct store *s, const char *team, const char *not_key,
				  uint64_t *out, struct err *e);
