/* postgres.h - a connection to PostgreSQL in pipeline mode, on the loop.
 * Owns: the connection, which it opens again after a failure; transactions without an answer.
 *
 * postgres_send() sends one transaction; many can be under way. It never blocks, except that libpq may resolve a host
 * name. A transaction without an answer after answer_ms fails with ERR_SYS, as do all that are under way when
 * the connection breaks: their effect is unknown. Callers decide whether to send again. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"

enum {
	POSTGRES_STATEMENTS = 6,  /* of a transaction */
	POSTGRES_PARAMS = 12,     /* of a statement */
	POSTGRES_IN_FLIGHT = 256, /* transactions; the others wait */
	POSTGRES_WAITING = 4096,
};

struct postgres;
struct pg_result;

struct postgres_conf {        /* copied */
	const char *database; /* a connection string, without password */
	const char *password; /* NULL: none */
	uint32_t answer_ms;   /* 0: 2000. Limit of a transaction: connecting, waiting and answer */
	/* Asked in each new connection; NULL: nothing. check() gets the result, which may be an error: 0: the
	 * connection is used. 1: `setup` (several statements) runs, then the query again. -1: refused. */
	const char *query;
	int (*check)(const struct pg_result *r, struct err *e);
	const char *setup;
};

must_check int postgres_new(struct postgres **out, struct loop *l, const struct postgres_conf *conf,
			    struct err *e);
void postgres_free(struct postgres *p); /* done() is not called; allowed on NULL, not from done() */
int postgres_is_up(const struct postgres *p);
const char *postgres_trouble(const struct postgres *p); /* why it is not up; "" */

struct postgres_statement {
	const char *sql;                     /* one statement, borrowed until done(): a constant */
	const char *params[POSTGRES_PARAMS]; /* texts, copied; NULL: null */
	unsigned nparams;
};

struct postgres_answer { /* valid during done() */
	const struct pg_result *results[POSTGRES_STATEMENTS];
	unsigned n;
};
/* e: NULL: committed. ERR_SYS: unknown, or the server could not do it. ERR_CONFLICT: a constraint was violated. ERR_INVALID: a
 * value that the database cannot have. The last two: nothing was changed, and the same transaction fails again. */
typedef void postgres_done(void *user, const struct postgres_answer *a, const struct err *e);

/* The statements are one transaction (READ COMMITTED: each one sees what others have committed before it). */
void postgres_send(struct postgres *p, const struct postgres_statement *v, unsigned n,
		   postgres_done *done, void *user);
/* The same; the statements are parsed once per connection. For those whose plan does not depend on the values. */
void postgres_send_frequent(struct postgres *p, const struct postgres_statement *v, unsigned n,
			    postgres_done *done, void *user);

unsigned postgres_rows(const struct pg_result *r);
unsigned postgres_columns(const struct pg_result *r);
const char *postgres_text(const struct pg_result *r, unsigned row, unsigned column); /* null: "" */
int64_t postgres_int(const struct pg_result *r, unsigned row, unsigned column);
const char *postgres_sqlstate(const struct pg_result *r); /* "": no error */
