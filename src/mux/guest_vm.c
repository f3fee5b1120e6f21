/* guest_vm.c - see guest_vm.h. The kernel has unpacked the first root (src/tier/image.c):
 *
 *   /mux /init       this program, and init
 *   /modules/NN.ko   in the order of loading
 *   /skeleton        the root of a box without /usr
 *   /image           what lies above the root of an image
 *   /disk /box       the writable layer; the root of the box: skeleton, writable layer above it, /usr
 *   /host /layers    the image of /usr, and the layers of the box
 *
 * Everything up to VM_READY is the same for all boxes, and is part of a template. The limits of the
 * box arrive on the second port, the channel is the first. A failure ends the virtual machine; its
 * line goes to the second port, where `atoll tier prepare` reads it. */
#include "mux/guest_vm.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/guest.h"
#include "wire/vm_start.h"
#include <linux/mount.h>
#include <linux/poll.h>
#include <linux/random.h>
#include <linux/reboot.h>
#include <linux/sockios.h>

enum {
	PORT_WAIT_MS = 10000, /* devices appear after their module was loaded */
	PORT_DEVICES = 10,
	CLOCK_REALTIME_ID = 0,
	VM_IFF_UP = 1,
};

static int ready_port = -1, channel_port = -1;

/* ---- the end ---- */

static _Noreturn void vm_over(int status)
{
	(void)status; /* mux sees that the channel is closed, and init's last frames before that */
	SYS(sync, 0);
	SYS(reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_POWER_OFF, 0);
	SYS(reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_RESTART, 0);
	for (;;)
		sys_ppoll(NULL, 0, -1);
}

static _Noreturn void vm_fail(const char *what, long err)
{
	static char line[200];
	struct text t = { .to = line, .room = sizeof(line) };
	uint32_t kind;

	text_add(&t, "guest: ");
	text_add(&t, what);
	text_add(&t, ": ");
	text_add(&t, text_errno((int)-err, &kind));
	text_add(&t, "\n");
	if (ready_port >= 0)
		sys_write(ready_port, line, t.len);
	vm_over(1);
}

static void vm_need(const char *what, long err)
{
	if (err < 0)
		vm_fail(what, err);
}

static void vm_mount(const char *from, const char *to, const char *type, unsigned long flags,
		     const char *options)
{
	vm_need(to, SYS(mount, from, to, type, flags, options));
}

static void vm_sleep_ms(long ms)
{
	sys_ppoll(NULL, 0, ms * 1000000);
}

/* ---- devices ---- */

static void vm_load_modules(void)
{
	char path[] = "/modules/00.ko";

	for (unsigned i = 0; i < 100; i++) {
		long fd, err;

		path[9] = (char)('0' + i / 10);
		path[10] = (char)('0' + i % 10);
		fd = sys_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
		if (fd == -ENOENT)
			return;
		vm_need(path, fd);
		err = SYS(finit_module, fd, "", 0);
		if (err != -EEXIST)
			vm_need(path, err);
		sys_close((int)fd);
	}
}

/* /dev/vportXpN: X depends on the order in which the kernel has found its devices. */
static int vm_open_port(char number)
{
	char path[] = "/dev/vport0p1";

	path[12] = number;
	for (int waited = 0; waited < PORT_WAIT_MS; waited++) {
		for (int i = 0; i < PORT_DEVICES; i++) {
			long fd;

			path[10] = (char)('0' + i);
			fd = sys_openat(AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0);
			if (fd >= 0)
				return (int)fd;
		}
		vm_sleep_ms(1);
	}
	vm_fail("no port", -ENXIO);
}

static void vm_wait_for(const char *path)
{
	struct stat st;

	for (int waited = 0; waited < PORT_WAIT_MS; waited++) {
		if (sys_fstatat(AT_FDCWD, path, &st, 0) >= 0)
			return;
		vm_sleep_ms(1);
	}
	vm_fail(path, -ENOENT);
}

/* ---- file systems ---- */

static void vm_make_node(const char *path, unsigned major, unsigned minor)
{
	vm_need(path, SYS(mknodat, AT_FDCWD, path, S_IFCHR | 0666, major << 8 | minor));
	vm_need(path, sys_fchmodat(AT_FDCWD, path, 0666));
}

