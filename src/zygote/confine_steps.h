/* confine_steps.h - the names of the confinement steps of a child, in order. In a separate header
 * because `atoll policy` prints them and is not linked with the code that runs them. */
#pragma once

#define SEAL_ROWS(ROW)                                                                             \
	ROW(fds, "descriptors", "nothing of the zygote's but the two sockets and the box's pidfd") \
	ROW(keyring, "keyring", "session keyrings are inherited and not namespaced")               \
	ROW(namespaces, "namespaces", "the box's own, all of them, by the pidfd of its init")      \
	ROW(folder, "working folder", "the box's root, and no mask of ours")                       \
	ROW(session, "session", "a session and a group of its own: signals reach it alone")        \
	ROW(rlimits, "resource limits", "descriptors, cores, locked memory, queues")               \
	ROW(bounds, "capability bounds", "empty: it can never hold any capability")                \
	ROW(identity, "identity", "the box's user, no groups, read back")                          \
	ROW(caps, "capabilities", "none, in every set, read back")                                 \
	ROW(privileges, "no new privileges", "no setuid program can undo any of this")             \
	ROW(landlock, "landlock",                                                                  \
	    "the second wall, without the scopes that would part it from init")                    \
	ROW(filter, "system calls", "the box's own allowlist")
