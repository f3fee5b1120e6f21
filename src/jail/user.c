/* user.c - see user.h. Raw system calls only: glibc's setresuid() would change every thread of
 * the keeper, and the caller shares its memory. */
#include "jail/user.h"
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/feature.h"
#include "jail/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_both(unsigned uid, unsigned gid, struct err *e)
{
	if (syscall(SYS_setresgid, gid, gid, gid) < 0)
		return err_sys(e, "setresgid %u", gid);
	if (syscall(SYS_setresuid, uid, uid, uid) < 0)
		return err_sys(e, "setresuid %u", uid);
	return 0;
}

static int set_ids(unsigned uid, unsigned gid, struct err *e)
{
	/* Groups before the ids: afterwards the permission to change groups is lost. */
	if (syscall(SYS_setgroups, 0, NULL) < 0)
		return err_sys(e, "setgroups to none");
	return set_both(uid, gid, e);
}

static int verify_ids(unsigned uid, unsigned gid, struct err *e)
{
	unsigned u[3], g[3];

	if (syscall(SYS_getresuid, &u[0], &u[1], &u[2]) < 0 ||
	    syscall(SYS_getresgid, &g[0], &g[1], &g[2]) < 0)
		return err_sys(e, "reading ids back");
	for (int i = 0; i < 3; i++)
		if (u[i] != uid || g[i] != gid)
			return err_set(e, ERR_SYS, "ids read back as %u:%u, wanted %u:%u", u[i],
				       g[i], uid, gid);
	return 0;
}

int user_become_creator(uint32_t uid_base, struct user_was *out_was, struct err *e)
{
	struct user_was was = { .uid = geteuid(),
				.gid = getegid(),
				.securebits = prctl(PR_GET_SECUREBITS) };

	/* A change of uid must not drop the thread's capabilities. The groups stay: the box
	 * drops those as soon as its maps allow that, and until then it only waits. */
	if (was.securebits < 0 ||
	    prctl(PR_SET_SECUREBITS, was.securebits | SECBIT_NO_SETUID_FIXUP) < 0)
		return err_sys(e, "securebits");
	*out_was = was;
	if (set_both(uid_base, uid_base, e) < 0) {
		user_restore(&was);
		return -1;
	}
	return 0;
}

void user_restore(const struct user_was *was)
{
	struct err e;

	/* The bits last: they permit the change. And processes that this thread starts later
	 * must lose their capabilities with their uid again. */
	if (set_both(was->uid, was->gid, &e) < 0 || prctl(PR_SET_SECUREBITS, was->securebits) < 0)
		abort();
}

static int write_proc(int proc, pid_t pid, const char *which, const char *text, struct err *e)
{
	auto_fd int fd = -1;
	char path[40];

	snprintf(path, sizeof(path), "%d/%s", (int)pid, which);
	fd = openat(proc, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return err_sys(e, "write '%.30s' to %s", text, path);
	return 0;
}

static int write_both(int proc, pid_t pid, unsigned inside, unsigned outside, unsigned n,
		      struct err *e)
{
	char map[40];

	snprintf(map, sizeof(map), "%u %u %u", inside, outside, n);
	if (write_proc(proc, pid, "gid_map", map, e) < 0 ||
	    write_proc(proc, pid, "uid_map", map, e) < 0)
		return -1;
	return 0;
}

int user_own_namespace(struct err *e)
{
	auto_fd int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned uid = geteuid(), gid = getegid();
	char map[40];

	if (unshare(CLONE_NEWUSER) < 0)
		return err_sys(e, "user namespace without root");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	if (write_proc(proc, getpid(), "uid_map", map, e) < 0 ||
	    write_proc(proc, getpid(), "setgroups", "deny", e) < 0)
		return -1;
	snprintf(map, sizeof(map), "0 %u 1", gid);
	return write_proc(proc, getpid(), "gid_map", map, e);
}

int user_write_maps(int proc, pid_t pid, uint32_t uid_base, struct err *e)
{
	if (uid_base == 0)
		return write_both(proc, pid, JAIL_USER, 0, 1, e);
	if (uid_base < JAIL_RANGE)
		return err_set(e, ERR_INVALID, "uid range at %u would map host users", uid_base);
	return write_both(proc, pid, 0, uid_base, JAIL_RANGE, e);
}

int user_become_root(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (set_ids(0, 0, e) < 0)
		return -1;
	return verify_ids(0, 0, e);
}

int user_become_init(struct launch_ctx *b, struct err *e)
{
	(void)b;
	/* Only the capabilities that init needs to start programs as the user survive this
	 * change of uid: the next row narrows them. */
	if (caps_keep_over_setuid(e) < 0)
		return -1;
	if (set_ids(JAIL_INIT_ID, JAIL_INIT_ID, e) < 0)
		return -1;
	return verify_ids(JAIL_INIT_ID, JAIL_INIT_ID, e);
}

int user_become(uint32_t uid, struct err *e)
{
	return set_ids(uid, uid, e) < 0 ? -1 : verify_ids(uid, uid, e);
}

/* In a process with that id: the kernel then signals the processes of this id, all at once, and no others. */
void user_kill_all(uint32_t uid)
{
	struct err e;
	pid_t pid;

	if (uid < JAIL_RANGE)
		return;
	pid = fork();
	if (pid == 0) {
		if (user_become(uid, &e) == 0)
			kill(-1, SIGKILL);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int user_become_user(struct err *e)
{
	return user_become(JAIL_USER, e);
}

int user_new_keyring(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		return err_sys(e, "join a new session keyring");
	return 0;
}
