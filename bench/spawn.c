/* spawn.c - see spawn.h. */
#include "spawn.h"

#include "base/cleanup.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static const char *const env[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL
};
static int null_fd = -1, stderr_fd = -1;

int spawn_setup(struct err *e)
{
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return err_sys(e, "open /dev/null");
	stderr_fd = memfd_create("bench-stderr", MFD_CLOEXEC);
	if (stderr_fd < 0)
		return err_sys(e, "memfd_create");
	return 0;
}

/* The last line has the cause: runtimes print log lines before it. */
static void complaint(char *out, size_t size)
{
	char text[2048];
	ssize_t n = pread(stderr_fd, text, sizeof(text) - 1, 0);
	char *last;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	last = strrchr(text, '\n');
	snprintf(out, size, "%.150s", last ? last + 1 : text);
}

static int ended_well(const struct spawn *sp, int status, struct err *e)
{
	char why[160] = "";

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	if (sp->quiet)
		complaint(why, sizeof(why));
	if (WIFSIGNALED(status))
		return err_set(e, ERR_SYS, "killed by signal %d", WTERMSIG(status));
	return err_set(e, ERR_SYS, "exit %d%s%s", WEXITSTATUS(status), *why ? ": " : "", why);
}

int spawn_wait(const struct spawn *sp, struct err *e)
{
	const char *with[ARRAY_LEN(env) + 1];
	int status;
	pid_t pid;

	memcpy(with, env, sizeof(env));
	with[ARRAY_LEN(env) - 1] = sp->variable;
	with[ARRAY_LEN(env)] = NULL;
	/* All runs append to one file: truncate it, so that it has only the errors of this run. */
	if (sp->quiet && (ftruncate(stderr_fd, 0) < 0 || lseek(stderr_fd, 0, SEEK_SET) < 0))
		return err_sys(e, "empty the stderr file");
	pid = vfork();
	if (pid < 0)
		return err_sys(e, "vfork");
	if (pid == 0) {
		if (sp->mnt_ns >= 0 && setns(sp->mnt_ns, CLONE_NEWNS) < 0)
			_exit(126);
		if (sp->quiet &&
		    (dup2(null_fd, 0) < 0 || dup2(null_fd, 1) < 0 || dup2(stderr_fd, 2) < 0))
			_exit(126);
		execve(sp->path, (char *const *)sp->argv, (char *const *)with);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "waitpid");
	return ended_well(sp, status, e);
}

void spawn_first_line(const char *path, const char *const *argv, char *out, size_t size)
{
	int pipe_fd[2], status;
	FILE *from = NULL;
	pid_t pid;

	*out = '\0';
	if (pipe2(pipe_fd, O_CLOEXEC) < 0)
		return;
	pid = vfork();
	if (pid == 0) {
		if (dup2(null_fd, 0) < 0 || dup2(pipe_fd[1], 1) < 0 || dup2(pipe_fd[1], 2) < 0)
			_exit(126);
		execve(path, (char *const *)argv, (char *const *)env);
		_exit(127);
	}
	close(pipe_fd[1]);
	from = fdopen(pipe_fd[0], "r");
	if (from && fgets(out, (int)size, from))
		out[strcspn(out, "\n")] = '\0';
	/* Read to the end, otherwise SIGPIPE kills the program. */
	while (from && fgetc(from) != EOF)
		;
	if (from)
		fclose(from);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}

int spawn_find(const char *name, char *out, size_t size, struct err *e)
{
	static const char *const dirs[] = { "/usr/local/bin", "/usr/local/sbin", "/usr/bin",
					    "/usr/sbin" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		snprintf(out, size, "%s/%s", dirs[i], name);
		if (access(out, X_OK) == 0)
			return 0;
	}
	return err_set(e, ERR_NOT_FOUND, "not installed");
}
