/* client.c - one connection, one request at a time. */
#include "http/client.h"
#include "http/response.h"
#include "http/client_conn.h"
#include "http/tls.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { CONNECT_MS = 10000, BODY_MAX = 64 << 20, PIECE = 64 << 10 };

struct http_client {
	struct client_conn_url url;
	struct client_conn client_conn;
	struct ssl_ctx_st *tls;
	struct http_client_options options;
	struct response answer; /* of the last call: contains its headers */
};

const char *http_answer_header(const struct http_answer *a, const char *lower_name)
{
	for (unsigned i = 0; i < a->nheaders; i++)
		if (strcmp(a->headers[i].name, lower_name) == 0)
			return a->headers[i].value;
	return NULL;
}

void http_answer_fini(struct http_answer *a)
{
	buf_fini(&a->body);
}

int http_client_new(const char *base, const struct http_client_options *o,
		    struct http_client **out_client, struct err *e)
{
	auto_free struct http_client *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	c->client_conn.fd = -1;
	if (o)
		c->options = *o;
	if (!c->options.connect_ms)
		c->options.connect_ms = CONNECT_MS;
	if (!c->options.body_max)
		c->options.body_max = BODY_MAX;
	if (client_conn_url_parse(base, &c->url, e) < 0)
		return -1;
	if (c->url.kind == CLIENT_CONN_TLS && !c->options.tls &&
	    tls_client(c->options.ca_file, &c->tls, e) < 0)
		return -1;
	*out_client = steal(&c);
	return 0;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	client_conn_close(&c->client_conn);
	tls_free(c->tls);
	response_fini(&c->answer);
	free(c);
}

/* ---- the question ---- */

/* The length of the body. UINT64_MAX: not known. */
static uint64_t body_length(const struct http_call *call)
{
	struct stat st;
	off_t at;

	if (call->more)
		return UINT64_MAX;
	if (!call->body_fd)
		return call->body_len;
	at = lseek(*call->body_fd, 0, SEEK_CUR);
	if (at < 0 || fstat(*call->body_fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < at)
		return UINT64_MAX;
	return (uint64_t)(st.st_size - at);
}

static int has_body(const struct http_call *call)
{
	return call->body_len || call->body_fd || call->more || strcmp(call->method, "POST") == 0 ||
	       strcmp(call->method, "PUT") == 0 || strcmp(call->method, "PATCH") == 0;
}

/* A header value from the caller must not contain a line break. */
static int is_line(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127)
			return 0;
	return 1;
}

static int make_head(const struct http_client *c, const struct http_call *call, uint64_t length,
		     struct buf *out, struct err *e)
{
	if (!is_line(call->target) || strchr(call->target, ' ') || call->target[0] != '/')
		return err_set(e, ERR_INVALID, "'%.80s' is not a valid request path", call->target);
	buf_printf(out, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", call->method, c->url.prefix,
		   call->target, c->url.header);
	for (unsigned i = 0; i < call->nheaders; i++) {
		const struct http_header *h = &call->headers[i];

		if (!is_line(h->name) || !is_line(h->value))
			return err_set(e, ERR_INVALID,
				       "header %.40s: a line break or control character", h->name);
		buf_printf(out, "%s: %s\r\n", h->name, h->value);
	}
	if (has_body(call) && length == UINT64_MAX)
		buf_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (has_body(call))
		buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)length);
	buf_puts(out, "\r\n");
	return 0;
}

static ssize_t next_piece(const struct http_call *call, char *out, size_t room, struct err *e)
{
	ssize_t n;

	if (call->more)
		return call->more(call->user, out, room, e);
	do
		n = read(*call->body_fd, out, room);
	while (n < 0 && errno == EINTR);
	return n < 0 ? err_sys(e, "read the body to send") : n;
}

/* 0: sent. -1: the source failed. -2: the peer stopped reading; it may have sent an answer with
 * the reason. */
static int send_pieces(struct http_client *c, const struct http_call *call, uint64_t length,
		       struct err *e)
{
	auto_free char *piece = malloc(PIECE + 16);
	uint64_t left = length;

	if (!piece)
		abort();
	for (;;) {
		size_t room = length != UINT64_MAX && left < PIECE ? (size_t)left : PIECE;
		ssize_t n = room ? next_piece(call, piece, room, e) : 0;
		char head[24];

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		left -= (uint64_t)n;
		snprintf(head, sizeof(head), "%zx\r\n", (size_t)n);
		if (length == UINT64_MAX &&
		    client_conn_write(&c->client_conn, head, strlen(head), e) < 0)
			return -2;
		memcpy(piece + n, "\r\n", 2);
		if (client_conn_write(&c->client_conn, piece,
				      (size_t)n + (length == UINT64_MAX ? 2 : 0), e) < 0)
			return -2;
	}
	if (length != UINT64_MAX)
		return left ? err_set(e, ERR_CONFLICT, "the file became shorter while it was sent")
			    : 0;
	return client_conn_write(&c->client_conn, "0\r\n\r\n", 5, e) < 0 ? -2 : 0;
}

