/* alert_child.h - a child of the supervisor that runs alerts.command for the server.
 * Owns: which one runs; one at a time. The executable is one of the settings, the server sends only
 * what it gets on its stdin, and it runs as the user of the server. */
#pragma once
#include "daemon/config.h"
#include "daemon/state_dir.h"
#include <sys/types.h>

enum { ALERT_CHILD_S = 30 }; /* a command that runs longer is killed */

struct alert_child {
	pid_t pid; /* 0: none */
};

/* Without a command in the settings, or while one runs, nothing is started, and the server repeats its
 * request later. */
void alert_child_start(struct alert_child *o, const struct config *c, const struct state_dir *s,
		       int server_link);
int alert_child_ended(struct alert_child *o, pid_t pid); /* 1: it was that one */
