/* volumes.c - see volumes.h. An index in schema.c enforces that there is one writer. */
#include "store/volumes.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <string.h>

#define COLUMNS                                                                                    \
	"id, team, name, quota_bytes, created_ns,"                                                 \
	" (SELECT box FROM attachments a WHERE a.volume = volumes.id AND writable),"               \
	" (SELECT count(*) FROM attachments a WHERE a.volume = volumes.id AND NOT writable)"

static void read_volume(struct sql *q, void *row)
{
	struct store_volume *v = row;

	sql_get_text(q, v->id, sizeof(v->id));
	sql_get_text(q, v->team, sizeof(v->team));
	sql_get_text(q, v->name, sizeof(v->name));
	v->quota_bytes = sql_get_u64(q);
	v->created_ns = sql_get_i64(q);
	sql_get_text(q, v->writer, sizeof(v->writer));
	v->readers = (uint32_t)sql_get_u64(q);
}

int store_volume_insert(struct store *s, const struct store_volume *v, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO volumes (id, team, name, quota_bytes, created_ns)"
		       " VALUES (?, ?, ?, ?, ?)");

	if (!v->name[0])
		return err_set(e, ERR_INVALID, "a volume needs a name");
	sql_text(&q, v->id);
	sql_text(&q, v->team);
	sql_text(&q, v->name);
	sql_u64(&q, v->quota_bytes);
	sql_i64(&q, v->created_ns);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%s'", v->team);
	if (q.rc == SQLITE_CONSTRAINT_UNIQUE)
		return err_set(e, ERR_CONFLICT, "there is a volume '%s' already", v->name);
	return -1;
}

int store_volume_find(struct store *s, const char *team, const char *name, struct store_volume *out,
		      struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM volumes WHERE team = ? AND name = ?");

	sql_text(&q, team);
	sql_text(&q, name);
	if (sql_one(&q, "volume", name, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_volume(&q, out);
	return 0;
}

int store_volume_get(struct store *s, const char *team, const char *id, struct store_volume *out,
		     struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM volumes WHERE team = ? AND id = ?");

	sql_text(&q, team);
	sql_text(&q, id);
	if (sql_one(&q, "volume", id, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	read_volume(&q, out);
	return 0;
}

int store_volume_set_quota(struct store *s, const char *id, uint64_t quota_bytes, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE volumes SET quota_bytes = ? WHERE id = ?");

	sql_u64(&q, quota_bytes);
	sql_text(&q, id);
	return sql_run_one(&q, "volume", id, e);
}

int store_volume_list(struct store *s, const char *team, const char *after, unsigned limit,
		      struct store_volumes *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	limit = team ? sql_limit(limit) : SQL_ALL - 1;
	buf_puts(&w.text, "SELECT " COLUMNS " FROM volumes WHERE 1");
	sql_where_text(&w, "team = ?", team);
	sql_where_text(&w, "name > ?", team ? after : NULL);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY team, name LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_volume, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_volumes){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

void store_volumes_fini(struct store_volumes *l)
{
	free(l->v);
	*l = (struct store_volumes){ 0 };
}

int store_volume_remove(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM volumes WHERE id = ?");

	sql_text(&q, id);
	if (sql_run_one(&q, "volume", id, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_CONFLICT, "a box has volume %.15s", id);
	return -1;
}

/* ---- Which boxes have it ---- */

static int writer_of(struct store *s, const char *volume, char out[ID_MAX + 1], struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT box FROM attachments WHERE volume = ? AND writable");

	sql_text(&q, volume);
	if (sql_one(&q, "writer of", volume, e) < 0)
		return -1;
	sql_get_text(&q, out, ID_MAX + 1);
	return 0;
}

static int volumes_clash(struct store *s, const struct store_attachment *a, int rc, struct err *e)
{
	char writer[ID_MAX + 1] = "";
	struct err ignored; /* of a row that was there a moment ago */

	if (rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no volume '%s'", a->volume);
	if (e->kind != ERR_CONFLICT)
		return -1;
	if (rc == SQLITE_CONSTRAINT_PRIMARYKEY)
		return err_set(e, ERR_CONFLICT, "box %s has volume %s already", a->box, a->volume);
	if (strstr(e->msg, "attachments.path"))
		return err_set(e, ERR_CONFLICT, "box %s has another volume at '%.80s'", a->box,
			       a->path);
	if (writer_of(s, a->volume, writer, &ignored) < 0)
		return -1;
	return err_set(e, ERR_CONFLICT, "box %s writes to volume %s; it can be had read-only",
		       writer, a->volume);
}

static int attach_one(struct store *s, const struct store_attachment *a, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO attachments (volume, box, path, writable)"
				       " VALUES (?, ?, ?, ?)");

	sql_text(&q, a->volume);
	sql_text(&q, a->box);
	sql_text(&q, a->path);
	sql_i64(&q, a->writable != 0);
	return sql_run(&q, e) == 0 ? 0 : volumes_clash(s, a, q.rc, e);
}

int store_volume_attach(struct store *s, const struct store_attachment *a, unsigned n,
			struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	for (unsigned i = 0; i < n; i++)
		if (attach_one(s, &a[i], e) < 0)
			return store_rollback(s);
	return store_commit(s, e);
}

int store_volume_detach(struct store *s, const char *box, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM attachments WHERE box = ?");

	sql_text(&q, box);
	return sql_run(&q, e);
}

static void read_attachment(struct sql *q, void *row)
{
	struct store_attachment *a = row;

	sql_get_text(q, a->volume, sizeof(a->volume));
	sql_get_text(q, a->box, sizeof(a->box));
	sql_get_text(q, a->path, sizeof(a->path));
	a->writable = sql_get_i64(q) != 0;
}

int store_volume_attached(struct store *s, const char *volume, const char *box,
			  struct store_attachments *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	buf_puts(&w.text, "SELECT volume, box, path, writable FROM attachments WHERE 1");
	sql_where_text(&w, "volume = ?", volume);
	sql_where_text(&w, "box = ?", box);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY volume, box");
	if (sql_list(&q, SQL_ALL, sizeof(*out->v), read_attachment, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_attachments){ .v = rows.v, .n = rows.n };
	return 0;
}

void store_attachments_fini(struct store_attachments *l)
{
	free(l->v);
	*l = (struct store_attachments){ 0 };
}
