/* run.c - from a line of a batch to its result: scheduling, the item, the program. */
#include "batch/batch_internal.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "record/record.h"

#include <string.h>

enum {
	CHUNK = 64 * 1024,
	LINES_A_TURN = 512, /* items in a row that need no box: then other batches get their turn */
	TRIES = 3,          /* retries of an item whose box was lost without its fault */
};

/* ---- results ---- */

/* The number of a result is its position in the file, so it is set here. */
static int write_result(struct batch *b, const json_t *doc, struct spool_row row, struct err *e)
{
	auto_free char *text = json_dumps(doc, JSON_COMPACT | RECORD_DIGITS);
	auto_buf struct buf line = { 0 };

	if (!text)
		abort();
	buf_printf(&line, "{\"type\":\"result\",\"n\":%u,%s\n", b->spool.results + 1, text + 1);
	if (spool_result(&b->spool, line.p, line.len, row, e) < 0)
		return -1;
	batch_count(b, row.verdict, row.cause);
	b->all->verdicts[row.verdict]++;
	batch_tell(b);
	return 0;
}

void batch_check_over(struct batch *b)
{
	if (!b->more && !b->flying && b->row.state == STORE_BATCH_RUNNING)
		batch_end(b, STORE_BATCH_FINISHED);
}

/* Finishes an item and frees w. On a full disk w stays and holds its result. */
static void finish_work(struct work *w, const struct batch_job_end *end)
{
	struct batch *b = w->batch;
	json_t *doc = batch_result(w, end);
	struct err e;

	w->row = (struct spool_row){ .item = w->item,
				     .verdict = (uint16_t)end->verdict,
				     .cause = (uint16_t)end->why };
	if (write_result(b, doc, w->row, &e) < 0) {
		if (!b->full)
			log_error("a batch cannot be written", LOG_S("batch", b->row.id),
				  LOG_E(&e));
		b->full = 1;
		w->result = doc;
		return;
	}
	json_decref(doc);
	batch_free_work(w);
}

void batch_write_again(struct batch *b)
{
	struct err e;

	for (struct work *w = b->works, *next; w; w = next) {
		next = w->next;
		if (!w->result)
			continue;
		if (write_result(b, w->result, w->row, &e) < 0)
			return;
		batch_free_work(w);
	}
	b->full = 0;
}

static void job_done(struct batch_job *j, const struct batch_job_end *end)
{
	struct work *w = loop_owner(j, struct work, job);
	struct batch *b = w->batch;
	struct batches *a = b->all;

	if (end->verdict == VERDICT_ERROR && end->why == CAUSE_HOST && ++w->tries < TRIES) {
		struct batch_item item = j->item;
		struct isolation_choice tier = j->tier;
		void (*done)(struct batch_job *, const struct batch_job_end *) = j->done;

		buf_fini(&j->out[0]);
		buf_fini(&j->out[1]);
		buf_fini(&j->made);
		free(j->helper);
		*j = (struct batch_job){ .item = item,
					 .done = done,
					 .team = b->row.team,
					 .tier = tier,
					 .is_chosen = 1 };
		batch_job_start(j, a->fleet);
		return;
	}
	if (a->hooks.used)
		a->hooks.used(a->hooks.ctx, b->row.team, end->cpu_us, j->seen[0] + j->seen[1]);
	if (end->verdict != VERDICT_ERROR)
		batch_account(w, end);
	finish_work(w, end);
	batch_check_over(b);
	batch_free_if_idle(b);
	batches_pump(a);
}

/* ---- items ---- */

static int is_done(const struct batch *b, uint32_t item)
{
	return item < b->ndone && b->done[item / 8] >> item % 8 & 1;
}

/* 1: *out is a line, without its newline, valid until the next call. 0: not now. */
static int next_line(struct batch *b, const char **out, size_t *out_n)
{
	size_t searched = 0;

	for (;;) {
		const char *from = buf_str(&b->text) + b->text_at, *nl;
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
		/* The last line may lack its newline, unless it is not known to be complete. */
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

static void run_refuse(struct work *w, unsigned why, const struct err *e)
{
	struct batch_job_end end = { .verdict = VERDICT_ERROR, .why = why, .e = *e };

	finish_work(w, &end);
}

/* 1: an item was handled or started; 0: there is none now. */
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
	if (batch_item_parse(&w->job.item, line, n, &b->options.defaults, &e) < 0)
		run_refuse(w, WHY_INVALID, &e);
	else if (a->hooks.may_run && !a->hooks.may_run(a->hooks.ctx, b->row.team, &e))
		run_refuse(w, WHY_QUOTA, &e);
	else if (batch_job_choose(&w->job, a->fleet, b->row.who, &b->options.isolation,
				  b->options.record, &e) < 0)
		run_refuse(w, WHY_INVALID, &e);
	else
		batch_job_start(&w->job, a->fleet);
	return 1;
}

/* ---- whose turn? ---- */

/* The results file is the buffer of a client that reads slowly, up to a limit. */
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

	if (!b->more || b->full || batch_has_ended(b) || too_far_ahead(b) ||
	    (b->options.jobs && b->flying >= b->options.jobs))
		return 0;
	return !a->hooks.may_have || b->team->flying < a->hooks.may_have(a->hooks.ctx, b->row.team);
}

static int is_before(const struct batch *x, const struct batch *y)
{
	if (x->team->flying != y->team->flying)
		return x->team->flying < y->team->flying;
	if (x->team == y->team && x->flying != y->flying)
		return x->flying < y->flying;
	return x->turn < y->turn;
}

static struct batch *run_choose(const struct batches *a)
{
	struct batch *best = NULL;

	for (struct batch *b = a->first; b; b = b->next)
		if (is_ready(b) && (!best || is_before(b, best)))
			best = b;
	return best;
}

void batches_pump(struct batches *a)
{
	unsigned lines = 0;
	struct batch *b;

	while (a->fleet->alone && a->restored && a->flying < a->jobs && (b = run_choose(a))) {
		if (!take_item(b)) {
			batch_check_over(b);
			batch_free_if_idle(b);
		} else if (++lines == LINES_A_TURN) {
			timer_set(&a->again, 0);
			return;
		}
	}
}
