/* reply.c - sends a reply in one piece and one write, or as a stream. */
#include "http/conn.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	HEAD_ROOM = 640 + 256,
	TYPE_MAX = 128,
	DIRECT = 16 << 10, /* from this size on a separate write costs less than the copy */
};

static const struct {
	int status;
	const char *reason, *code, *message; /* the last two: of errors of this layer itself */
} statuses[] = {
	{ 101, "Switching Protocols", NULL, NULL },
	{ 200, "OK", NULL, NULL },
	{ 201, "Created", NULL, NULL },
	{ 202, "Accepted", NULL, NULL },
	{ 204, "No Content", NULL, NULL },
	{ 206, "Partial Content", NULL, NULL },
	{ 301, "Moved Permanently", NULL, NULL },
	{ 302, "Found", NULL, NULL },
	{ 303, "See Other", NULL, NULL },
	{ 304, "Not Modified", NULL, NULL },
	{ 307, "Temporary Redirect", NULL, NULL },
	{ 308, "Permanent Redirect", NULL, NULL },
	{ 400, "Bad Request", "bad_request", "This is not a request that can be read safely." },
	{ 401, "Unauthorized", NULL, NULL },
	{ 402, "Payment Required", NULL, NULL },
	{ 403, "Forbidden", NULL, NULL },
	{ 404, "Not Found", NULL, NULL },
	{ 405, "Method Not Allowed", NULL, NULL },
	{ 406, "Not Acceptable", NULL, NULL },
	{ 408, "Request Timeout", "request_timeout", "The request did not arrive in time." },
	{ 409, "Conflict", NULL, NULL },
	{ 410, "Gone", NULL, NULL },
	{ 411, "Length Required", NULL, NULL },
	{ 412, "Precondition Failed", NULL, NULL },
	{ 413, "Content Too Large", "body_too_large", "The body is too large." },
	{ 414, "URI Too Long", "target_too_long", "The target is too long." },
	{ 415, "Unsupported Media Type", NULL, NULL },
	{ 416, "Range Not Satisfiable", NULL, NULL },
	{ 417, "Expectation Failed", "expectation_failed", "The expectation cannot be met." },
	{ 421, "Misdirected Request", NULL, NULL },
	{ 422, "Unprocessable Content", NULL, NULL },
	{ 426, "Upgrade Required", NULL, NULL },
	{ 429, "Too Many Requests", NULL, NULL },
	{ 431, "Request Header Fields Too Large", "head_too_large", "The head is too large." },
	{ 500, "Internal Server Error", NULL, NULL },
	{ 501, "Not Implemented", "not_implemented", "The request needs what is not there." },
	{ 502, "Bad Gateway", NULL, NULL },
	{ 503, "Service Unavailable", "overloaded", "There is no room for this connection." },
	{ 504, "Gateway Timeout", NULL, NULL },
	{ 505, "HTTP Version Not Supported", "http_version",
	  "This version of HTTP is not spoken." },
	{ 507, "Insufficient Storage", NULL, NULL },
	{ 511, "Network Authentication Required", NULL, NULL },
};

static unsigned row_of(int status)
{
	unsigned n = sizeof(statuses) / sizeof(statuses[0]);

	for (unsigned i = 0; i < n; i++)
		if (statuses[i].status == status)
			return i;
	return n;
}

static const char *http_reason(int status)
{
	unsigned row = row_of(status);

	return row < sizeof(statuses) / sizeof(statuses[0]) ? statuses[row].reason : "Unknown";
}

/* ---- the head of a reply ---- */

static char *reply_put(char *p, const char *s)
{
	size_t n = strlen(s);

	memcpy(p, s, n);
	return p + n;
}

static char *put_number(char *p, uint64_t v)
{
	char digits[20];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	while (n)
		*p++ = digits[--n];
	return p;
}

/* Without the headers of http_set() and without the empty line: the caller adds both. */
static size_t make_head(struct http_conn *c, char out[HEAD_ROOM], int status, const char *type,
			uint64_t length)
{
	struct http_req *r = &c->req;
	char *p = reply_put(out, "HTTP/1.1 ");

	p = put_number(p, (uint64_t)status);
	*p++ = ' ';
	p = reply_put(p, http_reason(status));
	p = reply_put(p, "\r\nDate: ");
	p = reply_put(p, server_date(r->server));
	if (type) {
		size_t n = strnlen(type, TYPE_MAX);

		p = reply_put(p, "\r\nContent-Type: ");
		memcpy(p, type, n);
		p += n;
	}
	if (c->chunked) {
		p = reply_put(p, "\r\nTransfer-Encoding: chunked");
	} else if (length != UINT64_MAX && status >= 200 && status != 204 && status != 304) {
		p = reply_put(p, "\r\nContent-Length: ");
		p = put_number(p, length);
	}
	if (status == 426)
		p = reply_put(p, "\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13");
	if (status == 101)
		p = reply_put(p, "\r\nConnection: Upgrade");
	else if (!r->keep_alive)
		p = reply_put(p, "\r\nConnection: close");
	else if (c->http10)
		p = reply_put(p, "\r\nConnection: keep-alive");
	p = reply_put(p, "\r\n");
	p = reply_put(p, r->always);
	return (size_t)(p - out);
}

