/* ledger.c - see ledger.h. */
#include "fleet/ledger.h"
#include "box/record.h"
#include "fleet/fleet.h"

#include <stdlib.h>

struct ledger_line {
	struct ledger_line *next;
	struct store_run row;
	enum cause cause;
	uint64_t run_us;
	json_t *record, *news;
};

static void is_due(struct timer *t)
{
	ledger_settle(loop_owner(t, struct ledger, timer));
}

void ledger_init(struct ledger *l, struct fleet *f)
{
	*l = (struct ledger){ .fleet = f };
	l->last = &l->first;
	timer_init(&l->timer, f->loop, is_due);
}

void ledger_add(struct ledger *l, const struct store_run *row, json_t *take_record, enum cause cause,
		uint64_t run_us, json_t *take_news)
{
	struct ledger_line *x = malloc(sizeof(*x));

	if (!x)
		abort();
	*x = (struct ledger_line){
		.row = *row, .cause = cause, .run_us = run_us, .record = take_record, .news = take_news
	};
	*l->last = x;
	l->last = &x->next;
	if (++l->n >= LEDGER_MAX)
		ledger_settle(l);
	else if (l->n == 1)
		timer_set(&l->timer, LEDGER_MS);
}

static void write_line(struct fleet *f, struct ledger_line *x)
{
	struct err e;

	x->row.record = json_dumps(x->record, JSON_COMPACT | RECORD_DIGITS);
	if (!x->row.record)
		abort();
	/* On a full disk the row stays "running" until the next restart finds the exec over. One
	 * that has ended before was recorded, and counted, by another front. */
	if (store_run_end(f->store, &x->row, &e) < 0 && e.kind == ERR_CONFLICT) {
		json_decref(x->news);
		return;
	}
	f->figures.ended[x->cause]++;
	f->figures.output_bytes += x->row.output_bytes;
	fleet_observe(&f->figures.run, x->run_us);
	fleet_tell(f, x->row.team, x->row.box, "run.ended", x->news);
}

void ledger_settle(struct ledger *l)
{
	struct ledger_line *x = l->first, *next;
	struct store *s = l->fleet->store;
	struct err e;
	int grouped;

	if (!x)
		return;
	/* Empty from here on: those who are told may come back. */
	l->first = NULL;
	l->last = &l->first;
	l->n = 0;
	timer_clear(&l->timer);
	grouped = store_begin(s, &e) == 0;
	for (; x; x = next) {
		next = x->next;
		write_line(l->fleet, x);
		store_run_fini(&x->row);
		json_decref(x->record);
		free(x);
	}
	if (grouped)
		(void)!store_commit(s, &e);
}

void ledger_fini(struct ledger *l)
{
	ledger_settle(l);
	timer_fini(&l->timer);
}
