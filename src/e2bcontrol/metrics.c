/* metrics.c - see metrics.h. The size of the page cache is not known: memCache is 0. */
#include "e2bcontrol/metrics.h"
#include "v1box/usage_sampler.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "e2bcontrol/sandboxes.h"
#include "e2bcontrol/sandbox_json.h"

#include <stdio.h>
#include <string.h>

enum { MANY_MAX = 100 };

const struct field metrics_query[] = {
	{ "start", FIELD_INT, 0, 0, UINT32_MAX, "start time, in seconds since 1970", NULL },
	{ "end", FIELD_INT, 0, 0, UINT32_MAX, "end time, in seconds since 1970", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field metrics_many_query[] = {
	{ "sandbox_ids", FIELD_TEXT, 1, 0, MANY_MAX * 40, "sandbox ids, separated by commas",
	  NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

/* ---- one sample ---- */

struct point {
	int64_t at_ns;
	uint64_t cpu_us, mem, disk; /* cpu_us ~0: not known */
};

struct series {
	const struct box *box;
	uint64_t disk_total;
	struct point last; /* the values from which the next CPU usage is computed */
	int64_t from_s, to_s;
	json_t *out;
};

static struct series series_of(const struct box *b)
{
	return (struct series){ .box = b,
				.disk_total = b->row.limits.disk_bytes,
				.last = { .at_ns = b->row.created_ns },
				.to_s = INT64_MAX };
}

/* Of all its processors together, as E2B defines it. */
static double metrics_share(const struct series *s, const struct point *p)
{
	double us =
		(double)(p->at_ns - s->last.at_ns) / 1000 * sandbox_json_cpus(&s->box->row.limits);
	double pct;

	if (p->cpu_us == UINT64_MAX || p->cpu_us < s->last.cpu_us || us <= 0)
		return 0;
	pct = (double)(p->cpu_us - s->last.cpu_us) / us * 100;
	return pct > 100 ? 100 : pct;
}

static json_t *point_json(struct series *s, const struct point *p)
{
	const struct store_limits *l = &s->box->row.limits;
	json_t *doc = json_pack("{s:o, s:I, s:i, s:f, s:I, s:I, s:i, s:I, s:I}", "timestamp",
				json_time((uint64_t)p->at_ns), "timestampUnix",
				(json_int_t)(p->at_ns / 1000000000), "cpuCount",
				(int)sandbox_json_cpus(l), "cpuUsedPct", metrics_share(s, p),
				"memUsed", (json_int_t)p->mem, "memTotal",
				(json_int_t)sandbox_json_memory(l), "memCache", 0, "diskUsed",
				(json_int_t)p->disk, "diskTotal", (json_int_t)s->disk_total);

	s->last = *p;
	return doc;
}

static struct point point_of(const struct usage_sample *g)
{
	return (struct point){ .at_ns = (int64_t)g->at_s * 1000000000,
			       .cpu_us = g->cpu_us,
			       .mem = (uint64_t)g->mem_kib << 10,
			       .disk = (uint64_t)g->disk_kib << 10 };
}

/* ---- of one ---- */

struct metrics_wait {
	struct usage_watch watch;
	struct call *call;
	char box[ID_MAX + 1];
};

static void metrics_add(struct series *s, const struct point *p)
{
	int64_t at_s = p->at_ns / 1000000000;
	json_t *doc;

	if (p->at_ns <= s->last.at_ns)
		return;
	doc = point_json(
		s,
		p); /* also for a box that is not in the answer: the next value is computed from it */
	if (at_s >= s->from_s && at_s <= s->to_s)
		json_array_append_new(s->out, doc);
	else
		json_decref(doc);
}

static void metrics_each(void *ctx, const struct usage_sample *g)
{
	struct point p = point_of(g);

	metrics_add(ctx, &p);
}

static void metrics_send(struct call *c, const struct box *b, const struct usage_now *now)
{
	struct series s = series_of(b);
	struct point p;
	int told;

	s.out = json_array();
	s.from_s = call_query_int(c, "start", 0);
	s.to_s = call_query_int(c, "end", INT64_MAX);
	/* The values come from the box and are not trusted. */
	told = now && now->told && now->inside.disk_free <= now->inside.disk_size &&
	       now->inside.disk_size <= INT64_MAX;
	if (told)
		s.disk_total = now->inside.disk_size;
	usage_history(c->api->gauges, b->row.id, USAGE_STEP_S, 0, metrics_each, &s);
	if (now && now->counted) {
		p = (struct point){ .at_ns = now->at_ns,
				    .cpu_us = now->kernel.cpu_us,
				    .mem = now->kernel.mem_now == UINT64_MAX ? 0
									     : now->kernel.mem_now,
				    .disk = told ? s.disk_total - now->inside.disk_free : 0 };
		metrics_add(&s, &p);
	}
	call_json(c, 200, s.out);
}

static void metrics_looked(struct usage_watch *w, const struct usage_now *now)
{
	struct metrics_wait *l = loop_owner(w, struct metrics_wait, watch);
	struct call *c = l->call;
	const struct box *b = now ? fleet_find(&c->api->fleet, l->box) : NULL;

	usage_unwatch(w);
	c->drop = NULL;
	if (b)
		metrics_send(c, b, now);
	else
		call_error(c, 404, "not_found", "the sandbox has ended", l->box, NULL);
}

static void metrics_stop(struct call *c)
{
	usage_unwatch(&((struct metrics_wait *)c->state)->watch);
}

void metrics_one(struct call *c)
{
	struct box *b = sandboxes_find(c);
	struct metrics_wait *l;

	if (!b)
		return;
	if (sandboxes_paused(b)) { /* a paused box is not measured */
		metrics_send(c, b, NULL);
		return;
	}
	l = call_alloc(c, sizeof(*l));
	*l = (struct metrics_wait){ .watch.told = metrics_looked, .call = c };
	snprintf(l->box, sizeof(l->box), "%s", b->row.id);
	c->state = l;
	c->drop = metrics_stop;
	usage_watch(c->api->gauges, b, &l->watch, 1);
}

/* ---- of many ---- */

static void keep_last(void *ctx, const struct usage_sample *g)
{
	struct series *s = ctx;
	struct point p = point_of(g);

	json_decref(s->out);
	s->out = point_json(s, &p);
}

static void add_last(struct call *c, const char *id, json_t *all)
{
	const struct box *b = id_valid(id) ? fleet_find(&c->api->fleet, id) : NULL;
	struct series s;

	if (!b || strcmp(b->row.team, c->who.team) != 0 || b->is_installer)
		return; /* a box that does not exist has no figures, which is not an error */
	s = series_of(b);
	usage_history(c->api->gauges, id, USAGE_STEP_S, 0, keep_last, &s);
	if (s.out)
		json_object_set_new(all, id, s.out);
}

void metrics_many(struct call *c)
{
	const char *ids = call_query(c, "sandbox_ids");
	char *copy = http_strdup(c->req, ids, strlen(ids)), *rest = NULL;
	json_t *all = json_object();
	unsigned n = 0;

	for (char *p = strtok_r(copy, ",", &rest); p; p = strtok_r(NULL, ",", &rest)) {
		if (++n > MANY_MAX) {
			json_decref(all);
			call_error(c, 400, "invalid", "sandbox_ids: more than 100", NULL, NULL);
			return;
		}
		p[strcspn(p, "-")] = 0;
		add_last(c, p, all);
	}
	call_json(c, 200, json_pack("{s:o}", "sandboxes", all));
}
