/* clock_offset.c - see clock_offset.h. */
#include "store/clock_offset.h"
#include "store/sql.h"

#include <string.h>

enum { BOOT = 63 };
#define LEAST_NS                                                                                   \
	INT64_C(1000000000) /* a smaller difference is no jump; no deadline is that exact */

static int read_last(struct store *s, char boot[BOOT + 1], int64_t *offset_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT boot, offset_ns FROM clock");
	int rc = sql_row(&q, e);

	*boot = 0;
	if (rc <= 0)
		return rc;
	sql_get_text(&q, boot, BOOT + 1);
	*offset_ns = sql_get_i64(&q);
	return 0;
}

static int write_last(struct store *s, const char *boot, int64_t offset_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT OR REPLACE INTO clock VALUES (1, ?, ?)");

	sql_text(&q, boot);
	sql_i64(&q, offset_ns);
	return sql_run(&q, e);
}

/* 0 stays 0: it means that there is none. */
static const struct {
	const char *text;
	int values;
} moves[] = {
	{ "UPDATE boxes SET ends_ns = ends_ns + ? * (ends_ns > 0),"
	  " idle_since_ns = idle_since_ns + ? * (idle_since_ns > 0),"
	  " kept_until_ns = kept_until_ns + ? * (kept_until_ns > 0),"
	  " stored_ns = stored_ns + ? * (stored_ns > 0) WHERE state <> 'gone'",
	  4 },
	{ "UPDATE contexts SET deadline_ns = deadline_ns + ? WHERE deadline_ns > 0", 1 },
	{ "UPDATE idempotency SET created_ns = created_ns + ?", 1 },
	{ "UPDATE mcp_sessions SET used_ns = used_ns + ?", 1 },
	{ "UPDATE ui_links SET expires_ns = expires_ns + ?", 1 },
};

static int move_all(struct store *s, int64_t shift_ns, struct err *e)
{
	for (unsigned i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		auto_sql struct sql q = sql(s, moves[i].text);

		for (int n = 0; n < moves[i].values; n++)
			sql_i64(&q, shift_ns);
		if (sql_run(&q, e) < 0)
			return -1;
	}
	return 0;
}

static int clock_offset_look(struct store *s, const char *boot, int64_t offset_ns,
			     int64_t *shift_ns, struct err *e)
{
	int64_t last = offset_ns;
	char then[BOOT + 1];

	if (read_last(s, then, &last, e) < 0)
		return -1;
	*shift_ns = strcmp(then, boot) == 0 ? offset_ns - last : 0;
	if (*shift_ns > -LEAST_NS && *shift_ns < LEAST_NS) {
		*shift_ns = 0;
		return strcmp(then, boot) == 0 ? 0 : write_last(s, boot, offset_ns, e);
	}
	return move_all(s, *shift_ns, e) < 0 ? -1 : write_last(s, boot, offset_ns, e);
}

int store_clocks(struct store *s, const char *boot, int64_t offset_ns, int64_t *out_shift_ns,
		 struct err *e)
{
	int64_t shift_ns;

	if (store_begin(s, e) < 0)
		return err_in(e, "clock");
	if (clock_offset_look(s, boot, offset_ns, &shift_ns, e) < 0) {
		(void)store_rollback(s);
		return err_in(e, "clock");
	}
	if (store_commit(s, e) < 0)
		return err_in(e, "clock");
	*out_shift_ns = shift_ns;
	return 0;
}
