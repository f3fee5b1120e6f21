/* box_named.c - see box_named.h. The node that the id names is asked, or all nodes, as the caller; of two boxes of one name
 * the older one counts. */
#include "gateway/box_named.h"
#include "api/identity.h"
#include "gateway/gateway.h"
#include "gateway/gateway_call.h"
#include "gateway/moved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct box_named {
	struct fanout fanout;
	struct call *call;
	call_box_found *done;
	int node; /* -1: all */
	char path[STORE_NAME + 16];
};

static void box_named_drop(struct call *c)
{
	struct box_named *x = c->state;

	c->state = NULL;
	fanout_free(&x->fanout);
	free(x);
}

static const char *box_named_target(void *user, unsigned node)
{
	const struct box_named *x = user;

	return x->node < 0 || x->node == (int)node ? x->path : NULL;
}

static void box_named_answered(struct fanout *f)
{
	struct box_named *x = loop_owner(f, struct box_named, fanout);
	struct call *c = x->call;
	call_box_found *done = x->done;
	char id[ID_MAX + 1] = "", missing[CONTROL_NAME] = "";
	int node = find_oldest(f);

	for (unsigned i = 0; i < f->n; i++) {
		const json_t *doc = f->v[i].doc;
		const char *text = json_string_value(json_object_get(doc, "id")),
			   *state = json_string_value(json_object_get(doc, "state"));

		if (!f->v[i].status)
			snprintf(missing, sizeof(missing), "%s", f->v[i].name);
		else if ((int)f->v[i].request.node == node && text && id_valid(text) && state &&
			 strcmp(state, "deleted") != 0)
			snprintf(id, sizeof(id), "%s", text);
	}
	c->drop = NULL;
	box_named_drop(c);
	if (!id[0] && missing[0]) {
		http_set(c->req, "Retry-After", "1");
		call_error(c, 503, "unreachable", "a node that may have this box does not answer",
			   missing, "atoll node ls");
		return;
	}
	done(c, id);
}

/* -1: the name is no id of a node. */
static int box_named_node(const struct gateway *g, const char *name)
{
	int node = gateway_moved_node(g->moved, name, strlen(name));

	return node >= 0 && tunnels_find(g->tunnels, (unsigned)node) ? node : -1;
}

void gateway_box_named(struct call *c, const char *name, call_box_found *done)
{
	struct box_named *x = calloc(1, sizeof(*x));
	struct identity who = { .principal = c->who };
	char identity[IDENTITY_TEXT];

	if (!x)
		abort();
	*x = (struct box_named){ .call = c, .done = done };
	if (!target_is_plain_name(name)) { /* no box has it */
		free(x);
		done(c, "");
		return;
	}
	x->node = box_named_node(c->api->gateway, name);
	snprintf(x->path, sizeof(x->path), "/v1/boxes/%s", name);
	identity_text(&who, identity);
	x->fanout = (struct fanout){ .done = box_named_answered, .user = x };
	c->state = x;
	c->drop = box_named_drop;
	fanout_begin(&x->fanout, c->api->gateway->tunnels, c->api->loop, box_named_target,
		     identity);
}
