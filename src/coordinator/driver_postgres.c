/* driver_postgres.c - the coordinator in PostgreSQL.
 *
 * A transaction first locks the rows that it depends on, in a statement of its own; the statements after it see
 * what was committed before the lock was granted. Rows are locked in the order gateways, nodes. */
#include "base/buf.h"
#include "coordinator/answer.h"
#include "coordinator/coordinator.h"
#include "coordinator/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver_postgres {
	struct coordinator coordinator;
	struct postgres *db;
	struct timer refuse; /* ends requests that are invalid */
	struct postgres_ask *asks;
};

struct postgres_ask {
	struct postgres_ask *next;
	struct driver_postgres *driver; /* NULL: freed meanwhile */
	struct answer answer;
	struct err e; /* the request is invalid */
};

/* ---- statements ---- */

#define POSTGRES_VIEW                                                                              \
	"select 'g', number, renewals, incarnation, 0::bigint, '' from atoll.gateways "            \
	"where removed is null "                                                                   \
	"union all select 't', node, gateway, serial, 0, '' from atoll.tunnels where up "          \
	"union all select 'n', number, epoch, forgotten, (state = 'lost')::int, "                  \
	"name from atoll.nodes where state <> 'removed'"

/* $1 to $4: the key. A name is held while its owner's epoch is newer than what was forgotten of that node. */
#define POSTGRES_THIS_NAME "n.team = $1 and n.kind = $2 and n.name = $3 and n.template = $4"
#define POSTGRES_IS_HELD                                                                           \
	"exists (select 1 from atoll.nodes o where o.number = n.node and n.epoch > o.forgotten "   \
	"and o.state <> 'removed')"
#define POSTGRES_FIND                                                                              \
	"select n.team, n.kind, n.name, n.template, n.node, n.epoch, n.box from atoll.names n "    \
	"where " POSTGRES_THIS_NAME " and " POSTGRES_IS_HELD

/* Which value of the request is a parameter. */
enum postgres_param {
	P_GATEWAY = 1,
	P_NODE,
	P_FROM,
	P_INCARNATION,
	P_SERIAL,
	P_EPOCH,
	P_FROM_EPOCH,
	P_UP,
	P_DEAD,
	P_DEAD_RENEWALS,
	P_TEAM,
	P_KIND,
	P_NAME,
	P_TEMPLATE,
	P_BOX,
	P_NEW_BOX,
	P_MACHINE,
	P_FINGERPRINT,
	P_ADDRESS,
	P_VERSION,
};
#define P_KEY P_TEAM, P_KIND, P_NAME, P_TEMPLATE

struct postgres_row {
	const char *sql;
	unsigned char params[POSTGRES_PARAMS];
};

