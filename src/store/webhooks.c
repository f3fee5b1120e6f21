/* webhooks.c - see webhooks.h. */
#include "store/webhooks.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

#define WEBHOOK_COLUMNS                                                                            \
	"id, team, name, format, url, events, sealed, enabled, created_ns, seq, lost, delivered,"  \
	" delivered_ns, error"

static void read_webhook(struct sql *q, void *row)
{
	struct store_webhook *x = row;

	sql_get_text(q, x->id, sizeof(x->id));
	sql_get_text(q, x->team, sizeof(x->team));
	sql_get_text(q, x->name, sizeof(x->name));
	sql_get_text(q, x->format, sizeof(x->format));
	x->url = sql_get_dup(q);
	x->events = sql_get_dup(q);
	x->sealed = sql_get_blob(q, &x->sealed_n);
	x->enabled = sql_get_i64(q) != 0;
	x->created_ns = sql_get_i64(q);
	x->seq = sql_get_i64(q);
	x->lost = sql_get_u64(q);
	x->delivered = sql_get_u64(q);
	x->delivered_ns = sql_get_i64(q);
	sql_get_text(q, x->error, sizeof(x->error));
}

void store_webhook_fini(struct store_webhook *x)
{
	free(x->url);
	free(x->events);
	free(x->sealed);
	*x = (struct store_webhook){ 0 };
}

static void fini_webhook(void *row)
{
	store_webhook_fini(row);
}

void store_webhooks_fini(struct store_webhooks *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_webhook_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_webhooks){ 0 };
}

