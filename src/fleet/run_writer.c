/* run_writer.c - see run_writer.h. */
#include "fleet/run_writer.h"
#include "base/log.h"
#include "record/record.h"
#include "lang/lang.h"
#include "fleet/charge.h"

#include <stdlib.h>
#include <string.h>

struct run_writer_line {
	struct run_writer_line *next;
	struct store_run row;
	enum cause cause;
	uint64_t run_us;
	json_t *record, *news; /* NULL: a charge only */
	struct run_facts facts;
	int is_charged;
	struct store_charge charge;
};

static void is_due(struct timer *t)
{
	run_writer_flush(loop_owner(t, struct run_writer, timer));
}

void run_writer_init(struct run_writer *l, struct fleet *f)
{
	*l = (struct run_writer){ .fleet = f };
	l->last = &l->first;
	timer_init(&l->timer, f->loop, is_due);
}

static void run_writer_append(struct run_writer *l, const struct run_writer_line *line,
			      const struct store_charge *charge)
{
	struct run_writer_line *x = malloc(sizeof(*x));

	if (!x)
		abort();
	*x = *line;
	x->is_charged = charge != NULL;
	if (charge)
		x->charge = *charge;
	*l->last = x;
	l->last = &x->next;
	if (++l->n >= RUN_WRITER_MAX)
		run_writer_flush(l);
	else if (l->n == 1)
		timer_set(&l->timer, RUN_WRITER_MS);
}

void run_writer_add(struct run_writer *l, const struct store_run *row, json_t *take_record,
		    struct run_facts *take_facts, enum cause cause, uint64_t run_us,
		    json_t *take_news, const struct store_charge *charge)
{
	struct run_writer_line x = { .row = *row,
				     .cause = cause,
				     .run_us = run_us,
				     .record = take_record,
				     .news = take_news,
				     .facts = *take_facts };

	run_writer_append(l, &x, charge);
}

void run_writer_charge(struct run_writer *l, const struct store_charge *charge)
{
	struct run_writer_line x = { 0 };

	run_writer_append(l, &x, charge);
}

static unsigned exit_code(int status)
{
	return status == 0     ? EXITS_0
	       : status == 1   ? EXITS_1
	       : status == 2   ? EXITS_2
	       : status == 126 ? EXITS_126
	       : status == 127 ? EXITS_127
			       : EXITS_OTHER;
}

/* Index in the table of languages; a command has the index after the last one. */
static unsigned run_writer_find_language(const char *name)
{
	unsigned n = lang_count() < FLEET_LANGS - 1 ? lang_count() : FLEET_LANGS - 1;

	for (unsigned i = 0; name && i < n; i++)
		if (!strcmp(lang_at(i)->name, name))
			return i;
	return n;
}

static void run_writer_set_example(struct fleet_exemplar *x, const struct store_run *row,
				   double value)
{
	memcpy(x->run, row->id, sizeof(x->run));
	x->value = value;
	x->at_ns = row->ended_ns;
}

static void run_writer_count_run(struct fleet_figures *f, const struct run_writer_line *x)
{
	const json_t *cpu = json_object_get(x->record, "cpu_s"),
		     *memory = json_object_get(x->record, "mem_peak");
	int well = x->cause == CAUSE_EXIT && x->row.status == 0;
	unsigned language =
		run_writer_find_language(json_string_value(json_object_get(x->news, "language")));
	unsigned bucket;

	f->ended[x->cause]++;
	f->languages[language][well]++;
	if (x->cause == CAUSE_EXIT)
		f->exits[exit_code(x->row.status)]++;
	f->output_bytes += x->row.output_bytes;
	bucket = fleet_observe(&f->run, x->run_us);
	run_writer_set_example(&f->run_examples[bucket], &x->row, (double)x->run_us / 1e6);
	if (json_is_number(cpu)) {
		bucket = fleet_observe(&f->run_cpu, (uint64_t)(json_number_value(cpu) * 1e6));
		run_writer_set_example(&f->cpu_examples[bucket], &x->row, json_number_value(cpu));
	}
	if (json_is_integer(memory)) {
		bucket = fleet_observe_bytes(&f->run_memory, (uint64_t)json_integer_value(memory));
		run_writer_set_example(&f->memory_examples[bucket], &x->row,
				       (double)json_integer_value(memory));
	}
}

/* Charges of one transaction that are added to the same sums of a day are merged. */
struct run_writer_day {
	struct store_charge v[RUN_WRITER_MAX];
	unsigned n;
};

static void run_writer_uncharged(const struct store_charge *c, const struct err *e)
{
	log_error("a charge was not written", LOG_S("team", c->team), LOG_S("subject", c->subject),
		  LOG_E(e));
}

static void write_charge(struct fleet *f, const struct run_writer_line *x,
			 struct run_writer_day *day)
{
	unsigned i = 0;
	struct err e;

	if (!x->is_charged)
		return;
	if (store_usage_charge_subject(f->store, &x->charge, &e) < 0) {
		run_writer_uncharged(&x->charge, &e);
		return;
	}
	while (i < day->n && !store_charge_merge(&day->v[i], &x->charge))
		i++;
	if (i == day->n)
		day->v[day->n++] = x->charge; /* at most one for each line */
}

static void write_day(struct fleet *f, const struct run_writer_day *day)
{
	struct err e;

	for (unsigned i = 0; i < day->n; i++)
		if (store_usage_charge_day(f->store, &day->v[i], &e) < 0)
			run_writer_uncharged(&day->v[i], &e);
		else
			charge_written(f, &day->v[i]);
}

static void write_line(struct fleet *f, struct run_writer_line *x, struct run_writer_day *day)
{
	struct err e;
	int ended;

	if (!x->record) {
		write_charge(f, x, day);
		return;
	}
	x->row.record = json_dumps(x->record, JSON_COMPACT | RECORD_DIGITS);
	if (!x->row.record)
		abort();
	/* If the disk is full, the row stays "running" until the next restart finds that the exec
	 * has ended. If the row has an end already, another server has written and counted it. */
	ended = run_end_write(f, &x->row, x->record, &x->facts, &e) == 0;
	if (!ended && e.kind == ERR_CONFLICT) {
		json_decref(x->news);
		return;
	}
	if (ended)
		write_charge(f, x, day);
	if (!strcmp(x->row.tag, STORE_RUN_HELPER)) {
		json_decref(x->news);
		return;
	}
	run_writer_count_run(&f->figures, x);
	fleet_emit(f, x->row.team, x->row.box, "run.ended", x->news);
}

/* The charges of a transaction that failed are not in the store: boxes read what they were charged for again. */
static void run_writer_forget_charges(struct fleet *f)
{
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		b->charged.known = 0;
}

void run_writer_flush(struct run_writer *l)
{
	struct run_writer_line *x = l->first, *next;
	struct store *s = l->fleet->store;
	struct run_writer_day day;
	struct err e;
	int began;

	if (!x)
		return;
	day.n = 0;
	/* The list is empty from here on, because subscribers may call this module again. */
	l->first = NULL;
	l->last = &l->first;
	l->n = 0;
	timer_clear(&l->timer);
	began = store_join(s, &e);
	for (; x; x = next) {
		next = x->next;
		write_line(l->fleet, x, &day);
		store_run_fini(&x->row);
		json_decref(x->record);
		run_facts_fini(&x->facts);
		free(x);
	}
	write_day(l->fleet, &day);
	if (began >= 0 && store_leave(s, began, 0, &e) < 0)
		run_writer_forget_charges(l->fleet);
}

void run_writer_fini(struct run_writer *l)
{
	run_writer_flush(l);
	timer_fini(&l->timer);
}
