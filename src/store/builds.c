/* builds.c - see builds.h. */
#include "store/builds.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
	"id, template, team, state, definition, tags, progress, settings, reason, root, bytes,"    \
	" cpu_milli, mem_bytes, disk_bytes, created_ns, started_ns, ended_ns"

static const char *const builds_states[] = {
	[STORE_BUILD_WAITING] = "waiting",     [STORE_BUILD_BUILDING] = "building",
	[STORE_BUILD_READY] = "ready",         [STORE_BUILD_ERROR] = "error",
	[STORE_BUILD_CANCELLED] = "cancelled",
};

const char *store_build_state_name(enum store_build_state state)
{
	return builds_states[state];
}

void store_build_fini(struct store_build *b)
{
	free(b->definition);
	free(b->tags);
	free(b->progress);
	free(b->settings);
	free(b->reason);
	b->definition = b->tags = b->progress = b->settings = b->reason = NULL;
}

static void builds_fini_row(void *row)
{
	store_build_fini(row);
}

void store_builds_fini(struct store_builds *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_build_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_builds){ 0 };
}

static enum store_build_state builds_state(const char *name)
{
	for (unsigned i = 0; i < STORE_BUILD_STATES; i++)
		if (!strcmp(builds_states[i], name))
			return (enum store_build_state)i;
	return STORE_BUILD_ERROR;
}

static void builds_read(struct sql *q, void *row)
{
	struct store_build *b = row;
	char state[STORE_WORD + 1];

	sql_get_text(q, b->id, sizeof(b->id));
	sql_get_text(q, b->template, sizeof(b->template));
	sql_get_text(q, b->team, sizeof(b->team));
	sql_get_text(q, state, sizeof(state));
	b->state = builds_state(state);
	b->definition = sql_get_dup(q);
	b->tags = sql_get_dup(q);
	b->progress = sql_get_dup(q);
	b->settings = sql_get_dup(q);
	b->reason = sql_get_dup(q);
	sql_get_text(q, b->root, sizeof(b->root));
	b->bytes = sql_get_u64(q);
	b->cpu_milli = (uint32_t)sql_get_u64(q);
	b->mem_bytes = sql_get_u64(q);
	b->disk_bytes = sql_get_u64(q);
	b->created_ns = sql_get_i64(q);
	b->started_ns = sql_get_i64(q);
	b->ended_ns = sql_get_i64(q);
}

/* The columns that change, from state to ended_ns without created_ns. */
static void builds_bind(struct sql *q, const struct store_build *b)
{
	sql_text(q, builds_states[b->state]);
	sql_json(q, b->definition, "{}");
	sql_json(q, b->tags, "[]");
	sql_json(q, b->progress, "{}");
	sql_json(q, b->settings, "{}");
	sql_json(q, b->reason, "{}");
	sql_text(q, b->root);
	sql_u64(q, b->bytes);
	sql_u64(q, b->cpu_milli);
	sql_u64(q, b->mem_bytes);
	sql_u64(q, b->disk_bytes);
	sql_i64(q, b->started_ns);
	sql_i64(q, b->ended_ns);
}

int store_build_insert(struct store *s, const struct store_build *b, struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "INSERT INTO builds (id, template, team, created_ns, state, definition, tags,"
		    " progress, settings, reason, root, bytes, cpu_milli, mem_bytes, disk_bytes,"
		    " started_ns, ended_ns) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");

	sql_text(&q, b->id);
	sql_text(&q, b->template);
	sql_text(&q, b->team);
	sql_i64(&q, b->created_ns);
	builds_bind(&q, b);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no template '%s'", b->template);
	return -1;
}

int store_build_update(struct store *s, const struct store_build *b, struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "UPDATE builds SET state = ?, definition = ?, tags = ?, progress = ?,"
		    " settings = ?, reason = ?, root = ?, bytes = ?, cpu_milli = ?, mem_bytes = ?,"
		    " disk_bytes = ?, started_ns = ?, ended_ns = ? WHERE id = ?");

	builds_bind(&q, b);
	sql_text(&q, b->id);
	return sql_run_one(&q, "build", b->id, e);
}

