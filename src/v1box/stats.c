/* stats.c - see stats.h. Reading usage does not count as use of a box, and does not start a stopped
 * one. */
#include "v1box/stats.h"
#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "v1box/host_sampler.h"
#include "v1box/series.h"
#include "api/keeper_info.h"
#include "api/event_stream.h"
#include "v1box/usage_sampler.h"
#include "api/time_param.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

const struct field stats_query[] = {
	{ "follow", FIELD_BOOL, 0, 0, 0, "send the values every second", NULL },
	{ 0 },
};
const struct field stats_host_query[] = {
	{ "figures", FIELD_BOOL, 0, 0, 0, "add all figures of GET /metrics", NULL },
	{ 0 },
};
const struct field stats_history_query[] = {
	{ "since", FIELD_TEXT, 0, 0, TIME_PARAM_TEXT,
	  "a time, or a duration before now such as 15m (default: all stored values)", NULL },
	{ "step", FIELD_INT, 0, 1, USAGE_STEP_S,
	  "seconds between values: 10, or 1 for times when a client followed the stats", NULL },
	{ 0 },
};

const struct field stats_host_history_query[] = {
	{ "since", FIELD_TEXT, 0, 0, TIME_PARAM_TEXT,
	  "a time, or a duration before now such as 15m (default: all stored values)", NULL },
	{ "step", FIELD_INT, 0, 1, USAGE_STEP_S,
	  "seconds between values: 10 (of the last 24 hours), or 1 (of the last 15 minutes)",
	  NULL },
	{ 0 },
};

/* ---- as JSON ---- */

static json_t *stats_figure(int there, uint64_t n)
{
	return !there || n == UINT64_MAX || n > INT64_MAX ? json_null()
							  : json_integer((json_int_t)n);
}

