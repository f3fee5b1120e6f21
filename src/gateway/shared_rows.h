/* shared_rows.h - what teams have set (store/shared_rows.h), from a gateway to its nodes.
 * Owns: what each node has or lacks, the requests to nodes, and answers that wait for nodes.
 *
 *   changed at this gateway   -> to every connected node; then the answer to the client
 *   changed at another one    -> the same (accounts.c)
 *   a node connects           -> all rows, and what it must remove
 *   a box names secrets       -> secrets.c: these secrets to the node of the box, and then the request
 *
 * A node has only the secrets that its boxes use: it names them in its answers. */
#pragma once
#include "gateway/gateway.h"

struct gateway_rows;
/* Sets api->shared_row_came and api->shared_row_left; is_fresh: the store has the rows of the other gateways. came: what
 * the row changes on this machine. own: the number of this machine, which gets nothing. */
struct gateway_rows_conf {
	struct api *api;
	struct tunnels *tunnels;
	unsigned own;
	int (*is_fresh)(void *user);
	void (*came)(struct api *a, const char *kind, const char *id);
	void *user;
};
struct gateway_rows *gateway_rows_new(const struct gateway_rows_conf *conf);
void gateway_rows_free(struct gateway_rows *x); /* allowed on NULL */

/* 1: the node can take boxes: it has all rows that this gateway could give it. */
int gateway_rows_node_is_ready(const struct gateway_rows *x, unsigned number);

/* The node has this version of a secret: no request is needed. */
int gateway_rows_has(const struct gateway_rows *x, unsigned number, const char *id,
		     uint64_t version, int64_t updated_ns);
/* The answer of a node to PUT /cluster/rows. */
void gateway_rows_learn(struct gateway_rows *x, unsigned number, const char *body, size_t n);
/* {"kind", "id", "row"} with the value instead of the encrypted one; NULL: its value cannot be read, and was logged.
 * Missing rows have "row": null. To be wiped with gateway_rows_wipe(). */
json_t *gateway_rows_json(struct api *a, const char *kind, const char *id);
char *gateway_rows_text(json_t *take_rows, json_t *take_keep, size_t *out_n);
void gateway_rows_wipe(char *take_text);
