/* runs.c - see runs.h. */
#include "store/runs.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <assert.h>
#include <string.h>

static const char *const kinds[] = {
	[STORE_RUN_EXEC] = "exec",
	[STORE_RUN_PTY] = "pty",
	[STORE_RUN_ONCE] = "run",
};
static_assert(ARRAY_LEN(kinds) == STORE_RUN_KINDS, "a kind without a name");

const char *store_run_kind_name(enum store_run_kind kind)
{
	return (unsigned)kind < STORE_RUN_KINDS ? kinds[kind] : "unknown";
}

/* The few running execs and the many ended ones are in different indices; schema.c has the
 * reason. */
#define RUNNING "runs INDEXED BY runs_running WHERE ended_ns = 0"
#define ENDED "runs WHERE ended_ns > 0"

#define BRIEF                                                                                      \
	"id, box, team, ref, kind, tag, started_ns, ended_ns, cause, status, output_bytes, key, runtime"
#define COLUMNS BRIEF ", command, record"
/* A record ends with the request that started the exec, up to 64 KiB of it, and lists leave it
 * out: a page of a hundred would be megabytes to read and parse. A quote within a text is
 * escaped, so these bytes are the key's. */
#define LISTED                                                                                     \
	BRIEF ", command, CASE WHEN instr(record, ',\"request\":{') > 0 THEN"                      \
	      " substr(record, 1, instr(record, ',\"request\":{') - 1) || '}'"                     \
	      " WHEN substr(record, 1, 12) = '{\"request\":{' THEN '{}' ELSE record END"

static void read_brief(struct sql *q, void *row)
{
	struct store_run *r = row;
	char kind[8];

	sql_get_text(q, r->id, sizeof(r->id));
	sql_get_text(q, r->box, sizeof(r->box));
	sql_get_text(q, r->team, sizeof(r->team));
	r->ref = (uint32_t)sql_get_u64(q);
	sql_get_text(q, kind, sizeof(kind));
	for (unsigned i = 0; i < STORE_RUN_KINDS; i++)
		if (strcmp(kind, kinds[i]) == 0)
			r->kind = (enum store_run_kind)i;
	sql_get_text(q, r->tag, sizeof(r->tag));
	r->started_ns = sql_get_i64(q);
	r->ended_ns = sql_get_i64(q);
	sql_get_text(q, r->cause, sizeof(r->cause));
	r->status = (int)sql_get_i64(q);
	r->output_bytes = sql_get_u64(q);
	sql_get_text(q, r->key, sizeof(r->key));
	sql_get_text(q, r->runtime, sizeof(r->runtime));
}

static void read_run(struct sql *q, void *row)
{
	struct store_run *r = row;

	read_brief(q, r);
	r->command = sql_get_dup(q);
	r->record = sql_get_dup(q);
}

void store_run_fini(struct store_run *r)
{
	free(r->command);
	free(r->record);
	r->command = r->record = NULL;
}

static void fini_row(void *row)
{
	store_run_fini(row);
}

void store_runs_fini(struct store_runs *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_run_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_runs){ 0 };
}

/* Writing ---- */

int store_run_begin(struct store *s, const struct store_run *r, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO runs (" COLUMNS ")"
				       " VALUES (?, ?, ?, ?, ?, ?, ?, 0, '', 0, 0, ?, ?, ?, ?)");

	sql_text(&q, r->id);
	sql_text(&q, r->box);
	sql_text(&q, r->team);
	sql_u64(&q, r->ref);
	sql_text(&q, store_run_kind_name(r->kind));
	sql_text(&q, r->tag);
	sql_i64(&q, r->started_ns);
	sql_text(&q, r->key);
	sql_text(&q, r->runtime);
	sql_json(&q, r->command, "[]");
	sql_json(&q, r->record, "{}");
	if (sql_run(&q, e) < 0) {
		if (e->kind == ERR_CONFLICT)
			return err_set(e, ERR_CONFLICT, "there is a run %.15s already", r->id);
		return -1;
	}
	s->history_bytes += r->command ? strlen(r->command) : 0;
	return 0;
}