static const struct postgres_row postgres_ops[COORDINATOR_OPS][POSTGRES_STATEMENTS] = {
	[COORDINATOR_REGISTER] = {
		{ "update atoll.gateways set incarnation = incarnation + 1, renewals = renewals + 1, "
		  "address = $2, version = $3 where number = $1 and removed is null "
		  "returning incarnation",
		  { P_GATEWAY, P_ADDRESS, P_VERSION } },
	},
	[COORDINATOR_RENEW] = {
		{ "select incarnation from atoll.gateways where number = $1 and removed is null for update",
		  { P_GATEWAY } },
		{ "update atoll.gateways set renewals = renewals + 1 "
		  "where number = $1 and incarnation = $2 and removed is null",
		  { P_GATEWAY, P_INCARNATION } },
		{ POSTGRES_VIEW, { 0 } },
	},
	[COORDINATOR_SET_TUNNEL] = {
		/* a gateway that runs boxes, too */
		{ "insert into atoll.nodes (number, name, fingerprint) select number, name, fingerprint "
		  "from atoll.gateways where number = $1 and removed is null on conflict do nothing",
		  { P_NODE } },
		{ "select epoch from atoll.nodes where number = $1 and state <> 'removed' for update",
		  { P_NODE } },
		{ "insert into atoll.tunnels as t (node, gateway, up, serial) "
		  "select number, $2, $3, $4 from atoll.nodes where number = $1 and state <> 'removed' "
		  "on conflict (node, gateway) do update set up = excluded.up, serial = excluded.serial "
		  "where t.serial <= excluded.serial returning 1",
		  { P_NODE, P_GATEWAY, P_UP, P_SERIAL } },
		{ "update atoll.nodes set state = 'up' where number = $1 and state = 'lost' and exists "
		  "(select 1 from atoll.tunnels where node = $1 and gateway = $2 and up and serial = $3)",
		  { P_NODE, P_GATEWAY, P_SERIAL } },
		{ "select n.team, n.kind, n.name, n.template, n.node, n.epoch, n.box from atoll.names n "
		  "where n.node = $1 and $2::bool and " POSTGRES_IS_HELD,
		  { P_NODE, P_UP } },
		{ "select id, epoch from atoll.superseded where node = $1 and $2::bool",
		  { P_NODE, P_UP } },
	},
	[COORDINATOR_DECLARE_LOST] = {
		{ "select 1 from atoll.gateways where number = any ($1::int[]) order by number for share",
		  { P_DEAD } },
		{ "select 1 from atoll.nodes where number = $1 for update", { P_NODE } },
		{ "update atoll.nodes set epoch = epoch + 1, state = 'lost' "
		  "where number = $1 and epoch = $2 and state = 'up' and not exists "
		  "(select 1 from atoll.tunnels t join atoll.gateways g on g.number = t.gateway "
		  "where t.node = $1 and t.up and g.removed is null and not exists "
		  "(select 1 from unnest($3::int[], $4::bigint[]) d (gateway, renewals) "
		  "where d.gateway = g.number and d.renewals = g.renewals)) returning epoch",
		  { P_NODE, P_EPOCH, P_DEAD, P_DEAD_RENEWALS } },
	},
	[COORDINATOR_FORGET_NODE] = {
		{ "update atoll.nodes set forgotten = epoch - 1 "
		  "where number = $1 and epoch = $2 and state = 'lost' returning epoch",
		  { P_NODE, P_EPOCH } },
	},
	[COORDINATOR_CLAIM_NAME] = {
		{ "select 1 from atoll.nodes where number = $1 and epoch = $2 and state = 'up' for share",
		  { P_NODE, P_EPOCH } },
		{ "insert into atoll.names as n (team, kind, name, template, node, epoch, box) "
		  "select $1, $2, $3, $4, number, epoch, $7 from atoll.nodes "
		  "where number = $5 and epoch = $6 and state = 'up' "
		  "on conflict (team, kind, name, template) do update set node = excluded.node, "
		  "epoch = excluded.epoch, box = excluded.box where not " POSTGRES_IS_HELD,
		  { P_KEY, P_NODE, P_EPOCH, P_BOX } },
		{ POSTGRES_FIND, { P_KEY } },
	},
	[COORDINATOR_CHANGE_NAME] = {
		{ "update atoll.names n set box = $7 where " POSTGRES_THIS_NAME
		  " and n.node = $5 and n.box in ($6, $7) returning 1",
		  { P_KEY, P_NODE, P_BOX, P_NEW_BOX } },
	},
	[COORDINATOR_RELEASE_NAME] = {
		{ "delete from atoll.names n where " POSTGRES_THIS_NAME
		  " and n.node = $5 and n.box = $6 returning 1",
		  { P_KEY, P_NODE, P_BOX } },
	},
	[COORDINATOR_FIND_NAME] = {
		{ POSTGRES_FIND, { P_KEY } },
	},
	[COORDINATOR_MOVE_BOX] = {
		{ "select 1 from atoll.nodes where number in ($1, $2) order by number for update",
		  { P_FROM, P_NODE } },
		{ "insert into atoll.moved as m (id, node, epoch) select $1, t.number, t.epoch "
		  "from atoll.nodes f, atoll.nodes t where f.number = $2 and f.epoch = $3 and "
		  "f.state = case when $6::bool then 'up' else 'lost' end and t.number = $4 and "
		  "t.epoch = $5 and t.state = 'up' and t.number <> f.number "
		  "on conflict (id) do update set node = excluded.node, epoch = excluded.epoch "
		  "where m.node = $2 and m.epoch < $3 + $6::bool::int",
		  { P_BOX, P_FROM, P_FROM_EPOCH, P_NODE, P_EPOCH, P_UP } },
		{ "insert into atoll.superseded (node, id, epoch) select $2, $1, $3 from atoll.moved "
		  "where id = $1 and node = $4 and epoch = $5 and not $6::bool "
		  "on conflict (node, id) do update set epoch = excluded.epoch",
		  { P_BOX, P_FROM, P_FROM_EPOCH, P_NODE, P_EPOCH, P_UP } },
		{ "update atoll.names n set node = $6, epoch = $7 where " POSTGRES_THIS_NAME
		  " and n.box = $5 and exists (select 1 from atoll.moved where id = $5 and node = $6 "
		  "and epoch = $7)",
		  { P_KEY, P_BOX, P_NODE, P_EPOCH } },
		{ "select 1 from atoll.moved where id = $1 and node = $2 and epoch = $3",
		  { P_BOX, P_NODE, P_EPOCH } },
	},
	[COORDINATOR_FIND_BOX] = {
		{ "select node, epoch from atoll.moved where id = $1", { P_BOX } },
	},
	[COORDINATOR_SETTLE_BOX] = {
		{ "delete from atoll.superseded where node = $1 and id = $2", { P_NODE, P_BOX } },
	},
	[COORDINATOR_ADD_MACHINE] = {
		{ "select 1 from atoll.nodes where number = $1 and state <> 'removed' union all "
		  "select 1 from atoll.gateways where number = $1 and removed is null",
		  { P_NODE } },
	},
	[COORDINATOR_REMOVE_NODE] = {
		{ "update atoll.nodes set state = 'removed', removed = now(), epoch = epoch + 1 "
		  "where number = $1 and state <> 'removed' returning epoch",
		  { P_NODE } },
		{ "delete from atoll.tunnels where node = $1", { P_NODE } },
	},
};

