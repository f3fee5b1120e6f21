/* etcd.h - transactions of etcd over its JSON gateway (/v3/kv/txn), on the loop, with libcurl.
 * Owns: connections, requests without an answer.
 *
 * Keys and values are base64, 64-bit numbers are strings, and what is false or 0 is left out: the functions below
 * hide that. Several addresses are members of one etcd: after a failure the next one is asked. A transaction without an
 * answer has unknown effect; only one that reads is sent again. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include <jansson.h>

struct etcd;

enum { ETCD_MEMBERS = 9 };

struct etcd_conf {             /* copied */
	const char *addresses; /* "http://10.0.0.1:2379,http://10.0.0.2:2379" */
	const char *ca_file;   /* for https; NULL: the machine's own list */
	uint32_t answer_ms;    /* limit of a transaction that writes; 0: 2000 */
	uint32_t read_ms;      /* limit of one attempt to read; 0: 700 */
};

must_check int etcd_new(struct etcd **out, struct loop *l, const struct etcd_conf *conf,
			struct err *e);
void etcd_free(struct etcd *x); /* done() is not called; allowed on NULL, not from done() */
const char *etcd_trouble(const struct etcd *x); /* of the last request; "" */

/* ---- a transaction ---- */

struct etcd_txn { /* zeroed: empty */
	json_t *compare, *success, *failure;
};
void etcd_txn_fini(struct etcd_txn *t);
/* The key was last changed at this revision; 0: there is no such key. */
void etcd_compare_revision(struct etcd_txn *t, const char *key, int64_t revision);
void etcd_compare_exists(struct etcd_txn *t, const char *key);
/* No key from `from` up to `before`, which is not included. */
void etcd_compare_none(struct etcd_txn *t, const char *from, const char *before);
void etcd_put(struct etcd_txn *t, const char *key, const char *value);
void etcd_delete(struct etcd_txn *t, const char *key);
void etcd_delete_below(struct etcd_txn *t, const char *prefix);
/* Results have the index of their operation in its list. */
void etcd_get(struct etcd_txn *t, const char *key);
void etcd_get_below(struct etcd_txn *t, const char *prefix, int without_values);
void etcd_get_else(struct etcd_txn *t, const char *key); /* if a comparison failed */

struct etcd_answer { /* valid during done() */
	int succeeded;
	int64_t revision;
	const json_t *responses;
};
/* e: NULL, or ERR_SYS. */
typedef void etcd_done(void *user, const struct etcd_answer *a, const struct err *e);
/* Called back from the loop. The transaction is empty afterwards. */
void etcd_send(struct etcd *x, struct etcd_txn *take_t, etcd_done *done, void *user);

struct etcd_kv {
	char *key, *value; /* texts without NUL */
	int64_t revision;
};
struct etcd_list {
	struct etcd_kv *v;
	unsigned n;
};
/* -1: the response is not a list of keys. */
must_check int etcd_list_read(struct etcd_list *out, const struct etcd_answer *a, unsigned index);
void etcd_list_fini(struct etcd_list *l);
