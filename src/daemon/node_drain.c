/* node_drain.c - see node_drain.h. */
#include "daemon/node_drain.h"
#include "base/cleanup.h"
#include "cli/api_client.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { NODE_DRAIN_LOOK_MS = 500 };

static long long node_drain_boxes(const json_t *node)
{
	const json_t *figures = json_object_get(node, "figures");

	return (long long)json_integer_value(json_object_get(figures, "boxes"));
}

/* Until the node has no boxes, and its gateway knows that it drains. */
static json_t *node_drain_wait(struct api_client *r, const char *which, json_t *take_node)
{
	const struct timespec pause = { .tv_nsec = NODE_DRAIN_LOOK_MS * 1000000L };
	long long last = -1;

	for (;;) {
		const json_t *figures = json_object_get(take_node, "figures");
		long long boxes = node_drain_boxes(take_node);

		if (!boxes && json_is_true(json_object_get(figures, "draining")))
			return take_node;
		if (boxes != last && !r->cli->quiet && !r->cli->json)
			fprintf(stderr, "atoll: node %s has %lld box%s\n", which, boxes,
				boxes == 1 ? "" : "es");
		last = boxes;
		nanosleep(&pause, NULL);
		json_decref(take_node);
		take_node = api_client_get(r, "/v1/nodes/%s", which);
		if (!take_node)
			return NULL;
	}
}

static long long node_drain_move_count(const json_t *node, const char *key)
{
	return (long long)json_integer_value(json_object_get(json_object_get(node, "moves"), key));
}

/* Until all boxes have moved that can. The order is repeated: its answer has the boxes that stay. */
static json_t *node_drain_move(struct api_client *r, const char *which, const char *path)
{
	const struct timespec pause = { .tv_nsec = NODE_DRAIN_LOOK_MS * 1000000L };
	long long last = -1;

	for (;;) {
		json_t *node = api_client_json(r, "POST", path, json_pack("{sb}", "move", 1));
		long long moving = node_drain_move_count(node, "moving");

		if (!node || !moving)
			return node;
		if (moving != last && !r->cli->quiet && !r->cli->json)
			fprintf(stderr, "atoll: %lld box%s of node %s move%s to other nodes\n",
				moving, moving == 1 ? "" : "es", which, moving == 1 ? "s" : "");
		last = moving;
		json_decref(node);
		nanosleep(&pause, NULL);
	}
}

static void node_drain_print_staying(const json_t *node)
{
	const json_t *boxes = json_object_get(json_object_get(node, "moves"), "boxes"), *x;
	long long more = node_drain_move_count(node, "staying") - (long long)json_array_size(boxes);
	size_t i;

	json_array_foreach(boxes, i, x)
	{
		const char *name = json_string_value(json_object_get(x, "name"));

		fprintf(stderr, "atoll: %s%s%s stays: %s\n",
			json_string_value(json_object_get(x, "box")), *name ? " " : "", name,
			json_string_value(json_object_get(x, "reason")));
	}
	if (more > 0)
		fprintf(stderr, "atoll: %lld further boxes stay\n", more);
}

enum { NODE_DRAIN_WAITS = 1, NODE_DRAIN_MOVES = 2 };

static int node_drain_order(struct api_client *r, const struct args *a, int how)
{
	const char *what = a->words[0], *which = a->words[1];
	auto_free char *path = api_client_path("/v1/nodes/%s/%s", which, what);
	json_t *node = how & NODE_DRAIN_MOVES ? node_drain_move(r, which, path)
					      : api_client_json(r, "POST", path, NULL);

	if (node && !r->cli->json && !r->cli->quiet)
		node_drain_print_staying(node);
	if (node && how & NODE_DRAIN_WAITS)
		node = node_drain_wait(r, which, node);
	if (!node)
		return r->status;
	if (r->cli->json)
		api_client_print(node);
	else if (!r->cli->quiet)
		fprintf(stderr, "atoll: node %s %s; it has %lld box%s\n", which,
			strcmp(what, "drain") == 0 ? "takes no new boxes" : "takes new boxes again",
			node_drain_boxes(node), node_drain_boxes(node) == 1 ? "" : "es");
	json_decref(node);
	return 0;
}

static int node_drain_only(struct api_client *r, const struct args *a)
{
	return node_drain_order(r, a, 0);
}

static int node_drain_and_wait(struct api_client *r, const struct args *a)
{
	return node_drain_order(r, a, NODE_DRAIN_WAITS);
}

static int node_drain_and_move(struct api_client *r, const struct args *a)
{
	return node_drain_order(r, a, NODE_DRAIN_MOVES);
}

static int node_drain_move_and_wait(struct api_client *r, const struct args *a)
{
	return node_drain_order(r, a, NODE_DRAIN_MOVES | NODE_DRAIN_WAITS);
}

int node_drain(const struct cli *cli, const struct args *a, int wait, int move)
{
	return api_client_command(cli, a,
				  wait && move ? node_drain_move_and_wait
				  : move       ? node_drain_and_move
				  : wait       ? node_drain_and_wait
					       : node_drain_only);
}

/* ---- lists ---- */

static void node_drain_merge(json_t *machine, const json_t *nodes)
{
	json_t *node;
	size_t i;

	json_array_foreach(nodes, i, node)
	{
		const json_t *figures = json_object_get(node, "figures");

		if (json_integer_value(json_object_get(node, "number")) !=
			    json_integer_value(json_object_get(machine, "number")) ||
		    !json_is_object(figures))
			continue;
		json_object_set(machine, "draining", json_object_get(figures, "draining"));
		json_object_set(machine, "boxes", json_object_get(figures, "boxes"));
		json_object_set(machine, "load", json_object_get(figures, "load"));
	}
}

void node_drain_add_figures(const struct cli *cli, json_t *machines)
{
	struct api_client r = { 0 };
	json_t *all, *machine;
	size_t i;

	if (api_client_open(&r, cli) != 0)
		return;
	all = api_client_get(&r, "/v1/nodes");
	json_array_foreach(machines, i, machine)
		node_drain_merge(machine, json_object_get(all, "items"));
	json_decref(all);
	api_client_close(&r);
}
