/* batch.c - see batch.h.
 *
 * One thread; nothing here waits. A batch is read from its file a line at a time, when somebody of
 * its team may start another program; so memory holds what is in flight and not what was asked for.
 * A result is in the file before anybody hears of it. When the disk is full it is kept here, the
 * batch starts nothing, and it is tried again every second. */
#include "fleet/batch.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "box/record.h"
#include "store/runs.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	CHUNK = 64 * 1024,
	LINES_A_TURN = 512, /* of items that need no box: then others have their turn */
	TICK_MS = 1000,
	JOBS_PER_CPU = 4,
	PURGE_TICKS = 30,
	TRIES = 3, /* of an item whose box was lost through no fault of its own */
};

struct team {
	struct team *next;
	char name[STORE_NAME + 1];
	unsigned flying, batches;
};

struct work { /* an item in flight, or one whose result could not be written yet */
	struct job job;
	struct work *next;
	struct batch *batch;
	uint32_t item;
	unsigned line, tries;
	json_t *result; /* waits for the disk */
	struct spool_row row;
};

struct batch {
	struct batch *next;
	struct batches *all;
	struct team *team;
	struct store_batch row;
	struct spool spool;
	struct batch_options options;
	uint64_t counts[VERDICT_COUNT][WHY_COUNT];
	struct batch_watch *watches;
	/* receiving */
	size_t line_len; /* of the line that is coming */
	uint32_t lines;
	/* reading */
	struct buf text;   /* read, and not looked at before text_at */
	size_t text_at;
	uint64_t read_to; /* offset in the items behind text */
	int more;	  /* there may be another line */
	unsigned line;
	uint32_t next_item;
	unsigned char *done; /* after a restart: items that have a result, a bit each */
	uint32_t ndone;
	/* running */
	struct work *works;
	unsigned flying;
	uint64_t turn; /* when it was last served */
	int full;      /* the disk is */
	int unwritten; /* its row is not as it should be */
};

struct batches {
	struct fleet *fleet;
	struct batch_conf conf;
	struct batch_hooks hooks;
	int folder;
	struct artefacts artefacts; /* the fleet's */
	unsigned jobs, flying, live;
	uint64_t turn, verdicts[VERDICT_COUNT];
	struct batch *first;
	struct team *teams;
	struct timer tick, again;
	unsigned ticks;
	int restored;
};

static void pump(struct batches *a);

/* ---- rows ---- */

static int has_ended(const struct batch *b)
{
	return b->row.state == STORE_BATCH_OVER || b->row.state == STORE_BATCH_CANCELLED;
}

/* What a full disk keeps from being written is written later. */
static void write_row(struct batch *b)
{
	struct err e;

	b->row.bytes = b->spool.in_bytes + b->spool.out_bytes;
	b->unwritten = store_batch_update(b->all->fleet->store, &b->row, &e) < 0;
	if (b->unwritten && e.kind == ERR_NOT_FOUND)
		b->unwritten = 0;
}

static struct team *team_of(struct batches *a, const char *name)
{
	struct team *t = a->teams;

	while (t && strcmp(t->name, name) != 0)
		t = t->next;
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t)
			abort();
		snprintf(t->name, sizeof(t->name), "%s", name);
		t->next = a->teams;
		a->teams = t;
	}
	t->batches++;
	return t;
}

static void leave_team(struct batches *a, struct team *gone)
{
	if (--gone->batches)
		return;
	for (struct team **at = &a->teams; *at; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			free(gone);
			return;
		}
}

static struct batch *enter(struct batches *a, struct store_batch *take_row)
{
	struct batch *b = calloc(1, sizeof(*b));
	struct batch **at = &a->first;

	if (!b)
		abort();
	b->all = a;
	b->row = *take_row;
	b->team = team_of(a, b->row.team);
	b->spool = (struct spool){ .in = -1, .out = -1, .idx = -1 };
	while (*at)
		at = &(*at)->next;
	*at = b;
	a->live += !has_ended(b);
	return b;
}

