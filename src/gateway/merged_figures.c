/* merged_figures.c - see merged_figures.h.
 *
 * A node is not trusted: figures and labels that the table does not have are ignored, the number of series is bounded, and
 * values must be numbers that a figure of this kind can have. */
#include "gateway/merged_figures.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "gateway/fanout.h"
#include "gateway/gateway.h"
#include "gateway/restart.h"
#include "metrics/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIGURES_TICK_MS = 10000,
	FIGURES_ROUNDS = 6,   /* each tick asks a part of the nodes */
	FIGURES_SERIES = 256, /* of one figure; more are added up as "other" */
};
#define FIGURES_MOST 1e18 /* a larger value is none */

struct figures_series {
	enum metric_id id;
	char *labels[METRIC_LABELS];
	unsigned slot, nslots;
	int has_earlier;
	double earlier[METRICS_SLOTS]; /* for metrics_add_earlier() */
};

struct figures_node {
	struct figures_node *next;
	unsigned number;
	unsigned n;
	double *v; /* by slot; NAN: it has no such series */
};

struct merged_figures {
	struct gateway *gateway;
	struct metrics_source source;
	struct figures_series **series;
	unsigned nseries, hint;
	unsigned slots;
	double *ended; /* by slot: what counters had before they began at 0 again */
	struct figures_node *nodes;
	struct timer tick;
	struct fanout poll;
	unsigned round;
	int is_polling;
};

/* ---- series ---- */

static int figures_fits(const struct figures_series *s, enum metric_id id,
			const char *const *labels)
{
	for (unsigned i = 0; i < METRIC_LABELS; i++)
		if (s->id != id || strcmp(s->labels[i], labels[i]) != 0)
			return 0;
	return 1;
}

/* Nodes send their series in the same order, so the next one usually is the next one. */
static struct figures_series *figures_lookup(struct merged_figures *x, enum metric_id id,
					     const char *const *labels, unsigned *out_same)
{
	*out_same = 0;
	for (unsigned k = 0; k < x->nseries; k++) {
		unsigned i = (x->hint + k) % x->nseries;

		if (figures_fits(x->series[i], id, labels)) {
			x->hint = i + 1;
			return x->series[i];
		}
		*out_same += x->series[i]->id == id;
	}
	return NULL;
}

static struct figures_series *figures_find_series(struct merged_figures *x, enum metric_id id,
						  const char *const *labels)
{
	static const char *const other[METRIC_LABELS] = { "other", "other" };
	struct figures_series *s;
	unsigned same;

	if ((s = figures_lookup(x, id, labels, &same)))
		return s;
	if (same >= FIGURES_SERIES) {
		labels = other;
		if ((s = figures_lookup(x, id, labels, &same)))
			return s;
	}
	s = calloc(1, sizeof(*s));
	x->series = reallocarray(x->series, x->nseries + 1, sizeof(struct figures_series *));
	if (!s || !x->series)
		abort();
	*s = (struct figures_series){ .id = id, .slot = x->slots };
	s->nslots = metric_defs[id].type == METRIC_HISTOGRAM ? METRICS_SLOTS : 1;
	for (unsigned i = 0; i < METRIC_LABELS; i++)
		if (!(s->labels[i] = strdup(labels[i])))
			abort();
	x->slots += s->nslots;
	x->ended = reallocarray(x->ended, x->slots, sizeof(*x->ended));
	if (!x->ended)
		abort();
	memset(x->ended + s->slot, 0, s->nslots * sizeof(*x->ended));
	x->series[x->nseries++] = s;
	return s;
}

/* ---- the answer of a node ---- */

static struct figures_node *figures_enter(struct merged_figures *x, unsigned number)
{
	struct figures_node *n = x->nodes;

	while (n && n->number != number)
		n = n->next;
	if (n)
		return n;
	n = calloc(1, sizeof(*n));
	if (!n)
		abort();
	*n = (struct figures_node){ .next = x->nodes, .number = number };
	x->nodes = n;
	return n;
}

static void figures_make_room(struct figures_node *n, unsigned slots)
{
	if (slots <= n->n)
		return;
	n->v = reallocarray(n->v, slots, sizeof(*n->v));
	if (!n->v)
		abort();
	while (n->n < slots)
		n->v[n->n++] = NAN;
}

