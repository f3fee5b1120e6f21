/* guest_init.c - see guest_init.h.
 *
 * What the launcher does for init in a container box, the stub does inside an engine (`isolate`): a pid
 * namespace with its own /proc, an id of its own, eight capabilities, no_new_privs. A kernel without ambient
 * capabilities would drop all of them at exec, so init stays root there, with the same eight. */
#include "mux/guest_init.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/guest_proc.h"
#include <linux/mount.h>
#include <linux/securebits.h>

enum { STDIO_LAST = 2, FIRST_FD, FEED_FD, UPPER_FD, BOOT_FD, COUNTS_FD, FDS_END };
enum { BAD_START = 70, CAP_LAST = 63, REC_PRIVATE = 0x4000 | 1 << 18 };

static const uint8_t kept[] = { CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
				CAP_KILL,   CAP_SETGID,       CAP_SETUID, CAP_NET_BIND_SERVICE,
				CAP_SETPCAP };

static int guest_init_has_ambient(void)
{
	return SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0) >= 0;
}

uint64_t guest_init_features(const struct guest *how)
{
	if (!how->isolate)
		return PACKET_FEATURE_NO_NEW_PRIVS | PACKET_FEATURE_AMBIENT;
	return PACKET_FEATURE_PID_NS | PACKET_FEATURE_NO_NEW_PRIVS |
	       (guest_init_has_ambient() ? PACKET_FEATURE_AMBIENT : 0);
}

/* ---- in the child ---- */

/* boot_mount: a detached mount of the file with the boot id of the box, or -1. */
static int guest_init_mount_proc(int boot_mount)
{
	long err = SYS(mount, "none", "/", 0, REC_PRIVATE, 0);

	/* EINVAL: mounts do not propagate in gVisor of 2022. */
	if (err >= 0 || err == -EINVAL)
		err = SYS(mount, "proc", "/proc", "proc", 2 | 4 | 8 /* nosuid, nodev, noexec */, 0);
	if (err >= 0 && boot_mount >= 0)
		err = SYS(move_mount, boot_mount, "", AT_FDCWD, "/proc/sys/kernel/random/boot_id",
			  MOVE_MOUNT_F_EMPTY_PATH);
	return (int)err;
}

/* Only what init may have, and init itself needs to take it from its programs. */
static int guest_init_bound(void)
{
	unsigned cap, i;

	for (cap = 0; cap <= CAP_LAST; cap++) {
		long err;

		for (i = 0; i < ARRAY_LEN(kept) && kept[i] != cap; i++)
			;
		err = i < ARRAY_LEN(kept) ? 0 : sys_prctl(PR_CAPBSET_DROP, cap, 0);
		if (err == -EINVAL)
			break; /* the kernel has no more */
		if (err < 0)
			return (int)err;
	}
	return 0;
}

static int guest_init_become(void)
{
	struct __user_cap_data_struct caps[2] = { 0 };
	int ambient = guest_init_has_ambient();
	uint32_t mask = 0;
	unsigned i;
	long err;

	for (i = 0; i < ARRAY_LEN(kept); i++)
		mask |= 1u << kept[i];
	err = guest_init_bound();
	if (err >= 0)
		err = sys_prctl(PR_SET_NO_NEW_PRIVS, 1, 0);
	if (err >= 0)
		err = sys_setgroups(0, 0);
	if (err >= 0 && ambient)
		err = sys_prctl(PR_SET_KEEPCAPS, 1, 0);
	if (err >= 0 && ambient)
		err = sys_setresgid(GUEST_INIT_ID);
	if (err >= 0 && ambient)
		err = sys_setresuid(GUEST_INIT_ID);
	caps[0].permitted = caps[0].effective = caps[0].inheritable = mask;
	if (err >= 0)
		err = sys_capset(caps);
	for (i = 0; err >= 0 && ambient && i < ARRAY_LEN(kept); i++)
		err = SYS(prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, kept[i], 0, 0);
	return (int)err;
}