static int builds_take(struct sql *q, const char *which, struct store_build *out, struct err *e)
{
	if (sql_one(q, "build", which, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	builds_read(q, out);
	return 0;
}

int store_build_get(struct store *s, const char *id, struct store_build *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM builds WHERE id = ?");

	sql_text(&q, id);
	return builds_take(&q, id, out, e);
}

int store_build_remove(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM builds WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "build", id, e);
}

int store_build_newest(struct store *s, const char *template, struct store_build *out,
		       struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM builds WHERE template = ?"
				       " AND state = 'ready' ORDER BY started_ns DESC LIMIT 1");

	sql_text(&q, template);
	return builds_take(&q, "ready", out, e);
}

static int builds_list(struct sql *q, unsigned limit, struct store_builds *out, struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, sizeof(*out->v), builds_read, builds_fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_builds){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_build_list(struct store *s, const char *team, const char *template, unsigned limit,
		     struct store_builds *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };

	limit = sql_limit(limit);
	buf_puts(&w.text, "SELECT " COLUMNS " FROM builds WHERE 1");
	sql_where_text(&w, "team = ?", team);
	sql_where_text(&w, "template = ?", template);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY created_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	return builds_list(&q, limit, out, e);
}

int store_build_unfinished(struct store *s, struct store_builds *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM builds WHERE state IN ('waiting', 'building')"
		       " AND definition <> '{}' ORDER BY created_ns, id");

	return builds_list(&q, SQL_ALL, out, e);
}

/* ---- layers ---- */

int store_layer_put(struct store *s, const struct store_layer *l, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO template_layers (id, is_root, bytes, used_ns) VALUES (?,?,?,?)"
		       " ON CONFLICT (id) DO UPDATE SET used_ns = excluded.used_ns");

	sql_text(&q, l->id);
	sql_i64(&q, l->is_root);
	sql_u64(&q, l->bytes);
	sql_i64(&q, l->used_ns);
	return sql_run(&q, e);
}

int store_layer_found(struct store *s, const struct store_layer *l, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO template_layers (id, is_root, bytes, used_ns)"
				       " SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS"
				       " (SELECT 1 FROM package_sets WHERE layer = ?1)"
				       " ON CONFLICT (id) DO NOTHING");

	sql_text(&q, l->id);
	sql_i64(&q, l->is_root);
	sql_u64(&q, l->bytes);
	sql_i64(&q, l->used_ns);
	return sql_run(&q, e) < 0 ? -1 : sql_changes(&q) > 0;
}

int store_layer_forget(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM template_layers WHERE id = ?");

	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_layer_unused(struct store *s, int64_t before_ns, unsigned skip, struct store_layer *out,
		       struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT id, is_root, bytes, used_ns FROM template_layers AS l"
		       " WHERE NOT EXISTS (SELECT 1 FROM builds WHERE root = l.id)"
		       " AND NOT EXISTS (SELECT 1 FROM build_cache WHERE layer = l.id)"
		       " AND NOT EXISTS (SELECT 1 FROM package_sets WHERE layer = l.id)"
		       " AND NOT EXISTS (SELECT 1 FROM builds WHERE"
		       "  state IN ('waiting', 'building', 'ready') AND instr(progress, l.id) > 0)"
		       " AND used_ns < ?"
		       " ORDER BY is_root DESC, used_ns, id LIMIT 1 OFFSET ?");

	sql_i64(&q, before_ns);
	sql_i64(&q, skip);
	if (sql_one(&q, "layer", "to spare", e) < 0)
		return -1;
	*out = (struct store_layer){ 0 };
	sql_get_text(&q, out->id, sizeof(out->id));
	out->is_root = sql_get_i64(&q) != 0;
	out->bytes = sql_get_u64(&q);
	out->used_ns = sql_get_i64(&q);
	return 0;
}

/* ---- the cache ---- */

int store_cache_put(struct store *s, const char *team, const char *key, const char *layer,
		    const char *state, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO build_cache (team, key, layer, state, used_ns)"
				       " VALUES (?,?,?,?,?) ON CONFLICT (team, key) DO UPDATE"
				       " SET layer = excluded.layer, state = excluded.state,"
				       " used_ns = excluded.used_ns");

	sql_text(&q, team);
	sql_text(&q, key);
	sql_text(&q, layer);
	sql_text(&q, state);
	sql_i64(&q, now_ns);
	return sql_run(&q, e);
}

