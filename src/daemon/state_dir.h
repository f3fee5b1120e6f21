/* state_dir.h - where the daemon keeps its things, and whose they are.
 * <state> stays root's: the keeper's images are in it, and the front must not lead the keeper astray.
 * <state>/front is the front's, with the store in it. */
#pragma once
#include "base/err.h"
#include "daemon/config.h"
#include <sys/types.h>

struct state_dir {
	uid_t uid; /* who the front becomes; (uid_t)-1: stays who it is */
	gid_t gid;
	char state[1024], folder[1100];
};
/* Finds out, and makes the folders. */
must_check int state_dir_open(struct state_dir *h, const struct config *c, struct err *e);
/* Parents too (0755). One that is there already stays as it is. */
must_check int state_dir_make(const char *path, mode_t mode, struct err *e);
