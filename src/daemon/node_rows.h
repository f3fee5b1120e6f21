/* node_rows.h - sends the rows of this machine to the directory of its cluster.
 * Owns: the position: which revisions were sent, and which were acknowledged. Rows that are not acknowledged stay in the
 * store (store/directory.h) and are sent again over the next connection. */
#pragma once
#include "api/api.h"
#include "api/directory_wait.h"

struct node_rows;

/* send(): 1: was sent, node_rows_kept() follows; 0: not now; -1: the message is too long. */
typedef int node_rows_send(void *user, uint64_t last, const json_t *rows);

struct node_rows *node_rows_new(struct api *a, node_rows_send *send, void *user);
void node_rows_free(struct node_rows *x); /* allowed on NULL */
/* A connection is open: rows are sent from the first that was not acknowledged. open 0: it was closed. */
void node_rows_set_open(struct node_rows *x, int open);
/* As api->rows_settle: the rows are sent now. */
int node_rows_settle(struct node_rows *x, struct directory_wait *w);
void node_rows_kept(struct node_rows *x, uint64_t last);
/* The row of one box, as the directory gets it; NULL: none. */
json_t *node_rows_box(struct api *a, const char *id);
