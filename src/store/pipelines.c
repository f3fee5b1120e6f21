/* pipelines.c - see pipelines.h. */
#include "store/pipelines.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* `column` is the word in the database, part of a constraint of the schema; `name` is the public
 * word. */
static const struct {
	const char *column, *name;
} states[] = {
	[STORE_PIPELINE_RUNNING] = { "running", "running" },
	[STORE_PIPELINE_WAITING] = { "waiting", "waiting" },
	[STORE_PIPELINE_FINISHED] = { "over", "finished" },
};
static_assert(ARRAY_LEN(states) == STORE_PIPELINE_STATES, "a state without a name");

const char *store_pipeline_state_name(enum store_pipeline_state state)
{
	return (unsigned)state < STORE_PIPELINE_STATES ? states[state].name : "unknown";
}

/* ---- rows ---- */

#define COLUMNS                                                                                    \
	"id, team, who, state, title, created_ns, ended_ns, outcome, category, attempts, plan_us," \
	" code_us, execute_us, debug_us, calls, tokens_in, tokens_out, cache_read, cost_micro,"    \
	" overfit"

static void read_pipeline(struct sql *q, void *row)
{
	struct store_pipeline *p = row;
	char state[16];

	sql_get_text(q, p->id, sizeof(p->id));
	sql_get_text(q, p->team, sizeof(p->team));
	sql_get_text(q, p->who, sizeof(p->who));
	sql_get_text(q, state, sizeof(state));
	for (unsigned i = 0; i < STORE_PIPELINE_STATES; i++)
		if (strcmp(state, states[i].column) == 0)
			p->state = (enum store_pipeline_state)i;
	sql_get_text(q, p->title, sizeof(p->title));
	p->created_ns = sql_get_i64(q);
	p->ended_ns = sql_get_i64(q);
	sql_get_text(q, p->outcome, sizeof(p->outcome));
	sql_get_text(q, p->category, sizeof(p->category));
	p->attempts = sql_get_u64(q);
	for (unsigned i = 0; i < STORE_STAGES; i++)
		p->us[i] = sql_get_u64(q);
	p->calls = sql_get_u64(q);
	p->tokens_in = sql_get_u64(q);
	p->tokens_out = sql_get_u64(q);
	p->cache_read = sql_get_u64(q);
	p->cost_micro = sql_get_u64(q);
	p->overfit = sql_get_u64(q);
}

static void bind_progress(struct sql *q, const struct store_pipeline *p)
{
	sql_i64(q, p->ended_ns);
	sql_text(q, p->outcome);
	sql_text(q, p->category);
	sql_u64(q, p->attempts);
	for (unsigned i = 0; i < STORE_STAGES; i++)
		sql_u64(q, p->us[i]);
	sql_u64(q, p->calls);
	sql_u64(q, p->tokens_in);
	sql_u64(q, p->tokens_out);
	sql_u64(q, p->cache_read);
	sql_u64(q, p->cost_micro);
	sql_u64(q, p->overfit);
}

int store_pipeline_insert(struct store *s, const struct store_pipeline *p, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO pipelines (" COLUMNS ") VALUES"
		       " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, p->id);
	sql_text(&q, p->team);
	sql_text(&q, p->who);
	sql_text(&q, states[p->state].column);
	sql_text(&q, p->title);
	sql_i64(&q, p->created_ns);
	bind_progress(&q, p);
	return sql_run(&q, e);
}

int store_pipeline_update(struct store *s, const struct store_pipeline *p, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE pipelines SET state = ?, ended_ns = ?, outcome = ?, category = ?,"
		       " attempts = ?, plan_us = ?, code_us = ?, execute_us = ?, debug_us = ?,"
		       " calls = ?, tokens_in = ?, tokens_out = ?, cache_read = ?, cost_micro = ?,"
		       " overfit = ? WHERE id = ?");

	sql_text(&q, states[p->state].column);
	bind_progress(&q, p);
	sql_text(&q, p->id);
	return sql_run_one(&q, "pipeline", p->id, e);
}

int store_pipeline_get(struct store *s, const char *id, struct store_pipeline *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM pipelines WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "pipeline", id, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_pipeline(&q, out);
	return 0;
}

static int read_rows(struct sql *q, unsigned limit, struct store_pipelines *out, struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, sizeof(struct store_pipeline), read_pipeline, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_pipelines){ rows.v, rows.n, rows.more };
	return 0;
}

