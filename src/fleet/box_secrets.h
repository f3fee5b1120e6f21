/* box_secrets.h - the secrets of a box: variables, files, and placeholders that egress replaces.
 * Owns:         the transfer of files into the box.
 * Does not own: values. row.secrets has names and placeholders; a value is read from the vault when it is
 *               used, and wiped after that.
 *
 *   row.secrets: {"attached": [{name, as, variable, path, hosts, in, placeholder}],
 *                 "headers": [{name, host, value: encrypted}],  set by egress in requests to the host
 *                 "ca": {"cert": PEM, "key": encrypted}}        ca: only with placeholders or headers */
#pragma once
#include "fleet/box.h"
#include "secret/redact.h"

#define BOX_SECRETS_FOLDER "/run/secrets"
#define BOX_SECRETS_CA BOX_SECRETS_FOLDER "/.atoll/ca.pem" /* certificates that programs trust */

enum {
	BOX_SECRETS_MOST = 32,
	BOX_SECRETS_PLACEHOLDERS = 8,
	BOX_SECRETS_HEADER = 4096, /* bytes of a value that egress writes into a request */
	BOX_SECRETS_HEADERS = 16,
};

int box_secrets_any(const struct box *b);
/* NULL, or why this value cannot be used so ("variable", "file", "placeholder"). */
const char *box_secrets_unfit(const char *as, const char *value, size_t n);
/* The key of the certificate authority, for row.secrets; and what vault_unseal() needs to read it. */
#define BOX_SECRETS_CA_CONTEXT "certificate authority of a box"
#define BOX_SECRETS_HEADER_CONTEXT "header of requests of a box"

/* 1: the secrets of the box set this variable. */
int box_secrets_has(const json_t *row_secrets, const char *variable);
/* Appends NAME=value NUL for each variable that `own` does not set, and counts them. A secret that was
 * deleted gives no variable. */
must_check int box_secrets_env(const struct box *b, const json_t *row_secrets,
			       const char *const *own, struct buf *pool, unsigned *n,
			       struct err *e);
/* Adds all values to k. A value that cannot be read is left out. */
void box_secrets_redact(const struct box *b, struct redact *k);
void box_secrets_redact_json(const struct box *b, json_t *doc);

/* Writes the files of the secrets and the trusted certificates into the box. 0: there are none; else 1, and
 * done (may be NULL) is called later. */
int box_secrets_place(struct box *b, void (*done)(struct box *b, const struct err *e));
void box_secrets_drop(struct box *b);  /* the memory only */
void box_secrets_ended(struct box *b); /* the box has ended: done gets an error */
/* A secret was set or deleted: files and placeholders of running boxes change at once. */
void box_secrets_changed(struct fleet *f, const char *team, const char *name);

/* What egress needs to replace placeholders of this box: the tail of WIRE_EGRESS_SECRETS. Empty: nothing. */
void box_secrets_for_egress(const struct box *b, struct buf *out);
