/* find.c - which node has the object of this name. All nodes are asked; a name that two nodes have is the
 * older one's, so that all gateways use the same. */
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

void find_begin(struct gateway_call *x, const char *collection, const char *object,
		void (*found)(struct gateway_call *x, int node))
{
	find_end(x);
	x->path = buf_text("%s/%s", collection, object);
	x->found = found;
	x->fanout = (struct fanout){ .done = find_done, .user = x };
	fanout_begin(&x->fanout, x->gateway->tunnels, x->call->api->loop, find_target, x->identity);
}

void find_end(struct gateway_call *x)
{
	fanout_free(&x->fanout);
	free(x->path);
	x->path = NULL;
}
