/* schema.c - see schema.h. */
#include "coordinator/schema.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "coordinator/postgres.h"

#include <string.h>

/* Each text may have several statements. Step n is schema_steps[n - 1]. */
static const char *const schema_steps[] = {
	/* 1: liveness and ownership (coordinator.h), join tokens */
	"create sequence atoll.numbers minvalue 1 maxvalue 32767;"
	"create table atoll.nodes (number int primary key, name text not null, fingerprint text not null,"
	"  epoch bigint not null default 1, forgotten bigint not null default 0,"
	"  state text not null default 'lost' check (state in ('up', 'lost', 'removed')),"
	"  removed timestamptz);"
	"create unique index nodes_name on atoll.nodes (name) where state <> 'removed';"
	"create table atoll.gateways (number int primary key, name text not null, fingerprint text not null,"
	"  renewals bigint not null default 0, incarnation bigint not null default 0,"
	"  address text not null default '', version text not null default '', removed timestamptz);"
	"create unique index gateways_name on atoll.gateways (name) where removed is null;"
	/* serial: of the last request about this tunnel */
	"create table atoll.tunnels (node int not null, gateway int not null, up bool not null,"
	"  serial bigint not null, primary key (node, gateway));"
	"create table atoll.names (team text not null, kind \"char\" not null, name text not null,"
	"  template text not null, node int not null, epoch bigint not null, box text not null,"
	"  primary key (team, kind, name, template));"
	"create index names_node on atoll.names (node);"
	/* boxes whose id does not name the node that runs them */
	"create table atoll.moved (id text primary key, node int not null, epoch bigint not null);"
	/* copies of them that a node must destroy when it returns */
	"create table atoll.superseded (node int not null, id text not null, epoch bigint not null,"
	"  primary key (node, id));"
	"create table atoll.joins (hash bytea primary key, role text not null,"
	"  expires timestamptz not null, uses int not null);",
	/* 2: the CA of the cluster: a database belongs to one */
	"create table atoll.authority (one bool primary key default true check (one), "
	"  fingerprint text not null);",
	/* 3: keys and teams of all gateways; a removed one stays, so that no gateway can bring it back */
	"create table atoll.accounts (kind text not null, id text not null, row jsonb not null,"
	"  removed bool not null default false, primary key (kind, id));"
	"create table atoll.changes (seq bigint generated always as identity,"
	"  xid xid8 not null default pg_current_xact_id(), kind text not null, id text not null,"
	"  at timestamptz not null default now());"
	"create index changes_order on atoll.changes (xid, seq);"
	"create index changes_at on atoll.changes (at);",
	/* 4: the directory: rows of nodes. Days are partitions, which maintain() makes and drops; a row of another day is in
	 * the default one. */
	"create table atoll.boxes (id text primary key, node int not null, rev bigint not null, team text not null,"
	"  state text not null, template text not null, name text not null, created_ns bigint not null,"
	"  started_ns bigint not null, ended_ns bigint not null, row jsonb not null) with (fillfactor = 80);"
	"create index boxes_current on atoll.boxes (team, created_ns desc, id desc) where state <> 'deleted';"
	"create index boxes_all on atoll.boxes (team, created_ns desc, id desc);"
	"create index boxes_node on atoll.boxes (node) where state <> 'deleted';"
	"create index boxes_ended on atoll.boxes (ended_ns) where state = 'deleted';"
	"create index boxes_metadata on atoll.boxes using gin ((row #> '{v1,metadata}') jsonb_path_ops);"
	"create table atoll.runs (id text not null, node int not null, rev bigint not null, team text not null,"
	"  box text not null, cause text not null, running bool not null, at_ns bigint not null, day int not null,"
	"  row jsonb not null, primary key (id, day)) partition by range (day);"
	"create index runs_team on atoll.runs (team, at_ns desc, id desc);"
	"create index runs_box on atoll.runs (box, at_ns desc);"
	"create table atoll.events (node int not null, seq bigint not null,"
	"  xid xid8 not null default pg_current_xact_id(), team text not null, box text not null,"
	"  at_ns bigint not null, day int not null, row jsonb not null, primary key (node, seq, day))"
	"  partition by range (day);"
	"create index events_team on atoll.events (team, at_ns, node, seq);"
	"create index events_box on atoll.events (box, at_ns);"
	"create index events_order on atoll.events (xid);"
	"create table atoll.audit (node int not null, seq bigint not null, team text not null,"
	"  at_ns bigint not null, day int not null, row jsonb not null, primary key (node, seq, day))"
	"  partition by range (day);"
	"create index audit_time on atoll.audit (at_ns, node, seq);"
	"create table atoll.runs_other partition of atoll.runs default;"
	"create table atoll.events_other partition of atoll.events default;"
	"create table atoll.audit_other partition of atoll.audit default;"
	"create table atoll.usage (node int not null, kind text not null, id text not null, rev bigint not null,"
	"  team text not null, day int not null, row jsonb not null, primary key (node, kind, id));"
	"create index usage_day on atoll.usage (day, team);"
	"create table atoll.idempotency (team text not null, key text not null, node int not null,"
	"  at timestamptz not null default now(), primary key (team, key));"
	"create index idempotency_at on atoll.idempotency (at);"
	"create function atoll.maintain(event_days int, run_days int, audit_days int) returns void language plpgsql as $body$"
	" declare today int := extract(epoch from now())::bigint / 86400; t text; d int; keep int; part text; begin"
	"  if not pg_try_advisory_xact_lock(7270715002) then return; end if;"
	"  foreach t in array array['runs', 'events', 'audit'] loop"
	"   keep := case t when 'runs' then run_days when 'events' then event_days else audit_days end;"
	"   for d in today - 1 .. today + 2 loop begin"
	"    execute format('create table if not exists atoll.%I partition of atoll.%I for values from (%s) to (%s)',"
	"     t || '_' || d, t, d, d + 1);"
	"    exception when others then null; end; end loop;"
	"   for part in select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid"
	"    where i.inhparent = ('atoll.' || t)::regclass and c.relname ~ ('^' || t || '_[0-9]+$')"
	"    and substring(c.relname from '[0-9]+$')::int < today - keep loop"
	"    execute format('drop table atoll.%I', part); end loop;"
	"   execute format('delete from atoll.%I where day < %s', t || '_other', today - keep);"
	"  end loop;"
	"  delete from atoll.boxes where state = 'deleted' and ended_ns < (today - run_days)::bigint * 86400000000000;"
	"  delete from atoll.usage where day < today - audit_days;"
	"  delete from atoll.idempotency where at < now() - interval '25 hours';"
	" end $body$;",
	/* 5: boxes that a client has deleted while their node could not be reached */
	"create table atoll.deletions (id text primary key, node int not null, identity text not null,"
	"  at timestamptz not null default now());"
	"create index deletions_node on atoll.deletions (node);",
	/* 6: shares of the boxes that a team may have (queries.c) */
	"create table atoll.shares (team text not null, gateway int not null, holder text not null,"
	"  amount bigint not null default 0, at timestamptz not null default now(),"
	"  primary key (team, gateway, holder));",
	/* 7: previews by the name of a box */
	"create index boxes_name on atoll.boxes (name) where name <> '' and state <> 'deleted';",
	/* 8: one number per event in the whole cluster, with which a client continues a stream */
	"create sequence atoll.event_numbers;"
	"alter table atoll.events add column n bigint not null default nextval('atoll.event_numbers');"
	"create index events_number on atoll.events (n);",
	/* 9: what a team may use on each node (queries.c) */
	"create table atoll.grants (team text not null, resource text not null, period int not null, node int not null,"
	"  amount bigint not null default 0, version bigint not null default 0,"
	"  primary key (team, resource, period, node));",
	/* 10: the object store: a key is used once */
	"create table atoll.objects (key text primary key, kind text not null, id text not null, team text not null,"
	"  name text not null, node int not null, state text not null default 'new'"
	"  check (state in ('new', 'ready', 'deleting')), sha256 text not null default '', bytes bigint not null default 0,"
	"  created timestamptz not null default clock_timestamp(), used timestamptz not null default clock_timestamp(),"
	"  checked timestamptz not null default clock_timestamp());"
	"create index objects_id on atoll.objects (kind, id);"
	"create index objects_due on atoll.objects (state, used);",
};
_Static_assert(ARRAY_LEN(schema_steps) == SCHEMA_VERSION, "one text per step");

