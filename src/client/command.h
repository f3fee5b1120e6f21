/* command.h - a START frame from an argument list. Shared by box_handle.c and init_conn.c.
 * Owns: the strings, until command_fini(). */
#pragma once
#include "client/box_handle.h"

struct command_words {
	struct wire_start start;
	char *tail; /* NULL: in memfd */
	size_t tail_len;
	int memfd; /* -1, or the descriptor that is sent with the frame */
};
/* Rejects arguments that execve would not accept with ERR_LIMIT and E2BIG. */
must_check int command_make(struct command_words *c, const struct box_command *cmd, uint32_t ref,
			    struct err *e);
void command_fini(struct command_words *c);
