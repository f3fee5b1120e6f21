/* mine.c - see mine.h. */
#include "mine.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "peers.h"
#include "subject.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { READY_FD = 3, READY_MS = 10000, POOL_DEPTH = 8 };

static pid_t keeper_pid;
static struct keeper_sync link_ = { .fd = -1 };
static struct box_handle taken = { .init = -1 };  /* pooled: between once and after */
static struct box_handle living = { .init = -1 }; /* exec: the box that stays */
static uint64_t hits_before;
static char missing[200] = "not started";
static char atoll_path[PATH_MAX], run_dir[64], log_path[96];

struct keeper_sync *mine_link(void)
{
	return &link_;
}

const char *mine_atoll(void)
{
	return atoll_path;
}

const char *mine_run_dir(void)
{
	return run_dir;
}

const char *mine_missing(void)
{
	return *missing ? missing : NULL;
}

/* With the flags that the CLI uses to start a keeper. */
static _Noreturn void become_keeper(int log, int ready)
{
	static const char *const argv[] = { "atoll",      "keeper", "--idle-exit", "600",
					    "--ready-fd", "3",      NULL };
	char run_var[4096], state_var[4096];
	const char *const env[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", run_var,
		state_var, NULL
	};

	snprintf(run_var, sizeof(run_var), "ATOLL_RUN=%s", run_dir);
	snprintf(state_var, sizeof(state_var), "ATOLL_STATE=%s/state", run_dir);
	if (setsid() < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 || dup2(ready, READY_FD) < 0 ||
	    fcntl(READY_FD, F_SETFD, 0) < 0 || close_range(READY_FD + 1, ~0u, 0) < 0)
		_exit(125);
	execve(atoll_path, (char *const *)argv, (char *const *)env);
	dprintf(READY_FD, "Eexec %s: %s", atoll_path, strerror(errno));
	_exit(125);
}

/* "R", or "E" and a reason, or an end of file. */
static int hear(int fd, struct err *e)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char said[200];
	ssize_t n;

	if (poll(&p, 1, READY_MS) <= 0)
		return err_set(e, ERR_SYS, "keeper not ready after %d s", READY_MS / 1000);
	n = read(fd, said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = '\0';
	if (said[0] == 'R')
		return 0;
	return err_set(e, ERR_SYS, "keeper: %s", n > 1 ? said + 1 : "ended at once");
}