/* A body that was not read would be parsed as the next request. A small one is read and dropped;
 * else this is the last reply, and its head must contain "Connection: close". */
static void settle_body(struct http_conn *c)
{
	struct http_req *r = &c->req;

	if (!c->body_done &&
	    (r->length == UINT64_MAX || r->length - c->body_got > BODY_DRAIN || c->expect ||
	     c->splice)) /* the parser has not seen all bytes that were spliced */
		r->keep_alive = 0;
	if (r->server->draining)
		r->keep_alive = 0;
}

static void begin_reply(struct http_conn *c, int status)
{
	settle_body(c);
	c->req.status = status;
	if (status == 204 || status == 304 || status < 200)
		c->bodyless = 1;
}

static void reply_done(struct http_conn *c)
{
	splice_close(c);
	conn_set_reply(c, REPLY_DONE);
	c->discard = !c->body_done && c->req.keep_alive;
	c->paused = 0;
	c->stamp = 0;
	conn_schedule(c);
}

static void grow_set(struct http_conn *c, size_t n)
{
	size_t room = c->set_room ? c->set_room : 256;
	char *more;

	if (c->set_len + n <= c->set_room)
		return;
	while (room < c->set_len + n)
		room *= 2;
	more = arena_alloc(&c->arena, room);
	if (c->set_len)
		memcpy(more, c->set, c->set_len);
	c->set = more;
	c->set_room = room;
}