/* Sources that have one of the target numbers are moved out of the way first. */
static int guest_init_place(const struct guest *how, int first, int feed)
{
	int from[] = { first, feed, how->upper, how->boot, how->counts };
	int n = (int)ARRAY_LEN(from) - !how->has_counts, i;

	for (i = 0; i < n; i++) {
		if (from[i] < 0)
			from[i] = (int)sys_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
		from[i] = (int)sys_fcntl(from[i], F_DUPFD_CLOEXEC, FDS_END);
		if (from[i] < 0)
			return from[i];
	}
	for (i = 0; i < n; i++) {
		long err = sys_dup3(from[i], FIRST_FD + i, 0);

		if (err < 0)
			return (int)err;
	}
	/* stdin was the channel */
	i = (int)sys_openat(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0);
	return i < 0 ? i : (int)sys_dup3(i, 0, 0);
}

/* Without one programs run all the same, as in a container whose id could not be written. */
static void guest_init_place_boot_id(void)
{
	int fd = guest_proc_boot_id();

	if (fd >= 0)
		sys_dup3(fd, BOOT_FD, 0);
}

static _Noreturn void guest_init_exec(const struct guest *how, int first, int feed)
{
	char name[] = "init", guest[] = "guest";
	char *argv[] = { name, how->user, how->root, how->has_counts ? guest : NULL, NULL };
	char *env[] = { NULL };
	int exe = how->init_path ? -1 : (int)sys_fcntl(how->init_exe, F_DUPFD_CLOEXEC, FDS_END + 1);
	int boot_mount = how->has_boot_mount
				 ? (int)sys_fcntl(how->boot_mount, F_DUPFD_CLOEXEC, FDS_END + 1)
				 : -1;

	if (guest_init_place(how, first, feed) < 0 ||
	    (how->isolate && guest_init_mount_proc(boot_mount) < 0))
		sys_exit(BAD_START);
	if (how->isolate && how->boot < 0)
		guest_init_place_boot_id();
	if (how->isolate && guest_init_become() < 0)
		sys_exit(BAD_START);
	if (how->init_path)
		sys_execve(how->init_path, argv, env);
	else
		SYS(execveat, exe, "", argv, env, AT_EMPTY_PATH);
	sys_exit(BAD_START);
}

/* ---- in the stub ---- */

int guest_init_start(struct guest_init *out, const struct guest *how)
{
	int first[2], feed[2];
	long err = sys_socketpair(SOCK_SEQPACKET | SOCK_CLOEXEC, first);

	if (err >= 0)
		err = sys_socketpair(SOCK_SEQPACKET | SOCK_CLOEXEC, feed);
	if (err < 0)
		return (int)err;
	err = SYS(clone, SIGCHLD | (how->isolate ? CLONE_NEWPID | CLONE_NEWNS : 0), 0);
	if (!err)
		guest_init_exec(how, first[1], feed[1]);
	sys_close(first[1]);
	sys_close(feed[1]);
	if (how->init_exe >= 0)
		sys_close(how->init_exe);
	*out = (struct guest_init){ .pid = (int)err, .first = first[0], .feed = feed[0] };
	return err < 0 ? (int)err : 0;
}

int guest_init_first(struct guest_init *i)
{
	int fd = i->first;

	i->first = -1;
	return fd;
}

int guest_init_connect(struct guest_init *i)
{
	int pair[2];
	struct {
		struct cmsghdr head;
		int fd, pad;
	} ride = { .head = { sizeof(struct cmsghdr) + sizeof(int), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec iov = { "", 1 };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ride,
			    .msg_controllen = sizeof(ride) };
	long err = sys_socketpair(SOCK_SEQPACKET | SOCK_CLOEXEC, pair);

	if (err < 0)
		return (int)err;
	ride.fd = pair[1];
	err = sys_sendmsg(i->feed, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	sys_close(pair[1]);
	if (err < 0)
		sys_close(pair[0]);
	return err < 0 ? (int)err : pair[0];
}
