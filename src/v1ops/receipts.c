/* receipts.c - see receipts.h. */
#include "v1ops/receipts.h"
#include "base/id.h"
#include "receipt/receipts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIPTS_NODE                                                                              \
	{                                                                                          \
		"node", FIELD_TEXT, 0, 0, STORE_NAME,                                              \
			"behind a gateway: the node whose chain it is, by name, number or the id " \
			"of a run; else ignored",                                                  \
			NULL                                                                       \
	}
const struct field receipts_key_query[] = { RECEIPTS_NODE, { 0 } };
const struct field receipts_list_query[] = {
	RECEIPTS_NODE,
	{ "from", FIELD_INT, 0, 1, INT64_MAX, "number of the first receipt (default: the oldest)",
	  NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, 20, "`next` of the previous page", NULL },
	{ 0 },
};

/* NULL: receipts are not configured, and the answer was sent. */
static struct receipts *receipts_of(struct call *c)
{
	struct receipts *r = c->api->fleet.receipts.ctx;

	if (r && r->key.key)
		return r;
	call_error(c, 503, "unavailable", "receipts cannot be signed",
		   r ? r->key.trouble.msg : "there is no key",
		   "the operator of the daemon finds the reason in its log");
	return NULL;
}

static void receipts_failed(struct call *c, const struct err *e)
{
	if (e->kind == ERR_CONFLICT)
		call_error(c, 500, "damaged", e->msg, "", "restore the database from a backup");
	else
		call_fail(c, e);
}

/* 1: the run is one of the caller's team. The number of its receipt is in its row, which is removed with the history. */
static int receipts_may_see(struct call *c, const char *run)
{
	struct store_run row = { 0 };
	struct err e;
	int may = id_valid(run) && store_run_get(c->api->store, run, &row, &e) == 0 &&
		  !strcmp(row.team, c->who.team);

	if (!may)
		call_error(c, 404, "not_found", "there is no such run", run,
			   "list them: GET /v1/runs");
	else if (!row.ended_ns)
		call_error(c, 409, "conflict", "this run has not ended", run,
			   "a receipt exists when the run has ended");
	may = may && row.ended_ns;
	store_run_fini(&row);
	return may;
}

void v1_receipts_of_run(struct call *c)
{
	const char *run = call_param(c, 0);
	struct receipts *r = receipts_of(c);
	struct store_receipt row = { 0 };
	auto_buf struct buf line = { 0 };
	struct err e;

	if (!r || !receipts_may_see(c, run))
		return;
	if (store_receipt_of_run(c->api->store, run, &row, &e) < 0) {
		if (e.kind == ERR_NOT_FOUND)
			call_error(
				c, 404, "not_found", "this run has no receipt", run,
				"it ended before this version was installed, or its receipt was removed as too old");
		else
			call_fail(c, &e);
		return;
	}
	if (receipts_line(r, &row, 0, &line, &e) < 0) {
		receipts_failed(c, &e);
	} else {
		buf_putc(&line, '\n');
		call_send_text(c, 200, line.p,
			       line.len); /* the signed bytes, not an equal document */
	}
	store_receipt_fini(&row);
}

static int receipts_page(struct call *c, uint64_t *out_from, struct err *e)
{
	const char *after = call_query(c, "after");
	unsigned long long n;
	char *end;

	*out_from = (uint64_t)call_query_int(c, "from", 1);
	if (!after || !*after)
		return 0;
	errno = 0;
	n = strtoull(after, &end, 10);
	if (errno || *end || *after < '0' || *after > '9')
		return err_set(e, ERR_INVALID, "after: '%.20s' is not the `next` of a page", after);
	*out_from = n + 1;
	return 0;
}

/* Operators see all receipts. Other teams see the links of receipts that are not theirs, so that the chain can be
 * verified, and not their content. */
static json_t *receipts_items(struct call *c, const struct receipts *r,
			      const struct store_receipts *rows, struct err *e)
{
	int all = principal_is_operator(&c->who);
	json_t *items = json_array();

	for (unsigned i = 0; i < rows->n; i++) {
		auto_buf struct buf line = { 0 };

		if (receipts_line(r, &rows->v[i], !all && strcmp(rows->v[i].team, c->who.team) != 0,
				  &line, e) < 0) {
			json_decref(items);
			return NULL;
		}
		json_array_append_new(items, json_loads(buf_str(&line), 0, NULL));
	}
	return items;
}

void v1_receipts_list(struct call *c)
{
	struct receipts *r = receipts_of(c);
	struct store_receipts rows = { 0 };
	char next[24] = "";
	json_t *items;
	uint64_t from;
	struct err e;

	if (!r)
		return;
	if (receipts_page(c, &from, &e) < 0 ||
	    store_receipt_list(c->api->store, from, (unsigned)call_query_int(c, "limit", 0), &rows,
			       &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = receipts_items(c, r, &rows, &e);
	if (rows.more)
		snprintf(next, sizeof(next), "%llu", (unsigned long long)rows.v[rows.n - 1].number);
	store_receipts_fini(&rows);
	if (items)
		call_list(c, items, next);
	else
		receipts_failed(c, &e);
}

void v1_receipts_key(struct call *c)
{
	struct receipts *r = receipts_of(c);

	if (r)
		call_json(c, 200, json_pack("{s:s, s:s}", "id", r->key.id, "key", r->key.pem));
}
