/* steps.h - what the rows of launch.c may use, and the rows that other files of jail/ define.
 * Everything here runs between clone and exec in memory shared with the launcher: no allocation,
 * no libc state, no setuid() wrappers. */
#pragma once
#include "base/err.h"
#include "jail/launch.h"

struct launch_ctx { /* one launch in progress, shared by launcher and child */
	const struct spec *sp;
	int layer_root; /* detached mount of the template's skeleton, ids shifted; or -1 */
	int proc;       /* detached procfs of the box's pid namespace; -1: mount one */
	int root;       /* O_PATH of the new root, once it is there */
	int upper;      /* the box's writable layer */
	int boot; /* the content of boot_id in the box; init writes it. Tier process: the list of init's children */
	unsigned row;             /* the row that runs */
	char folder[JAIL_FOLDER]; /* tier process: in place of /home/user; "": not made yet */
	/* detached mounts of jail_host_folders that the box may change in its layer, ids shifted; or -1 */
	int host[JAIL_HOST_FOLDERS];
	struct err err;
};

must_check int user_become_root(struct launch_ctx *b, struct err *e);
must_check int user_become_init(struct launch_ctx *b, struct err *e);
must_check int user_new_keyring(struct launch_ctx *b, struct err *e);

must_check int mnt_private(struct launch_ctx *b, struct err *e);
must_check int mnt_disk(struct launch_ctx *b, struct err *e);
must_check int mnt_root(struct launch_ctx *b, struct err *e);
must_check int mnt_volumes(struct launch_ctx *b, struct err *e);
must_check int mnt_usr(struct launch_ctx *b, struct err *e);
must_check int mnt_dev(struct launch_ctx *b, struct err *e);
must_check int mnt_proc(struct launch_ctx *b, struct err *e);
must_check int mnt_sys(struct launch_ctx *b, struct err *e);
must_check int mnt_ns_limits(struct launch_ctx *b, struct err *e);
must_check int mnt_engine_ns_limits(struct launch_ctx *b, struct err *e);
must_check int mnt_gvisor_files(struct launch_ctx *b, struct err *e);
must_check int mnt_gvisor_root(struct launch_ctx *b, struct err *e);
must_check int mnt_gvisor_ns_limits(struct launch_ctx *b, struct err *e);
must_check int mnt_gvisor_sysctls(struct launch_ctx *b, struct err *e);
must_check int mnt_boot_id(struct launch_ctx *b, struct err *e);
must_check int mnt_proc_readonly(struct launch_ctx *b, struct err *e);
must_check int mnt_proc_masks(struct launch_ctx *b, struct err *e);
must_check int mnt_switch(struct launch_ctx *b, struct err *e);
must_check int mnt_verify(struct launch_ctx *b, struct err *e);

/* ---- for each other ---- */

/* Names of the layers in the options of an overlay: "k67/var/lib/dpkg:". */
enum { LOWER_NAMES = JAIL_LOWERS * 18 + 2, OVERLAY_OPTIONS = LOWER_NAMES + 160 };
_Static_assert(OVERLAY_OPTIONS < 4096, "the kernel reads one page");

/* A folder below the new root, made if it is missing; no link is followed. */
must_check int mnt_open_place(const struct launch_ctx *b, const char *path, struct err *e);
/* Makes a clone of this folder of the keeper root, with the mounts below it, visible in the new root. */
must_check int mnt_attach_clone(const struct launch_ctx *b, const char *from, const char *path,
				struct err *e);
/* bin, lib ... in the working folder: links into /usr, as the host has them. */
must_check int mnt_link_usr(struct err *e);
/* The working folder is the procfs of the box. */
must_check int mnt_write_ns_limit(const char *name, const char *value, struct err *e);
/* mnt_host.c. Launcher: clones the folders; a folder that cannot be changed on this host is -1. */
must_check int mnt_host_open(int userns, int out_mounts[JAIL_HOST_FOLDERS], struct err *e);
/* Makes their overlays, before that of the root: its upper folder is above theirs. */
must_check int mnt_host(const struct launch_ctx *b, struct err *e);
must_check int mnt_host_attach(const struct launch_ctx *b, struct err *e);

must_check int process_folder(struct launch_ctx *b, struct err *e);
must_check int process_session(struct launch_ctx *b, struct err *e);
must_check int process_bounds(struct launch_ctx *b, struct err *e);
must_check int process_identity(struct launch_ctx *b, struct err *e);
must_check int process_capabilities(struct launch_ctx *b, struct err *e);
must_check int process_children(struct launch_ctx *b, struct err *e);
must_check int process_landlock(struct launch_ctx *b, struct err *e);
uint32_t process_uid(const struct spec *sp); /* of all its processes */
/* Replaces this process by the supervisor of init; returns only if that fails. */
int process_supervise(const struct launch_ctx *b, pid_t init, struct err *e);

must_check int net_loopback(struct launch_ctx *b, struct err *e);
must_check int net_unused(struct launch_ctx *b, struct err *e);
