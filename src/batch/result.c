/* result.c - the result of an item that has ended: its line in the results, its record. */
#include "batch/batch_internal.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "base/units.h"
#include "fleet/charge.h"
#include "lang/lang.h"
#include "store/runs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *hint_of(unsigned why)
{
	switch (why) {
	case CAUSE_MEMORY:
		return "raise limits.mem";
	case CAUSE_WALL:
		return "raise timeouts.run_ms";
	case CAUSE_CPU:
		return "raise limits.cpu_ms";
	case CAUSE_PROCESSES:
		return "raise limits.pids";
	case CAUSE_DISK:
		return "raise limits.disk or limits.files";
	case WHY_OUTPUT:
		return "it was ended: far more output than expected";
	default:
		return NULL;
	}
}

static void set_ending(json_t *doc, const struct batch_job_end *end)
{
	auto_buf struct buf text = { 0 };
	const struct wire_exit *exit = &end->end.exit;
	uint64_t cpu = cause_cpu_us(&end->end);

	json_object_set_new(doc, "exit_code",
			    end->end.exited && exit->why == WIRE_WHY_EXIT
				    ? json_integer(exit->status)
				    : json_null());
	if (cause_signal(&end->end)) {
		char name[24];

		cause_signal_name(cause_signal(&end->end), name);
		json_object_set_new(doc, "signal", json_string(name));
	}
	json_object_set_new(doc, "ms", json_real(round((double)end->end.run_us / 100) / 10));
	json_object_set_new(doc, "cpu_ms",
			    cpu == UINT64_MAX ? json_null()
					      : json_real(round((double)cpu / 100) / 10));
	if (end->verdict == VERDICT_PASSED)
		return;
	if (strcmp(end->step, "run") != 0)
		json_object_set_new(doc, "step", json_string(end->step));
	cause_sentence(&end->end, &text);
	if (end->why == WHY_STDOUT)
		buf_printf(&text, "stdout differs in line %u", end->differs_line);
	if (text.len && end->why != WHY_OUTPUT)
		json_object_set_new(doc, "message", json_text(buf_str(&text)));
	if (hint_of(end->why))
		json_object_set_new(doc, "hint", json_string(hint_of(end->why)));
}

/* A text that is cut inside a character would not be valid UTF-8. */
static size_t whole_characters(const struct buf *b, size_t n)
{
	size_t at = n, width;
	unsigned char c;

	while (at && n - at < 3 && ((unsigned char)b->p[at - 1] & 0xc0) == 0x80)
		at--;
	if (!at)
		return n;
	c = (unsigned char)b->p[at - 1];
	width = c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	return at - 1 + width > n ? at - 1 : n;
}

static void set_output(json_t *doc, struct batch_job *j, int stream, const char *name)
{
	struct buf *out = &j->out[stream];
	size_t kept = out->len < j->item.max_output ? out->len : j->item.max_output;

	if (j->seen[stream] > kept) {
		buf_cut(out, whole_characters(out, kept));
		json_object_set_new(doc, "truncated", json_true());
	}
	record_set_output(doc, name, out);
}

json_t *batch_result(struct work *w, const struct batch_job_end *end)
{
	struct batch_job *j = &w->job;
	json_t *doc = json_object();

	json_object_set_new(doc, "item", json_integer(w->item));
	if (j->item.id)
		json_object_set(doc, "id", (json_t *)j->item.id);
	json_object_set_new(doc, "verdict", json_string(verdict_name(end->verdict)));
	json_object_set_new(doc, "cause", json_string(why_name(end->why)));
	if (end->verdict == VERDICT_ERROR) {
		json_object_set_new(doc, "message", json_text(end->e.msg));
		json_object_set_new(doc, "line", json_integer(w->line));
		return doc;
	}
	set_ending(doc, end);
	if (j->found)
		exec_json_set_cached(doc);
	set_output(doc, j, 0, "stdout");
	if (end->verdict != VERDICT_PASSED)
		set_output(doc, j, 1, "stderr");
	return doc;
}

/* ---- charges ---- */

static uint64_t result_peak(const struct exit_info *x)
{
	if (x->evidence && x->figures.mem_peak != UINT64_MAX)
		return x->figures.mem_peak;
	return x->exited ? x->exit.max_rss_kib * 1024 : 0;
}

