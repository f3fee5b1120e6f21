/* figures.c - see figures.h. Label values come from tables, or from names whose number the table of
 * figures bounds. */
#include "v1/figures.h"
#include "api/quota.h"
#include "base/log.h"
#include "batch/batch.h"
#include "lang/lang.h"
#include "metrics/metrics.h"
#include "pipeline/pipeline.h"
#include "v1agent/models.h"
#include "v1box/host_sampler.h"
#include "v1box/suspects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	FIGURES_KEEPER_MS = 3 * METRICS_STEP_S * 1000
}; /* older figures of the keeper are not shown */

struct figures {
	struct metrics_source source;
	struct api *api;
	struct keeper_call *asking;
};

static void figures_one(struct metrics *m, enum metric_id id, uint64_t value)
{
	metrics_put(m, id, (double)value, NULL, NULL);
}

static void figures_labelled(struct metrics *m, enum metric_id id, uint64_t value,
			     const char *label)
{
	metrics_put(m, id, (double)value, label, NULL);
}

/* ---- execs and boxes ---- */

static void figures_languages(struct metrics *m, const struct fleet_figures *f)
{
	static const char *const results[] = { "failed", "ok" };
	unsigned n = lang_count() < FLEET_LANGS - 1 ? lang_count() : FLEET_LANGS - 1;

	for (unsigned i = 0; i <= n; i++) {
		const char *name = i < n ? lang_at(i)->name : "none";

		for (unsigned k = 0; k < 2; k++)
			metrics_put(m, METRIC_RUNS_LANGUAGE, (double)f->languages[i][k], name,
				    results[k]);
		for (unsigned k = 0; k < FLEET_OUTCOMES; k++)
			metrics_put(m, METRIC_EXECUTIONS, 0, name,
				    fleet_outcome_name((enum fleet_outcome)k));
	}
}

/* In the database, because they are the number of records: a server that is killed loses none. */
static void figures_executions(struct metrics *m, const struct api *a,
			       void (*put)(struct metrics *m, enum metric_id id, double value,
					   const char *label, const char *second))
{
	static struct store_run_count rows[STORE_RUN_COUNTS];
	unsigned n = 0;
	struct err e;

	if (store_run_counts(a->store, rows, &n, &e) < 0)
		log_warn("executions cannot be counted", LOG_E(&e));
	for (unsigned i = 0; i < n; i++)
		put(m, METRIC_EXECUTIONS, (double)rows[i].n,
		    rows[i].language[0] ? rows[i].language : "none", rows[i].outcome);
}

static void figures_execs(struct metrics *m, const struct api *a)
{
	static const char *const codes[EXITS_COUNT] = { "0", "1", "2", "126", "127", "other" };
	const struct fleet_figures *f = &a->fleet.figures;

	figures_languages(m, f);
	figures_executions(m, a, metrics_put);
	figures_one(m, METRIC_RUNS_STARTED, f->runs_started);
	for (unsigned i = 0; i < CAUSE_COUNT; i++)
		figures_labelled(m, METRIC_RUNS_ENDED, f->ended[i], cause_name((enum cause)i));
	for (unsigned i = 0; i < EXITS_COUNT; i++)
		figures_labelled(m, METRIC_RUNS_EXIT, f->exits[i], codes[i]);
	metrics_put_histogram(m, METRIC_RUN_SECONDS, &f->run, f->run_examples, NULL);
	metrics_put_histogram(m, METRIC_RUN_CPU_SECONDS, &f->run_cpu, f->cpu_examples, NULL);
	metrics_put_histogram(m, METRIC_RUN_MEMORY_BYTES, &f->run_memory, f->memory_examples, NULL);
	figures_one(m, METRIC_OUTPUT_BYTES, f->output_bytes);
	figures_one(m, METRIC_STDIN_BYTES, f->stdin_bytes);
	metrics_put(m, METRIC_CPU_SECONDS, (double)quota_cpu_us(a) / 1e6, NULL, NULL);
	metrics_put(m, METRIC_COST, (double)f->cost_nano / 1e9, NULL, NULL);
}

