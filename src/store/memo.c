/* memo.c - see memo.h. */
#include "store/memo.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

enum { ROW_BYTES = 256 }; /* of a row besides its answer, about */

void store_memo_fini(struct store_memo *m)
{
	free(m->answer);
	m->answer = NULL;
}

static int memo_drop(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
		     struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM memo WHERE team = ? AND key = ?");

	sql_text(&q, team);
	sql_blob(&q, key, SHA256_BYTES);
	return sql_run(&q, e);
}

/* The receipt is copied from the run, which the history removes earlier. */
static int memo_use(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
		    int64_t now_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "UPDATE memo SET used_ns = ?, receipt = CASE receipt WHEN 0 THEN"
		    " coalesce((SELECT receipt FROM runs WHERE id = memo.run), 0) ELSE receipt END"
		    " WHERE team = ? AND key = ?");

	sql_i64(&q, now_ns);
	sql_text(&q, team);
	sql_blob(&q, key, SHA256_BYTES);
	return sql_run_one(&q, "answer", "of these inputs", e);
}

static int memo_read(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
		     struct store_memo *out, struct err *e)
{
	auto_sql struct sql q = sql(
		s, "SELECT run, receipt, created_ns, answer FROM memo WHERE team = ? AND key = ?");

	sql_text(&q, team);
	sql_blob(&q, key, SHA256_BYTES);
	if (sql_one(&q, "answer", "of these inputs", e) < 0)
		return -1;
	*out = (struct store_memo){ 0 };
	sql_get_text(&q, out->run, sizeof(out->run));
	out->receipt = sql_get_u64(&q);
	out->created_ns = sql_get_i64(&q);
	out->answer = sql_get_dup(&q);
	return 0;
}

int store_memo_get(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
		   int64_t now_ns, struct store_memo *out, struct err *e)
{
	struct err ignored;

	if (memo_use(s, team, key, now_ns, e) < 0 || memo_read(s, team, key, out, e) < 0)
		return -1;
	/* A clock that was set back makes a row young, never older. */
	if (out->receipt && now_ns - out->created_ns < MEMO_KEEP_NS)
		return 0;
	store_memo_fini(out);
	(void)!memo_drop(s, team, key, &ignored);
	return err_set(e, ERR_NOT_FOUND, "no answer of these inputs that may be used");
}

static int memo_insert(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
		       const struct store_memo *m, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"INSERT OR REPLACE INTO memo (team, key, run, receipt, created_ns, used_ns, bytes,"
		" answer) VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, team);
	sql_blob(&q, key, SHA256_BYTES);
	sql_text(&q, m->run);
	sql_u64(&q, m->receipt);
	sql_i64(&q, m->created_ns);
	sql_i64(&q, m->created_ns);
	sql_u64(&q, strlen(m->answer) + ROW_BYTES);
	sql_text(&q, m->answer);
	return sql_run(&q, e);
}

static int memo_drop_old(struct store *s, const char *team, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM memo WHERE team = ? AND created_ns <= ?");

	sql_text(&q, team);
	sql_i64(&q, now_ns - MEMO_KEEP_NS);
	return sql_run(&q, e);
}

/* From the one used last on, until they are too many bytes together; the rest is removed. */
static int memo_drop_surplus(struct store *s, const char *team, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"DELETE FROM memo WHERE rowid IN (SELECT rowid FROM (SELECT rowid, sum(bytes) OVER"
		" (ORDER BY used_ns DESC, rowid DESC) AS total FROM memo WHERE team = ?) WHERE total > ?)");

	sql_text(&q, team);
	sql_i64(&q, MEMO_TEAM);
	return sql_run(&q, e);
}

int store_memo_put(struct store *s, const char *team, const uint8_t key[SHA256_BYTES],
		   const struct store_memo *m, struct err *e)
{
	if (strlen(m->answer) > MEMO_ANSWER)
		return err_set(e, ERR_LIMIT, "an answer of %zu bytes; at most %d are stored",
			       strlen(m->answer), MEMO_ANSWER);
	if (store_begin(s, e) < 0)
		return -1;
	if (memo_insert(s, team, key, m, e) < 0 || memo_drop_old(s, team, m->created_ns, e) < 0 ||
	    memo_drop_surplus(s, team, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}