static void free_work(struct work *w)
{
	struct batch *b = w->batch;
	struct work **at = &b->works;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	job_fini(&w->job);
	json_decref(w->result);
	free(w);
	b->flying--;
	b->team->flying--;
	b->all->flying--;
}

static void free_batch(struct batch *b)
{
	struct batches *a = b->all;
	struct batch **at = &a->first;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	while (b->works)
		free_work(b->works);
	while (b->watches)
		batch_unwatch(b->watches);
	leave_team(a, b->team);
	spool_fini(&b->spool);
	buf_fini(&b->text);
	free(b->done);
	store_batch_fini(&b->row);
	free(b);
}

/* What is over and read by nobody is only in its files. */
static void let_go(struct batch *b)
{
	if (has_ended(b) && !b->watches && !b->unwritten)
		free_batch(b);
}

static void tell(struct batch *b)
{
	for (struct batch_watch *w = b->watches, *next; w; w = next) {
		next = w->next;
		w->news(w);
	}
}

static void end(struct batch *b, enum store_batch_state state)
{
	b->row.state = state;
	b->row.ended_ns = fleet_now_ns();
	b->all->live--;
	if (state == STORE_BATCH_OVER)
		b->row.items = b->next_item;
	write_row(b);
	log_info("batch ended", LOG_S("batch", b->row.id), LOG_S("team", b->row.team),
		 LOG_S("state", store_batch_state_name(state)), LOG_U("passed", b->row.passed),
		 LOG_U("failed", b->row.failed), LOG_U("errors", b->row.errors));
	tell(b);
}

/* ---- results ---- */

static void count(struct batch *b, unsigned verdict, unsigned why)
{
	verdict = verdict < VERDICT_COUNT ? verdict : VERDICT_ERROR;
	b->counts[verdict][why < WHY_COUNT ? why : CAUSE_HOST]++;
	if (verdict == VERDICT_PASSED)
		b->row.passed++;
	else if (verdict == VERDICT_FAILED)
		b->row.failed++;
	else
		b->row.errors++;
}

/* The number of a result is its place in the file, so it is said here. */
static int write_result(struct batch *b, const json_t *doc, struct spool_row row, struct err *e)
{
	auto_free char *text = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	auto_buf struct buf line = { 0 };

	if (!text)
		abort();
	buf_printf(&line, "{\"type\":\"result\",\"n\":%u,%s\n", b->spool.results + 1, text + 1);
	if (spool_result(&b->spool, line.p, line.len, row, e) < 0)
		return -1;
	count(b, row.verdict, row.cause);
	b->all->verdicts[row.verdict]++;
	tell(b);
	return 0;
}

static void check_over(struct batch *b)
{
	if (!b->more && !b->flying && b->row.state == STORE_BATCH_RUNNING)
		end(b, STORE_BATCH_OVER);
}

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

static void set_ending(json_t *doc, const struct job_end *end)
{
	auto_buf struct buf text = { 0 };
	const struct wire_exit *exit = &end->end.exit;

	json_object_set_new(doc, "exit_code",
			    end->end.exited && exit->why == WIRE_WHY_EXIT ?
				    json_integer(exit->status) :
				    json_null());
	if (cause_signal(&end->end)) {
		char name[24];

		cause_signal_name(cause_signal(&end->end), name);
		json_object_set_new(doc, "signal", json_string(name));
	}
	json_object_set_new(doc, "ms", json_real(round((double)end->end.run_us / 100) / 10));
	json_object_set_new(doc, "cpu_ms",
			    json_real(round((double)(exit->user_us + exit->system_us) / 100) / 10));
	if (end->verdict == VERDICT_PASSED)
		return;
	if (strcmp(end->step, "run") != 0)
		json_object_set_new(doc, "step", json_string(end->step));
	cause_sentence(&end->end, &text);
	if (end->why == WHY_STDOUT)
		buf_printf(&text, "stdout differs in line %u", end->differs_line);
	if (text.len && end->why != WHY_OUTPUT)
		json_object_set_new(doc, "message", changes_text(buf_str(&text)));
	if (hint_of(end->why))
		json_object_set_new(doc, "hint", json_string(hint_of(end->why)));
}

/* A cut through a character would make the whole text none. */
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

