/* run.c - see run.h.
 *
 *   START ---> OUTPUT... ---> EXIT ---> was it plain? ---> record ---> store ---> who waits
 *                                         no: COUNTERS --^
 *
 * The kernel's evidence is asked for only when the end needs explaining: a program that exits 0
 * costs no second question. */
#include "fleet/run.h"
#include "base/clock.h"
#include "base/own.h"
#include "box/record.h"
#include "fleet/tap.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STDIN_PIECE = 32 * 1024, ASK_AGAIN = 2, ASK_PAUSE_MS = 200 };
#define REQUEST "request" /* in a stored record: what was asked for */

/* ---- input ---- */

/* One after the other, while there is room: who is told may fill it again, and wait again. */
static void tell_low(struct run *r, int closed)
{
	while (r->input_waiters && (closed || r->input.len - r->input_taken <= RUN_INPUT)) {
		struct run_input_wait *w = r->input_waiters;

		r->input_waiters = w->next;
		w->run = NULL;
		w->low(w, closed);
	}
}

static void push(struct run *r)
{
	size_t waiting = r->input.len - r->input_taken;

	if (r->input_unknown)
		return;
	while (waiting && r->room > r->sent && r->ear.line) {
		uint64_t room = r->room - r->sent;
		size_t n = waiting < STDIN_PIECE ? waiting : STDIN_PIECE;

		n = room < n ? (size_t)room : n;
		line_stdin(&r->berth->line, r->ref, r->input.p + r->input_taken, n);
		r->input_taken += n;
		r->sent += n;
		waiting -= n;
		r->berth->fleet->figures.stdin_bytes += n;
	}
	if (waiting)
		return;
	buf_cut(&r->input, 0);
	r->input_taken = 0;
	if (r->input_end == 1 && r->ear.line) {
		line_stdin(&r->berth->line, r->ref, NULL, 0);
		r->input_end = 2; /* told */
		r->stdin_open = 0;
	}
	tell_low(r, 0);
}

int run_input(struct run *r, const void *bytes, size_t n)
{
	if (!r->stdin_open || r->input_end || r->over)
		return 0;
	if (r->input_taken > RUN_INPUT) { /* move what waits to the front, now and then */
		memmove(r->input.p, r->input.p + r->input_taken, r->input.len - r->input_taken);
		buf_cut(&r->input, r->input.len - r->input_taken);
		r->input_taken = 0;
	}
	buf_add(&r->input, bytes, n);
	push(r);
	return r->input.len - r->input_taken > RUN_INPUT;
}

void run_input_close(struct run *r)
{
	if (!r->stdin_open || r->input_end)
		return;
	r->input_end = 1;
	push(r);
}

void run_input_await(struct run *r, struct run_input_wait *w)
{
	w->run = r;
	w->next = r->input_waiters;
	r->input_waiters = w;
}