void store_pipelines_fini(struct store_pipelines *l)
{
	free(l->v);
	*l = (struct store_pipelines){ 0 };
}

int store_pipeline_list(struct store *s, const char *team, const char *outcome,
			const struct store_cursor *after, unsigned limit,
			struct store_pipelines *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };

	buf_puts(&w.text, "SELECT " COLUMNS " FROM pipelines WHERE 1");
	sql_where_text(&w, "team = ?", team);
	sql_where_text(&w, "outcome = ?", outcome);
	if (after)
		sql_where_after(&w, "created_ns", after);
	limit = sql_limit(limit);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_u64(&q, (uint64_t)limit + 1);
	return read_rows(&q, limit, out, e);
}

int store_pipeline_live(struct store *s, struct store_pipelines *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM pipelines"
				       " WHERE ended_ns = 0 ORDER BY created_ns, id");

	return read_rows(&q, SQL_ALL, out, e);
}

int store_pipeline_next_team(struct store *s, const char *after, char out[STORE_NAME + 1],
			     struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT team FROM pipelines WHERE team > ? ORDER BY team LIMIT 1");
	int rc;

	sql_text(&q, after);
	rc = sql_row(&q, e);
	if (rc > 0)
		sql_get_text(&q, out, STORE_NAME + 1);
	return rc;
}

int store_pipeline_old(struct store *s, const char *team, int64_t before_ns,
		       struct store_pipelines *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM pipelines"
		       " WHERE team = ?1 AND ((ended_ns > 0 AND ended_ns < ?2)"
		       " OR (state = 'waiting' AND created_ns < ?2)) ORDER BY ended_ns LIMIT ?3");

	sql_text(&q, team);
	sql_i64(&q, before_ns);
	sql_u64(&q, STORE_PAGE + 1);
	return read_rows(&q, STORE_PAGE, out, e);
}

/* The inner query is answered by an index alone; it runs often, and its result is mostly empty. */
int store_pipeline_surplus(struct store *s, unsigned keep, struct store_pipelines *out,
			   struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT " COLUMNS " FROM pipelines WHERE ended_ns > 0 AND id IN"
		" (SELECT id FROM (SELECT id, row_number() OVER"
		"  (PARTITION BY team ORDER BY created_ns DESC, id DESC) AS nth FROM pipelines"
		"  WHERE team IN (SELECT team FROM pipelines GROUP BY team HAVING count(*) > ?1))"
		" WHERE nth > ?1) ORDER BY created_ns LIMIT ?2");

	sql_u64(&q, keep);
	sql_u64(&q, STORE_PAGE + 1);
	return read_rows(&q, STORE_PAGE, out, e);
}

static int remove_rows(struct store *s, const char *text, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, text);

	sql_text(&q, id);
	return sql_run(&q, e);
}

static int remove_row(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM pipelines WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "pipeline", id, e);
}

int store_pipeline_remove(struct store *s, const char *id, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (remove_row(s, id, e) < 0 ||
	    remove_rows(s, "DELETE FROM pipeline_docs WHERE run = ?", id, e) < 0 ||
	    remove_rows(s, "DELETE FROM pipeline_events WHERE run = ?", id, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

/* ---- documents and events ---- */

static void fini_doc(void *row)
{
	free(((struct store_doc *)row)->json);
}

void store_docs_fini(struct store_docs *l)
{
	for (unsigned i = 0; i < l->n; i++)
		fini_doc(&l->v[i]);
	free(l->v);
	*l = (struct store_docs){ 0 };
}

int store_doc_add(struct store *s, const char *run, const struct store_doc *d, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO pipeline_docs"
				       " (run, seq, kind, attempt, created_ns, json)"
				       " VALUES (?, ?, ?, ?, ?, ?)");

	sql_text(&q, run);
	sql_u64(&q, d->seq);
	sql_text(&q, d->kind);
	sql_u64(&q, d->attempt);
	sql_i64(&q, d->created_ns);
	sql_text(&q, d->json);
	return sql_run(&q, e);
}

static void read_doc(struct sql *q, void *row)
{
	struct store_doc *d = row;

	d->seq = (uint32_t)sql_get_u64(q);
	sql_get_text(q, d->kind, sizeof(d->kind));
	d->attempt = (uint32_t)sql_get_u64(q);
	d->created_ns = sql_get_i64(q);
	d->json = sql_get_dup(q);
}

int store_doc_list(struct store *s, const char *run, struct store_docs *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT seq, kind, attempt, created_ns, json"
				       " FROM pipeline_docs WHERE run = ? ORDER BY seq");
	struct sql_rows rows;

	sql_text(&q, run);
	if (sql_list(&q, SQL_ALL, sizeof(struct store_doc), read_doc, fini_doc, &rows, e) < 0)
		return -1;
	*out = (struct store_docs){ rows.v, rows.n, rows.more };
	return 0;
}

int store_pipeline_event_add(struct store *s, const char *run, uint32_t seq, const char *json,
			     struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO pipeline_events (run, seq, json) VALUES (?, ?, ?)");

	sql_text(&q, run);
	sql_u64(&q, seq);
	sql_text(&q, json);
	return sql_run(&q, e);
}

static void read_event(struct sql *q, void *row)
{
	struct store_doc *d = row;

	d->seq = (uint32_t)sql_get_u64(q);
	d->json = sql_get_dup(q);
}

int store_pipeline_events(struct store *s, const char *run, uint32_t after, unsigned limit,
			  struct store_docs *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT seq, json FROM pipeline_events"
				       " WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?");
	struct sql_rows rows;

	limit = sql_limit(limit);
	sql_text(&q, run);
	sql_u64(&q, after);
	sql_u64(&q, (uint64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(struct store_doc), read_event, fini_doc, &rows, e) < 0)
		return -1;
	*out = (struct store_docs){ rows.v, rows.n, rows.more };
	return 0;
}