static int webhook_error(const struct sql *q, const struct store_webhook *x, struct err *e)
{
	if (q->rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%s'", x->team);
	if (q->rc == SQLITE_CONSTRAINT_UNIQUE)
		return err_set(e, ERR_CONFLICT, "a webhook '%s' exists already", x->name);
	return -1;
}

static int webhook_insert(struct store *s, const struct store_webhook *x, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO webhooks (" WEBHOOK_COLUMNS
				       ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, '')");

	sql_text(&q, x->id);
	sql_text(&q, x->team);
	sql_text(&q, x->name);
	sql_text(&q, x->format);
	sql_text(&q, x->url);
	sql_json(&q, x->events, "[]");
	sql_blob(&q, x->sealed, x->sealed_n);
	sql_i64(&q, x->enabled);
	sql_i64(&q, x->created_ns);
	sql_i64(&q, x->seq);
	return sql_run(&q, e) < 0 ? webhook_error(&q, x, e) : 0;
}

static int webhook_check_room(struct store *s, const char *team, unsigned most, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT count(*) FROM webhooks WHERE team = ?");

	sql_text(&q, team);
	if (sql_one(&q, "team", team, e) < 0)
		return -1;
	return sql_get_u64(&q) < most
		       ? 0
		       : err_set(e, ERR_LIMIT, "team '%.64s' has %u webhooks, which is the most",
				 team, most);
}

int store_webhook_add(struct store *s, const struct store_webhook *x, unsigned most, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (webhook_check_room(s, x->team, most, e) < 0 || webhook_insert(s, x, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_webhook_find(struct store *s, const char *team, const char *which,
		       struct store_webhook *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " WEBHOOK_COLUMNS
				       " FROM webhooks WHERE team = ? AND (id = ? OR name = ?)"
				       " ORDER BY id = ? DESC LIMIT 1");

	sql_text(&q, team);
	sql_text(&q, which);
	sql_text(&q, which);
	sql_text(&q, which);
	if (sql_one(&q, "webhook", which, e) < 0)
		return -1;
	*out = (struct store_webhook){ 0 };
	read_webhook(&q, out);
	return 0;
}

int store_webhook_list(struct store *s, const char *team, struct store_webhooks *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	buf_printf(&w.text, "SELECT " WEBHOOK_COLUMNS " FROM webhooks WHERE %s",
		   team ? "1" : "enabled");
	sql_where_text(&w, "team = ?", team);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY name");
	if (sql_list(&q, SQL_ALL, sizeof(*out->v), read_webhook, fini_webhook, &rows, e) < 0)
		return -1;
	*out = (struct store_webhooks){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_webhook_change(struct store *s, const struct store_webhook *x, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE webhooks SET name = ?, url = ?, events = ?,"
				       " sealed = ?, enabled = ?, seq = ? WHERE id = ?");

	sql_text(&q, x->name);
	sql_text(&q, x->url);
	sql_json(&q, x->events, "[]");
	sql_blob(&q, x->sealed, x->sealed_n);
	sql_i64(&q, x->enabled);
	sql_i64(&q, x->seq);
	sql_text(&q, x->id);
	return sql_run_one(&q, "webhook", x->id, e) < 0 ? webhook_error(&q, x, e) : 0;
}

int store_webhook_remove(struct store *s, const char *team, const char *id, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM webhooks WHERE team = ? AND id = ?");

	sql_text(&q, team);
	sql_text(&q, id);
	return sql_run_one(&q, "webhook", id, e);
}

/* ---- deliveries ---- */

#define DELIVERY_COLUMNS "seq, box, type, body, attempts, queued_ns, next_ns, status, error"

static void read_delivery(struct sql *q, void *row)
{
	struct store_delivery *d = row;

	d->seq = sql_get_i64(q);
	sql_get_text(q, d->box, sizeof(d->box));
	sql_get_text(q, d->type, sizeof(d->type));
	d->body = sql_get_dup(q);
	d->attempts = (unsigned)sql_get_u64(q);
	d->queued_ns = sql_get_i64(q);
	d->next_ns = sql_get_i64(q);
	d->status = (int)sql_get_i64(q);
	sql_get_text(q, d->error, sizeof(d->error));
}

static void fini_delivery(void *row)
{
	free(((struct store_delivery *)row)->body);
}

void store_deliveries_fini(struct store_deliveries *l)
{
	for (unsigned i = 0; i < l->n; i++)
		fini_delivery(&l->v[i]);
	free(l->v);
	*l = (struct store_deliveries){ 0 };
}

/* After the waiting ones of the same box. */
static int delivery_insert(struct store *s, const char *webhook, const struct store_delivery *d,
			   struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT OR IGNORE INTO webhook_deliveries (webhook, failed, status, error,"
		       " attempts, seq, box, type, body, queued_ns, next_ns)"
		       " SELECT ?1, 0, 0, '', 0, ?2, ?3, ?4, ?5, ?6, CASE WHEN EXISTS"
		       " (SELECT 1 FROM webhook_deliveries WHERE webhook = ?1 AND failed = 0"
		       " AND box = ?3) THEN ?7 ELSE ?6 END");

	sql_text(&q, webhook);
	sql_i64(&q, d->seq);
	sql_text(&q, d->box);
	sql_text(&q, d->type);
	sql_text(&q, d->body);
	sql_i64(&q, d->queued_ns);
	sql_i64(&q, STORE_DELIVERY_LATER);
	return sql_run(&q, e);
}

static int webhook_advance(struct store *s, const char *webhook, int64_t before, int64_t seq,
			   uint64_t lost, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE webhooks SET seq = ?, lost = lost + ?"
				       " WHERE id = ? AND seq <= ? AND enabled");

	sql_i64(&q, seq);
	sql_u64(&q, lost);
	sql_text(&q, webhook);
	sql_i64(&q, before);
	return sql_run(&q, e) < 0 ? -1 : sql_changes(&q) != 0;
}

int store_delivery_queue(struct store *s, const char *webhook, int64_t before, int64_t seq,
			 uint64_t lost, const struct store_delivery *v, unsigned n, struct err *e)
{
	int rc;

	if (store_begin(s, e) < 0)
		return -1;
	rc = webhook_advance(s, webhook, before, seq, lost, e);
	for (unsigned i = 0; rc > 0 && i < n; i++)
		if (delivery_insert(s, webhook, &v[i], e) < 0)
			rc = -1;
	if (rc < 0)
		return store_rollback(s);
	return store_commit(s, e) < 0 ? -1 : rc;
}

int store_webhook_arrived(struct store *s, const char *webhook, int64_t before, int64_t seq,
			  uint64_t n, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE webhooks SET seq = ?1, delivered = delivered + ?2,"
		       " delivered_ns = iif(?2, ?3, delivered_ns), error = iif(?2, '', error)"
		       " WHERE id = ?4 AND seq <= ?5 AND enabled");

	sql_i64(&q, seq);
	sql_u64(&q, n);
	sql_i64(&q, now_ns);
	sql_text(&q, webhook);
	sql_i64(&q, before);
	return sql_run(&q, e) < 0 ? -1 : sql_changes(&q) != 0;
}

static int delivery_list(struct sql *q, unsigned limit, struct store_deliveries *out, struct err *e)
{
	struct sql_rows rows;

	if (sql_list(q, limit, sizeof(*out->v), read_delivery, fini_delivery, &rows, e) < 0)
		return -1;
	*out = (struct store_deliveries){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}

int store_delivery_due(struct store *s, const char *webhook, int64_t now_ns, unsigned limit,
		       struct store_deliveries *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " DELIVERY_COLUMNS
				       " FROM webhook_deliveries WHERE webhook = ? AND failed = 0"
				       " AND next_ns <= ? ORDER BY next_ns, seq LIMIT ?");

	sql_text(&q, webhook);
	sql_i64(&q, now_ns);
	sql_i64(&q, (int64_t)limit + 1);
	return delivery_list(&q, limit, out, e);
}

int store_delivery_next(struct store *s, const char *webhook, int64_t *out_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT ifnull(min(next_ns), ?) FROM webhook_deliveries"
				       " WHERE webhook = ? AND failed = 0");

	sql_i64(&q, INT64_MAX);
	sql_text(&q, webhook);
	if (sql_one(&q, "webhook", webhook, e) < 0)
		return -1;
	*out_ns = sql_get_i64(&q);
	return 0;
}

/* The oldest waiting one of the box is due. */
static int delivery_follow(struct store *s, const char *webhook, const char *box, int64_t now_ns,
			   struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE webhook_deliveries SET next_ns = ?3 WHERE webhook = ?1 AND seq ="
		       " (SELECT min(seq) FROM webhook_deliveries WHERE webhook = ?1 AND failed = 0"
		       " AND box = ?2) AND next_ns = ?4");

	sql_text(&q, webhook);
	sql_text(&q, box);
	sql_i64(&q, now_ns);
	sql_i64(&q, STORE_DELIVERY_LATER);
	return sql_run(&q, e);
}

