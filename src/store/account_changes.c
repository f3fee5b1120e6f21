/* account_changes.c - see account_changes.h. */
#include "store/account_changes.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "store/keys.h"
#include "store/shared_sql.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

void store_accounts_fini(struct store_accounts *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->v[i].row);
	free(l->v);
	*l = (struct store_accounts){ 0 };
}

#define ACCOUNT_KEY_ROW                                                                            \
	"json_object('id', k.id, 'name', k.name, 'team', k.team, 'role', k.role, 'box', k.box,"    \
	" 'hash', lower(hex(k.hash)), 'shown', k.shown, 'created_ns', k.created_ns,"               \
	" 'expires_ns', k.expires_ns, 'revoked', k.revoked, 'isolation', k.isolation)"
#define ACCOUNT_TEAM_ROW                                                                           \
	"json_object('name', t.name, 'created_ns', t.created_ns, 'boxes', t.boxes,"                \
	" 'executions_per_day', t.executions_per_day,"                                             \
	" 'compute_ms_per_month', t.compute_ms_per_month,"                                         \
	" 'output_bytes_per_day', t.output_bytes_per_day,"                                         \
	" 'requests_per_second', t.requests_per_second, 'plan', t.plan, 'isolation', t.isolation)"

static void account_read(struct sql *q, void *row)
{
	struct store_account *a = row;

	sql_get_text(q, a->kind, sizeof(a->kind));
	sql_get_text(q, a->id, sizeof(a->id));
	a->verify = sql_get_i64(q) != 0;
	a->version = sql_get_i64(q);
	a->row = sql_get_dup(q);
	if (a->row && !*a->row) {
		free(a->row);
		a->row = NULL;
	}
}

static void account_fini(void *row)
{
	free(((struct store_account *)row)->row);
}

int store_account_pending(struct store *s, unsigned limit, struct store_accounts *out,
			  struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT c.kind, c.id, c.verify, c.version, CASE"
		" WHEN k.id IS NOT NULL THEN " ACCOUNT_KEY_ROW
		" WHEN t.name IS NOT NULL THEN " ACCOUNT_TEAM_ROW
		" ELSE coalesce(CASE c.kind WHEN 'network' THEN " SHARED_NETWORK("c.id") " WHEN 'policy' THEN " SHARED_POLICY("c.id") " WHEN 'webhook' THEN " SHARED_WEBHOOK(
			"c.id") " WHEN 'secret' THEN " SHARED_SECRET("c.id") " END, '') END"
									     " FROM account_changes c LEFT JOIN keys k ON c.kind = 'key' AND k.id = c.id"
									     " LEFT JOIN teams t ON c.kind = 'team' AND t.name = c.id"
									     " ORDER BY c.kind <> 'team', c.kind, c.id LIMIT ?");
	struct sql_rows rows;

	limit = sql_limit(limit);
	sql_i64(&q, limit);
	if (sql_list(&q, limit, sizeof(*out->v), account_read, account_fini, &rows, e) < 0)
		return -1;
	*out = (struct store_accounts){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_account_sent(struct store *s, const struct store_account *a, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM account_changes"
				       " WHERE kind = ? AND id = ? AND version = ?");

	sql_text(&q, a->kind);
	sql_text(&q, a->id);
	sql_i64(&q, a->version);
	return sql_run(&q, e);
}

int store_account_verify_all(struct store *s, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO account_changes (kind, id, verify, version)"
		       " SELECT 'team', name, 1, 1 FROM teams UNION ALL"
		       " SELECT 'key', id, 1, 1 FROM keys WHERE shown <> 'gateway' UNION ALL"
		       " SELECT 'network', team, 1, 1 FROM network_rules UNION ALL"
		       " SELECT 'policy', team, 1, 1 FROM pipeline_policies UNION ALL"
		       " SELECT 'webhook', id, 1, 1 FROM webhooks UNION ALL"
		       " SELECT 'secret', team || '/' || name, 1, 1 FROM secrets WHERE true"
		       " ON CONFLICT DO NOTHING");

	return sql_run(&q, e);
}

/* ---- rows of other stores ---- */

static int account_run(struct store *s, const char *text, const char *first, const char *second,
		       struct err *e)
{
	auto_sql struct sql q = sql(s, text);

