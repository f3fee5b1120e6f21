/* gather.c - one answer from the whole answers of all nodes: lists without pages, figures of sandboxes, numbers that are
 * added. Nodes that did not answer are named in `incomplete`, or counted in the header Atoll-Incomplete. */
#include "gateway/gateway_call.h"
#include "record/changes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GATHER_EVENTS = 100 }; /* of a node: what E2B permits per request */

struct gateway_gather {
	struct fanout fanout;
	struct gateway_call *call;
	struct buf target;
	unsigned offset, limit; /* TARGET_EVENTS */
	int oldest_first;
};

/* ---- what is merged ---- */

/* A template of the server has the same id on all nodes; a node that has built it comes before others. */
static const char *gather_id(const json_t *item)
{
	const char *id = json_string_value(json_object_get(item, "id"));

	return id ? id : json_string_value(json_object_get(item, "templateID"));
}

static const char *gather_name(const json_t *item)
{
	const char *name = json_string_value(json_object_get(item, "name"));

	return name ? name : json_string_value(json_array_get(json_object_get(item, "aliases"), 0));
}

static int gather_is_common(const json_t *item)
{
	const char *id = gather_id(item), *name = gather_name(item);

	return json_is_true(json_object_get(item, "builtin")) ||
	       json_is_true(json_object_get(item, "shipped")) ||
	       (id && name && strcmp(id, name) == 0);
}

static int gather_has(const json_t *all, const json_t *item)
{
	const char *name = gather_name(item);
	const json_t *other;
	size_t i;

	json_array_foreach(all, i, other)
	{
		const char *had = gather_name(other);

		if (name && had && strcmp(name, had) == 0)
			return 1;
	}
	return 0;
}

static void gather_items(json_t *all, const json_t *doc, int common)
{
	const json_t *items = json_is_array(doc) ? doc : json_object_get(doc, "items");
	json_t *item;
	size_t i;

	json_array_foreach(items, i, item) if (gather_is_common(item) == common &&
					       (!common || !gather_has(all, item)))
		json_array_append(all, item);
}

static json_t *gather_add_items(const struct fanout *f)
{
	json_t *all = json_array();
	int is_page = 0;

	for (unsigned i = 0; i < f->n; i++)
		gather_items(all, f->v[i].doc, 0);
	for (unsigned i = 0; i < f->n; i++) {
		gather_items(all, f->v[i].doc, 1);
		is_page |= json_is_object(f->v[i].doc);
	}
	return is_page ? json_pack("{s:o, s:n}", "items", all, "next") : all;
}

static json_t *gather_add_objects(const struct fanout *f)
{
	json_t *all = json_object();

	for (unsigned i = 0; i < f->n; i++)
		json_object_update(all, json_object_get(f->v[i].doc, "sandboxes"));
	return json_pack("{s:o}", "sandboxes", all);
}

/* The first document; its numbers are sums, but for the time. */
static void gather_sum(json_t *sum, const json_t *doc)
{
	const char *name;
	json_t *v;

	if (json_is_array(sum)) {
		gather_sum(json_array_get(sum, 0), json_array_get(doc, 0));
		return;
	}
	json_object_foreach(sum, name, v)
	{
		const json_t *other = json_object_get(doc, name);

		if (!json_is_number(v) || !json_is_number(other) || !strncmp(name, "timestamp", 9))
			continue;
		if (json_is_integer(v) && json_is_integer(other))
			json_integer_set(v, json_integer_value(v) + json_integer_value(other));
		else if (json_is_real(v))
			json_real_set(v, json_real_value(v) + json_number_value(other));
	}
}

static json_t *gather_add_sums(const struct fanout *f)
{
	json_t *sum = NULL;

	for (unsigned i = 0; i < f->n; i++) {
		if (f->v[i].status != 200)
			continue;
		if (sum)
			gather_sum(sum, f->v[i].doc);
		else
			sum = json_deep_copy(f->v[i].doc);
	}
	return sum ? sum : json_array();
}

static const char *gather_time(const json_t *event)
{
	const char *at = json_string_value(json_object_get(event, "timestamp"));

	return at ? at : "";
}

/* Newest first, or oldest first: a node's own order is kept. */
static json_t *gather_add_events(struct gateway_gather *g)
{
	json_t *all = json_array();
	unsigned *at = calloc(g->fanout.n + 1, sizeof(*at)), skip = g->offset;

	if (!at)
		abort();
	while (json_array_size(all) < g->limit) {
		const json_t *best = NULL;
		unsigned node = 0;

		for (unsigned i = 0; i < g->fanout.n; i++) {
			const json_t *one = json_array_get(g->fanout.v[i].doc, at[i]);
			int order = one && best ? strcmp(gather_time(one), gather_time(best)) : 0;

			if (one && (!best || (g->oldest_first ? order < 0 : order > 0))) {
				best = one;
				node = i;
			}
		}
		if (!best)
			break;
		at[node]++;
		if (skip)
			skip--;
		else
			json_array_append(all, (json_t *)best);
	}
	free(at);
	return all;
}

