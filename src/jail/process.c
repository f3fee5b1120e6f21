/* process.c - rows of the tier process: a child of the keeper without any namespace.
 *
 * The folder is its only place to write, a landlock domain its only boundary for files. A keeper with root gives it a
 * uid of its own; else it has that of the keeper. */
#include "base/cleanup.h"
#include "jail/caps.h"
#include "jail/landlock.h"
#include "jail/steps.h"
#include "jail/user.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PROCESS_TRIES = 64 };
enum { SUPERVISOR_FD = 3 };

uint32_t process_uid(const struct spec *sp)
{
	return sp->uid_base ? sp->uid_base + JAIL_USER : (uint32_t)syscall(SYS_geteuid);
}

int process_session(struct launch_ctx *b, struct err *e)
{
	(void)b;
	if (syscall(SYS_setsid) < 0)
		return err_sys(e, "new session");
	return 0;
}

/* "/tmp/" and five characters: as long as the name of the home folder. */
static int process_new_name(char out[JAIL_FOLDER])
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char random[JAIL_FOLDER] = { 0 };
	unsigned at = sizeof("/tmp/") - 1;

	if (syscall(SYS_getrandom, random, sizeof(random), 0) != sizeof(random))
		return -1;
	memcpy(out, "/tmp/", at);
	for (; at < JAIL_FOLDER - 1; at++)
		out[at] = digits[random[at] % 32];
	out[at] = 0;
	return 0;
}

/* mkdir is atomic and follows no link: the folder is new, or the name is tried again. */
int process_folder(struct launch_ctx *b, struct err *e)
{
	uint32_t uid = process_uid(b->sp);
	char name[JAIL_FOLDER];

	for (unsigned i = 0; i < PROCESS_TRIES; i++) {
		if (process_new_name(name) < 0)
			return err_sys(e, "random name");
		if (mkdir(name, 0700) == 0)
			break;
		if (errno != EEXIST || i == PROCESS_TRIES - 1)
			return err_sys(e, "make %s", name);
	}
	memcpy(b->folder, name, sizeof(name));
	if (b->sp->uid_base && lchown(name, uid, uid) < 0)
		return err_sys(e, "owner of %s", name);
	return 0;
}

/* Without root there are none, and with no_new_privs the bounding set is never used. */
int process_bounds(struct launch_ctx *b, struct err *e)
{
	return b->sp->uid_base ? caps_bound(0, e) : 0;
}

int process_identity(struct launch_ctx *b, struct err *e)
{
	return b->sp->uid_base ? user_become(process_uid(b->sp), e) : 0;
}

int process_capabilities(struct launch_ctx *b, struct err *e)
{
	(void)b;
	return caps_only(0, e);
}

/* Of this thread, which becomes init. Inside the domain the file could not be opened. */
int process_children(struct launch_ctx *b, struct err *e)
{
	b->boot = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
	return b->boot < 0 ? err_sys(e, "open the list of children") : 0;
}

int process_landlock(struct launch_ctx *b, struct err *e)
{
	return landlock_process(b->sp->landlock_abi, b->folder, e);
}

int process_supervise(const struct launch_ctx *b, pid_t init, struct err *e)
{
	char number[12];
	const char *argv[] = { "supervisor", "supervise", number, b->folder, NULL };
	char *env[] = { NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	uint64_t all = ~UINT64_C(0);

	/* The keeper may send SIGTERM before the supervisor has blocked it. */
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	snprintf(number, sizeof(number), "%d", (int)init);
	if (null < 0 || dup3(null, 0, 0) < 0 || dup3(null, 1, 0) < 0 || dup3(null, 2, 0) < 0 ||
	    (b->sp->supervisor != SUPERVISOR_FD &&
	     dup3(b->sp->supervisor, SUPERVISOR_FD, O_CLOEXEC) < 0) ||
	    syscall(SYS_close_range, SUPERVISOR_FD + 1, ~0U, 0) < 0)
		return err_sys(e, "descriptors of the supervisor");
	syscall(SYS_execveat, SUPERVISOR_FD, "", argv, env, AT_EMPTY_PATH);
	return err_sys(e, "exec the supervisor");
}
