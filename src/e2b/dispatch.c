/* dispatch.c - decides whether a request is for a port of a box, and for which. */
#include "api/auth.h"
#include "api/quota.h"
#include "v1box/preview.h"
#include "base/cleanup.h"
#include "e2b/e2b.h"
#include "e2b/files.h"
#include "store/boxes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RECENT = 256, WOKEN_MS = 300000 };
struct e2b { /* the state of this surface */
	struct watchers *watchers;
	char recent[RECENT][ID_MAX + 1]; /* boxes of signed links */
};

/* ---- the name of a box and a port ---- */

static int read_port(const char *text, size_t n, uint16_t *out)
{
	unsigned long port = 0;

	if (n == 0 || n > 5 || (text[0] == '0' && n > 1)) /* one port, one name */
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		port = port * 10 + (unsigned long)(text[i] - '0');
	}
	*out = (uint16_t)port;
	return port >= 1 && port <= 65535 ? 0 : -1;
}

/* Old clients append "-" and the clientID of the answer to the id. Any other text names no box:
 * out "". */
static void read_id(const char *text, size_t n, char out[ID_MAX + 1])
{
	const char *dash = memchr(text, '-', n);
	size_t len = dash ? (size_t)(dash - text) : n, more = dash ? n - len - 1 : 0;

	out[0] = 0;
	if (len > ID_MAX ||
	    (dash && (more != strlen(E2B_CLIENT) || memcmp(dash + 1, E2B_CLIENT, more))))
		return;
	memcpy(out, text, len);
	out[len] = 0;
}

static int by_headers(const struct http_req *r, struct e2b_target *out, struct err *e)
{
	const char *id = http_header(r, "e2b-sandbox-id"),
		   *port = http_header(r, "e2b-sandbox-port");

	if (!id && !port)
		return 0;
	if (!id || !port)
		return err_set(e, ERR_INVALID, "E2b-Sandbox-%s is missing", id ? "Port" : "Id");
	if (!*id)
		return err_set(e, ERR_INVALID, "E2b-Sandbox-Id is empty");
	if (read_port(port, strlen(port), &out->port) < 0)
		return err_set(e, ERR_INVALID, "E2b-Sandbox-Port: '%.20s' is not a port", port);
	read_id(id, strlen(id), out->id);
	return 1;
}

/* "49983-<id>.some.domain:443" */
static int by_host(const struct http_req *r, struct e2b_target *out)
{
	const char *host = http_header(r, "host");
	size_t digits = host ? strspn(host, "0123456789") : 0, label;

	if (!digits || host[digits] != '-')
		return 0;
	label = strcspn(host, ".:");
	if (host[label] != '.')
		return 0;
	if (read_port(host, digits, &out->port) < 0) { /* an invalid port belongs to no box */
		out->port = 0;
		out->id[0] = 0;
		return 1;
	}
	read_id(host + digits + 1, label - digits - 1, out->id);
	if (label - digits - 1 <= E2B_LABEL)
		snprintf(out->name, sizeof(out->name), "%.*s", (int)(label - digits - 1),
			 host + digits + 1);
	return 1;
}

int e2b_target(const struct http_req *r, struct e2b_target *out, struct err *e)
{
	int found = by_headers(r, out, e);

	return found ? found : by_host(r, out);
}

/* ---- traffic ---- */

struct traffic {
	struct e2b_target to;
	struct box *box;
	struct box_wait fetching; /* until the box is adopted, or resumed */
	int woken;
	struct call *call;
};

struct box *e2b_find_box(struct call *c)
{
	return ((struct traffic *)c->surface)->box;
}

/* A client that uses the token of a box acts for the team of the box, on that box alone. */
static void act_for(struct call *c, const struct box *b)
{
	c->who = (struct principal){ .role = ROLE_EDITOR };
	memcpy(c->who.team, b->row.team, sizeof(c->who.team));
	memcpy(c->who.box, b->row.id, sizeof(c->who.box));
	snprintf(c->who.id, sizeof(c->who.id), "box:%s", b->row.id);
}

static int may_pass(struct call *c, const struct box *b, uint16_t port)
{
	const char *has = http_header(c->req, "e2b-traffic-access-token");
	char token[PORTS_TOKEN + 1];
	struct e2b_box x;

	e2b_box_read(b, &x);
	/* The interpreter's table reads the token itself: it answers /health without one. */
	if (port == E2B_ENVD || !x.traffic[0] || x.public_ports ||
	    (has && e2b_same(has, x.traffic)))
		return 1;
	/* A port that an editor has opened as a preview accepts that token, too. */
	if (!has && port != E2B_INTERPRETER && ports_access(b, port, token) != PORTS_CLOSED)
		return preview_admit(c, b, port, 0);
	e2b_no_box(c, 403, b->row.id, 0,
		   has ? "The traffic access token is not valid"
		       : "This sandbox needs a traffic access token");
	return 0;
}

