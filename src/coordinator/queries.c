/* queries.c - see queries.h. */
#include "coordinator/queries.h"
#include "base/cleanup.h"
#include "coordinator/cluster_client.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* In the order of struct store_use. */
#define USAGE_SUM(name) " sum((row ->> '" name "')::numeric)"
#define USAGE_SUMS                                                                                 \
	USAGE_SUM("runs") "," USAGE_SUM("cpu_us") "," USAGE_SUM("memory_mib_ms") "," USAGE_SUM("disk_mib_s") ","     \
	USAGE_SUM("network_bytes") "," USAGE_SUM("gpu_us") "," USAGE_SUM("tokens_in") "," USAGE_SUM("tokens_out") ","  \
	USAGE_SUM("output_bytes") "," USAGE_SUM("cost_nano")

#define DIRECTORY_BOXES \
	"insert into atoll.boxes as b (id, node, rev, team, state, template, name, created_ns, started_ns, ended_ns, row)" \
	" select distinct on (x.id) x.id, $1::int, x.rev, x.team, coalesce(x.row #>> '{v1,state}', '')," \
	" coalesce(x.row #>> '{v1,template}', ''), coalesce(x.row #>> '{v1,name}', ''), x.at_ns," \
	" coalesce((x.row ->> 'started_ns')::bigint, 0), coalesce((x.row ->> 'ended_ns')::bigint, 0), x.row" \
	" from jsonb_to_recordset($2::jsonb) as x(kind text, id text, rev bigint, team text, at_ns bigint, row jsonb) where x.kind = 'box' and" \
	" (left(x.id, 3) = $3 or length(x.id) = 12 or exists (select from atoll.moved m where m.id = x.id and m.node = $1::int))" \
	" order by x.id, x.rev desc on conflict (id) do update set node = excluded.node, rev = excluded.rev," \
	" state = excluded.state, name = excluded.name, started_ns = excluded.started_ns, ended_ns = excluded.ended_ns," \
	" row = excluded.row where case when b.node = excluded.node then b.rev < excluded.rev" \
	" else exists (select from atoll.moved m where m.id = b.id and m.node = excluded.node) end"

