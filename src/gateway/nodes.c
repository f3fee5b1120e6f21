/* nodes.c - see nodes.h. */
#include "gateway/nodes.h"
#include "gateway/gateway.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

static json_t *nodes_figures(const struct control_figures *f)
{
	json_t *labels = json_array();

	for (unsigned i = 0; i < f->nlabels; i++)
		json_array_append_new(labels, json_string(f->labels[i]));
	return json_pack("{sf sI sI sI sI sI sI sI sb ss so}", "load",
			 (double)f->load / CONTROL_LOAD_FULL, "cpus", (json_int_t)f->cpus,
			 "memory_total", (json_int_t)f->memory_total, "memory_free",
			 (json_int_t)f->memory_free, "boxes", (json_int_t)f->boxes, "boxes_max",
			 (json_int_t)f->boxes_most, "pool", (json_int_t)f->pool, "templates",
			 (json_int_t)f->ntemplates, "draining", f->draining, "arch", f->arch,
			 "labels", labels);
}

/* t: NULL: never connected to this gateway. */
static json_t *nodes_one(unsigned number, const char *name, const char *state, int64_t since_ms,
			 const struct tunnel_node *t)
{
	static const struct tunnel_node none;
	const struct tunnel_node *n = t ? t : &none;

	return json_pack("{sI ss ss so ss so s{sI sI sI}}", "number", (json_int_t)number, "name",
			 name, "state", state, "since", json_time((uint64_t)since_ms * 1000000),
			 "version", n->version, "figures",
			 n->heartbeats ? nodes_figures(&n->figures) : json_null(), "connections",
			 "idle", (json_int_t)n->idle, "busy", (json_int_t)n->busy, "waiting",
			 (json_int_t)n->waiting);
}

json_t *gateway_node_json(const struct tunnel_node *n)
{
	return nodes_one(n->number, n->name, tunnel_state_name(n->state), n->since_unix_ms, n);
}

struct tunnel_node *gateway_find_node(struct tunnels *t, const char *which)
{
	for (struct tunnel_node *n = tunnels_next(t, NULL); n; n = tunnels_next(t, n)) {
		char number[16];

		snprintf(number, sizeof(number), "%u", n->number);
		if (!strcmp(which, number) || !strcmp(which, n->name))
			return n;
	}
	return NULL;
}

json_t *gateway_nodes_json(struct api *a)
{
	const struct gateway_leases *leases = a->gateway->leases;
	json_t *all = json_array();

	for (const struct node_status *s = gateway_leases_next(leases, NULL); s;
	     s = gateway_leases_next(leases, s))
		json_array_append_new(all, nodes_one(s->number, s->name, node_state_name(s->state),
						     s->since_unix_ms,
						     tunnels_find(a->gateway->tunnels, s->number)));
	return all;
}

/* ---- how many are needed ---- */

/* *out_emptiest: the node with the fewest boxes that takes boxes; NULL: none does. */
static struct scale_result nodes_scale(struct gateway *g, struct scale_figures *f,
				       const struct tunnel_node **out_emptiest)
{
	*f = (struct scale_figures){ .least = g->nodes_min, .boot_ms = g->node_boot_ms };
	*out_emptiest = NULL;
	for (const struct tunnel_node *n = tunnels_next(g->tunnels, NULL); n;
	     n = tunnels_next(g->tunnels, n)) {
		if (n->state != TUNNEL_UP || !n->heartbeats)
			continue;
		/* The load is that of memory, processors or boxes, whichever is the largest part. */
		f->reserved += (uint64_t)((double)n->figures.memory_total * n->figures.load /
					  CONTROL_LOAD_FULL);
		if (n->figures.draining)
			continue;
		f->ready++;
		f->capacity += n->figures.memory_total;
		if (!*out_emptiest || n->figures.boxes < (*out_emptiest)->figures.boxes)
			*out_emptiest = n;
	}
	return scale_wanted(&g->scale, f, loop_now_ms());
}

unsigned gateway_nodes_wanted(struct gateway *g)
{
	const struct tunnel_node *emptiest;
	struct scale_figures f;

	return nodes_scale(g, &f, &emptiest).wanted;
}

json_t *gateway_scale_json(struct api *a)
{
	const struct tunnel_node *emptiest;
	struct scale_figures f;
	struct scale_result r = nodes_scale(a->gateway, &f, &emptiest);

	return json_pack("{sI sI ss? ss}", "ready", (json_int_t)f.ready, "wanted",
			 (json_int_t)r.wanted, "drain",
			 f.ready > r.wanted && emptiest ? emptiest->name : NULL, "reason",
			 r.reason);
}
