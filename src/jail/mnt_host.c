/* mnt_host.c - folders of the host that a box may change in its own layer: boxes of template builds
 * (spec.host_writable). The host's files are only read.
 *
 *   /hN  the host's folder: a clone of its mount, ro,nosuid,nodev, ids shifted into the box
 *   /aN  an overlay above it that reads with the rights of a user that owns no file: files that only
 *        their owner or group may read on the host stay unreadable, for the root of the box, too
 *   /oN  the overlay that the box sees: the layers of its root above /aN, and its disk on top
 *
 * The shifted ids let root of the box replace files of the host's root in its own layer. Without /aN
 * they would also let it read the files that are for the host's root alone. */
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/mnt.h"
#include "jail/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOST_READER 65535 /* reserved: no file belongs to it */

const char *const jail_host_folders[JAIL_HOST_FOLDERS] = { "usr", "var/lib/dpkg" };

static const struct host_row {
	const char *from; /* in the keeper root */
	const char *mask; /* files that replace those of the host: template.c, write_installer() */
} host_rows[JAIL_HOST_FOLDERS] = {
	{ "/u", "l/opt/atoll/usr" },
	{ "/q", "l/opt/atoll/dpkg" },
};

int mnt_host_open(int userns, int out_mounts[JAIL_HOST_FOLDERS], struct err *e)
{
	for (unsigned i = 0; i < JAIL_HOST_FOLDERS; i++)
		/* EINVAL: another file system than that of /usr, and without shifted ids. ENOENT: the
		 * host has no such folder. Then it is as in other boxes. */
		if (mnt_layer(host_rows[i].from, userns, &out_mounts[i], e) < 0 &&
		    e->sys != EINVAL && e->sys != ENOENT)
			return -1;
	return 0;
}

/* ---- in the child ---- */

static int host_set_reader(unsigned id, struct err *e)
{
	/* The calls return the id that was set before; an invalid one changes nothing. */
	syscall(SYS_setfsgid, id);
	syscall(SYS_setfsuid, id);
	if (syscall(SYS_setfsgid, -1) != (long)id || syscall(SYS_setfsuid, -1) != (long)id)
		return err_set(e, ERR_SYS, "cannot access files with the id %u", id);
	return 0;
}

/* The kernel drops the capabilities over files together with the id. */
static int host_reader_is_plain(struct err *e)
{
	const uint64_t over_files =
		UINT64_C(1) << CAP_DAC_OVERRIDE | UINT64_C(1) << CAP_DAC_READ_SEARCH;
	uint64_t permitted, effective;

	if (caps_read(&permitted, &effective, e) < 0)
		return -1;
	if (effective & over_files)
		return err_set(e, ERR_SYS,
			       "the reader of the host's files has capabilities over them");
	return 0;
}

/* An overlay accesses its layers with the identity of the process that mounted it. */
static int host_mount_view(unsigned i, struct err *e)
{
	char options[64], at[8];
	int done = -1;

	snprintf(options, sizeof(options), "userxattr,lowerdir=%s:h%u", host_rows[i].mask, i);
	snprintf(at, sizeof(at), "/a%u", i);
	if (host_set_reader(HOST_READER, e) < 0)
		return -1;
	if (host_reader_is_plain(e) == 0) {
		done = mount("host", at, "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options);
		if (done < 0)
			err_sys(e, "mount a view of the host's /%s", jail_host_folders[i]);
	}
	return host_set_reader(0, e) < 0 ? -1 : done;
}

/* The folders down to the place on the disk; they are empty, and as those of the skeleton. */
static int host_upper(const char *path, struct err *e)
{
	char at[64];

	for (const char *p = path; p; p = strchr(p + 1, '/')) {
		const char *end = strchr(p + 1, '/');

		snprintf(at, sizeof(at), "/b/u/%.*s",
			 (int)(end ? (size_t)(end - path) : strlen(path)), path);
		if (mkdir(at, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "make %s on the disk", path);
	}
	return 0;
}

static int host_overlay(const struct launch_ctx *b, unsigned i, struct err *e)
{
	const char *path = jail_host_folders[i];
	char options[OVERLAY_OPTIONS], at[8];
	int n = snprintf(
		options, sizeof(options),
		"index=off,metacopy=off,userxattr%s,upperdir=b/u/%s,workdir=b/x%u,lowerdir=",
		b->sp->disk < 0 ? "" : ",volatile", path, i);

	for (unsigned k = 0; k < b->sp->nlowers; k++)
		if (b->sp->lowers[k].has[i])
			n += snprintf(options + n, sizeof(options) - (size_t)n, "k%u/%s:", k, path);
	snprintf(options + n, sizeof(options) - (size_t)n, "a%u", i);
	snprintf(at, sizeof(at), "/b/x%u", i);
	if (host_upper(path, e) < 0)
		return -1;
	if (mkdir(at, 0700) < 0)
		return err_sys(e, "make %s", at);
	snprintf(at, sizeof(at), "/o%u", i);
	if (mount("overlay", at, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return err_sys(e, "mount an overlay for /%s", path);
	return 0;
}

int mnt_host(const struct launch_ctx *b, struct err *e)
{
	char at[8];

	for (unsigned i = 0; i < JAIL_HOST_FOLDERS; i++) {
		if (b->host[i] < 0)
			continue;
		snprintf(at, sizeof(at), "/h%u", i);
		if (move_mount(b->host[i], "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return err_sys(e, "mount the host's /%s", jail_host_folders[i]);
		if (host_mount_view(i, e) < 0 || host_overlay(b, i, e) < 0)
			return -1;
	}
	return 0;
}

int mnt_host_attach(const struct launch_ctx *b, struct err *e)
{
	char from[8], path[32];

	for (unsigned i = 0; i < JAIL_HOST_FOLDERS; i++) {
		auto_fd int at = -1;

		if (b->host[i] < 0)
			continue;
		snprintf(path, sizeof(path), "/%s", jail_host_folders[i]);
		at = mnt_open_place(b, path, e);
		if (at < 0)
			return err_in(e, "%s", path);
		snprintf(from, sizeof(from), "/o%u", i);
		if (move_mount(AT_FDCWD, from, at, "", MOVE_MOUNT_T_EMPTY_PATH) < 0)
			return err_sys(e, "mount onto %s", path);
	}
	return 0;
}
