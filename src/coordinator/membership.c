/* membership.c - see membership.h. */
#include "coordinator/membership.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "coordinator/coordinator.h"
#include "coordinator/postgres.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERSHIP_HEX = 2 * 32 + 1 };

struct membership_ask {
	struct membership *m;
	membership_done *done;
	void *user;
	struct cluster_peer peer;
	struct join_token token;
	char hash[MEMBERSHIP_HEX]; /* of the token */
	char key[MEMBERSHIP_HEX];  /* hash of the machine's public key */
	char name[CLUSTER_NAME_MAX + 1];
	char *request;
	int spent; /* a use of the token */
};

/* ---- files ---- */

int membership_load(struct membership *m, const char *secrets, struct err *e)
{
	struct buf key = { 0 };
	int rc;

	if (cluster_read_file(secrets, "ca.crt", &m->ca_cert, e) < 0 ||
	    cluster_read_file(secrets, "ca.key", &key, e) < 0) {
		rc = -1;
	} else {
		rc = cluster_ca_load(&m->ca, &m->ca_cert, &key, e) < 0 ||
				     cluster_ca_fingerprint(&m->ca_cert, m->fingerprint, e) < 0
			     ? err_in(e, "%.100s", secrets)
			     : 0;
	}
	if (key.p)
		explicit_bzero(key.p, key.room);
	buf_fini(&key);
	if (rc < 0)
		membership_fini(m);
	return rc;
}

int membership_read_password(const char *secrets, struct buf *out, struct err *e)
{
	if (cluster_read_file(secrets, "database", out, e) < 0)
		return e->kind == ERR_NOT_FOUND ? 0 : -1;
	buf_cut(out, strcspn(buf_str(out), "\r\n"));
	return 0;
}

void membership_fini(struct membership *m)
{
	cluster_ca_free(m->ca);
	m->ca = NULL;
	buf_fini(&m->ca_cert);
}

/* ---- answers ---- */

static struct membership_ask *membership_ask_new(struct membership *m, membership_done *done,
						 void *user)
{
	struct membership_ask *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->m = m;
	x->done = done;
	x->user = user;
	return x;
}

static void membership_end(struct membership_ask *take_x, const struct membership_answer *a,
			   const struct err *e)
{
	take_x->done(take_x->user, a, e);
	free(take_x->request);
	explicit_bzero(&take_x->token, sizeof(take_x->token));
	free(take_x);
}

static void membership_sign(struct membership_ask *x)
{
	struct membership_answer a = { .peer = x->peer };
	auto_buf struct buf cert = { 0 };
	struct err e;

	if (cluster_ca_sign(x->m->ca, x->request, strlen(x->request), &x->peer, time(NULL), &cert,
			    &e) < 0) {
		membership_end(x, NULL, &e);
		return;
	}
	a.cert = buf_str(&cert);
	membership_end(x, &a, NULL);
}

/* Of a transaction whose rows are not needed. */
static void membership_stored(void *user, const struct postgres_answer *a, const struct err *e)
{
	const struct membership_answer none = { 0 };

	membership_end(user, a ? &none : NULL, e);
}

static void membership_ignore(void *user, const struct postgres_answer *a, const struct err *e)
{
	(void)user;
	(void)a;
	(void)e;
}

/* ---- numbers ---- */

static void membership_assigned(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct membership_ask *x = user;

	if (a) {
		x->peer.number = (unsigned)a->number;
		membership_sign(x);
		return;
	}
	/* A refusal; after ERR_SYS the machine may have its number. */
	if (x->spent && e->kind != ERR_SYS) {
		const struct postgres_statement back = {
			"update atoll.joins set uses = uses + 1 where hash = decode($1, 'hex')",
			{ x->hash },
			1
		};

		postgres_send(x->m->db, &back, 1, membership_ignore, NULL);
	}
	membership_end(x, NULL, e);
}

static void membership_assign(struct membership_ask *x)
{
	const struct coordinator_request q = {
		.op = COORDINATOR_ASSIGN_NUMBER,
		.role = x->peer.role == CLUSTER_NODE ? "node" : "gateway",
		.name = x->name,
		.fingerprint = x->key,
	};

	coordinator_ask(x->m->coordinator, &q, membership_assigned, x);
}

static int membership_has_ca(const struct membership *m, struct err *e)
{
	return m->ca ? 0
		     : err_set(e, ERR_DENIED,
			       "this gateway does not have the key of the cluster's CA; copy the folder "
			       "cluster.secrets of another gateway");
}

/* Name and request of a machine; -1: done() was called. */
static int membership_take_machine(struct membership_ask *x, const char *name, const char *request)
{
	unsigned char key[32];
	struct err e;

	if (!cluster_name_is_valid(name))
		err_set(&e, ERR_INVALID,
			"'%.70s' is not the name of a machine: 1 to %d of a-z, 0-9, '-' and '.'",
			name, CLUSTER_NAME_MAX);
	else if (membership_has_ca(x->m, &e) == 0 &&
		 cluster_ca_request_key(request, strlen(request), key, &e) == 0) {
		hex_encode(x->key, key, sizeof(key));
		snprintf(x->name, sizeof(x->name), "%s", name);
		x->request = strdup(request);
		if (!x->request)
			abort();
		return 0;
	}
	membership_end(x, NULL, &e);
	return -1;
}