/* ---- package sets: the same set on several nodes is one ---- */

static json_t *gather_find_set(const json_t *all, const json_t *set)
{
	const char *key = json_string_value(json_object_get(set, "set"));
	json_t *one;
	size_t i;

	json_array_foreach(all, i, one)
	{
		const char *other = json_string_value(json_object_get(one, "set"));

		if (key && other && strcmp(key, other) == 0)
			return one;
	}
	return NULL;
}

static void gather_add_set(json_t *all, const json_t *set)
{
	json_t *had = gather_find_set(all, set);
	const char *used = json_string_value(json_object_get(set, "used")), *last;

	if (!had) {
		json_array_append_new(all, json_copy((json_t *)set));
		return;
	}
	last = json_string_value(json_object_get(had, "used"));
	json_object_set_new(had, "uses",
			    json_integer(json_integer_value(json_object_get(had, "uses")) +
					 json_integer_value(json_object_get(set, "uses"))));
	if (used && (!last || strcmp(used, last) > 0))
		json_object_set_new(had, "used", json_string(used));
}

static int gather_set_order(const void *a, const void *b)
{
	json_int_t left = json_integer_value(json_object_get(*(json_t *const *)a, "uses")),
		   right = json_integer_value(json_object_get(*(json_t *const *)b, "uses"));

	return left < right ? 1 : left > right ? -1 : 0;
}

/* The most used ones first, as many as were asked for. */
static json_t *gather_add_sets(struct gateway_gather *g)
{
	const char *limit = http_query(g->call->call->req, "limit");
	size_t most = limit ? strtoul(limit, NULL, 10) : STORE_PAGE, n, i;
	json_t *all = json_array(), *items = json_array(), *set, **v;

	for (unsigned k = 0; k < g->fanout.n; k++)
		json_array_foreach(json_object_get(g->fanout.v[k].doc, "items"), i, set)
			gather_add_set(all, set);
	n = json_array_size(all);
	v = calloc(n + 1, sizeof(*v));
	if (!v)
		abort();
	json_array_foreach(all, i, set) v[i] = set;
	qsort(v, n, sizeof(*v), gather_set_order);
	for (i = 0; i < n && i < most; i++)
		json_array_append(items, v[i]);
	free(v);
	json_decref(all);
	return json_pack("{s:o, s:n}", "items", items, "next");
}

/* ---- figures of pipelines: means, weighted by what they are means of ---- */

static double gather_number(const json_t *doc, const char *name)
{
	return json_number_value(json_object_get(doc, name));
}

static double gather_successes(const json_t *doc)
{
	return gather_number(doc, "success_rate") * gather_number(doc, "runs");
}

static double gather_tokens(const json_t *doc)
{
	return gather_number(json_object_get(doc, "usage"), "in");
}

static double gather_runs(const json_t *doc)
{
	return gather_number(doc, "runs");
}

/* null: a mean of nothing. */
static void gather_mean(json_t *sum, const json_t *more, const char *name, double before,
			double after)
{
	double n = before + after,
	       total = gather_number(sum, name) * before + gather_number(more, name) * after;

	json_object_set_new(sum, name, n > 0 ? json_real(total / n) : json_null());
}

static void gather_counts(json_t *sum, const json_t *more)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)more, name, v)
	{
		const json_t *had = json_object_get(sum, name);

		if (json_is_integer(v))
			json_object_set_new(
				sum, name,
				json_integer(json_integer_value(had) + json_integer_value(v)));
		else
			json_object_set_new(
				sum, name,
				json_real(json_number_value(had) + json_number_value(v)));
	}
}

static void gather_ratios(json_t *sum, const json_t *more)
{
	static const struct {
		const char *name;
		double (*weight)(const json_t *doc);
	} means[] = {
		{ "attempts_per_success", gather_successes },
		{ "cost_per_success", gather_successes },
		{ "cache_hit_ratio", gather_tokens },
		{ "overfit_rate", gather_runs },
		{ "success_rate", gather_runs }, /* the last one: it is part of the weights */
	};
	static const char *const counts[] = { "outcomes", "categories", "usage" };
	double before = gather_runs(sum), after = gather_runs(more);
	json_t *stages = json_object_get(sum, "stage_ms"), *v;
	const char *name;
	void *next;

	json_object_foreach_safe(stages, next, name, v)
		gather_mean(stages, json_object_get(more, "stage_ms"), name, before, after);
	for (unsigned i = 0; i < sizeof(means) / sizeof(means[0]); i++)
		gather_mean(sum, more, means[i].name, means[i].weight(sum), means[i].weight(more));
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		gather_counts(json_object_get(sum, counts[i]), json_object_get(more, counts[i]));
	json_object_set_new(sum, "runs", json_integer((json_int_t)(before + after)));
}

