/* run_shares.c - see run_shares.h. */
#include "store/run_shares.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS "id, hash, run, team, who, created_ns, expires_ns"

static void run_share_read(struct sql *q, void *row)
{
	struct store_run_share *x = row;
	size_t n;
	void *hash;

	sql_get_text(q, x->id, sizeof(x->id));
	hash = sql_get_blob(q, &n);
	memcpy(x->hash, hash, n < sizeof(x->hash) ? n : sizeof(x->hash));
	free(hash);
	sql_get_text(q, x->run, sizeof(x->run));
	sql_get_text(q, x->team, sizeof(x->team));
	sql_get_text(q, x->who, sizeof(x->who));
	x->created_ns = sql_get_i64(q);
	x->expires_ns = sql_get_i64(q);
}

void store_run_shares_fini(struct store_run_shares *l)
{
	free(l->v);
	*l = (struct store_run_shares){ 0 };
}

static int run_share_drop_expired(struct store *s, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM run_shares WHERE expires_ns <= ?");

	sql_i64(&q, now_ns);
	return sql_run(&q, e);
}

static int run_share_has_room(struct store *s, const char *run, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT count(*) FROM run_shares WHERE run = ?");

	sql_text(&q, run);
	if (sql_one(&q, "run", run, e) < 0)
		return -1;
	return sql_get_i64(&q) < RUN_SHARES
		       ? 0
		       : err_set(e, ERR_LIMIT, "run %.15s has %d links, the maximum", run,
				 RUN_SHARES);
}

static int run_share_insert(struct store *s, const struct store_run_share *x, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO run_shares (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, x->id);
	sql_blob(&q, x->hash, sizeof(x->hash));
	sql_text(&q, x->run);
	sql_text(&q, x->team);
	sql_text(&q, x->who);
	sql_i64(&q, x->created_ns);
	sql_i64(&q, x->expires_ns);
	return sql_run(&q, e);
}

int store_run_share_add(struct store *s, const struct store_run_share *x, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (run_share_drop_expired(s, x->created_ns, e) < 0 ||
	    run_share_has_room(s, x->run, e) < 0 || run_share_insert(s, x, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_run_share_find(struct store *s, const uint8_t hash[SHA256_BYTES], int64_t now_ns,
			 struct store_run_share *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM run_shares WHERE hash = ? AND expires_ns > ?");

	sql_blob(&q, hash, SHA256_BYTES);
	sql_i64(&q, now_ns);
	if (sql_one(&q, "link", "", e) < 0)
		return -1;
	*out = (struct store_run_share){ 0 };
	run_share_read(&q, out);
	return 0;
}

int store_run_share_list(struct store *s, const char *run, int64_t now_ns,
			 struct store_run_shares *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM run_shares WHERE run = ? AND expires_ns > ?"
		       " ORDER BY created_ns DESC, id DESC LIMIT ?");
	struct sql_rows rows;

	sql_text(&q, run);
	sql_i64(&q, now_ns);
	sql_i64(&q, RUN_SHARES + 1);
	if (sql_list(&q, RUN_SHARES, sizeof(*out->v), run_share_read, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_run_shares){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_run_share_remove(struct store *s, const char *run, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM run_shares WHERE run = ? AND id = ?");

	sql_text(&q, run);
	sql_text(&q, id);
	return sql_run_one(&q, "link", id, e);
}
