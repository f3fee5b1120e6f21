/* driver_mixed.c - the coordinator of a cluster with etcd: etcd decides, PostgreSQL has the members.
 *
 *   ASSIGN_NUMBER, REMOVE_NODE   PostgreSQL, then etcd
 *   REGISTER                     etcd; if it does not know this gateway, all members are added to it first
 *   all others                   etcd; states of nodes and tunnels are written to PostgreSQL afterwards, for `atoll node ls`
 *
 * A member is added to etcd with a higher epoch than it had, so that an empty etcd, or one that replaces PostgreSQL as
 * coordinator, begins with nodes that all have lost what they owned. */
#include "coordinator/answer.h"
#include "coordinator/coordinator.h"
#include "coordinator/etcd.h"
#include "coordinator/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct driver_mixed {
	struct coordinator coordinator; /* the first member */
	struct postgres *db;            /* borrowed */
	struct coordinator *rows, *etcd;
	struct mixed_ask *asks;
};

struct mixed_ask {
	struct mixed_ask *next;
	struct driver_mixed *driver; /* NULL: freed */
	struct answer answer;
	int number;         /* ASSIGN_NUMBER: the answer of PostgreSQL */
	unsigned adding;    /* members that are being added to etcd */
	int has_added;      /* REGISTER was sent again */
	struct err failure; /* of one of them */
};

static void mixed_end(struct mixed_ask *x, const struct err *e)
{
	struct mixed_ask **at = &x->driver->asks;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	answer_give(&x->answer, e);
	answer_fini(&x->answer);
	free(x);
}

/* ---- states, for lists ---- */

static void mixed_written(void *user, const struct postgres_answer *a, const struct err *e)
{
	(void)user;
	(void)a;
	(void)e; /* the next change writes it again */
}

static void mixed_write_state(struct mixed_ask *x, int64_t answered_epoch)
{
	static const char
		up[] = "update atoll.nodes set state = 'up', epoch = $2::bigint "
		       "where number = $1::int and state <> 'removed'",
		lost[] = "update atoll.nodes set state = 'lost', epoch = $2::bigint "
			 "where number = $1::int and state <> 'removed'",
		forgotten[] = "update atoll.nodes set forgotten = $2::bigint - 1 "
			      "where number = $1::int",
		tunnel[] = "insert into atoll.tunnels as t (node, gateway, up, serial) values "
			   "($1::int, $2::int, $3::bool, $4::bigint) on conflict (node, gateway) "
			   "do update set up = excluded.up, serial = excluded.serial "
			   "where t.serial <= excluded.serial";
	const struct coordinator_request *q = &x->answer.q;
	char node[12], gateway[12], serial[24], epoch[24];
	struct postgres_statement v[2] = { { .nparams = 2, .params = { node, epoch } },
					   { .sql = tunnel,
					     .nparams = 4,
					     .params = { node, gateway, q->up ? "t" : "f",
							 serial } } };
	unsigned first = 0, n = 1;

	snprintf(node, sizeof(node), "%d", q->node);
	snprintf(gateway, sizeof(gateway), "%d", q->gateway);
	snprintf(serial, sizeof(serial), "%" PRId64, q->serial);
	snprintf(epoch, sizeof(epoch), "%" PRId64, answered_epoch);
	switch (q->op) {
	case COORDINATOR_SET_TUNNEL:
		v[0].sql = up;
		first = q->up ? 0 : 1;
		n = q->up ? 2 : 1;
		break;
	case COORDINATOR_DECLARE_LOST:
		v[0].sql = lost;
		break;
	case COORDINATOR_FORGET_NODE:
		v[0].sql = forgotten;
		break;
	default:
		return;
	}
	postgres_send(x->driver->db, v + first, n, mixed_written, NULL);
}

/* ---- etcd ---- */

static void mixed_ask_etcd(struct mixed_ask *x);

/* The answer is valid during done() only, and is passed on in it. */
static void mixed_pass(struct mixed_ask *x, const struct coordinator_answer *a, const struct err *e)
{
	struct mixed_ask **at = &x->driver->asks;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	x->answer.done(x->answer.user, a, e);
	answer_fini(&x->answer);
	free(x);
}

static void mixed_add_all(struct mixed_ask *x);

static void mixed_answered(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct mixed_ask *x = user;

	if (e && e->kind == ERR_NOT_FOUND && x->answer.q.op == COORDINATOR_REGISTER &&
	    !x->has_added) {
		mixed_add_all(x);
		return;
	}
	if (a && (a->done || x->answer.q.op == COORDINATOR_SET_TUNNEL))
		mixed_write_state(x, a->epoch);
	mixed_pass(x, a, e);
}

static void mixed_ask_etcd(struct mixed_ask *x)
{
	coordinator_ask(x->driver->etcd, &x->answer.q, mixed_answered, x);
}

/* ---- members ---- */