#define POSTGRES_ASSIGN(table, alive)                                                              \
	{                                                                                          \
		{ "select pg_advisory_xact_lock(7270715002)", { 0 } },                             \
			{ "insert into atoll." table " (number, name, fingerprint) "               \
			  "select nextval('atoll.numbers'), $1, $2 where not exists "              \
			  "(select 1 from atoll." table " where name = $1 and " alive ")",         \
			  { P_MACHINE, P_FINGERPRINT } },                                          \
			{ "select number, fingerprint = $2 from atoll." table                      \
			  " where name = $1 and " alive,                                           \
			  { P_MACHINE, P_FINGERPRINT } },                                          \
	}
static const struct postgres_row postgres_assign_node[POSTGRES_STATEMENTS] =
	POSTGRES_ASSIGN("nodes", "state <> 'removed'");
static const struct postgres_row postgres_assign_gateway[POSTGRES_STATEMENTS] =
	POSTGRES_ASSIGN("gateways", "removed is null");

/* ---- parameters ---- */

struct postgres_texts {
	char number[P_VERSION + 1][24];
	char kind[2];
	struct buf dead, renewals;
};

static const char *postgres_number(struct postgres_texts *x, enum postgres_param p, int64_t value)
{
	snprintf(x->number[p], sizeof(x->number[p]), "%" PRId64, value);
	return x->number[p];
}

static const char *postgres_or_empty(const char *text)
{
	return text ? text : "";
}

static const char *postgres_param(struct postgres_texts *x, const struct coordinator_request *q,
				  enum postgres_param p)
{
	switch (p) {
	case P_GATEWAY:
		return postgres_number(x, p, q->gateway);
	case P_NODE:
		return postgres_number(x, p, q->node);
	case P_FROM:
		return postgres_number(x, p, q->from);
	case P_INCARNATION:
		return postgres_number(x, p, q->incarnation);
	case P_SERIAL:
		return postgres_number(x, p, q->serial);
	case P_EPOCH:
		return postgres_number(x, p, q->epoch);
	case P_FROM_EPOCH:
		return postgres_number(x, p, q->from_epoch);
	case P_UP:
		return q->up ? "true" : "false";
	case P_DEAD:
		return buf_str(&x->dead);
	case P_DEAD_RENEWALS:
		return buf_str(&x->renewals);
	case P_TEAM:
		return postgres_or_empty(q->key.team);
	case P_KIND:
		x->kind[0] = q->key.kind;
		return x->kind;
	case P_NAME:
		return postgres_or_empty(q->key.name);
	case P_TEMPLATE:
		return postgres_or_empty(q->key.template);
	case P_BOX:
		return q->box;
	case P_NEW_BOX:
		return q->new_box;
	case P_MACHINE:
		return q->name;
	case P_FINGERPRINT:
		return q->fingerprint;
	case P_ADDRESS:
		return postgres_or_empty(q->address);
	case P_VERSION:
		return postgres_or_empty(q->version);
	}
	abort();
}

