/* results.c - reads a batch: its results from any number on, and its description as JSON. */
#include "batch/batch_internal.h"
#include "record/record.h"

#include <errno.h>
#include <string.h>

int batch_watch(struct batches *a, const char *team, const char *id, uint32_t after,
		struct batch_watch *w, struct err *e)
{
	struct batch *b = batches_find(a, id);
	struct store_batch row = { 0 };

	w->batch = NULL;
	if (!b) {
		if (!id_valid(id) || store_batch_get(a->fleet->store, id, &row, e) < 0 ||
		    strcmp(row.team, team) != 0) {
			store_batch_fini(&row);
			return err_set(e, ERR_NOT_FOUND, "there is no batch '%.20s'", id);
		}
		if (!row.ended_ns) { /* the other server runs it and ends soon */
			store_batch_fini(&row);
			err_set(e, ERR_SYS, "the batch is being taken over; ask again");
			e->sys = EBUSY;
			return -1;
		}
		b = batches_take_up(a, &row, e);
		if (!b)
			return -1;
	}
	if (strcmp(b->row.team, team) != 0)
		return err_set(e, ERR_NOT_FOUND, "there is no batch '%.20s'", id);
	if (spool_offset(&b->spool, after + 1, &w->at, e) < 0) {
		batch_free_if_idle(b);
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
	/* The batch may have waited for this reader, or can be freed now. */
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

int batch_is_complete(const struct batch *b)
{
	return batch_has_ended(b);
}

/* ---- as JSON ---- */

static json_t *row_json(const struct store_batch *row)
{
	json_t *doc = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:b}", "id", row->id, "state",
				store_batch_state_name(row->state), "results",
				(json_int_t)(row->passed + row->failed + row->errors), "passed",
				(json_int_t)row->passed, "failed", (json_int_t)row->failed,
				"errors", (json_int_t)row->errors, "whole", row->whole);

	json_object_set_new(doc, "items",
			    row->items || row->ended_ns ? json_integer((json_int_t)row->items)
							: json_null());
	json_object_set_new(doc, "created", json_time((uint64_t)row->created_ns));
	if (row->ended_ns) {
		json_object_set_new(doc, "ended", json_time((uint64_t)row->ended_ns));
		json_object_set_new(
			doc, "seconds",
			json_real((double)((row->ended_ns - row->created_ns) / 1000000) / 1000));
	}
	return doc;
}

json_t *batch_json(const struct batch *b)
{
	json_t *doc = row_json(&b->row), *causes = json_object();

	for (unsigned v = VERDICT_FAILED; v < VERDICT_COUNT; v++)
		for (unsigned i = 0; i < WHY_COUNT; i++) {
			json_int_t n = (json_int_t)b->counts[v][i];
			json_int_t before =
				json_integer_value(json_object_get(causes, why_name(i)));

			if (n)
				json_object_set_new(causes, why_name(i), json_integer(n + before));
		}
	json_object_set_new(doc, "causes", causes);
	if (!batch_has_ended(b))
		json_object_set_new(doc, "flying", json_integer(b->flying));
	return doc;
}

json_t *batches_json(const struct batches *a, const struct store_batch *row)
{
	const struct batch *b = batches_find(a, row->id);

	return b ? batch_json(b) : row_json(row);
}
