/* request.c - functions for handlers to read a request: headers, the query, memory, the body. */
#include "http/conn.h"
#include "base/hex.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

const char *http_header(const struct http_req *r, const char *lower_name)
{
	for (unsigned i = 0; i < r->nheaders; i++)
		if (strcmp(r->headers[i].name, lower_name) == 0)
			return r->headers[i].value;
	return NULL;
}

int http_peer_in_group(const struct http_req *r, uint32_t gid)
{
	enum { GROUPS_MAX = 65536 }; /* of the kernel: NGROUPS_MAX */
	struct ucred peer;
	socklen_t size = sizeof(peer);
	gid_t *groups;
	int found = 0;

	if (!r->unix_peer || getsockopt(r->conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return 0;
	if (peer.gid == gid)
		return 1;
	size = GROUPS_MAX * sizeof(*groups);
	groups = malloc(size);
	if (!groups)
		abort();
	if (getsockopt(r->conn->fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) == 0)
		for (unsigned i = 0; i < size / sizeof(*groups); i++)
			found |= groups[i] == gid;
	free(groups);
	return found;
}

void *http_alloc(struct http_req *r, size_t n)
{
	return arena_alloc(&r->conn->arena, n);
}

char *http_strdup(struct http_req *r, const char *s, size_t n)
{
	char *copy = http_alloc(r, n + 1);

	memcpy(copy, s, n);
	copy[n] = 0;
	return copy;
}

/* ---- the query ---- */

/* NULL if it is invalid, or would contain a NUL. */
static char *request_decoded(struct http_req *r, const char *s, size_t n)
{
	char *out = http_alloc(r, n + 1), *p = out;

	for (size_t i = 0; i < n; i++) {
		int byte = s[i] == '+' ? ' ' : s[i];

		if (s[i] == '%') {
			if (n - i < 3 || hex_digit(s[i + 1]) < 0 || hex_digit(s[i + 2]) < 0)
				return NULL;
			byte = hex_digit(s[i + 1]) << 4 | hex_digit(s[i + 2]);
			i += 2;
		}
		if (byte == 0)
			return NULL;
		*p++ = (char)byte;
	}
	*p = 0;
	return out;
}

struct param {
	const char *name, *value;
	size_t name_len, value_len;
};

/* The next parameter; *rest moves past it. 0: no more. */
static int next_param(const char **rest, struct param *out)
{
	const char *p = *rest, *equals;
	size_t n;

	while (*p == '&')
		p++;
	n = strcspn(p, "&");
	*rest = p + n;
	if (n == 0)
		return 0;
	equals = memchr(p, '=', n);
	out->name = p;
	out->name_len = equals ? (size_t)(equals - p) : n;
	out->value = equals ? equals + 1 : p + n;
	out->value_len = (size_t)(p + n - out->value);
	return 1;
}

const char *http_query(struct http_req *r, const char *name)
{
	const char *rest = r->query;
	struct param p;

	while (next_param(&rest, &p)) {
		const char *key = p.name;

		/* Nearly all names are plain: then nothing has to be decoded or stored. */
		if (memchr(p.name, '%', p.name_len) || memchr(p.name, '+', p.name_len)) {
			key = request_decoded(r, p.name, p.name_len);
			if (key && strcmp(key, name) == 0)
				return request_decoded(r, p.value, p.value_len);
		} else if (strlen(name) == p.name_len && memcmp(key, name, p.name_len) == 0) {
			return request_decoded(r, p.value, p.value_len);
		}
	}
	return NULL;
}

static int is_among(const char *name, const char *const *allowed)
{
	for (; *allowed; allowed++)
		if (strcmp(name, *allowed) == 0)
			return 1;
	return 0;
}

static int appears_before(struct http_req *r, const char *name, const char *end)
{
	const char *rest = r->query;
	struct param p;

	while (next_param(&rest, &p) && p.name < end) {
		const char *key = request_decoded(r, p.name, p.name_len);

		if (key && strcmp(key, name) == 0)
			return 1;
	}
	return 0;
}

int http_query_check(struct http_req *r, const char *const *allowed, struct err *e)
{
	enum { PARAMS_MAX = 64 }; /* each is compared with those before it */
	const char *rest = r->query;
	unsigned count = 0;
	struct param p;

	while (next_param(&rest, &p)) {
		const char *name = request_decoded(r, p.name, p.name_len);

		if (++count > PARAMS_MAX)
			return err_set(e, ERR_INVALID, "more than %d query parameters", PARAMS_MAX);
		if (!name)
			return err_set(e, ERR_INVALID,
				       "query: '%.*s' is not a percent-encoded name",
				       (int)(p.name_len < 40 ? p.name_len : 40), p.name);
		if (allowed && !is_among(name, allowed))
			return err_set(e, ERR_INVALID, "query: there is no parameter '%.40s' here",
				       name);
		if (appears_before(r, name, p.name))
			return err_set(e, ERR_INVALID, "query: '%.40s' is given twice", name);
		if (!request_decoded(r, p.value, p.value_len))
			return err_set(e, ERR_INVALID,
				       "query: the value of '%.40s' is not valid percent-encoding",
				       name);
	}
	return 0;
}

/* ---- whose work it is ---- */

void http_charge(struct http_req *r, struct loop_budget *b, void (*then)(struct http_req *r))
{
	struct http_conn *c = r->conn;
	struct loop *l = r->server->loop;

	if (b) {
		c->budget = b;
		loop_work_charge(l, b);
	}
	if (loop_budget_exceeded(l, b) && !loop_work_is_late(l))
		http_continue(r, then); /* conn_advance() stops here and continues after others */
	else
		then(r);
}

void http_continue(struct http_req *r, void (*then)(struct http_req *r))
{
	r->conn->then = then;
	conn_schedule(r->conn);
}

/* ---- the body ---- */

void http_want_body(struct http_req *r, enum http_body how, uint64_t max)
{
	struct http_conn *c = r->conn;

	if (c->reply == REPLY_DONE)
		return;
	c->how = how;
	c->body_rate = how == HTTP_BODY_WHOLE ? HTTP_BODY_RATE : 0;
	c->body_max = how == HTTP_BODY_STREAM && max == 0 ? UINT64_MAX : max;
	if (how != HTTP_BODY_NONE && r->length != UINT64_MAX && r->length > c->body_max)
		reply_error(c, 413, "the body is larger than this request may have");
	conn_schedule(c);
}

void http_body_rate(struct http_req *r, uint32_t bytes_per_s)
{
	r->conn->body_rate = bytes_per_s;
}

int http_secure(const struct http_req *r)
{
	const char *proto = r->trusted_peer ? http_header(r, "x-forwarded-proto") : NULL;

	return proto ? strcasecmp(proto, "https") == 0 : r->conn->tls;
}

void http_pause(struct http_req *r)
{
	r->conn->paused = 1;
}

void http_resume(struct http_req *r)
{
	r->conn->paused = 0;
	r->conn->stamp = r->conn->rate_at = 0;
	conn_schedule(r->conn);
}