static const struct query queries[] = {
	/* Keys, teams and rows of teams that a gateway has changed. $1: [{kind, id, verify, row}], row null: it was removed. A key that was
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
		"  where a.kind <> 'key' or not a.removed returning kind, id)"
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
	/* A batch of rows of a node. $1: its number, $2: the rows, $3: the letters with which its ids begin. Rows are written
	 * once: by revision, or by node and number. The node forgets them after the answer, so the commit waits for the disk. */
	{ "directory_rows", 3, { {
		DIRECTORY_BOXES, 3 }, {
		"insert into atoll.runs as r (id, node, rev, team, box, cause, running, at_ns, day, row)"
		" select distinct on (x.id, x.at_ns) x.id, $1::int, x.rev, x.team, coalesce(x.row ->> 'box', ''),"
		" coalesce(x.row ->> 'cause', ''), coalesce(x.row -> 'running' = 'true', false), x.at_ns, x.at_ns / 86400000000000,"
		" x.row -> 'v1' from jsonb_to_recordset($2::jsonb) as x(kind text, id text, rev bigint, team text, at_ns bigint, row jsonb) where x.kind = 'run' and x.row -> 'v1' is not null order by x.id, x.at_ns, x.rev desc"
		" on conflict (id, day) do update set rev = excluded.rev, cause = excluded.cause, running = excluded.running,"
		" row = excluded.row where r.node = excluded.node and r.rev < excluded.rev", 2 }, {
		"insert into atoll.events (node, seq, team, box, at_ns, day, row)"
		" select $1::int, x.id::bigint, x.team, coalesce(x.row ->> 'box', ''), x.at_ns, x.at_ns / 86400000000000, x.row"
		" from jsonb_to_recordset($2::jsonb) as x(kind text, id text, rev bigint, team text, at_ns bigint, row jsonb) where x.kind = 'event' on conflict do nothing", 2 }, {
		"insert into atoll.audit (node, seq, team, at_ns, day, row)"
		" select $1::int, x.id::bigint, x.team, x.at_ns, x.at_ns / 86400000000000, x.row"
		" from jsonb_to_recordset($2::jsonb) as x(kind text, id text, rev bigint, team text, at_ns bigint, row jsonb) where x.kind = 'audit' on conflict do nothing", 2 }, {
		"insert into atoll.usage as u (node, kind, id, rev, team, day, row)"
		" select distinct on (x.kind, x.id) $1::int, x.kind, x.id, x.rev, x.team, x.at_ns / 86400000000000, x.row"
		" from jsonb_to_recordset($2::jsonb) as x(kind text, id text, rev bigint, team text, at_ns bigint, row jsonb) where x.kind in ('usage', 'day') order by x.kind, x.id, x.rev desc"
		" on conflict (node, kind, id) do update set rev = excluded.rev, row = excluded.row where u.rev < excluded.rev", 2 } } },
	/* The same of new boxes only, for a row that its gateway has from the answer of the node, which sends it, too. */
	{ "directory_boxes", 3, { {
		"set local synchronous_commit = off", 0 }, {
		DIRECTORY_BOXES, 3 } } },
	{ "directory_maintain", 3, { {
		"select atoll.maintain($1::int, $2::int, $3::int)", 3 } } },
	/* Lists. null: no such filter. Rows: document, node, and the two values of the position. */
	{ "boxes_list", 8, { {
		"select row ->> 'v1', node, created_ns, id from atoll.boxes where team = $1"
		" and case when $2::text is null then state <> 'deleted' else $2 = 'all' or state = $2 end"
		" and ($2 is not null or state <> 'deleted') and ($2 = any (array['all', 'deleted']) or not exists"
		" (select from atoll.deletions d where d.id = boxes.id)) and ($3::text is null or template = $3)"
		" and ($4::text is null or starts_with(name, $4)) and ($5::jsonb is null or row #> '{v1,metadata}' @> $5::jsonb)"
		" and ($6::bigint is null or (created_ns, id) < ($6::bigint, $7::text))"
		" order by created_ns desc, id desc limit $8::int", 8 } } },
	{ "sandboxes_list", 5, { {
		"select row ->> 'e2b', node, started_ns, id from atoll.boxes where team = $1 and state <> 'deleted'"
		" and row #>> '{e2b,state}' = any (string_to_array($2, ','))"
		" and not exists (select from atoll.deletions d where d.id = boxes.id)"
		" and ($3::bigint is null or (started_ns, id) < ($3::bigint, $4::text))"
		" order by started_ns desc, id desc limit $5::int", 5 } } },
	{ "runs_list", 7, { {
		"select row::text, node, at_ns, id from atoll.runs where team = $1 and ($2::text is null or box = $2)"
		" and ($3::text is null or cause = $3) and ($4::text is null or running)"
		" and ($5::bigint is null or (at_ns, id) < ($5::bigint, $6::text))"
		" order by at_ns desc, id desc limit $7::int", 7 } } },
	/* $7: the number of an event after which (oldest first) or before which the list begins. */
	{ "events_list", 8, { {
		"(select row::text, node, at_ns, seq, n from atoll.events where $3 = 'newest' and team = $1 and ($2::text is null or box = $2)"
		" and ($4::bigint is null or (at_ns, node, seq) < ($4::bigint, $5::int, $6::bigint))"
		" and ($7::bigint is null or (at_ns, node, seq) < (select e.at_ns, e.node, e.seq from atoll.events e where e.n = $7::bigint and e.team = $1))"
		" order by at_ns desc, node desc, seq desc limit $8::int) union all"
		" (select row::text, node, at_ns, seq, n from atoll.events where $3 = 'oldest' and team = $1 and ($2::text is null or box = $2)"
		" and ($4::bigint is null or (at_ns, node, seq) > ($4::bigint, $5::int, $6::bigint))"
		" and ($7::bigint is null or (at_ns, node, seq) > (select e.at_ns, e.node, e.seq from atoll.events e where e.n <= $7::bigint and e.team = $1"
		"  order by e.n desc limit 1))"
		" order by at_ns, node, seq limit $8::int)", 8 } } },
	/* What comes after a position (transaction, node, number), in the order of transactions: see accounts_changed. */
	{ "events_followed", 5, { {
		"select pg_snapshot_xmin(pg_current_snapshot())::text", 0 }, {
		"select row::text, node, at_ns, seq, xid::text, n from atoll.events where team = $1 and ($2::text is null or box = $2)"
		" and (xid, node, seq) > ($3::xid8, $4::int, $5::bigint) and xid < pg_snapshot_xmin(pg_current_snapshot())"
		" order by xid, node, seq limit 200", 5 } } },
	/* The position of the event with the number $2, or of the last one of the team before it. */
	{ "events_after_number", 2, { {
		"select pg_snapshot_xmin(pg_current_snapshot())::text", 0 }, {
		"select xid::text, node, seq from atoll.events where team = $1 and n <= $2::bigint order by n desc limit 1", 2 } } },
	/* The transaction of the first event after a position in a list: (ns, node, number). */
	{ "events_after_page", 4, { {
		"select pg_snapshot_xmin(pg_current_snapshot())::text", 0 }, {
		"select min(xid)::text from atoll.events where team = $1 and (at_ns, node, seq) > ($2::bigint, $3::int, $4::bigint)"
		" having min(xid) is not null", 4 } } },
	{ "audit_list", 10, { {
		"select row::text, node, at_ns, seq from atoll.audit where ($1::text is null or team = $1)"
		" and ($2::text is null or row ->> 'who' = $2) and ($3::text is null or row ->> 'action' = $3"
		"  or (right($3, 1) = '.' and starts_with(row ->> 'action', $3))) and ($4::text is null or row ->> 'subject' = $4)"
		" and ($5::bigint is null or at_ns >= $5::bigint) and ($6::bigint is null or at_ns < $6::bigint)"
		" and ($7::bigint is null or (at_ns, node, seq) < ($7::bigint, $8::int, $9::bigint))"
		" order by at_ns desc, node desc, seq desc limit $10::int", 10 } } },
	/* What teams have used, of days $2 to $3 by $4 (store/usage.h); $1: the team, null: all. Then the same by currency, the days
	 * of the team from $5, and its boxes. */
	{ "usage", 5, { {
		"with u as materialized (select team, day, row from atoll.usage where kind = 'usage' and day between $2::int and $3::int"
		"  and ($1::text is null or team = $1) and (row ->> 'dimension')::int = case $4 when 'key' then 1 when 'tag' then 2"
		"  when 'template' then 3 else 4 end),"
		" v as (select row, case $4 when 'team' then team when 'day' then to_char(date '1970-01-01' + day, 'YYYY-MM-DD')"
		"  when 'month' then to_char(date '1970-01-01' + day, 'YYYY-MM') else row ->> 'value' end as value from u)"
		" select value, row ->> 'currency'," USAGE_SUMS " from v group by 1, 2"
		" order by case when $4 in ('day', 'month') then value end, sum((row ->> 'cost_nano')::numeric) desc,"
		" sum((row ->> 'cpu_us')::numeric) desc, value limit 10001", 4 }, {
		"select '', row ->> 'currency'," USAGE_SUMS " from atoll.usage where kind = 'usage' and day between $2::int and $3::int"
		" and ($1::text is null or team = $1) and (row ->> 'dimension')::int = 4 group by 2"
		" order by sum((row ->> 'cost_nano')::numeric) desc, 2", 3 }, {
		"select day, sum((row ->> 'executions')::numeric), sum((row ->> 'compute_ms')::numeric), sum((row ->> 'output_bytes')::numeric),"
		" sum((row ->> 'boxes_created')::numeric) from atoll.usage where kind = 'day' and day >= $5::int and team = $1"
		" and $2::int is not null and $3::int is not null and $4::text is not null group by day", 5 }, {
		"select count(*) from atoll.boxes where team = $1 and state in ('running', 'paused')", 1 } } },
	/* The nodes that have boxes of this name, of any team. */
	{ "boxes_named", 1, { {
		"select distinct node from atoll.boxes where name = $1 and name <> '' and state <> 'deleted' limit 2", 1 } } },
	/* Boxes that were restarted on another node than that of their id. $1: the state of the table when it was read last. */
	{ "moved_list", 1, { {
		"select count(*) || '/' || coalesce(sum(hashtextextended(id || ' ' || node || ' ' || epoch, 0)), 0) from atoll.moved", 0 }, {
		"select id, node, epoch from atoll.moved where (select count(*) || '/' || coalesce(sum(hashtextextended(id || ' ' || node"
		" || ' ' || epoch, 0)), 0) from atoll.moved) <> $1", 1 } } },
	/* $1 was moved from $2 to $3 with epoch $4; a later move of it counts. */
	{ "moved_add", 4, { {
		"insert into atoll.moved as m (id, node, epoch) values ($1, $3::int, $4::bigint)"
		" on conflict (id) do update set node = excluded.node, epoch = excluded.epoch where m.node = $2::int", 4 } } },
	/* Has the box ended on its node, as far as known? Has a client deleted it while its node could not be reached? */
	{ "box_ended", 1, { {
		"select 1 from atoll.boxes where id = $1 and state = 'deleted' and row #>> '{v1,cause}' is distinct from 'host'"
		" union all select 1 from atoll.deletions where id = $1", 1 } } },
	/* A client of team $2 deletes box $1, whose node $3 cannot be reached; $4: its identity. */
	{ "deletion_add", 4, { {
		"insert into atoll.deletions as d (id, node, identity) select id, $3::int, $4 from atoll.boxes where id = $1 and team = $2"
		" and state <> 'deleted' on conflict (id) do update set node = excluded.node, identity = excluded.identity returning id", 4 } } },
	{ "deletions_due", 0, { {
		"select id, identity from atoll.deletions order by at limit 500", 0 } } },
	/* Objects of the object store. A URL of an object is made only after object_use or object_add, so `used` is the time of its
	 * newest URL, which is valid for 15 minutes. $1: id of a snapshot, $2: its team. */
	{ "object_use", 2, { {
		"update atoll.objects set used = clock_timestamp() where state = 'ready' and key = (select key from atoll.objects"
		" where kind = 'snapshot' and id = $1 and team = $2 and state = 'ready' order by created desc limit 1)"
		" returning key, sha256, bytes", 2 } } },
	{ "object_add", 5, { {
		"insert into atoll.objects (key, kind, id, team, name, node) values ($1, 'snapshot', $2, $3, $4, $5::int)", 5 } } },
	{ "object_ready", 3, { {
		"update atoll.objects set state = 'ready', used = clock_timestamp(), sha256 = $2, bytes = $3::bigint"
		" where key = $1 and state = 'new' returning key", 3 } } },
	{ "object_damaged", 1, { {
		"update atoll.objects set state = 'deleting' where key = $1", 1 } } },
	{ "object_forget", 2, { {
		"update atoll.objects set state = 'deleting' where kind = 'snapshot' and team = $1 and (id = $2 or (name = $2 and name <> ''))"
		" and state = 'ready'", 2 } } },
	{ "object_find", 2, { {
		"select id, node from atoll.objects where kind = 'snapshot' and team = $1 and state = 'ready'"
		" and (id = $2 or (name = $2 and name <> '')) order by created limit 1", 2 } } },
	/* Objects whose last URL has expired, and those whose node is asked whether the snapshot exists. */
	{ "objects_due", 0, { {
		"update atoll.objects set state = 'deleting' where state = 'new' and used < clock_timestamp() - interval '1 hour'", 0 }, {
		"select key from atoll.objects where state = 'deleting' and used < clock_timestamp() - interval '20 minutes' limit 20", 0 }, {
		"update atoll.objects set checked = clock_timestamp() where key in (select key from atoll.objects where state = 'ready'"
		" and checked < clock_timestamp() - interval '1 hour' order by checked limit 20 for update skip locked)"
		" returning key, id, node, team, used::text", 0 } } },
	/* $2: `used` before the node was asked: a use since then keeps the object. */
	{ "object_unreferenced", 2, { {
		"update atoll.objects set state = 'deleting' where key = $1 and state = 'ready' and used = $2::timestamptz", 2 } } },
	{ "object_gone", 1, { {
		"delete from atoll.objects where key = $1 and state = 'deleting'", 1 } } },
	{ "deletion_done", 1, { {
		"delete from atoll.deletions where id = $1", 1 } } },
	/* The share of a gateway of the boxes that a team may have, $5: what it has in all, $4 at most. Live boxes and the shares
	 * of all gateways are never more than the limit (cluster/quota_share.h). $3: the process of the gateway; the share of an
	 * earlier one is returned when it no longer has a request in progress. $6: what the gateway may use until it has the answer.
	 * It keeps that much although live boxes and shares seem to be above the limit: a box that has just become a live one still
	 * is a part of the share of its gateway. */
	{ "share_boxes", 6, { {
		"select pg_advisory_xact_lock(hashtextextended($1, 7270715003))", 1 }, {
		"delete from atoll.shares where team = $1 and (at < now() - interval '1 hour' or (gateway = $2::int and holder <> $3"
		" and at < now() - interval '15 s') or gateway in (select number from atoll.gateways where removed is not null))", 3 }, {
		"insert into atoll.shares (team, gateway, holder) values ($1, $2::int, $3) on conflict do nothing", 3 }, {
		"update atoll.shares s set at = now(), amount = (select greatest($6::bigint, case when $4::bigint <= m.own then $4::bigint"
		"  else m.own + least($4::bigint - m.own, (m.most - m.own + 1) / 2) end) from (select l.most, least(s.amount, l.most) as own"
		"  from (select greatest($5::bigint - (select count(*) from atoll.boxes b where b.team = $1 and b.state in ('running', 'paused'))"
		"   - (select coalesce(sum(o.amount), 0) from atoll.shares o where o.team = $1 and (o.gateway, o.holder) <> ($2::int, $3)),"
		"   0)::bigint as most) l) m) where s.team = $1 and s.gateway = $2::int and s.holder = $3 returning s.amount", 6 } } },
	/* What team $1 may use of resource $2 in the period that begins on day $3 on node $4, which has used $5 of it: that, and half of
	 * what is left of the limit $6, or all if that is $7 or less. The amounts of all nodes, or what they have used if that is more,
	 * are never more than the limit. */
	{ "grant_raise", 7, { {
		"select pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 7270715004))", 2 }, {
		"delete from atoll.grants where team = $1 and resource = $2 and period < $3::int - 40", 3 }, {
		"insert into atoll.grants (team, resource, period, node) values ($1, $2, $3::int, $4::int) on conflict do nothing", 4 }, {
		"update atoll.grants g set version = g.version + 1, amount = greatest($5::bigint, least($6::bigint - l.others,"
		"  greatest(g.amount, $5::bigint + case when l.rest <= 0 then 0 when l.rest <= $7::bigint then l.rest"
		"  else greatest(l.rest / 2, $7::bigint) end))) from (select o.others, $6::bigint - o.others - $5::bigint as rest from"
		"  (select coalesce(sum(greatest(coalesce(n.amount, 0), coalesce(u.used, 0))), 0)::bigint as others from"
		"   (select node, amount from atoll.grants where team = $1 and resource = $2 and period = $3::int and node <> $4::int) n"
		"   full join (select node, sum((row ->> $2::text)::numeric)::bigint as used from atoll.usage where kind = 'day'"
		"    and team = $1 and day >= $3::int and node <> $4::int group by node) u on u.node = n.node) o) l"
		" where g.team = $1 and g.resource = $2 and g.period = $3::int and g.node = $4::int returning g.amount, g.version", 7 }, {
		"select node, version from atoll.grants where team = $1 and resource = $2 and period = $3::int and node <> $4::int"
		" and amount > 0 order by amount desc limit 8", 4 } } },
	/* The node has lowered its grant of version $5 to $6, which has the next version. */
	{ "grant_lower", 6, { {
		"select pg_advisory_xact_lock(hashtextextended($1 || ' ' || $2, 7270715004))", 2 }, {
		"update atoll.grants set amount = $6::bigint, version = version + 1 where team = $1 and resource = $2"
		" and period = $3::int and node = $4::int and version = $5::bigint and amount > $6::bigint returning 1", 6 } } },
	/* The node that a request with an Idempotency-Key was sent to first; $3: the one that this gateway would choose. */
	{ "idempotency", 3, { {
		"insert into atoll.idempotency (team, key, node) values ($1, $2, $3::int) on conflict do nothing", 3 }, {
		"select node from atoll.idempotency where team = $1 and key = $2", 2 } } },
};
/* clang-format on */

