/* checkpoints.c - see checkpoints.h. */
#include "store/checkpoints.h"
#include "base/cleanup.h"
#include "store/checkpoint_rows.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const states[] = {
	[STORE_CHECKPOINT_WRITING] = "writing",
	[STORE_CHECKPOINT_READY] = "ready",
	[STORE_CHECKPOINT_FAILED] = "failed",
	[STORE_CHECKPOINT_DELETED] = "deleted",
};
static_assert(ARRAY_LEN(states) == STORE_CHECKPOINT_STATES, "a state without a name");

const char *store_checkpoint_state_name(enum store_checkpoint_state state)
{
	return (unsigned)state < STORE_CHECKPOINT_STATES ? states[state] : "unknown";
}

/* ---- rows ---- */

/* ["id", "id"]: ids have no quotes and no escapes. */
static unsigned checkpoints_read_chain(const char *text, char out[STORE_CHAIN][ID_MAX + 1])
{
	unsigned n = 0;

	for (const char *at = strchr(text, '"'); at && n < STORE_CHAIN; at = strchr(at, '"')) {
		size_t len = strcspn(++at, "\"");

		snprintf(out[n++], ID_MAX + 1, "%.*s", (int)(len < ID_MAX ? len : ID_MAX), at);
		at += len;
		if (*at)
			at++;
	}
	return n;
}

void checkpoint_rows_bind_chain(struct sql *q, const struct store_checkpoint *x,
				char text[STORE_CHAIN_TEXT])
{
	size_t at = 0;

	text[at++] = '[';
	for (unsigned i = 0; i < x->nchain; i++)
		at += (size_t)snprintf(text + at, STORE_CHAIN_TEXT - at, "%s\"%s\"", i ? "," : "",
				       x->chain[i]);
	snprintf(text + at, STORE_CHAIN_TEXT - at, "]");
	sql_text(q, text);
}

static void checkpoints_read(struct sql *q, void *row)
{
	struct store_checkpoint *x = row;
	char word[16], *chain;

	sql_get_text(q, x->id, sizeof(x->id));
	sql_get_text(q, x->team, sizeof(x->team));
	sql_get_text(q, x->box, sizeof(x->box));
	x->generation = (uint32_t)sql_get_u64(q);
	sql_get_text(q, x->parent, sizeof(x->parent));
	sql_get_text(q, x->origin, sizeof(x->origin));
	sql_get_text(q, x->same_as, sizeof(x->same_as));
	chain = sql_get_dup(q);
	x->nchain = checkpoints_read_chain(chain, x->chain);
	free(chain);
	sql_get_text(q, x->name, sizeof(x->name));
	sql_get_text(q, x->note, sizeof(x->note));
	sql_get_text(q, x->author, sizeof(x->author));
	sql_get_text(q, x->reason, sizeof(x->reason));
	x->created_ns = sql_get_i64(q);
	x->expires_ns = sql_get_i64(q);
	x->bytes = sql_get_u64(q);
	x->files = sql_get_u64(q);
	x->deleted = sql_get_u64(q);
	x->frozen_us = sql_get_u64(q);
	x->took_us = sql_get_u64(q);
	sql_get_text(q, word, sizeof(word));
	x->state = STORE_CHECKPOINT_FAILED; /* a CHECK keeps other words out */
	for (unsigned i = 0; i < STORE_CHECKPOINT_STATES; i++)
		if (!strcmp(word, states[i]))
			x->state = (enum store_checkpoint_state)i;
	x->durable = sql_get_i64(q) != 0;
	x->pinned = sql_get_i64(q) != 0;
	sql_get_text(q, x->template, sizeof(x->template));
	sql_get_text(q, x->tier, sizeof(x->tier));
	x->spec = sql_get_dup(q);
}

void store_checkpoint_fini(struct store_checkpoint *x)
{
	free(x->spec);
	x->spec = NULL;
}

static void checkpoints_fini_row(void *row)
{
	store_checkpoint_fini(row);
}

void store_checkpoints_fini(struct store_checkpoints *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_checkpoint_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_checkpoints){ 0 };
}

static int checkpoints_taken(const struct store_checkpoint *x, struct err *e)
{
	if (e->kind == ERR_CONFLICT && strstr(e->msg, "checkpoints.name"))
		return err_set(e, ERR_CONFLICT,
			       "box %s has a checkpoint named '%.64s' already; delete it, or use "
			       "another name",
			       x->box, x->name);
	return -1;
}

/* ---- writing ---- */

