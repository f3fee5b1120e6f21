/* checkpoint_stop.c - see checkpoint_stop.h. */
#include "keeper/checkpoint_stop.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "jail/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOP_THREADS = 128, STOP_PAUSE_US = 30 };
#define STOP_NS UINT64_C(20000000) /* for each list of threads */

static int stop_knows(const struct checkpoint_stop *s, pid_t tid)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].tid == tid)
			return 1;
	return 0;
}

/* A thread that has ended cannot be traced. */
static int stop_has_ended(pid_t tid)
{
	char path[40], text[512], *at;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT || errno == ESRCH;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	at = strrchr(text, ')'); /* the name may contain anything */
	return !at || strchr("ZX", at[1] ? at[2] : 'X');
}

static int stop_seize(struct checkpoint_stop *s, pid_t tid)
{
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
		return stop_has_ended(tid) ? 0 : -1;
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 32;
		s->v = realloc(s->v, s->room * sizeof(*s->v));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = (struct checkpoint_stopped){ .tid = tid };
	/* It may have ended since. */
	(void)!ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	return 1;
}

struct stop_list {
	struct checkpoint_stop *s;
	int found, failed;
};

static int stop_process(int pid, void *arg)
{
	struct stop_list *l = arg;
	struct dirent *de;
	char path[32];
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && !l->failed && (de = readdir(d)) != NULL) {
		pid_t tid = atoi(de->d_name);
		int done;

		if (tid <= 0 || stop_knows(l->s, tid))
			continue;
		done = l->s->n < STOP_THREADS ? stop_seize(l->s, tid) : -1;
		l->found |= done > 0;
		l->failed |= done < 0;
	}
	if (d)
		closedir(d);
	return 1;
}

/* 1: stopped or ended; 0: not yet. */
static int stop_look(struct checkpoint_stopped *x)
{
	int status, signal;
	pid_t got = waitpid(x->tid, &status, __WALL | WNOHANG);

	if (got == 0)
		return 0;
	x->is_stopped = got > 0 && WIFSTOPPED(status);
	if (!x->is_stopped)
		return 1;
	signal = WSTOPSIG(status);
	/* Stopped because it was asked to, or on its way to a signal handler. */
	x->signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : signal;
	return 1;
}

static int stop_wait(struct checkpoint_stop *s, size_t from)
{
	uint64_t until = now_ns() + STOP_NS;

	for (size_t i = from; i < s->n; i++)
		while (!stop_look(&s->v[i])) {
			if (now_ns() > until)
				return -1;
			usleep(STOP_PAUSE_US);
		}
	return 0;
}

void checkpoint_stop_release(struct checkpoint_stop *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct checkpoint_stopped *x = &s->v[i];
		int status;

		/* Only a stopped thread can be left. */
		if (!x->is_stopped) {
			uint64_t until = now_ns() + STOP_NS;

			while (!stop_look(x) && now_ns() < until)
				usleep(STOP_PAUSE_US);
		}
		/* Killed meanwhile: it ends when its tracer has seen it. */
		if (ptrace(PTRACE_DETACH, x->tid, NULL, (void *)(long)x->signal) < 0)
			(void)waitpid(x->tid, &status, __WALL | WNOHANG);
	}
	free(s->v);
	*s = (struct checkpoint_stop){ 0 };
}

int checkpoint_stop_all(struct checkpoint_stop *s, const struct cgroups *cs, const char *cgroup)
{
	struct stop_list l = { .s = s };
	size_t seen;

	*s = (struct checkpoint_stop){ 0 };
	/* Threads of the list may start others until they have stopped: again, until a list has no new one. */
	do {
		seen = s->n;
		l.found = 0;
		cgroup_each_process(cs, cgroup, stop_process, &l);
		l.failed = l.failed || stop_wait(s, seen) < 0;
	} while (l.found && !l.failed);
	if (!l.failed)
		return 1;
	checkpoint_stop_release(s);
	return 0;
}
