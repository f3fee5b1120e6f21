/* templates.c - see templates.h. */
#include "store/templates.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
	"id, team, name, public, description, pool, created_ns, updated_ns, spawns, spawned_ns"

void store_template_fini(struct store_template *t)
{
	free(t->description);
	t->description = NULL;
}

static void templates_fini_row(void *row)
{
	store_template_fini(row);
}

void store_templates_fini(struct store_templates *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_template_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_templates){ 0 };
}

static void templates_read(struct sql *q, void *row)
{
	struct store_template *t = row;

	sql_get_text(q, t->id, sizeof(t->id));
	sql_get_text(q, t->team, sizeof(t->team));
	sql_get_text(q, t->name, sizeof(t->name));
	t->public = sql_get_i64(q) != 0;
	t->description = sql_get_dup(q);
	t->pool = (uint32_t)sql_get_u64(q);
	t->created_ns = sql_get_i64(q);
	t->updated_ns = sql_get_i64(q);
	t->spawns = sql_get_u64(q);
	t->spawned_ns = sql_get_i64(q);
}

/* 1: an alias of the team has this name, and is not one of `template`. */
static int templates_is_alias(struct store *s, const char *team, const char *name,
			      const char *template, struct err *e)
{
	auto_sql struct sql q = sql(
		s, "SELECT 1 FROM template_aliases WHERE team = ? AND name = ? AND template <> ?");

	sql_text(&q, team);
	sql_text(&q, name);
	sql_text(&q, template);
	return sql_row(&q, e);
}

static int templates_check_name(struct store *s, const struct store_template *t, struct err *e)
{
	int taken = templates_is_alias(s, t->team, t->name, t->id, e);

	if (taken > 0)
		return err_set(e, ERR_CONFLICT, "'%s' is an alias of another template", t->name);
	return taken;
}

int store_template_insert(struct store *s, const struct store_template *t, struct err *e)
{
	if (templates_check_name(s, t, e) < 0)
		return -1;
	auto_sql struct sql q =
		sql(s, "INSERT INTO templates (" COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?)");

	sql_text(&q, t->id);
	sql_text(&q, t->team);
	sql_text(&q, t->name);
	sql_i64(&q, t->public);
	sql_text(&q, t->description);
	sql_i64(&q, t->pool);
	sql_i64(&q, t->created_ns);
	sql_i64(&q, t->updated_ns);
	sql_u64(&q, t->spawns);
	sql_i64(&q, t->spawned_ns);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%s'", t->team);
	if (q.rc == SQLITE_CONSTRAINT_UNIQUE)
		return err_set(e, ERR_CONFLICT, "there is a template '%s' already", t->name);
	return -1;
}