/* "{3,7}": an array. */
static void postgres_list_dead(struct postgres_texts *x, const struct coordinator_request *q)
{
	buf_putc(&x->dead, '{');
	buf_putc(&x->renewals, '{');
	for (unsigned i = 0; i < q->ndead; i++) {
		buf_printf(&x->dead, "%s%d", i ? "," : "", q->dead[i].number);
		buf_printf(&x->renewals, "%s%" PRId64, i ? "," : "", q->dead[i].renewals);
	}
	buf_putc(&x->dead, '}');
	buf_putc(&x->renewals, '}');
}

/* ---- answers ---- */

static void postgres_read_view(struct answer *a, const struct pg_result *r)
{
	for (unsigned i = 0; i < postgres_rows(r); i++) {
		int number = (int)postgres_int(r, i, 1);
		int64_t x = postgres_int(r, i, 2), y = postgres_int(r, i, 3);

		switch (*postgres_text(r, i, 0)) {
		case 'g':
			answer_add_gateway(a, number, x, y);
			break;
		case 't':
			answer_add_tunnel(a, number, (int)x, y);
			break;
		default:
			answer_add_node(a, number, x, y, postgres_int(r, i, 4) != 0,
					postgres_text(r, i, 5));
		}
	}
}

static void postgres_read_names(struct answer *a, const struct pg_result *r)
{
	for (unsigned i = 0; i < postgres_rows(r); i++) {
		struct coordinator_name n = {
			.key = { postgres_text(r, i, 0), *postgres_text(r, i, 1),
				 postgres_text(r, i, 2), postgres_text(r, i, 3) },
			.node = (int)postgres_int(r, i, 4),
			.epoch = postgres_int(r, i, 5),
			.box = postgres_text(r, i, 6),
		};

		answer_add_name(a, &n);
	}
}

static int postgres_read_answer(struct answer *a, const struct postgres_answer *got, struct err *e)
{
	const struct pg_result *first = got->results[0], *last = got->results[got->n - 1];
	struct coordinator_answer *out = &a->answer;

	switch (a->q.op) {
	case COORDINATOR_REGISTER:
		if (!postgres_rows(first))
			return err_set(e, ERR_NOT_FOUND, "there is no gateway %d", a->q.gateway);
		out->incarnation = postgres_int(first, 0, 0);
		return 0;
	case COORDINATOR_RENEW:
		if (!postgres_rows(first))
			return err_set(e, ERR_NOT_FOUND, "there is no gateway %d", a->q.gateway);
		if (postgres_int(first, 0, 0) != a->q.incarnation)
			return err_set(e, ERR_CONFLICT,
				       "another process has registered as gateway %d",
				       a->q.gateway);
		postgres_read_view(a, last);
		return 0;
	case COORDINATOR_SET_TUNNEL:
		first = got->results[1];
		if (!postgres_rows(first))
			return err_set(e, ERR_NOT_FOUND, "there is no node %d", a->q.node);
		if (!postgres_rows(got->results[2]))
			return err_set(e, ERR_CONFLICT,
				       "a later request about this tunnel was carried out before");
		out->done = 1;
		out->epoch = postgres_int(first, 0, 0);
		postgres_read_names(a, got->results[4]);
		for (unsigned i = 0; i < postgres_rows(last); i++)
			answer_add_superseded(a, postgres_text(last, i, 0),
					      postgres_int(last, i, 1));
		return 0;
	case COORDINATOR_DECLARE_LOST:
	case COORDINATOR_FORGET_NODE:
		out->done = postgres_rows(last) > 0;
		out->epoch = out->done ? postgres_int(last, 0, 0) : 0;
		return 0;
	case COORDINATOR_CLAIM_NAME:
		if (!postgres_rows(first))
			return err_set(e, ERR_CONFLICT,
				       "node %d has another epoch than %" PRId64
				       ", or is not connected",
				       a->q.node, a->q.epoch);
		postgres_read_names(a, last);
		out->done = answer_has_claim(a);
		return 0;
	case COORDINATOR_FIND_NAME:
		postgres_read_names(a, last);
		out->done = out->nnames > 0;
		return 0;
	case COORDINATOR_ASSIGN_NUMBER:
		if (!postgres_rows(last) || *postgres_text(last, 0, 1) != 't')
			return err_set(e, ERR_CONFLICT,
				       "the name %.100s belongs to another machine", a->q.name);
		out->done = 1;
		out->number = (int)postgres_int(last, 0, 0);
		return 0;
	case COORDINATOR_FIND_BOX:
		out->done = postgres_rows(last) > 0;
		out->number = out->done ? (int)postgres_int(last, 0, 0) : 0;
		out->epoch = out->done ? postgres_int(last, 0, 1) : 0;
		return 0;
	case COORDINATOR_SETTLE_BOX:
		out->done = 1;
		return 0;
	case COORDINATOR_REMOVE_NODE:
		out->done = postgres_rows(first) > 0;
		return 0;
	default: /* the last statement returns a row if it was done */
		out->done = postgres_rows(last) > 0;
		return 0;
	}
}

