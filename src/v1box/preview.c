/* preview.c - see preview.h.
 *
 *   header   token of a program                 -> passes
 *   query    token of a link, once              -> cookie, and the same address without the token
 *   cookie   of a browser, not of other pages   -> passes
 *
 * A program in the box must not learn the token: it could give it to a page of another box. So all
 * three are removed from the request. */
#include "v1box/preview.h"
#include "api/auth.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char query_name[] = PREVIEW_QUERY "=";
static const char cookie_name[] = PREVIEW_COOKIE "=";

/* In constant time. */
static int preview_same(const char *given, size_t n, const char *token)
{
	unsigned char differs = 0;

	if (n != PORTS_TOKEN || strlen(token) != PORTS_TOKEN)
		return 0;
	for (size_t i = 0; i < PORTS_TOKEN; i++)
		differs |= (unsigned char)(given[i] ^ token[i]);
	return differs == 0;
}

/* ---- where the token is ---- */

/* The value of the first parameter with exactly this name, as sent: a token has no character that
 * needs an escape. */
static const char *preview_in_query(const struct http_req *r, size_t *n)
{
	for (const char *at = r->query; *at; at += *at == '&') {
		size_t len = strcspn(at, "&"), name = strlen(query_name);

		if (len >= name && memcmp(at, query_name, name) == 0) {
			*n = len - name;
			return at + name;
		}
		at += len;
	}
	return NULL;
}

static const char *preview_next_cookie(const char *at, size_t *n)
{
	at += strspn(at, "; \t");
	*n = strcspn(at, ";");
	return *n ? at : NULL;
}

/* A page of another box below the same domain can add cookies of this name, so each is compared. */
static int preview_in_cookies(const struct http_req *r, const char *token)
{
	size_t n, name = strlen(cookie_name);

	for (unsigned i = 0; i < r->nheaders; i++) {
		const char *at = r->headers[i].value;

		if (strcmp(r->headers[i].name, "cookie") != 0)
			continue;
		for (; (at = preview_next_cookie(at, &n)); at += n)
			if (n > name && !memcmp(at, cookie_name, name) &&
			    preview_same(at + name, n - name, token))
				return 1;
	}
	return 0;
}

/* ---- what is removed ---- */

const char *preview_target(struct call *c)
{
	const struct http_req *r = c->req;
	char *out, *to;
	size_t n;

	if (!preview_in_query(r, &n))
		return NULL;
	out = call_alloc(c, strlen(r->path) + strlen(r->query) + 2);
	to = stpcpy(out, r->path);
	for (const char *at = r->query, *before = "?"; *at; at += *at == '&') {
		n = strcspn(at, "&");
		if (n < strlen(query_name) || memcmp(at, query_name, strlen(query_name)) != 0) {
			to += sprintf(to, "%s%.*s", before, (int)n, at);
			before = "&";
		}
		at += n;
	}
	return out;
}

static const char *preview_other_cookies(struct call *c, const char *value)
{
	char *out = call_alloc(c, strlen(value) + 2), *to = out;
	size_t n, name = strlen(cookie_name);

	*to = 0;
	for (const char *at = value; (at = preview_next_cookie(at, &n)); at += n)
		if (n < name || memcmp(at, cookie_name, name) != 0)
			to += sprintf(to, "%s%.*s", to == out ? "" : "; ", (int)n, at);
	return *out ? out : NULL;
}

const char *preview_header(struct call *c, const struct http_header *h)
{
	if (strcmp(h->name, PREVIEW_HEADER) == 0)
		return NULL;
	if (strcmp(h->name, "referer") == 0 && strstr(h->value, query_name))
		return NULL;
	if (strcmp(h->name, "cookie") == 0 && strstr(h->value, cookie_name))
		return preview_other_cookies(c, h->value);
	return h->value;
}

/* ---- access ---- */

static int preview_reads(const struct http_req *r)
{
	return strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;
}

/* 1: a page of another origin made the request. Opening the preview by a link or in a frame is
 * allowed. A browser without Sec-Fetch-Site sends at least Origin with what may change something. */
static int preview_is_foreign(const struct http_req *r)
{
	const char *site = http_header(r, "sec-fetch-site"),
		   *mode = http_header(r, "sec-fetch-mode"), *origin = http_header(r, "origin"),
		   *host = http_header(r, "host"), *at;

	if (site)
		return strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0 &&
		       !(mode && strcmp(mode, "navigate") == 0 && preview_reads(r));
	at = origin ? strstr(origin, "://") : NULL;
	return origin && !(at && host && strcasecmp(at + 3, host) == 0);
}

static void preview_refuse(struct call *c, uint16_t port, int wrong)
{
	char command[80];

	if (wrong && auth_failed(c->api, c->req)) {
		call_fail_throttled(c);
		return;
	}
	snprintf(command, sizeof(command), "atoll open BOX %u", port);
	http_set(c->req, "Cache-Control", "no-store");
	preview_answer(
		c, &(struct preview_page){
			   .status = 401,
			   .code = "preview_token_needed",
			   .message = wrong ? "The token of this preview is not valid"
					    : "This preview is private",
			   .why = "Open it with its link, which contains a token. Programs send "
				  "the token in the header X-Atoll-Preview-Token. A browser that "
				  "refuses cookies in frames opens it in a tab of its own.",
			   .command = command });
}