void run_input_cancel(struct run_input_wait *w)
{
	struct run_input_wait **at;

	if (!w->run)
		return;
	for (at = &w->run->input_waiters; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->run = NULL;
}

/* ---- the channel ---- */

static void push_words(struct run *r)
{
	while (r->words_taken < r->words.len && r->words_room > r->words_sent && r->ear.line &&
	       !r->input_unknown) {
		size_t n = r->words.len - r->words_taken;
		uint64_t room = r->words_room - r->words_sent;

		n = n < STDIN_PIECE ? n : STDIN_PIECE;
		n = room < n ? (size_t)room : n;
		line_channel(&r->berth->line, r->ref, r->words.p + r->words_taken, n);
		r->words_taken += n;
		r->words_sent += n;
	}
	if (r->words_taken == r->words.len) {
		buf_cut(&r->words, 0);
		r->words_taken = 0;
	}
}

uint64_t run_say(struct run *r, const void *bytes, size_t n)
{
	if (r->over)
		return run_said(r);
	run_input_check(r); /* another front may have spoken to it, too */
	buf_add(&r->words, bytes, n);
	push_words(r);
	return run_said(r);
}

uint64_t run_said(const struct run *r)
{
	return r->words_sent + r->words.len - r->words_taken;
}

/* ---- waiting for the end ---- */

void run_await(struct run *r, struct run_wait *w)
{
	w->run = r;
	w->next = r->waiters;
	r->waiters = w;
}

void run_wait_cancel(struct run_wait *w)
{
	struct run_wait **at;

	if (!w->run)
		return;
	for (at = &w->run->waiters; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->run = NULL;
}

/* ---- the end ---- */

static void begin(struct run *r)
{
	r->begun = 1;
	while (r->early) {
		struct tap *t = r->early;

		r->early = t->next_early;
		tap_begin(t);
	}
}

static uint64_t grown(uint64_t now, uint64_t before)
{
	return now == UINT64_MAX || before == UINT64_MAX || now < before ? 0 : now - before;
}

static void since(uint64_t *now, uint64_t before)
{
	if (*now != UINT64_MAX && *now >= before)
		*now -= before;
}

/* The kernel counts for the whole box and only ever upwards: what was there before this run is not
 * its doing. A kill for memory explains one run only, the first that asks; of two that die at once
 * the second finds the other kill. */
static struct wire_counted own_share(struct run *r, const struct wire_counted *now)
{
	struct berth *b = r->berth;
	struct wire_counted own = *now;

	b->unclaimed_kills += grown(now->oom_kills, b->seen.oom_kills);
	b->seen = *now;
	since(&own.oom_kills, r->seen.oom_kills);
	since(&own.mem_hits, r->seen.mem_hits);
	since(&own.pids_hits, r->seen.pids_hits);
	since(&own.throttled_us, r->seen.throttled_us);
	if (!b->unclaimed_kills && own.oom_kills != UINT64_MAX)
		own.oom_kills = 0;
	/* Among several, init knows better who computed. */
	if (r->kind != STORE_RUN_ONCE)
		own.cpu_us = UINT64_MAX;
	return own;
}

static void claim_kills(struct berth *b, enum cause cause)
{
	if (b->nruns == 1)
		b->unclaimed_kills = 0; /* nobody else is left to be explained by them */
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

static json_t *make_record(struct run *r, const struct ending *end, int64_t ended_ns)
{
	struct berth *b = r->berth;
	auto_free const char **words = command_words(r->command);
	struct record rec = {
		.box = b->row.id,
		.template = b->row.template,
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
	json_object_set_new(doc, "state", json_string("over"));
	if (gate_wanted(b))
		json_object_set_new(doc, "network", gate_since(b, r->started_ns));
	if (r->compiled_before)
		json_object_set_new(doc, "compiled_before", json_true());
	if (r->tag[0])
		json_object_set_new(doc, "tag", json_string(r->tag));
	if (r->replay_of[0])
		json_object_set_new(doc, "replay_of", json_string(r->replay_of));
	return doc;
}

/* The record as the store has it: with what was asked for, which nobody else is told. */
static json_t *stored_record(const struct run *r, const json_t *record)
{
	json_t *doc = record ? json_copy((json_t *)record) : json_object();

	if (r->request)
		json_object_set(doc, REQUEST, r->request);
	if (r->replay_of[0])
		json_object_set_new(doc, "replay_of", json_string(r->replay_of));
	return doc;
}

static void tell_end(struct run *r)
{
	struct tap *t = r->tap;

	r->tap = NULL;
	tell_low(r, 1);
	if (t)
		tap_over(t, r->record, NULL);
	while (r->waiters) {
		struct run_wait *w = r->waiters;

		r->waiters = w->next;
		w->run = NULL;
		w->done(w, r->record);
	}
}

/* What it has used goes with the news, for those who keep the accounts. */
static json_t *news_of(const struct run *r, const struct store_run *row)
{
	double cpu_s = json_number_value(json_object_get(r->record, "cpu_s"));

	return json_pack("{s:s, s:s, s:i, s:I, s:I}", "run", r->id, "cause", row->cause, "status",
			 row->status, "cpu_ms", (json_int_t)(cpu_s * 1000 + 0.5), "output_bytes",
			 (json_int_t)row->output_bytes);
}

static void write_end(struct run *r, const struct ending *end, int64_t ended_ns)
{
	const struct berth *b = r->berth;
	struct store_run row = {
		.ended_ns = ended_ns,
		.status = cause_status(end),
		.output_bytes = r->exited ? r->exit.bytes[0] + r->exit.bytes[1] : 0,
	};

	memcpy(row.id, r->id, sizeof(row.id));
	snprintf(row.box, sizeof(row.box), "%s", b->row.id);
	snprintf(row.team, sizeof(row.team), "%s", b->row.team);
	snprintf(row.cause, sizeof(row.cause), "%s", cause_name(cause_of(end)));
	ledger_add(&b->fleet->ledger, &row, stored_record(r, r->record), cause_of(end), end->run_us,
		   news_of(r, &row));
	if (b->state != BERTH_RUNNING)
		ledger_settle(&b->fleet->ledger); /* nobody could say it again */
}

static void conclude(struct run *r, const struct wire_counted *figures)
{
	struct berth *b = r->berth;
	auto_free const char **words = command_words(r->command);
	/* One that was restored ended when it did, not when we heard of it. */
	int64_t ended_ns = r->restored && r->exited && r->exit.wall_us ?
				   r->started_ns + (int64_t)r->exit.wall_us * 1000 :
				   fleet_now_ns();
	struct ending end = {
		.program = words[0] ? words[0] : "",
		.cwd = r->cwd,
		.end = r->exited ? STREAM_EXITED : STREAM_BOX_DIED,
		.exited = r->exited,
		.exit = r->exit,
		.evidence = figures != NULL,
		.limits = b->about.limits,
		.wall_ms = (uint32_t)r->wall_ms,
		.run_us = r->exited ? r->exit.wall_us : (loop_now_ms() - r->began_ms) * 1000,
		.served = 1,
		.because = b->because,
		.because_ms = b->because_ms,
	};

	if (figures)
		end.figures = own_share(r, figures);
	claim_kills(b, cause_of(&end));
	r->record = make_record(r, &end, ended_ns);
	/* Those who wait are answered before it is written down. Nothing can be lost by that: init
	 * has the end, too, and the row says "running" until it says how it ended. */
	tell_end(r);
	write_end(r, &end, ended_ns);
	berth_run_over(b, r);
}

static void on_counted(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct run *r = ctx;

	(void)len;
	(void)fd;
	(void)e;
	r->asking = NULL;
	conclude(r, (const struct wire_counted *)f); /* NULL: nobody could look */
}

static void exited(struct listener *x, const struct wire_exit *end)
{
	struct run *r = loop_owner(x, struct run, ear);
	struct berth *b = r->berth;

	begin(r);
	r->exit = *end;
	r->exited = 1;
	r->over = 1;
	if (end->why == WIRE_WHY_EXIT && end->status == 0) {
		conclude(r, NULL);
		return;
	}
	r->asking = office_ask_box(&b->fleet->office, WIRE_COUNTERS, 0, b->row.id, WIRE_COUNTED,
				   on_counted, r);
}

void run_box_gone(struct run *r, const struct wire_counted *figures)
{
	office_forget(&r->berth->fleet->office, r->asking);
	r->asking = NULL;
	r->over = 1;
	conclude(r, figures);
}

/* ---- events of the line ---- */

static void started(struct listener *x, int pid)
{
	struct run *r = loop_owner(x, struct run, ear);

	r->pid = pid;
	begin(r);
	if (r->tap && r->tap->on->started)
		r->tap->on->started(r->tap, pid);
}

static void output(struct listener *x, unsigned stream, uint64_t offset, const char *bytes,
		   size_t n)
{
	struct run *r = loop_owner(x, struct run, ear);

	berth_touch(r->berth);
	if (r->tap)
		tap_output(r->tap, stream, offset, bytes, n);
}

static void room(struct listener *x, uint64_t until)
{
	struct run *r = loop_owner(x, struct run, ear);

	r->room = until;
	push(r);
}

static void channel_room(struct listener *x, uint64_t until)
{
	struct run *r = loop_owner(x, struct run, ear);

	r->words_room = until;
	push_words(r);
}

void run_told(struct run *r, const struct wire_exec *about)
{
	if (!r->input_unknown)
		return;
	r->input_unknown = 0;
	r->pid = about->group;
	r->stdin_open = about->stdin_open;
	r->sent = about->stdin_bytes;
	r->room = about->stdin_room;
	r->words_sent = about->channel_bytes;
	r->words_room = about->channel_room;
	if (r->on_told)
		r->on_told(r);
	push_words(r);
	push(r);
}

void run_input_check(struct run *r)
{
	if (!r->restored || r->input_sure || r->over || r->input.len > r->input_taken)
		return;
	r->input_sure = r->input_unknown = 1;
	berth_tally(r->berth);
}

uint64_t run_input_has(const struct run *r)
{
	return r->sent + r->input.len - r->input_taken;
}

static void never_ran(struct run *r, int sys, const char *why)
{
	r->over = r->exited = 1;
	r->exit = (struct wire_exit){ .why = WIRE_WHY_EXEC, .status = sys ? sys : EAGAIN };
	snprintf(r->exit.step, sizeof(r->exit.step), "%.20s", why);
	conclude(r, NULL);
}

static void ask_again(struct timer *t);

/* START was refused, or a restored run is not known there. The front that wrote its row may have died
 * before it sent START; or init has not come to read that yet, and gets a moment. */
static void refused(struct listener *x, const struct err *e)
{
	struct run *r = loop_owner(x, struct run, ear);
	struct tap *t = r->tap;

	if (r->over)
		return;
	line_unlisten(x);
	if (!r->restored) {
		r->tap = NULL;
		never_ran(r, e->sys, "refused");
		/* Who waits for an answer is told what was said; the record is for those who come later. */
		if (t)
			tap_over(t, NULL, e);
	} else if (r->tries++ == ASK_AGAIN) {
		never_ran(r, ESRCH, "never started");
	} else {
		if (!r->again.ev)
			timer_init(&r->again, r->berth->fleet->loop, ask_again);
		timer_set(&r->again, ASK_PAUSE_MS);
	}
}

static const struct listen_events ear_events = {
	.started = started, .output = output, .room = room, .channel_room = channel_room,
	.exited = exited, .refused = refused,
	/* lost: berth.c asks the keeper why, and tells by run_box_gone() */
};

static void ask_again(struct timer *t)
{
	struct run *r = loop_owner(t, struct run, again);

	if (!r->over && line_is_open(&r->berth->line))
		line_read(&r->berth->line, &r->ear, r->ref, &ear_events, 0, NULL, NULL);
	if (r->input_unknown)
		berth_tally(r->berth);
}

/* ---- the beginning ---- */

/* The box's own variables under the run's; the usual ones under both. */
static void add_env(struct buf *pool, unsigned *n, const char *name, size_t name_len,
		    const char *value)
{
	buf_add(pool, name, name_len);
	buf_putc(pool, '=');
	buf_add(pool, value, strlen(value) + 1);
	++*n;
}

static int is_set(const char *const *env, const char *name, size_t len)
{
	for (; env && *env; env++)
		if (!strncmp(*env, name, len) && (*env)[len] == '=')
			return 1;
	return 0;
}

/* Returns an array of n + 1 pointers into pool. */
static const char **merge_env(const struct berth *b, const char *const *usual,
			      const char *const *own, struct buf *pool)
{
	json_t *box = b->row.env ? json_loads(b->row.env, 0, NULL) : NULL, *value;
	const char *name, **all;
	unsigned n = 0;

	for (usual = usual ? usual : box_default_env; *usual; usual++) {
		size_t len = strcspn(*usual, "=");
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)len, *usual);
		if (!is_set(own, key, len) && !json_object_get(box, key))
			add_env(pool, &n, key, len, *usual + len + 1);
	}
	for (const char *const *way = gate_wanted(b) ? b->fleet->conf.way_env : NULL; way && *way; way++) {
		size_t len = strcspn(*way, "=");
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)len, *way);
		if (!is_set(own, key, len) && !json_object_get(box, key))
			add_env(pool, &n, key, len, *way + len + 1);
	}
	json_object_foreach(box, name,
			    value) if (json_is_string(value) && !is_set(own, name, strlen(name)))
		add_env(pool, &n, name, strlen(name), json_string_value(value));
	for (; own && *own; own++) {
		buf_add(pool, *own, strlen(*own) + 1);
		n++;
	}
	json_decref(box);
	all = calloc(n + 1, sizeof(*all));
	if (!all)
		abort();
	for (unsigned i = 0, at = 0; i < n; i++, at += (unsigned)strlen(pool->p + at) + 1)
		all[i] = pool->p + at;
	return all;
}

