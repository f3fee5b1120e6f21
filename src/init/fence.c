/* fence.c - see fence.h.
 *
 * kill(-1) signals all processes at once, and a process with a pending signal cannot fork: one SIGSTOP is enough for all
 * that exist. /proc shows which processes were stopped before. It hides processes of other users (hidepid=2), so it
 * is read with the file system ids of each user. */
#include "init/fence.h"
#include "init/params.h"
#include "initlib/loop.h"
#include "initlib/str.h"
#include "initlib/sys.h"

enum { FENCE_PIDS = 2048, FENCE_AGAIN_MS = 20, FENCE_MS_NS = 1000000 };

static int armed, closed;
static uint64_t until_ns;           /* armed: of expiry; closed: of the next check, or 0 */
static LAZY int before[FENCE_PIDS]; /* stopped before the fence closed */
static unsigned nbefore;
static LAZY char names[4096] __attribute__((aligned(8)));

/* ---- what /proc shows ---- */

/* The letter after the last ')': the name before it may contain anything. 0: the process has ended. */
static char fence_state(int proc, const char *pid)
{
	char path[24], text[512];
	struct text t = { path, sizeof(path), 0 };
	long n, fd, at = 0;

	text_add(&t, pid);
	text_add(&t, "/stat");
	fd = sys_openat(proc, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	n = sys_read((int)fd, text, sizeof(text));
	sys_close((int)fd);
	for (long i = 0; i + 2 < n; i++)
		if (text[i] == ')' && text[i + 1] == ' ')
			at = i + 2;
	return at ? text[at] : 0;
}

static int fence_was_stopped(int pid)
{
	for (unsigned i = 0; i < nbefore; i++)
		if (before[i] == pid)
			return 1;
	return 0;
}

enum fence_walk {
	FENCE_REMEMBER, /* those that are stopped */
	FENCE_LOOK,     /* is one running? */
	FENCE_CONTINUE, /* those that were not stopped before */
};

static int fence_one(enum fence_walk why, int proc, const char *name)
{
	int pid = (int)text_number(name, 1u << 30);
	char state;

	if (pid <= 1)
		return 0;
	state = fence_state(proc, name);
	switch (why) {
	case FENCE_REMEMBER:
		if (state == 'T' && nbefore < FENCE_PIDS && !fence_was_stopped(pid))
			before[nbefore++] = pid;
		return 0;
	case FENCE_LOOK:
		return state == 'R' || state == 'S' || state == 'D';
	case FENCE_CONTINUE:
		if (!fence_was_stopped(pid))
			sys_kill(pid, SIGCONT);
	}
	return 0;
}

static int fence_walk_as(enum fence_walk why, int proc, uint32_t uid, uint32_t gid)
{
	long n, at;
	int found = 0, dir;

	sys_setfsid(uid, gid);
	dir = (int)sys_openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	while (dir >= 0 && (n = sys_getdents(dir, names, sizeof(names))) > 0)
		for (at = 0; at < n;) {
			struct dirent64 *d = (struct dirent64 *)(void *)(names + at);

			at += d->d_reclen;
			found |= fence_one(why, proc, d->d_name);
		}
	if (dir >= 0)
		sys_close(dir);
	sys_setfsid(self.uid, self.gid);
	return found;
}

/* For every process of the box that can be seen. -1: /proc is not that of the box. */
static int fence_walk(enum fence_walk why)
{
	char name[16];
	long n = sys_readlinkat(AT_FDCWD, "/proc/self", name, sizeof(name) - 1);
	int proc, found;

	name[n > 0 ? n : 0] = '\0';
	proc = (int)sys_openat(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (proc < 0 || text_number(name, 1u << 30) != sys_getpid()) {
		if (proc >= 0)
			sys_close(proc);
		return -1;
	}
	found = fence_walk_as(why, proc, self.user, self.user);
	found |= fence_walk_as(why, proc, self.uid, self.gid);
	if (self.root_allowed)
		found |= fence_walk_as(why, proc, 0, 0);
	sys_close(proc);
	return found;
}

/* ---- the fence ---- */

static void fence_close(void)
{
	nbefore = 0;
	fence_walk(FENCE_REMEMBER);
	sys_kill(-1, SIGSTOP);
	closed = 1;
	until_ns = loop_now_ns + (uint64_t)FENCE_AGAIN_MS * FENCE_MS_NS;
}

/* Without exceptions one call continues also those that /proc hides. */
static void fence_open(void)
{
	if (!closed)
		return;
	closed = 0;
	if (!nbefore || fence_walk(FENCE_CONTINUE) < 0)
		sys_kill(-1, SIGCONT);
	nbefore = 0;
}

int fence_lease(uint32_t ms)
{
	if (sys_getpid() != 1)
		return -1;
	armed = 1;
	if (ms)
		fence_open();
	if (!closed)
		until_ns = loop_now_ns + (uint64_t)ms * FENCE_MS_NS;
	return 0;
}

void fence_off(void)
{
	fence_open();
	armed = 0;
	until_ns = 0;
}

int fence_closed(void)
{
	return closed || (armed && loop_now_ns >= until_ns);
}

void fence_turn(void)
{
	if (!armed || !until_ns || loop_now_ns < until_ns)
		return;
	if (!closed) {
		fence_close();
		return;
	}
	/* A process in a system call that cannot be interrupted stops when that ends. */
	if (fence_walk(FENCE_LOOK) > 0) {
		sys_kill(-1, SIGSTOP);
		until_ns = loop_now_ns + (uint64_t)FENCE_AGAIN_MS * FENCE_MS_NS;
	} else {
		until_ns = 0;
	}
}

int fence_timeout_ms(void)
{
	uint64_t left;

	if (!armed || !until_ns)
		return -1;
	left = until_ns > loop_now_ns ? until_ns - loop_now_ns : 0;
	return (int)((left + FENCE_MS_NS - 1) / FENCE_MS_NS);
}