/* A box for which this surface has never issued a token is closed to all clients here. */
static int is_ours(const struct box *b)
{
	struct e2b_box x;

	e2b_box_read(b, &x);
	return x.ours && !b->is_installer;
}

static void dispatch_enter(struct call *c, struct traffic *t);

static void dispatch_resumed(struct box_wait *w, struct box *b, const struct err *e)
{
	struct traffic *t = loop_owner(w, struct traffic, fetching);
	struct call *c = t->call;

	(void)b;
	(void)e;
	c->drop = NULL;
	http_resume(c->req); /* first: the code that runs next may pause it again */
	dispatch_enter(c, t);
}

static void stop_fetching(struct call *c)
{
	box_wait_cancel(&((struct traffic *)c->surface)->fetching);
}

/* A box that traffic has resumed lives for five minutes at least, as with E2B. */
static void dispatch_extend(struct call *c, struct box *b)
{
	uint64_t most = quota_max_lifetime_ms(c->api, b->row.team);
	uint64_t least = most && most < WOKEN_MS ? most : WOKEN_MS;

	if (b->row.lifetime_ms && b->row.lifetime_ms < least)
		b->row.lifetime_ms = least;
}

/* 1: the box is paused and this request resumes it; the request waits for that, once. */
static int dispatch_wakes(struct call *c, struct traffic *t, struct box *b)
{
	struct e2b_box x;
	struct err e;

	e2b_box_read(b, &x);
	if (b->state != BOX_PAUSED || !x.auto_resume || t->woken)
		return 0;
	t->woken = 1;
	t->fetching.done = dispatch_resumed;
	dispatch_extend(c, b);
	if (box_resume(b, 0, &t->fetching, &e) < 0)
		return 0;
	c->drop = stop_fetching;
	http_want_body(c->req, HTTP_BODY_STREAM, 0);
	http_pause(c->req);
	return 1;
}

static void dispatch_pass(struct call *c, struct traffic *t, struct box *b)
{
	t->box = b;
	act_for(c, b);
	call_hold(c, b);
}

/* A port of a box that is not an E2B sandbox. */
static void dispatch_preview(struct call *c, struct traffic *t, struct box *b, int by_name)
{
	if (!preview_admit(c, b, t->to.port, by_name) || preview_not_running(c, b))
		return;
	dispatch_pass(c, t, b);
	e2b_proxy(c, b, t->to.port, 1);
}

static int dispatch_is_e2b_port(uint16_t port)
{
	return port == E2B_ENVD || port == E2B_INTERPRETER;
}

/* 1: the request is for a box that is not an E2B sandbox, and was answered or is relayed. */
static int dispatch_takes_preview(struct call *c, struct traffic *t)
{
	struct box *b = fleet_find(&c->api->fleet, t->to.id);
	int by_name = 0;

	if (!b && t->to.name[0]) {
		b = preview_named(c, t->to.name, t->to.port);
		by_name = b != NULL;
	}
	if (!b || dispatch_is_e2b_port(t->to.port) || !ports_is_native(b))
		return 0;
	dispatch_preview(c, t, b, by_name);
	return 1;
}

static void dispatch_enter(struct call *c, struct traffic *t)
{
	struct box *b = fleet_find(&c->api->fleet, t->to.id);

	if (dispatch_takes_preview(c, t))
		return;
	if (b && !is_ours(b))
		b = NULL;
	if (b && b->state == BOX_PAUSED && !may_pass(c, b, t->to.port))
		return;
	if (b && dispatch_wakes(c, t, b))
		return;
	if (!b || b->state != BOX_RUNNING) {
		e2b_no_box(c, 502, t->to.id, 0, "The sandbox was not found");
		return;
	}
	if (!may_pass(c, b, t->to.port))
		return;
	dispatch_pass(c, t, b);
	if (dispatch_is_e2b_port(t->to.port))
		c->req->always = API_ALWAYS_SHARED;
	if (!dispatch_is_e2b_port(t->to.port))
		e2b_proxy(c, b, t->to.port, 0);
	else if (!e2b_cors(c))
		call_serve(c, t->to.port == E2B_ENVD ? &e2b_envd : &e2b_interpreter);
}

/* 1: another server process created this box, and this server is adopting it; the body waits,
 * too. */
