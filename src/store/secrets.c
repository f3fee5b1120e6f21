/* secrets.c - see secrets.h. */
#include "store/secrets.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

#define LISTED "team, name, key, hosts, version, created_ns, updated_ns"

static void read_secret(struct sql *q, void *row)
{
	struct store_secret *x = row;

	sql_get_text(q, x->team, sizeof(x->team));
	sql_get_text(q, x->name, sizeof(x->name));
	sql_get_text(q, x->key, sizeof(x->key));
	x->hosts = sql_get_dup(q);
	x->version = sql_get_u64(q);
	x->created_ns = sql_get_i64(q);
	x->updated_ns = sql_get_i64(q);
}

void store_secret_fini(struct store_secret *x)
{
	free(x->hosts);
	free(x->sealed);
	x->hosts = NULL;
	x->sealed = NULL;
	x->sealed_n = 0;
}

static void fini_row(void *row)
{
	store_secret_fini(row);
}

void store_secrets_fini(struct store_secrets *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_secret_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_secrets){ 0 };
}

int store_secret_put(struct store *s, struct store_secret *x, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO secrets (team, name, key, hosts, sealed, version, created_ns,"
		       " updated_ns) VALUES (?, ?, ?, ?, ?, 1, ?, ?)"
		       " ON CONFLICT (team, name) DO UPDATE SET key = excluded.key,"
		       " hosts = excluded.hosts, sealed = excluded.sealed, version = version + 1,"
		       " updated_ns = excluded.updated_ns RETURNING version, created_ns");
	int rc;

	if (!x->name[0])
		return err_set(e, ERR_INVALID, "a secret needs a name");
	sql_text(&q, x->team);
	sql_text(&q, x->name);
	sql_text(&q, x->key);
	sql_json(&q, x->hosts, "[]");
	sql_blob(&q, x->sealed, x->sealed_n);
	sql_i64(&q, x->updated_ns);
	sql_i64(&q, x->updated_ns);
	rc = sql_row(&q, e);
	if (rc < 0)
		return q.rc == SQLITE_CONSTRAINT_FOREIGNKEY
			       ? err_set(e, ERR_NOT_FOUND, "no team '%s'", x->team)
			       : -1;
	x->version = sql_get_u64(&q);
	x->created_ns = sql_get_i64(&q);
	return sql_row(&q, e) < 0 ? -1 : 0; /* to the end: the statement commits then */
}

int store_secret_find(struct store *s, const char *team, const char *name, struct store_secret *out,
		      struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " LISTED ", sealed FROM secrets WHERE team = ? AND name = ?");

	sql_text(&q, team);
	sql_text(&q, name);
	if (sql_one(&q, "secret", name, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_secret(&q, out);
	out->sealed = sql_get_blob(&q, &out->sealed_n);
	return 0;
}

int store_secret_list(struct store *s, const char *team, const char *after, unsigned limit,
		      struct store_secrets *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	limit = sql_limit(limit);
	buf_puts(&w.text, "SELECT " LISTED " FROM secrets WHERE 1");
	sql_where_text(&w, "team = ?", team);
	sql_where_text(&w, "name > ?", after);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY name LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_secret, fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_secrets){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_secret_remove(struct store *s, const char *team, const char *name, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM secrets WHERE team = ? AND name = ?");

	sql_text(&q, team);
	sql_text(&q, name);
	return sql_run_one(&q, "secret", name, e);
}

int store_secret_count(struct store *s, const char *team, const char *not_key, uint64_t *out,
		       struct err *e)
{
	auto_where struct sql_where w = { 0 };

	buf_puts(&w.text, "SELECT count(*) FROM secrets WHERE 1");
	sql_where_text(&w, "team = ?", team);
	sql_where_text(&w, "key <> ?", not_key);
	auto_sql struct sql q = sql_filtered(s, &w, "");
	if (sql_one(&q, "count of", "secrets", e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}
