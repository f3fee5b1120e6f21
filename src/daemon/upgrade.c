/* upgrade.c - `atoll upgrade`: the daemon executes its new binary, without an interruption for
 * clients.
 *
 *   upgrade                      supervisor                      servers
 *   may the new one run? --->    (the file by its name)
 *   SIGUSR2              --->    executes it: same pid, same sockets
 *                                starts a server          --->   the new one restores and serves
 *   reads serve.pid      <---    writes which server serves
 *                                                         --->   the old one drains
 *
 * A binary that cannot print its version is not used. */
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "daemon/local_daemon.h"
#include "daemon/pidfile.h"
#include "daemon/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 30000, STEP_MS = 20 };

/* The file that it was started from; another file may have that name by now. */
static int exe_of(pid_t pid, char *out, size_t size, struct err *e)
{
	static const char gone[] = " (deleted)";
	char path[40];
	ssize_t n;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, out, size - 1);
	if (n < 0)
		return err_sys(e, "read the state of process %d", (int)pid);
	out[n] = 0;
	len = (size_t)n;
	if (len > strlen(gone) && !strcmp(out + len - strlen(gone), gone))
		out[len - strlen(gone)] = 0;
	return 0;
}

static _Noreturn void say_version(const char *exe, int out)
{
	if (dup2(out, 1) < 0)
		_exit(126);
	execl(exe, exe, "version", (char *)NULL);
	_exit(127);
}

/* "atoll 1.2" -> "1.2" */
static int version_of(const char *exe, char out[PIDFILE_VERSION], struct err *e)
{
	auto_fd int from = -1, to = -1;
	char said[128];
	int pair[2], status = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	from = pair[0];
	to = pair[1];
	pid = fork();
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0)
		say_version(exe, to);
	own_close_fd(&to);
	n = read(from, said, sizeof(said) - 1);
	said[n > 0 ? n : 0] = 0;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status || sscanf(said, "atoll %39s", out) != 1)
		return err_set(e, ERR_INVALID, "%.150s is not an atoll executable for this machine",
			       exe);
	return 0;
}

/* Waits until another server serves, or the supervisor has ended. */
static int await_server(const char *run, const struct pidfile_record *before, int pidfd,
			struct pidfile_record *after, struct err *e)
{
	for (int waited = 0; waited < WAIT_MS; waited += STEP_MS) {
		struct pollfd p = { .fd = pidfd, .events = POLLIN };

		if (poll(&p, 1, STEP_MS) > 0)
			return err_set(e, ERR_SYS, "the daemon (pid %d) ended during the upgrade",
				       (int)before->supervisor);
		if (pidfile_read(run, after, e) < 0)
			continue;
		if (after->failed_upgrades != before->failed_upgrades)
			return err_set(
				e, ERR_SYS,
				"the daemon (pid %d) cannot execute the file it was started from: %s; it continues unchanged",
				(int)before->supervisor, strerror(after->upgrade_errno));
		if (after->server && after->server != before->server)
			return 0;
	}
	return err_set(e, ERR_SYS, "no new server is ready after %d s; see the log of the daemon",
		       WAIT_MS / 1000);
}

static int upgrade_replace_server(const struct cli *cli, struct pidfile_record *before,
				  struct pidfile_record *after, struct err *e)
{
	char run[256], exe[1024], version[PIDFILE_VERSION];
	auto_fd int pidfd = -1;

	if (local_daemon_find(cli, "upgrade", run, e) < 0 ||
	    pidfile_find_process(run, before, &pidfd, e) < 0)
		return -1;
	if (exe_of(before->supervisor, exe, sizeof(exe), e) < 0 || version_of(exe, version, e) < 0)
		return err_in(e, "not upgraded");
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGUSR2, NULL, 0) < 0)
		return err_sys(e, "signal process %d", (int)before->supervisor);
	return await_server(run, before, pidfd, after, e);
}

static int run_upgrade(const struct cli *cli, const struct args *a)
{
	struct pidfile_record before = { 0 }, after = { 0 };
	struct cli_error t;
	struct err e;

	(void)a;
	if (upgrade_replace_server(cli, &before, &after, &e) < 0) {
		cli_error_what(&t, err_kind_name(e.kind), "%s", e.msg);
		if (e.kind == ERR_NOT_FOUND)
			cli_error_hint(&t, "start it", "atoll serve");
		else if (e.kind != ERR_INVALID)
			cli_error_hint(&t, "replace it",
				       "atoll stop, then atoll serve (boxes keep running)");
		return cli_error_print(&t, cli->json,
				       e.kind == ERR_NOT_FOUND ? STATUS_NOT_FOUND : STATUS_FAILED);
	}
	if (cli->json)
		printf("{\"pid\":%d,\"from\":\"%s\",\"to\":\"%s\"}\n", (int)after.supervisor,
		       before.version, after.version);
	else if (!cli->quiet)
		printf("upgraded from %s to %s (pid %d)\n", before.version, after.version,
		       (int)after.supervisor);
	return 0;
}

static const struct example examples[] = {
	{ "atoll upgrade", "restart after a new version was installed" },
	{ 0 },
};

const struct command command_upgrade = {
	.name = "upgrade",
	.group = "Machine",
	.usage = "",
	.summary = "restart the daemon with the new binary, without downtime",
	.notes =
		"The daemon executes the file that it was started from. Its sockets stay open, boxes and programs\n"
		"keep running, requests in progress finish. -H unix:PATH or ATOLL_HOST selects the daemon that\n"
		"listens there; a URL is rejected: upgrade that daemon on its own machine.",
	.max_words = 0,
	.examples = examples,
	.run = run_upgrade,
};