static void figures_boxes(struct metrics *m, const struct api *a)
{
	static const char *const starts[FLEET_STARTS] = { "cold", "pooled", "warm" };
	const struct fleet_figures *f = &a->fleet.figures;

	figures_one(m, METRIC_BOXES, a->fleet.count);
	figures_one(m, METRIC_BOXES_CREATED, f->created);
	/* Always has a row for "base", so that a rate can be computed from the start. */
	figures_labelled(m, METRIC_TEMPLATE_BOXES_CREATED, 0, "base");
	for (unsigned i = 0; i < FLEET_TEMPLATES && f->templates[i].name[0]; i++)
		figures_labelled(m, METRIC_TEMPLATE_BOXES_CREATED, f->templates[i].created,
				 f->templates[i].name);
	figures_one(m, METRIC_BOX_CREATE_FAILURES, f->create_failed);
	for (unsigned i = 0; i < CAUSE_COUNT; i++)
		figures_labelled(m, METRIC_BOXES_ENDED, f->boxes_ended[i],
				 cause_name((enum cause)i));
	metrics_put_histogram(m, METRIC_BOX_CREATE_SECONDS, &f->create, NULL, NULL);
	for (unsigned i = 0; i < FLEET_STARTS; i++) {
		figures_labelled(m, METRIC_BOX_STARTS, f->starts[i].count, starts[i]);
		metrics_put_histogram(m, METRIC_BOX_START_SECONDS, &f->starts[i], NULL, starts[i]);
	}
	figures_labelled(m, METRIC_NETWORK_BYTES, f->network_in, "in");
	figures_labelled(m, METRIC_NETWORK_BYTES, f->network_out, "out");
	figures_one(m, METRIC_NETWORK_REFUSED, f->network_refused);
	for (unsigned i = 0; i < PM_COUNT; i++) {
		const char *name = package_manager_name((enum package_manager)i);

		metrics_put(m, METRIC_PACKAGE_INSTALLS, (double)f->installs[i][0], name, "failed");
		metrics_put(m, METRIC_PACKAGE_INSTALLS, (double)f->installs[i][1], name, "ok");
	}
	metrics_put_histogram(m, METRIC_PACKAGE_INSTALL_SECONDS, &f->install, NULL, NULL);
	figures_one(m, METRIC_HISTORY_REMOVED, f->history_rows);
}

/* ---- batches, pipelines, models ---- */

static void figures_batches(struct metrics *m, struct batch_figures f)
{
	figures_one(m, METRIC_BATCHES, f.live);
	figures_one(m, METRIC_BATCH_FLYING, f.flying);
	for (unsigned i = 0; i < VERDICT_COUNT; i++)
		figures_labelled(m, METRIC_BATCH_RESULTS, f.verdicts[i],
				 verdict_name((enum verdict)i));
}

static void figures_pipelines(struct metrics *m, const struct pipelines_figures *f)
{
	figures_one(m, METRIC_PIPELINES, f->live);
	for (unsigned i = 0; i < OUTCOME_COUNT; i++)
		figures_labelled(m, METRIC_PIPELINE_RUNS, f->outcomes[i],
				 pipeline_outcome_name((enum pipelines_outcome)i));
	figures_one(m, METRIC_PIPELINE_ATTEMPTS, f->attempts);
	figures_one(m, METRIC_PIPELINE_RETRIES, f->retries);
	figures_one(m, METRIC_PIPELINE_OVERFIT, f->overfit);
	for (unsigned i = 0; pipeline_category_name(i); i++)
		figures_labelled(m, METRIC_PIPELINE_FAILURES, f->failures[i],
				 pipeline_category_name(i));
	metrics_put_histogram(m, METRIC_PIPELINE_SECONDS, &f->whole, NULL, NULL);
	for (unsigned i = 0; i < STORE_STAGES; i++)
		metrics_put_histogram(m, METRIC_PIPELINE_PLANNER_SECONDS + i, &f->stages[i], NULL,
				      NULL);
}

