/* postgres.c - see postgres.h. */
#include "coordinator/postgres.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "coordinator/libpq.h"

#include <stdlib.h>
#include <string.h>

enum {
	POSTGRES_ANSWER_MS = 2000,
	POSTGRES_RETRY_FIRST_MS = 50,
	POSTGRES_RETRY_MOST_MS = 250,
	POSTGRES_PREPARED = 16, /* statements of a connection */
};

struct postgres_transaction {
	struct postgres_transaction *next;
	struct postgres_statement statements[POSTGRES_STATEMENTS];
	unsigned n;
	int is_frequent;
	char *texts; /* of all parameters */
	uint64_t until_ms;
	postgres_done *done;
	void *user;
	/* the answer so far */
	struct pg_result *results[POSTGRES_STATEMENTS];
	unsigned nresults;
	struct err e;
};

struct postgres_queue {
	struct postgres_transaction *first, **last;
	unsigned n;
};

enum postgres_state {
	POSTGRES_CLOSED, /* the timer `retry` opens it again */
	POSTGRES_CONNECTING,
	POSTGRES_CHECKING,
	POSTGRES_SETTING_UP,
	POSTGRES_READY,
};

/* A statement that the server of this connection has parsed. Its name is its place in the list. */
struct postgres_prepared {
	const char *sql;
	enum { PREPARED_SENT, PREPARED_READY, PREPARED_REFUSED } state;
};

struct postgres {
	struct loop *loop;
	struct buf database, password;
	int has_password;
	struct postgres_conf conf;
	enum postgres_state state;
	PGconn *conn;
	struct watch watch;
	struct timer retry;  /* CLOSED: connect again; until READY: the limit of connecting */
	struct timer expiry; /* the oldest transaction fails */
	uint32_t retry_ms;
	int was_set_up;
	struct pg_result *found; /* CHECKING, SETTING_UP: the last result, or the first error */
	struct postgres_queue sent, waiting;
	struct postgres_prepared prepared[POSTGRES_PREPARED];
	unsigned nprepared;
	struct err trouble;
	int logged; /* the trouble */
};

static void postgres_connect(struct postgres *p);
static void postgres_push(struct postgres *p);

/* ---- transactions ---- */

static void postgres_queue_init(struct postgres_queue *q)
{
	*q = (struct postgres_queue){ 0 };
	q->last = &q->first;
}

static void postgres_queue_add(struct postgres_queue *q, struct postgres_transaction *t)
{
	t->next = NULL;
	*q->last = t;
	q->last = &t->next;
	q->n++;
}

static struct postgres_transaction *postgres_queue_take(struct postgres_queue *q)
{
	struct postgres_transaction *t = q->first;

	if (!t)
		return NULL;
	q->first = t->next;
	if (!q->first)
		q->last = &q->first;
	q->n--;
	return t;
}

static void postgres_transaction_free(struct postgres_transaction *t)
{
	for (unsigned i = 0; i < t->nresults; i++)
		libpq.clear(t->results[i]);
	free(t->texts);
	free(t);
}

static void postgres_transaction_end(struct postgres_transaction *t)
{
	struct postgres_answer a = { .n = t->nresults };

	for (unsigned i = 0; i < t->nresults; i++)
		a.results[i] = t->results[i];
	t->done(t->user, t->e.kind ? NULL : &a, t->e.kind ? &t->e : NULL);
	postgres_transaction_free(t);
}

/* All texts are copied into one piece of memory. */
static struct postgres_transaction *postgres_transaction_new(const struct postgres_statement *v,
							     unsigned n)
{
	struct postgres_transaction *t = calloc(1, sizeof(*t));
	size_t bytes = 1;
	char *at;

	if (!t || n > POSTGRES_STATEMENTS)
		abort();
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < v[i].nparams; k++)
			bytes += v[i].params[k] ? strlen(v[i].params[k]) + 1 : 0;
	at = t->texts = malloc(bytes);
	if (!at)
		abort();
	t->n = n;
	for (unsigned i = 0; i < n; i++) {
		t->statements[i] = v[i];
		for (unsigned k = 0; k < v[i].nparams; k++) {
			const char *text = v[i].params[k];
			size_t len = text ? strlen(text) + 1 : 0;

			t->statements[i].params[k] = text ? memcpy(at, text, len) : NULL;
			at += len;
		}
	}
	return t;
}

