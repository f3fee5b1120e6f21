/* server.h - the process that answers HTTP requests: its start, its main loop, its end.
 * Owns: everything the requests need: loop, store, fleet, api. */
#pragma once
#include "base/err.h"
#include "daemon/config.h"
#include <sys/types.h>

enum { SERVER_LISTENERS = 32 };

struct server_start {
	const struct config *config;
	const char *const *layer_names;
	int supervisor; /* WIRE_INFO to the supervisor: start a keeper; WIRE_DONE: the server is ready */
	int listeners[SERVER_LISTENERS];
	unsigned nlisteners;
	int cluster_listener; /* of a gateway, for nodes; -1: none */
	int alone; /* 1: no older server is draining; else the supervisor sends WIRE_DONE when it has exited */
	uid_t uid, own_uid; /* to become; the user that started the daemon */
	gid_t gid;
	gid_t access_gid;   /* serve.group; 0: none */
	const char *folder; /* of the store */
	int crashed;        /* the server before this one ended unexpectedly */
	int models;         /* the llm process runs: WIRE_LLM_CONNECT to the supervisor returns a
			     * connection */
};
/* Can the files that the settings name be used? A reload calls this before it applies them. */
must_check int server_check(const struct config *c, struct err *e);
/* Returns the exit status, after the supervisor has asked it to exit. */
int server_main(const struct server_start *s);