int store_pipeline_event_last(struct store *s, const char *run, uint32_t *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT coalesce(max(seq), 0) FROM pipeline_events WHERE run = ?");

	sql_text(&q, run);
	if (sql_one(&q, "events of", run, e) < 0)
		return -1;
	*out = (uint32_t)sql_get_u64(&q);
	return 0;
}

/* ---- what was learned ---- */

static void fini_lesson(void *row)
{
	struct store_lesson *l = row;

	free(l->task);
	free(l->fix);
}

void store_lessons_fini(struct store_lessons *l)
{
	for (unsigned i = 0; i < l->n; i++)
		fini_lesson(&l->v[i]);
	free(l->v);
	*l = (struct store_lessons){ 0 };
}

int store_lesson_add(struct store *s, const char *team, const char *run, const char *task,
		     const char *category, const char *fix, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO pipeline_memory (task, category, fix, team, run)"
		       " VALUES (?, ?, ?, ?, ?)");

	sql_text(&q, task);
	sql_text(&q, category);
	sql_text(&q, fix);
	sql_text(&q, team);
	sql_text(&q, run);
	return sql_run(&q, e);
}

/* "word" OR "word": quoted, so that no word of a task is an operator. */
static void words_of(const char *text, struct buf *out)
{
	for (unsigned n = 0; *text && n < 40;) {
		size_t len = 0;

		while (isalnum((unsigned char)text[len]) || (unsigned char)text[len] >= 0x80)
			len++;
		if (len > 2 && len < 64) {
			buf_printf(out, "%s\"%.*s\"", n++ ? " OR " : "", (int)len, text);
		}
		text += len ? len : 1;
	}
}

static void read_lesson(struct sql *q, void *row)
{
	struct store_lesson *l = row;

	l->task = sql_get_dup(q);
	sql_get_text(q, l->category, sizeof(l->category));
	l->fix = sql_get_dup(q);
}

int store_lesson_find(struct store *s, const char *team, const char *text, unsigned most,
		      struct store_lessons *out, struct err *e)
{
	auto_buf struct buf words = { 0 };
	struct sql_rows rows;

	*out = (struct store_lessons){ 0 };
	words_of(text, &words);
	if (!words.len)
		return 0;
	auto_sql struct sql q = sql(s, "SELECT task, category, fix FROM pipeline_memory"
				       " WHERE pipeline_memory MATCH ? AND team = ?"
				       " ORDER BY rank LIMIT ?");
	sql_text(&q, buf_str(&words));
	sql_text(&q, team);
	sql_u64(&q, (uint64_t)most + 1);
	if (sql_list(&q, most, sizeof(struct store_lesson), read_lesson, fini_lesson, &rows, e) < 0)
		return -1;
	*out = (struct store_lessons){ rows.v, rows.n, rows.more };
	return 0;
}

int store_lesson_forget(struct store *s, const char *team, struct err *e)
{
	return remove_rows(s, "DELETE FROM pipeline_memory WHERE team = ?", team, e);
}

