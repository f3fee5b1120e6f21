/* admit.c - see admit.h. */
#include "e2b/admit.h"
#include "base/own.h"
#include "e2b/entry.h"
#include "e2b/files.h"
#include "e2b/signature.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void sign(struct call *c, const char *token, char out[SIGNATURE])
{
	const char *path = call_query(c, "path"), *user = call_query(c, "username");
	struct signature_of s = {
		.path = path ? path : "",
		.operation = strcmp(c->req->method, "POST") ? "read" : "write",
		.user = user ? user : "",
		.token = token,
		.expiration = call_query(c, "signature_expiration"),
	};

	signature_make(&s, out);
}

static int is_number(const char *text)
{
	return *text && strlen(text) <= 18 && strspn(text, "0123456789") == strlen(text);
}

static int is_expired(const char *until)
{
	return is_number(until) && strtoll(until, NULL, 10) < (long long)time(NULL);
}

/* May a link that its token has made wake it? */
static int would_wake(struct call *c, const struct berth *b, const struct e2b_box *x)
{
	const char *until = call_query(c, "signature_expiration");

	return b->state == BERTH_PAUSED && x->auto_resume && !(until && is_expired(until));
}

struct berth *transfer_find(struct call *c)
{
	const char *given = call_query(c, "signature");
	char expected[SIGNATURE];
	struct e2b_box x;

	if (!given || strcmp(c->req->path, "/files") != 0)
		return NULL;
	for (struct berth *b = fleet_next(&c->api->fleet, NULL); b;
	     b = fleet_next(&c->api->fleet, b)) {
		if (!b->row.door)
			continue;
		e2b_box_read(b, &x);
		if (b->state != BERTH_RUNNING && !would_wake(c, b, &x))
			continue;
		sign(c, x.token, expected);
		if (x.token[0] && e2b_same(given, expected))
			return b;
	}
	return NULL;
}

/* NULL: yes. */
static const char *why_not(struct call *c)
{
	const char *token = http_header(c->req, "x-access-token"),
		   *given = call_query(c, "signature"),
		   *until = call_query(c, "signature_expiration");
	char expected[SIGNATURE];
	struct e2b_box x;

	e2b_box_read(e2b_berth(c), &x);
	if (!x.token[0])
		return NULL;
	if (token && *token)
		return e2b_same(token, x.token)
			       ? NULL
			       : "access token present in header but does not match";
	if (!given)
		return "missing signature query parameter";
	sign(c, x.token, expected);
	if (!e2b_same(given, expected) || (until && !is_number(until)))
		return "invalid signature";
	if (until && is_expired(until))
		return "signature is already expired";
	return NULL;
}

int admit_user(struct call *c, int *out_root)
{
	const char *why = why_not(c), *user = call_query(c, "username");

	*out_root = user && !strcmp(user, "root");
	if (why)
		e2b_error(c, 401, "%s", why);
	else if (user && *user && !*out_root && strcmp(user, "user") != 0)
		e2b_error(c, 401, "error looking up user '%.64s': unknown user", user);
	else
		return 1;
	return 0;
}

void admit_pages(struct call *c)
{
	if (!http_header(c->req, "origin"))
		return;
	http_set(c->req, "Access-Control-Allow-Origin", "*");
	http_set(c->req, "Access-Control-Expose-Headers",
		 "Location, Cache-Control, X-Content-Type-Options");
}

/* A page asks before it sends. Who may is decided by token or signature, not by where it comes from. */
void transfer_options(struct call *c)
{
	const char *wanted = http_header(c->req, "access-control-request-headers");

	admit_pages(c);
	http_set(c->req, "Access-Control-Allow-Methods", "HEAD, GET, POST, PUT, PATCH, DELETE");
	if (wanted)
		http_set(c->req, "Access-Control-Allow-Headers", "%.2000s", wanted);
	http_set(c->req, "Access-Control-Max-Age", "7200");
	call_empty(c, 204);
}

const char *admit_path(struct call *c, const char *given, int root)
{
	auto_buf struct buf path = { 0 };
	struct err e;
	char *kept;

	if (entry_path(given, root, &path, &e) < 0) {
		e2b_error(c, 400, "error resolving path: %s", e.msg);
		return NULL;
	}
	kept = call_alloc(c, path.len + 1);
	memcpy(kept, path.p, path.len + 1);
	return kept;
}
