/* audit.h - which key did what, and whether it succeeded. Rows are only ever added.
 * The database itself rejects a change of a row, and a delete of a row that is younger than the
 * line set by store_audit_retire(); moving that line adds a row. */
#pragma once
#include "store/store.h"

struct store_audit {
	int64_t seq; /* given by the store, ascending */
	int64_t at_ns;
	char who[STORE_NAME + 1]; /* a key's id, "uid:0", "atoll" */
	char team[STORE_NAME + 1];
	char action[STORE_WORD + 1];  /* "box.create" */
	char subject[STORE_NAME + 1]; /* id of the object of the action, or "" */
	char result[STORE_WORD + 1];  /* "ok", or the code of the error */
	char *detail;                 /* JSON; NULL is {} */
};
struct store_audits {
	struct store_audit *v;
	unsigned n;
	int more; /* next page: before = seq of the last one */
};
void store_audits_fini(struct store_audits *l);

must_check int store_audit_add(struct store *s, const struct store_audit *a, struct err *e);

struct store_audit_filter { /* zero: everything */
	const char *team;   /* NULL: any, as below */
	const char *who;
	const char *action; /* "box.create", or all of "box." when it ends in a dot */
	const char *subject;
	int64_t since_ns;
	int64_t until_ns; /* 0: whenever */
	int64_t before;   /* only rows with a smaller seq; 0: from the newest */
	unsigned limit;   /* 0: STORE_PAGE */
};
/* Newest first. */
must_check int store_audit_list(struct store *s, const struct store_audit_filter *f,
				struct store_audits *out, struct err *e);
/* Retention: removes the rows from before then, at most `most` per call (out_n: how many; call
 * again while it is that many), and adds one row "audit.retire" of `who` with the number. */
must_check int store_audit_retire(struct store *s, int64_t before_ns, const char *who,
				  int64_t at_ns, unsigned most, unsigned *out_n, struct err *e);
