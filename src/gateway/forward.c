/* forward.c - sends the request of a client to one node, and the node's answer to the client.
 *
 * A node gets the identity of the caller, never a key: it runs code that no person has reviewed. A request
 * without an answer byte is repeated once on another connection, if repeating it is harmless. */
#include "api/quota.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "gateway/directory.h"
#include "gateway/gateway_call.h"
#include "gateway/objects.h"
#include "http/client.h"

#include <stdio.h>
#include <string.h>

enum {
	FORWARD_HEAD_MS = 25 * 3600 * 1000
}; /* requests may wait for a program; its limits end them */

#define FORWARD_BOX "atoll-box"
#define FORWARD_SNAPSHOT "atoll-snapshot"

static struct gateway_call *forward_of(const struct http_req *r)
{
	return ((struct call *)r->user)->state;
}

/* ---- headers ---- */

static int forward_has_key(const char *text)
{
	for (; (text = strstr(text, KEY_PREFIX)); text++)
		if (strspn(text + strlen(KEY_PREFIX), "0123456789abcdef") >=
		    KEY_TEXT - strlen(KEY_PREFIX))
			return 1;
	return 0;
}

static const char *forward_sends(void *user, const struct http_header *h)
{
	const struct gateway_call *x = user;

	if (strncmp(h->name, "atoll-", 6) == 0 || forward_has_key(h->value))
		return NULL;
	if (x->identity[0] &&
	    (strcmp(h->name, "authorization") == 0 || strcmp(h->name, "x-api-key") == 0))
		return NULL;
	return h->value;
}

/* ---- failures ---- */

static int forward_may_repeat(const struct gateway_call *x)
{
	const struct http_req *r = x->call->req;
	int safe = strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0;

	if (x->has_repeated || r->upgrade || r->tunnel)
		return 0;
	return (safe && r->length == 0) || (x->body && http_header(r, "idempotency-key"));
}

static void forward_release(struct gateway_call *x)
{
	tunnels_cancel(&x->ask);
	relay_free(x->relay);
	x->relay = NULL;
	if (x->has_link)
		tunnels_give(x->gateway->tunnels, x->node, (struct upstream_link){ .fd = -1 });
	x->has_link = 0;
}

static void forward_again(struct timer *t)
{
	struct gateway_call *x = loop_owner(t, struct gateway_call, again);

	forward_release(x);
	if (x->is_refused)
		x->refused(x);
	else
		forward_begin(x, x->node);
}

static void forward_failed(void *user, const char *why)
{
	struct gateway_call *x = user;
	char text[200];

	if (x->is_refused) {
		timer_set(&x->again, 0); /* not here: the relay is in use */
		return;
	}
	if (strcmp(why, RELAY_LATE) != 0 && forward_may_repeat(x)) {
		x->has_repeated = 1;
		x->gateway->figures.repeated++;
		timer_set(&x->again, 0);
		return;
	}
	snprintf(text, sizeof(text), "node %u: %s", x->node, why);
	forward_fail_unreachable(x, text);
}

/* ---- the exchange ---- */

static void forward_spare(void *user, struct upstream_link take_link)
{
	struct gateway_call *x = user;

	x->has_link = 0;
	tunnels_give(x->gateway->tunnels, x->node, take_link);
	settle_note(x->gateway, x->call->who.team, x->node); /* it may have taken long */
}

static void forward_switched(void *user)
{
	struct call *c = ((struct gateway_call *)user)->call;

	c->endless = 1;
	c->req->on_eof = NULL; /* the end of one direction only: on_body_end() handles it */
}

/* The row of a new box, and the id of a new snapshot, are for this gateway. */
static const char *forward_returns(void *user, const struct http_header *h)
{
	(void)user;
	return strcmp(h->name, FORWARD_BOX) == 0 || strcmp(h->name, FORWARD_SNAPSHOT) == 0
		       ? NULL
		       : h->value;
}

static void forward_box_stored(void *user, const char *team)
{
	shares_spend(((struct gateway *)user)->shares, team);
}

/* A new box is a part of the share of this gateway until its row is stored. */
static void forward_add_box(struct gateway_call *x, int status, const char *row)
{
	int is_new = x->has_share && status == 201;

	x->has_share -= is_new;
	directory_add_box(x->gateway->directory, x->node, row, x->call->who.team,
			  is_new ? forward_box_stored : NULL, x->gateway);
}

/* "ID NAME": the node has packed a new snapshot. */
static void forward_keep_snapshot(struct gateway_call *x, const char *text)
{
	char id[ID_MAX + 1];
	size_t n = strcspn(text, " ");

	snprintf(id, sizeof(id), "%.*s", (int)n, text);
	if (id_valid(id) && n <= ID_MAX)
		gateway_objects_keep(x->gateway->objects,
				     &(struct objects_what){ .snapshot = id,
							     .team = x->call->who.team,
							     .name = text + n + (text[n] == ' '),
							     .owner = x->node });
}

/* The path of a snapshot that the node has deleted. */
static void forward_forget_snapshot(struct gateway_call *x, int status)
{
	static const char *const paths[] = { "/v1/snapshots/", "/snapshots/", "/templates/" };
	const struct http_req *r = x->call->req;
	char text[STORE_NAME + 1];

	if (status < 200 || status > 299 || strcmp(r->method, "DELETE") != 0)
		return;
	for (unsigned i = 0; i < ARRAY_LEN(paths); i++) {
		size_t n = strlen(paths[i]);

		if (strncmp(r->path, paths[i], n) != 0)
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(r->path + n, ":/"), r->path + n);
		gateway_objects_forget(x->gateway->objects, x->call->who.team, text);
	}
}

