/* cell.h - one cell, from the request to its end: converts kernel messages to driver events.
 * Owns: the state of the cell, and what was reported. It has ended after two messages, in any
 * order: the reply on one socket, and the idle status on the other, which has all its output. */
#pragma once
#include "base/buf.h"
#include "jupyter/message.h"
#include <stdint.h>

enum { CELL_REPLIED = 1 << 0, CELL_IDLE = 1 << 1, CELL_OVER = CELL_REPLIED | CELL_IDLE };

struct kernel_cell {
	char id[24];                  /* the server's number; "": none runs */
	char request[JUPYTER_MSG_ID]; /* id of the request message */
	unsigned seen;
	int begun;       /* the kernel has reported its execution */
	int interrupted; /* it was interrupted */
	int main_told, error_told;
	int64_t count; /* number of cells: the count of the kernel, or one more than before */
	int failed;
	json_t *reply; /* the error of the reply, or NULL */
	json_t *asks;  /* the header of an input_request without an answer, or NULL */
};

/* Output to write, in this order. */
struct said {
	struct buf out, err, channel;
};
void said_fini(struct said *s);

void cell_begin(struct kernel_cell *c, const char *id, const char *request);
int cell_runs(const struct kernel_cell *c);
/* A message that names this cell as its parent, from any socket. */
void kernel_cell_on_message(struct kernel_cell *c, const struct jupyter_msg *m, struct said *to);
/* Printed output of this cell or an earlier one. */
void cell_stream(const struct jupyter_msg *m, struct said *to);
/* If both have arrived, or at the timeout (now): reports the end. */
void cell_finish(struct kernel_cell *c, int now, struct said *to);
