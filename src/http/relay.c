/* relay.c - see relay.h. */
#include "http/relay.h"
#include "base/cleanup.h"
#include "http/upstream.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct relay {
	struct http_req *req;
	struct relay_rules rules;
	struct upstream up;
	int begun;  /* the answer */
	int tunnel; /* it is bytes now */
};

/* ---- headers ---- */

/* Headers that concern one connection only and are not passed on. */
static const char *const hop[] = {
	/* clang-format off */
	"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
	"te",         "trailer",    "transfer-encoding",  "upgrade",
	/* clang-format on */
};

/* The first line that this side writes: of the request ... */
static const char *const asked[] = {
	"host",      "content-length",  "expect",           "forwarded",
	"x-real-ip", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
};

/* ... and the answer. */
static const char *const answered[] = { "content-length", "date" };

static int relay_among(const char *name, const char *const *list, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (strcmp(name, list[i]) == 0)
			return 1;
	return 0;
}

static int list_names(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (*(list += strspn(list, ", \t"))) {
		size_t len = strcspn(list, ", \t");

		if (len == n && strncasecmp(list, name, n) == 0)
			return 1;
		list += len;
	}
	return 0;
}

/* The header Connection may name more of them. */
static int of_one_hop(const struct http_header *all, unsigned n, const char *name)
{
	if (relay_among(name, hop, ARRAY_LEN(hop)))
		return 1;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(all[i].name, "connection") == 0 && list_names(all[i].value, name))
			return 1;
	return 0;
}

/* ---- the question ---- */

static void relay_line(struct buf *out, const char *name, const char *value)
{
	buf_puts(out, name);
	buf_puts(out, ": ");
	buf_puts(out, value);
	buf_puts(out, "\r\n");
}

/* As a path, also if the client sent a URL with a host. */
static void request_line(struct buf *out, const struct http_req *r, const char *target)
{
	if (target)
		buf_printf(out, "%s %s HTTP/1.1\r\n", r->method, target);
	else if (*r->target == '/' || strcmp(r->target, "*") == 0)
		buf_printf(out, "%s %s HTTP/1.1\r\n", r->method, r->target);
	else
		buf_printf(out, "%s %s%s%s HTTP/1.1\r\n", r->method, r->path, *r->query ? "?" : "",
			   r->query);
}

/* A gateway, and a proxy on this machine, are trusted to report the address of its client. A remote peer is not:
 * it could put any address into the server's log. */
static int is_near(const struct http_req *r)
{
	return r->unix_peer || r->trusted_peer || strncmp(r->peer, "127.", 4) == 0 ||
	       strncmp(r->peer, "[::1]", 5) == 0;
}

static void forwarded_for(struct buf *out, const struct http_req *r)
{
	const char *said = is_near(r) ? http_header(r, "x-forwarded-for") : NULL;
	const char *at = r->peer + (*r->peer == '[');
	size_t n = *r->peer == '[' ? strcspn(at, "]") : strcspn(at, ":");

	if (r->unix_peer && said)
		relay_line(out, "X-Forwarded-For", said);
	else if (!r->unix_peer)
		buf_printf(out, "X-Forwarded-For: %s%s%.*s\r\n", said ? said : "", said ? ", " : "",
			   (int)n, at);
}

static void relay_forwarded(struct buf *out, const struct http_req *r, const char *host)
{
	const char *proto = is_near(r) ? http_header(r, "x-forwarded-proto") : NULL;
	const char *name = is_near(r) ? http_header(r, "x-forwarded-host") : NULL;

	forwarded_for(out, r);
	relay_line(out, "X-Forwarded-Proto", proto ? proto : http_secure(r) ? "https" : "http");
	relay_line(out, "X-Forwarded-Host", name ? name : host);
}

/* The protocol that the request changes to; NULL: none. */
static const char *relay_upgrade(const struct http_req *r, const struct relay_rules *rules)
{
	return r->upgrade ? "websocket" : r->tunnel && rules->passes_tcp ? "tcp" : NULL;
}

static void relay_framing(struct buf *out, const struct http_req *r,
			  const struct relay_rules *rules)
{
	const char *upgrade = relay_upgrade(r, rules);

	if (r->length == UINT64_MAX)
		buf_puts(out, "Transfer-Encoding: chunked\r\n");
	else if (r->length || http_header(r, "content-length"))
		buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	if (upgrade)
		buf_printf(out, "Connection: Upgrade\r\nUpgrade: %s\r\n", upgrade);
	else if (!rules->spare)
		buf_puts(out, "Connection: close\r\n");
}

