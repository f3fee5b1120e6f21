/* fork_server.h - the zygote's loop: orders in, children out.
 * Owns: the descriptors of an order while it is carried out. */
#pragma once
#include "zygote/seed.h"

struct plant_hooks { /* the interpreter's own wishes around a fork */
	void (*in_child)(void); /* sealed already */
};

/* Returns in a child, sealed and reported, with its socket; never in the zygote, which ends when the
 * keeper does. */
int plant_serve(const struct plant_hooks *hooks, int *out_waits);

/* In the child. Waits for its stdio, then for its words. Ends the process when init is gone. */
void plant_stdio(int sock);
int plant_told(int sock); /* the words are there, or nobody is */
char *plant_words(int sock, uint32_t *out_len); /* the heap's */