static const char *forward_judge(void *user, const struct http_answer *a)
{
	struct gateway_call *x = user;
	const char *why = x->judge ? x->judge(x, a) : NULL;

	for (unsigned i = 0; x->gateway->directory && i < a->nheaders; i++)
		if (strcmp(a->headers[i].name, FORWARD_BOX) == 0)
			forward_add_box(x, a->status, a->headers[i].value);

	for (unsigned i = 0; x->gateway->objects && i < a->nheaders; i++)
		if (strcmp(a->headers[i].name, FORWARD_SNAPSHOT) == 0 && a->status == 201)
			forward_keep_snapshot(x, a->headers[i].value);
	forward_forget_snapshot(x, a->status);
	x->is_refused = why != NULL;
	return why;
}

static void forward_relay(struct gateway_call *x, struct upstream_link take_link)
{
	struct http_req *r = x->call->req;
	char extra[IDENTITY_TEXT + 32] = "";
	const struct relay_rules rules = { .extra = extra,
					   .passes_tcp = 1,
					   .sends = forward_sends,
					   .returns = forward_returns,
					   .judge = forward_judge,
					   .failed = forward_failed,
					   .spare = forward_spare,
					   .switched = forward_switched,
					   .user = x,
					   .head_ms = FORWARD_HEAD_MS };

	if (x->identity[0])
		snprintf(extra, sizeof(extra), "Atoll-Identity: %s\r\n", x->identity);
	x->has_link = 1;
	settle_note(x->gateway, x->call->who.team, x->node);
	x->gateway->figures.forwarded++;
	x->relay = relay_new(r, x->call->api->loop, take_link, &rules);
	if (x->body) {
		relay_body(x->relay, x->body->p, x->body->len);
		relay_body_end(x->relay);
	} else if (r->length == 0 && !r->upgrade && !r->tunnel) {
		relay_body_end(x->relay); /* a request that is repeated has ended already */
	}
	http_resume(r);
}

static void forward_connected(struct tunnel_ask *a, const struct upstream_link *take_link)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, ask);

	if (take_link)
		forward_relay(x, *take_link);
	else if (x->refused)
		x->refused(x);
	else
		forward_fail_unreachable(x, a->why);
}

/* ---- the limits of the team ---- */

static void forward_granted(struct grants_ask *a, int result)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, grant);

	if (result)
		forward_begin(x, (unsigned)x->granted_node);
	else
		quota_refuse_unknown(x->call);
}

/* 1: forward_begin() follows, when the node has a part of the limits of the team. */
static int forward_waits_for_grant(struct gateway_call *x, unsigned node)
{
	const struct http_req *r = x->call->req;
	static const char *const harmless[] = { "GET", "HEAD", "DELETE" };

	for (unsigned i = 0; i < ARRAY_LEN(harmless); i++)
		if (strcmp(r->method, harmless[i]) == 0 && !r->upgrade)
			return 0;
	if (!x->gateway->grants || !x->identity[0] || x->granted_node == (int)node)
		return 0;
	x->granted_node = (int)node;
	x->grant.done = forward_granted;
	return !grants_take(x->gateway->grants, &x->grant, x->call->who.team, node);
}

/* ---- the client ---- */

static void forward_on_body(struct http_req *r, const char *bytes, size_t n)
{
	if (forward_of(r)->relay)
		relay_body(forward_of(r)->relay, bytes, n);
}

static void forward_on_body_end(struct http_req *r)
{
	struct gateway_call *x = forward_of(r);

	if (x->relay && (r->length || r->upgrade || r->tunnel))
		relay_body_end(x->relay);
}

static void forward_on_drain(struct http_req *r)
{
	if (forward_of(r)->relay)
		relay_drain(forward_of(r)->relay);
}

/* A client that disconnects no longer needs the answer; the node must notice that. */
static void forward_on_eof(struct http_req *r)
{
	http_abort(r);
}

void forward_hold_body(struct gateway_call *x)
{
	struct http_req *r = x->call->req;

	r->on_body = forward_on_body;
	r->on_body_end = forward_on_body_end;
	http_want_body(r, HTTP_BODY_STREAM, 0);
	http_pause(r);
}

void forward_begin(struct gateway_call *x, unsigned node)
{
	struct upstream_link link = { .fd = -1 };
	struct http_req *r = x->call->req;
	int rc;

	if (x->target.shape == TARGET_VOLUME) {
		volume_begin(x, node);
		return;
	}
	if (secrets_begin(x, node) || forward_waits_for_grant(x, node))
		return;
	r->on_drain = forward_on_drain;
	r->on_eof = forward_on_eof;
	x->node = node;
	x->is_refused = 0;
	x->ask = (struct tunnel_ask){ .done = forward_connected };
	timer_init(&x->again, x->call->api->loop, forward_again);
	rc = tunnels_take(x->gateway->tunnels, node, &x->ask, &link);
	if (rc > 0) {
		forward_relay(x, link);
	} else if (rc < 0 && x->refused) {
		x->is_refused = 1;
		timer_set(&x->again, 0);
	} else if (rc < 0) {
		forward_fail_unreachable(x, x->ask.why);
	}
}

void forward_end(struct gateway_call *x)
{
	grants_cancel(&x->grant);
	forward_release(x);
	timer_fini(&x->again);
}