static void set_output(json_t *doc, struct job *j, int stream, const char *name)
{
	struct buf *out = &j->out[stream];
	size_t kept = out->len < j->item.max_output ? out->len : j->item.max_output;

	if (j->seen[stream] > kept) {
		buf_cut(out, whole_characters(out, kept));
		json_object_set_new(doc, "truncated", json_true());
	}
	record_set_output(doc, name, out);
}

static json_t *result_json(struct work *w, const struct job_end *end)
{
	struct job *j = &w->job;
	json_t *doc = json_object();

	json_object_set_new(doc, "item", json_integer(w->item));
	if (j->item.id)
		json_object_set(doc, "id", (json_t *)j->item.id);
	json_object_set_new(doc, "verdict", json_string(verdict_name(end->verdict)));
	json_object_set_new(doc, "cause", json_string(why_name(end->why)));
	if (end->verdict == VERDICT_ERROR) {
		json_object_set_new(doc, "message", changes_text(end->e.msg));
		json_object_set_new(doc, "line", json_integer(w->line));
		return doc;
	}
	set_ending(doc, end);
	if (j->found)
		json_object_set_new(doc, "compiled_before", json_true());
	set_output(doc, j, 0, "stdout");
	if (end->verdict != VERDICT_PASSED)
		set_output(doc, j, 1, "stderr");
	return doc;
}

/* ---- records, for who wants them ---- */

