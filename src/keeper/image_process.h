/* image_process.h - the process that unpacks an image layer.
 * Its bytes come from a registry, and libarchive reads them: so the process has nothing else.
 *
 *   root            the new folder, and no other file system. The mount shifts ids: id X of the
 *                   archive is id X on the disk, and an unused id of the host in the process
 *   namespaces      user, mount, network, pid, ipc, uts, cgroup: all its own
 *   capabilities    CHOWN DAC_OVERRIDE FOWNER FSETID, of its user namespace; no new privileges
 *   system calls    those on files below its root; no socket, no process, no executable memory
 *   limits          memory, CPU time, file size, descriptors, wall time */
#pragma once
#include "keeper/image_unpack.h"

/* The calling process is root in the host's mount namespace. dir: the new folder; uid_base: 65536
 * ids that no other process has. */
must_check int image_process_unpack(int dir, int archive, uint32_t uid_base,
				    const struct image_limits *limits, struct image_sum *out,
				    struct err *e);