int store_cache_get(struct store *s, const char *team, const char *key, int64_t now_ns,
		    char out_layer[STORE_HASH + 1], char **out_state, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE build_cache SET used_ns = ? WHERE team = ? AND key = ?"
		       " RETURNING layer, state");

	sql_i64(&q, now_ns);
	sql_text(&q, team);
	sql_text(&q, key);
	if (sql_one(&q, "cached step", key, e) < 0)
		return -1;
	sql_get_text(&q, out_layer, STORE_HASH + 1);
	*out_state = sql_get_dup(&q);
	return 0;
}

int store_cache_forget(struct store *s, const char *layer, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM build_cache WHERE layer = ?");

	sql_text(&q, layer);
	return sql_run(&q, e);
}

int store_cache_trim(struct store *s, uint64_t bytes_most, struct err *e)
{
	auto_sql struct sql q = sql(
		s, "DELETE FROM build_cache WHERE layer IN (SELECT layer FROM ("
		   " SELECT c.layer, sum(l.bytes) OVER (ORDER BY max(c.used_ns) DESC, c.layer) AS b"
		   " FROM build_cache AS c JOIN template_layers AS l ON l.id = c.layer"
		   " GROUP BY c.layer) WHERE b > ?)");

	sql_u64(&q, bytes_most);
	return sql_run(&q, e);
}

/* ---- uploads ---- */

static void uploads_read(struct sql *q, struct store_upload *u)
{
	*u = (struct store_upload){ 0 };
	sql_get_text(q, u->team, sizeof(u->team));
	sql_get_text(q, u->hash, sizeof(u->hash));
	sql_get_text(q, u->file, sizeof(u->file));
	u->bytes = sql_get_u64(q);
	u->used_ns = sql_get_i64(q);
}

int store_upload_put(struct store *s, const struct store_upload *u, struct err *e)
{
	auto_sql struct sql q = sql(
		s, "INSERT INTO build_uploads (team, hash, file, bytes, used_ns) VALUES (?,?,?,?,?)"
		   " ON CONFLICT (team, hash) DO UPDATE SET file = excluded.file,"
		   " bytes = excluded.bytes, used_ns = excluded.used_ns");

	sql_text(&q, u->team);
	sql_text(&q, u->hash);
	sql_text(&q, u->file);
	sql_u64(&q, u->bytes);
	sql_i64(&q, u->used_ns);
	return sql_run(&q, e);
}

int store_upload_get(struct store *s, const char *team, const char *hash, struct store_upload *out,
		     struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT team, hash, file, bytes, used_ns FROM build_uploads"
				       " WHERE team = ? AND hash = ?");

	sql_text(&q, team);
	sql_text(&q, hash);
	if (sql_one(&q, "upload", hash, e) < 0)
		return -1;
	uploads_read(&q, out);
	return 0;
}

int store_upload_use(struct store *s, const char *team, const char *hash, int64_t now_ns,
		     struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE build_uploads SET used_ns = ? WHERE team = ? AND hash = ?");

	sql_i64(&q, now_ns);
	sql_text(&q, team);
	sql_text(&q, hash);
	return sql_run(&q, e);
}

int store_upload_remove(struct store *s, const char *file, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM build_uploads WHERE file = ?");

	sql_text(&q, file);
	return sql_run(&q, e);
}

int store_upload_oldest(struct store *s, struct store_upload *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT team, hash, file, bytes, used_ns FROM build_uploads"
				       " ORDER BY used_ns, file LIMIT 1");

	if (sql_one(&q, "upload", "oldest", e) < 0)
		return -1;
	uploads_read(&q, out);
	return 0;
}

int store_upload_bytes(struct store *s, const char *team, uint64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT coalesce(sum(bytes), 0) FROM build_uploads"
				       " WHERE team = ?1 OR ?1 = ''");

	sql_text(&q, team);
	if (sql_one(&q, "sum", "bytes", e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}

int store_upload_has_file(struct store *s, const char *file, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT 1 FROM build_uploads WHERE file = ?");

	sql_text(&q, file);
	return sql_row(&q, e);
}
