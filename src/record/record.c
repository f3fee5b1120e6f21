/* record.c - see record.h. Fields are only ever added. A figure that this host cannot give is null. */
#include "record/record.h"
#include "base/base64.h"

#include <stdio.h>
#include <time.h>

static json_t *record_number(uint64_t n)
{
	return n == UINT64_MAX ? json_null() : json_integer((json_int_t)n);
}

json_t *json_time(uint64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	char date[32], all[48];
	struct tm tm;

	gmtime_r(&s, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(all, sizeof(all), "%s.%03uZ", date, (unsigned)(ns / 1000000 % 1000));
	return json_string(all);
}

static json_t *record_texts(const char *const *strings)
{
	json_t *all = json_array();

	for (; *strings; strings++)
		json_array_append_new(all, json_text(*strings));
	return all;
}

static json_t *record_layers(const struct record *r)
{
	json_t *all = json_array();

	for (unsigned i = 0; r->layer_names[i]; i++)
		if (r->layers >> i & 1)
			json_array_append_new(all, json_string(r->layer_names[i]));
	return all;
}

static json_t *signal_text(const struct exit_info *x)
{
	char name[24];
	int signo = cause_signal(x);

	if (!signo)
		return json_null();
	cause_signal_name(signo, name);
	return json_string(name);
}

static json_t *exit_code(const struct exit_info *x)
{
	int has_one = x->exited && x->exit.why == WIRE_WHY_EXIT;

	return has_one ? json_integer(x->exit.status) : json_null();
}

static json_t *cpu_seconds(const struct exit_info *x)
{
	uint64_t us = cause_cpu_us(x);

	return us == UINT64_MAX ? json_null() : json_real((double)us / 1e6);
}

/* "box": all processes of the box while this one ran. "reaped": without processes that were not
 * waited for. */
static json_t *cpu_scope(const struct exit_info *x)
{
	if (cause_cpu_us(x) == UINT64_MAX)
		return json_null();
	return json_string(cause_has_cgroup_cpu(x) ? "box" : "reaped");
}

static uint64_t peak_memory(const struct exit_info *x)
{
	if (x->evidence && x->figures.mem_peak != UINT64_MAX)
		return x->figures.mem_peak;
	return x->exited ? x->exit.max_rss_kib * 1024 : UINT64_MAX;
}

static uint64_t record_processes(const struct exit_info *x)
{
	if (x->evidence && x->figures.pids_peak != UINT64_MAX)
		return x->figures.pids_peak;
	return x->exited ? x->exit.reaped : UINT64_MAX;
}

/* Values that only init reports, null if it died before. */
static json_t *from_init(const struct exit_info *x, uint64_t n)
{
	return x->exited ? record_number(n) : json_null();
}

static json_t *record_evidence(const struct exit_info *x)
{
	const struct wire_counters *f = &x->figures;
	json_t *all = json_pack("{s:o}", "cpu_scope", cpu_scope(x));

	if (x->evidence) {
		json_object_set_new(all, "oom_kills", record_number(f->oom_kills));
		json_object_set_new(all, "mem_hits", record_number(f->mem_hits));
		json_object_set_new(all, "pids_hits", record_number(f->pids_hits));
		json_object_set_new(all, "pids_peak", record_number(f->pids_peak));
		json_object_set_new(all, "throttled_us", record_number(f->throttled_us));
		json_object_set_new(all, "over_cpu", json_boolean(f->over_cpu == 1));
	}
	if (x->exited) {
		json_object_set_new(all, "disk_free", record_number(x->exit.disk_free));
		json_object_set_new(all, "disk_size", record_number(x->exit.disk_size));
		json_object_set_new(all, "files_free", record_number(x->exit.files_free));
		json_object_set_new(all, "files_size", record_number(x->exit.files_size));
		json_object_set_new(all, "streams_cut", json_integer(x->exit.cut));
	}
	if (cause_is_of_guest(x))
		json_object_set_new(all, "guest",
				    json_pack("{s:I, s:I}", "oom_kills",
					      (json_int_t)wire_exit_kills(x->exit.head.flags),
					      "pids_hits",
					      (json_int_t)wire_exit_refused(x->exit.head.flags)));
	if (x->exited && x->exit.why == WIRE_WHY_EXEC) {
		json_object_set_new(all, "failed_step", json_text(x->exit.step));
		json_object_set_new(all, "errno", json_integer(x->exit.status));
	}
	return all;
}

static json_t *record_limit(uint64_t n)
{
	return n ? record_number(n) : json_null();
}

static json_t *record_limits(const struct exit_info *x)
{
	const struct wire_limits *l = &x->limits;

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "mem", record_limit(l->mem_bytes),
			 "disk", record_limit(l->disk_bytes), "files", record_limit(l->disk_files),
			 "cpu_milli", record_limit(l->cpu_milli), "pids", record_limit(l->pids),
			 "cpu_ms", record_limit(l->cpu_ms), "wall_ms", record_limit(x->wall_ms));
}

