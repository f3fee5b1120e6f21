/* directory.c - see directory.h. */
#include "store/directory.h"
#include "base/cleanup.h"
#include "store/sql.h"

#include <stdlib.h>

void store_directory_rows_fini(struct store_directory_rows *l)
{
	for (unsigned i = 0; i < l->n; i++)
		free(l->v[i].row);
	free(l->v);
	*l = (struct store_directory_rows){ 0 };
}

/* ---- triggers ---- */

#define USAGE_ID(row)                                                                              \
	"json_array(" row ".dimension, " row ".day, " row ".team, " row ".value, " row ".currency)"
#define DAY_ID(row) "json_array(" row ".team, " row ".day)"
#define DIRECTORY_ADD(kind, id)                                                                    \
	" BEGIN DELETE FROM directory_rows WHERE kind = '" kind "' AND id = " id ";"               \
	" INSERT INTO directory_rows (kind, id) VALUES ('" kind "', " id "); END;"
#define DIRECTORY_RUN "NEW.tag <> ':helper'"

/* The time of the last use of a box changes all the time and is in no list. */
static const char directory_triggers[] = "CREATE TRIGGER directory_box AFTER INSERT ON boxes" DIRECTORY_ADD(
	"box",
	"NEW.id") "CREATE TRIGGER directory_box_changed AFTER UPDATE ON boxes WHEN"
		  " NEW.idle_since_ns IS OLD.idle_since_ns OR NEW.state IS NOT OLD.state OR"
		  " NEW.ends_ns IS NOT OLD.ends_ns" DIRECTORY_ADD(
			  "box",
			  "NEW.id") "CREATE TRIGGER directory_run AFTER INSERT ON runs WHEN " DIRECTORY_RUN
			  DIRECTORY_ADD("run", "NEW.id") "CREATE TRIGGER directory_run_ended AFTER UPDATE OF ended_ns ON runs WHEN " DIRECTORY_RUN DIRECTORY_ADD(
				  "run",
				  "NEW.id") "CREATE TRIGGER directory_event AFTER INSERT ON events BEGIN"
					    " INSERT INTO directory_rows (kind, id) VALUES ('event', NEW.seq); END;"
					    "CREATE TRIGGER directory_audit AFTER INSERT ON audit BEGIN"
					    " INSERT INTO directory_rows (kind, id) VALUES ('audit', NEW.seq); END;"
					    "CREATE TRIGGER directory_usage AFTER INSERT ON usage_sums" DIRECTORY_ADD("usage", USAGE_ID("NEW")) "CREATE TRIGGER directory_usage_changed AFTER UPDATE ON usage_sums" DIRECTORY_ADD(
						    "usage",
						    USAGE_ID(
							    "NEW")) "CREATE TRIGGER directory_day AFTER INSERT ON usage" DIRECTORY_ADD("day",
																       DAY_ID("NEW")) "CREATE TRIGGER directory_day_changed AFTER UPDATE ON usage" DIRECTORY_ADD("day",
																												 DAY_ID("NEW"))
	/* What exists already. */
	"INSERT INTO directory_rows (kind, id) SELECT 'box', id FROM boxes;"
	"INSERT INTO directory_rows (kind, id) SELECT 'run', id FROM runs WHERE tag <> ':helper';"
	"INSERT INTO directory_rows (kind, id) SELECT 'event', seq FROM events;"
	"INSERT INTO directory_rows (kind, id) SELECT 'audit', seq FROM audit;"
	"INSERT INTO directory_rows (kind, id) SELECT 'usage', " USAGE_ID(
		"usage_sums") " FROM usage_sums;"
			      "INSERT INTO directory_rows (kind, id) SELECT 'day', " DAY_ID(
				      "usage") " FROM usage;";

static const char directory_off[] =
	"DROP TRIGGER directory_box; DROP TRIGGER directory_box_changed; DROP TRIGGER directory_run;"
	"DROP TRIGGER directory_run_ended; DROP TRIGGER directory_event; DROP TRIGGER directory_audit;"
	"DROP TRIGGER directory_usage; DROP TRIGGER directory_usage_changed; DROP TRIGGER directory_day;"
	"DROP TRIGGER directory_day_changed; DELETE FROM directory_rows;";

static int directory_execute(struct store *s, const char *text, struct err *e)
{
	int rc = sqlite3_exec(s->db, text, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : sql_fail(s->db, rc, e);
}

/* 1: the triggers exist. */
static int directory_is_on(struct store *s, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND"
				       " name = 'directory_box'");

	return sql_row(&q, e);
}

static int directory_raise(struct store *s, int64_t now_us, struct err *e)
{
	auto_sql struct sql q = sql(s, "UPDATE sqlite_sequence SET seq = max(seq, ?)"
				       " WHERE name = 'directory_rows'");

	sql_i64(&q, now_us);
	return sql_run(&q, e);
}

