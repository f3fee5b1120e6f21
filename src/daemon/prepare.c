/* prepare.c - see prepare.h: what preparations share. */
#include "daemon/prepare.h"
#include "base/cleanup.h"

#include <errno.h>
#include <ftw.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

int prepare_run(const char *const *argv, struct err *e)
{
	posix_spawn_file_actions_t actions;
	int rc, status;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", 0, 0);
	posix_spawn_file_actions_adddup2(&actions, 2, 1);
	rc = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (rc != 0) {
		errno = rc;
		return err_sys(e, "start %s", argv[0]);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_sys(e, "wait for %s", argv[0]);
	if (WIFSIGNALED(status))
		return err_set(e, ERR_SYS, "%s was ended by signal %d", argv[0], WTERMSIG(status));
	if (WEXITSTATUS(status))
		return err_set(e, ERR_SYS, "%s exited with status %d; its output is above", argv[0],
			       WEXITSTATUS(status));
	return 0;
}

int prepare_npm(const char *folder, const char *const *packages, const struct prepare_how *how,
		struct err *e)
{
	const char *argv[24] = { "npm",
				 "install",
				 "--legacy-peer-deps", /* installs none of them */
				 "--prefix",
				 folder,
				 "--no-audit",
				 "--no-fund",
				 "--ignore-scripts",
				 "--omit=dev",
				 "--no-save",
				 "--loglevel",
				 how->quiet ? "error" : "warn" };
	unsigned n = 12;

	while (*packages && n < ARRAY_LEN(argv) - 1)
		argv[n++] = *packages++;
	if (prepare_run(argv, e) == 0)
		return 0;
	if (e->kind == ERR_SYS && e->sys == ENOENT)
		return err_set(e, ERR_NOT_FOUND,
			       "npm is not installed: apt install npm, or name a folder that has "
			       "the packages with --from");
	return -1;
}

static int prepare_remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

int prepare_remove(const char *folder, struct err *e)
{
	if (nftw(folder, prepare_remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
		return err_sys(e, "remove %.150s", folder);
	return 0;
}