void membership_add_gateway(struct membership *m, const char *name, const char *request,
			    membership_done *done, void *user)
{
	struct membership_ask *x = membership_ask_new(m, done, user);

	x->peer.role = CLUSTER_GATEWAY;
	if (membership_take_machine(x, name, request) == 0)
		membership_assign(x);
}

/* ---- joining ---- */

/* $1: hash of the token, $2: of the key, $3: name */
#define MEMBERSHIP_IS_KNOWN                                                                        \
	"exists (select 1 from atoll.nodes where fingerprint = $2 and name = $3 "                  \
	"and state <> 'removed')"

static void membership_checked(void *user, const struct postgres_answer *a, const struct err *e)
{
	struct membership_ask *x = user;
	const struct pg_result *found = a ? a->results[1] : NULL;
	struct join_token_row row = { 0 };
	struct err why;
	int64_t now_s = 0;

	if (!a) {
		membership_end(x, NULL, e);
		return;
	}
	x->spent = postgres_rows(a->results[0]) > 0;
	row.found = postgres_rows(found) > 0;
	if (row.found) {
		row.expires_s = postgres_int(found, 0, 0);
		now_s = postgres_int(found, 0, 1);
		/* A machine that the cluster knows needs no use; for others the first statement took one. */
		row.uses_left = postgres_int(found, 0, 2);
	}
	if (!x->spent && join_token_check(&x->token, x->m->fingerprint, &row, now_s, &why) < 0)
		membership_end(x, NULL, &why);
	else
		membership_assign(x);
}

void membership_join(struct membership *m, const char *token, const char *request, const char *name,
		     membership_done *done, void *user)
{
	static const char use[] =
		"update atoll.joins set uses = uses - 1 where hash = decode($1, 'hex') "
		"and uses > 0 and expires > now() and not " MEMBERSHIP_IS_KNOWN " returning 1",
			  find[] = "select extract(epoch from expires)::bigint, "
				   "extract(epoch from now())::bigint, " MEMBERSHIP_IS_KNOWN
				   "::int from atoll.joins where hash = decode($1, 'hex')";
	struct membership_ask *x = membership_ask_new(m, done, user);
	struct postgres_statement v[2];
	unsigned char hash[JOIN_TOKEN_HASH];
	struct join_token_row any = { .found = 1, .expires_s = 1, .uses_left = 1 };
	struct err e;

	x->peer.role = CLUSTER_NODE;
	/* The database is asked only about tokens of this cluster. */
	if (membership_has_ca(m, &e) < 0 || join_token_parse(&x->token, token, &e) < 0 ||
	    join_token_check(&x->token, m->fingerprint, &any, 0, &e) < 0) {
		membership_end(x, NULL, &e);
		return;
	}
	if (membership_take_machine(x, name, request) < 0)
		return;
	join_token_hash(&x->token, hash);
	hex_encode(x->hash, hash, sizeof(hash));
	v[0] = (struct postgres_statement){ use, { x->hash, x->key, x->name }, 3 };
	v[1] = (struct postgres_statement){ find, { x->hash, x->key, x->name }, 3 };
	postgres_send(m->db, v, 2, membership_checked, x);
}

void membership_add_token(struct membership *m, const struct join_token *t, unsigned uses,
			  uint64_t ttl_ms, membership_done *done, void *user)
{
	struct membership_ask *x = membership_ask_new(m, done, user);
	struct postgres_statement v[2];
	unsigned char hash[JOIN_TOKEN_HASH];
	char seconds[24], count[16];

	join_token_hash(t, hash);
	hex_encode(x->hash, hash, sizeof(hash));
	snprintf(seconds, sizeof(seconds), "%" PRIu64, (ttl_ms + 999) / 1000);
	snprintf(count, sizeof(count), "%u", uses);
	v[0] = (struct postgres_statement){
		"insert into atoll.joins (hash, role, expires, uses) values (decode($1, 'hex'), 'node', "
		"now() + make_interval(secs => $2::float8), $3::int)",
		{ x->hash, seconds, count },
		3
	};
	/* Expired ones are kept for some time: a machine that uses one gets the reason. */
	v[1] = (struct postgres_statement){
		.sql = "delete from atoll.joins where expires < now() - interval '30 days'"
	};
	postgres_send(m->db, v, 2, membership_stored, x);
}

/* ---- renewal ---- */

