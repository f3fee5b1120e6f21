/* parse.c - from bytes to a request.
 * llhttp finds the parts; what it lets pass although two readers could disagree about it (folded
 * lines, a bare LF after the request line, an empty header name, RTSP) is refused here. The head is
 * collected in one piece in the request's memory, so that every part of it is a string in place. */
#include "http/conn.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	EMPTY_LINES = 4,
	HEAD_FIRST = 1024,
	HEAD_PIECE = 4096,
	SPANS_FIRST = 16,
	BODY_PIECE = 64 << 10
};

static struct http_conn *conn_of(llhttp_t *p)
{
	return p->data;
}

/* ---- Callbacks of llhttp ---- */

static int saw_target(llhttp_t *p, const char *at, size_t n)
{
	struct http_conn *c = conn_of(p);
	uint32_t begin = (uint32_t)(at - c->head);

	if (!c->target_end)
		c->target = begin;
	c->target_end = begin + (uint32_t)n;
	return 0;
}

static int new_span(struct http_conn *c)
{
	if (c->nspans == c->req.server->limits.headers)
		return HPE_USER;
	if (c->nspans == c->spans_room) {
		unsigned room = c->spans_room ? c->spans_room * 2 : SPANS_FIRST;
		struct span *more = arena_alloc(&c->arena, room * sizeof(*more));

		if (c->nspans)
			memcpy(more, c->spans, c->nspans * sizeof(*more));
		c->spans = more;
		c->spans_room = room;
	}
	memset(&c->spans[c->nspans++], 0, sizeof(*c->spans));
	return 0;
}

static int saw_name(llhttp_t *p, const char *at, size_t n)
{
	struct http_conn *c = conn_of(p);
	uint32_t begin = (uint32_t)(at - c->head);
	struct span *s;

	if (c->head_done) /* a trailer: ignored, no handler reads trailers */
		return 0;
	/* A header is complete when the value of the next one starts. */
	if ((c->nspans == 0 || c->spans[c->nspans - 1].value) && new_span(c) != 0)
		return HPE_USER;
	s = &c->spans[c->nspans - 1];
	if (!s->name_end)
		s->name = begin;
	s->name_end = begin + (uint32_t)n;
	return 0;
}

static int saw_value(llhttp_t *p, const char *at, size_t n)
{
	struct http_conn *c = conn_of(p);
	uint32_t begin = (uint32_t)(at - c->head);
	struct span *s;

	if (c->head_done)
		return 0;
	s = &c->spans[c->nspans - 1];
	if (n == 0) /* llhttp has advanced to the next line; the NUL must end this one */
		begin = s->value ? s->value_end : s->name_end + 1;
	if (!s->value)
		s->value = begin;
	s->value_end = begin + (uint32_t)n;
	return 0;
}

static int saw_head_end(llhttp_t *p)
{
	struct http_conn *c = conn_of(p);

	c->head_done = 1;
	c->http10 = p->http_minor == 0;
	c->req.keep_alive = llhttp_should_keep_alive(p);
	c->req.length = p->flags & F_CHUNKED ? UINT64_MAX : p->content_length;
	/* The handler accepts an upgrade or not. Until then this is an ordinary HTTP request. */
	p->upgrade = 0;
	return 0;
}

static int saw_chunk(llhttp_t *p)
{
	struct http_conn *c = conn_of(p);

	if (!c->discard && p->content_length > c->body_max - c->body_got)
		c->body_error = 413;
	return c->body_error ? HPE_USER : 0;
}

static int saw_body(llhttp_t *p, const char *at, size_t n)
{
	struct http_conn *c = conn_of(p);
	struct http_req *r = &c->req;

	c->body_got += n;
	c->overhead = 0;
	if (c->discard || c->cut)
		return 0;
	if (c->body_got > c->body_max) {
		c->body_error = 413;
		return HPE_USER;
	}
	if (c->splice)
		splice_take(c, at, n);
	else if (c->how == HTTP_BODY_WHOLE)
		buf_add(&r->body, at, n);
	else if (r->on_body)
		r->on_body(r, at, n);
	return c->paused ? HPE_PAUSED : 0;
}

