/* tool.c - see tool.h. */
#include "tier/tool.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum { TOOL_TIMEOUT_S = 60, TOOL_TEXT = 4096 };

static _Noreturn void tool_exec(const char *const *argv, int out, int both, uint32_t uid, int keep)
{
	static char path[] = "PATH=/usr/sbin:/usr/bin", lang[] = "LC_ALL=C.UTF-8";
	char *env[] = { path, lang, NULL };
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (keep >= 0 && keep != 3 && dup2(keep, 3) < 0)
		_exit(126);
	if (keep == 3)
		fcntl(3, F_SETFD, 0);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(both ? out : null, 2) < 0 ||
	    close_range(keep >= 0 ? 4 : 3, ~0u, 0) < 0 || chdir("/") < 0)
		_exit(126);
	if (geteuid() == 0 && uid &&
	    (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
	     setresuid(uid, uid, uid) < 0))
		_exit(126);
	/* After the change of the uid, which clears it. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		_exit(126);
	execve(argv[0], (char *const *)(uintptr_t)argv, env);
	_exit(127);
}

static int tool_read(int fd, struct buf *out, size_t most, unsigned timeout_s, const char *name,
		     struct err *e)
{
	uint64_t until = now_ns() + timeout_s * 1000000000ull;

	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		uint64_t now = now_ns();
		ssize_t n;

		if (now >= until || poll(&p, 1, (int)((until - now) / 1000000) + 1) == 0)
			return err_set(e, ERR_LIMIT, "%s did not end within %u s", name, timeout_s);
		n = read(fd, buf_space(out, 65536), 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read from %s", name);
		if (n == 0)
			return 0;
		buf_grew(out, (size_t)n);
		if (out->len > most)
			return err_set(e, ERR_LIMIT, "%s printed more than %zu bytes", name, most);
	}
}

static const char *tool_first_line(struct buf *text)
{
	buf_cut(text, text->p ? strcspn(text->p, "\n") : 0);
	return buf_str(text);
}

static int host_tool_run(const char *const *argv, uint32_t uid, int keep, int both, struct buf *out,
			 size_t most, unsigned timeout_s, struct err *e)
{
	int pipes[2], status = 0, done;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	pid = fork();
	if (pid == 0)
		tool_exec(argv, pipes[1], both, uid, keep);
	close(pipes[1]);
	if (pid < 0) {
		close(pipes[0]);
		return err_sys(e, "start %s", argv[0]);
	}
	done = tool_read(pipes[0], out, most, timeout_s, argv[0], e);
	close(pipes[0]);
	if (done < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (done < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		return err_set(e, ERR_NOT_FOUND, "%s is not installed", argv[0]);
	if (status != 0)
		return err_set(e, ERR_SYS, "%s failed (%s %d): %.120s", argv[0],
			       WIFSIGNALED(status) ? "signal" : "status",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			       tool_first_line(out));
	return 0;
}

int host_tool_output(const char *const *argv, struct buf *out, size_t most, struct err *e)
{
	return host_tool_run(argv, TOOL_UID, -1, 0, out, most, TOOL_TIMEOUT_S, e);
}

int host_tool_run_as(const char *const *argv, uint32_t uid, int keep, unsigned timeout_s,
		     struct err *e)
{
	auto_buf struct buf text = { 0 };

	return host_tool_run(argv, uid, keep, 1, &text, TOOL_TEXT, timeout_s, e);
}
