/* idempotency.h - the stored answer to a request that a client may repeat (Idempotency-Key).
 *
 *   begin -> IDEM_NEW    do it; then finish with the answer, or forget it when it failed in a way
 *                        that a second try may cure
 *            IDEM_BUSY   the first request is in progress, or its server ended: `subject` is what
 *                        it had made
 *            IDEM_DONE   the answer of the first request
 *
 * Kept for 24 h; history.h removes what is older. */
#pragma once
#include "base/sha256.h"
#include "store/store.h"
#include <stddef.h>

#define IDEM_KEEP_NS (24 * 3600 * INT64_C(1000000000))
enum { IDEM_KEY = 255 };

enum store_idem_state { IDEM_NEW, IDEM_BUSY, IDEM_DONE };

struct store_idem {
	enum store_idem_state state;
	int64_t created_ns;
	char subject[ID_MAX + 1]; /* the object that the request has created so far, or "" */
	int status;               /* IDEM_DONE: the answer */
	char type[STORE_NAME + 1];
	void *body; /* any bytes, followed by a NUL */
	size_t len;
};
void store_idem_fini(struct store_idem *i);

/* hash: over method, path and body. ERR_CONFLICT: the key was used for another request. */
must_check int store_idem_begin(struct store *s, const char *team, const char *key,
				const uint8_t hash[SHA256_BYTES], int64_t at_ns,
				struct store_idem *out, struct err *e);
/* In the same group as the row of the subject, so that a crash leaves both or none. */
must_check int store_idem_subject(struct store *s, const char *team, const char *key,
				  const char *subject, struct err *e);
must_check int store_idem_finish(struct store *s, const char *team, const char *key, int status,
				 const char *type, const void *body, size_t len, struct err *e);
must_check int store_idem_forget(struct store *s, const char *team, const char *key, struct err *e);