static int dispatch_fetch(struct call *c, struct traffic *t)
{
	struct store_box row = { 0 };
	struct err e;

	if (!id_valid(t->to.id) || fleet_find(&c->api->fleet, t->to.id) ||
	    store_box_get(c->api->store, t->to.id, &row, &e) < 0)
		return 0;
	if (row.state == STORE_BOX_DELETED || strcmp(row.boot, c->api->fleet.boot) != 0) {
		store_box_fini(&row);
		return 0;
	}
	t->fetching.done = dispatch_resumed;
	c->drop = stop_fetching;
	http_want_body(c->req, HTTP_BODY_STREAM, 0);
	http_pause(c->req);
	box_restore(&c->api->fleet, &row, &t->fetching);
	return 1;
}

/* Signed links to files name no box; the signature identifies it. A link without a valid
 * signature gets the same answer as a request that names no box. */
static int by_signature(struct call *c, struct traffic *t)
{
	const struct box *b = files_http_find(c);

	if (!b)
		return 0;
	memcpy(t->to.id, b->row.id, sizeof(t->to.id));
	t->to.port = E2B_ENVD;
	c->surface = t;
	return 1;
}

/* A gateway asks each node for the box of a signed link before it sends the request to one of them. It counts failures of
 * the client itself. 1: this was such a question. */
static int dispatch_find(struct call *c)
{
	const struct box *b;

	if (!c->req->trusted_peer || !http_header(c->req, "atoll-find"))
		return 0;
	b = files_http_find(c);
	if (b)
		call_json(c, 200, json_pack("{s:s}", "id", b->row.id));
	else
		call_error(c, 404, "not_found", "no box here has signed this link", NULL, NULL);
	return 1;
}

/* Does the preflight request of a page name this header? */
static int asks_for(const struct http_req *r, const char *name)
{
	const char *list = http_header(r, "access-control-request-headers");
	size_t n = strlen(name);

	while (list && *(list += strspn(list, ", \t"))) {
		size_t len = strcspn(list, ", \t");

		if (len == n && strncasecmp(list, name, n) == 0)
			return 1;
		list += len;
	}
	return 0;
}

static int dispatch_take(struct call *c)
{
	struct traffic *t = call_alloc(c, sizeof(*t));
	struct err e;
	int named;

	*t = (struct traffic){ .call = c };
	named = e2b_target(c->req, &t->to, &e);
	if (named < 0) {
		http_reply(c->req, 400, "text/plain", e.msg, strlen(e.msg));
		return 1;
	}
	if (named && t->to.name[0] && !auth_is_preview_host(c->api, http_header(c->req, "host"))) {
		e2b_no_box(c, 502, t->to.id, 0, "The sandbox was not found");
		return 1;
	}
	if (named) {
		c->surface = t;
		if (!dispatch_fetch(c, t))
			dispatch_enter(c, t);
		return 1;
	}
	/* Where all boxes have one address, a header names the box, and a browser sends a
	 * preflight request before it sends that header. */
	if (strcmp(c->req->method, "OPTIONS") == 0 && asks_for(c->req, "e2b-sandbox-id") &&
	    e2b_cors(c))
		return 1;
	if (dispatch_find(c))
		return 1;
	if (by_signature(c, t)) {
		dispatch_enter(c, t);
		return 1;
	}
	/* The signature matches no box. */
	if (strcmp(c->req->path, "/files") == 0 && http_query(c->req, "signature") &&
	    auth_failed(c->api, c->req)) {
		call_fail_throttled(c);
		return 1;
	}
	return 0;
}

const struct api_surface e2b_surface = { dispatch_take, NULL, 0, NULL };

/* Cuts the connections to a box that is paused: no client may wait for an answer from it. */
static void dispatch_cut(struct fleet *f, struct box *b)
{
	struct api *a = loop_owner(f, struct api, fleet);

	port_conns_drop_idle(b);
	for (struct call *c = a->calls, *next; c; c = next) {
		next = c->next;
		if (c->surface && strcmp(c->held, b->row.id) == 0)
			http_abort(c->req);
	}
}

int e2b_init(struct api *a, struct err *e)
{
	(void)e;
	a->fleet.on_pause = dispatch_cut;
	a->e2b = calloc(1, sizeof(*a->e2b));
	if (!a->e2b)
		abort();
	a->e2b->watchers = watchers_new();
	return 0;
}

void e2b_fini(struct api *a)
{
	if (!a->e2b)
		return;
	watchers_free(a->e2b->watchers);
	free(a->e2b);
	a->e2b = NULL;
}

char *e2b_recent(struct api *a, const uint8_t signature[32])
{
	return a->e2b->recent[signature[0] % RECENT];
}

struct watchers *e2b_watchers(struct api *a)
{
	return a->e2b->watchers;
}