static json_t *words_json(const char *const *argv)
{
	json_t *all = json_array();

	for (; *argv; argv++)
		json_array_append_new(all, changes_text(*argv));
	return all;
}

static struct run *new_run(struct berth *b, const char *id, uint32_t ref)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->berth = b;
	r->ref = ref;
	snprintf(r->id, sizeof(r->id), "%s", id);
	r->next = b->runs;
	b->runs = r;
	b->nruns++;
	b->starts++;
	r->seen = b->seen;
	r->began_ms = loop_now_ms();
	return r;
}

static int store_begin_run(struct run *r, struct err *e)
{
	json_t *doc = stored_record(r, NULL);
	auto_free char *text = json_dumps(r->command, JSON_COMPACT),
		       *record = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	struct store_run row = { .ref = r->ref,
				 .kind = r->kind,
				 .started_ns = r->started_ns,
				 .command = text,
				 .record = record };

	json_decref(doc);
	if (!text || !record)
		abort();
	memcpy(row.id, r->id, sizeof(row.id));
	memcpy(row.tag, r->tag, sizeof(row.tag));
	snprintf(row.box, sizeof(row.box), "%s", r->berth->row.id);
	snprintf(row.team, sizeof(row.team), "%s", r->berth->row.team);
	return store_run_begin(r->berth->fleet->store, &row, e);
}

