/* teams.c - see teams.h. */
#include "store/teams.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

#define COLUMNS                                                                                    \
	"name, created_ns, boxes, executions_per_day, compute_ms_per_month, "                      \
	"output_bytes_per_day, requests_per_second, plan, isolation"

static void read_team(struct sql *q, void *row)
{
	struct store_team *t = row;

	sql_get_text(q, t->name, sizeof(t->name));
	t->created_ns = sql_get_i64(q);
	t->boxes = sql_get_u64(q);
	t->executions_per_day = sql_get_u64(q);
	t->compute_ms_per_month = sql_get_u64(q);
	t->output_bytes_per_day = sql_get_u64(q);
	t->requests_per_second = (uint32_t)sql_get_u64(q);
	sql_get_text(q, t->plan, sizeof(t->plan));
	sql_get_text(q, t->isolation, sizeof(t->isolation));
}

int store_team_get(struct store *s, const char *name, struct store_team *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM teams WHERE name = ?");

	sql_text(&q, name);
	if (sql_one(&q, "team", name, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_team(&q, out);
	return 0;
}

int store_team_put(struct store *s, const struct store_team *t, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO teams (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
		       " ON CONFLICT (name) DO UPDATE SET boxes = excluded.boxes,"
		       " executions_per_day = excluded.executions_per_day,"
		       " compute_ms_per_month = excluded.compute_ms_per_month,"
		       " output_bytes_per_day = excluded.output_bytes_per_day,"
		       " requests_per_second = excluded.requests_per_second, plan = excluded.plan,"
		       " isolation = excluded.isolation");

	if (!t->name[0])
		return err_set(e, ERR_INVALID, "a team needs a name");
	sql_text(&q, t->name);
	sql_i64(&q, t->created_ns);
	sql_u64(&q, t->boxes);
	sql_u64(&q, t->executions_per_day);
	sql_u64(&q, t->compute_ms_per_month);
	sql_u64(&q, t->output_bytes_per_day);
	sql_u64(&q, t->requests_per_second);
	sql_text(&q, t->plan);
	sql_text(&q, t->isolation);
	return sql_run(&q, e);
}

static int team_put_mirror(struct store *s, const char *name, const char *isolation, int64_t at_ns,
			   struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO teams (" COLUMNS ") VALUES (?, ?, 0, 0, 0, 0, 0, '', ?)"
		       " ON CONFLICT (name) DO UPDATE SET isolation = excluded.isolation");
	auto_sql struct sql pending =
		sql(s, "DELETE FROM account_changes WHERE kind = 'team' AND id = ?");

	sql_text(&q, name);
	sql_i64(&q, at_ns);
	sql_text(&q, isolation);
	sql_text(&pending, name);
	return sql_run(&q, e) < 0 || sql_run(&pending, e) < 0 ? -1 : 0;
}

int store_team_mirror(struct store *s, const char *name, const char *isolation, int64_t at_ns,
		      struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (team_put_mirror(s, name, isolation, at_ns, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_team_list(struct store *s, const char *after, struct store_teams *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM teams WHERE name > ?"
				       " ORDER BY name LIMIT ?");
	struct sql_rows rows;

	sql_text(&q, after);
	sql_i64(&q, STORE_PAGE_MAX);
	if (sql_list(&q, STORE_PAGE_MAX, sizeof(*out->v), read_team, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_teams){ .v = rows.v, .n = rows.n };
	return 0;
}

void store_teams_fini(struct store_teams *l)
{
	free(l->v);
	*l = (struct store_teams){ 0 };
}

int store_team_remove(struct store *s, const char *name, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "DELETE FROM teams WHERE name = ?1 AND NOT EXISTS"
		       " (SELECT 1 FROM boxes WHERE team = ?1 AND state <> 'gone')");
	struct store_team t;

	if (strcmp(name, TEAM_DEFAULT) == 0)
		return err_set(e, ERR_INVALID, "team '" TEAM_DEFAULT "' is always there");
	if (store_team_get(s, name, &t, e) < 0)
		return -1;
	sql_text(&q, name);
	if (sql_run(&q, e) < 0) {
		if (q.rc != SQLITE_CONSTRAINT_FOREIGNKEY)
			return -1;
		return err_set(e, ERR_CONFLICT,
			       "team '%.64s' still has keys, volumes, snapshots or templates",
			       name);
	}
	if (!sql_changes(&q))
		return err_set(e, ERR_CONFLICT, "team '%.64s' still has boxes", name);
	return 0;
}

/* Usage ---- */

int32_t store_day(int64_t ns)
{
	static const int64_t day = INT64_C(86400000000000);

	return (int32_t)(ns / day - (ns % day < 0));
}

int store_usage_add(struct store *s, const char *team, int32_t day, const struct store_usage *more,
		    struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?)"
				       " ON CONFLICT (team, day) DO UPDATE SET"
				       " executions = executions + excluded.executions,"
				       " compute_ms = compute_ms + excluded.compute_ms,"
				       " output_bytes = output_bytes + excluded.output_bytes,"
				       " boxes_created = boxes_created + excluded.boxes_created");

	sql_text(&q, team);
	sql_i64(&q, day);
	sql_u64(&q, more->executions);
	sql_u64(&q, more->compute_ms);
	sql_u64(&q, more->output_bytes);
	sql_u64(&q, more->boxes_created);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%.64s'", team);
	return -1;
}

int store_usage_get(struct store *s, const char *team, int32_t from_day, int32_t to_day,
		    struct store_usage *out, struct err *e)
{
	/* A sum over nothing is NULL, which reads as 0. */
	auto_sql struct sql q = sql(s, "SELECT sum(executions), sum(compute_ms), sum(output_bytes),"
				       " sum(boxes_created) FROM usage"
				       " WHERE team = ? AND day BETWEEN ? AND ?");

	sql_text(&q, team);
	sql_i64(&q, from_day);
	sql_i64(&q, to_day);
	if (sql_one(&q, "usage of", team, e) < 0)
		return -1;
	out->executions = sql_get_u64(&q);
	out->compute_ms = sql_get_u64(&q);
	out->output_bytes = sql_get_u64(&q);
	out->boxes_created = sql_get_u64(&q);
	return 0;
}