static int saw_end(llhttp_t *p)
{
	conn_of(p)->body_done = 1;
	return HPE_PAUSED; /* the following bytes are another request: not yet */
}

static const llhttp_settings_t settings = {
	.on_url = saw_target,
	.on_header_field = saw_name,
	.on_header_value = saw_value,
	.on_headers_complete = saw_head_end,
	.on_chunk_header = saw_chunk,
	.on_body = saw_body,
	.on_message_complete = saw_end,
};

/* ---- the head ---- */

void parse_begin(struct http_conn *c)
{
	struct http_req *r = &c->req;

	/* Clears all but connection, server, peer and the header lines of every reply. */
	memset(&r->method, 0,
	       offsetof(struct http_req, unix_peer) - offsetof(struct http_req, method));
	memset(&r->began_ms, 0, sizeof(*r) - offsetof(struct http_req, began_ms));
	r->began_ms = loop_now_ms();
	r->always = r->server->always ? r->server->always : "";
	llhttp_init(&c->parser, HTTP_REQUEST, &settings);
	c->parser.data = c;
	c->head = NULL;
	c->head_len = c->head_room = c->target = c->target_end = 0;
	c->nspans = c->spans_room = 0;
	c->set = NULL;
	c->set_len = c->set_room = 0;
	c->body_max = UINT64_MAX;
	c->body_got = c->overhead = c->reply_left = c->stamp = 0;
	c->body_tail = c->body_rate = c->empty_lines = 0;
	c->rate_at = c->rate_got = 0;
	c->body_error = 0;
	if (c->reply != REPLY_NONE)
		conn_set_reply(c, REPLY_NONE);
	c->how = HTTP_BODY_NONE;
	c->handled = c->head_done = c->body_done = c->end_told = c->paused = c->stopped =
		c->discard = 0;
	c->expect = c->full = c->chunked = c->bodyless = c->http10 = c->eof_told = c->raw = 0;
}

static int parse_refuse(struct http_conn *c, int status, const char *why)
{
	c->req.server->bad_requests++;
	reply_error(c, status, why);
	return 1;
}

static const char *parse_reason(const struct http_conn *c)
{
	const char *why = llhttp_get_error_reason(&c->parser);

	return why && *why ? why : "the request cannot be parsed";
}

