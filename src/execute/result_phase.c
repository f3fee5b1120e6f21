/* result_phase.c - see result_phase.h. */
#include "execute/result_phase.h"
#include "execute/execute.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "record/changes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

json_t *phase_plain(const char *name, const char *cause, uint64_t ms, const char *said)
{
	return json_pack("{s:s, s:s, s:I, s:s, s:o, s:i, s:i, s:b}", "name", name, "cause", cause,
			 "ms", (json_int_t)ms, "stdout", "", "stderr", json_text(said),
			 "stdout_bytes", 0, "stderr_bytes", (int)strlen(said), "truncated", 0);
}

const char *phase_limit(unsigned why)
{
	switch (why) {
	case CAUSE_MEMORY:
		return "memory";
	case CAUSE_WALL:
	case CAUSE_CPU:
		return "time";
	case CAUSE_PROCESSES:
		return "pids";
	case CAUSE_DISK:
		return "disk";
	case WHY_OUTPUT:
		return "output";
	default:
		return NULL;
	}
}

static double phase_tenths(uint64_t us)
{
	return round((double)us / 100) / 10;
}

static void set_stream(json_t *phase, const struct batch_job *j, unsigned s, const char *name)
{
	const struct buf *head = &j->out[s], *tail = &j->tail[s];
	size_t n = head->len < PHASE_HEAD ? head->len : PHASE_HEAD;
	size_t ntail = tail->len < PHASE_TAIL ? tail->len : PHASE_TAIL;
	char bytes[24];

	if (n < head->len && !ntail) { /* more was stored, for comparison */
		ntail = head->len - n < PHASE_TAIL ? head->len - n : PHASE_TAIL;
		json_object_set_new(phase, name,
				    execute_text(head->p, n, head->p + head->len - ntail, ntail,
						 j->seen[s]));
	} else {
		json_object_set_new(phase, name,
				    execute_text(head->p, n,
						 tail->len ? tail->p + tail->len - ntail : "",
						 ntail, j->seen[s]));
	}
	snprintf(bytes, sizeof(bytes), "%s_bytes", name);
	json_object_set_new(phase, bytes, json_integer((json_int_t)j->seen[s]));
	if (j->seen[s] > n + ntail)
		json_object_set_new(phase, "truncated", json_true());
}

json_t *phase_of(const struct batch_job *j, const struct batch_job_end *end)
{
	const struct wire_exit *exit = &end->end.exit;
	uint64_t cpu = cause_cpu_us(&end->end);
	uint64_t peak = end->end.evidence && end->end.figures.mem_peak != UINT64_MAX
				? end->end.figures.mem_peak
				: exit->max_rss_kib * 1024;
	json_t *phase = json_pack(
		"{s:s, s:s, s:f, s:f, s:I, s:b}", "name", end->step, "cause",
		why_name(end->why == WHY_STDOUT || end->why == WHY_COMPILE ? CAUSE_EXIT : end->why),
		"ms", phase_tenths(end->end.run_us), "cpu_ms",
		phase_tenths(cpu == UINT64_MAX ? 0 : cpu), "peak_bytes", (json_int_t)peak,
		"truncated", 0);
	auto_buf struct buf text = { 0 };

	if (end->end.exited && exit->why == WIRE_WHY_EXIT)
		json_object_set_new(phase, "exit_code", json_integer(exit->status));
	if (cause_signal(&end->end)) {
		char name[24];

		cause_signal_name(cause_signal(&end->end), name);
		json_object_set_new(phase, "signal", json_string(name));
	}
	cause_sentence(&end->end, &text);
	if (text.len)
		json_object_set_new(phase, "message", json_text(buf_str(&text)));
	set_stream(phase, j, 0, "stdout");
	set_stream(phase, j, 1, "stderr");
	return phase;
}

json_t *phase_install(const struct packages_failure *f, uint64_t ms)
{
	const char *said = f->said ? f->said : "";
	size_t n = strlen(said), cut = n > PHASE_TAIL ? n - PHASE_TAIL : 0;
	json_t *near = json_array();
	json_t *phase =
		json_pack("{s:s, s:s, s:I, s:s, s:o, s:i, s:I, s:b, s:o, s:s, s:o}", "name",
			  "install", "cause", "exit", "ms", (json_int_t)ms, "stdout", "", "stderr",
			  json_text(said + cut), "stdout_bytes", 0, "stderr_bytes", (json_int_t)n,
			  "truncated", cut > 0, "message", json_text(f->message), "fault",
			  install_fault_name(f->d.fault), "package", json_text(f->d.package));

	for (unsigned i = 0; i < f->nnear; i++)
		json_array_append_new(near, json_string(f->near[i]));
	json_object_set_new(phase, "near", near);
	if (f->d.fault != INSTALL_TIMEOUT)
		json_object_set_new(phase, "exit_code", json_integer(1));
	return phase;
}
