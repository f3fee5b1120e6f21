/* receipts.c - see receipts.h. */
#include "store/receipts.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS "number, run, team, at_ns, hash, body"

static void receipt_get_hash(struct sql *q, uint8_t out[SHA256_BYTES])
{
	size_t n;
	void *bytes = sql_get_blob(q, &n);

	memset(out, 0, SHA256_BYTES);
	memcpy(out, bytes, n < SHA256_BYTES ? n : SHA256_BYTES);
	free(bytes);
}

static void receipt_read(struct sql *q, void *row)
{
	struct store_receipt *r = row;

	r->number = sql_get_u64(q);
	sql_get_text(q, r->run, sizeof(r->run));
	sql_get_text(q, r->team, sizeof(r->team));
	r->at_ns = sql_get_i64(q);
	receipt_get_hash(q, r->hash);
	r->body = sql_get_dup(q);
}

void store_receipt_fini(struct store_receipt *r)
{
	free(r->body);
	r->body = NULL;
}

static void receipt_fini_row(void *row)
{
	store_receipt_fini(row);
}

void store_receipts_fini(struct store_receipts *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_receipt_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_receipts){ 0 };
}

int store_receipt_last(struct store *s, uint64_t *out_number, uint8_t out_hash[SHA256_BYTES],
		       struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT number, hash FROM receipts ORDER BY number DESC LIMIT 1");
	int rc = sql_row(&q, e);

	if (rc < 0)
		return -1;
	*out_number = 0;
	memset(out_hash, 0, SHA256_BYTES);
	if (rc > 0) {
		*out_number = sql_get_u64(&q);
		receipt_get_hash(&q, out_hash);
	}
	return 0;
}

int store_receipt_add(struct store *s, const struct store_receipt *r, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO receipts (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?)");

	sql_u64(&q, r->number);
	sql_text(&q, r->run);
	sql_text(&q, r->team);
	sql_i64(&q, r->at_ns);
	sql_blob(&q, r->hash, sizeof(r->hash));
	sql_text(&q, r->body);
	if (sql_run(&q, e) < 0)
		return -1;
	s->history_bytes += strlen(r->body);
	return 0;
}

int store_receipt_of_run(struct store *s, const char *run, struct store_receipt *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM receipts WHERE number ="
				       " (SELECT receipt FROM runs WHERE id = ?)");

	sql_text(&q, run);
	if (sql_one(&q, "receipt of run", run, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	receipt_read(&q, out);
	return 0;
}

int store_receipt_list(struct store *s, uint64_t from, unsigned limit, struct store_receipts *out,
		       struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS
				       " FROM receipts WHERE number >= ? ORDER BY number LIMIT ?");
	struct sql_rows rows;

	limit = sql_limit(limit);
	sql_u64(&q, from);
	sql_i64(&q, limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), receipt_read, receipt_fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_receipts){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

/* The number up to which (inclusive) receipts may be removed, among the first `rows`; 0: none. The rows are
 * examined in their order, because a row in the middle must stay while an earlier one does. */
static int receipt_surplus(struct store *s, int64_t cut_ns, uint64_t most, unsigned rows,
			   uint64_t *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT number, at_ns, (SELECT max(number) FROM receipts) FROM receipts"
		       " ORDER BY number LIMIT ?");
	int rc;

	*out = 0;
	sql_i64(&q, rows);
	while ((rc = sql_row(&q, e)) > 0) {
		uint64_t number = sql_get_u64(&q);
		int64_t at_ns = sql_get_i64(&q);
		uint64_t last = sql_get_u64(&q);

		if (number == last || (at_ns >= cut_ns && (!most || last - number < most)))
			break;
		*out = number;
	}
	return rc < 0 ? -1 : 0;
}

int store_receipt_purge(struct store *s, int64_t cut_ns, uint64_t most, unsigned rows,
			unsigned *out_removed, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM receipts WHERE number <= ?");
	uint64_t until;

	*out_removed = 0;
	if (receipt_surplus(s, cut_ns, most, rows, &until, e) < 0)
		return -1;
	if (!until)
		return 0;
	sql_u64(&q, until);
	if (sql_run(&q, e) < 0)
		return -1;
	*out_removed = sql_changes(&q);
	return 0;
}
