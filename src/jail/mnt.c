/* mnt.c - the mounts of one box, made from inside its namespaces (see mnt.h for the keeper root).
 *
 * The box's root is an overlay: the template's skeleton below, the box's own disk above. /usr is
 * the host's, read-only, and no user of the box owns it. Targets are opened below the root's
 * descriptor and mounted onto by descriptor; a template may be hostile. */
#include "base/cleanup.h"
#include "jail/feature.h"
#include "jail/mnt.h"
#include "jail/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

const struct mnt_row mnt_rows[] = {
	/* clang-format off */
	{ "/", "overlay nosuid,nodev", "the template below, the box's own disk above. A root of an image: its layers, and a skeleton above them, so that no link of the image is a mount point" },
	{ "/usr", "bind ro,nosuid,nodev", "the host's programs; nothing to download. With layers: an overlay, ro. In a template build: an overlay with the box's disk on top. Not in a root of an image" },
	{ "/dev", "bind ro,nosuid,noexec", "null zero full random urandom tty and links, no more" },
	{ "/dev/pts", "devpts nosuid,noexec max=64", "own terminals; the host's are out of reach" },
	{ "/dev/shm", "bind nosuid,nodev,noexec", "shared memory, counted as disk and as memory" },
	{ "/proc", "proc ro,nosuid,nodev,noexec hidepid=2", "own processes, init hidden; no sysctl, no OOM order to write" },
	{ "/sys", "bind ro,nosuid,nodev,noexec", "processor counts only: sysfs is kernel surface" },
	/* clang-format on */
};
const unsigned mnt_nrows = ARRAY_LEN(mnt_rows);

#define FILE_MASK "/d/null"
#define DIR_MASK "/s/empty"

const struct mnt_row mnt_masks[] = {
	{ "acpi", DIR_MASK, "firmware events" },
	{ "asound", DIR_MASK, "sound cards" },
	{ "scsi", DIR_MASK, "can remove disks" },
	{ "dynamic_debug", DIR_MASK, "kernel log control" },
	{ "interrupts", FILE_MASK, "timing side channel" },
	{ "kcore", FILE_MASK, "kernel memory" },
	{ "keys", FILE_MASK, "keyrings are not namespaced" },
	{ "key-users", FILE_MASK, "keyrings are not namespaced" },
	{ "latency_stats", FILE_MASK, "other tenants' behaviour" },
	{ "timer_list", FILE_MASK, "kernel addresses, other tenants' timers" },
	{ "timer_stats", FILE_MASK, "other tenants' timers" },
	{ "sched_debug", FILE_MASK, "other tenants' processes" },
	{ "slabinfo", FILE_MASK, "heap layout for kernel exploits" },
	{ "vmallocinfo", FILE_MASK, "kernel addresses" },
	{ "iomem", FILE_MASK, "physical layout" },
	{ "ioports", FILE_MASK, "physical layout" },
	{ "kpagecount", FILE_MASK, "physical memory" },
	{ "kpageflags", FILE_MASK, "physical memory" },
	{ "kpagecgroup", FILE_MASK, "physical memory, other cgroups" },
	{ "pagetypeinfo", FILE_MASK, "physical memory" },
	{ "zoneinfo", FILE_MASK, "physical memory" },
	{ "kallsyms", FILE_MASK, "kernel addresses" },
	{ "kmsg", FILE_MASK, "the host's log" },
	{ "cmdline", FILE_MASK, "the host's boot options" },
	{ "sysrq-trigger", FILE_MASK, "reboots the host" },
	{ "locks", FILE_MASK, "locks of all boxes, with ranges that carry messages" },
	{ "diskstats", FILE_MASK, "the host's disks and their traffic" },
	{ "cgroups", FILE_MASK, "how many boxes there are" },
};
const unsigned mnt_nmasks = ARRAY_LEN(mnt_masks);

/* Namespaces of the other kinds take CAP_SYS_ADMIN, which no process of a box can have. */
const struct mnt_row mnt_ns_rows[] = {
	{ "max_user_namespaces", "0", "no nested capabilities, even where the filter has a hole" },
	{ "max_inotify_instances", "64", "counted per host uid otherwise" },
	{ "max_inotify_watches", "65536", "pinned kernel memory" },
};
const unsigned mnt_n_ns_rows = ARRAY_LEN(mnt_ns_rows);

