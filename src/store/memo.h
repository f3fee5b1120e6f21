/* memo.h - answers of hermetic runs, by team and a hash of all inputs. Bounded in bytes for each team, and in age. */
#pragma once
#include "base/sha256.h"
#include "store/store.h"

#define MEMO_KEEP_NS (7 * 24 * 3600 * INT64_C(1000000000))
enum { MEMO_ANSWER = 1 << 20, MEMO_TEAM = 64 << 20 }; /* bytes: of one, of all of a team */

struct store_memo {
	char run[ID_MAX + 1]; /* whose answer it is */
	uint64_t receipt;     /* of that run */
	int64_t created_ns;
	char *answer; /* JSON */
};
void store_memo_fini(struct store_memo *m);

/* ERR_NOT_FOUND: none, or it is too old, or the end of its run was never written (its server was killed): such a row is
 * removed. Counts as a use at now_ns. */
must_check int store_memo_get(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
			      int64_t now_ns, struct store_memo *out, struct err *e);
/* Replaces an older one. Removes what is too old, and what was unused for the longest if the team has too much. ERR_LIMIT:
 * the answer is too large. */
must_check int store_memo_put(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
			      const struct store_memo *m, struct err *e);
