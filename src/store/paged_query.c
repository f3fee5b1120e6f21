/* paged_query.c - pages of rows: optional conditions, and rows that become structs. */
#include "base/cleanup.h"
#include "store/sql.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void paged_query_where(struct sql_where *w, const char *condition, struct sql_value v)
{
	assert(w->n < ARRAY_LEN(w->v));
	buf_printf(&w->text, " AND %s", condition);
	w->v[w->n++] = v;
}

void sql_where_text(struct sql_where *w, const char *condition, const char *value)
{
	if (value)
		paged_query_where(w, condition, (struct sql_value){ .text = value });
}

void sql_where_i64(struct sql_where *w, const char *condition, int64_t value)
{
	paged_query_where(w, condition, (struct sql_value){ .n = value });
}

/* Rows after the cursor, in a list that is newest first. Of rows with the same time, the greater
 * id is first. */
void sql_where_after(struct sql_where *w, const char *ns, const struct store_cursor *after)
{
	char condition[64];

	if (!after->id[0])
		return;
	snprintf(condition, sizeof(condition), "(%s, id) < (?, ?)", ns);
	sql_where_i64(w, condition, after->ns);
	w->v[w->n++] = (struct sql_value){ .text = after->id };
}

struct sql sql_filtered(struct store *s, struct sql_where *w, const char *tail)
{
	struct sql q;

	buf_printf(&w->text, " %s", tail);
	q = sql(s, buf_str(&w->text));
	for (unsigned i = 0; i < w->n; i++) {
		if (w->v[i].text)
			sql_text(&q, w->v[i].text);
		else
			sql_i64(&q, w->v[i].n);
	}
	return q;
}

void sql_where_fini(struct sql_where *w)
{
	buf_fini(&w->text);
}

unsigned sql_limit(unsigned asked)
{
	return !asked ? STORE_PAGE : asked > STORE_PAGE_MAX ? STORE_PAGE_MAX : asked;
}

static void *paged_query_push(struct sql_rows *l, unsigned *room, size_t size)
{
	char *row;

	if (l->n == *room) {
		*room = *room ? *room * 2 : 16;
		l->v = reallocarray(l->v, *room, size);
		if (!l->v)
			abort();
	}
	row = (char *)l->v + l->n++ * size;
	memset(row, 0, size);
	return row;
}

static size_t sql_row_bytes(const struct sql *q)
{
	int n = sqlite3_column_count(q->stmt);
	size_t bytes = 0;

	for (int i = 0; i < n; i++)
		if (sqlite3_column_type(q->stmt, i) == SQLITE_TEXT)
			bytes += (size_t)sqlite3_column_bytes(q->stmt, i);
	return bytes;
}

int sql_list(struct sql *q, unsigned limit, size_t size, void (*read)(struct sql *q, void *row),
	     void (*fini)(void *row), struct sql_rows *out, struct err *e)
{
	struct sql_rows l = { 0 };
	unsigned room = 0;
	size_t bytes = 0;
	int rc;

	while ((rc = sql_row(q, e)) > 0) {
		if (l.n == limit || (limit <= STORE_PAGE_MAX && bytes > STORE_PAGE_BYTES)) {
			l.more = 1;
			break;
		}
		bytes += sql_row_bytes(q);
		read(q, paged_query_push(&l, &room, size));
	}
	if (rc < 0) {
		for (unsigned i = 0; fini && i < l.n; i++)
			fini((char *)l.v + i * size);
		free(l.v);
		return -1;
	}
	*out = l;
	return 0;
}

/* Cursors ---- */

void store_cursor_text(const struct store_cursor *c, char out[STORE_CURSOR_TEXT])
{
	snprintf(out, STORE_CURSOR_TEXT, "%lld-%s", (long long)c->ns, c->id);
}

int store_cursor_parse(const char *text, struct store_cursor *out, struct err *e)
{
	size_t digits = strspn(text, "0123456789");
	struct store_cursor c = { 0 };

	errno = 0;
	c.ns = strtoll(text, NULL, 10);
	if (!digits || digits > 19 || errno || text[digits] != '-' || !id_valid(text + digits + 1))
		return err_set(e, ERR_INVALID, "'%.40s' is not where a page ended", text);
	snprintf(c.id, sizeof(c.id), "%s", text + digits + 1);
	*out = c;
	return 0;
}
