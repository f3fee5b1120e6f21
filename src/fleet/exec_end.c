/* exec_end.c - the end of an exec: cause from the counters of the kernel, record, notification of
 * waiters. */
#include "fleet/exec_internal.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "lang/lang.h"
#include "fleet/charge.h"
#include "fleet/exec_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t exit_grown(uint64_t now, uint64_t before)
{
	return now == UINT64_MAX || before == UINT64_MAX || now < before ? 0 : now - before;
}

static void exit_since(uint64_t *now, uint64_t before)
{
	if (*now != UINT64_MAX && *now >= before)
		*now -= before;
}

/* The kernel counts for the whole box, and counters only grow: values from before this exec are
 * subtracted. A kill for memory explains the end of one exec only, the first that is evaluated; if
 * two die at the same time, the second one gets the other kill. */
static struct wire_counters own_share(struct exec *r, const struct wire_counters *now)
{
	struct box *b = r->box;
	struct wire_counters own = *now;

	b->unclaimed_kills += exit_grown(now->oom_kills, b->seen.oom_kills);
	b->seen = *now;
	b->seen_ms = loop_now_ms();
	exit_since(&own.oom_kills, r->seen.oom_kills);
	exit_since(&own.mem_hits, r->seen.mem_hits);
	exit_since(&own.pids_hits, r->seen.pids_hits);
	exit_since(&own.throttled_us, r->seen.throttled_us);
	if (!b->unclaimed_kills && own.oom_kills != UINT64_MAX)
		own.oom_kills = 0;
	/* If several execs ran, init has the better figure for each. */
	if (!r->has_base || (r->is_shared && r->kind != STORE_RUN_ONCE))
		own.cpu_us = UINT64_MAX;
	else
		exit_since(&own.cpu_us, r->seen.cpu_us);
	return own;
}

static void claim_kills(struct box *b, enum cause cause)
{
	if (b->nruns == 1)
		b->unclaimed_kills = 0; /* no other exec is left that they could explain */
	else if (cause == CAUSE_MEMORY && b->unclaimed_kills)
		b->unclaimed_kills--;
}

static const char **command_words(const json_t *command)
{
	size_t n = json_array_size(command);
	const char **words = calloc(n + 1, sizeof(*words));

	if (!words)
		abort();
	for (size_t i = 0; i < n; i++)
		words[i] = json_string_value(json_array_get(command, i));
	return words;
}

static json_t *make_record(struct exec *r, const struct exit_info *end, int64_t ended_ns)
{
	struct box *b = r->box;
	auto_free const char **words = command_words(r->command);
	json_t *isolation = isolation_json(&b->row, b->fleet->conf.layer_names);
	struct record rec = {
		.box = b->row.id,
		.template = b->row.template,
		.tier = json_string_value(json_object_get(isolation, "tier")),
		.isolation = isolation,
		.layers = b->row.layers,
		.layer_names = b->fleet->conf.layer_names,
		.command = words,
		.started_ns = (uint64_t)r->started_ns,
		.ended_ns = (uint64_t)ended_ns,
		.create_us = b->create_us,
		.end = *end,
	};
	json_t *doc;

	if (r->exited)
		for (int i = 0; i < 2; i++)
			rec.dropped[i] = r->exit.dropped[i];
	memcpy(rec.id, r->id, sizeof(rec.id));
	doc = record_json(&rec);
	json_decref(isolation);
	json_object_set_new(doc, "state", json_string("exited"));
	if (egress_client_wanted(b))
		json_object_set_new(doc, "network", egress_client_since(b, r->started_ns));
	if (r->cached)
		exec_json_set_cached(doc);
	if (r->tag[0])
		json_object_set_new(doc, "tag", json_string(r->tag));
	if (r->replay_of[0])
		json_object_set_new(doc, "replay_of", json_string(r->replay_of));
	exec_before_json(&r->before, doc);
	return doc;
}

static void driver_event_end(struct exec *r)
{
	struct exec_reader *t = r->reader;

	r->reader = NULL;
	exec_input_low(r, 1);
	if (t)
		exec_reader_over(t, r->record, NULL);
	while (r->waiters) {
		struct exec_wait *w = r->waiters;

		r->waiters = w->next;
		w->run = NULL;
		w->done(w, r->record);
	}
}