/* ---- requests ---- */

static void postgres_ask_free(struct postgres_ask *x)
{
	answer_fini(&x->answer);
	free(x);
}

/* Also called for a driver that was freed: the connection is not the driver's. */
static void postgres_ask_done(void *user, const struct postgres_answer *got, const struct err *e)
{
	struct postgres_ask *x = user;
	struct err why;

	if (x->driver) {
		struct postgres_ask **at = &x->driver->asks;

		while (*at != x)
			at = &(*at)->next;
		*at = x->next;
		if (!e && postgres_read_answer(&x->answer, got, &why) < 0)
			e = &why;
		answer_give(&x->answer, e);
	}
	postgres_ask_free(x);
}

static void driver_postgres_refuse(struct timer *t)
{
	struct driver_postgres *d = loop_owner(t, struct driver_postgres, refuse);
	struct postgres_ask **at = &d->asks, *refused = NULL;

	while (*at) {
		struct postgres_ask *x = *at;

		if (!x->e.kind) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		x->next = refused;
		refused = x;
	}
	while (refused) {
		struct postgres_ask *x = refused;

		refused = x->next;
		answer_give(&x->answer, &x->e);
		postgres_ask_free(x);
	}
}

static const struct postgres_row *postgres_rows_of(const struct coordinator_request *q)
{
	if (q->op != COORDINATOR_ASSIGN_NUMBER)
		return postgres_ops[q->op];
	return !strcmp(q->role, "node") ? postgres_assign_node : postgres_assign_gateway;
}

static void driver_postgres_ask(struct coordinator *c, const struct coordinator_request *q,
				coordinator_done *done, void *user)
{
	struct driver_postgres *d = (struct driver_postgres *)c;
	struct postgres_statement v[POSTGRES_STATEMENTS] = { 0 };
	struct postgres_ask *x = calloc(1, sizeof(*x));
	struct postgres_texts texts = { 0 };
	const struct postgres_row *rows;
	unsigned n = 0;

	if (!x)
		abort();
	x->driver = d;
	x->next = d->asks;
	d->asks = x;
	answer_init(&x->answer, q, done, user);
	if (coordinator_request_check(q, &x->e) < 0) {
		timer_set(&d->refuse, 0);
		return;
	}
	postgres_list_dead(&texts, q);
	rows = postgres_rows_of(q);
	for (; n < POSTGRES_STATEMENTS && rows[n].sql; n++) {
		v[n].sql = rows[n].sql;
		for (unsigned k = 0; k < POSTGRES_PARAMS && rows[n].params[k]; k++)
			v[n].params[v[n].nparams++] =
				postgres_param(&texts, q, (enum postgres_param)rows[n].params[k]);
	}
	postgres_send(d->db, v, n, postgres_ask_done, x);
	buf_fini(&texts.dead);
	buf_fini(&texts.renewals);
}

static const char *driver_postgres_trouble(const struct coordinator *c)
{
	return postgres_trouble(((const struct driver_postgres *)c)->db);
}

static void driver_postgres_free(struct coordinator *c)
{
	struct driver_postgres *d = (struct driver_postgres *)c;

	timer_fini(&d->refuse);
	while (d->asks) {
		struct postgres_ask *x = d->asks;

		d->asks = x->next;
		x->driver = NULL;
		if (x->e.kind)
			postgres_ask_free(x);
	}
	free(d);
}

static const struct coordinator_driver driver_postgres = { driver_postgres_ask,
							   driver_postgres_trouble,
							   driver_postgres_free };

int coordinator_postgres_new(struct coordinator **out, struct loop *l, struct postgres *p,
			     struct err *e)
{
	struct driver_postgres *d = calloc(1, sizeof(*d));

	if (!d)
		return err_sys(e, "coordinator");
	d->coordinator.driver = &driver_postgres;
	d->db = p;
	timer_init(&d->refuse, l, driver_postgres_refuse);
	*out = &d->coordinator;
	return 0;
}