int store_checkpoint_insert(struct store *s, const struct store_checkpoint *x, struct err *e)
{
	char chain[STORE_CHAIN_TEXT];
	auto_sql struct sql q = sql(s, "INSERT INTO checkpoints (" CHECKPOINT_COLUMNS
				       ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,"
				       " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'writing', ?, ?, ?, ?, ?)");

	sql_text(&q, x->id);
	sql_text(&q, x->team);
	sql_text(&q, x->box);
	sql_u64(&q, x->generation);
	sql_text(&q, x->parent);
	sql_text(&q, x->origin);
	sql_text(&q, x->same_as);
	checkpoint_rows_bind_chain(&q, x, chain);
	sql_text(&q, x->name);
	sql_text(&q, x->note);
	sql_text(&q, x->author);
	sql_text(&q, x->reason);
	sql_i64(&q, x->created_ns);
	sql_i64(&q, x->expires_ns);
	sql_u64(&q, x->bytes);
	sql_u64(&q, x->files);
	sql_u64(&q, x->deleted);
	sql_u64(&q, x->frozen_us);
	sql_u64(&q, x->took_us);
	sql_i64(&q, x->durable);
	sql_i64(&q, x->pinned);
	sql_text(&q, x->template);
	sql_text(&q, x->tier);
	sql_json(&q, x->spec, "{}");
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%s'", x->team);
	return checkpoints_taken(x, e);
}

int store_checkpoint_layer_add(struct store *s, const char *team, const char *id, uint64_t bytes,
			       int64_t created_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO checkpoint_layers (id, team, bytes, created_ns)"
				       " VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
				       " SET bytes = excluded.bytes");

	sql_text(&q, id);
	sql_text(&q, team);
	sql_u64(&q, bytes);
	sql_i64(&q, created_ns);
	return sql_run(&q, e);
}

static int checkpoints_set_ready(struct store *s, const struct store_checkpoint *x, struct err *e)
{
	char chain[STORE_CHAIN_TEXT];
	auto_sql struct sql q =
		sql(s, "UPDATE checkpoints SET state = 'ready', chain = ?,"
		       " same_as = ?, bytes = ?, files = ?, deleted = ?, frozen_us = ?,"
		       " took_us = ?, durable = ? WHERE id = ? AND state = 'writing'");

	checkpoint_rows_bind_chain(&q, x, chain);
	sql_text(&q, x->same_as);
	sql_u64(&q, x->bytes);
	sql_u64(&q, x->files);
	sql_u64(&q, x->deleted);
	sql_u64(&q, x->frozen_us);
	sql_u64(&q, x->took_us);
	sql_i64(&q, x->durable);
	sql_text(&q, x->id);
	return sql_run_one(&q, "checkpoint", x->id, e);
}

static int checkpoints_set_head(struct store *s, const struct store_checkpoint *x, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE boxes SET head = ? WHERE id = ? AND generation = ?");

	sql_text(&q, x->id);
	sql_text(&q, x->box);
	sql_u64(&q, x->generation);
	return sql_run(&q, e);
}

