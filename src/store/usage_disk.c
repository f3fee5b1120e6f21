/* usage_disk.c - see usage.h: the disk space of snapshots, volumes and boxes since it was charged last. */
#include "store/sql.h"
#include "store/usage.h"

#include <stdlib.h>

#define DISK_STEP_NS INT64_C(3600000000000)
#define DISK_MOST_NS (24 * DISK_STEP_NS)

/* The time of the last charge; now_ns if there is none. */
static int usage_disk_until(struct store *s, int64_t now_ns, int64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT until_ns FROM usage_disk");
	int rc = sql_row(&q, e);

	*out = rc > 0 ? sql_get_i64(&q) : now_ns;
	return rc < 0 ? -1 : rc;
}

static int usage_disk_move(struct store *s, int64_t now_ns, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO usage_disk VALUES (1, ?) ON CONFLICT DO UPDATE"
				       " SET until_ns = excluded.until_ns");

	sql_i64(&q, now_ns);
	return sql_run(&q, e);
}

static void usage_disk_read(struct sql *q, void *row)
{
	struct store_disk_use *u = row;

	sql_get_text(q, u->team, sizeof(u->team));
	sql_get_text(q, u->box, sizeof(u->box));
	sql_get_text(q, u->key, sizeof(u->key));
	sql_get_text(q, u->template, sizeof(u->template));
	u->mib_s = sql_get_u64(q);
}

static int usage_disk_list(struct store *s, int64_t from_ns, int64_t now_ns,
			   struct store_disk_uses *out, struct err *e)
{
	auto_sql struct sql q =
		sql(s,
		    "SELECT team, '', '', '',"
		    " sum(bytes * ((?2 - max(created_ns, ?1)) / 1000000000) / 1048576)"
		    " FROM (SELECT team, bytes, created_ns FROM snapshots"
		    " UNION ALL SELECT team, quota_bytes, created_ns FROM volumes)"
		    " WHERE created_ns < ?2 GROUP BY team UNION ALL SELECT team, id, key, template,"
		    " disk_bytes / 1024 * ((?2 - max(stored_ns, ?1)) / 1000000000) / 1024"
		    " FROM boxes INDEXED BY boxes_live WHERE state <> 'gone'"
		    " AND state IN ('kept', 'paused') AND disk_bytes > 0 AND stored_ns < ?2");
	struct sql_rows rows;

	sql_i64(&q, from_ns);
	sql_i64(&q, now_ns);
	if (sql_list(&q, SQL_ALL, sizeof(*out->v), usage_disk_read, NULL, &rows, e) < 0)
		return -1;
	*out = (struct store_disk_uses){ .v = rows.v, .n = rows.n };
	return 0;
}

int store_usage_disk(struct store *s, int64_t now_ns, struct store_disk_uses *out, struct err *e)
{
	int64_t until;
	int known = usage_disk_until(s, now_ns, &until, e);

	*out = (struct store_disk_uses){ 0 };
	if (known < 0)
		return -1;
	if (!known || now_ns < until)
		return usage_disk_move(s, now_ns, e);
	if (now_ns - until < DISK_STEP_NS)
		return 0;
	if (now_ns - until > DISK_MOST_NS)
		until = now_ns - DISK_MOST_NS;
	if (usage_disk_move(s, now_ns, e) < 0)
		return -1;
	return usage_disk_list(s, until, now_ns, out, e);
}

int store_usage_disk_rest(struct store *s, uint64_t bytes, int64_t stored_ns, int64_t now_ns,
			  uint64_t *out_mib_s, struct err *e)
{
	int64_t since;

	*out_mib_s = 0;
	if (usage_disk_until(s, now_ns, &since, e) < 0)
		return -1;
	if (since < stored_ns)
		since = stored_ns;
	if (now_ns - since > DISK_MOST_NS)
		since = now_ns - DISK_MOST_NS;
	if (now_ns > since)
		*out_mib_s = bytes / 1024 * (uint64_t)((now_ns - since) / 1000000000) / 1024;
	return 0;
}

void store_disk_uses_fini(struct store_disk_uses *l)
{
	free(l->v);
	*l = (struct store_disk_uses){ 0 };
}
