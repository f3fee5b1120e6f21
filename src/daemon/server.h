/* server.h - the process that speaks HTTP: its start, its life, its end.
 * Owns: everything the requests need: loop, store, fleet, api. */
#pragma once
#include "base/err.h"
#include "daemon/config.h"
#include <sys/types.h>

enum { SERVER_LISTENERS = 32 };

struct server_start {
	const struct config *config;
	const char *const *layer_names;
	int supervisor; /* WIRE_INFO to it: bring a keeper; WIRE_DONE: we serve */
	int listeners[SERVER_LISTENERS];
	unsigned nlisteners;
	int alone; /* no older front drains beside us; else the warden says WIRE_DONE when it is gone */
	uid_t uid, own_uid; /* to become; who started the daemon */
	gid_t gid;
	const char *folder; /* of the store */
	int models;         /* somebody asks them: WIRE_LLM_CONNECT to the warden brings a line */
};
/* Can the files that the settings name be used? What a reload asks before it believes in it. */
must_check int server_check(const struct config *c, struct err *e);
/* Never returns before it is told to leave; the exit status. */
int server_main(const struct server_start *s);