static int delivery_remove(struct store *s, const char *webhook, int64_t seq, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "DELETE FROM webhook_deliveries WHERE webhook = ? AND seq = ?");

	sql_text(&q, webhook);
	sql_i64(&q, seq);
	return sql_run(&q, e);
}

static int webhook_count_delivery(struct store *s, const char *webhook, int64_t now_ns,
				  struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE webhooks SET delivered = delivered + 1,"
				       " delivered_ns = ?, error = '' WHERE id = ?");

	sql_i64(&q, now_ns);
	sql_text(&q, webhook);
	return sql_run(&q, e);
}

int store_delivery_done(struct store *s, const char *webhook, const struct store_delivery *d,
			int64_t now_ns, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (delivery_remove(s, webhook, d->seq, e) < 0 ||
	    delivery_follow(s, webhook, d->box, now_ns, e) < 0 ||
	    webhook_count_delivery(s, webhook, now_ns, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

static int webhook_set_error(struct store *s, const char *webhook, const char *error, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE webhooks SET error = ? WHERE id = ?");

	sql_text(&q, error);
	sql_text(&q, webhook);
	return sql_run(&q, e);
}

static int delivery_update(struct store *s, const char *webhook, const struct store_delivery *d,
			   int failed, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE webhook_deliveries SET attempts = ?, next_ns = ?,"
				       " status = ?, error = ?, failed = ?"
				       " WHERE webhook = ? AND seq = ?");

	sql_u64(&q, d->attempts);
	sql_i64(&q, d->next_ns);
	sql_i64(&q, d->status);
	sql_text(&q, d->error);
	sql_i64(&q, failed);
	sql_text(&q, webhook);
	sql_i64(&q, d->seq);
	return sql_run(&q, e) < 0 ? -1 : webhook_set_error(s, webhook, d->error, e);
}

int store_delivery_retry(struct store *s, const char *webhook, const struct store_delivery *d,
			 struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	return delivery_update(s, webhook, d, 0, e) < 0 ? store_rollback(s) : store_commit(s, e);
}

/* Deletes failed ones beyond the newest `most`. */
static int delivery_trim(struct store *s, const char *webhook, unsigned most, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "DELETE FROM webhook_deliveries WHERE webhook = ?1 AND failed = 1 AND seq <="
		       " (SELECT seq FROM webhook_deliveries WHERE webhook = ?1 AND failed = 1"
		       " ORDER BY seq DESC LIMIT 1 OFFSET ?2)");

	sql_text(&q, webhook);
	sql_i64(&q, most);
	return sql_run(&q, e);
}

int store_delivery_fail(struct store *s, const char *webhook, const struct store_delivery *d,
			int64_t now_ns, unsigned most, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (delivery_update(s, webhook, d, 1, e) < 0 ||
	    delivery_follow(s, webhook, d->box, now_ns, e) < 0 ||
	    delivery_trim(s, webhook, most, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_delivery_wake(struct store *s, const char *webhook, int64_t now_ns, int64_t after_ns,
			struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE webhook_deliveries SET next_ns = ? WHERE webhook = ?"
				       " AND failed = 0 AND next_ns > ? AND next_ns < ?");

	sql_i64(&q, now_ns);
	sql_text(&q, webhook);
	sql_i64(&q, after_ns);
	sql_i64(&q, STORE_DELIVERY_LATER);
	return sql_run(&q, e);
}

static int delivery_queue_again(struct store *s, const char *webhook, int64_t seq, int64_t now_ns,
				unsigned *out_n, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE webhook_deliveries SET failed = 0, attempts = 0, queued_ns = ?3"
		       " WHERE webhook = ?1 AND failed = 1 AND (?2 = 0 OR seq = ?2)");

	sql_text(&q, webhook);
	sql_i64(&q, seq);
	sql_i64(&q, now_ns);
	if (sql_run(&q, e) < 0)
		return -1;
	*out_n = sql_changes(&q);
	return 0;
}

/* The oldest one of each box is due, and the others follow it. */
static int delivery_order(struct store *s, const char *webhook, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "UPDATE webhook_deliveries SET next_ns = CASE WHEN seq IN"
		       " (SELECT min(seq) FROM webhook_deliveries WHERE webhook = ?1 AND failed = 0"
		       " GROUP BY box) THEN ?2 ELSE ?3 END WHERE webhook = ?1 AND failed = 0");

	sql_text(&q, webhook);
	sql_i64(&q, now_ns);
	sql_i64(&q, STORE_DELIVERY_LATER);
	return sql_run(&q, e);
}

int store_delivery_replay(struct store *s, const char *webhook, int64_t seq, int64_t now_ns,
			  unsigned *out_n, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (delivery_queue_again(s, webhook, seq, now_ns, out_n, e) < 0 ||
	    delivery_order(s, webhook, now_ns, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_delivery_list(struct store *s, const char *webhook, int failed, int64_t after,
			unsigned limit, struct store_deliveries *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " DELIVERY_COLUMNS
				       " FROM webhook_deliveries WHERE webhook = ? AND failed = ?"
				       " AND seq > ? ORDER BY seq LIMIT ?");

	limit = sql_limit(limit);
	sql_text(&q, webhook);
	sql_i64(&q, failed);
	sql_i64(&q, after);
	sql_i64(&q, (int64_t)limit + 1);
	return delivery_list(&q, limit, out, e);
}

int store_delivery_count(struct store *s, const char *webhook, uint64_t *out_waiting,
			 uint64_t *out_failed, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT ifnull(sum(failed = 0), 0), ifnull(sum(failed = 1), 0)"
		       " FROM webhook_deliveries WHERE webhook = ?");

	sql_text(&q, webhook);
	if (sql_one(&q, "webhook", webhook, e) < 0)
		return -1;
	*out_waiting = sql_get_u64(&q);
	*out_failed = sql_get_u64(&q);
	return 0;
}