struct store_charge batch_job_charge(const struct batch_job *j, const struct batch_job_end *end,
				     const char *team)
{
	const struct lang *lang = j->item.program.lang;
	struct store_charge c = { .template = "base",
				  .use = { .runs = 1,
					   .cpu_us = end->cpu_us,
					   .memory_mib_ms = units_mib_ms(result_peak(&end->end),
									 end->end.run_us),
					   .output_bytes = j->seen[0] + j->seen[1] } };

	snprintf(c.team, sizeof(c.team), "%s", team);
	snprintf(c.runtime, sizeof(c.runtime), "%s", lang ? lang->name : "");
	return c;
}

void batch_job_charge_pipeline(const struct batch_job *j, const struct batch_job_end *end,
			       const char *team, const char *key, const char *pipeline)
{
	struct store_charge c = batch_job_charge(j, end, team);

	snprintf(c.key, sizeof(c.key), "%s", key ? key : "");
	snprintf(c.tag, sizeof(c.tag), "%s", STORE_TAG_PIPELINE);
	snprintf(c.subject, sizeof(c.subject), "%s", pipeline ? pipeline : "");
	charge_other(j->fleet, &c);
}

static struct store_charge result_charge(const struct work *w, const struct batch_job_end *end)
{
	const struct store_batch *row = &w->batch->row;
	struct store_charge c = batch_job_charge(&w->job, end, row->team);

	snprintf(c.key, sizeof(c.key), "%s", row->who);
	snprintf(c.tag, sizeof(c.tag), "%s", STORE_TAG_BATCH);
	snprintf(c.subject, sizeof(c.subject), "%s", row->id);
	return c;
}

/* ---- records, if requested ---- */

static json_t *record_of(const struct batch_job *j, const struct batch_job_end *end,
			 struct store_run *row)
{
	json_t *isolation =
		isolation_text_json(j->tier.text, j->about.layers, j->fleet->conf.layer_names);
	struct record rec = {
		.box = j->about.id,
		.template = "base",
		.tier = choose_tier_name(j->tier.tier),
		.isolation = isolation,
		.layers = j->about.layers,
		.layer_names = j->fleet->conf.layer_names,
		.command = j->item.steps[j->step].argv,
		.started_ns = (uint64_t)row->started_ns,
		.ended_ns = (uint64_t)row->ended_ns,
		.create_us = j->create_us,
		.end = end->end,
	};
	json_t *doc;

	memcpy(rec.id, row->id, sizeof(rec.id));
	doc = record_json(&rec);
	json_decref(isolation);
	json_object_set_new(doc, "state", json_string("exited"));
	json_object_set_new(doc, "tag", json_string(row->tag));
	return doc;
}

/* A row like that of any other exec. If the disk is full, the result is still in the results. */
static void result_record(struct work *w, const struct batch_job_end *end, struct store_charge *c)
{
	struct batch_job *j = &w->job;
	struct store *s = j->fleet->store;
	struct store_run row = { .kind = STORE_RUN_ONCE, .ended_ns = fleet_now_ns() };
	auto_free char *command = NULL, *record = NULL;
	struct err e;
	json_t *doc;

	if (id_new(row.id, &e) < 0)
		return;
	row.started_ns = row.ended_ns - (int64_t)end->end.run_us * 1000;
	row.status = cause_status(&end->end);
	row.output_bytes = j->seen[0] + j->seen[1];
	snprintf(row.box, sizeof(row.box), "%.15s", j->about.id);
	snprintf(row.team, sizeof(row.team), "%s", w->batch->row.team);
	snprintf(row.tag, sizeof(row.tag), "batch-%s", w->batch->row.id);
	snprintf(row.cause, sizeof(row.cause), "%s", cause_name(cause_of(&end->end)));
	memcpy(row.key, c->key, sizeof(row.key));
	memcpy(row.runtime, c->runtime, sizeof(row.runtime));
	doc = record_of(j, end, &row);
	charge_price(j->fleet, c, doc);
	row.command = command = json_dumps(json_object_get(doc, "command"), JSON_COMPACT);
	row.record = record = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	if (store_begin(s, &e) == 0) {
		if (store_run_begin(s, &row, &e) < 0 ||
		    run_end_write(j->fleet, &row, doc, &(struct run_facts){ 0 }, &e) < 0 ||
		    charge_write(j->fleet, c, &e) < 0)
			store_rollback(s);
		else
			(void)!store_commit(s, &e);
	}
	json_decref(doc);
}

void batch_account(struct work *w, const struct batch_job_end *end)
{
	struct store_charge c = result_charge(w, end);

	if (w->batch->options.record)
		result_record(w, end, &c);
	else
		charge_other(w->job.fleet, &c);
}
