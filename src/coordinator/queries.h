/* queries.h - the transactions that a server can request by name from its cluster process.
 * Owns: their SQL. A server sends names and values, never SQL: it has no credentials of the database and cannot do more
 * than this table.
 *
 *   {ask: n, query: {name, params: [text or null, ...]}}  ->  {done: n, results: [[[text, ...], ...], ...]}
 *
 * One list of rows for each statement; null is "". */
#pragma once
#include "coordinator/postgres.h"
#include <jansson.h>

struct query {
	const char *name;
	unsigned params; /* of the request */
	struct query_statement {
		const char *sql;
		unsigned params; /* the first ones of the request */
	} statements[POSTGRES_STATEMENTS];
};

const struct query *query_find(const char *name); /* NULL: none */
/* -1: m names no query, or its values do not fit. done() as of postgres_send(). */
must_check int query_send(struct postgres *p, const json_t *m, postgres_done *done, void *user,
			  struct err *e);
json_t *query_answer(const struct postgres_answer *a);

struct cluster_client;
struct cluster_request;
/* The server's side. params: an array. */
void query_request(struct cluster_client *x, struct cluster_request *r, const char *name,
		   json_t *take_params);
/* Rows of one statement; NULL: the answer has no such statement. */
const json_t *query_rows(const json_t *answer, unsigned statement);
/* "": there is no such value. */
const char *query_text(const json_t *row, unsigned column);
int64_t query_int(const json_t *row, unsigned column);