/* Leaves a link to another host out: a path that begins with two slashes is one. */
static void preview_redirect(struct call *c, int status, const char *to)
{
	http_set(c->req, "Location", "%s%s",
		 to[0] == '/' && strchr("/\\", to[1]) && to[1] ? "/." : "", to);
	http_set(c->req, "Cache-Control", "no-store");
	http_set(c->req, "Referrer-Policy", "no-referrer");
	http_reply(c->req, status, NULL, NULL, 0);
}

/* In a frame of another site a browser accepts no other form. Browsers treat names below localhost
 * as secure without TLS. */
static void preview_set_cookie(struct call *c, const char *token)
{
	const char *dest = http_header(c->req, "sec-fetch-dest"),
		   *site = http_header(c->req, "sec-fetch-site"),
		   *host = http_header(c->req, "host");
	int framed = dest && !strcmp(dest, "iframe") && site && !strcmp(site, "cross-site"),
	    secure = ports_is_secure(c->req);
	const char *how = framed && (secure || (host && ports_is_local(host)))
				  ? "SameSite=None; Secure; Partitioned"
			  : secure ? "SameSite=Lax; Secure"
				   : "SameSite=Lax";

	http_set(c->req, "Set-Cookie", "%s%s; Path=/; HttpOnly; %s", cookie_name, token, how);
}

/* To the same path at the host name with the id of the box. */
static void preview_to_id(struct call *c, const struct box *b, uint16_t port)
{
	const char *host = http_header(c->req, "host"), *rest = strchr(host, '.');
	const struct http_req *r = c->req;
	char *to = call_alloc(c, strlen(host) + strlen(r->path) + strlen(r->query) + 64);

	sprintf(to, "%s://%u-%s%s%s%s%s", ports_is_secure(r) ? "https" : "http", port, b->row.id,
		rest ? rest : "", r->path, *r->query ? "?" : "", r->query);
	preview_redirect(c, 307, to);
}

static void preview_closed(struct call *c, uint16_t port)
{
	char command[80];

	snprintf(command, sizeof(command), "atoll open BOX %u", port);
	preview_answer(c, &(struct preview_page){ .status = 404,
						  .code = "preview_closed",
						  .message = "This port of the box is not open",
						  .why = "A port is closed until an editor of the "
							 "box opens it.",
						  .command = command });
}

/* 1: the token in header or query is that of the port. */
static int preview_has_token(const struct http_req *r, const char *token)
{
	const char *header = http_header(r, PREVIEW_HEADER), *query;
	size_t n;

	if (header)
		return preview_same(header, strlen(header), token);
	query = preview_in_query(r, &n);
	return query && preview_same(query, n, token);
}

int preview_admit(struct call *c, const struct box *b, uint16_t port, int by_name)
{
	const struct http_req *r = c->req;
	const char *header = http_header(r, PREVIEW_HEADER);
	char token[PORTS_TOKEN + 1];
	enum ports_access access = ports_access(b, port, token);
	size_t n;
	int in_query = preview_in_query(r, &n) != NULL;

	if (access == PORTS_CLOSED) {
		preview_closed(c, port);
		return 0;
	}
	if (access == PORTS_PRIVATE && (header || in_query) && !preview_has_token(r, token)) {
		preview_refuse(c, port, 1);
		return 0;
	}
	if (by_name && !header) {
		preview_to_id(c, b, port);
		return 0;
	}
	if (access == PORTS_PUBLIC || header)
		return 1;
	if (in_query && (!preview_reads(r) || r->upgrade))
		return 1;
	if (in_query) {
		preview_set_cookie(c, token);
		preview_redirect(c, 303, preview_target(c));
		return 0;
	}
	if (!preview_in_cookies(r, token)) {
		preview_refuse(c, port, 0);
		return 0;
	}
	if (!preview_is_foreign(r))
		return 1;
	preview_answer(c,
		       &(struct preview_page){
			       .status = 403,
			       .code = "preview_other_page",
			       .message = "A page of another origin made this request",
			       .why = "The cookie of a private preview is valid for its own pages "
				      "only." });
	return 0;
}

/* Names are unique in a team only. A box that the client may not open is no different from one
 * that does not exist. */
struct box *preview_named(struct call *c, const char *name, uint16_t port)
{
	const struct fleet *f = &c->api->fleet;
	struct box *open = NULL;
	unsigned n = 0;

	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b)) {
		char token[PORTS_TOKEN + 1];
		enum ports_access access;

		if (strcasecmp(b->row.name, name) != 0 || !ports_is_native(b))
			continue;
		n++;
		access = ports_access(b, port, token);
		if (access == PORTS_PRIVATE && preview_has_token(c->req, token))
			return b;
		if (access == PORTS_PUBLIC)
			open = b;
	}
	return n == 1 ? open : NULL;
}
