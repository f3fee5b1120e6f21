/* batch.c - see batch.h.
 *
 * One thread; nothing here blocks. A batch is read from its file a line at a time, when its team
 * may start another program; so memory holds the items in flight and not the whole request. A
 * result is in the file before a client gets it. When the disk is full the result is kept in
 * memory, the batch starts nothing, and the write is retried every second. */
#include "batch/batch_internal.h"
#include "base/log.h"
#include "base/cleanup.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	TICK_MS = 1000,
	JOBS_PER_CPU = 4,
	PURGE_TICKS = 30,
};

/* ---- one, and its team ---- */

int batch_has_ended(const struct batch *b)
{
	return b->row.state == STORE_BATCH_FINISHED || b->row.state == STORE_BATCH_CANCELLED;
}

/* Results that could not be written because the disk was full are written later. */
void batch_write_row(struct batch *b)
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

struct batch *batch_enter(struct batches *a, struct store_batch *take_row)
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
	a->live += !batch_has_ended(b);
	return b;
}

void batch_free_work(struct work *w)
{
	struct batch *b = w->batch;
	struct work **at = &b->works;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	batch_job_fini(&w->job);
	json_decref(w->result);
	free(w);
	b->flying--;
	b->team->flying--;
	b->all->flying--;
}

void batch_free(struct batch *b)
{
	struct batches *a = b->all;
	struct batch **at = &a->first;

	while (*at != b)
		at = &(*at)->next;
	*at = b->next;
	while (b->works)
		batch_free_work(b->works);
	while (b->watches)
		batch_unwatch(b->watches);
	leave_team(a, b->team);
	spool_fini(&b->spool);
	buf_fini(&b->text);
	free(b->done);
	store_batch_fini(&b->row);
	free(b);
}

/* A batch that has ended and has no reader is kept in its files only. */
void batch_free_if_idle(struct batch *b)
{
	if (batch_has_ended(b) && !b->watches && !b->unwritten)
		batch_free(b);
}

void batch_tell(struct batch *b)
{
	for (struct batch_watch *w = b->watches, *next; w; w = next) {
		next = w->next;
		w->news(w);
	}
}

void batch_end(struct batch *b, enum store_batch_state state)
{
	b->row.state = state;
	b->row.ended_ns = fleet_now_ns();
	b->all->live--;
	if (state == STORE_BATCH_FINISHED)
		b->row.items = b->next_item;
	batch_write_row(b);
	log_info("batch ended", LOG_S("batch", b->row.id), LOG_S("team", b->row.team),
		 LOG_S("state", store_batch_state_name(state)), LOG_U("passed", b->row.passed),
		 LOG_U("failed", b->row.failed), LOG_U("errors", b->row.errors));
	batch_tell(b);
}

/* ---- taken up again ---- */

struct batch *batches_find(const struct batches *a, const char *id)
{
	struct batch *b = a->first;

	while (b && strcmp(b->row.id, id) != 0)
		b = b->next;
	return b;
}

void batch_count(struct batch *b, unsigned verdict, unsigned why)
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

/* Counts, and which items are done, from the index. */
static int batch_recount(struct batch *b, struct err *e)
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
			batch_count(b, rows[i].verdict, rows[i].cause);
			if (rows[i].item < b->ndone)
				b->done[rows[i].item / 8] |=
					(unsigned char)(1u << rows[i].item % 8);
		}
		at += (uint32_t)n;
	}
	return 0;
}

static void read_options(struct batch *b)
{
	json_t *doc = b->row.options ? json_loads(b->row.options, 0, NULL) : NULL;
	const char *language = json_string_value(json_object_get(doc, "language"));
	struct batch_item_defaults *d = &b->options.defaults;

	snprintf(d->language, sizeof(d->language), "%s", language ? language : "");
	d->run_ms = (uint32_t)json_integer_value(json_object_get(doc, "timeout_ms"));
	d->max_output = (uint32_t)json_integer_value(json_object_get(doc, "max_output"));
	d->limits = b->all->fleet->conf.limits;
	d->most = b->all->fleet->conf.most;
	b->options.isolation = isolation_stored(doc);
	b->options.jobs = (unsigned)json_integer_value(json_object_get(doc, "jobs"));
	b->options.record = json_is_true(json_object_get(doc, "record"));
	b->options.attached = json_is_true(json_object_get(doc, "attached"));
	json_decref(doc);
}

struct batch *batches_take_up(struct batches *a, struct store_batch *take_row, struct err *e)
{
	struct batch *b = batch_enter(a, take_row);

