/* copy_steps.h - the names of the confinement steps of a copy, in order. `atoll policy copy` prints them. */
#pragma once

#define COPY_ROWS(ROW)                                                                             \
	ROW(oom, "OOM score", "that of boxes: killed before the host's own processes")             \
	ROW(cgroups, "cgroups", "those of its box: every limit applies")                           \
	ROW(namespaces, "namespaces", "those of its box, all of them, by the pidfd of its init")   \
	ROW(landlock, "landlock", "a second barrier; once for all processes of a tree")            \
	ROW(keyring, "keyring", "session keyrings are inherited and not namespaced")               \
	ROW(folder, "working folder", "the root of the box, until the image names another in it")  \
	ROW(bounds, "capability bounds", "empty: it can never hold any capability")                \
	ROW(identity, "identity", "the user of the box, no groups, read back")                     \
	ROW(caps, "capabilities", "none, in every set")                                            \
	ROW(privileges, "no new privileges", "no setuid program can undo any of this")             \
	ROW(filter, "system calls", "the allowlist of boxes")                                      \
	ROW(limits, "resource limits", "those of its image, cut to those of boxes")

enum copy_step {
#define ROW(id, name, why) COPY_STEP_##id,
	COPY_ROWS(ROW)
#undef ROW
};
