/* user.h - identities: the creator of a box, its root, and its PID 1. */
#pragma once
#include "base/err.h"
#include <stdint.h>
#include <sys/types.h>

struct user_was { /* of this thread */
	unsigned uid, gid;
	int securebits;
};

/* While it makes the namespaces a thread has the range's first id, with all its capabilities:
 * kernel counters (inotify, namespaces) are charged to the creator, and each box must have its
 * own. No other process has that id: an earlier box with it has ended. */
must_check int user_become_creator(uint32_t uid_base, struct user_was *out_was, struct err *e);
void user_restore(const struct user_was *was); /* or aborts: the thread would have neither
						  * identity */

/* Without root: the caller becomes root of a user namespace of its own, which holds one id, its
 * own. Before any thread exists. */
must_check int user_own_namespace(struct err *e);

/* Inside ids 0..65535 are base..base+65535 outside. Host id 0 is never in the map. With a base of 0,
 * in a keeper without root, the box's user is the keeper's own id and there is no other. */
must_check int user_write_maps(int proc, pid_t pid, uint32_t uid_base, struct err *e);

/* Kills every process of this id, which is that of no process of the host. Needs root. */
void user_kill_all(uint32_t uid);

/* Becomes this id permanently, as user and as group: no other groups, read back. */
must_check int user_become(uint32_t uid, struct err *e);

/* Becomes the box's own user permanently: no groups, both ids, read back. In the box's user
 * namespace. */
must_check int user_become_user(struct err *e);
