/* cell.h - one cell, from the request to its end: what the kernel says of it, told in our words.
 * Owns: where in its course it is, and what of it was told.
 *
 * It is over when two things have happened, in whatever order: the reply on one socket, and on the
 * other, which has all its output, the word that the kernel is idle again. */
#pragma once
#include "base/buf.h"
#include "jupyter/message.h"
#include <stdint.h>

enum { CELL_REPLIED = 1 << 0, CELL_IDLE = 1 << 1, CELL_OVER = CELL_REPLIED | CELL_IDLE };

struct kernel_cell {
	char id[24];                  /* the server's number; "": none runs */
	char request[JUPYTER_MSG_ID]; /* our message that asked for it */
	unsigned seen;
	int begun;       /* the kernel has said that it executes it */
	int interrupted; /* it was told to stop */
	int main_told, error_told;
	int64_t count; /* of cells that ran: the kernel's own, or one more than it was */
	int failed;
	json_t *reply; /* what it says of the failure, or NULL */
	json_t *asks;  /* the header of an input_request without an answer, or NULL */
};

/* What is to be written, in this order. */
struct said {
	struct buf out, err, channel;
};
void said_fini(struct said *s);

void cell_begin(struct kernel_cell *c, const char *id, const char *request);
int cell_runs(const struct kernel_cell *c);
/* A message that names this cell as its parent, from any socket. */
void cell_hears(struct kernel_cell *c, const struct jupyter_msg *m, struct said *to);
/* What was printed: of any cell of ours, this one or one before it. */
void cell_stream(const struct jupyter_msg *m, struct said *to);
/* If both have happened, or if it is time (now): the end is told, and none runs any more. */
void cell_finish(struct kernel_cell *c, int now, struct said *to);
