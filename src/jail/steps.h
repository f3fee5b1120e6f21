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
	int boot;       /* the content of boot_id in the box; init writes it */
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
must_check int mnt_boot_id(struct launch_ctx *b, struct err *e);
must_check int mnt_proc_readonly(struct launch_ctx *b, struct err *e);
must_check int mnt_proc_masks(struct launch_ctx *b, struct err *e);
must_check int mnt_switch(struct launch_ctx *b, struct err *e);
must_check int mnt_verify(struct launch_ctx *b, struct err *e);

must_check int net_loopback(struct launch_ctx *b, struct err *e);
must_check int net_unused(struct launch_ctx *b, struct err *e);