static json_t *record_words(const struct exit_info *x,
			    void (*say)(const struct exit_info *x, struct buf *out))
{
	auto_buf struct buf text = { 0 };

	say(x, &text);
	return text.len ? json_string(buf_str(&text)) : json_null();
}

/* UTF-8 as text; other output as base64, marked as such. */
void record_set_output(json_t *doc, const char *name, const struct buf *b)
{
	json_t *text = json_stringn(buf_str(b), b->len);
	char key[32];

	if (!text) {
		auto_buf struct buf coded = { 0 };

		base64_encode(&coded, b->p, b->len);
		text = json_string(buf_str(&coded));
		snprintf(key, sizeof(key), "%s_encoding", name);
		json_object_set_new(doc, key, json_string("base64"));
	}
	json_object_set_new(doc, name, text);
}

static void set_changes(json_t *doc, const struct record *r)
{
	if (!r->changes)
		return;
	json_object_set(doc, "files_changed", r->changes->list);
	json_object_set_new(doc, "files_truncated",
			    json_boolean(r->changes->truncated || r->changes_failed));
	if (r->changes_failed)
		json_object_set_new(doc, "files_error", json_text(r->changes_failed));
}

json_t *record_json(const struct record *r)
{
	const struct exit_info *x = &r->end;
	uint64_t lost = r->dropped[0] + r->dropped[1];
	json_t *doc = json_object();

	json_object_set_new(doc, "id", json_string(r->id));
	json_object_set_new(doc, "box", json_string(r->box));
	json_object_set_new(doc, "template", json_string(r->template));
	json_object_set_new(doc, "tier", json_string(r->tier));
	if (r->isolation)
		json_object_set(doc, "isolation", (json_t *)r->isolation);
	json_object_set_new(doc, "layers", record_layers(r));
	json_object_set_new(doc, "command", record_texts(r->command));
	json_object_set_new(doc, "started", json_time(r->started_ns));
	json_object_set_new(doc, "ended", json_time(r->ended_ns));
	json_object_set_new(doc, "cause", json_string(cause_name(cause_of(x))));
	json_object_set_new(doc, "summary", record_words(x, cause_sentence));
	json_object_set_new(doc, "hint", record_words(x, cause_hint));
	json_object_set_new(doc, "status", json_integer(cause_status(x)));
	json_object_set_new(doc, "exit_code", exit_code(x));
	json_object_set_new(doc, "signal", signal_text(x));
	json_object_set_new(doc, "cpu_s", cpu_seconds(x));
	json_object_set_new(doc, "mem_peak", record_number(peak_memory(x)));
	json_object_set_new(doc, "processes", record_number(record_processes(x)));
	json_object_set_new(doc, "io",
			    json_pack("{s:o, s:o}", "reads", from_init(x, x->exit.reads), "writes",
				      from_init(x, x->exit.writes)));
	json_object_set_new(doc, "stdout_bytes", from_init(x, x->exit.bytes[0]));
	json_object_set_new(doc, "stderr_bytes", from_init(x, x->exit.bytes[1]));
	json_object_set_new(doc, "truncated", json_boolean(lost > 0));
	set_changes(doc, r);
	json_object_set_new(doc, "evidence", record_evidence(x));
	json_object_set_new(doc, "limits", record_limits(x));
	json_object_set_new(doc, "timings",
			    json_pack("{s:o, s:o}", "create_us", record_number(r->create_us),
				      "run_us", record_number(x->run_us)));
	if (r->output[0])
		record_set_output(doc, "stdout", r->output[0]);
	if (r->output[1])
		record_set_output(doc, "stderr", r->output[1]);
	return doc;
}
