/* guest.h - the guest stub: the inner end of the channel. Starts init and forwards frames to it. */
#pragma once
#include "mux/packet.h"

enum { GUEST_INIT_ID = 65533 }; /* of init, as in a container box */

struct guest {
	/* clang-format off */
	int channel;
	const char *init_path; /* NULL: its executable is init_exe */
	int init_exe;
	char *user, *root;     /* the two arguments of init */
	int upper;             /* folder of the writable layer, or -1 */
	int boot;              /* file of the boot id, or -1 */
	int boot_mount;        /* a detached mount of it, with has_boot_mount */
	int has_boot_mount;
	int counts;            /* folder of the cgroup of the box in this guest, with has_counts */
	int has_counts;
	int isolate;           /* 1: init gets a pid namespace, a /proc and ids of its own */
	void (*resume)(const struct packet_resume *m); /* the box is taken; NULL: nothing to do */
	void (*over)(int status); /* does not return: init has ended, or the channel */
	/* clang-format on */
};

_Noreturn void guest_run(const struct guest *how);
_Noreturn void guest_main(int argc, char **argv); /* atoll-mux guest INIT UID ROOT [UPPER] */
