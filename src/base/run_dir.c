/* run_dir.c - see run_dir.h. */
#include "base/run_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The address of a UNIX socket holds 107 bytes, and "/boxes/<id>/init.sock" is appended. */
enum { LONGEST = 70 };

static int run_dir_is_own(const char *path, struct stat *st)
{
	return lstat(path, st) == 0 && S_ISDIR(st->st_mode) && st->st_uid == geteuid();
}

static int run_dir_in_tmp(char *out, size_t size, struct err *e)
{
	struct stat st = { 0 };

	snprintf(out, size, "/tmp/atoll-%u", (unsigned)geteuid());
	if (mkdir(out, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "create the run folder %s; set ATOLL_RUN to another one", out);
	if (!run_dir_is_own(out, &st))
		return err_set(e, ERR_DENIED,
			       "%s is not a folder of uid %u (owner %u); set ATOLL_RUN", out,
			       (unsigned)geteuid(), (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return err_set(e, ERR_DENIED, "%s has mode %o: others may use it; chmod 700 %s",
			       out, (unsigned)st.st_mode & 0777, out);
	return 0;
}

static int run_dir_default(char *out, size_t size, struct err *e)
{
	const char *user = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	char path[64];

	if (geteuid() == 0)
		return snprintf(out, size, "/run/atoll");
	if (user && *user == '/')
		return snprintf(out, size, "%s/atoll", user);
	/* `su -` and cron leave the variable unset although the session's folder exists. */
	snprintf(path, sizeof(path), "/run/user/%u", (unsigned)geteuid());
	if (run_dir_is_own(path, &st))
		return snprintf(out, size, "%s/atoll", path);
	return run_dir_in_tmp(out, size, e);
}

int run_dir_find(char *out, size_t size, struct err *e)
{
	const char *set = getenv("ATOLL_RUN");
	int n = set && *set ? snprintf(out, size, "%s", set) : run_dir_default(out, size, e);

	if (n < 0)
		return -1;
	if (n >= (int)size || n > LONGEST || *out != '/')
		return err_set(
			e, ERR_INVALID,
			"run folder '%.40s' must be absolute and have at most %d bytes; set ATOLL_RUN",
			out, LONGEST);
	return 0;
}