/* The limits are equal, so the oldest transaction is the first to expire. */
static void postgres_set_expiry(struct postgres *p)
{
	const struct postgres_transaction *t = p->sent.first ? p->sent.first : p->waiting.first;
	uint64_t now = loop_now_ms();

	if (!t)
		timer_clear(&p->expiry);
	else
		timer_set(&p->expiry, t->until_ms > now ? t->until_ms - now : 0);
}

/* ---- the connection ---- */

static void postgres_first_line(char out[200], const char *text)
{
	size_t n = strcspn(text, "\n");

	if (n > 199)
		n = 199;
	memcpy(out, text, n);
	out[n] = 0;
}

/* Ends all transactions that are under way, and connects again later. */
static void postgres_disconnect(struct postgres *p)
{
	struct postgres_queue lost = p->sent;

	watch_stop(&p->watch);
	if (p->found)
		libpq.clear(p->found);
	p->found = NULL;
	if (p->conn)
		libpq.finish(p->conn);
	p->conn = NULL;
	if (!p->logged)
		log_warn("no connection to the database of the cluster", LOG_E(&p->trouble));
	p->logged = 1;
	p->state = POSTGRES_CLOSED;
	timer_set(&p->retry, p->retry_ms);
	p->retry_ms =
		p->retry_ms * 2 > POSTGRES_RETRY_MOST_MS ? POSTGRES_RETRY_MOST_MS : p->retry_ms * 2;

	postgres_queue_init(&p->sent);
	for (struct postgres_transaction *t; (t = postgres_queue_take(&lost));) {
		if (!t->e.kind)
			t->e = p->trouble;
		t->e.kind = ERR_SYS;
		postgres_transaction_end(t);
	}
	postgres_set_expiry(p);
}

static void postgres_fail(struct postgres *p, const char *where)
{
	char why[200];

	postgres_first_line(why, p->conn ? libpq.errorMessage(p->conn) : "out of memory");
	err_set(&p->trouble, ERR_SYS, "database: %s: %s", where, *why ? why : "connection closed");
	postgres_disconnect(p);
}

static void postgres_want(struct postgres *p, int flushed)
{
	watch_want(&p->watch, LOOP_READ | (flushed ? LOOP_WRITE : 0));
}

static int postgres_flush(struct postgres *p)
{
	int left = libpq.flush(p->conn);

	if (left < 0) {
		postgres_fail(p, "send");
		return -1;
	}
	postgres_want(p, left);
	return 0;
}

/* ---- from the first byte to READY ---- */

static void postgres_ready(struct watch *w, unsigned what);

/* libpq may replace its socket while it connects. */
static void postgres_poll(struct postgres *p)
{
	PostgresPollingStatusType next = libpq.connectPoll(p->conn);
	int fd = libpq.socket(p->conn);

	if (next == PGRES_POLLING_FAILED || fd < 0) {
		postgres_fail(p, "connect");
		return;
	}
	watch_stop(&p->watch);
	watch_init(&p->watch, p->loop, fd, postgres_ready);
	if (next != PGRES_POLLING_OK) {
		watch_want(&p->watch, next == PGRES_POLLING_READING ? LOOP_READ : LOOP_WRITE);
		return;
	}
	if (libpq.setnonblocking(p->conn, 1) < 0) {
		postgres_fail(p, "connect");
		return;
	}
	p->state = POSTGRES_CHECKING;
	p->was_set_up = 0;
	if (!libpq.sendQuery(p->conn, p->conf.query ? p->conf.query : "select 1"))
		postgres_fail(p, "connect");
	else
		postgres_flush(p);
}

