/* copies.c - see copies.h. */
#include "store/copies.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

void store_copy_fini(struct store_copy *c)
{
	free(c->definition);
	c->definition = NULL;
}

void store_copy_items_fini(struct store_copy_items *l)
{
	free(l->v);
	*l = (struct store_copy_items){ 0 };
}

int store_copy_insert(struct store *s, const struct store_copy *c, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT OR REPLACE INTO copies (id, box, team, definition, sha256,"
		       " bytes, created_ns) VALUES (?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, c->id);
	sql_text(&q, c->box);
	sql_text(&q, c->team);
	sql_json(&q, c->definition, "{}");
	sql_text(&q, c->sha256);
	sql_u64(&q, c->bytes);
	sql_i64(&q, c->created_ns);
	return sql_run(&q, e);
}

int store_copy_get(struct store *s, const char *id, struct store_copy *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT id, box, team, definition, sha256, bytes, created_ns"
				       " FROM copies WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "copy", id, e) < 0)
		return -1;
	*out = (struct store_copy){ 0 };
	sql_get_text(&q, out->id, sizeof(out->id));
	sql_get_text(&q, out->box, sizeof(out->box));
	sql_get_text(&q, out->team, sizeof(out->team));
	out->definition = sql_get_dup(&q);
	sql_get_text(&q, out->sha256, sizeof(out->sha256));
	out->bytes = sql_get_u64(&q);
	out->created_ns = sql_get_i64(&q);
	return 0;
}

int store_copy_remove(struct store *s, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM copies WHERE id = ?");

	sql_text(&q, id);
	return sql_run(&q, e);
}

/* A box that ended because this machine failed, or because it runs elsewhere, may start again from its copy; so may
 * one that never got its files. */
#define COPIES_SPENT                                                                               \
	"coalesce(b.state = 'gone' AND b.cause NOT IN ('superseded', 'host') AND"                  \
	" instr(b.metadata, '\"atoll.restart\":') = 0, 0)"

static void copies_read(struct sql *q, void *row)
{
	struct store_copy_item *x = row;

	sql_get_text(q, x->id, sizeof(x->id));
	sql_get_text(q, x->box, sizeof(x->box));
	sql_get_text(q, x->team, sizeof(x->team));
	x->created_ns = sql_get_i64(q);
	sql_get_text(q, x->name, sizeof(x->name));
	sql_get_text(q, x->session, sizeof(x->session));
	sql_get_text(q, x->template, sizeof(x->template));
	x->is_spent = (int)sql_get_i64(q);
}

static int copies_list(struct sql *q, struct store_copy_items *out, struct err *e)
{
	struct sql_rows rows;

	*out = (struct store_copy_items){ 0 };
	if (sql_list(q, SQL_ALL, sizeof(*out->v), copies_read, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_copy_items){ rows.v, rows.n };
	return 0;
}

int store_copy_of_box(struct store *s, const char *team, const char *box, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT 1 FROM copies c LEFT JOIN boxes b ON b.id = c.box WHERE c.box = ?"
		       " AND c.team = ? AND NOT " COPIES_SPENT);

	sql_text(&q, box);
	sql_text(&q, team);
	return sql_row(&q, e);
}

int store_copies_held(struct store *s, struct store_copy_items *out, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT c.id, c.box, c.team, c.created_ns,"
		" coalesce(json_extract(c.definition, '$.name'), ''),"
		" coalesce(json_extract(c.definition, '$.session'), ''),"
		" coalesce(json_extract(c.definition, '$.template'), ''), " COPIES_SPENT
		" FROM copies c LEFT JOIN boxes b ON b.id = c.box WHERE c.box <> '' ORDER BY c.id");

	return copies_list(&q, out, e);
}

int store_copies_sent(struct store *s, struct store_copy_items *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT id, box, team, created_ns, '', '', '', 0 FROM copies"
				       " WHERE box = ''");

	return copies_list(&q, out, e);
}

int store_copies_wanted(struct store *s, struct store_copy_items *out, struct err *e)
{
	/* max(): the other columns are those of its row. */
	auto_sql struct sql q = sql(
		s,
		"SELECT coalesce(x.id, ''), b.id, b.team, coalesce(max(x.created_ns), 0),"
		" '', '', '', 0"
		" FROM boxes b LEFT JOIN (SELECT id, box, created_ns FROM snapshots WHERE checkpoint = '' AND bytes > 0"
		" UNION ALL SELECT id, box, created_ns FROM copies) x ON x.box = b.id"
		" WHERE b.on_loss = 'restart' AND b.state <> 'gone'"
		" AND instr(b.metadata, '\"atoll.restart\":') = 0 GROUP BY b.id ORDER BY b.id");

	return copies_list(&q, out, e);
}
