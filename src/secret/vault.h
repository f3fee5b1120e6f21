/* vault.h - the values of secrets: encrypted in the store, with a key in a file outside of it.
 * Owns:         the open key file and the key.
 * Does not own: the rows (store/secrets.h).
 *
 *   value ── AES-256-GCM, key of the file, "team NUL name" authenticated ──► nonce, bytes, tag: store
 *
 * The file is opened before the server is confined, and has no bytes until the first secret is set.
 * Two servers may have it open: the one that sets the first secret writes the key under a lock, and the
 * other one reads it. If the file cannot be used, only requests that need a value fail. */
#pragma once
#include "base/buf.h"
#include "store/secrets.h"

enum {
	VAULT_KEY = 32,
	VAULT_VALUE = 64 << 10, /* bytes of a value */
	VAULT_TEAM = 256,       /* secrets of a team */
};

struct vault {
	struct store *store;
	int fd; /* of the key file; -1: trouble says why */
	struct err trouble;
	char path[1200];
	uint8_t key[VAULT_KEY];
	char id[STORE_KEY_ID + 1]; /* of the key; "": not read yet */
};

/* Opens the file, or creates it (0600, empty). Never fails: an error is returned by later calls. */
void vault_open(struct vault *v, const char *path);
void vault_close(struct vault *v);
/* Creates the file with a key, unless it has one: machines that share secrets get a copy of it. */
must_check int vault_make_key(const char *path, struct err *e);

/* -1: not a name: letters, digits, '.', '_', '-', the first one a letter or digit. */
must_check int vault_check_name(const char *name, struct err *e);
/* Encrypts and stores it. x has team, name, hosts and updated_ns; the rest is set here. */
must_check int vault_set(struct vault *v, struct store_secret *x, const void *value, size_t n,
			 struct err *e);
/* The same for a row that is written otherwise (store/shared_rows.h): appends the encrypted bytes to out. */
must_check int vault_seal_secret(struct vault *v, const char *team, const char *name,
				 const void *value, size_t n, struct buf *out, struct err *e);
/* Appends the value to out, which the caller wipes with vault_wipe(). out_row may be NULL. ERR_NOT_FOUND:
 * no such secret. */
must_check int vault_get(struct vault *v, const char *team, const char *name, struct buf *out,
			 struct store_secret *out_row, struct err *e);
/* The same for bytes that are stored elsewhere; context is authenticated, not stored. */
must_check int vault_seal(struct vault *v, const char *context, const void *bytes, size_t n,
			  struct buf *out, struct err *e);
must_check int vault_unseal(struct vault *v, const char *context, const void *sealed, size_t n,
			    struct buf *out, struct err *e);
void vault_wipe(struct buf *b); /* overwrites and frees it */
#define auto_secret __attribute__((cleanup(vault_wipe)))