	read_options(b);
	if (spool_open(&b->spool, a->folder, b->row.id, e) == 0 && batch_recount(b, e) == 0)
		return b;
	a->live -= !batch_has_ended(b);
	batch_free(b);
	return NULL;
}

/* ---- all of them ---- */

static void batch_purge_team(struct batches *a, const char *team)
{
	uint64_t keep = fleet_keep_ms(a->fleet, team, FLEET_KEEP_OUTPUTS, a->conf.keep_ms);
	int64_t before = fleet_now_ns() - (int64_t)keep * 1000000;
	struct store_batches rows = { 0 };
	struct err e;

	if (!keep || store_batch_old(a->fleet->store, team, before, &rows, &e) < 0)
		return;
	for (unsigned i = 0; i < rows.n; i++) {
		if (batches_find(a, rows.v[i].id))
			continue; /* it has a reader */
		spool_remove(a->folder, rows.v[i].id);
		(void)!store_batch_remove(a->fleet->store, rows.v[i].id, &e);
	}
	store_batches_fini(&rows);
}

void batches_purge(struct batches *a)
{
	char team[STORE_NAME + 1] = "";
	struct err e;

	while (store_batch_next_team(a->fleet->store, team, team, &e) > 0)
		batch_purge_team(a, team);
}

static void on_tick(struct timer *t)
{
	struct batches *a = loop_owner(t, struct batches, tick);
	uint64_t now = loop_now_ms();

	for (struct batch *b = a->first, *next; b; b = next) {
		next = b->next;
		for (struct work *w = b->works, *after; w; w = after) {
			after = w->next;
			batch_job_check(&w->job, now);
		}
		if (b->full) {
			batch_write_again(b);
			batch_check_over(b);
		}
		if (b->unwritten)
			batch_write_row(b);
		batch_free_if_idle(b);
	}
	if (a->fleet->alone && ++a->ticks % PURGE_TICKS == 0)
		batches_purge(a);
	batches_pump(a);
	timer_set(t, TICK_MS);
}

static void on_again(struct timer *t)
{
	struct batches *a = loop_owner(t, struct batches, again);

	for (struct batch *b = a->first, *next; b; b = next) {
		next = b->next;
		batch_free_if_idle(b);
	}
	batches_pump(a);
}

/* Takes over a batch of another server: it continues after the existing results. */
static void batch_restore(struct batches *a)
{
	struct store_batches rows = { 0 };
	struct err e;

	a->restored = 1;
	if (store_batch_live(a->fleet->store, &rows, &e) < 0) {
		log_error("earlier batches are lost", LOG_E(&e));
		return;
	}
	for (unsigned i = 0; i < rows.n; i++) {
		struct batch *b;
		char id[ID_MAX + 1];

		memcpy(id, rows.v[i].id, sizeof(id));
		if (batches_find(a, id)) {
			store_batch_fini(&rows.v[i]);
			continue;
		}
		b = batches_take_up(a, &rows.v[i], &e);
		if (!b) {
			log_error("a batch is lost", LOG_S("batch", id), LOG_E(&e));
			continue;
		}
		b->more = 1;
		if (b->options.attached) /* its client was disconnected by the end of that server */
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
	batch_restore(a);
	timer_set(&a->again, 0);
}

static unsigned batch_processors(void)
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
	a->jobs = conf->jobs ? conf->jobs : batch_processors() * JOBS_PER_CPU;
	a->folder = spool_folder(conf->state, e);
	if (a->folder < 0) {
		free(a);
		return -1;
	}
	if (compile_caches_open(&a->compile_caches, conf->state, e) < 0) {
		own_close_fd(&a->folder);
		free(a);
		return -1;
	}
	f->compile_caches = &a->compile_caches;
	timer_init(&a->tick, f->loop, on_tick);
	timer_init(&a->again, f->loop, on_again);
	timer_set(&a->tick, TICK_MS);
	a->ticks = PURGE_TICKS - 1; /* what became old while no server ran is removed soon */
	*out = a;
	return 0;
}

void batches_free(struct batches *a)
{
	if (!a)
		return;
	while (a->first)
		batch_free(a->first);
	timer_fini(&a->tick);
	timer_fini(&a->again);
	own_close_fd(&a->folder);
	a->fleet->compile_caches = NULL;
	compile_caches_close(&a->compile_caches);
	free(a);
}

struct batch_figures batches_figures(const struct batches *a)
{
	struct batch_figures f = { .live = a->live, .flying = a->flying, .jobs = a->jobs };

	memcpy(f.verdicts, a->verdicts, sizeof(f.verdicts));
	return f;
}
