/* fork_server.h - the zygote's loop: receives requests and forks a child for each.
 * Owns: the descriptors of an order while it is carried out. */
#pragma once
#include "zygote/protocol.h"

struct fork_server_hooks {      /* hooks of the interpreter around a fork */
	void (*in_child)(void); /* called in the confined child */
};

/* Returns its socket in a child, which is confined and reported to the keeper. Never returns in the
 * zygote, which exits when the keeper does. */
int fork_server_run(const struct fork_server_hooks *hooks, int *out_waits);

/* In the child. Waits for its stdio, then for its start message. Exits when init has exited. */
void fork_server_stdio(int sock);
int fork_server_told(int sock);                           /* a message, or the end of init */
char *fork_server_start_msg(int sock, uint32_t *out_len); /* the heap's */
