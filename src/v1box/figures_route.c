/* figures_route.c - see figures_route.h. */
#include "v1box/figures_route.h"
#include "api/keeper_info.h"
#include "base/cleanup.h"
#include "metrics/metrics.h"
#include "record/changes.h"

#include <string.h>

static json_t *figures_route_series(const struct metrics *m, const struct metrics_series *s)
{
	const double *v = metrics_value(m, s);
	unsigned n = s->def->type == METRIC_HISTOGRAM ? METRICS_SLOTS : 1;
	json_t *labels = json_array(), *slots = json_array();

	for (unsigned i = 0; i < metric_nlabels(s->def); i++)
		json_array_append_new(labels, json_text(s->labels[i]));
	for (unsigned i = 0; i < n; i++) {
		int is_whole = v[i] >= 0 && v[i] < 1e15 && v[i] == (double)(json_int_t)v[i];

		json_array_append_new(slots,
				      is_whole ? json_integer((json_int_t)v[i]) : json_real(v[i]));
	}
	return json_pack("[s, o, o]", s->def->name, labels, slots);
}

static void figures_route_answer(struct call *c, const struct wire_info *about)
{
	const struct metrics *m = c->api->metrics;
	json_t *all = json_array();

	(void)about; /* the source of the figures reads it, too */
	metrics_collect(c->api->metrics);
	for (unsigned id = 0; id < METRIC_COUNT; id++) {
		unsigned n;
		struct metrics_series *const *v = metrics_series(m, (enum metric_id)id, &n);

		for (unsigned i = 0; i < n && !(metric_defs[id].flags & METRIC_LOCAL); i++)
			if (metrics_is_current(m, v[i]))
				json_array_append_new(all, figures_route_series(m, v[i]));
	}
	call_json(c, 200, json_pack("{s:o}", "figures", all));
}

static void figures_route_get(struct call *c)
{
	keeper_info_request(c, figures_route_answer);
}

static const struct api_route figures_route_rows[] = {
	{ "GET", "/cluster/figures", NEED_OWNER, figures_route_get, "get the figures of this node",
	  .group = "cluster" },
};
static struct api_table figures_route_table = { figures_route_rows, ARRAY_LEN(figures_route_rows),
						NULL, NULL };

static int figures_route_take(struct call *c)
{
	if (!c->req->trusted_peer || strcmp(c->req->path, "/cluster/figures") != 0)
		return 0;
	call_serve(c, &figures_route_table);
	return 1;
}

const struct api_surface figures_route_surface = { figures_route_take, NULL, 0, NULL };
