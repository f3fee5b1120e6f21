/* packages.c - see packages.h. */
#include "store/packages.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

#define COLUMNS                                                                                    \
	"key, manager, runtime, packages, layer, bytes, files, install_ms, uses, created_ns, used_ns"

void store_set_fini(struct store_set *s)
{
	free(s->packages);
	s->packages = NULL;
}

static void packages_do_fini(void *row)
{
	store_set_fini(row);
}

void store_sets_fini(struct store_sets *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_set_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_sets){ 0 };
}

static void read_set(struct sql *q, void *row)
{
	struct store_set *s = row;

	sql_get_text(q, s->key, sizeof(s->key));
	sql_get_text(q, s->manager, sizeof(s->manager));
	sql_get_text(q, s->runtime, sizeof(s->runtime));
	s->packages = sql_get_dup(q);
	sql_get_text(q, s->layer, sizeof(s->layer));
	s->bytes = sql_get_u64(q);
	s->files = sql_get_u64(q);
	s->install_ms = sql_get_u64(q);
	s->uses = sql_get_u64(q);
	s->created_ns = sql_get_i64(q);
	s->used_ns = sql_get_i64(q);
}

int store_set_put(struct store *s, const struct store_set *set, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO package_sets (" COLUMNS ") VALUES (?,?,?,?,?,?,?,?,0,?,?)"
		       " ON CONFLICT (key) DO UPDATE SET layer = excluded.layer,"
		       " bytes = excluded.bytes, files = excluded.files,"
		       " install_ms = excluded.install_ms, created_ns = excluded.created_ns,"
		       " used_ns = excluded.used_ns");

	sql_text(&q, set->key);
	sql_text(&q, set->manager);
	sql_text(&q, set->runtime);
	sql_text(&q, set->packages);
	sql_text(&q, set->layer);
	sql_u64(&q, set->bytes);
	sql_u64(&q, set->files);
	sql_u64(&q, set->install_ms);
	sql_i64(&q, set->created_ns);
	sql_i64(&q, set->created_ns);
	return sql_run(&q, e);
}

int store_set_get(struct store *s, const char *key, struct store_set *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM package_sets WHERE key = ?");

	sql_text(&q, key);
	if (sql_one(&q, "set of packages", key, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_set(&q, out);
	return 0;
}

int store_set_use(struct store *s, const char *key, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE package_sets SET uses = uses + 1, used_ns = ? WHERE key = ?");

	sql_i64(&q, now_ns);
	sql_text(&q, key);
	return sql_run(&q, e);
}

int store_set_list(struct store *s, unsigned limit, struct store_sets *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM package_sets"
				       " ORDER BY uses DESC, used_ns DESC, key LIMIT ?");
	struct sql_rows rows;

	limit = sql_limit(limit);
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_set, packages_do_fini, &rows, e) < 0)
		return -1;
	*out = (struct store_sets){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_set_forget(struct store *s, const char *layer, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM package_sets WHERE layer = ?");

	sql_text(&q, layer);
	return sql_run(&q, e);
}

int store_set_bytes(struct store *s, uint64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT coalesce(sum(b), 0) FROM (SELECT max(bytes) AS b"
				       " FROM package_sets GROUP BY layer)");

	if (sql_one(&q, "sum", "bytes", e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}

int store_set_oldest(struct store *s, unsigned skip, char out_layer[STORE_HASH + 1], struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT layer FROM package_sets GROUP BY layer"
				       " ORDER BY max(used_ns), layer LIMIT 1 OFFSET ?");

	sql_i64(&q, skip);
	if (sql_one(&q, "layer", "to spare", e) < 0)
		return -1;
	sql_get_text(&q, out_layer, STORE_HASH + 1);
	return 0;
}
