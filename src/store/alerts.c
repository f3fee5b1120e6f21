/* alerts.c - see alerts.h. */
#include "store/alerts.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdlib.h>

#define ALERT_COLUMNS                                                                              \
	"id, rule, state, value, threshold, summary, pending_ns, fired_ns, resolved_ns"

/* A double has no function in sql.h: its text does not lose a bit. */
static void alert_number(struct sql *q, double value)
{
	if (q->stmt)
		sqlite3_bind_double(q->stmt, ++q->bound, value);
}

static double alert_get_number(struct sql *q)
{
	return sqlite3_column_double(q->stmt, q->got++);
}

static void read_alert(struct sql *q, void *row)
{
	struct store_alert *a = row;

	a->id = sql_get_i64(q);
	sql_get_text(q, a->rule, sizeof(a->rule));
	sql_get_text(q, a->state, sizeof(a->state));
	a->value = alert_get_number(q);
	a->threshold = alert_get_number(q);
	sql_get_text(q, a->summary, sizeof(a->summary));
	a->pending_ns = sql_get_i64(q);
	a->fired_ns = sql_get_i64(q);
	a->resolved_ns = sql_get_i64(q);
}

void store_alerts_fini(struct store_alerts *l)
{
	free(l->v);
	*l = (struct store_alerts){ 0 };
}

static int alert_insert(struct store *s, struct store_alert *a, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO alerts (rule, subject, state, value, threshold, summary,"
		       " pending_ns, fired_ns, resolved_ns) VALUES (?, '', ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, a->rule);
	sql_text(&q, a->state);
	alert_number(&q, a->value);
	alert_number(&q, a->threshold);
	sql_text(&q, a->summary);
	sql_i64(&q, a->pending_ns);
	sql_i64(&q, a->fired_ns);
	sql_i64(&q, a->resolved_ns);
	if (sql_run(&q, e) < 0)
		return -1;
	a->id = sqlite3_last_insert_rowid(s->db);
	return 0;
}

static int alert_trim(struct store *s, int64_t newest, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM alerts WHERE id <= ? AND state = 'resolved'");

	sql_i64(&q, newest - STORE_ALERTS);
	return sql_run(&q, e);
}

int store_alert_put(struct store *s, struct store_alert *a, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE alerts SET state = ?, value = ?, fired_ns = ?,"
				       " resolved_ns = ? WHERE id = ?");

	if (!a->id)
		return alert_insert(s, a, e) < 0 ? -1 : alert_trim(s, a->id, e);
	sql_text(&q, a->state);
	alert_number(&q, a->value);
	sql_i64(&q, a->fired_ns);
	sql_i64(&q, a->resolved_ns);
	sql_i64(&q, a->id);
	return sql_run_one(&q, "alert", a->rule, e);
}

int store_alert_remove(struct store *s, int64_t id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM alerts WHERE id = ?");

	sql_i64(&q, id);
	return sql_run(&q, e);
}

int store_alert_list(struct store *s, int open, int64_t before, unsigned limit,
		     struct store_alerts *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	limit = sql_limit(limit);
	buf_printf(&w.text, "SELECT " ALERT_COLUMNS " FROM alerts WHERE %s",
		   open ? "state != 'resolved'" : "1");
	sql_where_i64(&w, "id < ?", before ? before : INT64_MAX);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY id DESC LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_alert, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_alerts){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_alert_last(struct store *s, const char *rule, struct store_alert *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " ALERT_COLUMNS
				       " FROM alerts WHERE rule = ? ORDER BY id DESC LIMIT 1");

	sql_text(&q, rule);
	if (sql_one(&q, "alert of the rule", rule, e) < 0)
		return -1;
	read_alert(&q, out);
	return 0;
}

/* ---- rules ---- */

static void read_rule(struct sql *q, void *row)
{
	struct store_alert_rule *r = row;

	sql_get_text(q, r->name, sizeof(r->name));
	r->rule = sql_get_dup(q);
}

static void fini_rule(void *row)
{
	free(((struct store_alert_rule *)row)->rule);
}

void store_alert_rules_fini(struct store_alert_rules *l)
{
	for (unsigned i = 0; i < l->n; i++)
		fini_rule(&l->v[i]);
	free(l->v);
	*l = (struct store_alert_rules){ 0 };
}

int store_alert_rule_put(struct store *s, const char *name, const char *rule, int64_t now_ns,
			 struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO alert_rules (name, rule, changed_ns) VALUES (?, ?, ?)"
		       " ON CONFLICT (name) DO UPDATE SET rule = excluded.rule,"
		       " changed_ns = excluded.changed_ns");

	sql_text(&q, name);
	sql_json(&q, rule, "{}");
	sql_i64(&q, now_ns);
	return sql_run(&q, e);
}

int store_alert_rule_remove(struct store *s, const char *name, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM alert_rules WHERE name = ?");

	sql_text(&q, name);
	return sql_run_one(&q, "changed rule", name, e);
}

int store_alert_rule_list(struct store *s, struct store_alert_rules *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT name, rule FROM alert_rules ORDER BY name");
	struct sql_rows rows;

	if (sql_list(&q, SQL_ALL, sizeof(*out->v), read_rule, fini_rule, &rows, e) < 0)
		return -1;
	*out = (struct store_alert_rules){ .v = rows.v, .n = rows.n };
	return 0;
}

/* ---- notices ---- */

static void read_notice(struct sql *q, void *row)
{
	struct store_notice *n = row;

	n->id = sql_get_i64(q);
	n->alert = sql_get_i64(q);
	sql_get_text(q, n->channel, sizeof(n->channel));
	n->body = sql_get_dup(q);
	n->attempts = (unsigned)sql_get_u64(q);
	n->queued_ns = sql_get_i64(q);
	n->next_ns = sql_get_i64(q);
	sql_get_text(q, n->error, sizeof(n->error));
}

static void fini_notice(void *row)
{
	free(((struct store_notice *)row)->body);
}

void store_notices_fini(struct store_notices *l)
{
	for (unsigned i = 0; i < l->n; i++)
		fini_notice(&l->v[i]);
	free(l->v);
	*l = (struct store_notices){ 0 };
}

int store_notice_add(struct store *s, const struct store_notice *n, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO alert_notices (alert, channel, body, attempts, queued_ns,"
		       " next_ns, error) VALUES (?, ?, ?, 0, ?, ?, '')");

	sql_i64(&q, n->alert);
	sql_text(&q, n->channel);
	sql_text(&q, n->body);
	sql_i64(&q, n->queued_ns);
	sql_i64(&q, n->next_ns);
	return sql_run(&q, e);
}

int store_notice_list(struct store *s, struct store_notices *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT id, alert, channel, body, attempts, queued_ns,"
				       " next_ns, error FROM alert_notices ORDER BY id");
	struct sql_rows rows;

	if (sql_list(&q, SQL_ALL, sizeof(*out->v), read_notice, fini_notice, &rows, e) < 0)
		return -1;
	*out = (struct store_notices){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_notice_retry(struct store *s, const struct store_notice *n, struct err *e)
{
	auto_sql struct sql q = sql(
		s, "UPDATE alert_notices SET attempts = ?, next_ns = ?, error = ? WHERE id = ?");

	sql_u64(&q, n->attempts);
	sql_i64(&q, n->next_ns);
	sql_text(&q, n->error);
	sql_i64(&q, n->id);
	return sql_run(&q, e);
}

int store_notice_remove(struct store *s, int64_t id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM alert_notices WHERE id = ?");

	sql_i64(&q, id);
	return sql_run(&q, e);
}