static void membership_found(void *user, const struct postgres_answer *a, const struct err *e)
{
	struct membership_ask *x = user;
	struct err removed;

	if (!a) {
		membership_end(x, NULL, e);
	} else if (postgres_rows(a->results[0]) == 0) {
		err_set(&removed, ERR_DENIED,
			"the cluster has no %s with number %u: it was removed",
			x->peer.role == CLUSTER_NODE ? "node" : "gateway", x->peer.number);
		membership_end(x, NULL, &removed);
	} else {
		membership_sign(x);
	}
}

void membership_renew(struct membership *m, const struct cluster_peer *peer, const char *request,
		      membership_done *done, void *user)
{
	struct membership_ask *x = membership_ask_new(m, done, user);
	struct postgres_statement find = { .nparams = 1 };
	char number[16];

	x->peer = *peer;
	if (membership_take_machine(x, "renew", request) < 0)
		return;
	snprintf(number, sizeof(number), "%u", peer->number);
	find.sql =
		peer->role == CLUSTER_NODE
			? "select 1 from atoll.nodes where number = $1::int and state <> 'removed'"
			: "select 1 from atoll.gateways where number = $1::int and removed is null";
	find.params[0] = number;
	postgres_send(m->db, &find, 1, membership_found, x);
}

/* ---- the database of this cluster ---- */

static void membership_authority_found(void *user, const struct postgres_answer *a,
				       const struct err *e)
{
	struct membership_answer found = { .fingerprint = "" };

	if (a && postgres_rows(a->results[a->n - 1]))
		found.fingerprint = postgres_text(a->results[a->n - 1], 0, 0);
	membership_end(user, a ? &found : NULL, e);
}

void membership_authority(struct membership *m, int claim, membership_done *done, void *user)
{
	struct membership_ask *x = membership_ask_new(m, done, user);
	struct postgres_statement v[2] = { { .nparams = 1 },
					   { .sql = "select fingerprint from atoll.authority" } };
	char own[MEMBERSHIP_HEX];

	hex_encode(own, m->fingerprint, sizeof(m->fingerprint));
	v[0].sql = "insert into atoll.authority (fingerprint) values ($1) on conflict do nothing";
	v[0].params[0] = own;
	postgres_send(m->db, v + !claim, claim ? 2 : 1, membership_authority_found, x);
}

/* ---- machines ---- */

static json_t *membership_machine(const struct pg_result *r, unsigned row)
{
	const char *gateways = postgres_text(r, row, 4);
	json_t *machine = json_pack("{s:s, s:I, s:s, s:s}", "role", postgres_text(r, row, 0),
				    "number", (json_int_t)postgres_int(r, row, 1), "name",
				    postgres_text(r, row, 2), "state", postgres_text(r, row, 3));
	json_t *list;

	if (strcmp(postgres_text(r, row, 0), "node") != 0)
		return machine;
	list = json_array();
	for (const char *at = gateways; *at;) {
		char *end;

		json_array_append_new(list, json_integer(strtol(at, &end, 10)));
		at = *end == ',' ? end + 1 : end;
	}
	json_object_set_new(machine, "gateways", list);
	return machine;
}

static void membership_listed(void *user, const struct postgres_answer *a, const struct err *e)
{
	struct membership_answer list = { 0 };

	if (a) {
		list.machines = json_array();
		for (unsigned i = 0; i < postgres_rows(a->results[0]); i++)
			json_array_append_new(list.machines, membership_machine(a->results[0], i));
	}
	membership_end(user, a ? &list : NULL, e);
	json_decref(list.machines);
}

void membership_list(struct membership *m, membership_done *done, void *user)
{
	static const struct postgres_statement all = {
		.sql = "select 'gateway', number, name, 'member', '' from atoll.gateways "
		       "where removed is null "
		       "union all select 'node', number, name, case when state = 'up' and not exists "
		       "(select 1 from atoll.tunnels t where t.node = n.number and t.up) "
		       "then 'unreachable' when state = 'lost' and forgotten > 0 and "
		       "forgotten >= epoch - 1 then 'gone' else state end, coalesce((select string_agg("
		       "t.gateway::text, ',' order by t.gateway) from atoll.tunnels t "
		       "where t.node = n.number and t.up), '') from atoll.nodes n "
		       "where state <> 'removed' order by 2"
	};

	postgres_send(m->db, &all, 1, membership_listed, membership_ask_new(m, done, user));
}

static void membership_removed(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct membership_ask *x = user;
	const struct membership_answer none = { 0 };
	struct err unknown;

	if (a && !a->done) {
		err_set(&unknown, ERR_NOT_FOUND, "the cluster has no node with number %u",
			x->peer.number);
		membership_end(x, NULL, &unknown);
		return;
	}
	membership_end(x, a ? &none : NULL, e);
}

void membership_remove(struct membership *m, unsigned node, membership_done *done, void *user)
{
	struct membership_ask *x = membership_ask_new(m, done, user);
	const struct coordinator_request q = { .op = COORDINATOR_REMOVE_NODE, .node = (int)node };

	x->peer = (struct cluster_peer){ CLUSTER_NODE, node };
	coordinator_ask(m->coordinator, &q, membership_removed, x);
}
