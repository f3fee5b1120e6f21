/* copies_lists.c - see copies_lists.h. */
#include "gateway/copies_lists.h"
#include "base/log.h"
#include "gateway/restart.h"

#include <stdlib.h>
#include <string.h>

enum { COPIES_REST_MS = 1000, COPIES_LIST_MS = 5000 };

struct copies_lists {
	struct loop *loop;
	struct tunnels *tunnels;
	struct copies_node *nodes;
	int has_news;
};

const char *copies_lists_text(const json_t *row, const char *key)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : "";
}

/* ---- what the nodes have ---- */

static void copies_lists_arrived(struct node_request *r, int status, const char *body, size_t n,
				 const char *why)
{
	struct copies_node *c = loop_owner(r, struct copies_node, request);
	json_t *doc = status == 200 ? json_loadb(body, n, JSON_REJECT_DUPLICATES, NULL) : NULL;

	c->is_asking = 0;
	if (!json_is_array(json_object_get(doc, "held")) ||
	    !json_is_array(json_object_get(doc, "wanted"))) {
		log_warn("the copies of a node are not known", LOG_U("node", c->number),
			 LOG_I("status", status), LOG_S("why", why ? why : ""));
		json_decref(doc);
		c->rest_ms = loop_now_ms() + COPIES_REST_MS;
		return;
	}
	json_decref(c->list);
	c->list = doc;
	c->seen = c->asked;
	c->all->has_news = 1;
}

static struct copies_node *copies_lists_node(struct copies_lists *x, unsigned number)
{
	struct copies_node *c = x->nodes;

	while (c && c->number != number)
		c = c->next;
	return c;
}

static void copies_lists_ask(struct copies_lists *x, const struct tunnel_node *n)
{
	struct copies_node *c = copies_lists_node(x, n->number);
	char identity[128];

	if (!c) {
		if (!n->figures.copies)
			return;
		c = calloc(1, sizeof(*c));
		if (!c)
			abort();
		*c = (struct copies_node){ .next = x->nodes, .all = x, .number = n->number };
		x->nodes = c;
	}
	if (c->is_asking || c->seen == n->figures.copies || loop_now_ms() < c->rest_ms)
		return;
	c->asked = n->figures.copies;
	c->is_asking = 1;
	c->request = (struct node_request){ .done = copies_lists_arrived };
	restart_identity("default", identity);
	node_request_send(&c->request, x->tunnels, x->loop, n->number,
			  &(struct node_request_what){ .target = "/cluster/copies",
						       .identity = identity },
			  COPIES_LIST_MS);
}

static int copies_lists_is_up(const struct copies_lists *x, unsigned number)
{
	const struct tunnel_node *n = tunnels_find(x->tunnels, number);

	return n && n->state == TUNNEL_UP;
}

const json_t *copies_lists_of(const struct copies_lists *x, unsigned number, const char *which)
{
	const struct copies_node *c = x->nodes;

	while (c && c->number != number)
		c = c->next;
	return c && copies_lists_is_up(x, number) ? json_object_get(c->list, which) : NULL;
}

const json_t *copies_lists_find(const json_t *list, const char *key, const char *text)
{
	const json_t *row;
	size_t i;

	json_array_foreach(list, i,
			   row) if (strcmp(copies_lists_text(row, key), text) == 0) return row;
	return NULL;
}

unsigned copies_lists_count(const struct copies_lists *x, const char *snapshot, unsigned but)
{
	unsigned n = 0;

	for (const struct copies_node *c = x->nodes; c; c = c->next)
		n += c->number != but &&
		     copies_lists_find(copies_lists_of(x, c->number, "held"), "snapshot", snapshot);
	return n;
}

int copies_lists_read(struct copies_lists *x)
{
	struct tunnel_node *n = NULL;
	int has_news = x->has_news;

	while ((n = tunnels_next(x->tunnels, n)))
		if (n->state == TUNNEL_UP && n->heartbeats)
			copies_lists_ask(x, n);
	x->has_news = 0;
	return has_news;
}

const struct copies_node *copies_lists_next(const struct copies_lists *x,
					    const struct copies_node *after)
{
	return after ? after->next : x->nodes;
}

struct copies_lists *copies_lists_new(struct loop *l, struct tunnels *t)
{
	struct copies_lists *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	*x = (struct copies_lists){ .loop = l, .tunnels = t };
	return x;
}

void copies_lists_free(struct copies_lists *x)
{
	if (!x)
		return;
	while (x->nodes) {
		struct copies_node *c = x->nodes;

		x->nodes = c->next;
		node_request_cancel(&c->request);
		json_decref(c->list);
		free(c);
	}
	free(x);
}
