/* shared_rows.c - see shared_rows.h. */
#include "store/shared_rows.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "store/shared_sql.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

/* ?1: the id, ?2: the row, ?3: its bytes that are encrypted. */
static const struct shared_kind {
	const char *name, *row, *put, *remove;
	int is_sealed;
} shared_kinds[] = {
	{ "network", "SELECT " SHARED_NETWORK("?1"),
	  "INSERT INTO network_rules (team, rules) SELECT ?1, json_extract(?2, '$.rules')"
	  " WHERE true ON CONFLICT (team) DO UPDATE SET rules = excluded.rules",
	  "DELETE FROM network_rules WHERE team = ?1", 0 },
	{ "policy", "SELECT " SHARED_POLICY("?1"),
	  "INSERT INTO pipeline_policies (team, scan, forgetful)"
	  " SELECT ?1, json_extract(?2, '$.scan'), json_extract(?2, '$.forgetful')"
	  " WHERE true ON CONFLICT (team) DO UPDATE SET scan = excluded.scan,"
	  " forgetful = excluded.forgetful",
	  "DELETE FROM pipeline_policies WHERE team = ?1", 0 },
	{ "webhook", "SELECT " SHARED_WEBHOOK("?1"),
	  "INSERT INTO webhooks (id, team, name, url, events, format, sealed, enabled, created_ns,"
	  " seq, lost, delivered, delivered_ns, error) SELECT ?1, json_extract(?2, '$.team'),"
	  " json_extract(?2, '$.name'), json_extract(?2, '$.url'), json_extract(?2, '$.events'),"
	  " json_extract(?2, '$.format'), ?3, json_extract(?2, '$.enabled'),"
	  " json_extract(?2, '$.created_ns'), coalesce((SELECT max(seq) FROM events), 0), 0, 0, 0, ''"
	  " WHERE true ON CONFLICT (id) DO UPDATE SET name = excluded.name, url = excluded.url,"
	  " events = excluded.events, sealed = excluded.sealed, enabled = excluded.enabled,"
	  " seq = iif(excluded.enabled AND NOT webhooks.enabled, excluded.seq, webhooks.seq)",
	  "DELETE FROM webhooks WHERE id = ?1", 1 },
	{ "secret", "SELECT " SHARED_SECRET("?1"),
	  "INSERT INTO secrets (team, name, key, hosts, sealed, version, created_ns, updated_ns)"
	  " SELECT json_extract(?2, '$.team'), json_extract(?2, '$.name'),"
	  " json_extract(?2, '$.key'), json_extract(?2, '$.hosts'), ?3,"
	  " json_extract(?2, '$.version'), json_extract(?2, '$.created_ns'),"
	  " json_extract(?2, '$.updated_ns')"
	  " WHERE ?1 = json_extract(?2, '$.team') || '/' || json_extract(?2, '$.name')"
	  " ON CONFLICT (team, name) DO UPDATE SET key = excluded.key, hosts = excluded.hosts,"
	  " sealed = excluded.sealed, version = excluded.version,"
	  " created_ns = excluded.created_ns, updated_ns = excluded.updated_ns",
	  "DELETE FROM secrets WHERE" SHARED_IS_SECRET("secrets", "?1"), 1 },
};

static const struct shared_kind *shared_find(const char *kind)
{
	for (unsigned i = 0; i < ARRAY_LEN(shared_kinds); i++)
		if (strcmp(kind, shared_kinds[i].name) == 0)
			return &shared_kinds[i];
	return NULL;
}

static const struct shared_kind *shared_need(const char *kind, struct err *e)
{
	const struct shared_kind *k = shared_find(kind);

	if (!k)
		err_set(e, ERR_INVALID, "'%.20s' is no kind of a shared row", kind);
	return k;
}

int store_shared_is_kind(const char *kind)
{
	return shared_find(kind) != NULL;
}

static void shared_fini(void *row)
{
	free(((struct store_shared_row *)row)->row);
}

void store_shared_rows_fini(struct store_shared_rows *l)
{
	for (unsigned i = 0; i < l->n; i++)
		shared_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_shared_rows){ 0 };
}

/* ---- one row ---- */

int store_shared_get(struct store *s, const char *kind, const char *id, char **out, struct err *e)
{
	const struct shared_kind *k = shared_need(kind, e);

	*out = NULL;
	if (!k)
		return -1;
	auto_sql struct sql q = sql(s, k->row);
	sql_text(&q, id);
	if (sql_one(&q, kind, id, e) < 0)
		return -1;
	*out = sql_get_dup(&q);
	if (*out && !**out) {
		free(*out);
		*out = NULL;
	}
	return 0;
}

/* The bytes of "sealed". -1: they are not hexadecimal. */
static int shared_read_sealed(struct store *s, const char *row, struct buf *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT coalesce(json_extract(?, '$.sealed'), '')");
	auto_free char *text = NULL;

	sql_text(&q, row);
	if (sql_one(&q, "row", "", e) < 0)
		return -1;
	text = sql_get_dup(&q);
	for (const char *p = text; *p; p += 2) {
		int high = hex_digit(p[0]), low = high < 0 ? -1 : hex_digit(p[1]);

		if (low < 0)
			return err_set(e, ERR_INVALID, "sealed is not hexadecimal");
		buf_putc(out, (char)(high << 4 | low));
	}
	return out->len ? 0 : err_set(e, ERR_INVALID, "a row without its encrypted value");
}

