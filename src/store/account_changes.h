/* account_changes.h - keys, teams and rows of shared_rows.h in several stores: which rows have changed here, and rows
 * that changed elsewhere. Triggers of the tables record every change of such a row in its transaction, also one by another process
 * (`atoll key new`). The gateway of a cluster sends them to the database of the cluster (gateway/accounts.h); without
 * a cluster the list has one row per row of these tables, and is not read.
 *
 * A row is a JSON object with all columns but the time of the last use, which stays local. */
#pragma once
#include "store/shared_rows.h"

struct store_account {
	char kind[8];                 /* "key", "team", or of shared_rows.h */
	char id[STORE_SHARED_ID + 1]; /* of a key; the name of a team */
	int verify;                   /* not changed: send it only if it is not known there */
	int64_t version;              /* grows with each change, for store_account_sent() */
	char *row;                    /* NULL: it was removed */
};
struct store_accounts {
	struct store_account *v;
	unsigned n;
};
void store_accounts_fini(struct store_accounts *l);

/* Teams first. */
must_check int store_account_pending(struct store *s, unsigned limit, struct store_accounts *out,
				     struct err *e);
/* It is stored elsewhere; if it has changed since it was read, it stays pending. */
must_check int store_account_sent(struct store *s, const struct store_account *a, struct err *e);
/* Before all rows are received: those that do not come are pending with `verify`. */
must_check int store_account_verify_all(struct store *s, struct err *e);
/* A row of another store; NULL: it was removed there. 0: nothing changed here; 1: it did. A row that has changed here
 * and was not sent yet is left unchanged. Of two keys with one name the younger one gets another name, and is pending.
 * ERR_INVALID: not such a row. */
must_check int store_account_apply(struct store *s, const char *kind, const char *id,
				   const char *row, struct err *e);