static json_t *stats_limit(uint64_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

static json_t *stats_network(int there, uint64_t bytes_in, uint64_t bytes_out)
{
	return json_pack("{s:o, s:o}", "bytes_in", stats_figure(there, bytes_in), "bytes_out",
			 stats_figure(there, bytes_out));
}

static json_t *now_json(const struct box *b, const struct usage_now *now)
{
	const struct wire_counters *k = &now->kernel;
	const struct wire_status *s = &now->inside;
	const struct store_limits *l = &b->row.limits;
	int c = now->counted,
	    t = now->told && s->disk_free <= s->disk_size && s->files_free <= s->files_size;
	json_t *doc = json_pack("{s:s, s:o, s:i}", "box", b->row.id, "at",
				json_time((uint64_t)now->at_ns), "running", (int)now->running);

	json_object_set_new(doc, "memory",
			    json_pack("{s:o, s:o, s:o}", "now", stats_figure(c, k->mem_now), "peak",
				      stats_figure(c, k->mem_peak), "limit",
				      stats_limit(l->mem_bytes)));
	json_object_set_new(doc, "cpu",
			    json_pack("{s:o, s:o, s:o}", "us", stats_figure(c, k->cpu_us),
				      "throttled_us", stats_figure(c, k->throttled_us),
				      "limit_milli", stats_limit(l->cpu_milli)));
	json_object_set_new(doc, "pids",
			    json_pack("{s:o, s:o, s:o, s:o}", "now", stats_figure(c, k->pids_now),
				      "peak", stats_figure(c, k->pids_peak), "limit",
				      stats_limit(l->pids), "refused",
				      stats_figure(c, k->pids_hits)));
	json_object_set_new(doc, "disk",
			    json_pack("{s:o, s:o, s:o, s:o}", "used",
				      stats_figure(t, s->disk_size - s->disk_free), "limit",
				      stats_figure(t, s->disk_size), "files",
				      stats_figure(t, s->files_size - s->files_free), "files_limit",
				      stats_figure(t, s->files_size)));
	json_object_set_new(doc, "network", stats_network(1, now->bytes_in, now->bytes_out));
	json_object_set_new(doc, "oom_kills", stats_figure(c, k->oom_kills));
	return doc;
}

/* ---- now ---- */

struct stats_looking {
	struct usage_watch watch;
	struct call *call;
	struct event_stream event_stream;
	char box[ID_MAX + 1];
	int full; /* the client has not read the last sample yet */
};

static void stats_stop(struct call *c)
{
	struct stats_looking *l = c->state;

	usage_unwatch(&l->watch);
}

static void has_room(struct http_req *r)
{
	struct call *c = r->user;
	struct stats_looking *l = c->state;

	l->full = 0;
}

static void box_ended(struct stats_looking *l)
{
	struct call *c = l->call;

	c->drop = NULL;
	c->endless = 0;
	if (l->watch.once) {
		call_error(c, 404, "not_found", "the box ended", call_param(c, 0), NULL);
		return;
	}
	event_stream_event(&l->event_stream, json_pack("{s:s}", "type", "end"));
	event_stream_end(&l->event_stream);
}

static void stats_looked(struct usage_watch *w, const struct usage_now *now)
{
	struct stats_looking *l = loop_owner(w, struct stats_looking, watch);
	struct call *c = l->call;
	const struct box *b = now ? fleet_find(&c->api->fleet, l->box) : NULL;
	json_t *doc;

	if (!b) {
		usage_unwatch(w);
		box_ended(l);
		return;
	}
	if (w->once) {
		c->drop = NULL;
		call_json(c, 200, now_json(b, now));
	} else if (!l->full) { /* a slow client gets the latest sample, not all of them */
		doc = now_json(b, now);
		json_object_set_new(doc, "type", json_string("stats"));
		l->full = event_stream_event(&l->event_stream, doc);
	}
}

void stats_show(struct call *c)
{
	int stream = call_query_flag(c, "follow") || event_stream_wanted(c) == EVENT_STREAM_SSE;
	const struct box *b = call_box_peek(c, 0);
	struct stats_looking *l;

	if (!b)
		return;
	l = call_alloc(c, sizeof(*l));
	*l = (struct stats_looking){ .watch.told = stats_looked, .call = c };
	snprintf(l->box, sizeof(l->box), "%s", b->row.id);
	c->state = l;
	c->drop = stats_stop;
	c->endless = stream;
	if (stream) {
		c->req->on_drain = has_room;
		event_stream_begin(&l->event_stream, c->req,
				   event_stream_wanted(c) == EVENT_STREAM_SSE
					   ? EVENT_STREAM_SSE
					   : EVENT_STREAM_NDJSON);
	}
	usage_watch(c->api->gauges, b, &l->watch, !stream);
}

/* ---- history ---- */

static void one_sample(void *ctx, const struct usage_sample *s)
{
	json_array_append_new(
		ctx, json_pack("{s:o, s:I, s:o, s:i, s:I, s:I, s:I, s:i}", "at",
			       json_time((uint64_t)s->at_s * 1000000000), "memory",
			       (json_int_t)s->mem_kib << 10, "cpu_us", stats_figure(1, s->cpu_us),
			       "pids", (int)s->pids, "disk", (json_int_t)s->disk_kib << 10,
			       "bytes_in", (json_int_t)s->in_kib << 10, "bytes_out",
			       (json_int_t)s->out_kib << 10, "running", (int)s->running));
}

/* The parameters of both histories. -1: the call was answered with an error. */
static int stats_history_range(struct call *c, int *out_step_s, int64_t *out_since_ns)
{
	const char *since = call_query(c, "since");
	int64_t step = call_query_int(c, "step", USAGE_STEP_S), from = 0;
	struct err e;

	if (step != 1 && step != USAGE_STEP_S) {
		call_error(c, 400, "invalid", "?step= is 1 or 10", NULL, NULL);
		return -1;
	}
	if (since && time_param_parse(since, fleet_now_ns(), &from, &e) < 0) {
		call_fail(c, &e);
		return -1;
	}
	*out_step_s = (int)step;
	*out_since_ns = from < 0 ? 0 : from;
	return 0;
}

static void stats_answer_history(struct call *c, int step_s, json_t *take_items)
{
	call_json(c, 200,
		  json_pack("{s:i, s:o, s:n}", "step_s", step_s, "items", take_items, "next"));
}

void stats_history(struct call *c)
{
	const struct box *b = call_box_peek(c, 0);
	json_t *items;
	int64_t since_ns;
	int step_s;

	if (!b || stats_history_range(c, &step_s, &since_ns) < 0)
		return;
	items = json_array();
	since_ns /= 1000000000;
	usage_history(c->api->gauges, b->row.id, step_s,
		      since_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)since_ns, one_sample, items);
	stats_answer_history(c, step_s, items);
}