static json_t *gather_add_ratios(const struct fanout *f)
{
	json_t *sum = NULL;

	for (unsigned i = 0; i < f->n; i++) {
		if (f->v[i].status != 200)
			continue;
		if (sum)
			gather_ratios(sum, f->v[i].doc);
		else
			sum = json_deep_copy(f->v[i].doc);
	}
	return sum ? sum : json_object();
}

/* ---- the requests ---- */

static const char *gather_target(void *user, unsigned node)
{
	(void)node;
	return buf_str(&((struct gateway_gather *)user)->target);
}

static json_t *gather_answer(struct gateway_gather *g)
{
	switch (g->call->target.shape) {
	case TARGET_OBJECT:
		return gather_add_objects(&g->fanout);
	case TARGET_SUM:
		return gather_add_sums(&g->fanout);
	case TARGET_EVENTS:
		return gather_add_events(g);
	case TARGET_SETS:
		return gather_add_sets(g);
	case TARGET_RATIOS:
		return gather_add_ratios(&g->fanout);
	default:
		return gather_add_items(&g->fanout);
	}
}

static void gather_done(struct fanout *f)
{
	struct gateway_gather *g = loop_owner(f, struct gateway_gather, fanout);
	struct gateway_call *x = g->call;
	json_t *missing = json_array(), *doc;

	for (unsigned i = 0; i < f->n; i++) {
		if (f->v[i].status >= 400 && f->v[i].status < 500 && f->v[i].doc) {
			json_decref(missing);
			call_send(x->call, f->v[i].status, json_incref(f->v[i].doc));
			return;
		}
		if (f->v[i].status != 200)
			json_array_append_new(missing, json_text(f->v[i].name));
	}
	if (f->n && json_array_size(missing) == f->n) {
		json_decref(missing);
		forward_fail_unreachable(x, "no node has answered");
		return;
	}
	doc = gather_answer(g);
	x->gateway->figures.lists++;
	x->gateway->figures.lists_incomplete += json_array_size(missing) > 0;
	if (json_array_size(missing) && json_is_object(doc))
		json_object_set(doc, "incomplete", missing);
	else if (json_array_size(missing))
		http_set(x->call->req, "Atoll-Incomplete", "%zu", json_array_size(missing));
	json_decref(missing);
	call_send(x->call, 200, doc);
}

static int gather_is_page(const char *name, size_t n)
{
	return (n == 6 && strncmp(name, "offset", 6) == 0) ||
	       (n == 5 && strncmp(name, "limit", 5) == 0);
}

/* All nodes are asked for the events up to the end of this page. 0: answered. */
static int gather_set_page(struct gateway_gather *g, struct http_req *r)
{
	const char *offset = http_query(r, "offset"), *limit = http_query(r, "limit"),
		   *ascending = http_query(r, "orderAsc");

	g->offset = offset ? (unsigned)strtoul(offset, NULL, 10) : 0;
	g->limit = limit ? (unsigned)strtoul(limit, NULL, 10) : 10;
	g->oldest_first = ascending && strcmp(ascending, "true") == 0;
	if (g->limit < 1 || g->limit > GATHER_EVENTS || g->offset > GATHER_EVENTS - g->limit) {
		call_error(g->call->call, 400, "invalid",
			   "offset and limit: a gateway reads the first 100 events",
			   limit ? limit : "", "GET /v1/events has pages");
		return 0;
	}
	buf_printf(&g->target, "%s?limit=%u", r->path, g->offset + g->limit);
	for (const char *at = r->query; *at;) {
		size_t n = strcspn(at, "&");

		if (!gather_is_page(at, strcspn(at, "=&"))) {
			buf_putc(&g->target, '&');
			buf_add(&g->target, at, n);
		}
		at += n + (at[n] == '&');
	}
	return 1;
}

void gather_begin(struct gateway_call *x)
{
	struct gateway_gather *g = calloc(1, sizeof(*g));
	struct http_req *r = x->call->req;

	if (!g)
		abort();
	x->gather = g;
	g->call = x;
	if (x->target.shape == TARGET_EVENTS) {
		if (!gather_set_page(g, r))
			return;
	} else {
		buf_printf(&g->target, "%s%s%s", r->path, *r->query ? "?" : "", r->query);
	}
	g->fanout = (struct fanout){ .done = gather_done, .user = g };
	fanout_begin(&g->fanout, x->gateway->tunnels, x->call->api->loop, gather_target,
		     x->identity);
}

void gather_end(struct gateway_call *x)
{
	struct gateway_gather *g = x->gather;

	if (!g)
		return;
	x->gather = NULL;
	fanout_free(&g->fanout);
	buf_fini(&g->target);
	free(g);
}