static void postgres_begin(struct postgres *p)
{
	if (!libpq.enterPipelineMode(p->conn)) {
		postgres_fail(p, "pipeline mode");
		return;
	}
	p->state = POSTGRES_READY;
	p->nprepared = 0;
	timer_clear(&p->retry);
	p->retry_ms = POSTGRES_RETRY_FIRST_MS;
	if (p->logged)
		log_info("connected to the database of the cluster again");
	p->logged = 0;
	p->trouble = (struct err){ 0 };
	postgres_push(p);
}

/* One step of CHECKING and SETTING_UP has its results. */
static void postgres_checked(struct postgres *p)
{
	struct pg_result *r = steal(&p->found);
	enum postgres_state step = p->state;
	int rc = 0;

	if (step == POSTGRES_SETTING_UP) {
		const char *text = r ? libpq.resultErrorField(r, PG_DIAG_MESSAGE_PRIMARY) : NULL;

		if (text)
			rc = err_set(&p->trouble, ERR_SYS, "database: create tables: %.160s", text);
	} else if (p->conf.check) {
		rc = p->conf.check(r, &p->trouble);
	}
	if (r)
		libpq.clear(r);
	if (rc > 0 && p->was_set_up)
		rc = err_set(&p->trouble, ERR_SYS, "database: its tables could not be created");
	if (rc < 0) {
		postgres_disconnect(p);
		return;
	}
	if (step == POSTGRES_CHECKING && rc == 0) {
		postgres_begin(p);
		return;
	}
	p->state = step == POSTGRES_CHECKING ? POSTGRES_SETTING_UP : POSTGRES_CHECKING;
	p->was_set_up = 1;
	if (!libpq.sendQuery(p->conn, step == POSTGRES_CHECKING ? p->conf.setup : p->conf.query))
		postgres_fail(p, "create tables");
	else
		postgres_flush(p);
}

static void postgres_read_check(struct postgres *p)
{
	while (!libpq.isBusy(p->conn)) {
		struct pg_result *r = libpq.getResult(p->conn);

		if (!r) {
			postgres_checked(p);
			return;
		}
		if (p->found && !*postgres_sqlstate(p->found)) {
			libpq.clear(p->found);
			p->found = NULL;
		}
		if (p->found)
			libpq.clear(r);
		else
			p->found = r;
	}
}

/* ---- answers ---- */

static void postgres_classify(struct err *e, const struct pg_result *r)
{
	const char *state = postgres_sqlstate(r);
	const char *text = libpq.resultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);

	if (e->kind)
		return; /* the first error is the cause of the others */
	/* Class 23: a constraint. 22 and 54: a value that this database cannot have. All others may be different at the next
	 * attempt. */
	err_set(e,
		!strncmp(state, "23", 2)                               ? ERR_CONFLICT
		: !strncmp(state, "22", 2) || !strncmp(state, "54", 2) ? ERR_INVALID
								       : ERR_SYS,
		"database: %.160s (%s)", text ? text : "the transaction was aborted", state);
}

static int postgres_is_standby(const struct pg_result *r)
{
	return !strcmp(postgres_sqlstate(r), "25006");
}

/* A table that another release has changed, or a pooler between this process and the server: not again in this connection. */
static void postgres_refuse_prepared(struct postgres *p, const struct pg_result *r)
{
	const char *state = postgres_sqlstate(r);

	if (strcmp(state, "0A000") != 0 && strcmp(state, "26000") != 0)
		return;
	for (unsigned i = 0; i < p->nprepared; i++)
		p->prepared[i].state = PREPARED_REFUSED;
}

