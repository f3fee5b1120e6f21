/* object_store.h - the address of an S3-compatible bucket, and the URLs in it that a node may use. No I/O.
 * Owns: nothing. */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum { OBJECT_STORE_HOST = 256, OBJECT_STORE_BUCKET = 64 };

struct object_store {
	int is_tls;
	char authority[OBJECT_STORE_HOST +
		       8]; /* of the header Host: with the port, if it is not the usual one */
	char host[OBJECT_STORE_HOST];
	uint16_t port;
	char bucket
		[OBJECT_STORE_BUCKET]; /* first part of the path; "": the host names the bucket */
};

/* http(s)://HOST[:PORT][/BUCKET], without user, query and further path. ERR_INVALID with the reason. */
must_check int object_store_parse(struct object_store *out, const char *url, struct err *e);
/* The path and query of a URL of an object in this bucket; NULL: it is not one, and is not used. */
const char *object_store_target(const struct object_store *s, const char *url);
