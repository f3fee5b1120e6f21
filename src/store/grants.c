/* grants.c - see grants.h. */
#include "store/grants.h"
#include "store/sql.h"

#include <string.h>

const char *store_resource_name(enum store_resource r)
{
	static const char *const names[STORE_RESOURCES] = { "executions", "output_bytes",
							    "compute_ms" };

	return r < STORE_RESOURCES ? names[r] : NULL;
}

int store_grants_get(struct store *s, const char *team, struct store_grant out[STORE_RESOURCES],
		     struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT resource, most, period, amount, version FROM grants WHERE team = ?");
	int rc;

	memset(out, 0, STORE_RESOURCES * sizeof(*out));
	sql_text(&q, team);
	while ((rc = sql_row(&q, e)) > 0) {
		int64_t r = sql_get_i64(&q);
		struct store_grant g = { .limit = sql_get_u64(&q) };

		g.period = (int32_t)sql_get_i64(&q);
		g.amount = sql_get_u64(&q);
		g.version = sql_get_i64(&q);
		if (r >= 0 && r < STORE_RESOURCES)
			out[r] = g;
	}
	return rc;
}

int store_grant_put(struct store *s, const char *team, enum store_resource r,
		    const struct store_grant *g, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT OR REPLACE INTO grants"
				       " (team, resource, most, period, amount, version)"
				       " VALUES (?, ?, ?, ?, ?, ?)");

	sql_text(&q, team);
	sql_i64(&q, r);
	sql_u64(&q, g->limit);
	sql_i64(&q, g->period);
	sql_u64(&q, g->amount);
	sql_i64(&q, g->version);
	return sql_run(&q, e);
}