static void postgres_read(struct postgres *p)
{
	unsigned empty = 0;

	while (p->state == POSTGRES_READY && p->sent.first && !libpq.isBusy(p->conn)) {
		struct postgres_transaction *t = p->sent.first;
		struct pg_result *r = libpq.getResult(p->conn);
		int standby = 0;

		if (!r) { /* after the results of each statement */
			if (++empty < 4)
				continue;
			postgres_fail(p, "read");
			return;
		}
		empty = 0;
		switch (libpq.resultStatus(r)) {
		case PGRES_PIPELINE_SYNC:
			libpq.clear(r);
			postgres_queue_take(&p->sent);
			if (!t->e.kind && t->nresults != t->n)
				err_set(&t->e, ERR_SYS, "database: %u of %u results", t->nresults,
					t->n);
			postgres_transaction_end(t);
			continue;
		case PGRES_TUPLES_OK:
		case PGRES_COMMAND_OK:
			if (t->nresults < t->n)
				t->results[t->nresults++] = r;
			else
				libpq.clear(r);
			continue;
		default: /* PGRES_FATAL_ERROR; PGRES_PIPELINE_ABORTED after it */
			postgres_classify(&t->e, r);
			postgres_refuse_prepared(p, r);
			standby = postgres_is_standby(r);
			libpq.clear(r);
		}
		if (standby) { /* the server was primary before: search the new one */
			p->trouble = t->e;
			postgres_disconnect(p);
		}
	}
}

static void postgres_ready(struct watch *w, unsigned what)
{
	struct postgres *p = loop_owner(w, struct postgres, watch);

	if (p->state == POSTGRES_CONNECTING) {
		postgres_poll(p);
		return;
	}
	if (what == LOOP_READ && !libpq.consumeInput(p->conn)) {
		postgres_fail(p, "read");
		return;
	}
	if (postgres_flush(p) < 0)
		return;
	if (p->state == POSTGRES_READY) {
		postgres_read(p);
		if (p->state == POSTGRES_READY)
			postgres_push(p);
	} else {
		postgres_read_check(p);
	}
}

/* ---- sending ---- */

static void postgres_was_prepared(void *user, const struct postgres_answer *a, const struct err *e)
{
	struct postgres_prepared *x = user;

	(void)a;
	if (x->state == PREPARED_SENT)
		x->state = e ? PREPARED_REFUSED : PREPARED_READY;
}

static void postgres_prepared_name(char out[16], const struct postgres *p,
				   const struct postgres_prepared *x)
{
	snprintf(out, 16, "s%u", (unsigned)(x - p->prepared));
}

/* In a transaction of its own: that of the caller may fail. */
static int postgres_prepare(struct postgres *p, const char *sql)
{
	struct postgres_prepared *x = &p->prepared[p->nprepared];
	struct postgres_transaction *t = postgres_transaction_new(NULL, 0);
	char name[16];

	*x = (struct postgres_prepared){ sql, PREPARED_SENT };
	p->nprepared++;
	t->n = 1;
	t->done = postgres_was_prepared;
	t->user = x;
	t->until_ms = loop_now_ms() + p->conf.answer_ms;
	postgres_queue_add(&p->sent, t);
	postgres_prepared_name(name, p, x);
	return libpq.sendPrepare(p->conn, name, sql, 0, NULL) && libpq.pipelineSync(p->conn) ? 0
											     : -1;
}

static const struct postgres_prepared *postgres_find_prepared(const struct postgres *p,
							      const char *sql)
{
	for (unsigned i = 0; i < p->nprepared; i++)
		if (p->prepared[i].sql == sql)
			return &p->prepared[i];
	return NULL;
}

/* Prepares frequent statements that are not; the transaction itself follows. */
static int postgres_prepare_all(struct postgres *p, const struct postgres_transaction *t)
{
	for (unsigned i = 0; i < t->n; i++) {
		const struct postgres_statement *s = &t->statements[i];

		if (t->is_frequent && p->nprepared < POSTGRES_PREPARED &&
		    !postgres_find_prepared(p, s->sql) && postgres_prepare(p, s->sql) < 0)
			return -1;
	}
	return 0;
}

static int postgres_send_statement(struct postgres *p, const struct postgres_statement *s,
				   int is_frequent)
{
	const struct postgres_prepared *x = is_frequent ? postgres_find_prepared(p, s->sql) : NULL;
	char name[16];

	if (!x || x->state != PREPARED_READY)
		return libpq.sendQueryParams(p->conn, s->sql, (int)s->nparams, NULL, s->params,
					     NULL, NULL, 0)
			       ? 0
			       : -1;
	postgres_prepared_name(name, p, x);
	return libpq.sendQueryPrepared(p->conn, name, (int)s->nparams, s->params, NULL, NULL, 0)
		       ? 0
		       : -1;
}