/* A place is named by its last part, or is below a mount of Atoll's: no link leads there, and a
 * link at the place itself is not followed. */
static int mnt_attach(const struct launch_ctx *b, int mountfd, const char *path, struct err *e)
{
	if (move_mount(mountfd, "", b->root, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "mount onto /%s", path);
	return 0;
}

/* With the mounts below it: without root, each device node is a mount. */
int mnt_attach_clone(const struct launch_ctx *b, const char *from, const char *path, struct err *e)
{
	auto_fd int fd =
		open_tree(AT_FDCWD, from, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (fd < 0)
		return err_sys(e, "clone %s", from);
	return mnt_attach(b, fd, path, e);
}

struct option {
	const char *key, *value; /* value NULL: a flag, or a descriptor */
	int fd;
};

static int mnt_configure(int fs, const struct option *o)
{
	if (o->value)
		return fsconfig(fs, FSCONFIG_SET_STRING, o->key, o->value, 0);
	if (o->fd > 0)
		return fsconfig(fs, FSCONFIG_SET_FD, o->key, NULL, o->fd);
	return fsconfig(fs, FSCONFIG_SET_FLAG, o->key, NULL, 0);
}

static int new_fs(const char *type, const struct option *opts, unsigned n, unsigned attrs,
		  struct err *e)
{
	auto_fd int fs = fsopen(type, FSOPEN_CLOEXEC);
	int fd;

	if (fs < 0)
		return err_sys(e, "open filesystem %s", type);
	for (unsigned i = 0; i < n; i++)
		if (mnt_configure(fs, &opts[i]) < 0)
			return err_sys(e, "%s: option %s", type, opts[i].key);
	if (fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return err_sys(e, "create %s", type);
	fd = fsmount(fs, FSMOUNT_CLOEXEC, attrs);
	if (fd < 0)
		return err_sys(e, "mount %s", type);
	return fd;
}

int mnt_private(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "make mounts private");
	return 0;
}

static int place_disk(const struct spec *sp, struct err *e)
{
	char options[96];

	if (sp->disk >= 0) {
		if (move_mount(sp->disk, "", AT_FDCWD, "/b", MOVE_MOUNT_F_EMPTY_PATH) < 0)
			return err_sys(e, "mount the disk");
		return 0;
	}
	snprintf(options, sizeof(options), "mode=755,size=%llu,nr_inodes=%llu",
		 (unsigned long long)sp->disk_bytes, (unsigned long long)sp->disk_files);
	if (mount("tmpfs", "/b", "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		return err_sys(e, "mount a disk of %llu bytes", (unsigned long long)sp->disk_bytes);
	return 0;
}

int mnt_disk(struct launch_ctx *b, struct err *e)
{
	if (place_disk(b->sp, e) < 0)
		return -1;
	if (mkdir("/b/u", 0755) < 0 || mkdir("/b/w", 0700) < 0 || mkdir("/b/shm", 01777) < 0)
		return err_sys(e, "folders on the disk");
	b->upper = open("/b/u", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (b->upper < 0)
		return err_sys(e, "open the writable layer");
	return 0;
}

/* Mounts the further layers at /k0, /k1, ... */
static int place_lowers(const struct launch_ctx *b, struct err *e)
{
	char at[16];

	for (unsigned i = 0; i < b->sp->nlowers; i++) {
		snprintf(at, sizeof(at), "/k%u", i);
		if (move_mount(b->sp->lowers[i].mount, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) <
		    0)
			return err_sys(e, "mount layer %u", i);
	}
	return 0;
}

/* "k0:k1:l", or of an image "l:k0:k1". Relative names: mountinfo in the box shows them, and must
 * not show the keeper's paths. */
static void lower_names(const struct launch_ctx *b, char out[LOWER_NAMES])
{
	int image = b->sp->image, n = 0;

	if (image)
		n = snprintf(out, LOWER_NAMES, "l");
	for (unsigned i = 0; i < b->sp->nlowers; i++)
		n += snprintf(out + n, LOWER_NAMES - (size_t)n, "%sk%u%s", image ? ":" : "", i,
			      image ? "" : ":");
	if (!image)
		snprintf(out + n, LOWER_NAMES - (size_t)n, "l");
}

/* A copy-up at the first file costs four times as much; but a box that only waits does not need
 * two more folders. Made as in the template: where a further layer has it otherwise, that layer
 * decides. */
static int open_home(const struct launch_ctx *b, struct err *e)
{
	if (!b->sp->at_home || b->sp->nlowers || b->sp->image)
		return 0;
	if (mkdir("/b/u/home", 0755) < 0 || mkdir("/b/u/home/user", 0755) < 0 ||
	    chown("/b/u/home/user", JAIL_USER, JAIL_USER) < 0)
		return err_sys(e, "the user's folder");
	return 0;
}

static int mnt_overlay(struct launch_ctx *b, struct err *e)
{
	char lowers[LOWER_NAMES], options[OVERLAY_OPTIONS];

	if (b->layer_root < 0)
		return err_set(e, ERR_SYS, "an overlay root needs shifted ids");
	if (move_mount(b->layer_root, "", AT_FDCWD, "/l", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "mount the template");
	if (place_lowers(b, e) < 0 || open_home(b, e) < 0 || mnt_host(b, e) < 0)
		return -1;
	lower_names(b, lowers);
	/* volatile: on a real disk an unmount would sync it, with the data of other boxes. */
	snprintf(options, sizeof(options),
		 "lowerdir=%s,upperdir=b/u,workdir=b/w,index=off,metacopy=off,userxattr%s", lowers,
		 b->sp->disk < 0 ? "" : ",volatile");
	if (mount("overlay", "/r", "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return err_sys(e, "mount overlay");
	return 0;
}

/* One folder of the template, as it is and read-only. flags: MS_NOEXEC, or 0 where programs are
 * in it. */
static int bind_template(const char *name, unsigned long flags, struct err *e)
{
	char from[24], to[24];

	snprintf(from, sizeof(from), "/t/%s", name);
	snprintf(to, sizeof(to), "/r/%s", name);
	if (mount(from, to, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, to, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | flags,
		  NULL) < 0)
		return err_sys(e, "bind /%s", name);
	return 0;
}

int mnt_link_usr(struct err *e)
{
	static const char *const merged[] = { "bin", "sbin", "lib", "lib32", "lib64" };
	char to[16], in_usr[16];

	for (unsigned i = 0; i < ARRAY_LEN(merged); i++) {
		snprintf(to, sizeof(to), "usr/%s", merged[i]);
		snprintf(in_usr, sizeof(in_usr), "/u/%s", merged[i]);
		if (access(in_usr, F_OK) == 0 && symlink(to, merged[i]) < 0)
			return err_sys(e, "link /%s", merged[i]);
	}
	return 0;
}

/* Without overlays: the same folders made one by one, with those of the template bound. */
static int plain_root(const struct launch_ctx *b, struct err *e)
{
	static const struct mnt_place {
		const char *path;
		unsigned mode, id;
	} dirs[] = {
		{ "dev", 0755, 0 },  { "etc", 0755, 0 },
		{ "home", 0755, 0 }, { "home/user", 0755, JAIL_USER },
		{ "proc", 0755, 0 }, { "root", 0711, 0 },
		{ "run", 0755, 0 },  { "sys", 0755, 0 },
		{ "tmp", 01777, 0 }, { "usr", 0755, 0 },
		{ "var", 0755, 0 },  { "var/tmp", 01777, 0 },
		{ "opt", 0755, 0 },  { "opt/atoll", 0755, 0 },
		{ "mnt", 0755, 0 },
	};
	int many_ids = !!(b->sp->layers & FEATURE_BIT(FEATURE_UIDRANGE));

	if (mount("/b/u", "/r", NULL, MS_BIND, NULL) < 0 || chdir("/r") < 0)
		return err_sys(e, "bind the disk as root");
	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdir(dirs[i].path, 0755) < 0 ||
		    (many_ids && chown(dirs[i].path, dirs[i].id, dirs[i].id) < 0) ||
		    chmod(dirs[i].path, dirs[i].mode) < 0)
			return err_sys(e, "make /%s", dirs[i].path);
	if (mnt_link_usr(e) < 0)
		return -1;
	if (chdir("/") < 0)
		return err_sys(e, "chdir /");
	return bind_template("etc", MS_NOEXEC, e) < 0 || bind_template("opt/atoll", 0, e) < 0 ? -1
											      : 0;
}

int mnt_root(struct launch_ctx *b, struct err *e)
{
	int made =
		b->sp->layers & FEATURE_BIT(FEATURE_OVERLAY) ? mnt_overlay(b, e) : plain_root(b, e);

	if (made < 0)
		return -1;
	b->root = open("/r", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->root < 0)
		return err_sys(e, "open the new root");
	return 0;
}

/* Opens the next part of a path, made if it is missing, without following links. Below its home
 * it belongs to the user. */
static int step_into(int dir, const char *name, int users, struct err *e)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS };
	int fd;

	if (mkdirat(dir, name, 0755) == 0) {
		if (users && fchownat(dir, name, JAIL_USER, JAIL_USER, AT_SYMLINK_NOFOLLOW) < 0)
			return err_sys(e, "owner of %s", name);
	} else if (errno != EEXIST) {
		return err_sys(e, "make %s", name);
	}
	fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof(how));
	return fd < 0 ? err_sys(e, "open %s", name) : fd;
}

int mnt_open_place(const struct launch_ctx *b, const char *path, struct err *e)
{
	int users = strncmp(path, "/home/user/", 11) == 0;
	auto_fd int at = fcntl(b->root, F_DUPFD_CLOEXEC, 3);
	char name[256];

	while (at >= 0 && *path == '/') {
		size_t n = strcspn(path + 1, "/");
		int next;

		if (n == 0 || n >= sizeof(name))
			return err_set(e, ERR_INVALID,
				       "a part of the path is empty or longer than 255 bytes");
		memcpy(name, path + 1, n);
		name[n] = 0;
		path += 1 + n;
		next = step_into(at, name, users, e);
		close(at);
		at = next;
	}
	return steal_fd(&at);
}

static int mount_volume(const struct launch_ctx *b, int mount, const char *path, struct err *e)
{
	auto_fd int at = mnt_open_place(b, path, e);

	if (at < 0)
		return -1;
	if (move_mount(mount, "", at, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "mount");
	return 0;
}

/* In memory also if the box has a disk, and part of no snapshot: it is another file system. */
static int mount_secrets(const struct launch_ctx *b, struct err *e)
{
	static const struct option opts[] = { { "source", "secrets", 0 }, { "size", "4m", 0 },
					      { "nr_inodes", "256", 0 },  { "mode", "0755", 0 },
					      { "uid", "1000", 0 },       { "gid", "1000", 0 } };
	auto_fd int fd = new_fs("tmpfs", opts, ARRAY_LEN(opts),
				MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);

	return fd < 0 ? -1 : mount_volume(b, fd, "/run/secrets", e);
}

int mnt_volumes(struct launch_ctx *b, struct err *e)
{
	if (b->sp->secrets && mount_secrets(b, e) < 0)
		return err_in(e, "/run/secrets");
	for (unsigned i = 0; i < b->sp->nvolumes; i++)
		if (mount_volume(b, b->sp->volumes[i].mount, b->sp->volumes[i].path, e) < 0)
			return err_in(e, "%s", b->sp->volumes[i].path);
	return 0;
}

/* Layers with files for /usr are mounted over the host's: both read-only, and the host's files
 * keep the owners that they have without layers. With mount(), because fsconfig() takes at most 256
 * bytes; at a place of the keeper root, because a path of the box's root may be a link. */
static int layered_usr(const struct launch_ctx *b, struct err *e)
{
	char options[OVERLAY_OPTIONS];
	int n = snprintf(options, sizeof(options), "userxattr,lowerdir=");

	for (unsigned i = 0; i < b->sp->nlowers; i++)
		if (b->sp->lowers[i].has[0])
			n += snprintf(options + n, sizeof(options) - (size_t)n, "k%u/usr:", i);
	snprintf(options + n, sizeof(options) - (size_t)n, "u");
	if (mount("usr", "/o", "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options) < 0)
		return err_sys(e, "mount an overlay of /usr");
	if (move_mount(AT_FDCWD, "/o", b->root, "usr", 0) < 0)
		return err_sys(e, "mount onto /usr");
	return 0;
}

int mnt_usr(struct launch_ctx *b, struct err *e)
{
	if (b->sp->image)
		return 0;
	if (mnt_host_attach(b, e) < 0)
		return -1;
	if (b->host[0] >= 0)
		return 0;
	for (unsigned i = 0; i < b->sp->nlowers; i++)
		if (b->sp->lowers[i].has[0])
			return layered_usr(b, e);
	return mnt_attach_clone(b, "/u", "usr", e);
}

/* Both are below the box's own /dev, so by name. */
static int mount_pts(struct err *e)
{
	if (mount("devpts", "/r/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  "ptmxmode=0666,mode=0620,max=64") < 0)
		return err_sys(e, "mount terminals");
	return 0;
}

static int mount_shm(struct err *e)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (mount("/b/shm", "/r/dev/shm", NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, "/r/dev/shm", NULL, MS_REMOUNT | MS_BIND | flags, NULL) < 0)
		return err_sys(e, "bind the shared memory folder");
	return 0;
}

int mnt_dev(struct launch_ctx *b, struct err *e)
{
	const char *from = b->sp->engine && b->sp->engine->tier == JAIL_MICROVM ? "/v" : "/d";

	return mnt_attach_clone(b, from, "dev", e) < 0 || mount_pts(e) < 0 || mount_shm(e) < 0 ? -1
											       : 0;
}

int mnt_new_proc(int pidns, struct err *e)
{
	const struct option opts[] = { { "hidepid", "2", 0 }, { "pidns", NULL, pidns } };

	return new_fs("proc", opts, pidns < 0 ? 1 : 2,
		      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, e);
}

int mnt_proc(struct launch_ctx *b, struct err *e)
{
	auto_fd int own = b->proc < 0 ? mnt_new_proc(-1, e) : -1;
	int proc = b->proc < 0 ? own : b->proc;

	if (proc < 0 || mnt_attach(b, proc, "proc", e) < 0)
		return -1;
	/* The following rows use it as their base: a new procfs, independent of the template. */
	if (fchdir(proc) < 0)
		return err_sys(e, "enter proc");
	return 0;
}

int mnt_sys(struct launch_ctx *b, struct err *e)
{
	return mnt_attach_clone(b, "/s/sys", "sys", e);
}

/* The kernel keeps names and inodes in memory until the host needs it: 3 KiB in each of
 * thousands of boxes. A remount without changes frees them. A failure has no effect. */
static void forget_names(void)
{
	(void)mount(NULL, ".", NULL, MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
}

int mnt_write_ns_limit(const char *name, const char *value, struct err *e)
{
	char path[64];
	auto_fd int fd = -1;

	snprintf(path, sizeof(path), "sys/user/%s", name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) /* not in this kernel, so nothing to limit */
		return 0;
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		return err_sys(e, "write %s to %s", value, path);
	return 0;
}

int mnt_ns_limits(struct launch_ctx *b, struct err *e)
{
	(void)b;
	for (unsigned i = 0; i < mnt_n_ns_rows; i++)
		if (mnt_write_ns_limit(mnt_ns_rows[i].path, mnt_ns_rows[i].what, e) < 0)
			return -1;
	forget_names();
	return 0;
}

int mnt_engine_ns_limits(struct launch_ctx *b, struct err *e)
{
	char most[16];

	snprintf(most, sizeof(most), "%u", b->sp->engine->user_namespaces);
	for (unsigned i = 0; i < mnt_n_ns_rows; i++) {
		int is_user = strcmp(mnt_ns_rows[i].path, "max_user_namespaces") == 0;

		if (mnt_write_ns_limit(mnt_ns_rows[i].path, is_user ? most : mnt_ns_rows[i].what,
				       e) < 0)
			return -1;
	}
	forget_names();
	return 0;
}

/* All of it: sysctls, of which some check the uid only and some run programs as the host's root,
 * and the files of every process. One of those is oom_score_adj, whose lower bound is the value
 * that was last written with CAP_SYS_RESOURCE, which a keeper may lack: a program of the box
 * could lower the value that the keeper has written, and be killed later than the host's own
 * processes. */
int mnt_proc_readonly(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (mount(NULL, ".", NULL,
		  MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return err_sys(e, "make /proc read-only");
	return 0;
}

/* Programs take a boot id for "the machine has not been restarted": here the machine is the box.
 * The file is on its disk, outside its root, and visible through a read-only mount; init can
 * write it. */
int mnt_boot_id(struct launch_ctx *b, struct err *e)
{
	static const char path[] = "sys/kernel/random/boot_id";
	const unsigned long flags = MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

	b->boot = open("/b/boot", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (b->boot < 0)
		return err_sys(e, "make the boot id");
	if (mount("/b/boot", path, NULL, MS_BIND, NULL) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "bind /proc/%s", path);
	if (mount(NULL, path, NULL, MS_REMOUNT | flags, NULL) < 0)
		return err_sys(e, "make /proc/%s read-only", path);
	return 0;
}

/* Files that only their owner may open need no mask: the owner is the host's root, to which no
 * id of a box maps, and a box's capabilities do not apply to its files. Files that this kernel
 * did not create at its start need none either; folders may appear later, with a module. Checked
 * once: a mount costs more than a check, but checking 28 files per box costs, too. */
static unsigned char needless[ARRAY_LEN(mnt_masks)];

static int needs_no_mask(const struct mnt_row *row)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s", row->path);
	if (lstat(path, &st) < 0)
		return errno == ENOENT && strcmp(row->what, FILE_MASK) == 0;
	return S_ISREG(st.st_mode) && st.st_uid == 0 && !(st.st_mode & 0007);
}

void mnt_look_at_proc(void)
{
	struct stat st;

	/* Where /proc shows processes only, a missing file proves nothing: boxes get all masks. */
	if (lstat("/proc/uptime", &st) < 0)
		return;
	for (unsigned i = 0; i < mnt_nmasks; i++)
		needless[i] = (unsigned char)needs_no_mask(&mnt_masks[i]);
}

int mnt_proc_masks(struct launch_ctx *b, struct err *e)
{
	(void)b;
	for (unsigned i = 0; i < mnt_nmasks; i++)
		if (!needless[i] &&
		    mount(mnt_masks[i].what, mnt_masks[i].path, NULL, MS_BIND, NULL) < 0 &&
		    errno != ENOENT)
			return err_sys(e, "mask /proc/%s", mnt_masks[i].path);
	return 0;
}

int mnt_switch(struct launch_ctx *b, struct err *e)
{
	if (fchdir(b->root) < 0)
		return err_sys(e, "enter the new root");
	/* The keeper root has a few mounts and all are in the box anyway, so covering it leaves
	 * nothing to reach; pivot_root would walk every task of the host. */
	if (mount(".", "/", NULL, MS_MOVE, NULL) < 0)
		return err_sys(e, "move the new root to /");
	if (chroot(".") < 0 || chdir("/") < 0)
		return err_sys(e, "chroot to the new root");
	return 0;
}

/* That nothing propagates is a property of the keeper's mount namespace, the same for every box
 * made from it, and reading mountinfo is slow: checked in the first box of each launcher. */
static int nothing_propagates(struct err *e)
{
	static _Thread_local int seen;
	auto_fd int fd = seen ? -1 : open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	char text[8192];
	ssize_t n;

	if (seen)
		return 0;
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return err_sys(e, "read mountinfo");
	text[n] = 0;
	if (strstr(text, " shared:") || strstr(text, " master:"))
		return err_set(e, ERR_SYS, "a mount still propagates");
	seen = 1;
	return 0;
}

/* A failed switch must be noticed: /proc is procfs and shows the box's own pid namespace, and
 * the root is the new one. */
int mnt_verify(struct launch_ctx *b, struct err *e)
{
	struct stat root, here;
	struct statfs fs;
	char self[8];
	ssize_t n;

	if (statfs("/proc", &fs) < 0 || fs.f_type != PROC_SUPER_MAGIC)
		return err_set(e, ERR_SYS, "/proc is not procfs");
	n = readlink("/proc/self", self, sizeof(self));
	if (n != 1 || self[0] != '1')
		return err_set(e, ERR_SYS, "/proc shows another pid namespace");
	if (fstat(b->root, &root) < 0 || stat("/", &here) < 0 || root.st_dev != here.st_dev ||
	    root.st_ino != here.st_ino)
		return err_set(e, ERR_SYS, "/ is not the new root");
	return nothing_propagates(e);
}
