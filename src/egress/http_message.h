/* http_message.h - one HTTP message on its way through us: read strictly, written anew.
 * Owns: a copy of its head, cut into strings.
 *
 *   head bytes -> llhttp (strict) -> struct message -> message_write()   our own words
 *   body bytes -> llhttp          -> message_body()                      framed again
 *
 * Nothing of a head is copied as it stood: two readers that disagree about where a message ends
 * would both read what we wrote. One message per connection; what follows it is not looked at. */
#pragma once
#include "base/buf.h"
#include "egress/allow_rule.h"

#include <llhttp.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;

enum { MESSAGE_HEAD = 32 << 10, MESSAGE_HEADERS = 100 };

struct message_header {
	const char *name, *value; /* name in lower case; value without spaces around it */
	int drop;                 /* between two neighbours only */
};

enum message_body { MESSAGE_EMPTY, MESSAGE_LENGTH, MESSAGE_CHUNKED, MESSAGE_TO_THE_END };

struct message {
	llhttp_t parser;
	char *head;
	size_t head_len;
	struct message_header headers[MESSAGE_HEADERS];
	unsigned nheaders;
	const char *method, *target; /* of a request */
	int status;                  /* of a response */
	int http10;
	int connect;   /* CONNECT host:port */
	int continues; /* a request that waits for our 100 */
	int no_body;   /* a response to HEAD: set before message_head() */
	int head_done, done;
	enum message_body framing;
	uint64_t length;
	char host[RULE_HOST]; /* where a request goes */
	uint16_t port;
	const char *path; /* what it asks for there; not of CONNECT */
	/* set while a body is read */
	struct evbuffer *out;
	int chunk_out; /* write chunks */
	const char *spans[MESSAGE_HEADERS * 2];
};

/* Bytes of a whole head, its empty line included; 0: not there yet. */
size_t message_head_end(const char *bytes, size_t n);
/* 0, or the status to refuse it with; *why says what is wrong with it. */
must_check int message_request(struct message *m, const char *head, size_t n, const char **why);
must_check int message_response(struct message *m, const char *head, size_t n, const char **why);
/* The head as we say it, with the empty line. */
void message_write_request(const struct message *m, struct evbuffer *out);
/* old_reader: it speaks HTTP/1.0 and knows no chunks. */
void message_write_response(struct message *m, struct evbuffer *out, int old_reader);
/* Takes up to n bytes of body, writes it framed to out. How many were taken; -1: not a body. Stops at
 * the end of the message: m->done. */
must_check long message_body(struct message *m, const char *bytes, size_t n, struct evbuffer *out,
			     const char **why);
/* The sender has closed. -1: in the middle of it. */
must_check int message_end(struct message *m);
void message_fini(struct message *m); /* fine on a zeroed one */