/* One commit, however many rows it takes. */
static int write_beginning(struct run *r, const struct run_want *want, struct err *e)
{
	struct store *s = r->berth->fleet->store;

	if (!want->note)
		return store_begin_run(r, e);
	if (store_begin(s, e) < 0)
		return -1;
	if (store_begin_run(r, e) < 0)
		return store_rollback(s);
	want->note(r, want->user);
	return store_commit(s, e);
}

static void unmake(struct run *r)
{
	struct berth *b = r->berth;

	b->runs = r->next; /* it was the newest */
	b->nruns--;
	run_free(r);
}

static struct box_command box_words(const struct run_want *want, const char *const *env, int read)
{
	return (struct box_command){
		.argv = want->argv,
		.env = env,
		.cwd = want->cwd,
		.wall_ms = want->wall_ms,
		.rows = want->rows,
		.cols = want->cols,
		.log_bytes = want->log_bytes ? want->log_bytes : 1024 * 1024,
		.credit = read ? TAP_WINDOW : 0,
		.flags = (uint16_t)(WIRE_START_TOLD | (want->pty ? WIRE_START_PTY : 0) |
				    (want->stdin_open ? WIRE_START_STDIN : 0) |
				    (want->root ? WIRE_START_ROOT : 0) |
				    (want->channel ? WIRE_START_CHANNEL : 0) |
				    (want->seed ? WIRE_START_SEED : 0) |
				    (want->lone ? WIRE_START_LONE : 0) |
				    (read ? 0 : WIRE_START_APART)),
	};
}