static void mixed_added(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct mixed_ask *x = user;

	(void)a;
	if (e)
		x->failure = *e;
	if (--x->adding)
		return;
	if (x->failure.kind) {
		mixed_end(x, &x->failure);
		return;
	}
	if (x->answer.q.op == COORDINATOR_REGISTER) {
		x->has_added = 1;
		mixed_ask_etcd(x);
		return;
	}
	x->answer.answer.done = 1;
	x->answer.answer.number = x->number;
	mixed_end(x, NULL);
}

static void mixed_add(struct mixed_ask *x, const char *role, int number, const char *name,
		      int64_t epoch)
{
	const struct coordinator_request q = { .op = COORDINATOR_ADD_MACHINE,
					       .role = role,
					       .node = number,
					       .name = name,
					       .epoch = epoch };

	x->adding++;
	coordinator_ask(x->driver->etcd, &q, mixed_added, x);
}

static void mixed_listed(void *user, const struct postgres_answer *a, const struct err *e)
{
	struct mixed_ask *x = user;

	if (!x->driver) { /* the driver was freed meanwhile; the connection is not the driver's */
		answer_fini(&x->answer);
		free(x);
		return;
	}
	if (!a || !postgres_rows(a->results[0])) {
		struct err none;

		err_set(&none, ERR_NOT_FOUND, "there is no gateway %d", x->answer.q.gateway);
		mixed_end(x, e ? e : &none);
		return;
	}
	x->adding = 1; /* until all were sent */
	for (unsigned i = 0; i < postgres_rows(a->results[0]); i++)
		mixed_add(x, postgres_text(a->results[0], i, 0),
			  (int)postgres_int(a->results[0], i, 1),
			  postgres_text(a->results[0], i, 2),
			  postgres_int(a->results[0], i, 3) + 1);
	mixed_added(x, NULL, NULL);
}

/* etcd does not know this gateway: it is new, or empty. */
static void mixed_add_all(struct mixed_ask *x)
{
	static const struct postgres_statement all = {
		.sql = "select 'gateway', number, name, 0 from atoll.gateways where removed is null "
		       "union all select 'node', number, name, epoch from atoll.nodes "
		       "where state <> 'removed'"
	};

	postgres_send(x->driver->db, &all, 1, mixed_listed, x);
}

/* ---- PostgreSQL first ---- */

static void mixed_has_row(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct mixed_ask *x = user;
	const struct coordinator_request *q = &x->answer.q;

	if (e || !a->done) {
		mixed_pass(x, a, e);
	} else if (q->op == COORDINATOR_REMOVE_NODE) {
		mixed_ask_etcd(x);
	} else {
		x->number = a->number;
		mixed_add(x, q->role, a->number, q->name, 1);
	}
}

static void driver_mixed_ask(struct coordinator *c, const struct coordinator_request *q,
			     coordinator_done *done, void *user)
{
	struct driver_mixed *d = (struct driver_mixed *)c;
	struct mixed_ask *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->driver = d;
	x->next = d->asks;
	d->asks = x;
	answer_init(&x->answer, q, done, user);
	if (q->op == COORDINATOR_ASSIGN_NUMBER || q->op == COORDINATOR_REMOVE_NODE)
		coordinator_ask(d->rows, &x->answer.q, mixed_has_row, x);
	else
		mixed_ask_etcd(x);
}

static const char *driver_mixed_trouble(const struct coordinator *c)
{
	return coordinator_trouble(((const struct driver_mixed *)c)->etcd);
}

static void driver_mixed_free(struct coordinator *c)
{
	struct driver_mixed *d = (struct driver_mixed *)c;

	coordinator_free(d->etcd);
	coordinator_free(d->rows);
	while (d->asks) { /* one that waits for mixed_listed() is freed there, if that is called */
		struct mixed_ask *x = d->asks;

		d->asks = x->next;
		x->driver = NULL;
	}
	free(d);
}

static const struct coordinator_driver driver_mixed = { driver_mixed_ask, driver_mixed_trouble,
							driver_mixed_free };

int coordinator_mixed_new(struct coordinator **out, struct loop *l, struct postgres *db,
			  const struct etcd_conf *conf, struct err *e)
{
	struct driver_mixed *d = calloc(1, sizeof(*d));

	if (!d)
		return err_sys(e, "coordinator");
	d->coordinator.driver = &driver_mixed;
	d->db = db;
	if (coordinator_postgres_new(&d->rows, l, db, e) < 0 ||
	    coordinator_etcd_new(&d->etcd, l, conf, e) < 0) {
		coordinator_free(d->rows);
		free(d);
		return -1;
	}
	*out = &d->coordinator;
	return 0;
}

int coordinator_engine_new(struct coordinator **out, struct loop *l, struct postgres *db,
			   const char *etcd, struct err *e)
{
	const struct etcd_conf conf = { .addresses = etcd };

	return *etcd ? coordinator_mixed_new(out, l, db, &conf, e)
		     : coordinator_postgres_new(out, l, db, e);
}
