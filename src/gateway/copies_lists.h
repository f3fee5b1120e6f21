/* copies_lists.h - what each node says about copies: GET /cluster/copies, read again after its heartbeat shows a change.
 * Owns: the answers, and the requests for them. */
#pragma once
#include "gateway/node_request.h"

struct copies_lists;
struct copies_lists *copies_lists_new(struct loop *l, struct tunnels *t);
void copies_lists_free(struct copies_lists *x); /* allowed on NULL */
/* Requests lists that have changed. 1: a list has arrived since the last call. */
int copies_lists_read(struct copies_lists *x);

struct copies_node {
	struct copies_node *next;
	struct copies_lists *all;
	unsigned number;
	uint32_t seen, asked; /* control_figures.copies, of the list and of the request */
	int is_asking;
	uint64_t rest_ms; /* after a failure: not before */
	json_t *list;     /* NULL: not known */
	struct node_request request;
};
const struct copies_node *copies_lists_next(const struct copies_lists *x,
					    const struct copies_node *after);
/* "held" or "wanted" of a node that is connected; NULL: none. */
const json_t *copies_lists_of(const struct copies_lists *x, unsigned number, const char *which);
/* Nodes but one that are connected and keep this snapshot. */
unsigned copies_lists_count(const struct copies_lists *x, const char *snapshot, unsigned but);

/* Of a row; "": not a text. */
const char *copies_lists_text(const json_t *row, const char *key);
const json_t *copies_lists_find(const json_t *list, const char *key, const char *text);