/* 0: these are values of such a figure. */
static int figures_read_slots(const struct metric_def *d, const json_t *slots,
			      double out[METRICS_SLOTS])
{
	unsigned n = d->type == METRIC_HISTOGRAM ? METRICS_SLOTS : 1;

	if (!json_is_array(slots) || json_array_size(slots) != n)
		return -1;
	for (unsigned i = 0; i < n; i++) {
		const json_t *one = json_array_get(slots, i);

		out[i] = json_number_value(one);
		if (!json_is_number(one) || !(fabs(out[i]) < FIGURES_MOST) ||
		    (out[i] < 0 && d->type != METRIC_GAUGE))
			return -1;
	}
	return 0;
}

static int figures_read_labels(const struct metric_def *d, const json_t *labels,
			       const char *out[METRIC_LABELS])
{
	unsigned n = metric_nlabels(d);

	if (!json_is_array(labels) || json_array_size(labels) != n)
		return -1;
	for (unsigned i = 0; i < METRIC_LABELS; i++) {
		const char *text = i < n ? json_string_value(json_array_get(labels, i)) : "";

		if (!text || strlen(text) > METRIC_LABEL)
			return -1;
		out[i] = text;
	}
	return 0;
}

static void figures_take_row(struct merged_figures *x, struct figures_node *n, const json_t *row,
			     int is_first)
{
	const char *name = json_string_value(json_array_get(row, 0)), *labels[METRIC_LABELS];
	const struct metric_def *d = name ? metric_find(name) : NULL;
	struct figures_series *s;
	double v[METRICS_SLOTS], *had;
	unsigned count;

	if (!d || d->flags & METRIC_LOCAL ||
	    figures_read_labels(d, json_array_get(row, 1), labels) < 0 ||
	    figures_read_slots(d, json_array_get(row, 2), v) < 0)
		return;
	s = figures_find_series(x, metric_id(d), labels);
	figures_make_room(n, x->slots);
	had = n->v + s->slot;
	count = s->nslots > 1 ? METRICS_COUNT_SLOT : 0;
	for (unsigned i = 0; i < s->nslots && d->type != METRIC_GAUGE; i++) {
		if (is_first) {
			s->earlier[i] += v[i];
			s->has_earlier = 1;
		} else if (v[count] < had[count]) { /* the node counts from 0 again */
			x->ended[s->slot + i] += had[i];
		}
	}
	memcpy(had, v, s->nslots * sizeof(*had));
}

static void figures_take(struct merged_figures *x, unsigned number, const json_t *doc)
{
	struct figures_node *n = figures_enter(x, number);
	int is_first = n->n == 0;
	const json_t *row;
	size_t i;

	for (unsigned k = 0; k < x->nseries; k++) /* a gauge that it no longer has is not sent */
		if (metric_defs[x->series[k]->id].type == METRIC_GAUGE && x->series[k]->slot < n->n)
			n->v[x->series[k]->slot] = NAN;
	x->hint = 0;
	json_array_foreach(json_object_get(doc, "figures"), i, row)
		figures_take_row(x, n, row, is_first);
}

/* ---- the source ---- */

static void figures_put_gauges(struct merged_figures *x, struct metrics *m,
			       const struct figures_node *n)
{
	const struct tunnel_node *t = tunnels_find(x->gateway->tunnels, n->number);

	if (!t || t->state != TUNNEL_UP)
		return;
	for (unsigned i = 0; i < x->nseries; i++) {
		const struct figures_series *s = x->series[i];

		if (metric_defs[s->id].type == METRIC_GAUGE && s->slot < n->n &&
		    !isnan(n->v[s->slot]))
			metrics_put(m, s->id, n->v[s->slot], s->labels[0], s->labels[1]);
	}
}

static void figures_put_sum(struct metrics *m, const struct figures_series *s, const double *v)
{
	struct fleet_histogram h = { .count = (uint64_t)v[METRICS_COUNT_SLOT % s->nslots],
				     .sum = v[METRICS_SUM_SLOT % s->nslots] };

	if (s->nslots == 1) {
		metrics_put(m, s->id, v[0], s->labels[0], s->labels[1]);
		return;
	}
	for (unsigned i = 0; i <= FLEET_BUCKETS; i++)
		h.bucket[i] = (uint64_t)v[i];
	metrics_put_histogram(m, s->id, &h, NULL, s->labels[0]);
}

