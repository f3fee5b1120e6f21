/* mcp_sessions.c - see mcp_sessions.h. */
#include "store/mcp_sessions.h"
#include "store/sql.h"

#include <string.h>

static int session_add(struct store *s, const struct store_mcp_session *x, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO mcp_sessions (id, team, key, level, can, used_ns)"
		       " VALUES (?, ?, ?, ?, ?, ?)");

	sql_text(&q, x->id);
	sql_text(&q, x->team);
	sql_text(&q, x->key);
	sql_i64(&q, x->level);
	sql_i64(&q, x->can);
	sql_i64(&q, x->used_ns);
	return sql_run(&q, e);
}

static int session_drop_surplus(struct store *s, const char *team, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "DELETE FROM mcp_sessions WHERE rowid IN (SELECT rowid FROM mcp_sessions"
		       " INDEXED BY mcp_sessions_used WHERE team = ?"
		       " ORDER BY used_ns DESC, rowid DESC LIMIT -1 OFFSET ?)");

	sql_text(&q, team);
	sql_i64(&q, MCP_SESSIONS);
	return sql_run(&q, e);
}

int store_mcp_session_insert(struct store *s, const struct store_mcp_session *x, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (session_add(s, x, e) < 0 || session_drop_surplus(s, x->team, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

static int session_is_id(const char *text)
{
	return strlen(text) == MCP_SESSION_ID && strspn(text, "0123456789abcdef") == MCP_SESSION_ID;
}

static int session_read(struct store *s, const char *id, const char *team, const char *key,
			struct store_mcp_session *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT id, team, key, level, can, used_ns FROM mcp_sessions"
				       " WHERE id = ? AND team = ? AND key = ?");

	sql_text(&q, id);
	sql_text(&q, team);
	sql_text(&q, key);
	if (sql_one(&q, "session", id, e) < 0)
		return -1;
	*out = (struct store_mcp_session){ 0 };
	sql_get_text(&q, out->id, sizeof(out->id));
	sql_get_text(&q, out->team, sizeof(out->team));
	sql_get_text(&q, out->key, sizeof(out->key));
	out->level = (int)sql_get_i64(&q);
	out->can = (unsigned)sql_get_i64(&q);
	out->used_ns = sql_get_i64(&q);
	return 0;
}

int store_mcp_session_get(struct store *s, const char *id, const char *team, const char *key,
			  int64_t at_ns, struct store_mcp_session *out, struct err *e)
{
	const int64_t minute = INT64_C(60) * 1000000000;
	struct err ignored;

	if (!session_is_id(id))
		return err_set(e, ERR_NOT_FOUND, "no session '%.40s'", id);
	if (session_read(s, id, team, key, out, e) < 0)
		return -1;
	if (at_ns - out->used_ns < minute && out->used_ns - at_ns < minute)
		return 0;
	auto_sql struct sql q = sql(s, "UPDATE mcp_sessions SET used_ns = ? WHERE id = ?");
	sql_i64(&q, at_ns);
	sql_text(&q, id);
	/* A full disk is no reason to refuse a session that is there. */
	if (sql_run(&q, &ignored) == 0)
		out->used_ns = at_ns;
	return 0;
}

int store_mcp_session_set_level(struct store *s, const char *id, int level, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE mcp_sessions SET level = ? WHERE id = ?");

	sql_i64(&q, level);
	sql_text(&q, id);
	return sql_run_one(&q, "session", id, e);
}

int store_mcp_session_delete(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM mcp_sessions WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "session", id, e);
}