	sql_text(&q, first);
	if (second)
		sql_text(&q, second);
	return sql_run(&q, e);
}

/* 1: it was changed here and is not sent yet. */
static int account_is_pending(struct store *s, const char *kind, const char *id, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT 1 FROM account_changes WHERE kind = ? AND id = ? AND NOT verify");

	sql_text(&q, kind);
	sql_text(&q, id);
	return sql_row(&q, e);
}

/* NULL: there is none. */
static int account_own_row(struct store *s, const char *kind, const char *id, char **out,
			   struct err *e)
{
	if (store_shared_is_kind(kind))
		return store_shared_get(s, kind, id, out, e);
	auto_sql struct sql q =
		strcmp(kind, "key") == 0
			? sql(s, "SELECT " ACCOUNT_KEY_ROW " FROM keys k WHERE id = ?")
			: sql(s, "SELECT " ACCOUNT_TEAM_ROW " FROM teams t WHERE name = ?");
	int rc;

	sql_text(&q, id);
	rc = sql_row(&q, e);
	*out = rc > 0 ? sql_get_dup(&q) : NULL;
	return rc < 0 ? -1 : 0;
}

/* 1: this store has the same. */
static int account_is_same(struct store *s, const char *kind, const char *id, const char *row,
			   struct err *e)
{
	auto_free char *own = NULL;

	if (account_own_row(s, kind, id, &own, e) < 0)
		return -1;
	if (!row || !own)
		return !row && !own;
	/* Both as the other side writes them: in the order of names. */
	auto_sql struct sql same =
		sql(s,
		    "SELECT count(*) = 0 FROM json_each(?1) a WHERE json_extract(?2, '$.' || a.key)"
		    " IS NOT a.value");
	sql_text(&same, own);
	sql_text(&same, row);
	return sql_one(&same, "row", id, e) < 0 ? -1 : sql_get_i64(&same) != 0;
}

static int account_put_team(struct store *s, const char *id, const char *row, struct err *e)
{
	return account_run(
		s,
		"INSERT INTO teams (name, created_ns, boxes, executions_per_day, compute_ms_per_month,"
		" output_bytes_per_day, requests_per_second, plan, isolation)"
		" SELECT json_extract(?1, '$.name'), json_extract(?1, '$.created_ns'),"
		" json_extract(?1, '$.boxes'), json_extract(?1, '$.executions_per_day'),"
		" json_extract(?1, '$.compute_ms_per_month'), json_extract(?1, '$.output_bytes_per_day'),"
		" json_extract(?1, '$.requests_per_second'), json_extract(?1, '$.plan'),"
		" json_extract(?1, '$.isolation') WHERE json_extract(?1, '$.name') = ?2"
		" ON CONFLICT (name) DO UPDATE SET boxes = excluded.boxes,"
		" executions_per_day = excluded.executions_per_day,"
		" compute_ms_per_month = excluded.compute_ms_per_month,"
		" output_bytes_per_day = excluded.output_bytes_per_day,"
		" requests_per_second = excluded.requests_per_second, plan = excluded.plan,"
		" isolation = excluded.isolation",
		row, id, e);
}