static void figures_read(struct metrics_source *source, struct metrics *m)
{
	struct merged_figures *x = loop_owner(source, struct merged_figures, source);
	double *sum = calloc(x->slots + 1, sizeof(*sum));

	if (!sum)
		abort();
	if (x->slots)
		memcpy(sum, x->ended, x->slots * sizeof(*sum));
	for (const struct figures_node *n = x->nodes; n; n = n->next) {
		for (unsigned i = 0; i < n->n; i++)
			sum[i] += isnan(n->v[i]) ? 0 : n->v[i];
		figures_put_gauges(x, m, n);
	}
	for (unsigned i = 0; i < x->nseries; i++) {
		struct figures_series *s = x->series[i];

		if (metric_defs[s->id].type == METRIC_GAUGE)
			continue;
		if (s->has_earlier)
			metrics_add_earlier(m, s->id, s->earlier, s->labels[0], s->labels[1]);
		memset(s->earlier, 0, sizeof(s->earlier));
		s->has_earlier = 0;
		figures_put_sum(m, s, sum + s->slot);
	}
	free(sum);
}

/* ---- asking nodes ---- */

static const char *figures_target(void *user, unsigned node)
{
	(void)user;
	return node == (unsigned)id_own_node() ? NULL : "/cluster/figures";
}

static void figures_take_all(struct merged_figures *x, const struct fanout *f)
{
	for (unsigned i = 0; i < f->n; i++)
		if (f->v[i].status == 200)
			figures_take(x, f->v[i].request.node, f->v[i].doc);
}

static void figures_send(struct merged_figures *x, struct fanout *f, fanout_target *target)
{
	char identity[128];

	restart_identity(TEAM_DEFAULT, identity);
	fanout_begin(f, x->gateway->tunnels, x->gateway->api->loop, target, identity);
}

struct figures_ask { /* of one call */
	struct fanout fanout;
	struct call *call;
	void (*then)(struct call *c);
};

static void figures_drop(struct call *c)
{
	struct figures_ask *q = c->state;

	c->state = NULL;
	fanout_free(&q->fanout);
	free(q);
}

static void figures_asked(struct fanout *f)
{
	struct figures_ask *q = loop_owner(f, struct figures_ask, fanout);
	void (*then)(struct call * c) = q->then;
	struct call *c = q->call;

	figures_take_all(c->api->gateway->merged, f);
	for (unsigned i = 0; i < f->n; i++)
		if (f->v[i].status != 200)
			http_set(c->req, "Atoll-Incomplete", "%s", f->v[i].name);
	c->drop = NULL;
	figures_drop(c);
	then(c);
}

static void figures_ask(struct call *c, void (*then)(struct call *c))
{
	struct figures_ask *q = calloc(1, sizeof(*q));

	if (!q)
		abort();
	*q = (struct figures_ask){ .call = c, .then = then, .fanout.done = figures_asked };
	c->state = q;
	c->drop = figures_drop;
	figures_send(c->api->gateway->merged, &q->fanout, figures_target);
}

static const char *figures_poll_target(void *user, unsigned node)
{
	const struct merged_figures *x = user;

	return node % FIGURES_ROUNDS == x->round ? figures_target(user, node) : NULL;
}

static void figures_polled(struct fanout *f)
{
	struct merged_figures *x = loop_owner(f, struct merged_figures, poll);

	figures_take_all(x, f);
	x->is_polling = 0;
	fanout_free(&x->poll);
}

static void figures_tick(struct timer *t)
{
	struct merged_figures *x = loop_owner(t, struct merged_figures, tick);

	timer_set(t, FIGURES_TICK_MS);
	if (x->is_polling)
		return;
	x->is_polling = 1;
	x->round = (x->round + 1) % FIGURES_ROUNDS;
	x->poll = (struct fanout){ .done = figures_polled, .user = x };
	figures_send(x, &x->poll, figures_poll_target);
}

/* ---- life ---- */

struct merged_figures *merged_figures_new(struct gateway *g)
{
	struct merged_figures *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->gateway = g;
	x->source.read = figures_read;
	metrics_add_source(g->api->metrics, &x->source);
	timer_init(&x->tick, g->api->loop, figures_tick);
	timer_set(&x->tick, FIGURES_TICK_MS);
	g->merged = x;
	g->api->figures_of_nodes = figures_ask;
	return x;
}

void merged_figures_free(struct merged_figures *x)
{
	if (!x)
		return;
	x->gateway->api->figures_of_nodes = NULL;
	metrics_remove_source(x->gateway->api->metrics, &x->source);
	timer_fini(&x->tick);
	if (x->is_polling)
		fanout_free(&x->poll);
	for (unsigned i = 0; i < x->nseries; i++) {
		for (unsigned k = 0; k < METRIC_LABELS; k++)
			free(x->series[i]->labels[k]);
		free(x->series[i]);
	}
	free(x->series);
	free(x->ended);
	for (struct figures_node *n = x->nodes, *next; n; n = next) {
		next = n->next;
		free(n->v);
		free(n);
	}
	free(x);
}
