/* prove_child.h - a child of the supervisor that proves an isolation tier for the server.
 * Owns: which one runs; one at a time, because each uses boxes of the machine. */
#pragma once
#include "daemon/config.h"
#include <sys/types.h>

struct prove_child {
	pid_t pid; /* 0: none */
};

/* The server reads the proof from the child directly. While one runs, a request gets no answer. */
void prove_child_start(struct prove_child *o, const struct config *c, unsigned tier,
		       int server_link);
int prove_child_ended(struct prove_child *o, pid_t pid); /* 1: it was this one */
