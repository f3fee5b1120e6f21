/* message.h - one HTTP request or mail: its check, and its form between server and outbound process.
 * Owns: the limits. Everything of a message is borrowed. */
#pragma once
#include "outbound/target.h"
#include <jansson.h>

enum {
	OUTBOUND_HEADERS = 32,
	OUTBOUND_HEADER = 4096,            /* bytes of a header line */
	OUTBOUND_BODY = 4 << 20,           /* of a request or a mail */
	OUTBOUND_ANSWER = 4096,            /* bytes of the answer's body that the caller gets */
	OUTBOUND_RECIPIENTS = 16,          /* of a mail */
	OUTBOUND_TIMEOUT_MS = 10000,       /* of a message that sets none ... */
	OUTBOUND_TIMEOUT_MOST_MS = 120000, /* ... and at most */
};

struct outbound_message {
	const char *url;    /* http, https; of a mail: smtp, smtps with host and port only */
	const char *method; /* NULL: POST; not of a mail */
	const char *headers[OUTBOUND_HEADERS + 1]; /* "Name: value" each, NULL at the end */
	const char *body; /* UTF-8 without NUL; of a mail: its header lines, too. NULL: none */
	size_t body_len;
	uint32_t timeout_ms; /* of the whole request; 0: OUTBOUND_TIMEOUT_MS */
	/* The URL is one of the settings, so its host may have an internal address. The outbound
	 * process compares it with the settings: daemon/outbound_child.c has the list of them. */
	int allow_private;
	/* of a mail */
	const char *from; /* the address alone, without name and brackets */
	const char *to[OUTBOUND_RECIPIENTS + 1];
	const char *user, *password; /* NULL: without a login. TLS is required with one */
};

must_check int outbound_message_check(const struct outbound_message *m, struct err *e);
json_t *outbound_message_json(const struct outbound_message *m, int with_body);
/* The texts of *out are those of doc. */
must_check int outbound_message_read(struct outbound_message *out, const json_t *doc,
				     struct err *e);