static int start(struct err *e)
{
	auto_fd int log = -1, hear_fd = -1, say_fd = -1;
	int pair[2];

	if (access(atoll_path, X_OK) < 0)
		return err_set(e, ERR_NOT_FOUND, "%s is not built", atoll_path);
	if (mkdir(run_dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "mkdir %s", run_dir);
	snprintf(log_path, sizeof(log_path), "%s/keeper.log", run_dir);
	log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (log < 0)
		return err_sys(e, "open %s", log_path);
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	hear_fd = pair[0];
	say_fd = pair[1];
	keeper_pid = fork();
	if (keeper_pid < 0)
		return err_sys(e, "fork");
	if (keeper_pid == 0)
		become_keeper(log, say_fd);
	own_close_fd(&say_fd); /* otherwise the exit of the keeper would not be an end of file */
	if (hear(hear_fd, e) < 0)
		return -1;
	/* For run_dir_find(), in this process and in the workers. */
	if (setenv("ATOLL_RUN", run_dir, 1) < 0)
		return err_sys(e, "setenv");
	return keeper_sync_open(&link_, 0, e);
}

int mine_start(const char *atoll, const char *dir, struct err *e)
{
	snprintf(atoll_path, sizeof(atoll_path), "%s", atoll);
	snprintf(run_dir, sizeof(run_dir), "%s", dir);
	*missing = '\0';
	if (start(e) == 0)
		return 0;
	snprintf(missing, sizeof(missing), "%.190s", e->msg);
	mine_stop();
	return -1;
}

/* Boxes keep running without their keeper by design, so each is killed by name first. */
static void kill_all(void)
{
	struct wire_box some[32];
	struct wire_info about;
	struct err e;
	int n;

	if (keeper_sync_set_pool(&link_, 0, &about, &e) < 0)
		return;
	while ((n = keeper_sync_boxes(&link_, "", some, ARRAY_LEN(some), &e)) > 0)
		for (int i = 0; i < n; i++)
			if (boxh_kill(&link_, some[i].id, NULL, &e) < 0 && e.kind != ERR_NOT_FOUND)
				return;
}

/* A keeper that exited early is reported, because its log is removed with the run folder. */
static void mourn(int status)
{
	char line[300];
	FILE *f = fopen(log_path, "re");

	if (WIFSIGNALED(status))
		fprintf(stderr, "bench: the keeper was killed by signal %d; its log:\n",
			WTERMSIG(status));
	else
		fprintf(stderr, "bench: the keeper ended with %d; its log:\n", WEXITSTATUS(status));
	while (f && fgets(line, sizeof(line), f))
		fprintf(stderr, "    %s", line);
	if (f)
		fclose(f);
}

static void end_keeper(void)
{
	kill(keeper_pid, SIGTERM);
	for (int i = 0; i < 200; i++) {
		if (waitpid(keeper_pid, NULL, WNOHANG) != 0) {
			keeper_pid = 0;
			return;
		}
		poll(NULL, 0, 50);
	}
	fprintf(stderr, "bench: the keeper (pid %d) does not end; killing it\n", (int)keeper_pid);
	kill(keeper_pid, SIGKILL);
	waitpid(keeper_pid, NULL, 0);
	keeper_pid = 0;
}

void mine_stop(void)
{
	struct err e;
	int status;

	if (keeper_pid <= 0)
		return;
	if (waitpid(keeper_pid, &status, WNOHANG) == keeper_pid) {
		keeper_pid = 0;
		keeper_sync_close(&link_);
		mourn(status);
		/* Its boxes keep running: another keeper finds them by their records and ends
		 * them. */
		if (!*missing && start(&e) < 0)
			fprintf(stderr, "bench: boxes may be left: %s\n", e.msg);
	}
	if (link_.fd >= 0)
		kill_all();
	keeper_sync_close(&link_);
	if (keeper_pid > 0)
		end_keeper();
}

int mine_create(struct box_handle *b, uint16_t flags, struct err *e)
{
	struct wire_create want = { .template = "base", .limits = box_default_limits() };

	want.head.flags = flags;
	return boxh_create(&link_, b, &want, e);
}

static const char *const true_argv[] = { "/bin/true", NULL };
static const struct box_command run_true = { .argv = true_argv };

static int was_true(const struct wire_exit *end, struct err *e)
{
	if (end->why != WIRE_WHY_EXIT || end->status != 0)
		return err_set(e, ERR_SYS, "/bin/true ended with why %u, status %d %.24s", end->why,
			       end->status, end->step);
	return 0;
}

int mine_true(struct box_handle *b, struct err *e)
{
	struct wire_exit end;

	return boxh_run(b, &run_true, &end, e) < 0 ? -1 : was_true(&end, e);
}

int mine_open(struct subject *s, struct err *e)
{
	if (*missing)
		return err_set(e, ERR_NOT_FOUND, "%s", missing);
	return subject_run(s, NULL, NULL, e);
}

/* Each worker has its own connection: replies to two workers on one socket would be mixed up. */
int mine_join(struct subject *s, int worker, struct err *e)
{
	(void)s;
	(void)worker;
	keeper_sync_close(&link_);
	return keeper_sync_open(&link_, 0, e);
}

void mine_close(struct subject *s)
{
	(void)s;
	boxh_close(&taken);
}

/* Waits until the pool is full again, and stores the number of boxes taken from it so far. */
int pooled_ready(struct subject *s, struct err *e)
{
	struct wire_info about;

	(void)s;
	if (keeper_sync_set_pool(&link_, POOL_DEPTH, &about, e) < 0)
		return -1;
	hits_before = about.hits;
	return 0;
}

int pooled_once(struct subject *s, struct err *e)
{
	(void)s;
	if (mine_create(&taken, 0, e) < 0)
		return -1;
	return mine_true(&taken, e);
}

/* A figure for pooled boxes must not include boxes that were created on demand. */
int pooled_check(struct subject *s, struct err *e)
{
	struct wire_info about;

	(void)s;
	if (keeper_sync_info(&link_, &about, e) < 0)
		return -1;
	if (about.hits != hits_before + 1)
		return err_set(e, ERR_CONFLICT, "the box did not come from the pool");
	return 0;
}

int pooled_after(struct subject *s, struct err *e)
{
	(void)s;
	boxh_close(&taken);
	return boxh_kill(&link_, taken.about.id, NULL, e);
}

/* Waits until the keeper reports that nothing of the box is left. */
int cold_once(struct subject *s, struct err *e)
{
	struct wire_create want = { .template = "base", .limits = box_default_limits() };
	struct wire_exit end;

	(void)s;
	want.head.flags = WIRE_CREATE_COLD;
	if (boxh_once(&link_, &want, &run_true, &end, NULL, e) < 0)
		return -1;
	return was_true(&end, e);
}

int exec_open(struct subject *s, struct err *e)
{
	if (*missing)
		return err_set(e, ERR_NOT_FOUND, "%s", missing);
	if (mine_create(&living, 0, e) < 0)
		return -1;
	return exec_once(s, e);
}

int exec_once(struct subject *s, struct err *e)
{
	(void)s;
	return mine_true(&living, e);
}

void exec_close(struct subject *s)
{
	struct err ignored; /* mine_stop() kills remaining processes */

	(void)s;
	if (living.init >= 0 && boxh_kill(&link_, living.about.id, NULL, &ignored) < 0)
		return;
	boxh_close(&living);
}
