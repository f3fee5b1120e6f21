/* probe.h - the abilities of this host, found by trying them.
 * Owns: nothing permanent; every probe runs in a child that has ended when it returns. */
#pragma once
#include "base/err.h"
#include <stdint.h>

struct probe {
	int kernel_major, kernel_minor;
	int is_root;
	int userns;         /* user namespaces can be made */
	int overlay_userns; /* overlayfs mounts inside one */
	int idmap;          /* a tmpfs and /usr can be mounted with shifted ids */
	int seccomp;
	int capture; /* outbound connections of a box can be captured: capture.h */
	int core_piped; /* core_pattern names a handler of the host: a program (run as root), or a socket */
	int merged_usr; /* /bin is a link into /usr */
	int landlock_abi;
	uint64_t
		layers; /* bits of enum jail_feature a box could have, cgroup and disk bits left out */
	char why_not[160]; /* the first failure, as text */
};

/* as_root: the result for the host's root; a keeper without root is root of its own namespace
 * only. */
void probe_host(struct probe *out, int as_root);
