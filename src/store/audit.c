/* audit.c - see audit.h. The triggers that keep the rows are in schema.c. */
#include "store/audit.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdio.h>
#include <string.h>

int store_audit_add(struct store *s, const struct store_audit *a, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO audit (at_ns, who, team, action, subject, result, detail)"
		       " VALUES (?, ?, ?, ?, ?, ?, ?)");

	sql_i64(&q, a->at_ns);
	sql_text(&q, a->who);
	sql_text(&q, a->team);
	sql_text(&q, a->action);
	sql_text(&q, a->subject);
	sql_text(&q, a->result);
	sql_json(&q, a->detail, "{}");
	return sql_run(&q, e);
}

static void read_audit(struct sql *q, void *row)
{
	struct store_audit *a = row;

	a->seq = sql_get_i64(q);
	a->at_ns = sql_get_i64(q);
	sql_get_text(q, a->who, sizeof(a->who));
	sql_get_text(q, a->team, sizeof(a->team));
	sql_get_text(q, a->action, sizeof(a->action));
	sql_get_text(q, a->subject, sizeof(a->subject));
	sql_get_text(q, a->result, sizeof(a->result));
	a->detail = sql_get_dup(q);
}

static void fini_row(void *row)
{
	free(((struct store_audit *)row)->detail);
}

void store_audits_fini(struct store_audits *l)
{
	for (unsigned i = 0; i < l->n; i++)
		fini_row(&l->v[i]);
	free(l->v);
	*l = (struct store_audits){ 0 };
}

static int ends_in_dot(const char *text)
{
	return text && *text && text[strlen(text) - 1] == '.';
}

int store_audit_list(struct store *s, const struct store_audit_filter *f, struct store_audits *out,
		     struct err *e)
{
	auto_where struct sql_where w = { 0 };
	unsigned limit = sql_limit(f->limit);
	struct sql_rows rows;

	buf_puts(&w.text, "SELECT seq, at_ns, who, team, action, subject, result, detail"
			  " FROM audit WHERE 1");
	sql_where_text(&w, "team = ?", f->team);
	sql_where_text(&w, "who = ?", f->who);
	sql_where_text(&w, ends_in_dot(f->action) ? "instr(action, ?) = 1" : "action = ?",
		       f->action);
	sql_where_text(&w, "subject = ?", f->subject);
	if (f->since_ns)
		sql_where_i64(&w, "at_ns >= ?", f->since_ns);
	if (f->until_ns)
		sql_where_i64(&w, "at_ns < ?", f->until_ns);
	if (f->before)
		sql_where_i64(&w, "seq < ?", f->before);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY seq DESC LIMIT ?");
	sql_i64(&q, limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_audit, fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_audits){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

/* Retention ---- */

static int draw_line(struct store *s, int64_t before_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE audit_line SET before_ns = ?1 WHERE before_ns < ?1");

	sql_i64(&q, before_ns);
	return sql_run(&q, e);
}

/* Removes from the oldest row up to the first that is kept, so that a clock that was wrong for a
 * while leaves no holes. Reads at most the `most` oldest rows, however many are too old. */
static int drop_oldest(struct store *s, int64_t before_ns, unsigned most, unsigned *out_n,
		       struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "DELETE FROM audit WHERE seq IN (SELECT seq FROM audit ORDER BY seq LIMIT ?2)"
		    " AND seq < ifnull((SELECT min(seq) FROM"
		    "  (SELECT seq, at_ns FROM audit ORDER BY seq LIMIT ?2) WHERE at_ns >= ?1),"
		    "  9223372036854775807)");

	sql_i64(&q, before_ns);
	sql_i64(&q, most);
	if (sql_run(&q, e) < 0)
		return -1;
	*out_n = sql_changes(&q);
	return 0;
}

static int add_trace(struct store *s, unsigned n, const char *who, int64_t at_ns, struct err *e)
{
	struct store_audit a = { .at_ns = at_ns, .action = "audit.retire", .result = "ok" };
	char detail[32];

	snprintf(a.who, sizeof(a.who), "%s", who);
	snprintf(detail, sizeof(detail), "{\"rows\":%u}", n);
	a.detail = detail;
	return store_audit_add(s, &a, e);
}

int store_audit_retire(struct store *s, int64_t before_ns, const char *who, int64_t at_ns,
		       unsigned most, unsigned *out_n, struct err *e)
{
	unsigned n = 0;

	if (store_begin(s, e) < 0)
		return -1;
	if (draw_line(s, before_ns, e) < 0 || drop_oldest(s, before_ns, most, &n, e) < 0 ||
	    (n && add_trace(s, n, who, at_ns, e) < 0))
		return store_rollback(s);
	if (store_commit(s, e) < 0)
		return -1;
	*out_n = n;
	return 0;
}
