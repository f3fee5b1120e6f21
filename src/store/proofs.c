/* proofs.c - see proofs.h. */
#include "store/proofs.h"
#include "store/sql.h"

#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
	"id, tier, at_ns, duration_us, passed, failed, kernel, engine, version, engine_sha256,"    \
	" platform, build, settings, probes"

static void proof_read(struct sql *q, void *row)
{
	struct store_proof *p = row;

	sql_get_text(q, p->id, sizeof(p->id));
	sql_get_text(q, p->tier, sizeof(p->tier));
	p->at_ns = sql_get_i64(q);
	p->duration_us = sql_get_u64(q);
	p->passed = sql_get_i64(q) != 0;
	p->failed = (unsigned)sql_get_u64(q);
	sql_get_text(q, p->kernel, sizeof(p->kernel));
	sql_get_text(q, p->engine, sizeof(p->engine));
	sql_get_text(q, p->version, sizeof(p->version));
	sql_get_text(q, p->engine_sha256, sizeof(p->engine_sha256));
	sql_get_text(q, p->platform, sizeof(p->platform));
	sql_get_text(q, p->build, sizeof(p->build));
	sql_get_text(q, p->settings, sizeof(p->settings));
	p->probes = sql_get_dup(q);
}

void store_proof_fini(struct store_proof *p)
{
	free(p->probes);
	p->probes = NULL;
}

static void proof_fini_row(void *row)
{
	store_proof_fini(row);
}

void store_proofs_fini(struct store_proofs *l)
{
	for (unsigned i = 0; i < l->n; i++)
		store_proof_fini(&l->v[i]);
	free(l->v);
	*l = (struct store_proofs){ 0 };
}

static int proof_insert(struct store *s, const struct store_proof *p, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO proofs (" COLUMNS
				       ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");

	sql_text(&q, p->id);
	sql_text(&q, p->tier);
	sql_i64(&q, p->at_ns);
	sql_u64(&q, p->duration_us);
	sql_i64(&q, p->passed);
	sql_u64(&q, p->failed);
	sql_text(&q, p->kernel);
	sql_text(&q, p->engine);
	sql_text(&q, p->version);
	sql_text(&q, p->engine_sha256);
	sql_text(&q, p->platform);
	sql_text(&q, p->build);
	sql_text(&q, p->settings);
	sql_json(&q, p->probes, "[]");
	return sql_run(&q, e);
}

static int proof_drop_old(struct store *s, const char *tier, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "DELETE FROM proofs WHERE id IN (SELECT id FROM proofs"
		       " WHERE tier = ? ORDER BY at_ns DESC, id DESC LIMIT -1 OFFSET ?)");

	sql_text(&q, tier);
	sql_i64(&q, STORE_PROOFS);
	return sql_run(&q, e);
}

int store_proof_add(struct store *s, const struct store_proof *p, struct err *e)
{
	if (store_begin(s, e) < 0)
		return -1;
	if (proof_insert(s, p, e) < 0 || proof_drop_old(s, p->tier, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

int store_proof_get(struct store *s, const char *id, struct store_proof *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT " COLUMNS " FROM proofs WHERE id = ?");

	sql_text(&q, id);
	if (sql_one(&q, "proof", id, e) < 0)
		return -1;
	proof_read(&q, out);
	return 0;
}

int store_proof_newest(struct store *s, const char *tier, struct store_proof *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT " COLUMNS
		       " FROM proofs WHERE tier = ? ORDER BY at_ns DESC, id DESC LIMIT 1");

	sql_text(&q, tier);
	if (sql_one(&q, "proof of tier", tier, e) < 0)
		return -1;
	proof_read(&q, out);
	return 0;
}

int store_proof_list(struct store *s, const char *tier, const struct store_cursor *after,
		     unsigned limit, struct store_proofs *out, struct err *e)
{
	auto_where struct sql_where w = { 0 };
	struct sql_rows rows;

	limit = sql_limit(limit);
	buf_puts(&w.text, "SELECT " COLUMNS " FROM proofs WHERE 1");
	sql_where_text(&w, "tier = ?", tier);
	sql_where_after(&w, "at_ns", after);
	auto_sql struct sql q = sql_filtered(s, &w, "ORDER BY at_ns DESC, id DESC LIMIT ?");
	sql_i64(&q, (int64_t)limit + 1);
	if (sql_list(&q, limit, sizeof(*out->v), proof_read, proof_fini_row, &rows, e) < 0)
		return -1;
	*out = (struct store_proofs){ .v = rows.v, .n = rows.n, .more = rows.more };
	return 0;
}
