/* message.h - one message of the Jupyter protocol (5.3): its frames, its signature, its JSON.
 * Owns: what it parsed or built; frames are borrowed for the call.
 *
 * [identities ...] "<IDS|MSG>" signature header parent_header metadata content [buffers ...]
 *
 * The bytes of the four parts are signed by HMAC-SHA256 with the key of the connection file.
 * Messages without a valid signature are ignored. The code of a cell runs in the kernel and can
 * read the key, so messages are trusted only for their own context. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

enum {
	JUPYTER_MSG_FRAMES = 64, /* maximum of frames of one message */
	JUPYTER_MSG_IDENTITIES = 8,
	JUPYTER_MSG_PARTS = 4,      /* header, parent, metadata, content */
	JUPYTER_MSG_SIGNATURE = 64, /* characters */
	JUPYTER_MSG_ID = 128,       /* bytes of an id, and of a type */
	JUPYTER_MSG_KEY = 64,       /* characters of a key: 32 random bytes */
};
#define JUPYTER_MSG_DELIMITER "<IDS|MSG>"

struct msg_frame {
	const char *p;
	size_t n;
};

struct jupyter_msg {
	json_t *header, *parent, *content; /* objects */
	const char *type, *id;
	const char *parent_id; /* "": it has none */
};

/* ERR_DENIED: the signature is invalid. ERR_INVALID: it is valid, but the message is not. */
must_check int jupyter_msg_parse(struct jupyter_msg *out, const struct msg_frame *frames,
				 unsigned n, const char *key, struct err *e);
void jupyter_msg_fini(struct jupyter_msg *m);

/* Fixes almost valid JSON of kernels: NaN becomes null, invalid UTF-8 and unpaired surrogates
 * become U+FFFD, huge integers become reals. NULL: not JSON. */
json_t *jupyter_msg_json(const char *text, size_t n);

struct jupyter_out {
	char signature[JUPYTER_MSG_SIGNATURE + 1];
	struct buf part[JUPYTER_MSG_PARTS];
};
/* session and id of the driver; parent: NULL or the header that this answers. */
void jupyter_out_write(struct jupyter_out *out, const char *key, const char *type,
		       const char *session, const char *id, const json_t *parent,
		       json_t *take_content);
void jupyter_out_fini(struct jupyter_out *l);

/* Lower-case hex, with a NUL. */
void jupyter_msg_sign(char out[JUPYTER_MSG_SIGNATURE + 1], const char *key,
		      const struct msg_frame parts[JUPYTER_MSG_PARTS]);
