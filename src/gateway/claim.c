/* claim.c - the names of a new box: they are claimed for a node before the node gets the request.
 *
 *   node chosen -> CLAIM_NAME of each key -> forward -> 2xx: the id of the box; else RELEASE_NAME
 *                  `-> it belongs to another node -> its box has ended: RELEASE_NAME, again
 *                                                 -> that node gets the request, and rejects it or returns its box
 *
 * A claim that is not released (its client or this gateway has left) belongs to its node: the next request for the name
 * goes there, and the node decides. */
#include "gateway/gateway_call.h"

#include <stdio.h>
#include <string.h>

enum { CLAIM_ROUNDS = 4, CLAIM_WAIT_MS = 100, CLAIM_WAITS = 20 };

static void claim_next(struct gateway_call *x);

void claim_read(struct gateway_call *x, const char *name, const char *session, const char *template)
{
	struct claim *c = &x->claim;

	if (!x->gateway->names || strcmp(x->call->req->path, "/v1/boxes") != 0)
		return;
	if (name && names_key_set(&c->keys[c->nkeys], 'n', x->call->who.team, name, ""))
		c->nkeys++;
	if (session && names_key_set(&c->keys[c->nkeys], 's', x->call->who.team, session,
				     template ? template : "base"))
		c->nkeys++;
}

static void claim_fail(struct gateway_call *x, const char *why)
{
	http_set(x->call->req, "Retry-After", "1");
	call_error(
		x->call, 503, "unavailable", "names and sessions cannot be given at the moment",
		why,
		"try again, or create the box without a name; atoll cluster check examines the database");
}

/* ---- a name that another node has ---- */

static void claim_forward_to_owner(struct gateway_call *x)
{
	x->judge = NULL;
	x->refused = NULL;
	x->claim.nkeys = 0;
	forward_begin(x, x->claim.owner);
}

static void claim_released(struct names_ask *a, const struct names_answer *answer,
			   const struct err *e)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, claim.ask);

	(void)answer;
	if (e && e->kind == ERR_SYS)
		claim_fail(x, e->msg);
	else
		claim_next(x);
}

static void claim_looked(struct node_request *r, int status, const char *body, size_t n,
			 const char *why)
{
	struct gateway_call *x = loop_owner(r, struct gateway_call, claim.look);
	struct claim *c = &x->claim;
	json_t *doc = body ? json_loadb(body, n, 0, NULL) : NULL;
	const char *state = json_string_value(json_object_get(doc, "state"));
	int ended = status == 404 || (status == 200 && state && !strcmp(state, "deleted"));

	(void)why;
	json_decref(doc);
	if (ended && c->rounds++ < CLAIM_ROUNDS) {
		c->ask.done = claim_released;
		names_begin(x->gateway->names, &c->ask, COORDINATOR_RELEASE_NAME, &c->keys[c->at],
			    c->owner, 0, c->box);
	} else {
		claim_forward_to_owner(x);
	}
}

static void claim_look(struct gateway_call *x, const struct names_answer *a)
{
	struct claim *c = &x->claim;
	const struct tunnel_node *t = tunnels_find(x->gateway->tunnels, a->node);
	char target[NAMES_TEXT + 16];

	c->owner = a->node;
	snprintf(c->box, sizeof(c->box), "%s", a->box);
	if (!t || t->state != TUNNEL_UP || !strcmp(a->box, NAMES_CLAIM)) {
		claim_forward_to_owner(x);
		return;
	}
	snprintf(target, sizeof(target), "/v1/boxes/%s", a->box);
	c->look = (struct node_request){ .done = claim_looked };
	node_request_send(&c->look, x->gateway->tunnels, x->call->api->loop, a->node,
			  &(struct node_request_what){ .target = target, .identity = x->identity },
			  FANOUT_MS);
}

/* ---- claims ---- */

static void claim_answered(struct names_ask *a, const struct names_answer *answer,
			   const struct err *e)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, claim.ask);
	struct claim *c = &x->claim;

	if (e && e->kind == ERR_CONFLICT && x->refused) { /* the node was declared lost meanwhile */
		x->refused(x);
	} else if (e) {
		claim_fail(x, e->msg);
	} else if (answer->done) {
		c->at++;
		claim_next(x);
	} else if (answer->has_owner) {
		claim_look(x, answer);
	} else {
		claim_fail(x, "the owner of the name changed meanwhile");
	}
}

static void claim_again(struct timer *t)
{
	claim_next(loop_owner(t, struct gateway_call, claim.again));
}

/* The tunnel of the node has ended a moment ago: a restart of its daemon, or this gateway's lease had lapsed. Boxes without
 * names wait for such a node, too. */
static void claim_wait(struct gateway_call *x)
{
	struct claim *c = &x->claim;

	if (c->waits++ == 0)
		timer_init(&c->again, x->call->api->loop, claim_again);
	if (c->waits <= CLAIM_WAITS)
		timer_set(&c->again, CLAIM_WAIT_MS);
	else if (x->refused)
		x->refused(x); /* another node */
	else
		claim_fail(x, "the node of the name is not connected");
}

static void claim_next(struct gateway_call *x)
{
	struct claim *c = &x->claim;
	const struct tunnel_node *t = tunnels_find(x->gateway->tunnels, c->node);

	if (c->at == c->nkeys) {
		forward_begin(x, c->node);
		return;
	}
	if (!gateway_leases_is_valid(x->gateway->leases)) {
		const char *trouble = gateway_leases_trouble(x->gateway->leases);

		claim_fail(x, *trouble ? trouble : "this gateway has no lease of the coordinator");
		return;
	}
	if (!t || !t->greeted) {
		claim_wait(x);
		return;
	}
	c->ask.done = claim_answered;
	names_begin(x->gateway->names, &c->ask, COORDINATOR_CLAIM_NAME, &c->keys[c->at], c->node,
		    (int64_t)t->epoch, NAMES_CLAIM);
}

void claim_begin(struct gateway_call *x, unsigned node)
{
	x->claim.node = node;
	x->claim.at = 0;
	claim_next(x);
}

/* The answer of the node: the names are the new box's, or free again. */
void claim_judge(struct gateway_call *x, const struct http_answer *a)
{
	static const char path[] = "/v1/boxes/";
	struct claim *c = &x->claim;
	const char *made = http_answer_header(a, "location");

	if (c->at < c->nkeys || !c->nkeys)
		return;
	for (unsigned i = 0; i < c->nkeys; i++)
		if (a->status < 300 && made && !strncmp(made, path, sizeof(path) - 1))
			names_made(x->gateway->names, &c->keys[i], c->node,
				   made + sizeof(path) - 1);
		else if (a->status >= 400)
			names_release(x->gateway->names, &c->keys[i], c->node, NAMES_CLAIM);
	c->at = 0;
}

void claim_end(struct gateway_call *x)
{
	timer_fini(&x->claim.again);
	names_cancel(&x->claim.ask);
	node_request_cancel(&x->claim.look);
}
