/* network.c - see network.h. */
#include "store/network.h"
#include "store/sql.h"

int store_network_rules_get(struct store *s, const char *team, char **out, struct err *e)
{
	auto_sql struct sql q = sql(s, "SELECT rules FROM network_rules WHERE team = ?");
	int rc;

	*out = NULL;
	sql_text(&q, team);
	rc = sql_row(&q, e);
	if (rc > 0)
		*out = sql_get_dup(&q);
	return rc < 0 ? -1 : 0;
}

int store_network_rules_put(struct store *s, const char *team, const char *rules, struct err *e)
{
	auto_sql struct sql q =
		sql(s, rules ? "INSERT INTO network_rules (team, rules) VALUES (?, ?)"
			       " ON CONFLICT (team) DO UPDATE SET rules = excluded.rules"
			     : "DELETE FROM network_rules WHERE team = ?");

	sql_text(&q, team);
	if (rules)
		sql_text(&q, rules);
	if (sql_run(&q, e) == 0)
		return 0;
	if (q.rc == SQLITE_CONSTRAINT_FOREIGNKEY)
		return err_set(e, ERR_NOT_FOUND, "no team '%.64s'", team);
	return -1;
}

int store_network_usage_get(struct store *s, const char *box, struct store_network_usage *out,
			    struct err *e)
{
	auto_sql struct sql q =
		sql(s, "SELECT bytes_in, bytes_out, dns_queries FROM network_usage WHERE box = ?");
	int rc;

	*out = (struct store_network_usage){ 0 };
	sql_text(&q, box);
	rc = sql_row(&q, e);
	if (rc <= 0)
		return rc;
	out->bytes_in = sql_get_u64(&q);
	out->bytes_out = sql_get_u64(&q);
	out->dns_queries = sql_get_u64(&q);
	return 0;
}

int store_network_usage_put(struct store *s, const char *box, const struct store_network_usage *u,
			    struct err *e)
{
	auto_sql struct sql q =
		sql(s, "INSERT INTO network_usage (box, bytes_in, bytes_out, dns_queries)"
		       " VALUES (?, ?, ?, ?) ON CONFLICT (box) DO UPDATE SET"
		       " bytes_in = max(bytes_in, excluded.bytes_in),"
		       " bytes_out = max(bytes_out, excluded.bytes_out),"
		       " dns_queries = max(dns_queries, excluded.dns_queries)");

	sql_text(&q, box);
	sql_u64(&q, u->bytes_in);
	sql_u64(&q, u->bytes_out);
	sql_u64(&q, u->dns_queries);
	return sql_run(&q, e);
}
