/* ui_links.c - see ui_links.h. */
#include "store/ui_links.h"
#include "store/sql.h"

#include <string.h>

static int ui_link_drop_expired(struct store *s, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM ui_links WHERE expires_ns <= ?");

	sql_i64(&q, now_ns);
	return sql_run(&q, e);
}

static int ui_link_drop_surplus(struct store *s, const char *team, struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "DELETE FROM ui_links WHERE hash IN (SELECT hash FROM ui_links WHERE team = ?"
		    " ORDER BY expires_ns DESC LIMIT -1 OFFSET ?)");

	sql_text(&q, team);
	sql_i64(&q, UI_LINKS);
	return sql_run(&q, e);
}

static int ui_link_add(struct store *s, const struct store_ui_link *link, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"INSERT INTO ui_links (hash, team, who, role, expires_ns) VALUES (?, ?, ?, ?, ?)");

	sql_blob(&q, link->hash, sizeof(link->hash));
	sql_text(&q, link->team);
	sql_text(&q, link->who);
	sql_i64(&q, link->role);
	sql_i64(&q, link->expires_ns);
	return sql_run(&q, e);
}

int store_ui_link_insert(struct store *s, const struct store_ui_link *link, int64_t now_ns,
			 struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (ui_link_drop_expired(s, now_ns, e) < 0 || ui_link_add(s, link, e) < 0 ||
	    ui_link_drop_surplus(s, link->team, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

static int ui_link_read(struct store *s, const uint8_t hash[SHA256_BYTES], int64_t now_ns,
			struct store_ui_link *out, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT team, who, role, expires_ns FROM ui_links WHERE hash = ? AND expires_ns > ?");

	sql_blob(&q, hash, SHA256_BYTES);
	sql_i64(&q, now_ns);
	if (sql_one(&q, "link", "", e) < 0)
		return -1;
	*out = (struct store_ui_link){ 0 };
	memcpy(out->hash, hash, sizeof(out->hash));
	sql_get_text(&q, out->team, sizeof(out->team));
	sql_get_text(&q, out->who, sizeof(out->who));
	out->role = (enum store_role)sql_get_i64(&q);
	out->expires_ns = sql_get_i64(&q);
	return 0;
}

static int ui_link_delete(struct store *s, const uint8_t hash[SHA256_BYTES], struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM ui_links WHERE hash = ?");

	sql_blob(&q, hash, SHA256_BYTES);
	return sql_run_one(&q, "link", "", e);
}

int store_ui_link_take(struct store *s, const uint8_t hash[SHA256_BYTES], int64_t now_ns,
		       struct store_ui_link *out, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (ui_link_read(s, hash, now_ns, out, e) < 0 || ui_link_delete(s, hash, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}
