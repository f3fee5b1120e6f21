/* agents.c - see agents.h. */
#include "store/agents.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

#define TABLE "errands" /* its name in existing databases */
#define COLUMNS "id, team, who, title, created_ns, ended_ns, outcome"

static void read_session(struct sql *q, void *row)
{
	struct store_agent *x = row;

	sql_get_text(q, x->id, sizeof(x->id));
	sql_get_text(q, x->team, sizeof(x->team));
	sql_get_text(q, x->who, sizeof(x->who));
	sql_get_text(q, x->title, sizeof(x->title));
	x->created_ns = sql_get_i64(q);
	x->ended_ns = sql_get_i64(q);
	sql_get_text(q, x->outcome, sizeof(x->outcome));
}

void store_agents_fini(struct store_agents *l)
{
	free(l->v);
	*l = (struct store_agents){ 0 };
}

int store_agent_insert(struct store *s, const struct store_agent *x, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO " TABLE " (" COLUMNS
				       ", report) VALUES (?, ?, ?, ?, ?, 0, '', '')");

	sql_text(&q, x->id);
	sql_text(&q, x->team);
	sql_text(&q, x->who);
	sql_text(&q, x->title);
	sql_i64(&q, x->created_ns);
	return sql_run(&q, e);
}

int store_agent_end(struct store *s, const char *id, int64_t ended_ns, const char *outcome,
		    const char *report, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE " TABLE " SET ended_ns = ?, outcome = ?, report = ? WHERE id = ?");

	sql_i64(&q, ended_ns);
	sql_text(&q, outcome);
	sql_text(&q, report ? report : "");
	sql_text(&q, id);
	return sql_run_one(&q, "agent", id, e);
}

int store_agent_get(struct store *s, const char *team, const char *id, struct store_agent *out,
		    char **out_report, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS ", report FROM " TABLE " WHERE id = ? AND team = ?");

	sql_text(&q, id);
	sql_text(&q, team);
	if (sql_one(&q, "agent", id, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_session(&q, out);
	*out_report = sql_get_dup(&q);
	return 0;
}

int store_agent_list(struct store *s, const char *team, const struct store_cursor *after,
		     unsigned limit, struct store_agents *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	buf_puts(&w.text, "SELECT " COLUMNS " FROM " TABLE " WHERE 1");
	sql_where_text(&w, "team = ?", team);
	if (after)
		sql_where_after(&w, "created_ns", after);
	limit = sql_limit(limit);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_u64(&q, (uint64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(struct store_agent), read_session, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_agents){ rows.v, rows.n, rows.more };
	return 0;
}

int store_agent_running(struct store *s, struct store_agents *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM " TABLE " WHERE ended_ns = 0 LIMIT ?");
	struct sql_rows rows;

	sql_i64(&q, STORE_PAGE_MAX);
	if (sql_list(&q, STORE_PAGE_MAX, sizeof(struct store_agent), read_session, NULL, &rows, e) <
	    0)
		return -1;
	*out = (struct store_agents){ rows.v, rows.n, rows.more };
	return 0;
}

static int agents_lose(struct store *s, int64_t lost_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE " TABLE " SET ended_ns = created_ns, outcome = 'lost'"
		       " WHERE ended_ns = 0 AND created_ns < ?");

	sql_i64(&q, lost_ns);
	return sql_run(&q, e);
}

static int drop_surplus(struct store *s, unsigned keep, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"DELETE FROM " TABLE " WHERE ended_ns > 0 AND id IN (SELECT id FROM"
		" (SELECT id, row_number() OVER (PARTITION BY team ORDER BY created_ns DESC, id DESC) AS nth"
		"  FROM " TABLE " WHERE team IN (SELECT team FROM " TABLE
		" GROUP BY team HAVING count(*) > ?1))"
		" WHERE nth > ?1)");

	sql_u64(&q, keep);
	return sql_run(&q, e);
}

int store_agent_purge(struct store *s, int64_t before_ns, int64_t lost_ns, unsigned keep,
		      struct err *e)
{
	if (agents_lose(s, lost_ns, e) < 0 || drop_surplus(s, keep, e) < 0)
		return -1;
	auto_sql struct sql q = sql(s, "DELETE FROM " TABLE " WHERE ended_ns > 0 AND ended_ns < ?");
	sql_i64(&q, before_ns);
	return sql_run(&q, e);
}