/* ---- the server ---- */

static uint64_t figures_resident(int statm)
{
	char text[128];
	ssize_t n = statm < 0 ? -1 : pread(statm, text, sizeof(text) - 1, 0);
	unsigned long long size, pages;

	if (n <= 0)
		return 0;
	text[n] = 0;
	return sscanf(text, "%llu %llu", &size, &pages) == 2
		       ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
		       : 0;
}

static void figures_server(struct metrics *m, const struct api *a)
{
	static const char *const classes[] = { NULL, "1xx", "2xx", "3xx", "4xx", "5xx" };
	static const char *const quotas[QUOTA_KINDS] = { "boxes",  "requests", "executions",
							 "output", "compute",  "budget" };
	uint64_t resident = figures_resident(a->conf.statm);

	figures_one(m, METRIC_SERVER_RESIDENT_BYTES, resident);
	figures_one(m, METRIC_FRONT_RESIDENT_BYTES, resident);
	figures_one(m, METRIC_STORE_ERRORS, store_errors());
	figures_one(m, METRIC_LOG_LINES_LOST, log_lost_ever());
	metrics_put_histogram(m, METRIC_REQUEST_SECONDS, &a->latency, NULL, NULL);
	for (unsigned i = 1; i < 6; i++)
		figures_labelled(m, METRIC_HTTP_RESPONSES, a->by_status[i], classes[i]);
	figures_one(m, METRIC_HTTP_CONNECTIONS, a->http.open);
	figures_one(m, METRIC_HTTP_ACCEPTED, a->http.accepted);
	figures_one(m, METRIC_HTTP_EVICTED, a->http.evicted);
	figures_one(m, METRIC_HTTP_BAD_REQUESTS, a->http.bad_requests);
	figures_one(m, METRIC_HTTP_RECEIVED_BYTES, a->http.bytes_in);
	figures_one(m, METRIC_HTTP_SENT_BYTES, a->http.bytes_out);
	figures_one(m, METRIC_AUTH_FAILURES, a->auth_failures);
	figures_one(m, METRIC_AUTH_SLOWED, a->auth_slowed);
	for (unsigned i = 0; i < QUOTA_KINDS; i++)
		figures_labelled(m, METRIC_QUOTA_REFUSALS, a->quota_refusals[i], quotas[i]);
}

/* ---- the keeper and the machine ---- */

static void figures_answered(void *ctx, const struct frame *f, size_t len, int *fd,
			     const struct err *e)
{
	struct figures *x = ctx;

	(void)len;
	(void)fd;
	(void)e;
	x->asking = NULL;
	if (!f)
		return;
	x->api->about = *(const struct wire_info *)f;
	x->api->about_ms = loop_now_ms();
}

/* For the next collection. GET /metrics waits for an answer itself, see api/keeper_info.h. */
static void figures_ask_keeper(struct figures *x)
{
	static const struct frame ask = { .type = WIRE_INFO };

	if (!x->asking)
		x->asking = keeper_client_request(&x->api->fleet.keeper, &ask, sizeof(ask),
						  WIRE_INFO_REPLY, figures_answered, x);
}

static void figures_keeper(struct figures *x, struct metrics *m)
{
	const struct api *a = x->api;
	const struct wire_info *k = &a->about;
	int up = keeper_client_is_connected(&a->fleet.keeper);

	/* A gateway without a keeper shows that of its nodes. */
	if (up || !a->gateway || a->fleet.figures.keeper_lost)
		figures_one(m, METRIC_KEEPER_UP, (uint64_t)up);
	figures_one(m, METRIC_KEEPER_RECONNECTS, a->fleet.figures.keeper_lost);
	figures_one(m, METRIC_KEEPER_QUEUE, a->fleet.keeper.waiting);
	if (up)
		figures_ask_keeper(x);
	if (!up || !a->about_ms || loop_now_ms() - a->about_ms > FIGURES_KEEPER_MS)
		return;
	figures_one(m, METRIC_POOL_HITS, k->hits);
	figures_one(m, METRIC_POOL_MISSES, k->misses);
	figures_one(m, METRIC_POOL_BOXES, k->pooled);
	figures_one(m, METRIC_POOL_DEPTH, k->pool_depth);
	figures_one(m, METRIC_KEEPER_MAKING, k->making);
	figures_one(m, METRIC_KEEPER_BOXES, k->boxes);
}