static int shared_remove(struct store *s, const struct shared_kind *k, const char *id,
			 struct err *e)
{
	auto_sql struct sql q = sql(s, k->remove);

	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_shared_put(struct store *s, const char *kind, const char *id, const char *row,
		     struct err *e)
{
	const struct shared_kind *k = shared_need(kind, e);
	auto_buf struct buf sealed = { 0 };

	if (!k)
		return -1;
	if (!row)
		return shared_remove(s, k, id, e);
	if (k->is_sealed && shared_read_sealed(s, row, &sealed, e) < 0)
		return -1;
	auto_sql struct sql q = sql(s, k->put);
	sql_text(&q, id);
	sql_text(&q, row);
	if (k->is_sealed)
		sql_blob(&q, sealed.p, sealed.len);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "%s '%.64s': there is no such team", kind, id);
	return err_in(e, "%s '%.64s'", kind, id);
}

/* ---- lists ---- */

static void shared_read(struct sql *q, void *row)
{
	struct store_shared_row *r = row;

	sql_get_text(q, r->kind, sizeof(r->kind));
	sql_get_text(q, r->id, sizeof(r->id));
	r->row = sql_get_dup(q);
	if (r->row && !*r->row) {
		free(r->row);
		r->row = NULL;
	}
}

static int shared_list(struct store *s, const char *text, struct store_shared_rows *out,
		       struct err *e)
{
	auto_sql struct sql q = sql(s, text);
	struct sql_rows rows;

	if (sql_list(&q, SQL_ALL, sizeof(*out->v), shared_read, shared_fini, &rows, e) < 0)
		return -1;
	*out = (struct store_shared_rows){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_shared_list(struct store *s, struct store_shared_rows *out, struct err *e)
{
	return shared_list(
		s,
		"SELECT 'network', team, " SHARED_NETWORK(
			"o.team") " FROM network_rules o UNION ALL SELECT 'policy', team, "
				  "" SHARED_POLICY(
					  "o.team") " FROM pipeline_policies o UNION ALL"
						    " SELECT 'webhook', id, " SHARED_WEBHOOK(
							    "o.id") " FROM webhooks o",
		out, e);
}

/* ---- on a node ---- */

static int shared_run(struct store *s, const char *text, const char *kind, const char *id,
		      struct err *e)
{
	auto_sql struct sql q = sql(s, text);

	sql_text(&q, kind);
	sql_text(&q, id);
	return sql_run(&q, e);
}

int store_shared_mark(struct store *s, const char *kind, const char *id, int64_t now_ns,
		      struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO shared_rows (kind, id, at_ns) VALUES (?, ?, ?)"
		       " ON CONFLICT (kind, id) DO UPDATE SET at_ns = excluded.at_ns");

	sql_text(&q, kind);
	sql_text(&q, id);
	sql_i64(&q, now_ns);
	return sql_run(&q, e);
}

int store_shared_marked(struct store *s, int secrets, struct store_shared_rows *out, struct err *e)
{
	return shared_list(
		s,
		secrets ? "SELECT r.kind, r.id, json_object('version', s.version, 'updated_ns',"
			  " s.updated_ns) FROM shared_rows r JOIN secrets s ON" SHARED_IS_SECRET(
				  "s", "r.id") " WHERE r.kind = 'secret'"
			: "SELECT kind, id, '' FROM shared_rows WHERE kind <> 'secret'",
		out, e);
}

int store_shared_drop(struct store *s, const char *kind, const char *id, struct err *e)
{
	if (store_shared_put(s, kind, id, NULL, e) < 0)
		return -1;
	return shared_run(s, "DELETE FROM shared_rows WHERE kind = ? AND id = ?", kind, id, e);
}

int store_shared_prune(struct store *s, int64_t before_ns, struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "DELETE FROM secrets WHERE team || '/' || name IN (SELECT id FROM shared_rows"
		    " WHERE kind = 'secret' AND at_ns < ?)"
		    " AND NOT EXISTS (SELECT 1 FROM boxes b, json_each(b.secrets, '$.attached') a"
		    "  WHERE b.team = secrets.team AND b.state <> 'gone'"
		    "  AND json_extract(a.value, '$.name') = secrets.name)"
		    " AND NOT EXISTS (SELECT 1 FROM schedules c WHERE c.team = secrets.team"
		    "  AND instr(c.request, json_quote(secrets.name)) > 0)");
	auto_sql struct sql marks =
		sql(s,
		    "DELETE FROM shared_rows WHERE kind = 'secret' AND NOT EXISTS"
		    " (SELECT 1 FROM secrets s WHERE" SHARED_IS_SECRET("s", "shared_rows.id") ")");

	sql_i64(&q, before_ns);
	return sql_run(&q, e) < 0 ? -1 : sql_run(&marks, e);
}
