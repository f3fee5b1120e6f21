/* events.c - see events.h. */
#include "store/events.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdio.h>
#include <string.h>

enum { BATCH = 1024 }; /* between two removals of old rows */

static int events_trim(struct store *s, int64_t newest, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM events WHERE seq <= ?");

	sql_i64(&q, newest - STORE_EVENTS);
	return sql_run(&q, e);
}

int store_event_add(struct store *s, struct store_event *ev, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO events (at_ns, team, box, type, data) VALUES (?, ?, ?, ?, ?)");
	struct err later;

	sql_i64(&q, ev->at_ns);
	sql_text(&q, ev->team);
	sql_text(&q, ev->box);
	sql_text(&q, ev->type);
	sql_json(&q, ev->data, "{}");
	if (sql_run(&q, e) < 0)
		return -1;
	ev->seq = sqlite3_last_insert_rowid(s->db);
	if (ev->seq % BATCH == 0)
		(void)!events_trim(s, ev->seq,
				   &later); /* the event is there; the next batch tries again */
	return 0;
}

static void read_event(struct sql *q, void *row)
{
	struct store_event *ev = row;

	ev->seq = sql_get_i64(q);
	ev->at_ns = sql_get_i64(q);
	sql_get_text(q, ev->team, sizeof(ev->team));
	sql_get_text(q, ev->box, sizeof(ev->box));
	sql_get_text(q, ev->type, sizeof(ev->type));
	if (strcmp(ev->type, "box.kept") == 0) /* its name in version 0.1 */
		snprintf(ev->type, sizeof(ev->type), "box.stopped");
	ev->data = sql_get_dup(q);
}

static void fini_row(void *row)
{
	free(((struct store_event *)row)->data);
}

void store_events_fini(struct store_events *l)
{
	for (unsigned i = 0; i < l->n; i++)
		fini_row(&l->v[i]);
	free(l->v);
	*l = (struct store_events){ 0 };
}

int store_event_list(struct store *s, int64_t after, const char *team, const char *box,
		     unsigned limit, struct store_events *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	limit = sql_limit(limit);
	buf_puts(&w.text, "SELECT seq, at_ns, team, box, type, data FROM events WHERE 1");
	sql_where_i64(&w, "seq > ?", after);
	sql_where_text(&w, "team = ?", team);
	sql_where_text(&w, "box = ?", box);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY seq LIMIT ?");
	sql_i64(&q, limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_event, fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_events){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_event_find(struct store *s, const struct store_event_filter *f, struct store_events *out,
		     struct err *e)
{
	auto_where struct sql_where w = { 0 };
	unsigned limit = sql_limit(f->limit);
	struct sql_rows rows;

	buf_puts(&w.text, "SELECT seq, at_ns, team, box, type, data FROM events WHERE 1");
	sql_where_i64(&w, "at_ns >= ?", f->since_ns);
	sql_where_i64(&w, "at_ns <= ?", f->until_ns ? f->until_ns : INT64_MAX);
	sql_where_i64(&w, f->oldest_first ? "seq > ?" : "seq < ?",
		      f->behind || f->oldest_first ? f->behind : INT64_MAX);
	sql_where_text(&w, "team = ?", f->team);
	sql_where_text(&w, "box = ?", f->box);
	auto_sql struct sql q = sql_filtered(
		s, &w, f->oldest_first ? "ORDER BY seq LIMIT ?" : "ORDER BY seq DESC LIMIT ?");
	sql_i64(&q, limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), read_event, fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_events){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_event_range(struct store *s, int64_t *out_first, int64_t *out_last, struct err *e)
{
	/* Two queries in one: min and max together would read every row. */
	auto_sql struct sql q =
		sql(s, "SELECT (SELECT min(seq) FROM events), (SELECT max(seq) FROM events)");

	if (sql_one(&q, "events", "", e) < 0)
		return -1;
	*out_first = sql_get_i64(&q);
	*out_last = sql_get_i64(&q);
	return 0;
}