/* ---- policies ---- */

int store_policy_get(struct store *s, const char *team, struct store_policy *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT scan, forgetful FROM pipeline_policies WHERE team = ?");
	int rc;

	*out = (struct store_policy){ 0 };
	sql_text(&q, team);
	rc = sql_row(&q, e);
	if (rc <= 0)
		return rc;
	sql_get_text(&q, out->scan, sizeof(out->scan));
	out->forgetful = sql_get_u64(&q) != 0;
	return 0;
}

int store_policy_put(struct store *s, const char *team, const struct store_policy *p, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"INSERT INTO pipeline_policies (team, scan, forgetful) VALUES (?, ?, ?)"
		" ON CONFLICT (team) DO UPDATE SET scan = excluded.scan, forgetful = excluded.forgetful");

	sql_text(&q, team);
	sql_text(&q, p->scan);
	sql_u64(&q, p->forgetful != 0);
	return sql_run(&q, e);
}

/* ---- sums ---- */

int store_pipeline_sums(struct store *s, const char *team, struct store_pipeline_sums *out,
			struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT count(*),"
		" coalesce(sum(good), 0), coalesce(sum(good * attempts), 0),"
		" coalesce(sum(good * cost_micro), 0),"
		" coalesce(sum(plan_us), 0), coalesce(sum(code_us), 0),"
		" coalesce(sum(execute_us), 0), coalesce(sum(debug_us), 0),"
		" coalesce(sum(calls), 0), coalesce(sum(tokens_in), 0),"
		" coalesce(sum(tokens_out), 0), coalesce(sum(cache_read), 0),"
		" coalesce(sum(cost_micro), 0), coalesce(sum(overfit > 0), 0),"
		" coalesce(sum(attempts > 1), 0)"
		" FROM (SELECT *, outcome IN ('verified', 'examples_pass', 'plausible') AS good FROM pipelines"
		"  WHERE ended_ns > 0 AND (?1 = '' OR team = ?1))");

	sql_text(&q, team);
	if (sql_one(&q, "sums of", team ? team : "all", e) < 0)
		return -1;
	out->runs = sql_get_u64(&q);
	out->success = sql_get_u64(&q);
	out->success_attempts = sql_get_u64(&q);
	out->success_cost_micro = sql_get_u64(&q);
	for (unsigned i = 0; i < STORE_STAGES; i++)
		out->us[i] = sql_get_u64(&q);
	out->calls = sql_get_u64(&q);
	out->tokens_in = sql_get_u64(&q);
	out->tokens_out = sql_get_u64(&q);
	out->cache_read = sql_get_u64(&q);
	out->cost_micro = sql_get_u64(&q);
	out->overfit = sql_get_u64(&q);
	out->repaired = sql_get_u64(&q);
	return 0;
}

int store_pipeline_tally(struct store *s, const char *team, const char *by, struct store_tally *out,
			 unsigned n, struct err *e)
{
	auto_sql struct sql q =
		strcmp(by, "outcome") == 0
			? sql(s, "SELECT outcome, count(*) FROM pipelines WHERE ended_ns > 0"
				 " AND (?1 = '' OR team = ?1) GROUP BY outcome ORDER BY 2 DESC")
			: sql(s, "SELECT category, count(*) FROM pipelines WHERE ended_ns > 0"
				 " AND category <> '' AND (?1 = '' OR team = ?1)"
				 " GROUP BY category ORDER BY 2 DESC");
	unsigned have = 0;
	int rc = 1;

	sql_text(&q, team);
	while (have < n && (rc = sql_row(&q, e)) > 0) {
		sql_get_text(&q, out[have].name, sizeof(out[have].name));
		out[have++].n = sql_get_u64(&q);
	}
	return rc < 0 ? -1 : (int)have;
}

int store_doc_last(struct store *s, const char *run, const char *kind, uint32_t attempt,
		   struct store_doc *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT seq, kind, attempt, created_ns, json FROM pipeline_docs"
		       " WHERE run = ?1 AND kind = ?2 AND (?3 = 0 OR attempt = ?3)"
		       " ORDER BY seq DESC LIMIT 1");

	sql_text(&q, run);
	sql_text(&q, kind);
	sql_u64(&q, attempt);
	if (sql_one(&q, kind, run, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_doc(&q, out);
	return 0;
}

void store_doc_fini(struct store_doc *d)
{
	free(d->json);
	d->json = NULL;
}