static int send_question(struct http_client *c, const struct http_call *call, struct err *e)
{
	uint64_t length = body_length(call);
	auto_buf struct buf head = { 0 };

	if (make_head(c, call, length, &head, e) < 0)
		return -1;
	if (!call->body_fd && !call->more && call->body_len && call->body_len < PIECE)
		buf_add(&head, call->body, call->body_len); /* one write, one packet */
	if (client_conn_write(&c->client_conn, head.p, head.len, e) < 0)
		return -2;
	if (call->body_fd || call->more)
		return send_pieces(c, call, length, e);
	if (call->body_len >= PIECE &&
	    client_conn_write(&c->client_conn, call->body, call->body_len, e) < 0)
		return -2;
	return 0;
}

/* ---- the answer ---- */

static int no_answer(const struct http_client *c, struct err *e)
{
	return err_set(e, ERR_SYS, "%.120s: %.80s",
		       c->url.kind == CLIENT_CONN_UNIX ? c->url.host : c->url.header,
		       c->answer.why ? c->answer.why : "this is not HTTP");
}

/* 0, 1 (ended by the caller), -1; *received: at least one byte arrived. */
static int read_answer(struct http_client *c, int *received, struct err *e)
{
	struct response *a = &c->answer;
	auto_free char *bytes = malloc(PIECE);

	if (!bytes)
		abort();
	*received = 0;
	while (!a->done) {
		ssize_t n = client_conn_read(&c->client_conn, bytes, PIECE, e);

		if (n < 0)
			return -1;
		if (n == 0) {
			a->keep_alive = 0;
			return response_end(a) < 0 ? no_answer(c, e) : 0;
		}
		*received = 1;
		n = response_feed(a, bytes, (size_t)n);
		if (a->ended)
			return 1;
		if (n < 0)
			return no_answer(c, e);
	}
	return 0;
}

static int is_repeatable(const struct http_call *call)
{
	return !call->body_fd && !call->more && strcmp(call->method, "POST") != 0 &&
	       strcmp(call->method, "PATCH") != 0;
}

static int client_ask(struct http_client *c, const struct http_call *call, struct http_answer *out,
		      int *received, struct err *e)
{
	int sent, got;

	response_fini(&c->answer);
	response_init(&c->answer, out);
	c->answer.on_head = call->on_head;
	c->answer.on_body = call->on_body;
	c->answer.user = call->user;
	c->answer.body_max = c->options.body_max;
	c->answer.head_only = strcmp(call->method, "HEAD") == 0;
	*received = 0;
	sent = send_question(c, call, e);
	if (sent == -1)
		return -1;
	if (sent ==
	    -2) { /* the peer's answer before it closed is more useful than the write error */
		struct err read_error;

		got = read_answer(c, received, &read_error);
		c->answer.keep_alive = 0;
		return c->answer.head_done && got >= 0 ? got : -1;
	}
	return read_answer(c, received, e);
}

static int open_client_conn(struct http_client *c, struct err *e)
{
	if (client_conn_open(&c->client_conn, &c->url, c->options.tls ? c->options.tls : c->tls,
			     c->options.connect_ms, e) < 0)
		return -1;
	if (c->options.stall_ms)
		c->client_conn.stall_ms = (int)c->options.stall_ms;
	return 0;
}

int http_call(struct http_client *c, const struct http_call *call, struct http_answer *out,
	      struct err *e)
{
	int kept, received, got;

	memset(out, 0, sizeof(*out));
	if (client_conn_is_stale(&c->client_conn))
		client_conn_close(&c->client_conn);
	kept = c->client_conn.fd >= 0;
	if (!kept && open_client_conn(c, e) < 0)
		return -1;
	got = client_ask(c, call, out, &received, e);
	/* A kept connection may be closed by the server in the moment that the client uses it.
	 * No byte of an answer arrived, so the request can be repeated. */
	if (got < 0 && kept && !received && is_repeatable(call)) {
		client_conn_close(&c->client_conn);
		http_answer_fini(out);
		if (open_client_conn(c, e) < 0)
			return -1;
		got = client_ask(c, call, out, &received, e);
	}
	if (got != 0 || !c->answer.keep_alive)
		client_conn_close(&c->client_conn);
	if (got < 0)
		http_answer_fini(out);
	return got;
}