int store_template_update(struct store *s, const struct store_template *t, struct err *e)
{
	if (templates_check_name(s, t, e) < 0)
		return -1;
	auto_sql struct sql q = sql(s, "UPDATE templates SET name = ?, public = ?, description = ?,"
				       " pool = ?, updated_ns = ? WHERE id = ?");

	sql_text(&q, t->name);
	sql_i64(&q, t->public);
	sql_text(&q, t->description);
	sql_i64(&q, t->pool);
	sql_i64(&q, t->updated_ns);
	sql_text(&q, t->id);
	if (sql_run_one(&q, "template", t->id, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_UNIQUE)
		return err_set(e, ERR_CONFLICT, "there is a template '%s' already", t->name);
	return -1;
}

int store_template_spawned(struct store *s, const char *id, uint64_t boxes, int64_t now_ns,
			   struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE templates SET spawns = spawns + ?, spawned_ns = ? WHERE id = ?");

	sql_u64(&q, boxes);
	sql_i64(&q, now_ns);
	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_template_find(struct store *s, const char *team, const char *id_or_name,
			struct store_template *out, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT " COLUMNS " FROM templates WHERE id IN ("
		" SELECT id FROM templates WHERE id = ?1 OR name = ?1"
		" UNION SELECT template FROM template_aliases WHERE name = ?1)"
		" AND (team = ?2 OR public)"
		" ORDER BY team = ?2 DESC, team = 'default' DESC, name = ?1 DESC, created_ns LIMIT 1");

	sql_text(&q, id_or_name);
	sql_text(&q, team);
	if (sql_one(&q, "template", id_or_name, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out));
	templates_read(&q, out);
	return 0;
}

int store_template_list(struct store *s, const char *team, int own, struct store_templates *out,
			struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS " FROM templates WHERE team = ?1 OR (public AND NOT ?2)"
		       " ORDER BY name, team LIMIT ?3");
	struct sql_rows rows;

	sql_text(&q, team);
	sql_i64(&q, own);
	sql_i64(&q, STORE_PAGE_MAX + 1);
	if (sql_list(&q, STORE_PAGE_MAX, sizeof(*out->v), templates_read, templates_fini_row, &rows,
		     e) < 0)
		return -1;
	*out = (struct store_templates){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_template_pooled(struct store *s, struct store_templates *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM templates WHERE pool > 0"
				       " ORDER BY spawned_ns DESC LIMIT ?");
	struct sql_rows rows;

	sql_i64(&q, STORE_PAGE_MAX);
	if (sql_list(&q, STORE_PAGE_MAX, sizeof(*out->v), templates_read, templates_fini_row, &rows,
		     e) < 0)
		return -1;
	*out = (struct store_templates){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_template_remove(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM templates WHERE id = ?");

	sql_text(&q, id);
	return sql_run_one(&q, "template", id, e);
}

/* ---- tags ---- */

static void tags_read(struct sql *q, void *row)
{
	struct store_tag *t = row;

	sql_get_text(q, t->tag, sizeof(t->tag));
	sql_get_text(q, t->build, sizeof(t->build));
	t->created_ns = sql_get_i64(q);
}

void store_tags_fini(struct store_tags *l)
{
	free(l->v);
	*l = (struct store_tags){ 0 };
}

int store_tag_put(struct store *s, const char *template, const struct store_tag *tag, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO template_tags (template, tag, build, created_ns)"
		       " VALUES (?,?,?,?) ON CONFLICT (template, tag)"
		       " DO UPDATE SET build = excluded.build, created_ns = excluded.created_ns");

	sql_text(&q, template);
	sql_text(&q, tag->tag);
	sql_text(&q, tag->build);
	sql_i64(&q, tag->created_ns);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no build '%s' of this template", tag->build);
	return -1;
}

int store_tag_get(struct store *s, const char *template, const char *tag, struct store_tag *out,
		  struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT tag, build, created_ns FROM template_tags"
				       " WHERE template = ? AND tag = ?");

	sql_text(&q, template);
	sql_text(&q, tag);
	if (sql_one(&q, "tag", tag, e) < 0)
		return -1;
	tags_read(&q, out);
	return 0;
}

int store_tag_remove(struct store *s, const char *template, const char *tag, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM template_tags WHERE template = ? AND tag = ?");

	sql_text(&q, template);
	sql_text(&q, tag);
	return sql_run_one(&q, "tag", tag, e);
}

int store_tag_list(struct store *s, const char *template, struct store_tags *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT tag, build, created_ns FROM template_tags"
				       " WHERE template = ? ORDER BY created_ns DESC, tag LIMIT ?");
	struct sql_rows rows;

	sql_text(&q, template);
	sql_i64(&q, STORE_PAGE_MAX);
	if (sql_list(&q, STORE_PAGE_MAX, sizeof(*out->v), tags_read, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_tags){ .v = rows.v, .n = rows.n };
	return 0;
}

/* ---- aliases ---- */

static void aliases_read(struct sql *q, void *row)
{
	sql_get_text(q, row, STORE_NAME + 1);
}

void store_aliases_fini(struct store_aliases *l)
{
	free(l->v);
	*l = (struct store_aliases){ 0 };
}

int store_alias_put(struct store *s, const char *team, const char *alias, const char *template,
		    struct err *e)
{
	auto_sql struct sql named =
		sql(s, "SELECT 1 FROM templates WHERE team = ? AND name = ? AND id <> ?");
	int taken;

	sql_text(&named, team);
	sql_text(&named, alias);
	sql_text(&named, template);
	taken = sql_row(&named, e);
	if (!taken)
		taken = templates_is_alias(s, team, alias, template, e);
	if (taken)
		return taken < 0 ? -1
				 : err_set(e, ERR_CONFLICT, "another template has the name '%s'",
					   alias);
	auto_sql struct sql q =
		sql(s, "INSERT INTO template_aliases (team, name, template) VALUES (?,?,?)"
		       " ON CONFLICT (team, name) DO NOTHING");

	sql_text(&q, team);
	sql_text(&q, alias);
	sql_text(&q, template);
	return sql_run(&q, e);
}

int store_alias_remove(struct store *s, const char *team, const char *alias, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM template_aliases WHERE team = ? AND name = ?");

	sql_text(&q, team);
	sql_text(&q, alias);
	return sql_run_one(&q, "alias", alias, e);
}

int store_alias_list(struct store *s, const char *template, struct store_aliases *out,
		     struct err *e)
{
	auto_sql struct sql q = sql(
		s, "SELECT name FROM template_aliases WHERE template = ? ORDER BY name LIMIT ?");
	struct sql_rows rows;

	sql_text(&q, template);
	sql_i64(&q, STORE_PAGE_MAX);
	if (sql_list(&q, STORE_PAGE_MAX, sizeof(*out->v), aliases_read, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_aliases){ .v = rows.v, .n = rows.n };
	return 0;
}
