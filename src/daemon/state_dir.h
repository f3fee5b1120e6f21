/* state_dir.h - the folders of the daemon, and their owners.
 * <state> stays root's: the keeper's images are in it, and the server must not be able to
 * mislead the keeper. <state>/server belongs to the server, with the store in it. */
#pragma once
#include "base/err.h"
#include "daemon/config.h"
#include <sys/types.h>

struct state_dir {
	uid_t uid; /* the user that the server becomes; (uid_t)-1: unchanged */
	gid_t gid;
	gid_t access_gid; /* serve.group; 0: none */
	char state[1024], folder[1100];
};
/* Finds out, and makes the folders. */
must_check int state_dir_open(struct state_dir *h, const struct config *c, struct err *e);
/* The same for a command on this machine: --state and --config as they were given, or NULL. */
must_check int state_dir_find(struct state_dir *h, const char *state, const char *config,
			      struct err *e);
/* Parents too (0755). An existing folder is not changed. */
must_check int state_dir_make(const char *path, mode_t mode, struct err *e);