const struct query *query_find(const char *name)
{
	for (unsigned i = 0; name && i < ARRAY_LEN(queries); i++)
		if (strcmp(queries[i].name, name) == 0)
			return &queries[i];
	return NULL;
}

/* Rows of nodes: sent for each box, and inserted in the same way whatever they contain. */
static int query_is_frequent(const struct query *q)
{
	return strcmp(q->name, "directory_rows") == 0 || strcmp(q->name, "directory_boxes") == 0;
}

int query_send(struct postgres *p, const json_t *m, postgres_done *done, void *user, struct err *e)
{
	const char *name = json_string_value(json_object_get(m, "name"));
	const json_t *params = json_object_get(m, "params");
	const struct query *q = query_find(name);
	struct postgres_statement v[POSTGRES_STATEMENTS] = { 0 };
	unsigned n = 0;

	/* The server is of another version: the database has not rejected anything. */
	if (!q)
		return err_set(e, ERR_SYS, "the cluster process has no query '%.40s'",
			       name ? name : "");
	if (json_array_size(params) != q->params)
		return err_set(e, ERR_SYS, "query %s has %u values, not %zu", name, q->params,
			       json_array_size(params));
	for (; n < POSTGRES_STATEMENTS && q->statements[n].sql; n++) {
		v[n].sql = q->statements[n].sql;
		v[n].nparams = q->statements[n].params;
		for (unsigned i = 0; i < v[n].nparams; i++)
			v[n].params[i] = json_string_value(json_array_get(params, i));
	}
	(query_is_frequent(q) ? postgres_send_frequent : postgres_send)(p, v, n, done, user);
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
