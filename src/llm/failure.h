/* failure.h - classification of a failed request to a model: category, whether and when to retry.
 * Owns: nothing. Pure, except that a date is compared with the clock. */
#pragma once
#include "llm/reply.h"

struct ask_headers {      /* headers of an answer that matter for retries */
	int should_retry; /* -1: not said */
	int64_t after_ms; /* -1: not said */
	char request_id[80];
};
void ask_header(struct ask_headers *h, const char *line, size_t n); /* one header line */
int ask_retriable(int status, const struct reply_error *error, const struct ask_headers *h);

struct failure {
	const char *
		category; /* auth invalid rate overload network timeout broken too_large unavailable */
	int status, again;
	int64_t after_ms;
	struct err err;
};

/* who: the name of the provider, a prefix of the message. */
__attribute__((format(printf, 5, 6))) void failure_set(struct failure *f, const char *who,
						       const char *category, int again,
						       const char *fmt, ...);
/* The provider answered with an error. */
void failure_told(struct failure *f, const char *who, int status, const struct reply_error *error,
		  const struct ask_headers *h);
void failure_curl(struct failure *f, const char *who, int rc); /* a CURLcode */
