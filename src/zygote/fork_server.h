/* fork_server.h - the zygote's loop: orders in, children out.
 * Owns: the descriptors of an order while it is carried out. */
#pragma once
#include "zygote/protocol.h"

struct fork_server_hooks {      /* hooks of the interpreter around a fork */
	void (*in_child)(void); /* sealed already */
};

/* Returns in a child, sealed and reported, with its socket; never in the zygote, which ends when the
 * keeper does. */
int fork_server_run(const struct fork_server_hooks *hooks, int *out_waits);

/* In the child. Waits for its stdio, then for its words. Ends the process when init is gone. */
void fork_server_stdio(int sock);
int fork_server_told(int sock);                           /* a message, or the end of init */
char *fork_server_start_msg(int sock, uint32_t *out_len); /* the heap's */