static int account_hash(struct store *s, const char *row, uint8_t out[SHA256_BYTES], struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT json_extract(?, '$.hash')");
	char text[2 * SHA256_BYTES + 2] = "";

	sql_text(&q, row);
	if (sql_one(&q, "row", "", e) < 0)
		return -1;
	sql_get_text(&q, text, sizeof(text));
	for (unsigned i = 0; i < SHA256_BYTES; i++) {
		int high = hex_digit(text[2 * i]), low = high < 0 ? -1 : hex_digit(text[2 * i + 1]);

		if (low < 0)
			return err_set(e, ERR_INVALID, "a key without its SHA-256");
		out[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

/* Of two keys of a team with one name, which two gateways have made at the same time, the younger one gets another name:
 * all gateways choose the same. 1: that is this row. */
static int account_settle_name(struct store *s, const char *id, const char *row, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT id, (created_ns, id) > (json_extract(?2, '$.created_ns'), ?1)"
		       " FROM keys WHERE team = json_extract(?2, '$.team')"
		       " AND name = json_extract(?2, '$.name') AND name <> '' AND NOT revoked"
		       " AND id <> ?1 AND NOT json_extract(?2, '$.revoked')");
	char other[ID_MAX + 1];
	int rc;

	sql_text(&q, id);
	sql_text(&q, row);
	rc = sql_row(&q, e);
	if (rc <= 0)
		return rc;
	sql_get_text(&q, other, sizeof(other));
	if (!sql_get_i64(&q))
		return 1;
	return account_run(s,
			   "UPDATE keys SET name = substr(name, 1, 50) || '-' || substr(id, -6)"
			   " WHERE id = ?",
			   other, NULL, e);
}

static int account_put_key(struct store *s, const char *id, const char *row, int renamed,
			   struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"INSERT INTO keys (id, name, team, role, box, hash, shown, created_ns, used_ns, expires_ns,"
		" revoked, isolation) SELECT ?1, CASE ?4 WHEN 0 THEN json_extract(?2, '$.name') ELSE"
		" substr(json_extract(?2, '$.name'), 1, 50) || '-' || substr(?1, -6) END,"
		" json_extract(?2, '$.team'), json_extract(?2, '$.role'), json_extract(?2, '$.box'), ?3,"
		" json_extract(?2, '$.shown'), json_extract(?2, '$.created_ns'), 0,"
		" json_extract(?2, '$.expires_ns'), json_extract(?2, '$.revoked'),"
		" json_extract(?2, '$.isolation') WHERE json_extract(?2, '$.id') = ?1"
		" ON CONFLICT (id) DO UPDATE SET name = excluded.name, team = excluded.team,"
		" role = excluded.role, box = excluded.box, hash = excluded.hash, shown = excluded.shown,"
		" created_ns = excluded.created_ns, expires_ns = excluded.expires_ns,"
		" revoked = excluded.revoked, isolation = excluded.isolation");
	uint8_t hash[SHA256_BYTES];

	if (account_hash(s, row, hash, e) < 0)
		return -1;
	sql_text(&q, id);
	sql_text(&q, row);
	sql_blob(&q, hash, sizeof(hash));
	sql_i64(&q, renamed);
	return sql_run(&q, e);
}

static int account_change(struct store *s, const char *kind, const char *id, const char *row,
			  struct err *e)
{
	int is_key = strcmp(kind, "key") == 0, renamed = 0, rc;

	if (store_shared_is_kind(kind))
		return store_shared_put(s, kind, id, row, e);
	if (!row)
		return account_run(s,
				   is_key ? "DELETE FROM keys WHERE id = ?"
					  : "DELETE FROM teams WHERE name = ?",
				   id, NULL, e);
	if (is_key)
		renamed = account_settle_name(s, id, row, e);
	if (renamed < 0)
		return -1;
	rc = is_key ? account_put_key(s, id, row, renamed, e) : account_put_team(s, id, row, e);
	return rc < 0 ? -1 : renamed;
}

/* The error of a row that this store cannot have is not one of the store. */
static int account_refuse(const char *kind, const char *id, struct err *e)
{
	if (e->kind != ERR_SYS)
		e->kind = ERR_INVALID;
	return err_in(e, "%s '%.64s' of the cluster", kind, id);
}

int store_account_apply(struct store *s, const char *kind, const char *id, const char *row,
			struct err *e)
{
	int rc, renamed;

	if (strcmp(kind, "key") != 0 && strcmp(kind, "team") != 0 && !store_shared_is_kind(kind))
		return err_set(e, ERR_INVALID, "'%.20s' is no kind of a row of the cluster", kind);
	if (store_begin(s, e) < 0)
		return -1;
	rc = account_is_pending(s, kind, id, e);
	if (rc == 0) {
		rc = account_is_same(s, kind, id, row, e);
		renamed = rc == 0 ? account_change(s, kind, id, row, e) : 0;
		if (rc < 0 || renamed < 0) {
			store_rollback(s);
			return account_refuse(kind, id, e);
		}
		if (!renamed &&
		    account_run(s, "DELETE FROM account_changes WHERE kind = ? AND id = ?", kind,
				id, e) < 0)
			return store_rollback(s);
		rc = !rc;
	} else if (rc > 0) {
		rc = 0;
	} else {
		return store_rollback(s);
	}
	return store_commit(s, e) < 0 ? -1 : rc;
}
