/* envd_http.c - envd's small REST routes: resource usage of the box, its variables; and CORS. */
#include "v1box/usage_sampler.h"
#include "base/cleanup.h"
#include "e2b/envd.h"

#include <string.h>

/* ---- GET /metrics ---- */

struct envd_http_looking {
	struct usage_watch watch;
	struct call *call;
};

struct before { /* the last sample but now */
	uint64_t cpu_us;
	uint32_t at_s;
};

static void keep_last(void *ctx, const struct usage_sample *s)
{
	if (s->cpu_us != UINT64_MAX)
		*(struct before *)ctx = (struct before){ s->cpu_us, s->at_s };
}

/* Percent of one CPU, since the last sample or since the box was made; 100 is one busy CPU. */
static double envd_http_busy(const struct usage_sampler *g, const struct box *b,
			     const struct usage_now *now)
{
	struct before from = { 0, (uint32_t)(b->about.created_ns / 1000000000) };
	double seconds;

	usage_history(g, b->row.id, USAGE_STEP_S, 0, keep_last, &from);
	seconds = (double)(now->at_ns / 1000000000) - (double)from.at_s;
	if (!now->counted || now->kernel.cpu_us == UINT64_MAX || now->kernel.cpu_us < from.cpu_us)
		return 0;
	return (double)(now->kernel.cpu_us - from.cpu_us) / 1e4 / (seconds < 1 ? 1 : seconds);
}

static json_t *metrics_json(const struct usage_sampler *g, const struct box *b,
			    const struct usage_now *now)
{
	const struct store_limits *l = &b->row.limits;
	const struct wire_status *s = &now->inside;
	int told = now->told && s->disk_free <= s->disk_size;
	json_int_t total = (json_int_t)l->mem_bytes,
		   used = now->counted && now->kernel.mem_now != UINT64_MAX
				  ? (json_int_t)now->kernel.mem_now
				  : 0;

	return json_pack("{s:I, s:i, s:f, s:I, s:I, s:i, s:I, s:I, s:I, s:I}", "ts",
			 (json_int_t)(now->at_ns / 1000000000), "cpu_count",
			 (int)(l->cpu_milli ? (l->cpu_milli + 999) / 1000 : 1), "cpu_used_pct",
			 envd_http_busy(g, b, now), "mem_total", total, "mem_used", used,
			 "mem_cache", 0, "mem_total_mib", total >> 20, "mem_used_mib", used >> 20,
			 "disk_used", told ? (json_int_t)(s->disk_size - s->disk_free) : 0,
			 "disk_total", told ? (json_int_t)s->disk_size : (json_int_t)l->disk_bytes);
}

static void envd_http_looked(struct usage_watch *w, const struct usage_now *now)
{
	struct call *c = loop_owner(w, struct envd_http_looking, watch)->call;
	const struct box *b = now ? fleet_find(&c->api->fleet, c->held) : NULL;

	usage_unwatch(w);
	c->drop = NULL;
	if (b)
		call_json(c, 200, metrics_json(c->api->gauges, b, now));
	else
		http_abort(c->req);
}

static void stop_looking(struct call *c)
{
	usage_unwatch(&((struct envd_http_looking *)c->state)->watch);
}

void envd_metrics(struct call *c)
{
	struct envd_http_looking *l = call_alloc(c, sizeof(*l));

	*l = (struct envd_http_looking){ .watch.told = envd_http_looked, .call = c };
	c->state = l;
	c->drop = stop_looking;
	usage_watch(c->api->gauges, e2b_find_box(c), &l->watch, 1);
}

/* ---- GET /envs ---- */

void envd_envs(struct call *c)
{
	const char *text = e2b_find_box(c)->row.env;
	json_t *env = text ? json_loads(text, 0, NULL) : NULL;

	call_json(c, 200, env ? env : json_object());
}

/* ---- pages ---- */

/* A page can do only what its token permits, so every origin is allowed. */
int e2b_cors(struct call *c)
{
	const char *wants = http_header(c->req, "access-control-request-headers");

	if (!http_header(c->req, "origin"))
		return 0;
	http_set(c->req, "Access-Control-Allow-Origin", "*");
	if (strcmp(c->req->method, "OPTIONS") != 0 ||
	    !http_header(c->req, "access-control-request-method")) {
		http_set(c->req, "Access-Control-Expose-Headers",
			 "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, "
			 "Cache-Control, X-Content-Type-Options");
		return 0;
	}
	http_set(c->req, "Access-Control-Allow-Methods", "HEAD, GET, POST, PUT, PATCH, DELETE");
	http_set(c->req, "Access-Control-Max-Age", "7200");
	if (wants && strlen(wants) < 2000)
		http_set(c->req, "Access-Control-Allow-Headers", "%s", wants);
	call_empty(c, 204);
	return 1;
}
