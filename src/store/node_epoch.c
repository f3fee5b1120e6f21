/* node_epoch.c - see node_epoch.h. */
#include "store/node_epoch.h"
#include "store/sql.h"

int store_node_epoch_get(struct store *s, int64_t *out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT epoch FROM node_epoch");
	int rc = sql_row(&q, e);

	*out = rc > 0 ? sql_get_i64(&q) : 0;
	return rc < 0 ? -1 : 0;
}

int store_node_epoch_set(struct store *s, int64_t epoch, struct err *e)
{
	auto_sql struct sql q = sql(s, "INSERT INTO node_epoch (one, epoch) VALUES (1, ?)"
				       " ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch");

	sql_i64(&q, epoch);
	return sql_run(&q, e);
}
