/* v1.c - see v1.h. */
#include "v1/v1.h"
#include "v1/doctor.h"
#include "v1/figures.h"
#include "batch/batch.h"
#include "checkpoint/checkpoints.h"
#include "fleet/snapshot.h"
#include "pipeline/pipeline.h"
#include "v1run/batch.h"
#include "v1box/host_sampler.h"
#include "v1run/languages.h"
#include "v1agent/pipelines.h"
#include "v1ops/schedule_runs.h"
#include "v1box/usage_sampler.h"

static void v1_on_second(struct api *a)
{
	usage_sampler_tick(a->gauges);
	if (a->host)
		host_sampler_tick(a->host, a->fleet.count);
}

int v1_init(struct api *a, struct err *e)
{
	static struct api_table table;

	table.rows = v1_routes;
	table.n = v1_nroutes;
	a->native = &table;
	a->on_second = v1_on_second;
	a->gauges = usage_sampler_new(&a->fleet);
	if (api_init(a, e) < 0 ||
	    snapshots_init(&a->fleet, a->conf.state, a->conf.snapshot_bytes, e) < 0 ||
	    batch_routes_init(a, e) < 0)
		return -1;
	a->checkpoints = checkpoints_new(
		&a->fleet, &(struct checkpoints_conf){ .team_bytes = a->conf.checkpoint_bytes,
						       .per_box = a->conf.checkpoints_per_box });
	if (pipelines_routes_init(a, e) < 0)
		return -1;
	a->schedules = schedule_runs_new(a);
	figures_init(a);
	return 0;
}

void v1_fini(struct api *a)
{
	figures_fini(a);
	languages_fini(a);
	doctor_free(a->doctor);
	free(a->rooms); /* empty: connections are closed */
	schedule_runs_free(a->schedules);
	pipelines_free(a->pipelines);
	batches_free(a->batches);
	checkpoints_free(a->checkpoints);
	snapshots_fini(&a->fleet);
	usage_sampler_free(a->gauges);
	host_sampler_free(a->host);
	api_fini(a);
}
