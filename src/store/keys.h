/* keys.h - API keys, which authenticate callers. The key itself is not stored, only its SHA-256. */
#pragma once
#include "base/sha256.h"
#include "store/store.h"

#define KEY_PREFIX "e2b_"
enum {
	KEY_TEXT = 44, /* KEY_PREFIX and 40 hex digits */
	KEY_SHOWN = 8, /* of which this many may be shown */
};

enum store_role { ROLE_VIEWER, ROLE_EDITOR, ROLE_OWNER, ROLE_COUNT };
const char *store_role_name(enum store_role role);            /* "viewer" */
int store_role_parse(const char *text, enum store_role *out); /* -1: no such role */

struct store_key {
	char id[ID_MAX + 1];
	char name[STORE_NAME + 1];
	char team[STORE_NAME + 1];
	enum store_role role;
	char box[ID_MAX + 1]; /* bound to this box, or "" */
	uint8_t hash[SHA256_BYTES];
	char shown[KEY_SHOWN + 1]; /* "e2b_1a2b" */
	int64_t created_ns;
	int64_t used_ns;    /* to the minute; 0: never */
	int64_t expires_ns; /* 0: never */
	int revoked;
	char isolation[STORE_WORD +
		       1]; /* minimum tier of its boxes; "": none; "process": may use it */
};
struct store_keys {
	struct store_key *v;
	unsigned n;
	int more;
};
void store_keys_fini(struct store_keys *l);

/* A new key: text for its owner, hash and shown of k for the store. */
must_check int store_key_make(char out_text[KEY_TEXT + 1], struct store_key *k, struct err *e);
/* -1: not of the form of a key (hex digits are in lower case). */
int store_key_hash(const char *text, uint8_t out[SHA256_BYTES]);

/* k->id is made here. ERR_NOT_FOUND: no such team; ERR_CONFLICT: it has a key of that name. */
must_check int store_key_add(struct store *s, struct store_key *k, struct err *e);
/* A key of a gateway, on a node: its id, team, role, box and minimum tier. It authenticates no request here and is
 * listed as revoked. Writes only what has changed. */
must_check int store_key_mirror(struct store *s, const struct store_key *k, struct err *e);
/* Finds revoked and expired keys as well: the caller distinguishes them. */
must_check int store_key_find(struct store *s, const uint8_t hash[SHA256_BYTES],
			      struct store_key *out, struct err *e);
must_check int store_key_get(struct store *s, const char *id, struct store_key *out, struct err *e);
/* By id, else by name among those that are not revoked; within the team. */
must_check int store_key_named(struct store *s, const char *team, const char *id_or_name,
			       struct store_key *out, struct err *e);
/* Newest first; team NULL: of all. */
must_check int store_key_list(struct store *s, const char *team, const struct store_cursor *after,
			      unsigned limit, struct store_keys *out, struct err *e);
/* A revoked key stays in lists; a removed one is deleted. By id or by name, within the team. */
must_check int store_key_revoke(struct store *s, const char *team, const char *id_or_name,
				struct err *e);
must_check int store_key_remove(struct store *s, const char *team, const char *id_or_name,
				struct err *e);
/* Writes the time of use when the stored one is more than a minute old, and updates k then. */
must_check int store_key_touch(struct store *s, struct store_key *k, int64_t at_ns, struct err *e);
