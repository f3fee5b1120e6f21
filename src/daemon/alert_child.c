/* alert_child.c - see alert_child.h. */
#include "daemon/alert_child.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "daemon/child.h"
#include "daemon/confine.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

enum { ALERT_CHILD_LINK = 3, ALERT_CHILD_BYTES = 16 << 10 };

struct alert_job {
	const char *command;
	uid_t uid;
	gid_t gid;
};

static _Noreturn void alert_child_exec(const struct alert_job *j, int in)
{
	char *argv[] = { (char *)j->command, NULL };
	int none = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	if (none < 0 || dup2(in, 0) < 0 || dup2(none, 1) < 0 || dup2(none, 2) < 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(126);
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	execv(argv[0], argv);
	_exit(127);
}

/* 1: it has ended, and *status is set. */
static int alert_child_wait(pid_t pid, int *status)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	uint64_t end = now_ns() + ALERT_CHILD_S * UINT64_C(1000000000);

	while (now_ns() < end) {
		if (waitpid(pid, status, WNOHANG) == pid)
			return 1;
		nanosleep(&pause, NULL);
	}
	kill(-pid, SIGKILL);
	waitpid(pid, status, 0);
	return 0;
}

static void alert_child_run(const struct alert_job *j, const char *bytes, size_t n, char out[200])
{
	int pair[2], status = 0;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0 || fcntl(pair[1], F_SETPIPE_SZ, ALERT_CHILD_BYTES) < 0 ||
	    write(pair[1], bytes, n) != (ssize_t)n) {
		snprintf(out, 200, "no pipe for the command: %s", strerror(errno));
		return;
	}
	pid = fork();
	if (pid == 0)
		alert_child_exec(j, pair[0]);
	close(pair[0]);
	close(pair[1]);
	if (pid < 0)
		snprintf(out, 200, "cannot start the command: %s", strerror(errno));
	else if (!alert_child_wait(pid, &status))
		snprintf(out, 200, "the command ran longer than %d s", ALERT_CHILD_S);
	else if (WIFSIGNALED(status))
		snprintf(out, 200, "the command was killed by signal %d", WTERMSIG(status));
	else if (WEXITSTATUS(status))
		snprintf(out, 200, "the command exited with %d", WEXITSTATUS(status));
	else
		snprintf(out, 200, "ok");
}

static void alert_child_be(void *ctx)
{
	const struct alert_job *j = ctx;
	static char bytes[ALERT_CHILD_BYTES];
	struct pollfd in = { .fd = ALERT_CHILD_LINK, .events = POLLIN };
	char result[200];
	ssize_t n;

	fcntl(ALERT_CHILD_LINK, F_SETFD, FD_CLOEXEC);
	confine_clear_environment();
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 || setresgid(j->gid, j->gid, j->gid) < 0 ||
			       setresuid(j->uid, j->uid, j->uid) < 0))
		_exit(1);
	if (poll(&in, 1, ALERT_CHILD_S * 1000) != 1)
		_exit(1);
	n = recv(ALERT_CHILD_LINK, bytes, sizeof(bytes), 0);
	if (n <= 0)
		_exit(1);
	alert_child_run(j, bytes, (size_t)n, result);
	(void)!send(ALERT_CHILD_LINK, result, strlen(result), MSG_NOSIGNAL);
	_exit(0);
}

void alert_child_start(struct alert_child *o, const struct config *c, const struct state_dir *s,
		       int server_link)
{
	struct frame head = sock_head(WIRE_ALERT_COMMAND, 0);
	struct alert_job job = { .command = config_text(c, CONFIG_ALERTS_COMMAND),
				 .uid = s->uid,
				 .gid = s->gid };
	struct child child = { .link = -1 };
	struct err e;

	if (!job.command || o->pid)
		return;
	if (child_start(&child, "atoll-alert", alert_child_be, &job, &e) < 0) {
		log_warn("the command for alerts was not started", LOG_E(&e));
		return;
	}
	o->pid = child.pid;
	if (sock_send(server_link, &head, sizeof(head), NULL, 0, &child.link, 1, &e) < 0)
		log_warn("the command for alerts cannot be connected", LOG_E(&e));
	child_stop(&child);
}

int alert_child_ended(struct alert_child *o, pid_t pid)
{
	if (!o->pid || o->pid != pid)
		return 0;
	o->pid = 0;
	return 1;
}
