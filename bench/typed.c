/* typed.c - see typed.h. Each subject is a command line; all of them are started as a shell would. */
#include "typed.h"

#include "base/cleanup.h"
#include "mine.h"
#include "peers.h"
#include "spawn.h"
#include "subject.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static char script[PATH_MAX], run_var[PATH_MAX], python_path[PATH_MAX];
static const char *const version_words[] = { "atoll", "--version", NULL };
static const char *const true_words[] = { "atoll", "run", "--", "true", NULL };
static const char *const python_words[] = { "atoll", "run", script, NULL };
static const char *const plain_words[] = { "python3", script, NULL };

static int write_script(struct err *e)
{
	auto_fd int fd = -1;

	snprintf(script, sizeof(script), "%s/print1.py", bench_dir);
	fd = open(script, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || dprintf(fd, "print(1)\n") < 0)
		return err_sys(e, "write %s", script);
	return 0;
}

static const char *const *words_of(const struct subject *s)
{
	return !strcmp(s->name, "typed_version") ? version_words
	       : !strcmp(s->name, "typed_true")  ? true_words
						 : python_words;
}

static int open_typed(struct subject *s, struct err *e)
{
	const char *why = mine_missing();

	if (why)
		return err_set(e, ERR_NOT_FOUND, "%s", why);
	snprintf(run_var, sizeof(run_var), "ATOLL_RUN=%s", mine_run_dir());
	spawn_first_line(mine_atoll(), version_words, s->version, sizeof(s->version));
	return typed_once(s, e);
}

int typed_version_open(struct subject *s, struct err *e)
{
	return open_typed(s, e);
}

int typed_true_open(struct subject *s, struct err *e)
{
	return open_typed(s, e);
}

int typed_python_open(struct subject *s, struct err *e)
{
	return write_script(e) < 0 ? -1 : open_typed(s, e);
}

int typed_once(struct subject *s, struct err *e)
{
	struct spawn sp = { .path = mine_atoll(),
			    .argv = words_of(s),
			    .quiet = 1,
			    .variable = run_var,
			    .mnt_ns = -1 };

	return spawn_wait(&sp, e);
}

int python_open(struct subject *s, struct err *e)
{
	const char *const ask[] = { "python3", "--version", NULL };

	if (spawn_find("python3", python_path, sizeof(python_path), e) < 0 || write_script(e) < 0)
		return -1;
	spawn_first_line(python_path, ask, s->version, sizeof(s->version));
	return python_once(s, e);
}

int python_once(struct subject *s, struct err *e)
{
	struct spawn sp = { .path = python_path, .argv = plain_words, .quiet = 1, .mnt_ns = -1 };

	(void)s;
	return spawn_wait(&sp, e);
}