/* ---- the machine ---- */

static unsigned stats_running(const struct fleet *f)
{
	unsigned n = 0;

	for (const struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		n += b->nruns;
	return n;
}

/* What is not added up: times, figures (which have their own way), the name of the node. */
static int stats_is_own(const char *name)
{
	static const char *const own[] = { "at", "uptime_s", "figures", "nodes", "node" };

	for (unsigned i = 0; i < ARRAY_LEN(own); i++)
		if (strcmp(name, own[i]) == 0)
			return 1;
	return 0;
}

static void stats_add(json_t *sum, const json_t *more);

/* The sum of two values of the same form. NULL or null: none. */
static json_t *stats_sum(const json_t *a, const json_t *b)
{
	json_t *sum, *v;
	size_t i;

	if (!b || json_is_null(b) || !a || json_is_null(a))
		return json_deep_copy(!b || json_is_null(b) ? a : b);
	if (json_is_integer(a) && json_is_integer(b))
		return json_integer(json_integer_value(a) + json_integer_value(b));
	if (json_is_number(a) && json_is_number(b))
		return json_real(json_number_value(a) + json_number_value(b));
	sum = json_deep_copy(a);
	json_array_foreach(sum, i, v)
		json_array_set_new(sum, i, stats_sum(v, json_array_get(b, i)));
	stats_add(sum, b);
	return sum;
}

static void stats_add(json_t *sum, const json_t *more)
{
	const char *name;
	json_t *v;

	if (!json_is_object(sum))
		return;
	json_object_foreach((json_t *)more, name, v) if (!stats_is_own(name))
		json_object_set_new(sum, name, stats_sum(json_object_get(sum, name), v));
}

/* A gateway adds what a node answers. */
static void stats_merge(json_t *doc, const json_t *other)
{
	static const char *const shown[] = { "boxes", "running", "cpus", "load", "memory" };
	json_t *one = json_object();

	if (!json_object_get(doc, "nodes"))
		json_object_set_new(doc, "nodes", json_array());
	json_object_set(one, "name", json_object_get(other, "node"));
	for (unsigned i = 0; i < ARRAY_LEN(shown); i++)
		if (json_object_get(other, shown[i]))
			json_object_set(one, shown[i], json_object_get(other, shown[i]));
	json_array_append_new(json_object_get(doc, "nodes"), one);
	stats_add(doc, other);
}

static void stats_set_node(const struct call *c, json_t *doc)
{
	json_t *node = call_own_node(c);

	if (node)
		json_object_set_new(doc, "node", node);
}

static void host_known(struct call *c, const struct wire_info *a)
{
	struct sysinfo s = { .mem_unit = 1 };
	double load = 1.0 / (1 << SI_LOAD_SHIFT);
	json_t *doc =
		json_pack("{s:i, s:i, s:i}", "boxes", (int)c->api->fleet.count, "spares",
			  (int)c->api->fleet.spares, "running", (int)stats_running(&c->api->fleet));

	if (sysinfo(&s) == 0) {
		json_object_set_new(doc, "cpus", json_integer(get_nprocs()));
		json_object_set_new(doc, "load",
				    json_pack("[f, f, f]", (double)s.loads[0] * load,
					      (double)s.loads[1] * load,
					      (double)s.loads[2] * load));
		json_object_set_new(doc, "memory",
				    json_pack("{s:I, s:I}", "total",
					      (json_int_t)s.totalram * s.mem_unit, "free",
					      (json_int_t)(s.freeram + s.bufferram) * s.mem_unit));
		json_object_set_new(doc, "uptime_s", json_integer(s.uptime));
	}
	if (c->api->host) {
		struct host_sample now;

		host_sampler_read(c->api->host, c->api->fleet.count, &now);
		json_object_set_new(doc, "at", json_time((uint64_t)now.at_ns));
		json_object_set_new(doc, "cpu_us", stats_figure(now.has_cpu, now.cpu_us));
		json_object_set_new(doc, "disk",
				    json_pack("{s:o, s:o}", "total",
					      stats_figure(now.has_disk, now.disk_total), "used",
					      stats_figure(now.has_disk, now.disk_bytes)));
		json_object_set_new(doc, "network",
				    stats_network(now.has_net, now.net_in, now.net_out));
		json_object_set_new(json_object_get(doc, "memory"), "used",
				    stats_figure(now.has_mem, now.mem_bytes));
	}
	if (a)
		json_object_set_new(doc, "keeper",
				    json_pack("{s:i, s:i, s:i, s:i, s:I, s:I}", "boxes",
					      (int)a->boxes, "pooled", (int)a->pooled, "making",
					      (int)a->making, "pool_depth", (int)a->pool_depth,
					      "pool_hits", (json_int_t)a->hits, "pool_misses",
					      (json_int_t)a->misses));
	if (call_query_flag(c, "figures")) {
		metrics_collect(c->api->metrics);
		json_object_set_new(doc, "figures", series_figures_json(c->api));
	}
	stats_set_node(c, doc);
	call_merged(c, 200, doc, stats_merge);
}

static void stats_ask_keeper(struct call *c)
{
	keeper_info_request(c, host_known);
}

int stats_check_operator(struct call *c)
{
	if (!strcmp(c->who.team, TEAM_DEFAULT))
		return 0;
	call_error(c, 403, "denied", "figures of the machine are for team default", c->who.team,
		   NULL);
	return -1;
}

void stats_host(struct call *c)
{
	if (stats_check_operator(c) < 0)
		return;
	if (call_query_flag(c, "figures"))
		call_with_figures(c, stats_ask_keeper);
	else
		stats_ask_keeper(c);
}

/* To each sample of this machine the last one that the node had until then: counters of the sum do not decrease. */
static void stats_merge_history(json_t *doc, const json_t *other)
{
	json_t *items = json_object_get(doc, "items"), *more = json_object_get(other, "items"),
	       *item;
	size_t i, k = 0;

	json_array_foreach(items, i, item)
	{
		const char *at = json_string_value(json_object_get(item, "at"));

		for (const char *next;
		     (next = json_string_value(json_object_get(json_array_get(more, k), "at"))) &&
		     at && strcmp(next, at) <= 0;)
			k++;
		if (k > 0)
			stats_add(item, json_array_get(more, k - 1));
	}
}

static void stats_add_host_sample(void *ctx, const struct host_sample *s)
{
	json_array_append_new(ctx, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:i}", "at",
					     json_time((uint64_t)s->at_ns), "cpu_us",
					     stats_figure(s->has_cpu, s->cpu_us), "memory",
					     stats_figure(s->has_mem, s->mem_bytes), "disk",
					     stats_figure(s->has_disk, s->disk_bytes), "bytes_in",
					     stats_figure(s->has_net, s->net_in), "bytes_out",
					     stats_figure(s->has_net, s->net_out), "load",
					     s->load_centi / 100.0, "boxes", (int)s->boxes));
}

void stats_host_history(struct call *c)
{
	json_t *items;
	int64_t since_ns;
	int step_s;

	if (stats_check_operator(c) < 0 || stats_history_range(c, &step_s, &since_ns) < 0)
		return;
	items = json_array();
	if (c->api->host)
		host_sampler_history(c->api->host, step_s, since_ns, stats_add_host_sample, items);
	call_merged(c, 200, json_pack("{s:i, s:o, s:n}", "step_s", step_s, "items", items, "next"),
		    stats_merge_history);
}
