/* packages.h - which package set is in which layer, and how often it is used. */
#pragma once
#include "store/store.h"

enum { STORE_HASH = 64, STORE_RUNTIME = 63 };

struct store_set {
	char key[STORE_HASH + 1];
	char manager[STORE_WORD + 1];
	char runtime[STORE_RUNTIME + 1];
	char *packages; /* "numpy pandas==1.5" */
	char layer[STORE_HASH + 1];
	uint64_t bytes, files; /* of the layer */
	uint64_t install_ms;
	uint64_t uses;
	int64_t created_ns, used_ns;
};
void store_set_fini(struct store_set *s);
struct store_sets {
	struct store_set *v;
	unsigned n;
	int more;
};
void store_sets_fini(struct store_sets *l);

/* Replaces the set of that key; the count of uses is kept. */
must_check int store_set_put(struct store *s, const struct store_set *set, struct err *e);
must_check int store_set_get(struct store *s, const char *key, struct store_set *out,
			     struct err *e);
must_check int store_set_use(struct store *s, const char *key, int64_t now_ns, struct err *e);
/* The most used first. */
must_check int store_set_list(struct store *s, unsigned limit, struct store_sets *out,
			      struct err *e);
/* All sets that are in it. */
must_check int store_set_forget(struct store *s, const char *layer, struct err *e);
/* Bytes of all layers; a layer that several sets share counts once. */
must_check int store_set_bytes(struct store *s, uint64_t *out, struct err *e);
/* The layer that was unused for the longest time, after skipping this many. ERR_NOT_FOUND: no
 * more. */
must_check int store_set_oldest(struct store *s, unsigned skip, char out_layer[STORE_HASH + 1],
				struct err *e);
