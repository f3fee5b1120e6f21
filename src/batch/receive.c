/* receive.c - receives a batch: its row, its lines into the file; and cancels it. */
#include "batch/batch_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int batch_new(struct batches *a, const char *team, const char *who, const struct batch_options *o,
	      struct batch_watch *w, struct err *e)
{
	struct store_batch row = { .created_ns = fleet_now_ns(), .whole = 1 };
	uint64_t used = 0;
	struct batch *b;
	json_t *doc;
	char isolation[CHOOSE_TEXT];

	if (fleet_check_accepts(a->fleet, e) < 0)
		return -1;
	if (a->live >= BATCH_LIVE)
		return err_set(e, ERR_LIMIT, "%d batches are in progress already", BATCH_LIVE);
	if (store_batch_bytes(a->fleet->store, team, &used, e) < 0)
		return -1;
	if (a->conf.team_bytes && used >= a->conf.team_bytes)
		return err_set(e, ERR_LIMIT, "the batches of team %.64s have %llu bytes already",
			       team, (unsigned long long)used);
	if (o->id)
		snprintf(row.id, sizeof(row.id), "%s", o->id);
	else if (id_new(row.id, e) < 0)
		return -1;
	snprintf(row.team, sizeof(row.team), "%s", team);
	snprintf(row.who, sizeof(row.who), "%s", who);
	choose_request_text(&o->isolation, isolation);
	doc = json_pack("{s:s, s:i, s:i, s:i, s:b, s:b, s:s, s:s?}", "language",
			o->defaults.language, "timeout_ms", (int)o->defaults.run_ms, "max_output",
			(int)o->defaults.max_output, "jobs", (int)o->jobs, "record", o->record,
			"attached", o->attached, "isolation", isolation, "trust",
			o->isolation.has_trust ? choose_trust_name(o->isolation.trust) : NULL);
	row.options = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	b = batch_enter(a, &row);
	b->options = *o;
	b->options.id = NULL; /* borrowed for the call */
	if (spool_make(&b->spool, a->folder, b->row.id, e) < 0 ||
	    store_batch_insert(a->fleet->store, &b->row, e) < 0) {
		a->live--;
		spool_remove(a->folder, b->row.id);
		batch_free(b);
		return -1;
	}
	w->batch = b;
	w->at = 0;
	w->next = NULL;
	b->watches = w;
	return 0;
}

/* The rest of a line that is too long is dropped; the stored part is enough to detect that. */
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

/* A piece of the usual size is written to the file without a copy. */
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

	if (batch_has_ended(b))
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
	batches_pump(b->all);
	return 0;
}

void batch_received(struct batch *b, int whole)
{
	if (b->row.state != STORE_BATCH_RECEIVING)
		return;
	b->row.state = STORE_BATCH_RUNNING;
	b->row.whole = whole;
	b->more = 1;
	batch_write_row(b);
	timer_set(&b->all->again, 0); /* also an empty batch ends from the loop */
}

void batch_cancel(struct batch *b)
{
	struct batches *a = b->all;

	if (batch_has_ended(b))
		return;
	while (b->works)
		batch_free_work(b->works);
	batch_end(b, STORE_BATCH_CANCELLED);
	batch_free_if_idle(b);
	batches_pump(a);
}

/* Readers keep the files open. */
void batch_forget(struct batch *b)
{
	struct err e;

	if (!batch_has_ended(b))
		return;
	spool_remove(b->all->folder, b->row.id);
	b->unwritten = 0;
	(void)!store_batch_remove(b->all->fleet->store, b->row.id, &e);
}