static int postgres_send_now(struct postgres *p, const struct postgres_transaction *t)
{
	for (unsigned i = 0; i < t->n; i++)
		if (postgres_send_statement(p, &t->statements[i], t->is_frequent) < 0)
			return -1;
	return libpq.pipelineSync(p->conn) ? 0 : -1;
}

static void postgres_push(struct postgres *p)
{
	while (p->state == POSTGRES_READY && p->waiting.first && p->sent.n < POSTGRES_IN_FLIGHT) {
		struct postgres_transaction *t = postgres_queue_take(&p->waiting);
		int prepared = postgres_prepare_all(p, t);

		postgres_queue_add(&p->sent, t);
		if (prepared < 0 || postgres_send_now(p, t) < 0) {
			postgres_fail(p, "send");
			return;
		}
	}
	if (p->state == POSTGRES_READY && postgres_flush(p) < 0)
		return;
	postgres_set_expiry(p);
}

static void postgres_expired(struct timer *timer)
{
	struct postgres *p = loop_owner(timer, struct postgres, expiry);
	uint64_t now = loop_now_ms();

	if (p->sent.first && p->sent.first->until_ms <= now) {
		err_set(&p->trouble, ERR_SYS, "database: no answer within %u ms",
			p->conf.answer_ms);
		postgres_disconnect(p);
	}
	while (p->waiting.first && p->waiting.first->until_ms <= now) {
		struct postgres_transaction *t = postgres_queue_take(&p->waiting);

		t->e = p->trouble;
		if (!t->e.kind)
			err_set(&t->e, ERR_SYS, "database: not connected within %u ms",
				p->conf.answer_ms);
		t->e.kind = ERR_SYS;
		postgres_transaction_end(t);
	}
	postgres_set_expiry(p);
	if (p->state == POSTGRES_READY)
		postgres_push(p);
}

static void postgres_add(struct postgres *p, const struct postgres_statement *v, unsigned n,
			 int is_frequent, postgres_done *done, void *user)
{
	struct postgres_transaction *t = postgres_transaction_new(v, n);

	t->is_frequent = is_frequent;
	t->done = done;
	t->user = user;
	t->until_ms = loop_now_ms() + p->conf.answer_ms;
	if (p->waiting.n >= POSTGRES_WAITING)
		t->until_ms = 0; /* fails in the next turn of the loop */
	postgres_queue_add(&p->waiting, t);
	/* Sent in the next turn of the loop, together with others of this one: then no callback comes from here. */
	timer_set(&p->expiry, 0);
}

void postgres_send(struct postgres *p, const struct postgres_statement *v, unsigned n,
		   postgres_done *done, void *user)
{
	postgres_add(p, v, n, 0, done, user);
}

void postgres_send_frequent(struct postgres *p, const struct postgres_statement *v, unsigned n,
			    postgres_done *done, void *user)
{
	postgres_add(p, v, n, 1, done, user);
}

/* ---- life ---- */

static void postgres_no_notice(void *user, const PGresult *r)
{
	(void)user, (void)r;
}

