/* history.c - see history.h. The column `bytes` and its indices are in schema.c. */
#include "store/history.h"
#include "base/cleanup.h"
#include "store/audit.h"
#include "store/idempotency.h"
#include "store/mcp_sessions.h"
#include "store/receipts.h"
#include "store/sql.h"
#include "store/teams.h"
#include "store/usage.h"

#include <string.h>

enum {
	ROWS = 16, /* removed per step: a run may have 64 KiB of text, hence 20 pages */
	AUDIT_ROWS = 256,
	RECEIPT_ROWS = 64,
	RECEIPT_BYTES = 1024, /* of a receipt, about */
	MEASURED = 512,       /* index entries read per step */
	SPARE = 256,          /* free pages that stay for the next rows ... */
	SPARE_PART = 16,      /* ... or that part of the file, if that is more */
};

/* The conditions are written in an unusual form, here and in the indices, so that SQLite does
 * not use these indices for lists, which need another order.
 * Four tables are treated alike: for each team, newest row first, the sizes are added up from
 * the index alone; rows older than the first that does not fit are removed, oldest first. */
static const struct kind {
	const char *next_team, *measure, *drop;
	size_t count;    /* offset of the counter in struct store_history */
	int64_t keep_ns; /* 0: that of the sweep */
} kinds[] = {
	{ "SELECT team FROM runs INDEXED BY runs_history WHERE ended_ns <> 0 AND team > ?"
	  " ORDER BY team LIMIT 1",
	  "SELECT ended_ns, bytes, rowid FROM runs INDEXED BY runs_history WHERE ended_ns <> 0"
	  " AND team = ? AND (ended_ns, bytes, rowid) < (?, ?, ?)"
	  " ORDER BY ended_ns DESC, bytes DESC, rowid DESC LIMIT ?",
	  "DELETE FROM runs WHERE rowid IN (SELECT rowid FROM runs INDEXED BY runs_history"
	  " WHERE ended_ns <> 0 AND team = ? AND ended_ns < ? ORDER BY ended_ns LIMIT ?)",
	  offsetof(struct store_history, runs), 0 },
	{ "SELECT team FROM boxes INDEXED BY boxes_history WHERE NOT state <> 'gone' AND team > ?"
	  " ORDER BY team LIMIT 1",
	  "SELECT ended_ns, bytes, rowid FROM boxes INDEXED BY boxes_history WHERE NOT state <> 'gone'"
	  " AND team = ? AND (ended_ns, bytes, rowid) < (?, ?, ?)"
	  " ORDER BY ended_ns DESC, bytes DESC, rowid DESC LIMIT ?",
	  "DELETE FROM boxes WHERE rowid IN (SELECT rowid FROM boxes INDEXED BY boxes_history"
	  " WHERE NOT state <> 'gone' AND team = ? AND ended_ns < ? ORDER BY ended_ns LIMIT ?)",
	  offsetof(struct store_history, boxes), 0 },
	{ "SELECT team FROM idempotency INDEXED BY idempotency_history WHERE team > ?"
	  " ORDER BY team LIMIT 1",
	  "SELECT created_ns, bytes, rowid FROM idempotency INDEXED BY idempotency_history"
	  " WHERE team = ? AND (created_ns, bytes, rowid) < (?, ?, ?)"
	  " ORDER BY created_ns DESC, bytes DESC, rowid DESC LIMIT ?",
	  "DELETE FROM idempotency WHERE rowid IN (SELECT rowid FROM idempotency"
	  " INDEXED BY idempotency_history WHERE team = ? AND created_ns < ?"
	  " ORDER BY created_ns LIMIT ?)",
	  offsetof(struct store_history, keys), IDEM_KEEP_NS },
	/* Their number is bounded (mcp_sessions.c): no bytes are counted, only the age decides. */
	{ "SELECT team FROM mcp_sessions INDEXED BY mcp_sessions_used WHERE team > ?"
	  " ORDER BY team LIMIT 1",
	  "SELECT used_ns, 0, rowid FROM mcp_sessions INDEXED BY mcp_sessions_used"
	  " WHERE team = ? AND (used_ns, 0, rowid) < (?, ?, ?) ORDER BY used_ns DESC, rowid DESC LIMIT ?",
	  "DELETE FROM mcp_sessions WHERE rowid IN (SELECT rowid FROM mcp_sessions"
	  " INDEXED BY mcp_sessions_used WHERE team = ? AND used_ns < ? ORDER BY used_ns LIMIT ?)",
	  offsetof(struct store_history, sessions), MCP_SESSION_KEEP_NS },
};
enum { STAGE_AUDIT = ARRAY_LEN(kinds), STAGE_RECEIPTS, STAGE_USAGE, STAGE_VACUUM, STAGE_END };

static void begin_team(struct store_history *h, const struct kind *k)
{
	uint64_t keep = k->keep_ns   ? (uint64_t)k->keep_ns
			: h->keep_of ? h->keep_of(h->ctx, h->team, h->keep_ns)
				     : h->keep_ns;

	h->in_team = 1;
	h->measured = h->team_bytes == 0;
	h->sum = 0;
	h->cut_ns = keep && keep < (uint64_t)h->now_ns ? h->now_ns - (int64_t)keep : 0;
	h->at_ns = h->at_bytes = h->at_rowid = INT64_MAX;
}

/* 1: there is one; 0: that was the last. */
static int next_team(struct store *s, struct store_history *h, const struct kind *k, struct err *e)
{
	auto_sql struct sql q = sql(s, k->next_team);
	int rc;

	sql_text(&q, h->team);
	rc = sql_row(&q, e);
	if (rc > 0) {
		sql_get_text(&q, h->team, sizeof(h->team));
		begin_team(h, k);
	}
	return rc;
}