/* As keeper_root.c makes it for container boxes. */
static void vm_make_dev(void)
{
	static const char *const links[][2] = {
		{ "/proc/self/fd", "/box/dev/fd" },       { "/proc/self/fd/0", "/box/dev/stdin" },
		{ "/proc/self/fd/1", "/box/dev/stdout" }, { "/proc/self/fd/2", "/box/dev/stderr" },
		{ "pts/ptmx", "/box/dev/ptmx" },
	};

	vm_mount("dev", "/box/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=755,size=64k");
	vm_make_node("/box/dev/null", 1, 3);
	vm_make_node("/box/dev/zero", 1, 5);
	vm_make_node("/box/dev/full", 1, 7);
	vm_make_node("/box/dev/random", 1, 8);
	vm_make_node("/box/dev/urandom", 1, 9);
	vm_make_node("/box/dev/tty", 5, 0);
	for (unsigned i = 0; i < ARRAY_LEN(links); i++)
		vm_need(links[i][1], sys_symlinkat(links[i][0], AT_FDCWD, links[i][1]));
	vm_need("pts", sys_mkdirat(AT_FDCWD, "/box/dev/pts", 0755));
	vm_need("shm", sys_mkdirat(AT_FDCWD, "/box/dev/shm", 0755));
	vm_mount("devpts", "/box/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		 "newinstance,ptmxmode=0666,mode=0620,gid=5,max=64");
	vm_mount("/disk/shm", "/box/dev/shm", NULL, MS_BIND, NULL);
	vm_mount(NULL, "/box/dev", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NOEXEC,
		 NULL);
}

static void vm_make_disk(void)
{
	vm_mount("disk", "/disk", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=2m");
	vm_need("upper", sys_mkdirat(AT_FDCWD, "/disk/upper", 0755));
	vm_need("work", sys_mkdirat(AT_FDCWD, "/disk/work", 0700));
	vm_need("shm", sys_mkdirat(AT_FDCWD, "/disk/shm", 01777));
	vm_need("shm", sys_fchmodat(AT_FDCWD, "/disk/shm", 01777));
	vm_wait_for("/dev/vda");
	vm_mount("/dev/vda", "/host", "erofs", MS_RDONLY | MS_NOSUID | MS_NODEV, "");
	vm_mount("cgroup", "/sys", "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
}

/* Layers mark deletions and opaque folders with attributes of users. The tmpfs of kernels before 6.6 has none of those: without
 * layers the attributes are those of root, so that folders can be moved. */
static void vm_mount_root(const char *lowers, int layered)
{
	static char options[256];
	struct text t = { .to = options, .room = sizeof(options) };

	text_add(&t, layered ? "userxattr," : "");
	text_add(&t, "index=off,metacopy=off,upperdir=/disk/upper,workdir=/disk/work,lowerdir=");
	text_add(&t, lowers);
	vm_mount("overlay", "/box", "overlay", MS_NOSUID | MS_NODEV, options);
}

static void vm_mount_kernel_folders(void)
{
	vm_make_dev();
	vm_mount("proc", "/box/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, "");
}

/* ---- layers ---- */

static char *vm_layer_path(unsigned i, const char *below)
{
	static char path[40];
	struct text t = { .to = path, .room = sizeof(path) };

	text_add(&t, "/layers/");
	text_add_number(&t, i);
	text_add(&t, below);
	return path;
}

static void vm_mount_layer(unsigned i)
{
	char disk[] = "/dev/vdb";

	disk[7] = (char)('b' + i);
	vm_wait_for(disk);
	vm_need("layer", sys_mkdirat(AT_FDCWD, vm_layer_path(i, ""), 0755));
	vm_mount(disk, vm_layer_path(i, ""), "erofs", MS_RDONLY | MS_NOSUID | MS_NODEV, "");
}

/* As mnt.c does for container boxes: layers with files for /usr are mounted over that of the host. */
static void vm_mount_usr(unsigned layers)
{
	static char options[256];
	struct text t = { .to = options, .room = sizeof(options) };
	unsigned i, n = 0;
	struct stat st;

	text_add(&t, "userxattr,lowerdir=");
	for (i = 0; i < layers; i++) {
		if (sys_fstatat(AT_FDCWD, vm_layer_path(i, "/usr"), &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    (st.st_mode & S_IFMT) != S_IFDIR)
			continue;
		text_add(&t, vm_layer_path(i, "/usr"));
		text_add(&t, ":");
		n++;
	}
	text_add(&t, "/host");
	if (n)
		vm_mount("usr", "/box/usr", "overlay", MS_RDONLY | MS_NOSUID | MS_NODEV, options);
	else
		vm_mount("/host", "/box/usr", NULL, MS_BIND, NULL);
}

/* In place of the root that the template has. */
static void vm_make_layered_root(const struct vm_start *m)
{
	static char lowers[128];
	struct text t = { .to = lowers, .room = sizeof(lowers) };
	int whole = !!(m->flags & VM_WHOLE_ROOT);
	unsigned i;

	vm_need("root", SYS(umount2, "/box", 2 /* MNT_DETACH */));
	if (whole)
		text_add(&t, "/image:");
	for (i = 0; i < m->layers; i++) {
		vm_mount_layer(i);
		text_add(&t, vm_layer_path(i, ""));
		text_add(&t, i + 1 < m->layers || !whole ? ":" : "");
	}
	if (!whole)
		text_add(&t, "/skeleton");
	vm_mount_root(lowers, 1);
	if (!whole)
		vm_mount_usr(m->layers);
	vm_mount_kernel_folders();
}

static void vm_make_secrets(void)
{
	long err = sys_mkdirat(AT_FDCWD, "/box/run/secrets", 0755);

	struct stat st;

	if (err != -EEXIST)
		vm_need("secrets", err);
	vm_need("secrets", sys_fstatat(AT_FDCWD, "/box/run/secrets", &st, AT_SYMLINK_NOFOLLOW));
	if ((st.st_mode & S_IFMT) != S_IFDIR)
		vm_fail("secrets", -ENOTDIR);
	vm_mount("secrets", "/box/run/secrets", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		 "size=4m,nr_inodes=256,mode=0755,uid=1000,gid=1000");
}

/* ---- limits ---- */

static void vm_write(const char *path, const char *value)
{
	long fd = sys_openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);

	vm_need(path, fd);
	vm_need(path, sys_write((int)fd, value, strlen(value)));
	sys_close((int)fd);
}

static void vm_write_number(const char *path, uint64_t value)
{
	char number[24];
	struct text t = { .to = number, .room = sizeof(number) };

	text_add_number(&t, value);
	vm_write(path, number);
}

/* init joins this group before it starts anything: guest_init.c clones it from this process. */
static void vm_limit(const struct vm_start *m)
{
	char options[80];
	struct text t = { .to = options, .room = sizeof(options) };

	vm_write("/sys/cgroup.subtree_control", "+memory +pids");
	vm_need("cgroup", sys_mkdirat(AT_FDCWD, "/sys/box", 0755));
	vm_write_number("/sys/box/memory.max", m->mem_bytes);
	if (m->pids)
		vm_write_number("/sys/box/pids.max", m->pids);
	text_add(&t, "size=");
	text_add_number(&t, m->disk_bytes);
	text_add(&t, ",nr_inodes=");
	text_add_number(&t, m->disk_files);
	vm_mount("disk", "/disk", "tmpfs", MS_REMOUNT | MS_NOSUID | MS_NODEV, options);
	vm_write("/sys/box/cgroup.procs", "0");
}

static int vm_open_counts(void)
{
	long fd = sys_openat(AT_FDCWD, "/sys/box", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	vm_need("cgroup", fd);
	return (int)fd;
}

static void vm_receive_start(struct vm_start *m)
{
	char *to = (char *)m;
	size_t got = 0;

	while (got < sizeof(*m)) {
		struct pollfd p = { .fd = ready_port, .events = POLLIN };
		long n = sys_read(ready_port, to + got, sizeof(*m) - got);

		if (n > 0) {
			got += (size_t)n;
			continue;
		}
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			vm_fail("second port", n);
		sys_ppoll(&p, 1, 100000000);
		if (n == 0)
			vm_sleep_ms(1); /* no process has opened it outside */
	}
	if (m->magic != VM_START_MAGIC || !m->mem_bytes || !m->disk_bytes || m->layers > VM_LAYERS)
		vm_fail("limits of the box", -EINVAL);
}

/* ---- network ---- */

/* Servers of a box and their clients, and ports that are reached from outside, use the loopback interface. */
static void vm_start_loopback(void)
{
	struct { /* as ifreq of linux/if.h, which includes headers of the C library */
		char name[16];
		short flags;
		char rest[22];
	} request = { "lo", VM_IFF_UP, { 0 } };
	long fd = sys_socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC);

	vm_need("socket", fd);
	vm_need("lo", sys_ioctl((int)fd, SIOCSIFFLAGS, &request));
	sys_close((int)fd);
}

/* ---- RESUME ---- */

/* A clone of a template has the clock, the random state and the boot id of the template. */
static void vm_resume(const struct packet_resume *m)
{
	struct __kernel_timespec now = { (long long)(m->realtime_ns / 1000000000),
					 (long long)(m->realtime_ns % 1000000000) };
	struct {
		int bits, bytes;
		uint8_t from[64];
	} entropy = { 512, 64, { 0 } };
	long fd = sys_openat(AT_FDCWD, "/dev/urandom", O_RDWR | O_CLOEXEC, 0);

	vm_need("clock", SYS(clock_settime, CLOCK_REALTIME_ID, &now));
	vm_need("urandom", fd);
	memcpy(entropy.from, m->random, sizeof(entropy.from));
	vm_need("entropy", sys_ioctl((int)fd, RNDADDENTROPY, &entropy));
	vm_need("reseed", sys_ioctl((int)fd, RNDRESEEDCRNG, NULL));
	sys_close((int)fd);
}

/* ---- the whole ---- */

/* The first root cannot be left by pivot_root: the new one is moved over it. */
static void vm_enter_root(void)
{
	vm_need("chdir", sys_chdir("/box"));
	vm_mount("/box", "/", NULL, MS_MOVE, NULL);
	vm_need("chroot", SYS(chroot, "."));
	vm_need("chdir", sys_chdir("/"));
}

_Noreturn void guest_vm_main(void)
{
	static struct vm_start start;
	static struct guest how;
	static char user[] = "1000", root[] = "1", no_root[] = "0";
	static const char ready = VM_READY;
	long upper, boot;

	sys_umask(0);
	vm_mount("dev", "/dev", "devtmpfs", 0, "");
	vm_load_modules();
	ready_port = vm_open_port('2');
	channel_port = vm_open_port('1');
	vm_start_loopback();
	vm_make_disk();
	vm_mount_root("/skeleton", 0);
	vm_mount_usr(0);
	vm_mount_kernel_folders();
	/* The memory limit of the box decides, as in a container: not the small memory of this kernel. */
	vm_write("/box/proc/sys/vm/overcommit_memory", "1");
	upper = sys_openat(AT_FDCWD, "/disk/upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	vm_need("upper", upper);
	boot = sys_openat(AT_FDCWD, "/disk/boot_id", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	vm_need("boot id", boot);
	how = (struct guest){ .channel = channel_port,
			      .init_exe =
				      (int)sys_openat(AT_FDCWD, "/init", O_RDONLY | O_CLOEXEC, 0),
			      .user = user,
			      .upper = (int)upper,
			      .boot = (int)boot,
			      .boot_mount = (int)SYS(open_tree, AT_FDCWD, "/disk/boot_id",
						     OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC),
			      .has_boot_mount = 1,
			      .isolate = 1,
			      .resume = vm_resume,
			      .over = vm_over };
	vm_need("init", how.init_exe);
	vm_need("boot id", how.boot_mount);
	vm_need("second port", sys_write(ready_port, &ready, 1));

	vm_receive_start(&start);
	sys_close(ready_port);
	ready_port = -1;
	vm_limit(&start);
	if (start.layers)
		vm_make_layered_root(&start);
	if (start.flags & VM_SECRETS)
		vm_make_secrets();
	how.counts = vm_open_counts();
	how.has_counts = 1;
	how.root = start.root ? root : no_root;
	vm_enter_root();
	sys_umask(022);
	guest_run(&how);
}
