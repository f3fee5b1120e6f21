/* confine_list.h - the confinement of a copy as a list of system calls. The copy executes it before the
 * first call that its image has decided.
 *
 * The namespaces and cgroups are entered before, by the helper that forks the copy. */
#pragma once
#include "procimage/call_list.h"
#include "procimage/copy_steps.h"

struct sock_filter;

struct confine_path { /* landlock: what is allowed below a path of the target */
	const char *path;
	uint64_t rights;
};

struct confine_spec {
	uint32_t uid, gid;         /* inside the target's user namespace */
	uint64_t landlock_handled; /* 0: no landlock */
	const struct confine_path *paths;
	unsigned npaths;
	const struct sock_filter *filter; /* NULL: no filter */
	unsigned short filter_rows;
	int exact_files;  /* mapped files must be the same inodes as at the capture */
	uint32_t without; /* test builds: bits of enum copy_step that are left out */
};

/* Landlock, and no_new_privs, which it needs. Once for a tree, before its processes are born: processes with domains of
 * their own may not see each other in /proc. */
void confine_list_add_domain(const struct confine_spec *spec, struct call_list *l,
			     struct call_data *d);
/* In this order: keyring, capability bounds, ids, capabilities, no_new_privs, filter. What the kernel can report is
 * read back. */
void confine_list_add(const struct confine_spec *spec, struct call_list *l, struct call_data *d);
/* Bytes of data that it adds, at most. */
uint64_t confine_list_bound(const struct confine_spec *spec);
