/* daemon_info.c - see daemon_info.h. */
#include "template/build.h"
#include "pipeline/pipeline.h"
#include "v1/daemon_info.h"
#include "v1agent/models.h"
#include "v1/ui.h"
#include "api/keeper_info.h"
#include "api/fields.h"
#include "api/quota.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "batch/batch.h"
#include "lang/lang.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void info_page(struct call *c)
{
	static const char top[] =
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
		"<title>Atoll</title>\n</head>\n<body>\n<h1>Atoll</h1>\n"
		"<p>This daemon runs programs in boxes. It is spoken with over HTTP, and every "
		"request takes a key.</p>\n"
		"<ul>\n"
		"<li>A key: <code>atoll key new NAME</code>, on this machine.</li>\n"
		"<li>A first program: <code>curl -H \"X-API-Key: $KEY\" -d "
		"'{\"command\":\"echo hello\"}' THIS-ADDRESS/v1/run</code></li>\n"
		"<li>All paths, with the key: <code>/openapi.json</code>.</li>\n"
		"<li>The command line: <code>atoll --help</code>, <code>man atoll</code>.</li>\n"
		"<li>How it works: <a href=\"/docs/daemon.md\">/docs/daemon.md</a>.</li>\n";
	static const char with_ui[] =
		"<li>The web UI: this address, in a browser; <code>atoll ui</code> prints a link that is "
		"signed in.</li>\n";
	static const char without_ui[] =
		"<li>This build has no web UI: <a href=\"/docs/ui.md\">/docs/ui.md</a> says what it needs.</li>\n";
	static const char end[] = "</ul>\n</body>\n</html>\n";
	auto_buf struct buf page = { 0 };

	buf_puts(&page, top);
	buf_puts(&page, ui_is_built() ? with_ui : without_ui);
	buf_puts(&page, end);
	http_set(c->req, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
	http_reply(c->req, 200, "text/html; charset=utf-8", page.p, page.len);
}

void info_health(struct call *c)
{
	int ok = keeper_client_is_connected(&c->api->fleet.keeper);

	call_json(c, ok ? 200 : 503,
		  json_pack("{s:s}", "status", ok ? "ok" : "no keeper at the moment"));
}

/* Determined once: a language that is installed later is found by the next server process. */
static json_t *info_languages(void)
{
	static json_t *all;

	if (all)
		return json_incref(all);
	all = json_array();

	for (unsigned i = 0; i < lang_count(); i++)
		json_array_append_new(all, json_pack("{s:s, s:b}", "name", lang_at(i)->name, "here",
						     lang_present(lang_at(i))));
	return json_incref(all);
}

void info_principal(struct call *c)
{
	call_json(c, 200,
		  json_pack("{s:s, s:s, s:s, s:s}", "who", c->who.id, "team", c->who.team, "role",
			    store_role_name(c->who.role), "box", c->who.box));
}

void info_daemon(struct call *c)
{
	const struct fleet_conf *conf = &c->api->fleet.conf;

	call_json(
		c, 200,
		json_pack(
			"{s:s, s:s, s:s, s:s, s:s, s:[s], s:o, s:{s:I, s:I, s:I, s:I, s:I}, s:o, s:o}",
			"version", ATOLL_VERSION, "who", c->who.id, "team", c->who.team, "role",
			store_role_name(c->who.role), "box", c->who.box, "templates", "base",
			"languages", info_languages(), "limits", "lifetime_ms",
			(json_int_t)conf->lifetime_ms, "max_lifetime_ms",
			(json_int_t)conf->lifetime_max_ms, "json_bytes",
			(json_int_t)c->api->conf.json_max, "upload_bytes",
			(json_int_t)c->api->conf.upload_max, "template_bytes",
			(json_int_t)c->api->conf.template_max, "usage",
			c->who.box[0] ? json_object() : quota_json(c->api, c->who.team), "started",
			json_time((uint64_t)c->api->started_ns)));
}

/* ---- Prometheus ---- */

static void info_say(struct buf *b, const char *name, const char *kind, const char *help)
{
	buf_printf(b, "# HELP atoll_%s %s\n# TYPE atoll_%s %s\n", name, help, name, kind);
}

static void info_one(struct buf *b, const char *name, const char *kind, const char *help,
		     uint64_t value)
{
	info_say(b, name, kind, help);
	buf_printf(b, "atoll_%s %llu\n", name, (unsigned long long)value);
}

static void info_causes(struct buf *b, const char *name, const char *help,
			const uint64_t n[CAUSE_COUNT])
{
	info_say(b, name, "counter", help);
	for (unsigned i = 0; i < CAUSE_COUNT; i++)
		buf_printf(b, "atoll_%s{cause=\"%s\"} %llu\n", name, cause_name((enum cause)i),
			   (unsigned long long)n[i]);
}

static void info_histogram(struct buf *b, const char *name, const char *help,
			   const struct fleet_histogram *h)
{
	uint64_t sum = 0;

	info_say(b, name, "histogram", help);
	for (unsigned i = 0; i < FLEET_BUCKETS; i++) {
		sum += h->bucket[i];
		buf_printf(b, "atoll_%s_bucket{le=\"%g\"} %llu\n", name, fleet_bounds[i],
			   (unsigned long long)sum);
	}
	buf_printf(b, "atoll_%s_bucket{le=\"+Inf\"} %llu\natoll_%s_sum %.6f\natoll_%s_count %llu\n",
		   name, (unsigned long long)h->count, name, h->sum, name,
		   (unsigned long long)h->count);
}

static void byte_histogram(struct buf *b, const char *name, const char *help,
			   const struct fleet_histogram *h)
{
	uint64_t sum = 0;

	info_say(b, name, "histogram", help);
	for (unsigned i = 0; i < FLEET_BUCKETS; i++) {
		sum += h->bucket[i];
		buf_printf(b, "atoll_%s_bucket{le=\"%llu\"} %llu\n", name,
			   (unsigned long long)fleet_byte_bounds[i], (unsigned long long)sum);
	}
	buf_printf(b, "atoll_%s_bucket{le=\"+Inf\"} %llu\natoll_%s_sum %.0f\natoll_%s_count %llu\n",
		   name, (unsigned long long)h->count, name, h->sum, name,
		   (unsigned long long)h->count);
}

/* For the error rate: execs that did not exit with 0, and all execs that ended. Label values come
 * from tables, never from clients. */
static void of_exits(struct buf *b, const struct fleet_figures *f)
{
	static const char *const codes[EXITS_COUNT] = { "0", "1", "2", "126", "127", "other" };
	static const char *const results[] = { "failed", "ok" };
	unsigned n = lang_count() < FLEET_LANGS - 1 ? lang_count() : FLEET_LANGS - 1;

	info_say(b, "runs_exit_total", "counter", "Execs that exited, by exit status.");
	for (unsigned i = 0; i < EXITS_COUNT; i++)
		buf_printf(b, "atoll_runs_exit_total{code=\"%s\"} %llu\n", codes[i],
			   (unsigned long long)f->exits[i]);
	info_say(b, "runs_language_total", "counter",
		 "Execs that ended, by language; result is ok if the exit status was 0.");
	for (unsigned i = 0; i <= n; i++)
		for (unsigned well = 0; well < 2; well++)
			buf_printf(
				b,
				"atoll_runs_language_total{language=\"%s\",result=\"%s\"} %llu\n",
				i < n ? lang_at(i)->name : "none", results[well],
				(unsigned long long)f->languages[i][well]);
}

/* Always has a row for "base", so that a rate can be computed from the start. */
static void by_template(struct buf *b, const struct fleet_figures *f)
{
	info_say(b, "template_boxes_created_total", "counter", "Boxes created, by template.");
	if (!f->templates[0].name[0])
		buf_puts(b, "atoll_template_boxes_created_total{template=\"base\"} 0\n");
	for (unsigned i = 0; i < FLEET_TEMPLATES && f->templates[i].name[0]; i++)
		buf_printf(b, "atoll_template_boxes_created_total{template=\"%s\"} %llu\n",
			   f->templates[i].name, (unsigned long long)f->templates[i].created);
}

static void info_keeper(struct buf *b, const struct wire_info *a)
{
	info_one(b, "keeper_up", "gauge", "1 if the server is connected to a keeper, otherwise 0.",
		 a != NULL);
	if (!a)
		return;
	info_one(b, "pool_hits_total", "counter", "Boxes that were taken from the pool.", a->hits);
	info_one(b, "pool_misses_total", "counter",
		 "Boxes that were not in the pool and had to be created.", a->misses);
	info_one(b, "pool_boxes", "gauge", "Boxes that wait in the pool.", a->pooled);
	info_one(b, "pool_depth", "gauge", "Boxes that the pool should have.", a->pool_depth);
	info_one(b, "keeper_making", "gauge", "Boxes that the keeper is creating.", a->making);
	info_one(b, "keeper_boxes", "gauge",
		 "Boxes of the keeper, including those of other clients.", a->boxes);
}

static uint64_t info_resident(int statm)
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

static void info_process(struct buf *b, const struct api *a)
{
	uint64_t resident = info_resident(a->conf.statm);

	info_one(b, "server_resident_bytes", "gauge", "Resident memory of the server process.",
		 resident);
	info_one(b, "front_resident_bytes", "gauge",
		 "Deprecated name of atoll_server_resident_bytes.", resident);
	info_one(b, "store_errors_total", "counter", "Failed reads and writes of the database.",
		 store_errors());
	info_one(b, "log_lines_lost_total", "counter",
		 "Log lines that were dropped because the log was not read.", log_lost_ever());
}

static void of_batches(struct buf *b, struct batch_figures f)
{
	info_one(b, "batches", "gauge", "Batches that have not ended.", f.live);
	info_one(b, "batch_flying", "gauge", "Batch items that are running.", f.flying);
	info_say(b, "batch_results_total", "counter", "Finished batch items, by verdict.");
	for (unsigned i = 0; i < VERDICT_COUNT; i++)
		buf_printf(b, "atoll_batch_results_total{verdict=\"%s\"} %llu\n",
			   verdict_name((enum verdict)i), (unsigned long long)f.verdicts[i]);
}

static void of_pipelines(struct buf *b, const struct pipelines_figures *f)
{
	static const char *const stages[STORE_STAGES] = { "planner", "coder", "executor",
							  "debugger" };
	char name[64];

	info_one(b, "pipelines", "gauge", "Pipelines that are running in this server.", f->live);
	info_say(b, "pipeline_runs_total", "counter", "Pipelines that ended, by outcome.");
	for (unsigned i = 0; i < OUTCOME_COUNT; i++)
		buf_printf(b, "atoll_pipeline_runs_total{outcome=\"%s\"} %llu\n",
			   pipeline_outcome_name((enum pipelines_outcome)i),
			   (unsigned long long)f->outcomes[i]);
	info_one(b, "pipeline_attempts_total", "counter", "Artifacts that pipelines have run.",
		 f->attempts);
	info_one(b, "pipeline_retries_total", "counter", "Pipeline attempts after the first one.",
		 f->retries);
	info_one(
		b, "pipeline_overfit_total", "counter",
		"Pipelines with a program that passed the shown examples and failed a held-out example.",
		f->overfit);
	info_histogram(b, "pipeline_seconds", "Time from a task to its report.", &f->whole);
	for (unsigned i = 0; i < STORE_STAGES; i++) {
		snprintf(name, sizeof(name), "pipeline_%s_seconds", stages[i]);
		info_histogram(b, name, "Time of this pipeline stage.", &f->stages[i]);
	}
}

static void info_do_metrics(struct call *c, const struct wire_info *about)
{
	const struct api *a = c->api;
	const struct fleet_figures *f = &a->fleet.figures;
	auto_buf struct buf b = { 0 };

	by_template(&b, f);
	info_keeper(&b, about);
	info_process(&b, a);
	info_one(&b, "boxes", "gauge", "Boxes that exist.", a->fleet.count);
	info_one(&b, "boxes_created_total", "counter", "Boxes created.", f->created);
	info_one(&b, "box_create_failures_total", "counter", "Boxes that could not be created.",
		 f->create_failed);
	info_causes(&b, "boxes_ended_total", "Boxes that ended, by cause.", f->boxes_ended);
	info_one(&b, "runs_started_total", "counter", "Execs started.", f->runs_started);
	info_causes(&b, "runs_ended_total", "Execs that ended, by cause.", f->ended);
	of_exits(&b, f);
	info_say(&b, "cpu_seconds_total", "counter", "CPU time of all boxes.");
	buf_printf(&b, "atoll_cpu_seconds_total %.6f\n", (double)quota_cpu_us(a) / 1e6);
	info_histogram(&b, "box_create_seconds", "Time from the request for a box to its creation.",
		       &f->create);
	info_histogram(&b, "run_seconds", "Wall time of execs.", &f->run);
	info_histogram(&b, "run_cpu_seconds", "CPU time of execs.", &f->run_cpu);
	byte_histogram(&b, "run_memory_bytes", "Peak memory of the box of an exec.",
		       &f->run_memory);
	info_histogram(&b, "request_seconds",
		       "Time from the first byte of a request to the end of its answer.",
		       &a->latency);
	info_one(&b, "output_bytes_total", "counter", "Output bytes of execs.", f->output_bytes);
	info_one(&b, "stdin_bytes_total", "counter", "Stdin bytes sent to execs.", f->stdin_bytes);
	info_one(&b, "keeper_reconnects_total", "counter", "Lost connections to the keeper.",
		 f->keeper_lost);
	info_one(
		&b, "history_removed_total", "counter",
		"Rows of runs, boxes, idempotency keys and the audit log that were deleted because of their age or number.",
		f->history_rows);
	info_one(&b, "keeper_queue", "gauge", "Requests to the keeper that wait for an answer.",
		 a->fleet.keeper.waiting);
	of_batches(&b, batches_figures(a->batches));
	models_metrics(a, &b);
	of_pipelines(&b, pipelines_figures(a->pipelines));
	info_one(&b, "http_connections", "gauge", "Open HTTP connections.", a->http.open);
	info_one(&b, "http_accepted_total", "counter", "Accepted HTTP connections.",
		 a->http.accepted);
	info_one(&b, "auth_failures_total", "counter",
		 "Requests with a wrong key, token or signature.", a->auth_failures);
	info_one(
		&b, "auth_slowed_total", "counter",
		"Requests that were answered with 429 because their address had too many authentication failures.",
		a->auth_slowed);
	info_one(&b, "http_evicted_total", "counter",
		 "Idle HTTP connections that were closed to make room for new ones.",
		 a->http.evicted);
	info_one(&b, "http_bad_requests_total", "counter", "Requests that were not valid HTTP.",
		 a->http.bad_requests);
	info_one(&b, "http_received_bytes_total", "counter", "Bytes received over HTTP.",
		 a->http.bytes_in);
	info_one(&b, "http_sent_bytes_total", "counter", "Bytes sent over HTTP.",
		 a->http.bytes_out);
	info_say(&b, "http_responses_total", "counter", "HTTP responses, by class of the status.");
	for (unsigned i = 1; i < 6; i++)
		buf_printf(&b, "atoll_http_responses_total{class=\"%uxx\"} %llu\n", i,
			   (unsigned long long)a->by_status[i]);
	http_reply(c->req, 200, "text/plain; version=0.0.4; charset=utf-8", b.p, b.len);
}

/* Figures of the machine are for operators (team default), as in GET /v1/stats. */
void info_metrics(struct call *c)
{
	if (!c->api->conf.metrics_public && strcmp(c->who.team, TEAM_DEFAULT) != 0)
		call_error(
			c, 403, "denied",
			"these are the figures of the whole machine, for keys of team " TEAM_DEFAULT,
			c->who.team, "those of your team: GET /v1/usage");
	else
		keeper_info_request(c, info_do_metrics);
}