static void exit_trace(const struct exec *r, const struct exit_info *end, int64_t ended_ns)
{
	struct trace_span *s;
	int status = cause_status(end);

	if (!r->trace.is_recorded)
		return;
	s = trace_add(&r->trace, "exec", TRACE_INTERNAL, r->started_ns, ended_ns);
	trace_text(s, "atoll.run", r->id);
	trace_text(s, "atoll.box", r->box->row.id);
	trace_text(s, "atoll.team", r->box->row.team);
	if (r->lang)
		trace_text(s, "atoll.language", r->lang->name);
	trace_text(s, "atoll.cause", cause_name(cause_of(end)));
	trace_number(s, "process.exit.code", status);
	if (status)
		trace_failed(s);
}

static void exit_conclude(struct exec *r, const struct wire_counters *figures)
{
	struct box *b = r->box;
	auto_free const char **words = command_words(r->command);
	/* A restored exec may have ended before this server received its EXIT. */
	int64_t ended_ns = r->restored && r->exited && r->exit.wall_us
				   ? r->started_ns + (int64_t)r->exit.wall_us * 1000
				   : fleet_now_ns();
	struct exit_info end = {
		.program = words[0] ? words[0] : "",
		.cwd = r->cwd,
		.end = r->exited ? STREAM_EXITED : STREAM_BOX_DIED,
		.exited = r->exited,
		.exit = r->exit,
		.evidence = figures != NULL,
		.limits = b->about.limits,
		.engine = b->about.tier != WIRE_TIER_CONTAINER,
		.wall_ms = (uint32_t)r->wall_ms,
		.run_us = r->exited ? r->exit.wall_us : (loop_now_ms() - r->began_ms) * 1000,
		.served = 1,
		.because = b->because,
		.because_ms = b->because_ms,
	};
	struct store_charge charge;

	if (figures) {
		box_count_cpu(b, figures);
		end.figures = own_share(r, figures);
	}
	if ((!figures || figures->cpu_us == UINT64_MAX) && r->exited)
		box_count_reaped(b, r->exit.user_us + r->exit.system_us);
	claim_kills(b, cause_of(&end));
	exit_trace(r, &end, ended_ns);
	r->record = make_record(r, &end, ended_ns);
	/* A helper of the server is part of what the box uses outside of runs. */
	if (!exec_is_helper(r))
		charge = charge_exec(r, &end);
	/* Waiters are notified before the end is written to the store. Nothing can be lost: init
	 * has the end, too, and the row is "running" until the end is written. */
	driver_event_end(r);
	exec_write_end(r, &end, ended_ns, exec_is_helper(r) ? NULL : &charge);
	box_exec_ended(b, r);
}

static void on_counted(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct exec *r = ctx;

	(void)len;
	(void)fd;
	(void)e;
	r->asking = NULL;
	exit_conclude(r, (const struct wire_counters *)f); /* NULL: no counters available */
}

static void on_base(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	const struct wire_counters *now = (const struct wire_counters *)f;
	struct exec *r = ctx;

	(void)len;
	(void)fd;
	(void)e;
	r->asking_base = NULL;
	if (!now || now->cpu_us == UINT64_MAX)
		return;
	box_count_cpu(r->box, now);
	r->seen.cpu_us = now->cpu_us;
	r->has_base = 1;
}

/* A box in which only init was left at the last request has used no CPU time since. */
void exec_ask_base(struct exec *r)
{
	struct box *b = r->box;

	if (b->is_known && (b->starts == 1 || (b->seen_ms && b->seen.pids_now == 1))) {
		r->has_base = 1;
		return;
	}
	r->asking_base =
		keeper_client_request_box(&b->fleet->keeper, WIRE_COUNTERS, 0, box_keeper_id(b),
					  WIRE_COUNTERS_REPLY, on_base, r);
}

void exec_exited(struct init_call *x, const struct wire_exit *end)
{
	struct exec *r = loop_owner(x, struct exec, init_call);
	struct box *b = r->box;

	exec_begin(r);
	r->exit = *end;
	r->exited = 1;
	r->over = 1;
	r->asking = keeper_client_request_box(&b->fleet->keeper, WIRE_COUNTERS, 0, box_keeper_id(b),
					      WIRE_COUNTERS_REPLY, on_counted, r);
}

void exec_box_gone(struct exec *r, const struct wire_counters *figures)
{
	keeper_client_cancel(&r->box->fleet->keeper, r->asking);
	keeper_client_cancel(&r->box->fleet->keeper, r->asking_base);
	r->asking = r->asking_base = NULL;
	r->over = 1;
	exit_conclude(r, figures);
}

void exec_never_started(struct exec *r, int sys, const char *why)
{
	r->over = r->exited = 1;
	r->exit = (struct wire_exit){ .why = WIRE_WHY_EXEC, .status = sys ? sys : EAGAIN };
	snprintf(r->exit.step, sizeof(r->exit.step), "%.20s", why);
	exit_conclude(r, NULL);
}
