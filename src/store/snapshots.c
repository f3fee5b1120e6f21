/* snapshots.c - see snapshots.h. */
#include "store/snapshots.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

#define COLUMNS "id, team, name, tag, box, template, bytes, created_ns, tier, checkpoint"

static void read_snapshot(struct sql *q, void *row)
{
	struct store_snapshot *x = row;

	sql_get_text(q, x->id, sizeof(x->id));
	sql_get_text(q, x->team, sizeof(x->team));
	sql_get_text(q, x->name, sizeof(x->name));
	sql_get_text(q, x->tag, sizeof(x->tag));
	sql_get_text(q, x->box, sizeof(x->box));
	sql_get_text(q, x->template, sizeof(x->template));
	x->bytes = sql_get_u64(q);
	x->created_ns = sql_get_i64(q);
	sql_get_text(q, x->tier, sizeof(x->tier));
	sql_get_text(q, x->checkpoint, sizeof(x->checkpoint));
}

void store_snapshots_fini(struct store_snapshots *l)
{
	free(l->v);
	*l = (struct store_snapshots){ 0 };
}

int store_snapshot_insert(struct store *s, const struct store_snapshot *x, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO snapshots (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, x->id);
	sql_text(&q, x->team);
	sql_text(&q, x->name);
	sql_text(&q, x->tag);
	sql_text(&q, x->box);
	sql_text(&q, x->template);
	sql_u64(&q, x->bytes);
	sql_i64(&q, x->created_ns);
	sql_text(&q, x->tier);
	sql_text(&q, x->checkpoint);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%s'", x->team);
	return -1;
}

static int take_one(struct sql *q, const char *which, struct store_snapshot *out, struct err *e)
{
	if (sql_one(q, "snapshot", which, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_snapshot(q, out);
	return 0;
}

int store_snapshot_get(struct store *s, const char *team, const char *id,
		       struct store_snapshot *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM snapshots WHERE id = ? AND team = ? AND bytes > 0");

	sql_text(&q, id);
	sql_text(&q, team);
	return take_one(&q, id, out, e);
}

int store_snapshot_named(struct store *s, const char *team, const char *name, const char *tag,
			 struct store_snapshot *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM snapshots WHERE team = ? AND name = ? AND tag = ?"
		       " AND name <> '' AND bytes > 0 ORDER BY created_ns DESC LIMIT 1");

	sql_text(&q, team);
	sql_text(&q, name);
	sql_text(&q, tag);
	return take_one(&q, name, out, e);
}

int store_snapshot_of(struct store *s, const char *checkpoint, struct store_snapshot *out,
		      struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM snapshots WHERE checkpoint = ?"
				       " AND checkpoint <> ''");

	sql_text(&q, checkpoint);
	return take_one(&q, checkpoint, out, e);
}

int store_snapshot_remove(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM snapshots WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "snapshot", id, e);
}

int store_snapshot_list(struct store *s, const struct store_snapshot_filter *f,
			struct store_snapshots *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	unsigned limit = sql_limit(f->limit);
	struct sql_rows rows;

	buf_puts(&w.text, "SELECT " COLUMNS " FROM snapshots WHERE bytes > 0");
	sql_where_text(&w, "team = ?", f->team);
	sql_where_text(&w, "box = ?", f->box);
	sql_where_text(&w, "name = ?", f->name);
	sql_where_text(&w, "tag = ?", f->tag);
	sql_where_after(&w, "created_ns", &f->after);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_snapshot, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_snapshots){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

struct store_cursor store_snapshot_cursor(const struct store_snapshot *x)
{
	struct store_cursor c = { .ns = x->created_ns };

	memcpy(c.id, x->id, sizeof(c.id));
	return c;
}

int store_snapshot_bytes(struct store *s, const char *team, uint64_t *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT coalesce(sum(bytes), 0) FROM snapshots WHERE team = ? OR ? = ''");

	sql_text(&q, team);
	sql_text(&q, team);
	if (sql_one(&q, "team", team ? team : "", e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}

int store_snapshot_finish(struct store *s, const char *id, uint64_t bytes, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE snapshots SET bytes = ? WHERE id = ?");

	sql_u64(&q, bytes);
	sql_text(&q, id);
	return sql_run_one(&q, "snapshot", id, e);
}

int store_snapshot_stale(struct store *s, int64_t before_ns, char out_id[ID_MAX + 1], struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT id FROM snapshots WHERE bytes = 0 AND created_ns < ? LIMIT 1");

	sql_i64(&q, before_ns);
	if (sql_one(&q, "snapshot", "stale", e) < 0)
		return -1;
	sql_get_text(&q, out_id, ID_MAX + 1);
	return 0;
}
