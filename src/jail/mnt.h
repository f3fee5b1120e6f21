/* mnt.h - the keeper root: the keeper's own mount namespace, from which every box is made.
 * Owns:         the tmpfs of the keeper root and its mount points.
 * Does not own: a box's mounts; they end with its namespace. The content of /t; see template.c.
 *
 *   /         tmpfs of the keeper
 *   /u        the host's /usr, read-only
 *   /q        the host's /var/lib/dpkg, read-only; missing without dpkg
 *   /d        /dev of every box: six nodes and some links, read-only
 *   /v        the same for outer boxes with QEMU, with /dev/kvm
 *   /s        what must look like /sys, and an empty folder for masks, read-only
 *   /t        skeleton of a box's root: /etc, /home/user, links into /usr
 *   /i        skeleton that lies above the root of an image: mount points, /opt/atoll
 *   /e        files of engines: the images of mux and init, the configuration of runsc
 *   /p        without root only: the host's /proc, so that boxes may mount their own
 *   /b /l /r  where a box puts its disk, its template layer and its root, in its own namespace
 *   /g        where it builds the root of an engine: mnt_gvisor.c
 *   /k0 ...   where it puts further layers
 *   /o        where it makes an overlay for /usr
 *   /h0 ...   where it mounts folders of the host that it may change: mnt_host.c, with /a0, /o0 ... */
#pragma once
#include "base/err.h"
#include <stdint.h>

/* Moves the calling process into a new mount namespace and builds the keeper root at `at`, an existing
 * folder. Before any thread exists. Returns a descriptor of it, to be filled. */
must_check int keeper_root_begin(const char *at, int rootless, int *out_root, struct err *e);
/* Makes the keeper root the root and drops every other mount. Open needed files of the host
 * before. */
must_check int keeper_root_end(int root, struct err *e);

/* A detached, read-only clone of a folder of the keeper root; ids shifted by the user namespace unless -1. */
must_check int mnt_layer(const char *path, int userns, int *out_mount, struct err *e);

/* Shifts the ids of a detached mount, which must be unused so far, as the user namespace maps
 * them. */
must_check int mnt_shift(int mount, int userns, struct err *e);

/* A detached procfs of the given pid namespace (Linux 6.17), or with -1 of the caller's. */
must_check int mnt_new_proc(int pidns, struct err *e);

/* Which masks this kernel needs. Called at the keeper's start, while the host's /proc is
 * visible; without this call all are made. */
void mnt_look_at_proc(void);

struct mnt_row { /* for `atoll policy` */
	const char *path, *what, *why;
};
extern const struct mnt_row mnt_rows[], mnt_masks[], mnt_ns_rows[], mnt_gvisor_ns_rows[];
extern const unsigned mnt_nrows, mnt_nmasks, mnt_n_ns_rows, mnt_n_gvisor_ns_rows;
