/* find.c - which node has the object of this name. The coordinator knows names of boxes that gateways created; for others
 * all nodes are asked, and a name that two nodes have is the older one's, so that all gateways use the same. */
#include "gateway/gateway_call.h"

#include <stdlib.h>
#include <string.h>

static const char *find_target(void *user, unsigned node)
{
	(void)node;
	return ((struct gateway_call *)user)->path;
}

int find_oldest(const struct fanout *f)
{
	const char *oldest = NULL;
	int node = -1;

	for (unsigned i = 0; i < f->n; i++) {
		const char *at = json_string_value(json_object_get(f->v[i].doc, "created"));

		if (f->v[i].status != 200 || !at)
			continue;
		if (node < 0 || strcmp(at, oldest) < 0) {
			node = (int)f->v[i].request.node;
			oldest = at;
		}
	}
	return node;
}

/* The answer of a node that knows when and why the box ended; NULL: none does. */
static json_t *find_ended(const struct fanout *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		const json_t *error = json_object_get(f->v[i].doc, "error");
		const char *code = json_string_value(json_object_get(error, "code"));

		if (f->v[i].status == 404 && code && strcmp(code, "box_ended") == 0)
			return json_incref(f->v[i].doc);
	}
	return NULL;
}

static void find_done(struct fanout *f)
{
	struct gateway_call *x = f->user;
	int node = find_oldest(f);

	json_decref(x->ended);
	x->ended = node < 0 ? find_ended(f) : NULL;
	find_end(x);
	x->found(x, node);
}

static void find_everywhere(struct gateway_call *x)
{
	x->fanout = (struct fanout){ .done = find_done, .user = x };
	fanout_begin(&x->fanout, x->gateway->tunnels, x->call->api->loop, find_target, x->identity);
}

/* A name that the coordinator does not have, or cannot tell, may exist: PATCH gives names, too. */
static void find_named(struct names_ask *a, const struct names_answer *answer, const struct err *e)
{
	struct gateway_call *x = loop_owner(a, struct gateway_call, naming);

	if (!e && answer->has_owner)
		x->found(x, (int)answer->node);
	else
		find_everywhere(x);
}

void find_begin(struct gateway_call *x, const char *collection, const char *object,
		void (*found)(struct gateway_call *x, int node))
{
	struct names_key k;
	int node = -1;

	find_end(x);
	x->path = buf_text("%s/%s", collection, object);
	x->found = found;
	if (!x->gateway->names || strcmp(collection, "/v1/boxes") != 0 ||
	    !gateway_leases_is_valid(x->gateway->leases) ||
	    !names_key_set(&k, 'n', x->call->who.team, object, "")) {
		find_everywhere(x);
		return;
	}
	node = names_cached(x->gateway->names, &k);
	if (node >= 0) {
		x->found(x, node);
		return;
	}
	x->naming.done = find_named;
	names_begin(x->gateway->names, &x->naming, COORDINATOR_FIND_NAME, &k, 0, 0, NULL);
}

void find_end(struct gateway_call *x)
{
	names_cancel(&x->naming);
	fanout_free(&x->fanout);
	free(x->path);
	x->path = NULL;
}
