/* batches.c - see batches.h. */
#include "store/batches.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <assert.h>
#include <string.h>

/* `column` is the word in the database, part of a constraint of the schema; `name` is the public
 * word. */
static const struct {
	const char *column, *name;
} states[] = {
	[STORE_BATCH_RECEIVING] = { "receiving", "receiving" },
	[STORE_BATCH_RUNNING] = { "running", "running" },
	[STORE_BATCH_FINISHED] = { "over", "finished" },
	[STORE_BATCH_CANCELLED] = { "cancelled", "cancelled" },
};
static_assert(ARRAY_LEN(states) == STORE_BATCH_STATES, "a state without a name");

const char *store_batch_state_name(enum store_batch_state state)
{
	return (unsigned)state < STORE_BATCH_STATES ? states[state].name : "unknown";
}

#define COLUMNS                                                                                    \
	"id, team, who, state, created_ns, ended_ns, items, passed, failed, errors, bytes,"        \
	" whole, options"

static void read_batch(struct sql *q, void *row)
{
	struct store_batch *b = row;
	char state[16];

	sql_get_text(q, b->id, sizeof(b->id));
	sql_get_text(q, b->team, sizeof(b->team));
	sql_get_text(q, b->who, sizeof(b->who));
	sql_get_text(q, state, sizeof(state));
	for (unsigned i = 0; i < STORE_BATCH_STATES; i++)
		if (strcmp(state, states[i].column) == 0)
			b->state = (enum store_batch_state)i;
	b->created_ns = sql_get_i64(q);
	b->ended_ns = sql_get_i64(q);
	b->items = sql_get_u64(q);
	b->passed = sql_get_u64(q);
	b->failed = sql_get_u64(q);
	b->errors = sql_get_u64(q);
	b->bytes = sql_get_u64(q);
	b->whole = (int)sql_get_i64(q);
	b->options = sql_get_dup(q);
}

void store_batch_fini(struct store_batch *b)
{
	free(b->options);
	b->options = NULL;
}

static void fini_row(void *row)
{
	store_batch_fini(row);
}

void store_batches_fini(struct store_batches *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_batch_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_batches){ 0 };
}

int store_batch_insert(struct store *s, const struct store_batch *b, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO batches (" COLUMNS ")"
				       " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, b->id);
	sql_text(&q, b->team);
	sql_text(&q, b->who);
	sql_text(&q, states[b->state].column);
	sql_i64(&q, b->created_ns);
	sql_i64(&q, b->ended_ns);
	sql_u64(&q, b->items);
	sql_u64(&q, b->passed);
	sql_u64(&q, b->failed);
	sql_u64(&q, b->errors);
	sql_u64(&q, b->bytes);
	sql_i64(&q, b->whole);
	sql_json(&q, b->options, "{}");
	return sql_run(&q, e);
}

int store_batch_update(struct store *s, const struct store_batch *b, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE batches SET state = ?, ended_ns = ?, items = ?, passed = ?,"
		       " failed = ?, errors = ?, bytes = ?, whole = ? WHERE id = ?");

	sql_text(&q, states[b->state].column);
	sql_i64(&q, b->ended_ns);
	sql_u64(&q, b->items);
	sql_u64(&q, b->passed);
	sql_u64(&q, b->failed);
	sql_u64(&q, b->errors);
	sql_u64(&q, b->bytes);
	sql_i64(&q, b->whole);
	sql_text(&q, b->id);
	return sql_run_one(&q, "batch", b->id, e);
}

int store_batch_get(struct store *s, const char *id, struct store_batch *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM batches WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "batch", id, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_batch(&q, out);
	return 0;
}

static int read_rows(struct sql *q, unsigned limit, struct store_batches *out, struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, sizeof(struct store_batch), read_batch, fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_batches){ rows.v, rows.n, rows.more };
	return 0;
}

int store_batch_list(struct store *s, const char *team, const struct store_cursor *after,
		     unsigned limit, struct store_batches *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };

	buf_puts(&w.text, "SELECT " COLUMNS " FROM batches WHERE 1");
	sql_where_text(&w, "team = ?", team);
	if (after)
		sql_where_after(&w, "created_ns", after);
	limit = sql_limit(limit);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_u64(&q, (uint64_t)limit + 1);
	return read_rows(&q, limit, out, e);
}

int store_batch_live(struct store *s, struct store_batches *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM batches"
				       " WHERE ended_ns = 0 ORDER BY created_ns, id");

	return read_rows(&q, SQL_ALL, out, e);
}

int store_batch_next_team(struct store *s, const char *after, char out[STORE_NAME + 1],
			  struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT team FROM batches WHERE team > ? ORDER BY team LIMIT 1");
	int rc;

	sql_text(&q, after);
	rc = sql_row(&q, e);
	if (rc > 0)
		sql_get_text(&q, out, STORE_NAME + 1);
	return rc;
}

int store_batch_old(struct store *s, const char *team, int64_t before_ns, struct store_batches *out,
		    struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "SELECT " COLUMNS " FROM batches"
		    " WHERE ended_ns > 0 AND ended_ns < ? AND team = ? ORDER BY ended_ns LIMIT ?");

	sql_i64(&q, before_ns);
	sql_text(&q, team);
	sql_u64(&q, STORE_PAGE + 1);
	return read_rows(&q, STORE_PAGE, out, e);
}

int store_batch_remove(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM batches WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "batch", id, e);
}

int store_batch_bytes(struct store *s, const char *team, uint64_t *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT coalesce(sum(bytes), 0) FROM batches WHERE team = ?");

	sql_text(&q, team);
	if (sql_one(&q, "batches of", team, e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}