int store_checkpoint_finish(struct store *s, const struct store_checkpoint *x, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (checkpoints_set_ready(s, x, e) < 0 ||
	    store_checkpoint_layer_add(s, x->team, x->id, x->bytes, x->created_ns, e) < 0 ||
	    checkpoints_set_head(s, x, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int checkpoint_rows_run(struct store *s, const char *text, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, text);

	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_checkpoint_fail(struct store *s, const char *id, struct err *e)
{
	return checkpoint_rows_run(
		s, "UPDATE checkpoints SET state = 'failed' WHERE id = ? AND state = 'writing'", id,
		e);
}

int store_checkpoint_set_durable(struct store *s, const char *id, struct err *e)
{
	return checkpoint_rows_run(
		s, "UPDATE checkpoints SET durable = 1 WHERE id = ? AND state = 'ready'", id, e);
}

static void checkpoints_read_id(struct sql *q, void *row)
{
	sql_get_text(q, row, ID_MAX + 1);
}

int checkpoint_rows_ids(struct sql *q, unsigned limit, struct store_ids *out, struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, ID_MAX + 1, checkpoints_read_id, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_ids){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_checkpoint_writing(struct store *s, struct store_ids *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT id FROM checkpoints WHERE state = 'writing'");

	return checkpoint_rows_ids(&q, SQL_ALL, out, e);
}

int store_checkpoint_update(struct store *s, const struct store_checkpoint *x, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE checkpoints SET name = ?, note = ?, pinned = ?, expires_ns = ?"
		       " WHERE id = ? AND state = 'ready'");

	sql_text(&q, x->name);
	sql_text(&q, x->note);
	sql_i64(&q, x->pinned);
	sql_i64(&q, x->expires_ns);
	sql_text(&q, x->id);
	return sql_run_one(&q, "checkpoint", x->id, e) == 0 ? 0 : checkpoints_taken(x, e);
}

static int checkpoints_set_parents(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE checkpoints SET parent ="
				       " (SELECT p.parent FROM checkpoints p WHERE p.id = ?)"
				       " WHERE parent = ?");

	sql_text(&q, id);
	sql_text(&q, id);
	return sql_run(&q, e);
}

static int checkpoints_set_deleted(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE checkpoints SET state = 'deleted', name = ''"
				       " WHERE id = ? AND state = 'ready'");

	sql_text(&q, id);
	return sql_run_one(&q, "checkpoint", id, e);
}

int store_checkpoint_hide(struct store *s, const char *id, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (checkpoints_set_deleted(s, id, e) < 0 || checkpoints_set_parents(s, id, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

/* ---- reading ---- */

static int checkpoints_one(struct sql *q, const char *which, struct store_checkpoint *out,
			   struct err *e)
{
	if (sql_one(q, "checkpoint", which, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	checkpoints_read(q, out);
	return 0;
}

int store_checkpoint_get(struct store *s, const char *team, const char *id,
			 struct store_checkpoint *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " CHECKPOINT_COLUMNS " FROM checkpoints WHERE id = ?"
				       " AND (team = ? OR ? = '') AND state = 'ready'");

	sql_text(&q, id);
	sql_text(&q, team);
	sql_text(&q, team);
	return checkpoints_one(&q, id, out, e);
}

int store_checkpoint_any(struct store *s, const char *id, struct store_checkpoint *out,
			 struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " CHECKPOINT_COLUMNS " FROM checkpoints WHERE id = ?"
				       " AND state IN ('ready', 'deleted')");

	sql_text(&q, id);
	return checkpoints_one(&q, id, out, e);
}

int store_checkpoint_named(struct store *s, const char *box, const char *name,
			   struct store_checkpoint *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " CHECKPOINT_COLUMNS " FROM checkpoints WHERE box = ?"
		       " AND name = ? AND name <> '' AND state = 'ready'");

	sql_text(&q, box);
	sql_text(&q, name);
	return checkpoints_one(&q, name, out, e);
}

int checkpoint_rows_list(struct sql *q, unsigned limit, struct store_checkpoints *out,
			 struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, sizeof(*out->v), checkpoints_read, checkpoints_fini_row, &rows, e) <
	    0)
		return -1;
	*out = (struct store_checkpoints){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_checkpoint_list(struct store *s, const struct store_checkpoint_filter *f,
			  struct store_checkpoints *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	unsigned limit = sql_limit(f->limit);

	buf_puts(&w.text, "SELECT " CHECKPOINT_COLUMNS " FROM checkpoints WHERE state = 'ready'");
	sql_where_text(&w, "team = ?", f->team);
	sql_where_text(&w, "box = ?", f->box);
	sql_where_after(&w, "created_ns", &f->after);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	return checkpoint_rows_list(&q, limit, out, e);
}

struct store_cursor store_checkpoint_cursor(const struct store_checkpoint *x)
{
	struct store_cursor c = { .ns = x->created_ns };

	memcpy(c.id, x->id, sizeof(c.id));
	return c;
}

int store_checkpoint_of_box(struct store *s, const char *box, struct store_checkpoints *out,
			    struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " CHECKPOINT_COLUMNS " FROM checkpoints WHERE box = ?"
		       " AND state = 'ready' ORDER BY created_ns, id");

	sql_text(&q, box);
	return checkpoint_rows_list(&q, SQL_ALL, out, e);
}

int store_checkpoint_count(struct store *s, const char *box, uint64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT count(*) FROM checkpoints WHERE box = ?"
				       " AND state IN ('writing', 'ready')");

	sql_text(&q, box);
	if (sql_one(&q, "box", box, e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}

int store_checkpoint_bytes(struct store *s, const char *team, uint64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT coalesce(sum(bytes), 0) FROM checkpoint_layers"
				       " WHERE team = ? OR ? = ''");

	sql_text(&q, team);
	sql_text(&q, team);
	if (sql_one(&q, "team", team ? team : "", e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}

int store_checkpoint_totals(struct store *s, uint64_t *out_count, uint64_t *out_bytes,
			    struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT count(*) FROM checkpoints WHERE state = 'ready'");

	if (sql_one(&q, "checkpoints", "", e) < 0)
		return -1;
	*out_count = sql_get_u64(&q);
	return store_checkpoint_bytes(s, NULL, out_bytes, e);
}
