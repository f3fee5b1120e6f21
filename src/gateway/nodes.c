/* nodes.c - see nodes.h. */
#include "gateway/nodes.h"
#include "gateway/gateway.h"
#include "record/record.h"

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

static json_t *nodes_one(const struct tunnel_node *n)
{
	return json_pack("{sI ss ss so ss so s{sI sI sI}}", "number", (json_int_t)n->number, "name",
			 n->name, "state", tunnel_state_name(n->state), "since",
			 json_time((uint64_t)n->since_unix_ms * 1000000), "version", n->version,
			 "figures", n->heartbeats ? nodes_figures(&n->figures) : json_null(),
			 "connections", "idle", (json_int_t)n->idle, "busy", (json_int_t)n->busy,
			 "waiting", (json_int_t)n->waiting);
}

json_t *gateway_nodes_json(struct api *a)
{
	json_t *all = json_array();

	for (const struct tunnel_node *n = tunnels_next(a->gateway->tunnels, NULL); n;
	     n = tunnels_next(a->gateway->tunnels, n))
		json_array_append_new(all, nodes_one(n));
	return all;
}