static void postgres_connect(struct postgres *p)
{
	const char *keys[12], *values[12];
	unsigned n = 0;

#define POSTGRES_SET(key, value) (keys[n] = (key), values[n++] = (value))
	/* What the connection string says itself comes later and wins. */
	POSTGRES_SET("application_name", "atoll");
	POSTGRES_SET("connect_timeout", "2");
	POSTGRES_SET("tcp_user_timeout", "1500");
	POSTGRES_SET("keepalives_idle", "5");
	POSTGRES_SET("target_session_attrs", "read-write");
	POSTGRES_SET("client_encoding", "UTF8");
	POSTGRES_SET("options", "-c statement_timeout=1500 -c lock_timeout=1000 "
				"-c idle_in_transaction_session_timeout=5000");
	POSTGRES_SET("dbname", buf_str(&p->database));
	if (p->has_password)
		POSTGRES_SET("password", buf_str(&p->password));
	keys[n] = values[n] = NULL;
#undef POSTGRES_SET

	p->state = POSTGRES_CONNECTING;
	timer_set(&p->retry, p->conf.answer_ms);
	p->conn = libpq.connectStartParams(keys, values, 1);
	if (!p->conn || libpq.status(p->conn) == CONNECTION_BAD || libpq.socket(p->conn) < 0) {
		postgres_fail(p, "connect");
		return;
	}
	libpq.setNoticeReceiver(p->conn, postgres_no_notice, NULL);
	watch_init(&p->watch, p->loop, libpq.socket(p->conn), postgres_ready);
	watch_want(&p->watch, LOOP_WRITE);
}

static void postgres_retry(struct timer *t)
{
	struct postgres *p = loop_owner(t, struct postgres, retry);

	if (p->state == POSTGRES_CLOSED) {
		postgres_connect(p);
		return;
	}
	err_set(&p->trouble, ERR_SYS, "database: no connection within %u ms", p->conf.answer_ms);
	postgres_disconnect(p);
}

int postgres_new(struct postgres **out, struct loop *l, const struct postgres_conf *conf,
		 struct err *e)
{
	struct postgres *p;

	if (libpq_load(e) < 0)
		return -1;
	p = calloc(1, sizeof(*p));
	if (!p)
		return err_sys(e, "database");
	p->loop = l;
	p->conf = *conf;
	if (!p->conf.answer_ms)
		p->conf.answer_ms = POSTGRES_ANSWER_MS;
	buf_puts(&p->database, conf->database);
	if (conf->password)
		buf_puts(&p->password, conf->password);
	p->has_password = conf->password != NULL;
	p->retry_ms = POSTGRES_RETRY_FIRST_MS;
	postgres_queue_init(&p->sent);
	postgres_queue_init(&p->waiting);
	err_set(&p->trouble, ERR_SYS, "database: not connected yet");
	timer_init(&p->retry, l, postgres_retry);
	timer_init(&p->expiry, l, postgres_expired);
	timer_set(&p->retry, 0);
	*out = p;
	return 0;
}

void postgres_free(struct postgres *p)
{
	struct postgres_transaction *t;

	if (!p)
		return;
	while ((t = postgres_queue_take(&p->sent)))
		postgres_transaction_free(t);
	while ((t = postgres_queue_take(&p->waiting)))
		postgres_transaction_free(t);
	watch_stop(&p->watch);
	timer_fini(&p->retry);
	timer_fini(&p->expiry);
	if (p->found)
		libpq.clear(p->found);
	if (p->conn)
		libpq.finish(p->conn);
	buf_fini(&p->database);
	if (p->password.p)
		explicit_bzero(p->password.p, p->password.len);
	buf_fini(&p->password);
	free(p);
}

int postgres_is_up(const struct postgres *p)
{
	return p->state == POSTGRES_READY;
}

const char *postgres_trouble(const struct postgres *p)
{
	return p->state == POSTGRES_READY ? "" : p->trouble.msg;
}

/* ---- results ---- */

unsigned postgres_columns(const struct pg_result *r)
{
	return (unsigned)libpq.nfields(r);
}

unsigned postgres_rows(const struct pg_result *r)
{
	return (unsigned)libpq.ntuples(r);
}

const char *postgres_text(const struct pg_result *r, unsigned row, unsigned column)
{
	return libpq.getvalue(r, (int)row, (int)column);
}

int64_t postgres_int(const struct pg_result *r, unsigned row, unsigned column)
{
	return strtoll(postgres_text(r, row, column), NULL, 10);
}

const char *postgres_sqlstate(const struct pg_result *r)
{
	const char *state = libpq.resultErrorField(r, PG_DIAG_SQLSTATE);

	return state ? state : "";
}
