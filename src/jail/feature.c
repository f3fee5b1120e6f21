/* feature.c - see feature.h. */
#include "jail/feature.h"

const struct feature_row jail_features[FEATURE_COUNT] = {
	[FEATURE_USERNS] = {
		"user-namespace", "ids inside mean nothing outside; capabilities end at the box", 1,
		"a process of the box is a process of that host uid",
	},
	[FEATURE_UIDRANGE] = {
		"uid-range", "no two boxes share a host uid, nor its keys, limits and signals", 0,
		"boxes count against each other's per-user limits and may reach each other",
	},
	[FEATURE_MOUNTS] = {
		"mounts", "a root of its own: what is not mounted cannot be named", 1,
		"the host's files are in sight",
	},
	[FEATURE_PIDS_NS] = {
		"pid-namespace", "sees only its own processes, and all end with its init", 1,
		"other processes are in sight, and a detached one may outlive the box",
	},
	[FEATURE_NET] = {
		"network", "only lo: no address, no route, no neighbour", 1,
		"the host's network and its abstract sockets are in reach",
	},
	[FEATURE_IPC] = {
		"ipc", "own System V and POSIX queues", 1,
		"shared memory segments of the host are in reach",
	},
	[FEATURE_UTS] = {
		"host-name", "own host name", 0,
		"the host's name is readable inside",
	},
	[FEATURE_CGROUP_NS] = {
		"cgroup-view", "its own cgroup is the root it sees", 0,
		"the box's place in the host's cgroup tree is readable inside",
	},
	[FEATURE_OVERLAY] = {
		"overlay", "the template is shared and never written; changes are the box's own", 0,
		"each box starts from a private copy of the template: slower, same walls",
	},
	[FEATURE_IDMAP] = {
		"idmap", "the template's files belong to the box's root", 0,
		"they have the overflow uid: readable, but root inside cannot change them",
	},
	[FEATURE_MEM] = {
		"memory-limit", "a box out of memory ends itself, not the host", 0,
		"one box can use up the host's memory",
	},
	[FEATURE_TASKS] = {
		"process-limit", "a fork bomb stays in its box", 0,
		"only RLIMIT_NPROC is left against a fork bomb",
	},
	[FEATURE_CPU] = {
		"cpu-limit", "a busy box leaves time for the others", 0,
		"one box can slow down the rest",
	},
	[FEATURE_DEVICES] = {
		"devices", "the kernel refuses devices even if a node should appear", 0,
		"device nodes are kept out by nodev mounts and by capabilities alone",
	},
	[FEATURE_DISK] = {
		"disk-limit", "bytes and files have an end before the host's disk has", 1,
		"one box can fill the host's disk",
	},
	[FEATURE_CAPS] = {
		"capabilities", "none for its user, eight harmless ones for its root", 1,
		"root inside could try every privileged path of the kernel",
	},
	[FEATURE_NNP] = {
		"no-new-privileges", "a setuid program gains nothing", 1,
		"neither the system call filter nor landlock can be loaded",
	},
	[FEATURE_SECCOMP] = {
		"system-calls", "an allowlist: no other ABI, four socket families, no io_uring", 1,
		"all of the kernel is in reach",
	},
	[FEATURE_LANDLOCK] = {
		"landlock", "a second barrier after the mounts, for devices, signals and sockets", 0,
		"one wall fewer",
	},
};

const char *const *layer_names(void)
{
	static const char *names[FEATURE_COUNT + 1];

	for (unsigned i = 0; i < FEATURE_COUNT; i++)
		names[i] = jail_features[i].name;
	return names;
}