static int history_measure_team(struct store *s, struct store_history *h, const struct kind *k,
				struct err *e)
{
	auto_sql struct sql q = sql(s, k->measure);
	int rc, n = 0;

	sql_text(&q, h->team);
	sql_i64(&q, h->at_ns);
	sql_i64(&q, h->at_bytes);
	sql_i64(&q, h->at_rowid);
	sql_i64(&q, MEASURED);
	while ((rc = sql_row(&q, e)) > 0) {
		n++;
		h->at_ns = sql_get_i64(&q);
		h->at_bytes = sql_get_i64(&q);
		h->at_rowid = sql_get_i64(&q);
		if (h->at_ns < h->cut_ns)
			break; /* this row and all that follow are too old anyway */
		h->sum += (uint64_t)h->at_bytes;
		if (h->sum > h->team_bytes) {
			h->cut_ns = h->at_ns + 1;
			break;
		}
	}
	h->measured = n < MEASURED || rc > 0;
	return rc < 0 ? -1 : 0;
}

static int history_drop_rows(struct store *s, struct store_history *h, const struct kind *k,
			     struct err *e)
{
	auto_sql struct sql q = sql(s, k->drop);
	unsigned n;

	sql_text(&q, h->team);
	sql_i64(&q, h->cut_ns);
	sql_i64(&q, ROWS);
	if (sql_run(&q, e) < 0)
		return -1;
	n = sql_changes(&q);
	*(uint64_t *)(void *)((char *)h + k->count) += n;
	h->in_team = n == ROWS;
	return 0;
}

static int step_kind(struct store *s, struct store_history *h, struct err *e)
{
	const struct kind *k = &kinds[h->stage];
	int rc;

	if (h->in_team)
		return h->measured ? history_drop_rows(s, h, k, e)
				   : history_measure_team(s, h, k, e);
	rc = next_team(s, h, k, e);
	if (rc == 0) {
		h->stage++;
		h->team[0] = 0;
	}
	return rc < 0 ? -1 : 0;
}

static int step_audit(struct store *s, struct store_history *h, struct err *e)
{
	unsigned n = 0;

	if (h->keep_ns && h->keep_ns < (uint64_t)h->now_ns &&
	    store_audit_retire(s, h->now_ns - (int64_t)h->keep_ns, "atoll", h->now_ns, AUDIT_ROWS,
			       &n, e) < 0)
		return -1;
	h->audit_rows += n;
	h->stage += n < AUDIT_ROWS;
	return 0;
}

/* The chain belongs to no team: it gets as much space as the runs of one. */
static int step_receipts(struct store *s, struct store_history *h, struct err *e)
{
	int64_t cut = h->keep_ns && h->keep_ns < (uint64_t)h->now_ns
			      ? h->now_ns - (int64_t)h->keep_ns
			      : 0;
	unsigned n;

	if (store_receipt_purge(s, cut, h->team_bytes / RECEIPT_BYTES, RECEIPT_ROWS, &n, e) < 0)
		return -1;
	h->receipts += n;
	h->stage += n < RECEIPT_ROWS;
	return 0;
}

/* Sums of usage are kept longer than the runs that they contain. */
static int step_usage(struct store *s, struct store_history *h, struct err *e)
{
	unsigned n;

	if (store_usage_retire(s, store_day(h->now_ns) - STORE_USAGE_DAYS, AUDIT_ROWS, &n, e) < 0)
		return -1;
	h->stage += n < AUDIT_ROWS;
	return 0;
}

static int history_read_number(struct store *s, const char *text, uint64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, text);

	if (sql_one(&q, "answer to", text, e) < 0)
		return -1;
	*out = sql_get_u64(&q);
	return 0;
}

int store_history_pages(struct store *s, uint64_t *out_all, uint64_t *out_free, struct err *e)
{
	return history_read_number(s, "PRAGMA page_count", out_all, e) < 0
		       ? -1
		       : history_read_number(s, "PRAGMA freelist_count", out_free, e);
}

/* Moves pages from the end of the file into free ones and cuts the end off. Has no effect on a file
 * that was made without auto_vacuum (store.c). */
static int step_vacuum(struct store *s, struct store_history *h, struct err *e)
{
	uint64_t all, spare, before, after;
	int rc;

	if (store_history_pages(s, &all, &before, e) < 0)
		return -1;
	spare = all / SPARE_PART > SPARE ? all / SPARE_PART : SPARE;
	h->stage++;
	if (before <= spare)
		return 0;
	rc = sqlite3_exec(s->db, "PRAGMA incremental_vacuum(32)", NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		return sql_fail(s->db, rc, e);
	if (store_history_pages(s, &all, &after, e) < 0)
		return -1;
	h->pages += before > after ? before - after : 0;
	h->stage -= after < before; /* without progress the sweep ends */
	return 0;
}

int store_history_step(struct store *s, struct store_history *h, struct err *e)
{
	unsigned stage = h->stage;
	int rc = stage < STAGE_AUDIT       ? step_kind(s, h, e)
		 : stage == STAGE_AUDIT    ? step_audit(s, h, e)
		 : stage == STAGE_RECEIPTS ? step_receipts(s, h, e)
		 : stage == STAGE_USAGE    ? step_usage(s, h, e)
		 : stage == STAGE_VACUUM   ? step_vacuum(s, h, e)
					   : 0;

	return rc < 0 ? -1 : h->stage < STAGE_END;
}

uint64_t store_history_added(struct store *s)
{
	uint64_t n = s->history_bytes;

	s->history_bytes = 0;
	return n;
}