static int refuse_head(struct http_conn *c, llhttp_errno_t err)
{
	if (err == HPE_USER)
		return parse_refuse(c, 431, "too many headers");
	if (err == HPE_PAUSED_H2_UPGRADE ||
	    (err == HPE_INVALID_VERSION && (c->parser.http_major != 1 || c->parser.http_minor > 1)))
		return parse_refuse(c, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
	return parse_refuse(c, 400, parse_reason(c));
}

static void head_grow(struct http_conn *c, size_t n)
{
	uint32_t room = c->head_room ? c->head_room : HEAD_FIRST;
	char *more;

	if (c->head_len + n < c->head_room)
		return;
	while (room <= c->head_len + n)
		room *= 2;
	more = arena_alloc(&c->arena, room);
	if (c->head_len)
		memcpy(more, c->head, c->head_len);
	c->head = more;
	c->head_room = room;
}

/* Lines end in CRLF, and no header is folded over two lines: the only form on which all HTTP
 * implementations agree. */
static int lines_are_plain(const char *head, size_t len)
{
	const char *end = head + len;

	for (const char *p = head; (p = memchr(p, '\n', (size_t)(end - p))); p++) {
		if (p == head || p[-1] != '\r')
			return 0;
		if (p + 1 < end && (p[1] == ' ' || p[1] == '\t'))
			return 0;
	}
	return 1;
}

/* "GET /path HTTP/1.1": one space each, and no other protocol that llhttp also knows. */
static int request_line_is_plain(const struct http_conn *c, const char *method)
{
	size_t n = strlen(method);

	if (c->head_len < n + 2 || memcmp(c->head, method, n) != 0 || c->head[n] != ' ' ||
	    c->target != n + 1)
		return 0;
	for (const char *p = c->head + c->target; p < c->head + c->target_end; p++)
		if (*p <= ' ' || *p > '~' || *p == '#') /* a fragment is never sent */
			return 0;
	return memcmp(c->head + c->target_end, " HTTP/1.", 8) == 0;
}

static char *parse_trimmed(char *head, uint32_t begin, uint32_t end)
{
	while (end > begin && (head[end - 1] == ' ' || head[end - 1] == '\t'))
		end--;
	while (begin < end && (head[begin] == ' ' || head[begin] == '\t'))
		begin++;
	head[end] = 0;
	return head + begin;
}

static void make_headers(struct http_conn *c)
{
	struct http_header *h = arena_alloc(&c->arena, (c->nspans + 1) * sizeof(*h));

	for (unsigned i = 0; i < c->nspans; i++) {
		const struct span *s = &c->spans[i];

		for (char *p = c->head + s->name; p < c->head + s->name_end; p++)
			if (*p >= 'A' && *p <= 'Z')
				*p |= 0x20;
		c->head[s->name_end] = 0;
		h[i].name = c->head + s->name;
		h[i].value = parse_trimmed(c->head, s->value, s->value_end);
	}
	c->req.headers = h;
	c->req.nheaders = c->nspans;
}

/* "http://host/path" must name the same host as the header Host: the checks use the latter. */
static const char *strip_authority(struct http_conn *c, char *target, const char *host)
{
	size_t scheme = strncasecmp(target, "http://", 7) == 0    ? 7
			: strncasecmp(target, "https://", 8) == 0 ? 8
								  : 0;
	size_t n = scheme ? strcspn(target + scheme, "/?") : 0;
	char *path;

	if (!scheme || !host || strlen(host) != n || strncasecmp(target + scheme, host, n) != 0)
		return NULL;
	path = target + scheme + n;
	if (*path == '/')
		return path;
	path = http_alloc(&c->req, strlen(path) + 2);
	path[0] = '/';
	strcpy(path + 1, target + scheme + n);
	return path;
}

static int make_target(struct http_conn *c, const char *host)
{
	struct http_req *r = &c->req;
	char *target = c->head + c->target, *mark;
	const char *path = target;

	c->head[c->target_end] = 0;
	r->query = "";
	r->target = target;
	if (*target == '*' && target[1] == 0 && strcmp(r->method, "OPTIONS") == 0) {
		r->path = "/";
		return 0;
	}
	if (*target != '/')
		path = strip_authority(c, target, host);
	if (!path)
		return -1;
	mark = strchr(path, '?');
	if (mark) {
		r->target = http_strdup(r, target, strlen(target));
		*mark = 0;
		r->query = mark + 1;
	}
	r->path = path;
	return 0;
}

/* The headers that decide how the rest of the connection is read. Each at most once. */
struct vital {
	const char *host, *expect, *encoding;
	unsigned hosts, encodings;
	const char *twice; /* one of `single` that occurs more than once; NULL: none */
};

/* A proxy could check one of the two and the server use the other one. */
static const char *const single[] = {
	/* clang-format off */
	"authorization",    "content-encoding", "content-type",     "cookie",
	"e2b-sandbox-id",   "e2b-sandbox-port", "idempotency-key",  "origin",
	"x-access-token",   "x-api-key",        "e2b-traffic-access-token",
	/* clang-format on */
};

static void find_twice(const struct http_header *h, unsigned *seen, struct vital *v)
{
	for (unsigned i = 0; i < sizeof(single) / sizeof(single[0]); i++) {
		if (h->name[0] != single[i][0] || strcmp(h->name, single[i]) != 0)
			continue;
		if (*seen & 1u << i)
			v->twice = single[i];
		*seen |= 1u << i;
	}
}

static struct vital find_vital(const struct http_req *r)
{
	struct vital v = { 0 };
	unsigned seen = 0;

	for (unsigned i = 0; i < r->nheaders; i++) {
		const struct http_header *h = &r->headers[i];

		if (strcmp(h->name, "host") == 0) {
			v.host = h->value;
			v.hosts++;
		} else if (strcmp(h->name, "transfer-encoding") == 0) {
			v.encoding = h->value;
			v.encodings++;
		} else if (strcmp(h->name, "expect") == 0) {
			v.expect = h->value;
		} else {
			find_twice(h, &seen, &v);
		}
	}
	return v;
}

static int has_nameless(const struct http_req *r)
{
	for (unsigned i = 0; i < r->nheaders; i++)
		if (!r->headers[i].name[0])
			return 1;
	return 0;
}

/* NULL, or the error; *status has the HTTP status for it. */
static const char *check_head(struct http_conn *c, const struct vital *v, int *status)
{
	*status = 400;
	if (has_nameless(&c->req))
		return "a header has no name";
	if (v->hosts > 1 || (v->hosts == 0 && !c->http10))
		return "exactly one Host header is needed";
	if (v->twice) {
		snprintf(c->why, sizeof(c->why), "there is more than one %s header", v->twice);
		return c->why;
	}
	if (v->encodings > 1 || (v->encodings && c->http10))
		return "Transfer-Encoding is not acceptable here";
	if (v->encodings && strcasecmp(v->encoding, "chunked") != 0) {
		*status = 501;
		return "the only Transfer-Encoding known here is chunked";
	}
	if (v->expect && strcasecmp(v->expect, "100-continue") != 0) {
		*status = 417;
		return "the only expectation known here is 100-continue";
	}
	return NULL;
}

static int has_token(const char *list, const char *token)
{
	size_t n = strlen(token);

	while (list && *list) {
		list += strspn(list, ", \t");
		if (strncasecmp(list, token, n) == 0 && (!list[n] || strchr(", \t", list[n])))
			return 1;
		list += strcspn(list, ",");
	}
	return 0;
}

static int wants_ws(const struct http_conn *c)
{
	const struct http_req *r = &c->req;
	const char *key = http_header(r, "sec-websocket-key");
	const char *version = http_header(r, "sec-websocket-version");

	/* 16 bytes in base64, and version 13 of the draft that became the standard. */
	return key && version && strlen(key) == 24 && strcmp(key + 22, "==") == 0 &&
	       strcmp(version, "13") == 0 && !c->http10 && strcmp(r->method, "GET") == 0 &&
	       has_token(http_header(r, "upgrade"), "websocket") &&
	       has_token(http_header(r, "connection"), "upgrade") && c->body_done;
}

static int wants_tunnel(const struct http_conn *c)
{
	const struct http_req *r = &c->req;

	return !c->http10 && strcmp(r->method, "GET") == 0 &&
	       has_token(http_header(r, "upgrade"), "tcp") &&
	       has_token(http_header(r, "connection"), "upgrade") && c->body_done;
}

static int take_head(struct http_conn *c)
{
	struct http_req *r = &c->req;
	struct vital v;
	const char *wrong;
	int status;

	if (c->parser.http_major != 1)
		return parse_refuse(c, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
	r->method = llhttp_method_name(c->parser.method);
	if (!lines_are_plain(c->head, c->head_len))
		return parse_refuse(c, 400,
				    "every line of the head ends in CRLF, and none is folded");
	if (!request_line_is_plain(c, r->method))
		return parse_refuse(c, 400, "the request line is not METHOD SP TARGET SP HTTP/1.1");
	make_headers(c);
	v = find_vital(r);
	wrong = check_head(c, &v, &status);
	if (wrong)
		return parse_refuse(c, status, wrong);
	if (make_target(c, v.host) < 0)
		return parse_refuse(c, 400, "the target is neither a path nor this host's");
	c->expect = v.expect && !c->http10 && !c->body_done;
	c->bodyless = strcmp(r->method, "HEAD") == 0;
	r->upgrade = http_header(r, "upgrade") && wants_ws(c);
	r->tunnel = http_header(r, "upgrade") && !r->upgrade && wants_tunnel(c);

	r->server->requests++;
	share_busy(c);
	conn_set_link(c, HTTP_LINK_BUSY);
	c->asked = 1;
	conn_set_state(c, CONN_BUSY);
	c->handled = 1;
	r->server->on_head(r);
	return 1;
}

/* Some clients send an extra CRLF after a form; an empty line before a request is skipped. */
static int skip_empty_line(struct http_conn *c)
{
	char two[2];

	if (c->head_len > 0 || evbuffer_copyout(conn_input(c), two, 2) < 2 ||
	    memcmp(two, "\r\n", 2) != 0)
		return 0;
	evbuffer_drain(conn_input(c), 2);
	return 1;
}

int parse_head(struct http_conn *c)
{
	struct evbuffer *in = conn_input(c);
	size_t n = evbuffer_get_length(in), left = c->req.server->limits.head_bytes - c->head_len;
	uint32_t from = c->head_len > 3 ? c->head_len - 3 : 0;
	llhttp_errno_t err;
	char *end;

	if (n == 0) {
		if (c->eof)
			conn_set_state(c, CONN_DEAD);
		return 0;
	}
	if (left == 0)
		return c->nspans ? parse_refuse(c, 431, "the head is larger than allowed")
				 : parse_refuse(c, 414, "the target is longer than allowed");
	if (skip_empty_line(c))
		return ++c->empty_lines <= EMPTY_LINES
			       ? 1
			       : parse_refuse(c, 400, "too many empty lines before the request");
	n = n < HEAD_PIECE ? n : HEAD_PIECE;
	n = n < left ? n : left;
	head_grow(c, n);
	evbuffer_copyout(in, c->head + c->head_len, n);
	end = memmem(c->head + from, c->head_len + n - from, "\r\n\r\n", 4);
	if (end)
		n = (size_t)(end + 4 - (c->head + c->head_len));
	evbuffer_drain(in, n);
	c->req.server->bytes_in += n;
	err = llhttp_execute(&c->parser, c->head + c->head_len, n);
	c->head_len += (uint32_t)n;
	if (err == HPE_PAUSED && c->body_done && end)
		llhttp_resume(&c->parser);
	else if (err != HPE_OK)
		return refuse_head(c, err);
	if (!end)
		return 1;
	if (c->head_done)
		return take_head(c);
	/* llhttp expects more after an empty line: this is the HTTP/2 preface. */
	return refuse_head(c, HPE_PAUSED_H2_UPGRADE);
}

/* ---- the body ---- */

static int refuse_body(struct http_conn *c)
{
	if (c->body_error)
		reply_error(c, c->body_error, "the body is larger than this request may have");
	else
		parse_refuse(c, 400, parse_reason(c));
	return 1;
}

static int parse_on(struct http_conn *c)
{
	llhttp_errno_t err = llhttp_execute(&c->parser, "", 0);

	c->stopped = 0;
	if (err == HPE_PAUSED)
		llhttp_resume(&c->parser);
	else if (err != HPE_OK)
		return refuse_body(c);
	return c->body_done;
}

int parse_body(struct http_conn *c)
{
	struct evbuffer *in = conn_input(c);
	struct evbuffer_iovec v;
	llhttp_errno_t err;
	size_t used;

	if (evbuffer_peek(in, -1, NULL, &v, 1) < 1 || v.iov_len == 0) {
		if (c->stopped) /* perhaps after the last byte of the body */
			return parse_on(c);
		if (!c->eof)
			return 0;
		return parse_refuse(c, 400, "the body ended before its announced end");
	}
	if (v.iov_len > BODY_PIECE)
		v.iov_len = BODY_PIECE;
	c->stamp = 0;
	/* All bytes count as overhead until a byte of body arrives, so this is added before
	 * parsing. */
	c->overhead += v.iov_len;
	err = llhttp_execute(&c->parser, v.iov_base, v.iov_len);
	used = err == HPE_OK
		       ? v.iov_len
		       : (size_t)(llhttp_get_error_pos(&c->parser) - (const char *)v.iov_base);
	c->stopped = err == HPE_PAUSED;
	if (err == HPE_PAUSED)
		llhttp_resume(&c->parser);
	else if (err != HPE_OK)
		return refuse_body(c);
	for (size_t i = used < 4 ? 0 : used - 4; i < used; i++)
		c->body_tail = c->body_tail << 8 | ((const uint8_t *)v.iov_base)[i];
	evbuffer_drain(in, used);
	c->req.server->bytes_in += used;
	/* llhttp 8 takes a bare LF for the last empty line. */
	if (c->body_done && c->req.length == UINT64_MAX && c->body_tail != 0x0d0a0d0a)
		return parse_refuse(c, 400, "every line of a chunked body ends in CRLF");
	if (c->overhead > c->req.server->limits.head_bytes + BODY_PIECE)
		return parse_refuse(c, 400, "too many bytes of chunk extensions");
	return 1;
}