static void figures_host(struct metrics *m, const struct api *a)
{
	struct host_sample s;

	if (!a->host)
		return;
	host_sampler_read(a->host, a->fleet.count, &s);
	metrics_put(m, METRIC_HOST_LOAD, s.load_centi / 100.0, NULL, NULL);
	if (s.has_cpu)
		metrics_put(m, METRIC_HOST_CPU_SECONDS, (double)s.cpu_us / 1e6, NULL, NULL);
	if (s.has_mem) {
		figures_one(m, METRIC_HOST_MEMORY_USED_BYTES, s.mem_bytes);
		figures_one(m, METRIC_HOST_MEMORY_TOTAL_BYTES, s.mem_total);
	}
	if (s.has_disk && s.disk_total) {
		figures_one(m, METRIC_HOST_DISK_USED_BYTES, s.disk_bytes);
		figures_one(m, METRIC_HOST_DISK_TOTAL_BYTES, s.disk_total);
		metrics_put(m, METRIC_HOST_DISK_FREE_RATIO,
			    (double)(s.disk_total - s.disk_bytes) / (double)s.disk_total, NULL,
			    NULL);
	}
}

static void figures_traces(struct metrics *m, struct trace_figures f)
{
	figures_labelled(m, METRIC_TRACE_SPANS, f.sent, "sent");
	figures_labelled(m, METRIC_TRACE_SPANS, f.dropped, "dropped");
	figures_labelled(m, METRIC_TRACE_SPANS, f.failed, "failed");
}

static void figures_alarming(struct metrics *m, const struct api *a)
{
	int64_t left_s = a->conf.certificate_until_s - fleet_now_ns() / 1000000000;

	figures_labelled(m, METRIC_PROCESS_RESTARTS, (uint64_t)a->conf.replaces_crashed, "server");
	figures_labelled(m, METRIC_PROCESS_RESTARTS, a->fleet.figures.keeper_lost, "keeper");
	if (a->conf.certificate_until_s)
		metrics_put(m, METRIC_CERTIFICATE_SECONDS, (double)left_s, NULL, NULL);
	figures_one(m, METRIC_SUSPECT_BOXES, suspects_count(a));
}

/* ---- the source ---- */

static void figures_read(struct metrics_source *s, struct metrics *m)
{
	struct figures *x = loop_owner(s, struct figures, source);
	struct api *a = x->api;

	run_writer_flush(&a->fleet.run_writer); /* so that all ends of execs are counted */
	figures_execs(m, a);
	figures_boxes(m, a);
	figures_batches(m, batches_figures(a->batches));
	figures_pipelines(m, pipelines_figures(a->pipelines));
	models_figures(a, m);
	figures_server(m, a);
	figures_keeper(x, m);
	figures_host(m, a);
	figures_traces(m, trace_figures());
	figures_alarming(m, a);
}

void figures_init(struct api *a)
{
	struct figures *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->api = a;
	x->source.read = figures_read;
	a->metrics = metrics_new(&a->fleet);
	a->figures = x;
	figures_executions(a->metrics, a, metrics_set_base);
	metrics_add_source(a->metrics, &x->source);
}

void figures_fini(struct api *a)
{
	struct figures *x = a->figures;

	metrics_free(a->metrics);
	if (x)
		keeper_client_cancel(&a->fleet.keeper, x->asking);
	free(x);
	a->metrics = NULL;
	a->figures = NULL;
}