static void make_question(struct buf *out, const struct http_req *r,
			  const struct relay_rules *rules)
{
	const char *said = http_header(r, "host"), *host = said ? said : "localhost";

	request_line(out, r, rules->target);
	relay_line(out, "Host", rules->host ? rules->host : host);
	for (unsigned i = 0; i < r->nheaders; i++) {
		const struct http_header *h = &r->headers[i];
		const char *value;

		if (relay_among(h->name, asked, ARRAY_LEN(asked)) ||
		    of_one_hop(r->headers, r->nheaders, h->name))
			continue;
		value = rules->sends ? rules->sends(rules->user, h) : h->value;
		if (value)
			relay_line(out, h->name, value);
	}
	relay_forwarded(out, r, host);
	if (rules->extra)
		buf_puts(out, rules->extra);
	relay_framing(out, r, rules);
	buf_puts(out, "\r\n");
}

static void relay_ask(struct relay *x)
{
	struct http_req *r = x->req;
	auto_buf struct buf head = { 0 };

	make_question(&head, r, &x->rules);
	upstream_ask(&x->up, &(struct upstream_question){
				     .head = head.p,
				     .len = head.len,
				     .chunked = r->length == UINT64_MAX,
				     .no_body = strcmp(r->method, "HEAD") == 0,
				     .upgrade = relay_upgrade(r, &x->rules) != NULL,
			     });
}

/* ---- the answer ---- */

static int relay_is_requested(const struct relay *x, const struct http_answer *a)
{
	const char *to = http_answer_header(a, "upgrade"),
		   *wanted = relay_upgrade(x->req, &x->rules);

	return to && wanted && strcasecmp(to, wanted) == 0;
}

static const char *answer_head(struct upstream *u, const struct http_answer *a)
{
	struct relay *x = loop_owner(u, struct relay, up);
	struct http_req *r = x->req;
	const char *why;

	if (a->status == 101 && !relay_is_requested(x, a))
		return "it changes to a protocol that was not requested";
	why = x->rules.judge ? x->rules.judge(x->rules.user, a) : NULL;
	if (why)
		return why;
	http_unset(r);
	for (unsigned i = 0; i < a->nheaders; i++) {
		const struct http_header *h = &a->headers[i];
		const char *value;

		if (relay_among(h->name, answered, ARRAY_LEN(answered)) ||
		    of_one_hop(a->headers, a->nheaders, h->name))
			continue;
		value = x->rules.returns ? x->rules.returns(x->rules.user, h) : h->value;
		if (value)
			http_set(r, h->name, "%s", value);
	}
	x->begun = 1;
	if (a->status == 101) {
		http_set(r, "Upgrade", "%s", relay_upgrade(r, &x->rules));
		http_switch(r);
		x->tunnel = 1;
		if (x->rules.switched)
			x->rules.switched(x->rules.user);
	} else {
		http_stream(r, a->status, NULL, a->length);
	}
	return NULL;
}

static void answer_body(struct upstream *u, const char *bytes, size_t n)
{
	if (http_write(loop_owner(u, struct relay, up)->req, bytes, n))
		upstream_pause(u, 1);
}

static void answer_over(struct upstream *u, const char *why)
{
	struct relay *x = loop_owner(u, struct relay, up);

	if (!why && u->until_close && x->rules.close_is_complete &&
	    !x->rules.close_is_complete(x->rules.user))
		why = "it was cut off";
	if (!why && u->spare.fd >= 0 && x->rules.spare) {
		x->rules.spare(x->rules.user, u->spare);
		u->spare = upstream_link_plain(-1);
	}
	if (!why)
		http_end(x->req);
	else if (x->begun)
		http_abort(x->req);
	else
		x->rules.failed(x->rules.user, why);
}

static void has_room(struct upstream *u)
{
	http_resume(loop_owner(u, struct relay, up)->req);
}

/* ---- the request's side ---- */

void relay_body(struct relay *x, const char *bytes, size_t n)
{
	if (upstream_body(&x->up, bytes, n))
		http_pause(x->req);
}

void relay_body_end(struct relay *x)
{
	if (x->tunnel)
		upstream_shut(&x->up);
	else
		upstream_body_end(&x->up);
}

void relay_drain(struct relay *x)
{
	upstream_pause(&x->up, 0);
}

static const struct upstream_events relay_events = {
	.head = answer_head, .body = answer_body, .drain = has_room, .over = answer_over
};

static struct relay *relay_alloc(struct http_req *r)
{
	struct relay *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->req = r;
	return x;
}

struct relay *relay_new(struct http_req *r, struct loop *l, struct upstream_link take_link,
			const struct relay_rules *rules)
{
	struct relay *x = relay_alloc(r);

	x->rules = *rules;
	upstream_init(&x->up, l, take_link, rules->head_ms, &relay_events);
	relay_ask(x);
	return x;
}

struct relay *relay_new_raw(struct http_req *r, struct loop *l, struct upstream_link take_link)
{
	struct relay *x = relay_alloc(r);

	x->begun = x->tunnel = 1;
	upstream_init_raw(&x->up, l, take_link, &relay_events);
	return x;
}

void relay_free(struct relay *x)
{
	if (!x)
		return;
	upstream_close(&x->up);
	free(x);
}