void http_set(struct http_req *r, const char *name, const char *fmt, ...)
{
	struct http_conn *c = r->conn;
	size_t name_len = strlen(name);
	va_list ap, again;
	int n;

	if (c->reply != REPLY_NONE)
		return;
	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	grow_set(c, name_len + 2 + (size_t)n + 3);
	memcpy(c->set + c->set_len, name, name_len);
	memcpy(c->set + c->set_len + name_len, ": ", 2);
	c->set_len += name_len + 2;
	vsnprintf(c->set + c->set_len, (size_t)n + 1, fmt, again);
	va_end(again);
	/* A line break in a value must not start a header of its own. */
	for (char *p = c->set + c->set_len; p < c->set + c->set_len + n; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = ' ';
	c->set_len += (size_t)n;
	memcpy(c->set + c->set_len, "\r\n", 2);
	c->set_len += 2;
}

void http_reply(struct http_req *r, int status, const char *type, const void *body, size_t n)
{
	struct http_conn *c = r->conn;
	char head[HEAD_ROOM];
	struct iovec out[4];

	if (c->reply != REPLY_NONE)
		return;
	begin_reply(c, status);
	out[0] = (struct iovec){ head, make_head(c, head, status, type, n) };
	out[1] = (struct iovec){ c->set, c->set_len };
	out[2] = (struct iovec){ "\r\n", 2 };
	out[3] = (struct iovec){ (void *)body, n };
	conn_send(c, out, c->bodyless || n == 0 ? 3 : 4);
	reply_done(c);
}

void reply_switch(struct http_conn *c, enum conn_reply next)
{
	char head[HEAD_ROOM];
	struct iovec out[3];

	begin_reply(c, 101);
	out[0] = (struct iovec){ head, make_head(c, head, 101, NULL, 0) };
	out[1] = (struct iovec){ c->set, c->set_len };
	out[2] = (struct iovec){ "\r\n", 2 };
	conn_put(c, out, 3);
	conn_set_reply(c, next);
}

/* ---- streams ---- */

void http_stream(struct http_req *r, int status, const char *type, uint64_t length)
{
	struct http_conn *c = r->conn;
	char head[HEAD_ROOM];
	struct iovec out[3];

	if (c->reply != REPLY_NONE)
		return;
	/* HTTP/1.0 has no chunks: there the end of the connection is the end of the reply. */
	if (length == UINT64_MAX && c->http10)
		r->keep_alive = 0;
	begin_reply(c, status);
	c->chunked = length == UINT64_MAX && !c->http10 && status != 204 && status != 304;
	c->reply_left = length;
	out[0] = (struct iovec){ head, make_head(c, head, status, type, length) };
	out[1] = (struct iovec){ c->set, c->set_len };
	out[2] = (struct iovec){ "\r\n", 2 };
	conn_put(c, out, 3);
	conn_set_reply(c, REPLY_STREAM);
}

static void put_piece(struct http_conn *c, const void *bytes, size_t n)
{
	char size[24];
	struct iovec out[3] = { { size, 0 }, { (void *)bytes, n }, { "\r\n", 2 } };

	if (c->chunked)
		out[0].iov_len = (size_t)snprintf(size, sizeof(size), "%zx\r\n", n);
	if (n >= DIRECT)
		conn_send(c, c->chunked ? out : out + 1, c->chunked ? 3 : 1);
	else
		conn_put(c, c->chunked ? out : out + 1, c->chunked ? 3 : 1);
}

int http_write(struct http_req *r, const void *bytes, size_t n)
{
	struct http_conn *c = r->conn;

	if (c->reply != REPLY_STREAM || c->cut || c->bodyless)
		return 0;
	if (!c->chunked && c->reply_left != UINT64_MAX) {
		n = n < c->reply_left ? n : (size_t)c->reply_left;
		c->reply_left -= n;
	}
	if (n > 0) /* an empty chunk would be the last one */
		put_piece(c, bytes, n);
	if (conn_waiting(c) > r->server->limits.out_high)
		conn_flush(c);
	/* Stays set until on_drain() has been called: the writer waits for that. */
	c->full |= conn_waiting(c) > r->server->limits.out_high;
	return c->full;
}

size_t http_waiting(const struct http_req *r)
{
	return conn_waiting(r->conn) + (size_t)splice_is_stuck(r->conn);
}

void http_end(struct http_req *r)
{
	struct http_conn *c = r->conn;

	if (c->reply != REPLY_STREAM)
		return;
	if (!c->bodyless && !c->chunked && c->reply_left != UINT64_MAX && c->reply_left > 0) {
		http_abort(r); /* fewer bytes were written than announced */
		return;
	}
	if (c->chunked && !c->bodyless)
		conn_put(c, &(struct iovec){ "0\r\n\r\n", 5 }, 1);
	reply_done(c);
}

int http_peer_ended(const struct http_req *r)
{
	char next;

	/* The loop may not have processed it yet. */
	return r->conn->eof || r->conn->cut ||
	       !recv(r->conn->fd, &next, 1, MSG_PEEK | MSG_DONTWAIT);
}

void http_abort(struct http_req *r)
{
	struct http_conn *c = r->conn;

	/* Without the last chunk the client reports an error of its own; a reset would also
	 * discard what it has not read yet. Where only the end of the connection ends the reply,
	 * only a reset shows that the reply is not complete. */
	if (c->reply != REPLY_DONE)
		conn_cut(c, !(c->reply == REPLY_STREAM && c->chunked));
}

void http_unset(struct http_req *r)
{
	r->conn->set_len = 0;
	r->always = "";
}

void http_switch(struct http_req *r)
{
	struct http_conn *c = r->conn;

	if ((!r->upgrade && !r->tunnel) || c->reply != REPLY_NONE)
		return;
	r->keep_alive = 0;
	reply_switch(c, REPLY_STREAM);
	c->reply_left = UINT64_MAX;
	c->bodyless = c->chunked = 0;
	c->raw = 1;
	c->how = HTTP_BODY_STREAM;
	c->body_done = c->end_told = c->paused = 0;
	c->stamp = 0;
}

/* ---- the layer's own answers ---- */

void reply_error(struct http_conn *c, int status, const char *why)
{
	struct http_req *r = &c->req;
	unsigned row = row_of(status);
	char body[512];
	int n;

	r->keep_alive = 0;
	c->discard = 0;
	if (c->reply == REPLY_STREAM)
		conn_cut(c, 1);
	if (c->reply != REPLY_NONE)
		return;
	if (c->state != CONN_BUSY)
		conn_set_state(c, CONN_BUSY);
	c->set_len = 0;
	n = snprintf(
		body, sizeof(body),
		"{\"error\":{\"code\":\"%s\",\"message\":\"%s\",\"why\":\"%.200s\",\"hints\":[],\"doc\":\"\"}}\n",
		statuses[row].code, statuses[row].message, why);
	http_reply(r, status, "application/json", body, (size_t)n);
}