static unsigned running(const struct berth *b)
{
	unsigned n = 0;

	for (const struct run *r = b->runs; r; r = r->next)
		n += !r->over;
	return n;
}

int run_start(struct berth *b, const struct run_want *want, struct tap *tap, struct run **out,
	      struct err *e)
{
	auto_buf struct buf pool = { 0 };
	auto_free const char **env = NULL;
	struct box_command cmd;
	char id[ID_LEN + 1];
	struct run *r;

	if (b->state != BERTH_RUNNING)
		return err_set(e, ERR_CONFLICT, "box %s is %s", b->row.id,
			       berth_state_name(b->state));
	if (running(b) >= RUN_MAX)
		return err_set(e, ERR_LIMIT, "box %s runs %d programs already, and no more at once",
			       b->row.id, RUN_MAX);
	if (id_new(id, e) < 0)
		return -1;
	env = merge_env(b, want->usual, want->env, &pool);
	r = new_run(b, id, line_new_ref(&b->line));
	r->kind = want->kind;
	r->tty = want->pty;
	r->stdin_open = want->stdin_open || want->pty;
	r->wall_ms = want->wall_ms;
	r->compiled_before = want->compiled_before;
	r->command = words_json(want->argv);
	r->started_ns = fleet_now_ns();
	snprintf(r->tag, sizeof(r->tag), "%s", want->tag ? want->tag : "");
	snprintf(r->replay_of, sizeof(r->replay_of), "%s", want->replay_of ? want->replay_of : "");
	r->request = json_incref(want->request);
	r->cwd = want->cwd ? strdup(want->cwd) : NULL;
	cmd = box_words(want, env, tap != NULL);
	/* The row is there before the program is: a crash in between leaves a row that the next
	 * front finds to be of an exec that never was. */
	if (write_beginning(r, want, e) < 0 ||
	    line_start(&b->line, &r->ear, r->ref, &ear_events, &cmd, e) < 0) {
		struct err ignored;
		struct store_run row = { .ended_ns = fleet_now_ns(), .status = 126 };

		memcpy(row.id, r->id, sizeof(row.id));
		snprintf(row.cause, sizeof(row.cause), "%s", cause_name(CAUSE_HOST));
		(void)!store_run_end(b->fleet->store, &row, &ignored);
		unmake(r);
		return -1;
	}
	b->fleet->figures.runs_started++;
	berth_touch(b);
	r->tap = tap;
	if (tap) {
		tap->run = r;
		tap->ref = r->ref;
		memcpy(tap->run_id, r->id, sizeof(r->id));
		snprintf(tap->box, sizeof(tap->box), "%s", b->row.id);
	}
	*out = r;
	return 0;
}