int store_run_end(struct store *s, const struct store_run *r, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE runs SET ended_ns = ?, cause = ?, status = ?, output_bytes = ?,"
		       " record = ?, receipt = ? WHERE id = ? AND ended_ns = 0");
	struct store_run before = { 0 };

	if (r->ended_ns <= 0)
		return err_set(e, ERR_INVALID, "run %.15s: an end without a time", r->id);
	sql_i64(&q, r->ended_ns);
	sql_text(&q, r->cause);
	sql_i64(&q, r->status);
	sql_u64(&q, r->output_bytes);
	sql_json(&q, r->record, "{}");
	sql_u64(&q, r->receipt);
	sql_text(&q, r->id);
	if (sql_run(&q, e) < 0)
		return -1;
	if (sql_changes(&q)) {
		s->history_bytes += r->record ? strlen(r->record) : 0;
		return 0;
	}
	if (store_run_get(s, r->id, &before, e) < 0)
		return -1;
	err_set(e, ERR_CONFLICT, "run %.15s has already ended: %s", r->id, before.cause);
	store_run_fini(&before);
	return -1;
}

int store_run_count_end(struct store *s, const char *id, const char *outcome, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO run_counts SELECT runtime, ?, 1 FROM runs WHERE id = ?"
		       " ON CONFLICT DO UPDATE SET n = n + 1");

	sql_text(&q, outcome);
	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_run_counts(struct store *s, struct store_run_count *out, unsigned *out_n, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT language, outcome, n FROM run_counts LIMIT ?");
	unsigned n = 0;
	int rc;

	sql_i64(&q, STORE_RUN_COUNTS);
	while ((rc = sql_row(&q, e)) > 0) {
		sql_get_text(&q, out[n].language, sizeof(out[n].language));
		sql_get_text(&q, out[n].outcome, sizeof(out[n].outcome));
		out[n++].n = sql_get_u64(&q);
	}
	*out_n = n;
	return rc;
}

/* Asking ---- */

int store_run_get(struct store *s, const char *id, struct store_run *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM runs WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "run", id, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_run(&q, out);
	return 0;
}

static int runs_do_list(struct sql *q, unsigned limit, int brief, struct store_runs *out,
			struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, sizeof(*out->v), brief ? read_brief : read_run, fini_row, &rows, e) <
	    0)
		return -1;
	*out = (struct store_runs){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

/* Applies the conditions in w to the running execs and, unless only those are requested, to the
 * others. */
static void ask_of(struct sql_where *w, const char *columns, int running)
{
	auto_free char *conditions = buf_steal(&w->text);

	buf_printf(&w->text, "SELECT %s FROM " RUNNING "%s", columns, conditions);
	if (running)
		return;
	buf_printf(&w->text, " UNION ALL SELECT %s FROM " ENDED "%s", columns, conditions);
	assert(2 * w->n <= ARRAY_LEN(w->v));
	memcpy(w->v + w->n, w->v, w->n * sizeof(w->v[0]));
	w->n *= 2;
}

int store_run_list(struct store *s, const struct store_run_filter *f, struct store_runs *out,
		   struct err *e)
{
	auto_where struct sql_where w = { 0 };
	unsigned limit = sql_limit(f->limit);

	/* Few end badly or have a tag: their indices have only those rows, and SQLite uses them
	 * only for a condition in the same form. */
	if (f->cause && *f->cause && strcmp(f->cause, "exit") != 0)
		buf_puts(&w.text, " AND cause NOT IN ('', 'exit')");
	if (f->tag && *f->tag)
		buf_puts(&w.text, " AND tag <> ''");
	else
		buf_puts(&w.text, " AND tag <> '" STORE_RUN_HELPER "'");
	sql_where_text(&w, "team = ?", f->team);
	sql_where_text(&w, "box = ?", f->box);
	sql_where_text(&w, "cause = ?", f->cause);
	sql_where_text(&w, "tag = ?", f->tag);
	if (f->since_ns)
		sql_where_i64(&w, "started_ns >= ?", f->since_ns);
	if (f->until_ns)
		sql_where_i64(&w, "started_ns < ?", f->until_ns);
	sql_where_after(&w, "started_ns", &f->after);
	ask_of(&w, f->brief ? BRIEF : LISTED, f->running);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY started_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, limit + 1);
	return runs_do_list(&q, limit, f->brief, out, e);
}

struct store_cursor store_run_cursor(const struct store_run *r)
{
	struct store_cursor c = { .ns = r->started_ns };

	memcpy(c.id, r->id, sizeof(c.id));
	return c;
}

int store_run_running(struct store *s, const char *box, struct store_runs *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };

	sql_where_text(&w, "box = ?", box);
	ask_of(&w, COLUMNS, 1);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY started_ns, id");
	return runs_do_list(&q, SQL_ALL, 0, out, e);
}