static json_t *record_of(const struct job *j, const struct job_end *end, struct store_run *row)
{
	struct record rec = {
		.box = j->about.id,
		.template = "base",
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
	json_object_set_new(doc, "state", json_string("over"));
	json_object_set_new(doc, "tag", json_string(row->tag));
	return doc;
}

/* A row like that of any other run. What the disk does not take is in the results all the same. */
static void keep_record(struct work *w, const struct job_end *end)
{
	struct job *j = &w->job;
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
	snprintf(row.box, sizeof(row.box), "%.12s", j->about.id);
	snprintf(row.team, sizeof(row.team), "%s", w->batch->row.team);
	snprintf(row.tag, sizeof(row.tag), "batch-%s", w->batch->row.id);
	snprintf(row.cause, sizeof(row.cause), "%s", cause_name(cause_of(&end->end)));
	doc = record_of(j, end, &row);
	row.command = command = json_dumps(json_object_get(doc, "command"), JSON_COMPACT);
	row.record = record = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	json_decref(doc);
	if (store_begin(s, &e) < 0)
		return;
	if (store_run_begin(s, &row, &e) < 0 || store_run_end(s, &row, &e) < 0)
		store_rollback(s);
	else
		(void)!store_commit(s, &e);
}

/* The end of an item's journey, and of w. On a full disk w stays and holds its result. */
static void finish_work(struct work *w, const struct job_end *end)
{
	struct batch *b = w->batch;
	json_t *doc = result_json(w, end);
	struct err e;

	w->row = (struct spool_row){ .item = w->item,
				     .verdict = (uint16_t)end->verdict,
				     .cause = (uint16_t)end->why };
	if (write_result(b, doc, w->row, &e) < 0) {
		if (!b->full)
			log_error("a batch cannot be written", LOG_S("batch", b->row.id), LOG_E(&e));
		b->full = 1;
		w->result = doc;
		return;
	}
	json_decref(doc);
	free_work(w);
}

static void write_again(struct batch *b)
{
	struct err e;

	for (struct work *w = b->works, *next; w; w = next) {
		next = w->next;
		if (!w->result)
			continue;
		if (write_result(b, w->result, w->row, &e) < 0)
			return;
		free_work(w);
	}
	b->full = 0;
}

static void job_done(struct job *j, const struct job_end *end)
{
	struct work *w = loop_owner(j, struct work, job);
	struct batch *b = w->batch;
	struct batches *a = b->all;

	if (end->verdict == VERDICT_ERROR && end->why == CAUSE_HOST && ++w->tries < TRIES) {
		struct item item = j->item;
		void (*done)(struct job *, const struct job_end *) = j->done;

		buf_fini(&j->out[0]);
		buf_fini(&j->out[1]);
		buf_fini(&j->made);
		free(j->helper);
		*j = (struct job){ .item = item, .done = done, .team = b->row.team };
		job_start(j, a->fleet);
		return;
	}
	if (a->hooks.used)
		a->hooks.used(a->hooks.ctx, b->row.team,
			      end->end.exit.user_us + end->end.exit.system_us,
			      j->seen[0] + j->seen[1]);
	if (b->options.record && end->verdict != VERDICT_ERROR)
		keep_record(w, end);
	finish_work(w, end);
	check_over(b);
	let_go(b);
	pump(a);
}

/* ---- items ---- */

static int is_done(const struct batch *b, uint32_t item)
{
	return item < b->ndone && b->done[item / 8] >> item % 8 & 1;
}

/* 1: *out is a line, without its newline, good until the next call. 0: not now. */
static int next_line(struct batch *b, const char **out, size_t *out_n)
{
	size_t searched = 0;

	for (;;) {
		char *from = b->text.p + b->text_at, *nl;
		size_t n = b->text.len - b->text_at;
		struct err e;
		int got;

		nl = n > searched ? memchr(from + searched, '\n', n - searched) : NULL;
		if (nl) {
			*out = from;
			*out_n = (size_t)(nl - from);
			b->text_at += *out_n + 1;
			return 1;
		}
		searched = n;
		if (b->text_at) {
			memmove(b->text.p, from, n);
			buf_cut(&b->text, n);
			b->text_at = 0;
		}
		got = spool_read_in(&b->spool, b->read_to, buf_space(&b->text, CHUNK), CHUNK, &e);
		if (got > 0) {
			buf_grew(&b->text, (size_t)got);
			b->read_to += (uint64_t)got;
			continue;
		}
		b->more = 0;
		/* The last line may lack its newline, unless nobody knows whether it is whole. */
		if (b->row.state == STORE_BATCH_RECEIVING || !n || !b->row.whole)
			return 0;
		*out = b->text.p;
		*out_n = n;
		b->text_at = b->text.len;
		return 1;
	}
}

static int is_blank(const char *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return 0;
	return 1;
}

static void refuse(struct work *w, unsigned why, const struct err *e)
{
	struct job_end end = { .verdict = VERDICT_ERROR, .why = why, .e = *e };

	finish_work(w, &end);
}

/* 1: an item was dealt with or is on its way; 0: there is none now. */
static int take_item(struct batch *b)
{
	struct batches *a = b->all;
	const char *line;
	struct work *w;
	struct err e;
	size_t n;

	do {
		if (!next_line(b, &line, &n))
			return 0;
		b->line++;
	} while (is_blank(line, n) || is_done(b, b->next_item++));
	w = calloc(1, sizeof(*w));
	if (!w)
		abort();
	*w = (struct work){ .next = b->works,
			    .batch = b,
			    .item = b->next_item - 1,
			    .line = b->line,
			    .job = { .done = job_done, .fleet = a->fleet, .team = b->row.team } };
	b->works = w;
	b->flying++;
	b->team->flying++;
	a->flying++;
	b->turn = ++a->turn;
	if (item_parse(&w->job.item, line, n, &b->options.defaults, &e) < 0)
		refuse(w, WHY_INVALID, &e);
	else if (a->hooks.may_run && !a->hooks.may_run(a->hooks.ctx, b->row.team, &e))
		refuse(w, WHY_QUOTA, &e);
	else
		job_start(&w->job, a->fleet);
	return 1;
}

/* ---- whose turn? ---- */

/* The results file is the buffer of a client that reads slowly, up to a point. */
static int too_far_ahead(const struct batch *b)
{
	uint64_t most = 0;

	for (const struct batch_watch *w = b->watches; w; w = w->next)
		most = w->at > most ? w->at : most;
	return b->watches && b->spool.out_bytes - most > BATCH_LEAD;
}

static int is_ready(const struct batch *b)
{
	const struct batches *a = b->all;

	if (!b->more || b->full || has_ended(b) || too_far_ahead(b) ||
	    (b->options.jobs && b->flying >= b->options.jobs))
		return 0;
	return !a->hooks.may_have ||
	       b->team->flying < a->hooks.may_have(a->hooks.ctx, b->row.team);
}

static int is_before(const struct batch *x, const struct batch *y)
{
	if (x->team->flying != y->team->flying)
		return x->team->flying < y->team->flying;
	if (x->team == y->team && x->flying != y->flying)
		return x->flying < y->flying;
	return x->turn < y->turn;
}

static struct batch *choose(const struct batches *a)
{
	struct batch *best = NULL;

	for (struct batch *b = a->first; b; b = b->next)
		if (is_ready(b) && (!best || is_before(b, best)))
			best = b;
	return best;
}

static void pump(struct batches *a)
{
	unsigned lines = 0;
	struct batch *b;

	while (a->fleet->alone && a->restored && a->flying < a->jobs && (b = choose(a))) {
		if (!take_item(b)) {
			check_over(b);
			let_go(b);
		} else if (++lines == LINES_A_TURN) {
			timer_set(&a->again, 0);
			return;
		}
	}
}

static void go_on(struct timer *t)
{
	pump(loop_owner(t, struct batches, again));
}

/* ---- receiving ---- */

int batch_new(struct batches *a, const char *team, const char *who, const struct batch_options *o,
	      struct batch_watch *w, struct err *e)
{
	struct store_batch row = { .created_ns = fleet_now_ns(), .whole = 1 };
	uint64_t used = 0;
	struct batch *b;
	json_t *doc;

	if (a->live >= BATCH_LIVE)
		return err_set(e, ERR_LIMIT, "%d batches are under way already", BATCH_LIVE);
	if (store_batch_bytes(a->fleet->store, team, &used, e) < 0)
		return -1;
	if (a->conf.team_bytes && used >= a->conf.team_bytes)
		return err_set(e, ERR_LIMIT, "the batches of team %.64s have %llu bytes already", team,
			       (unsigned long long)used);
	if (id_new(row.id, e) < 0)
		return -1;
	snprintf(row.team, sizeof(row.team), "%s", team);
	snprintf(row.who, sizeof(row.who), "%s", who);
	doc = json_pack("{s:s, s:i, s:i, s:i, s:b, s:b}", "language", o->defaults.language, "timeout_ms",
			(int)o->defaults.run_ms, "max_output", (int)o->defaults.max_output, "jobs",
			(int)o->jobs, "record", o->record, "attached", o->attached);
	row.options = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	b = enter(a, &row);
	b->options = *o;
	if (spool_make(&b->spool, a->folder, b->row.id, e) < 0 ||
	    store_batch_insert(a->fleet->store, &b->row, e) < 0) {
		a->live--;
		spool_remove(a->folder, b->row.id);
		free_batch(b);
		return -1;
	}
	w->batch = b;
	w->at = 0;
	w->next = NULL;
	b->watches = w;
	return 0;
}

/* Of a line that is too long the rest is dropped; what is kept is enough to see that. */
static int add_line_part(struct batch *b, const char *bytes, size_t n, struct err *e)
{
	size_t room = b->line_len < ITEM_BYTES + 1 ? ITEM_BYTES + 1 - b->line_len : 0;

	b->line_len += n;
	return room ? spool_add(&b->spool, bytes, n < room ? n : room, e) : 0;
}

static int add_short(struct batch *b, const char *bytes, size_t n, struct err *e)
{
	while (n) {
		const char *nl = memchr(bytes, '\n', n);
		size_t part = nl ? (size_t)(nl - bytes) : n;

		if (add_line_part(b, bytes, part, e) < 0)
			return -1;
		bytes += part;
		n -= part;
		if (!nl)
			break;
		if (spool_add(&b->spool, "\n", 1, e) < 0)
			return -1;
		b->line_len = 0;
		b->lines++;
		bytes++;
		n--;
	}
	return 0;
}

/* The usual piece goes to the file as it is. */
static int add_plain(struct batch *b, const char *bytes, size_t n, struct err *e)
{
	const char *last = memrchr(bytes, '\n', n);

	for (const char *p = bytes; (p = memchr(p, '\n', n - (size_t)(p - bytes))); p++)
		b->lines++;
	b->line_len = last ? (size_t)(bytes + n - 1 - last) : b->line_len + n;
	return spool_add(&b->spool, bytes, n, e);
}

int batch_add(struct batch *b, const char *bytes, size_t n, struct err *e)
{
	const struct batch_conf *conf = &b->all->conf;
	int fits = b->line_len + n <= ITEM_BYTES;

	if (has_ended(b))
		return err_set(e, ERR_CONFLICT, "the batch was cancelled");
	if (conf->max_bytes && b->spool.in_bytes + n > conf->max_bytes) {
		err_set(e, ERR_LIMIT, "a batch has at most %llu bytes",
			(unsigned long long)conf->max_bytes);
		e->sys = E2BIG;
		return -1;
	}
	if ((fits ? add_plain : add_short)(b, bytes, n, e) < 0)
		return -1;
	if (b->lines > BATCH_ITEMS) {
		err_set(e, ERR_LIMIT, "a batch has at most %d lines", BATCH_ITEMS);
		e->sys = E2BIG;
		return -1;
	}
	b->more = 1;
	pump(b->all);
	return 0;
}

void batch_received(struct batch *b, int whole)
{
	if (b->row.state != STORE_BATCH_RECEIVING)
		return;
	b->row.state = STORE_BATCH_RUNNING;
	b->row.whole = whole;
	b->more = 1;
	write_row(b);
	timer_set(&b->all->again, 0); /* even an empty one ends from the loop */
}

void batch_cancel(struct batch *b)
{
	struct batches *a = b->all;

	if (has_ended(b))
		return;
	while (b->works)
		free_work(b->works);
	end(b, STORE_BATCH_CANCELLED);
	let_go(b);
	pump(a);
}

/* Who still reads it has the files open. */
void batch_forget(struct batch *b)
{
	struct err e;

	if (!has_ended(b))
		return;
	spool_remove(b->all->folder, b->row.id);
	b->unwritten = 0;
	(void)!store_batch_remove(b->all->fleet->store, b->row.id, &e);
}

/* ---- reading ---- */

static struct batch *find(const struct batches *a, const char *id)
{
	struct batch *b = a->first;

	while (b && strcmp(b->row.id, id) != 0)
		b = b->next;
	return b;
}

/* Numbers, and which items are done, as the index tells them. */
static int recount(struct batch *b, struct err *e)
{
	struct spool_row rows[256];
	uint32_t at = 0;
	int n;

	b->row.passed = b->row.failed = b->row.errors = 0;
	b->ndone = b->spool.results ? BATCH_ITEMS + 1 : 0;
	b->done = b->ndone ? calloc(b->ndone / 8 + 1, 1) : NULL;
	if (b->ndone && !b->done)
		abort();
	while (at < b->spool.results) {
		n = spool_rows(&b->spool, at, rows, ARRAY_LEN(rows), e);
		if (n <= 0)
			return -1;
		for (int i = 0; i < n; i++) {
			count(b, rows[i].verdict, rows[i].cause);
			if (rows[i].item < b->ndone)
				b->done[rows[i].item / 8] |= (unsigned char)(1u << rows[i].item % 8);
		}
		at += (uint32_t)n;
	}
	return 0;
}

static void read_options(struct batch *b)
{
	json_t *doc = b->row.options ? json_loads(b->row.options, 0, NULL) : NULL;
	const char *language = json_string_value(json_object_get(doc, "language"));
	struct item_defaults *d = &b->options.defaults;

	snprintf(d->language, sizeof(d->language), "%s", language ? language : "");
	d->run_ms = (uint32_t)json_integer_value(json_object_get(doc, "timeout_ms"));
	d->max_output = (uint32_t)json_integer_value(json_object_get(doc, "max_output"));
	d->limits = b->all->fleet->conf.limits;
	b->options.jobs = (unsigned)json_integer_value(json_object_get(doc, "jobs"));
	b->options.record = json_is_true(json_object_get(doc, "record"));
	b->options.attached = json_is_true(json_object_get(doc, "attached"));
	json_decref(doc);
}

static struct batch *take_up(struct batches *a, struct store_batch *take_row, struct err *e)
{
	struct batch *b = enter(a, take_row);

	read_options(b);
	if (spool_open(&b->spool, a->folder, b->row.id, e) == 0 && recount(b, e) == 0)
		return b;
	a->live -= !has_ended(b);
	free_batch(b);
	return NULL;
}

int batch_watch(struct batches *a, const char *team, const char *id, uint32_t after,
		struct batch_watch *w, struct err *e)
{
	struct batch *b = find(a, id);
	struct store_batch row = { 0 };

	w->batch = NULL;
	if (!b) {
		if (!id_valid(id) || store_batch_get(a->fleet->store, id, &row, e) < 0 ||
		    strcmp(row.team, team) != 0) {
			store_batch_fini(&row);
			return err_set(e, ERR_NOT_FOUND, "there is no batch '%.20s'", id);
		}
		if (!row.ended_ns) { /* the other front runs it, and leaves it to us soon */
			store_batch_fini(&row);
			err_set(e, ERR_SYS, "the batch is being taken over; ask again");
			e->sys = EBUSY;
			return -1;
		}
		b = take_up(a, &row, e);
		if (!b)
			return -1;
	}
	if (strcmp(b->row.team, team) != 0)
		return err_set(e, ERR_NOT_FOUND, "there is no batch '%.20s'", id);
	if (spool_offset(&b->spool, after + 1, &w->at, e) < 0) {
		let_go(b);
		return -1;
	}
	w->batch = b;
	w->next = b->watches;
	b->watches = w;
	return 0;
}

void batch_unwatch(struct batch_watch *w)
{
	struct batch *b = w->batch;
	struct batch_watch **at;

	if (!b)
		return;
	for (at = &b->watches; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->batch = NULL;
	/* Perhaps it waited for this reader; perhaps nobody needs it any more. */
	timer_set(&b->all->again, 0);
}

int batch_read(const struct batch_watch *w, void *to, size_t n, struct err *e)
{
	return spool_read(&w->batch->spool, w->at, to, n, e);
}

uint64_t batch_results(const struct batch *b)
{
	return b->spool.out_bytes;
}

const struct store_batch *batch_row(const struct batch *b)
{
	return &b->row;
}

int batch_is_over(const struct batch *b)
{
	return has_ended(b);
}

/* ---- as JSON ---- */

static json_t *row_json(const struct store_batch *row)
{
	json_t *doc = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:b}", "id", row->id, "state",
				store_batch_state_name(row->state), "results",
				(json_int_t)(row->passed + row->failed + row->errors), "passed",
				(json_int_t)row->passed, "failed", (json_int_t)row->failed, "errors",
				(json_int_t)row->errors, "whole", row->whole);

	json_object_set_new(doc, "items",
			    row->items || row->ended_ns ? json_integer((json_int_t)row->items) :
							  json_null());
	json_object_set_new(doc, "created", record_when((uint64_t)row->created_ns));
	if (row->ended_ns) {
		json_object_set_new(doc, "ended", record_when((uint64_t)row->ended_ns));
		json_object_set_new(doc, "seconds",
				    json_real((double)((row->ended_ns - row->created_ns) / 1000000) /
					      1000));
	}
	return doc;
}

