/* signed_url.h - URLs that permit one request to an object of an S3-compatible store until a time, without a
 * key: AWS Signature Version 4 in the query. A gateway makes them, nodes use them.
 * Owns: nothing. A pure function; equal to what botocore makes, byte for byte. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stdint.h>

enum { SIGNED_URL_MOST_S = 7 * 86400, SIGNED_URL_KEY = 1024 };

struct signed_url_account {
	const char *access_key, *secret_key;
	const char *region; /* "us-east-1" */
	const char *scheme; /* "https" */
	const char *host;   /* with its port, if it is not the usual one */
	const char *bucket; /* first part of the path; NULL: the host names the bucket */
};

struct signed_url_request {
	const char *method; /* GET, PUT, HEAD, DELETE, POST */
	const char *key;    /* of the object, UTF-8, without leading slash */
	const char *query
		[8]; /* further parameters, name and value in turn, sorted by name; NULL: no more */
	int64_t at_s;     /* now, since 1970 */
	unsigned valid_s; /* 1 to SIGNED_URL_MOST_S */
};

/* Appends the URL. ERR_INVALID: a value that cannot be signed, with its reason. */
must_check int signed_url(const struct signed_url_account *a, const struct signed_url_request *r,
			  struct buf *out, struct err *e);