static void restore_request(struct run *r, const struct store_run *row)
{
	json_t *doc = row->record ? json_loads(row->record, 0, NULL) : NULL;
	const char *of = json_string_value(json_object_get(doc, "replay_of"));

	r->request = json_incref(json_object_get(doc, REQUEST));
	r->wall_ms = (uint64_t)json_integer_value(json_object_get(r->request, "timeout_ms"));
	snprintf(r->replay_of, sizeof(r->replay_of), "%s", of ? of : "");
	json_decref(doc);
}

void run_restore(struct berth *b, struct store_run *row)
{
	struct run *r = new_run(b, row->id, row->ref);

	r->restored = r->begun = 1;
	r->kind = row->kind;
	r->tty = row->kind == STORE_RUN_PTY;
	r->stdin_open = r->input_unknown = 1;
	r->started_ns = row->started_ns;
	memcpy(r->tag, row->tag, sizeof(r->tag));
	r->command = row->command ? json_loads(row->command, 0, NULL) : NULL;
	if (!r->command)
		r->command = json_array();
	restore_request(r, row);
	b->fleet->figures.restored_runs++;
	if (line_is_open(&b->line))
		line_read(&b->line, &r->ear, r->ref, &ear_events, 0, NULL, NULL);
}

struct run *run_find(const struct berth *b, const char *id)
{
	struct run *r = b->runs;

	while (r && strcmp(r->id, id) != 0)
		r = r->next;
	return r;
}

struct run *run_by_tag(const struct berth *b, const char *tag)
{
	struct run *r = b->runs;

	while (r && strcmp(r->tag, tag) != 0)
		r = r->next;
	return r;
}

void run_signal(struct run *r, int signo)
{
	if (r->ear.line)
		line_signal(r->ear.line, r->ref, signo);
}

void run_resize(struct run *r, uint16_t rows, uint16_t cols)
{
	if (r->ear.line)
		line_resize(r->ear.line, r->ref, rows, cols);
}

void run_free(struct run *r)
{
	begin(r);
	office_forget(&r->berth->fleet->office, r->asking);
	line_unlisten(&r->ear);
	timer_fini(&r->again);
	tell_low(r, 1);
	json_decref(r->command);
	free(r->cwd);
	json_decref(r->request);
	json_decref(r->record);
	buf_fini(&r->input);
	buf_fini(&r->words);
	free(r);
}

json_t *run_json(const struct run *r)
{
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:O, s:i, s:b, s:s}", "id", r->id, "box",
				r->berth->row.id, "state", "running", "kind",
				store_run_kind_name(r->kind), "command", r->command, "pid", r->pid,
				"pty", r->tty, "tag", r->tag);

	json_object_set_new(doc, "started", record_when((uint64_t)r->started_ns));
	json_object_set_new(doc, "stdin",
			    json_pack("{s:b, s:o}", "open", r->stdin_open && !r->input_end, "bytes",
				      r->input_unknown ?
					      json_null() :
					      json_integer((json_int_t)run_input_has(r))));
	if (r->replay_of[0])
		json_object_set_new(doc, "replay_of", json_string(r->replay_of));
	return doc;
}

json_t *run_row_request(const struct store_run *row)
{
	json_t *doc = row->record ? json_loads(row->record, 0, NULL) : NULL;
	json_t *request = json_incref(json_object_get(doc, REQUEST));

	json_decref(doc);
	return request;
}

json_t *run_row_json(const struct store_run *row)
{
	json_t *doc = row->record ? json_loads(row->record, 0, NULL) : NULL;

	json_object_del(doc, REQUEST);
	if (json_object_get(doc, "id"))
		return doc;
	json_decref(doc);
	doc = json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", row->id, "box", row->box, "state",
			row->ended_ns ? "over" : "running", "kind", store_run_kind_name(row->kind),
			"tag", row->tag);
	if (row->command)
		json_object_set_new(doc, "command", json_loads(row->command, 0, NULL));
	json_object_set_new(doc, "started", record_when((uint64_t)row->started_ns));
	if (row->ended_ns) {
		json_object_set_new(doc, "ended", record_when((uint64_t)row->ended_ns));
		json_object_set_new(doc, "cause", json_string(row->cause));
		json_object_set_new(doc, "status", json_integer(row->status));
	}
	return doc;
}
