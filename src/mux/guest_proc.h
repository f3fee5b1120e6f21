/* guest_proc.h - the boot id of a kernel that has none: gVisor's /proc/sys/kernel has no folder `random`.
 * Owns: a file system in memory on /proc/sys/kernel of the calling process's mount namespace. It has the
 * files that were there, with their present values, and random/boot_id. */
#pragma once

/* The file with the boot id, which init writes; -errno. If the kernel has one itself: -EEXIST. */
int guest_proc_boot_id(void);
