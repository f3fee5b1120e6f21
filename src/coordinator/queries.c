/* queries.c - see queries.h. */
#include "coordinator/queries.h"
#include "base/cleanup.h"
#include "coordinator/cluster_client.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct query queries[] = {
	/* Keys and teams that a gateway has changed. $1: [{kind, id, verify, row}], row null: it was removed. A key that was
	 * removed or revoked stays so. verify: only if it is not known yet. */
	{ "accounts_push", 1, { {
		"with given as (select * from jsonb_to_recordset($1::jsonb) as x(kind text, id text, verify bool, row jsonb)),"
		" fresh as (insert into atoll.accounts (kind, id, row, removed)"
		"  select kind, id, row, false from given where verify and row is not null on conflict do nothing returning kind, id),"
		" written as (insert into atoll.accounts as a (kind, id, row, removed)"
		"  select kind, id, coalesce(row, '{}'), row is null from given where not verify"
		"  on conflict (kind, id) do update set removed = excluded.removed, row = case"
		"   when excluded.removed then a.row"
		"   when a.row ->> 'revoked' = '1' then excluded.row || '{\"revoked\": 1}' else excluded.row end"
		"  where a.kind = 'team' or not a.removed returning kind, id)"
		" insert into atoll.changes (kind, id) select * from fresh union all select * from written", 1 } } },
	/* All of one kind after an id, and the first transaction that they may lack. */
	{ "accounts_page", 2, { {
		"select pg_snapshot_xmin(pg_current_snapshot())::text", 0 }, {
		"select kind, id, removed::int, row::text from atoll.accounts where kind = $1 and id > $2 order by id limit 500", 2 } } },
	/* What has changed after a position: transaction, number. Identity values commit out of order, so the order is that of
	 * transactions, and only those are read before which none is in progress. */
	{ "accounts_changed", 2, { {
		"select pg_snapshot_xmin(pg_current_snapshot())::text", 0 }, {
		"select a.kind, a.id, a.removed::int, a.row::text, c.xid::text, c.seq from atoll.changes c"
		" join atoll.accounts a using (kind, id) where (c.xid, c.seq) > ($1::xid8, $2::bigint)"
		" and c.xid < pg_snapshot_xmin(pg_current_snapshot()) order by c.xid, c.seq limit 500", 2 } } },
	/* Gateways that have read nothing for an hour read all again. */
	{ "accounts_trim", 0, { {
		"delete from atoll.changes where at < now() - interval '2 hours'", 0 } } },
};
/* clang-format on */

const struct query *query_find(const char *name)
{
	for (unsigned i = 0; name && i < ARRAY_LEN(queries); i++)
		if (strcmp(queries[i].name, name) == 0)
			return &queries[i];
	return NULL;
}

int query_send(struct postgres *p, const json_t *m, postgres_done *done, void *user, struct err *e)
{
	const char *name = json_string_value(json_object_get(m, "name"));
	const json_t *params = json_object_get(m, "params");
	const struct query *q = query_find(name);
	struct postgres_statement v[POSTGRES_STATEMENTS] = { 0 };
	unsigned n = 0;

	if (!q)
		return err_set(e, ERR_INVALID, "the cluster process has no query '%.40s'",
			       name ? name : "");
	if (json_array_size(params) != q->params)
		return err_set(e, ERR_INVALID, "query %s has %u values, not %zu", name, q->params,
			       json_array_size(params));
	for (; n < POSTGRES_STATEMENTS && q->statements[n].sql; n++) {
		v[n].sql = q->statements[n].sql;
		v[n].nparams = q->statements[n].params;
		for (unsigned i = 0; i < v[n].nparams; i++)
			v[n].params[i] = json_string_value(json_array_get(params, i));
	}
	postgres_send(p, v, n, done, user);
	return 0;
}

json_t *query_answer(const struct postgres_answer *a)
{
	json_t *results = json_array();

	for (unsigned s = 0; s < a->n; s++) {
		json_t *rows = json_array();

		for (unsigned i = 0; i < postgres_rows(a->results[s]); i++) {
			json_t *row = json_array();

			for (unsigned k = 0; k < postgres_columns(a->results[s]); k++)
				json_array_append_new(row, json_string_nocheck(postgres_text(
								   a->results[s], i, k)));
			json_array_append_new(rows, row);
		}
		json_array_append_new(results, rows);
	}
	return json_pack("{s:o}", "results", results);
}

void query_request(struct cluster_client *x, struct cluster_request *r, const char *name,
		   json_t *take_params)
{
	cluster_client_send(
		x, r, json_pack("{s:{s:s, s:o}}", "query", "name", name, "params", take_params));
}

const json_t *query_rows(const json_t *answer, unsigned statement)
{
	return json_array_get(json_object_get(answer, "results"), statement);
}

const char *query_text(const json_t *row, unsigned column)
{
	const char *text = json_string_value(json_array_get(row, column));

	return text ? text : "";
}

int64_t query_int(const json_t *row, unsigned column)
{
	return strtoll(query_text(row, column), NULL, 10);
}