static int directory_switch(struct store *s, int on, int64_t now_us, struct err *e)
{
	int is_on = directory_is_on(s, e);

	if (is_on < 0)
		return -1;
	/* A table without rows has no entry in sqlite_sequence. */
	if (on && directory_execute(s,
				    "INSERT INTO directory_rows (kind, id) VALUES ('', '');"
				    "DELETE FROM directory_rows WHERE kind = '';",
				    e) < 0)
		return -1;
	if (on && directory_raise(s, now_us, e) < 0)
		return -1;
	if (is_on == (on != 0))
		return 0;
	return directory_execute(s, on ? directory_triggers : directory_off, e);
}

int store_directory_enable(struct store *s, int on, int64_t now_us, struct err *e)
{
	if (!on && directory_is_on(s, e) <= 0)
		return 0;
	if (store_begin(s, e) < 0)
		return -1;
	if (directory_switch(s, on, now_us, e) < 0)
		return store_rollback(s);
	return store_commit(s, e);
}

/* ---- rows ---- */

static void directory_read(struct sql *q, void *row)
{
	struct store_directory_row *r = row;

	r->rev = sql_get_i64(q);
	sql_get_text(q, r->kind, sizeof(r->kind));
	sql_get_text(q, r->id, sizeof(r->id));
	r->row = sql_get_dup(q);
	if (r->row && !*r->row) {
		free(r->row);
		r->row = NULL;
	}
}

static void directory_fini(void *row)
{
	free(((struct store_directory_row *)row)->row);
}

int store_directory_list(struct store *s, int64_t after, unsigned limit,
			 struct store_directory_rows *out, struct err *e)
{
	auto_sql struct sql q = sql(
		s,
		"SELECT d.rev, d.kind, d.id, coalesce(CASE d.kind"
		" WHEN 'event' THEN (SELECT json_object('team', team, 'box', box, 'at_ns', at_ns,"
		"  'type', type, 'data', json(data)) FROM events WHERE seq = CAST(d.id AS INTEGER))"
		" WHEN 'audit' THEN (SELECT json_object('team', team, 'at_ns', at_ns, 'who', who,"
		"  'action', action, 'subject', subject, 'result', result, 'detail', json(detail))"
		"  FROM audit WHERE seq = CAST(d.id AS INTEGER))"
		" WHEN 'usage' THEN (SELECT json_object('team', team, 'dimension', dimension, 'day', day,"
		"  'value', value, 'currency', currency, 'runs', runs, 'cpu_us', cpu_us,"
		"  'memory_mib_ms', memory_mib_ms, 'disk_mib_s', disk_mib_s,"
		"  'network_bytes', network_bytes, 'gpu_us', gpu_us, 'tokens_in', tokens_in,"
		"  'tokens_out', tokens_out, 'output_bytes', output_bytes, 'cost_nano', cost_nano)"
		"  FROM usage_sums WHERE dimension = json_extract(d.id, '$[0]')"
		"  AND day = json_extract(d.id, '$[1]') AND team = json_extract(d.id, '$[2]')"
		"  AND value = json_extract(d.id, '$[3]') AND currency = json_extract(d.id, '$[4]'))"
		" WHEN 'day' THEN (SELECT json_object('team', team, 'day', day, 'executions', executions,"
		"  'compute_ms', compute_ms, 'output_bytes', output_bytes,"
		"  'boxes_created', boxes_created) FROM usage"
		"  WHERE team = json_extract(d.id, '$[0]') AND day = json_extract(d.id, '$[1]'))"
		" END, '') FROM directory_rows d WHERE d.rev > ? ORDER BY d.rev LIMIT ?");
	struct sql_rows rows;

	limit = sql_limit(limit);
	sql_i64(&q, after);
	sql_i64(&q, limit);
	if (sql_list(&q, limit, sizeof(*out->v), directory_read, directory_fini, &rows, e) < 0)
		return -1;
	*out = (struct store_directory_rows){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_directory_last(struct store *s, int64_t *out_rev, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT coalesce(max(rev), 0) FROM directory_rows");

	if (sql_row(&q, e) < 0)
		return -1;
	*out_rev = sql_get_i64(&q);
	return 0;
}

int store_directory_kept(struct store *s, int64_t rev, struct err *e)
{
	auto_sql struct sql q = sql(s, "DELETE FROM directory_rows WHERE rev <= ?");

	sql_i64(&q, rev);
	return sql_run(&q, e);
}

int store_directory_repeat_boxes(struct store *s, struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO directory_rows (kind, id) SELECT 'box', id FROM boxes"
		       " WHERE state <> 'gone' ON CONFLICT DO NOTHING");

	return sql_run(&q, e);
}
