/* file_auth.c - see file_auth.h. */
#include "e2b/file_auth.h"
#include "api/auth.h"
#include "base/cleanup.h"
#include "e2b/entry.h"
#include "e2b/files.h"
#include "e2b/signature.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void auth_sign(struct call *c, const char *token, char out[SIGNATURE])
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

/* May a link that was signed with its token resume the box? */
static int would_wake(struct call *c, const struct box *b, const struct e2b_box *x)
{
	const char *until = call_query(c, "signature_expiration");

	return b->state == BOX_PAUSED && x->auto_resume && !(until && is_expired(until));
}

static int sign_begin(struct call *c, const char *given, struct signature_tries *out)
{
	const char *path = call_query(c, "path"), *user = call_query(c, "username");
	struct signature_of s = {
		.path = path ? path : "",
		.operation = strcmp(c->req->method, "POST") ? "read" : "write",
		.user = user ? user : "",
		.expiration = call_query(c, "signature_expiration"),
	};

	return signature_begin(out, &s, given);
}

/* Was the signature made with the token of this box, and does the path belong to it? */
static int is_signer(struct call *c, const struct box *b, const struct signature_tries *tries)
{
	char token[E2B_TOKEN + 1];
	struct e2b_box x;

	if (!e2b_box_token(b, token) || !signature_is_of(tries, token))
		return 0;
	e2b_box_read(b, &x);
	return b->state == BOX_RUNNING || would_wake(c, b, &x);
}

/* A link names no box, and a hash does not reveal its token, so the token of each box has to be
 * tried. Three things bound that: the token is read without parsing the row, the common part is
 * hashed once, and an address whose links fail too often is answered 429 before any token is
 * tried. The boxes of the last links are tried first. */
struct box *files_http_find(struct call *c)
{
	const char *given = call_query(c, "signature");
	struct fleet *f = &c->api->fleet;
	struct signature_tries tries;
	char *recent;
	struct box *b;

	if (!given || strcmp(c->req->path, "/files") != 0 || sign_begin(c, given, &tries) < 0)
		return NULL;
	recent = e2b_recent(c->api, tries.given);
	b = fleet_find(f, recent);
	if (b && is_signer(c, b, &tries))
		return b;
	if (!auth_may_guess(c->api, c->req))
		return NULL;
	for (b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		if (is_signer(c, b, &tries)) {
			memcpy(recent, b->row.id, ID_MAX + 1);
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

	e2b_box_read(e2b_find_box(c), &x);
	if (!x.token[0])
		return NULL;
	if (token && *token)
		return e2b_same(token, x.token)
			       ? NULL
			       : "access token present in header but does not match";
	if (!given)
		return "missing signature query parameter";
	auth_sign(c, x.token, expected);
	if (!e2b_same(given, expected) || (until && !is_number(until)))
		return "invalid signature";
	if (until && is_expired(until))
		return "signature is already expired";
	return NULL;
}

int file_auth_user(struct call *c, int *out_root)
{
	const char *why = why_not(c), *user = call_query(c, "username");

	*out_root = user && !strcmp(user, "root");
	if (why)
		e2b_error(c, 401, "%s", why);
	else if (user && *user && !*out_root &&
		 !e2b_is_user(fleet_find(&c->api->fleet, c->held), user, strlen(user)))
		e2b_error(c, 401, "error looking up user '%.64s': unknown user", user);
	else
		return 1;
	return 0;
}

/* A preflight request; e2b_cors() has answered a valid one. Token or signature decide about
 * access, not the origin. */
void files_http_options(struct call *c)
{
	http_set(c->req, "Allow", "GET, HEAD, OPTIONS, POST");
	call_empty(c, 204);
}

const char *file_auth_path(struct call *c, const char *given, int root)
{
	const struct box *b = fleet_find(&c->api->fleet, c->held);
	auto_buf struct buf path = { 0 };
	struct err e;
	char *kept;

	if (entry_path(given, e2b_home(b, root), e2b_workdir(b, root), &path, &e) < 0) {
		e2b_error(c, 400, "error resolving path: %s", e.msg);
		return NULL;
	}
	kept = call_alloc(c, path.len + 1);
	memcpy(kept, path.p, path.len + 1);
	return kept;
}
