/* http_message.h - one forwarded HTTP message: parsed strictly, serialised again.
 * Owns: a copy of its head, cut into strings.
 *
 *   head bytes -> llhttp (strict) -> struct message -> message_write()   our own words
 *   body bytes -> llhttp          -> message_body()                      framed again
 *
 * No byte of a head is copied: parsers that disagree about the end of a message all read the new
 * serialisation. One message per connection; bytes after it are ignored. */
#pragma once
#include "base/buf.h"
#include "egress/net_rule.h"

#include <llhttp.h>
#include <stddef.h>
#include <stdint.h>

struct evbuffer;

enum { MESSAGE_HEAD = 32 << 10, MESSAGE_HEADERS = 100 };

struct message_header {
	const char *name, *value; /* name in lower case; value trimmed */
	int drop;                 /* hop-by-hop */
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
	int continues; /* a request that waits for a 100 answer */
	int no_body;   /* a response to HEAD: set before message_head() */
	int origin;    /* a request to a host that was known before: "GET /path" */
	int tls;       /* the same: its default port is 443 */
	int head_done, done;
	enum message_body framing;
	uint64_t length;
	char host[RULE_HOST]; /* where a request goes */
	uint16_t port;
	const char *path; /* its path; not for CONNECT */
	/* set while a body is read */
	struct evbuffer *out;
	int chunk_out; /* write chunks */
	const char *spans[MESSAGE_HEADERS * 2];
};

/* The length of a complete head with its empty line; 0: incomplete. */
size_t message_head_end(const char *bytes, size_t n);
/* 0, or the error status; *why has the reason. */
must_check int message_request(struct message *m, const char *head, size_t n, const char **why);
/* The same for a request that does not name its host in the target, "GET /path": the connection is to
 * host:port. */
must_check int message_origin_request(struct message *m, const char *host, uint16_t port, int tls,
				      const char *head, size_t n, const char **why);
must_check int message_response(struct message *m, const char *head, size_t n, const char **why);
/* Writes the head, with the empty line. */
void message_write_request(const struct message *m, struct evbuffer *out);
/* old_reader: it uses HTTP/1.0 without chunks. */
void message_write_response(struct message *m, struct evbuffer *out, int old_reader);
/* Parses up to n bytes of body and writes it framed to out. Returns the parsed bytes; -1: invalid.
 * Stops at the end of the message: m->done. */
must_check long message_body(struct message *m, const char *bytes, size_t n, struct evbuffer *out,
			     const char **why);
/* The sender has closed. -1: the message is incomplete. */
must_check int message_end(struct message *m);
void message_fini(struct message *m); /* fine on a zeroed one */