const char *schema_query(void)
{
	return "select schema, oldest_reader from atoll.version";
}

int schema_check(const struct pg_result *r, struct err *e)
{
	const char *state = postgres_sqlstate(r);
	int64_t found, oldest;

	if (!strcmp(state, "42P01") || !strcmp(state, "3F000")) /* no such table, no such schema */
		return 1;
	if (*state)
		return err_set(e, ERR_SYS, "database: the table atoll.version cannot be read (%s)",
			       state);
	if (postgres_rows(r) != 1)
		return err_set(e, ERR_SYS, "database: atoll.version has %u rows, not one",
			       postgres_rows(r));
	found = postgres_int(r, 0, 0);
	oldest = postgres_int(r, 0, 1);
	if (oldest > SCHEMA_VERSION)
		return err_set(
			e, ERR_SYS,
			"database: its tables have version %lld and need a program that knows "
			"version %lld; this one knows %d: install a newer atoll",
			(long long)found, (long long)oldest, SCHEMA_VERSION);
	return found < SCHEMA_VERSION;
}

/* PostgreSQL executes this text as one transaction. Two gateways may do so at the same time: the second one
 * waits, and finds the steps done. */
const char *schema_setup(void)
{
	static struct buf text;

	if (text.len)
		return buf_str(&text);
	buf_puts(
		&text,
		"select pg_advisory_xact_lock(7270715001);"
		"create schema if not exists atoll;"
		"create table if not exists atoll.version (one bool primary key default true "
		"check (one), schema int not null, oldest_reader int not null);"
		"insert into atoll.version (schema, oldest_reader) values (0, 0) on conflict do nothing;");
	for (int i = 0; i < SCHEMA_VERSION; i++)
		buf_printf(&text,
			   "do $step$ begin if (select schema from atoll.version) < %d then %s "
			   "update atoll.version set schema = %d, "
			   "oldest_reader = greatest(oldest_reader, %d); end if; end $step$;",
			   i + 1, schema_steps[i], i + 1, SCHEMA_OLDEST_READER);
	return buf_str(&text);
}
