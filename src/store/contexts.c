/* contexts.c - see contexts.h. */
#include "store/contexts.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

#define COLUMNS                                                                                    \
	"id, box, language, standing, created_ns, cwd, env, run, ref, cell, status, from_stdout,"  \
	" from_stderr, from_channel, answers, said, began_ns, deadline_ns, max_output"

void store_context_fini(struct store_context *c)
{
	free(c->cwd);
	free(c->env);
	c->cwd = c->env = NULL;
}

static void fini_row(void *row)
{
	store_context_fini(row);
}

void store_contexts_fini(struct store_contexts *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_context_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_contexts){ 0 };
}

static void bind_moving(struct sql *q, const struct store_context *c)
{
	sql_text(q, c->run);
	sql_u64(q, c->ref);
	sql_u64(q, c->cell);
	sql_text(q, c->status);
	for (unsigned i = 0; i < STORE_CONTEXT_STREAMS; i++)
		sql_u64(q, c->from[i]);
	sql_u64(q, c->answers);
	sql_u64(q, c->said);
	sql_i64(q, c->began_ns);
	sql_i64(q, c->deadline_ns);
	sql_u64(q, c->max_output);
}

int store_context_insert(struct store *s, const struct store_context *c, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO contexts (" COLUMNS ") VALUES"
		       " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, c->id);
	sql_text(&q, c->box);
	sql_text(&q, c->language);
	sql_i64(&q, c->standing);
	sql_i64(&q, c->created_ns);
	sql_text(&q, c->cwd);
	sql_json(&q, c->env, "{}");
	bind_moving(&q, c);
	return sql_run(&q, e);
}

int store_context_update(struct store *s, const struct store_context *c, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"UPDATE contexts SET run = ?, ref = ?, cell = ?, status = ?, from_stdout = ?,"
		" from_stderr = ?, from_channel = ?, answers = ?, said = ?, began_ns = ?, deadline_ns = ?,"
		" max_output = ? WHERE id = ? AND cell <= ?");

	bind_moving(&q, c);
	sql_text(&q, c->id);
	sql_u64(&q, c->cell);
	return sql_run_one(&q, "context", c->id, e);
}

int store_context_delete(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM contexts WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "context", id, e);
}

int store_context_drop(struct store *s, const char *box, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM contexts WHERE box = ?");

	sql_text(&q, box);
	return sql_run(&q, e);
}

static void read_context(struct sql *q, void *row)
{
	struct store_context *c = row;

	sql_get_text(q, c->id, sizeof(c->id));
	sql_get_text(q, c->box, sizeof(c->box));
	sql_get_text(q, c->language, sizeof(c->language));
	c->standing = (int)sql_get_i64(q);
	c->created_ns = sql_get_i64(q);
	c->cwd = sql_get_dup(q);
	c->env = sql_get_dup(q);
	sql_get_text(q, c->run, sizeof(c->run));
	c->ref = (uint32_t)sql_get_u64(q);
	c->cell = sql_get_u64(q);
	sql_get_text(q, c->status, sizeof(c->status));
	for (unsigned i = 0; i < STORE_CONTEXT_STREAMS; i++)
		c->from[i] = sql_get_u64(q);
	c->answers = sql_get_u64(q);
	c->said = sql_get_u64(q);
	c->began_ns = sql_get_i64(q);
	c->deadline_ns = sql_get_i64(q);
	c->max_output = sql_get_u64(q);
}

int store_context_get(struct store *s, const char *id, struct store_context *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM contexts WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "context", id, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_context(&q, out);
	return 0;
}

int store_context_list(struct store *s, const char *box, struct store_contexts *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM contexts WHERE box = ?"
				       " ORDER BY created_ns, id");
	struct sql_rows rows;

	sql_text(&q, box);
	if (sql_list(&q, SQL_ALL, sizeof(*out->v), read_context, fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_contexts){ .v = rows.v, .n = rows.n };
	return 0;
}
