/* spawn.c - starts a keeper if none listens.
 *
 *   client                        child              keeper
 *   lock, connect again: no
 *   fork                    --->  setsid, fork  ---> exec /proc/self/exe keeper --ready-fd 3
 *   waits on the pipe       <----------------------  "R", or "E" and the reason
 *   unlock, connect
 *
 * The lock makes two clients that start at the same time use one keeper. The keeper is not a child
 * of the client and has no terminal: it must survive the client that started it. */
#include "client/spawn.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { READY_FD = 3, READY_MS = 5000, LEAVE_MS = 5000, LOG_KEEP = 1 << 20, ENV_MAX = 64 };

extern char **environ;

static int open_in(const char *dir, const char *name, int flags, struct err *e)
{
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? err_sys(e, "open %s", path) : fd;
}

/* The keeper gets the ATOLL_ variables of the client except the key, and the state folder of the
 * user. Its environment must not contain secrets. */
static int spawn_passes_variable(const char *v)
{
	return (!strncmp(v, "ATOLL_", 6) && strncmp(v, "ATOLL_RUN=", 10) != 0 &&
		strncmp(v, "ATOLL_KEY=", 10) != 0) ||
	       !strncmp(v, "XDG_STATE_HOME=", 15) || !strncmp(v, "HOME=", 5);
}

static void keeper_env(const char *run_dir, char *run_var, size_t size, const char *out[ENV_MAX])
{
	unsigned n = 0;

	snprintf(run_var, size, "ATOLL_RUN=%s", run_dir);
	out[n++] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	out[n++] = run_var;
	for (char **v = environ; *v && n < ENV_MAX - 1; v++)
		if (spawn_passes_variable(*v))
			out[n++] = *v;
	out[n] = NULL;
}

static _Noreturn void become_keeper(const char *run_dir, int log, int ready)
{
	static const char *const argv[] = { "atoll",      "keeper", "--idle-exit", "600",
					    "--ready-fd", "3",      NULL };
	const char *env[ENV_MAX];
	char run_var[4096];
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	/* The caller may have blocked signals or ignored SIGPIPE; both would be inherited. */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0 ||
	    (ready != READY_FD && dup2(ready, READY_FD) < 0) || fcntl(READY_FD, F_SETFD, 0) < 0 ||
	    close_range(READY_FD + 1, ~0u, 0) < 0 || chdir("/") < 0)
		_exit(125);
	umask(077);
	keeper_env(run_dir, run_var, sizeof(run_var), env);
	execve("/proc/self/exe", (char *const *)argv, (char *const *)env);
	dprintf(READY_FD, "Eexec /proc/self/exe: %s", strerror(errno));
	_exit(125);
}

static int fork_keeper(const char *run_dir, int log, int ready, pid_t *out_keeper, struct err *e)
{
	auto_fd int told = -1, tell = -1;
	int status, pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	told = pair[0];
	tell = pair[1];
	pid = fork();
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0) {
		setsid();
		/* Not a session leader, so that it can never acquire a terminal. */
		pid = fork();
		if (pid == 0)
			become_keeper(run_dir, log, ready);
		_exit(pid < 0 || write(tell, &pid, sizeof(pid)) != sizeof(pid));
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for the starter");
	if (status || read(told, out_keeper, sizeof(*out_keeper)) != sizeof(*out_keeper))
		return err_set(e, ERR_SYS, "the starter could not fork");
	return 0;
}

/* The keeper sends one message: "R", or "E" and a text. An end of file without either means that it
 * died. */
static int spawn_hear(int ready, const char *run_dir, struct err *e)
{
	struct pollfd p = { .fd = ready, .events = POLLIN };
	char said[sizeof(e->msg)];
	ssize_t n;
	int rc;

	do
		rc = poll(&p, 1, READY_MS);
	while (rc < 0 && errno == EINTR);
	if (rc <= 0)
		return err_set(e, ERR_SYS, "keeper not ready after %d s (see %.150s/keeper.log)",
			       READY_MS / 1000, run_dir);
	n = read(ready, said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	if (said[0] == 'R')
		return 0;
	if (said[0] == 'E')
		return err_set(e, ERR_SYS, "%s", said + 1);
	return err_set(e, ERR_SYS, "the keeper exited without a message (see %.180s/keeper.log)",
		       run_dir);
}

/* A keeper that is exiting no longer listens, but holds its lock until its last box has ended; a
 * new keeper could not start before that. */
static int let_leave(const char *run_dir, struct err *e)
{
	auto_fd int lock = open_in(run_dir, "keeper.lock", O_RDWR, e);

	if (lock < 0)
		return -1;
	for (int waited = 0; flock(lock, LOCK_EX | LOCK_NB) < 0; waited += 10) {
		if (errno != EWOULDBLOCK || waited >= LEAVE_MS)
			return err_sys(e, "a keeper that does not answer holds %.150s/keeper.lock",
				       run_dir);
		usleep(10 * 1000);
	}
	return 0;
}

int spawn_keeper(const char *run_dir, const char *sock_path, struct err *e)
{
	auto_fd int lock = -1, log = -1, hear_fd = -1, say_fd = -1, there = -1;
	struct stat st;
	pid_t keeper;
	int pair[2];

	if (mkdir(run_dir, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "mkdir %.150s", run_dir);
	lock = open_in(run_dir, "start.lock", O_RDWR, e);
	if (lock < 0)
		return -1;
	while (flock(lock, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(e, "lock %.150s/start.lock", run_dir);
	there = sock_connect(sock_path, e);
	if (there >= 0)
		return 0; /* another client was first */
	if (let_leave(run_dir, e) < 0)
		return -1;
	log = open_in(run_dir, "keeper.log", O_WRONLY | O_APPEND, e);
	if (log < 0)
		return -1;
	if (fstat(log, &st) == 0 && st.st_size > LOG_KEEP && ftruncate(log, 0) < 0)
		return err_sys(e, "truncate %.150s/keeper.log", run_dir);
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	hear_fd = pair[0];
	say_fd = pair[1];
	if (fork_keeper(run_dir, log, say_fd, &keeper, e) < 0)
		return -1;
	own_close_fd(&say_fd); /* else the end of file would never arrive */
	if (spawn_hear(hear_fd, run_dir, e) == 0)
		return 0;
	kill(keeper, SIGKILL); /* a keeper that does not start in time would remain otherwise */
	return -1;
}