json_t *batch_json(const struct batch *b)
{
	json_t *doc = row_json(&b->row), *causes = json_object();

	for (unsigned v = VERDICT_FAILED; v < VERDICT_COUNT; v++)
		for (unsigned i = 0; i < WHY_COUNT; i++) {
			json_int_t n = (json_int_t)b->counts[v][i];
			json_int_t before = json_integer_value(
				json_object_get(causes, why_name(i)));

			if (n)
				json_object_set_new(causes, why_name(i), json_integer(n + before));
		}
	json_object_set_new(doc, "causes", causes);
	if (!has_ended(b))
		json_object_set_new(doc, "flying", json_integer(b->flying));
	return doc;
}

json_t *batches_json(const struct batches *a, const struct store_batch *row)
{
	const struct batch *b = find(a, row->id);

	return b ? batch_json(b) : row_json(row);
}

/* ---- all of them ---- */

static void purge(struct batches *a)
{
	struct store_batches rows = { 0 };
	int64_t before = fleet_now_ns() - (int64_t)a->conf.keep_ms * 1000000;
	struct err e;

	if (!a->conf.keep_ms || store_batch_old(a->fleet->store, before, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++) {
		if (find(a, rows.v[i].id))
			continue; /* somebody reads it */
		spool_remove(a->folder, rows.v[i].id);
		(void)!store_batch_remove(a->fleet->store, rows.v[i].id, &e);
	}
	store_batches_fini(&rows);
}

static void on_tick(struct timer *t)
{
	struct batches *a = loop_owner(t, struct batches, tick);
	uint64_t now = loop_now_ms();

	for (struct batch *b = a->first, *next; b; b = next) {
		next = b->next;
		for (struct work *w = b->works, *after; w; w = after) {
			after = w->next;
			job_check(&w->job, now);
		}
		if (b->full) {
			write_again(b);
			check_over(b);
		}
		if (b->unwritten)
			write_row(b);
		let_go(b);
	}
	if (a->fleet->alone && ++a->ticks % PURGE_TICKS == 0)
		purge(a);
	pump(a);
	timer_set(t, TICK_MS);
}

static void on_again(struct timer *t)
{
	struct batches *a = loop_owner(t, struct batches, again);

	for (struct batch *b = a->first, *next; b; b = next) {
		next = b->next;
		let_go(b);
	}
	go_on(t);
}

/* What another front left: it goes on behind the results that are there. */
static void restore(struct batches *a)
{
	struct store_batches rows = { 0 };
	struct err e;

	a->restored = 1;
	if (store_batch_live(a->fleet->store, &rows, &e) < 0) {
		log_error("batches of before are lost", LOG_E(&e));
		return;
	}
	for (unsigned i = 0; i < rows.n; i++) {
		struct batch *b;
		char id[ID_LEN + 1];

		memcpy(id, rows.v[i].id, sizeof(id));
		if (find(a, id)) {
			store_batch_fini(&rows.v[i]);
			continue;
		}
		b = take_up(a, &rows.v[i], &e);
		if (!b) {
			log_error("a batch is lost", LOG_S("batch", id), LOG_E(&e));
			continue;
		}
		b->more = 1;
		if (b->options.attached) /* its client has left with the front */
			batch_cancel(b);
		else
			batch_received(b, 0);
	}
	free(rows.v);
}

void batches_alone(struct batches *a)
{
	if (!a->fleet->alone)
		return;
	restore(a);
	timer_set(&a->again, 0);
}

static unsigned processors(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 2;
	return (unsigned)CPU_COUNT(&set);
}

int batches_new(struct batches **out, struct fleet *f, const struct batch_conf *conf,
		const struct batch_hooks *hooks, struct err *e)
{
	struct batches *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	a->fleet = f;
	a->conf = *conf;
	if (hooks)
		a->hooks = *hooks;
	a->jobs = conf->jobs ? conf->jobs : processors() * JOBS_PER_CPU;
	a->folder = spool_folder(conf->state, e);
	if (a->folder < 0) {
		free(a);
		return -1;
	}
	if (artefacts_open(&a->artefacts, conf->state, e) < 0) {
		own_close_fd(&a->folder);
		free(a);
		return -1;
	}
	f->artefacts = &a->artefacts;
	timer_init(&a->tick, f->loop, on_tick);
	timer_init(&a->again, f->loop, on_again);
	timer_set(&a->tick, TICK_MS);
	*out = a;
	return 0;
}

void batches_free(struct batches *a)
{
	if (!a)
		return;
	while (a->first)
		free_batch(a->first);
	timer_fini(&a->tick);
	timer_fini(&a->again);
	own_close_fd(&a->folder);
	a->fleet->artefacts = NULL;
	artefacts_close(&a->artefacts);
	free(a);
}

struct batch_figures batches_figures(const struct batches *a)
{
	struct batch_figures f = { .live = a->live, .flying = a->flying, .jobs = a->jobs };

	memcpy(f.verdicts, a->verdicts, sizeof(f.verdicts));
	return f;
}
