/* run_inputs.c - see run_inputs.h. */
#include "cli/run_inputs.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/runtime.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { HEAD = 64 * 1024, SOURCES_MAX = 4096 };

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int inputs_fail(struct run_inputs *in, int status)
{
	in->status = status;
	return -1;
}

/* ---- where a file goes ---- */

/* The path below the copied folder, or NULL. The caller frees it. */
static char *below_root(const struct run_inputs *in, const char *path)
{
	auto_free char *real = in->root ? realpath(path, NULL) : NULL;
	size_t n = in->root ? strlen(in->root) : 0;

	if (!real || strncmp(real, in->root, n) != 0 || real[n] != '/')
		return NULL;
	return buf_text("%s", real + n + 1);
}

/* A plain relative path is kept; any other path is reduced to its last part. */
static int stays_below(const char *path)
{
	if (*path == '/')
		return 0;
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.')
			return 0;
		path += n + (path[n] == '/');
	}
	return 1;
}

static int same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Plans the copy of `path`; *out_place is its path below BOX_HOME, to be freed. */
static int plan_file(struct run_inputs *in, const char *path, char **out_place, struct cli_error *t)
{
	auto_free char *place = below_root(in, path);
	auto_free char *to = NULL;
	char shown[SHOWN];

	if (place) {
		*out_place = steal(&place);
		return 0; /* the folder brings it */
	}
	place = buf_text("%s", stays_below(path) ? path : last_part(path));
	to = buf_text("%s/%s", BOX_HOME, place);
	for (unsigned i = 0; i < in->nfiles; i++) {
		if (strcmp(in->files[i].to, to) != 0)
			continue;
		if (!same_file(in->files[i].from, path)) {
			cli_error_what(t, "usage", "two files would both become '%s'",
				       cli_error_shown(place, shown));
			cli_error_hint(t, "instead",
				       "atoll run -w DIR ... copies a folder as it is");
			return inputs_fail(in, STATUS_USAGE);
		}
		*out_place = steal(&place);
		return 0;
	}
	if ((in->nfiles & (in->nfiles + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
		in->files = realloc(in->files, 2 * (in->nfiles + 1) * sizeof(*in->files));
		if (!in->files)
			abort();
	}
	in->files[in->nfiles++] =
		(struct run_inputs_file){ .from = buf_text("%s", path), .to = steal(&to) };
	*out_place = steal(&place);
	return 0;
}

/* ---- the folder ---- */

int run_inputs_folder(struct run_inputs *in, const struct options *opt, struct cli_error *t)
{
	char shown[SHOWN];

	*in = (struct run_inputs){ .workdir = -1, .template = "base" };
	if (!opt->workdir)
		return 0;
	in->workdir = open(opt->workdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	in->root = realpath(opt->workdir, NULL);
	if (in->workdir < 0 || !in->root) {
		cli_error_what(t, "not_found", "cannot open the folder '%s'",
			       cli_error_shown(opt->workdir, shown));
		cli_error_why(t, "%s", strerror(errno));
		cli_error_hint(t, "type", "atoll run -w . -- CMD   for the folder you are in");
		return inputs_fail(in, STATUS_USAGE);
	}
	return 0;
}

/* ---- the program ---- */

static int inputs_choose(struct run_inputs *in, const char *wanted, const char *file,
			 const char *head, size_t n, struct cli_error *t)
{
	int status = runtime_choose(&in->program.lang, wanted, file, head, n, t);

	in->template = in->program.lang ? in->program.lang->name : "base";
	return status ? inputs_fail(in, status) : 0;
}

static int choose_compiler(struct run_inputs *in, const char *wanted, struct cli_error *t)
{
	static const char *const none[] = { NULL };
	char shown[SHOWN];

	in->program.compile = in->program.lang ? lang_compiler(in->program.lang, wanted)
			      : wanted         ? NULL
					       : none;
	if (!in->program.compile) {
		cli_error_what(t, "usage", "%s has no compiler named '%s'", in->template,
			       cli_error_shown(wanted, shown));
		cli_error_hint(t, "list", "atoll lang %s",
			       in->program.lang ? in->program.lang->name : "");
		return inputs_fail(in, STATUS_USAGE);
	}
	if (in->program.compile[0] && in->program.compile[0][0] == '/' &&
	    access(in->program.compile[0], X_OK) < 0) {
		cli_error_what(t, "not_found", "no %s on this machine", in->program.compile[0]);
		cli_error_hint(t, "list", "atoll lang %s", in->program.lang->name);
		return inputs_fail(in, STATUS_NO_PROGRAM);
	}
	return 0;
}

static int cannot_read(struct run_inputs *in, const char *path, struct cli_error *t)
{
	char shown[SHOWN];
	int missing = errno == ENOENT || errno == ENOTDIR;

	cli_error_what(t, missing ? "not_found" : "denied",
		       missing ? "no file named '%s'" : "cannot read '%s'",
		       cli_error_shown(path, shown));
	if (!missing)
		cli_error_why(t, "%s", strerror(errno));
	else
		cli_error_hint(t, "command", "atoll run -- %s ...   runs a program of the box",
			       shown);
	return inputs_fail(in, missing ? STATUS_NO_PROGRAM : STATUS_CANNOT_RUN);
}

/* The first bytes of a file that must be a regular one. */
static ssize_t read_head(struct run_inputs *in, const char *path, char *head, struct cli_error *t)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char shown[SHOWN];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return cannot_read(in, path, t);
	if (!S_ISREG(st.st_mode)) {
		cli_error_what(t, "usage", "'%s' is not a file", cli_error_shown(path, shown));
		cli_error_why(t, "%s",
			      S_ISDIR(st.st_mode) ? "it is a folder"
						  : "it is a device, a pipe or a socket");
		cli_error_hint(t, "folder", "atoll run -w %s -- CMD", shown);
		return inputs_fail(in, STATUS_CANNOT_RUN);
	}
	n = read(fd, head, HEAD);
	return n < 0 ? cannot_read(in, path, t) : n;
}

/* A copied folder is a project: the other files in the program's folder belong to it. */
static void find_sources(struct run_inputs *in, const char *place)
{
	const char *slash = strrchr(place, '/');
	auto_free char *folder =
		buf_text("%.*s", slash ? (int)(slash - place) : 1, slash ? place : ".");
	int fd = openat(in->workdir, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d) {
		own_close_fd(&fd);
		return;
	}
	while (in->program.nsources < SOURCES_MAX && (e = readdir(d)) != NULL) {
		auto_free char *path =
			buf_text("%.*s%s", slash ? (int)(slash + 1 - place) : 0, place, e->d_name);

		program_add_source(&in->program, path);
	}
	closedir(d);
}

static int plan_file_program(struct run_inputs *in, const char *wanted, const char *path,
			     struct cli_error *t)
{
	auto_free char *place = NULL, *head = malloc(HEAD);
	ssize_t n = head ? read_head(in, path, head, t) : -1;

	if (n < 0 || inputs_choose(in, wanted, path, head, (size_t)n, t) < 0 ||
	    plan_file(in, path, &place, t) < 0)
		return -1;
	program_place(&in->program, place, head, (size_t)n, 0);
	if (in->workdir >= 0 && in->program.lang)
		find_sources(in, place);
	return 0;
}

static int plan_stdin_program(struct run_inputs *in, const char *wanted, struct cli_error *t)
{
	char name[LANG_UNIT] = "main";
	ssize_t n;

	in->from_stdin = 1;
	if (isatty(0))
		fprintf(stderr,
			"atoll: reading the program from the terminal, end it with Ctrl-D\n");
	do {
		n = read(0, buf_space(&in->code, 65536), 65536);
		if (n < 0) {
			cli_error_what(t, "system", "cannot read the program from stdin");
			cli_error_why(t, "%s", strerror(errno));
			return inputs_fail(in, STATUS_CANNOT_RUN);
		}
		buf_grew(&in->code, (size_t)n);
		if (in->code.len > RUN_INPUTS_FILE_MAX) {
			cli_error_what(t, "limit", "the program on stdin is longer than 64 MiB");
			cli_error_hint(t, "instead", "atoll run FILE < data");
			return inputs_fail(in, STATUS_CANNOT_RUN);
		}
	} while (n > 0);
	if (!wanted && !lang_is_program(buf_str(&in->code), in->code.len)) {
		cli_error_what(t, "usage", "code from stdin needs a template");
		cli_error_why(t, "it has no #! line that names an interpreter");
		cli_error_hint(t, "type", "... | atoll run -t python -");
		runtime_list(t);
		return inputs_fail(in, STATUS_USAGE);
	}
	if (inputs_choose(in, wanted, "-", buf_str(&in->code), in->code.len, t) < 0)
		return -1;
	if (in->program.lang)
		lang_file_of(in->program.lang, buf_str(&in->code), in->code.len, name);
	program_place(&in->program, name, buf_str(&in->code), in->code.len, 0);
	return 0;
}

/* ---- its arguments ---- */

/* Files in /usr are in every box, at the same path. */
static int is_in_every_box(const char *path)
{
	auto_free char *real = realpath(path, NULL);

	return real && !strncmp(real, "/usr/", 5);
}

/* An argument that names a file here is copied in; if its path changes, the argument is changed,
 * too. */
static int plan_argument(struct run_inputs *in, const char *arg, char **out, struct cli_error *t)
{
	char shown[SHOWN], size[UNITS_TEXT];
	struct stat st;

	if (*arg == '-' || stat(arg, &st) < 0 || !S_ISREG(st.st_mode) || is_in_every_box(arg)) {
		*out = buf_text("%s", arg);
		return 0;
	}
	if (access(arg, R_OK) < 0)
		return cannot_read(in, arg, t);
	if ((uint64_t)st.st_size > RUN_INPUTS_FILE_MAX) {
		cli_error_what(t, "limit", "'%s' is too large to be copied in as an argument",
			       cli_error_shown(arg, shown));
		cli_error_why(t, "%s, at most 64 MiB", units_size(size, (uint64_t)st.st_size));
		cli_error_hint(t, "instead", "atoll run -w DIR ... copies a folder of any size");
		return inputs_fail(in, STATUS_USAGE);
	}
	return plan_file(in, arg, out, t);
}

int run_inputs_program(struct run_inputs *in, const struct options *opt, char *const *words,
		       unsigned nwords, struct cli_error *t)
{
	int bad;

	if (run_inputs_folder(in, opt, t) < 0)
		return -1;
	bad = !strcmp(words[0], "-") ? plan_stdin_program(in, opt->template, t)
				     : plan_file_program(in, opt->template, words[0], t);
	if (bad || choose_compiler(in, opt->compiler, t) < 0)
		return -1;
	in->args = calloc(nwords, sizeof(*in->args));
	if (!in->args)
		abort();
	for (; in->nargs + 1 < nwords; in->nargs++)
		if (plan_argument(in, words[in->nargs + 1], &in->args[in->nargs], t) < 0)
			return -1;
	return 0;
}

/* ---- doing it ---- */

static int put_folder(const struct run_inputs *in, struct local_run *s, struct err *e)
{
	struct files_tally tally;
	char shown[SHOWN], size[UNITS_TEXT];

	if (files_put_tree(&s->files, in->workdir, BOX_HOME, &tally, e) < 0)
		return err_in(e, "copy the folder in");
	if (tally.skipped && !s->cli->quiet)
		fprintf(stderr, "atoll: %llu left out, no file, folder or link: %s%s\n",
			(unsigned long long)tally.skipped,
			cli_error_shown(tally.first_skipped, shown),
			tally.skipped > 1 ? " and others" : "");
	if (s->cli->verbose)
		fprintf(stderr, "atoll: copied %llu files, %s\n", (unsigned long long)tally.files,
			units_size(size, tally.bytes));
	return 0;
}

static int put_file(const struct run_inputs_file *f, mode_t add, struct local_run *s, struct err *e)
{
	auto_fd int fd = open(f->from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %.80s", f->from);
	return files_put(&s->files, fd, f->to, (st.st_mode & 0777) | 0600 | add, e);
}

int run_inputs_put(const struct run_inputs *in, struct local_run *s, struct err *e)
{
	const struct lang_pair *support = in->program.lang ? in->program.lang->support : NULL;

	if (in->workdir < 0 && !in->nfiles && !in->from_stdin)
		return 0;
	if (local_run_files(s, e) < 0 || (in->workdir >= 0 && put_folder(in, s, e) < 0))
		return -1;
	for (unsigned i = 0; i < in->nfiles; i++) {
		const struct run_inputs_file *f = &in->files[i];
		/* A program without an interpreter has to be executable itself. */
		int runs = !in->program.lang && in->program.source &&
			   !strcmp(f->to, in->program.source);

		if (put_file(f, runs ? 0100 : 0, s, e) < 0)
			return err_in(e, "copy %.60s in", f->from);
	}
	if (in->from_stdin && files_put_bytes(&s->files, buf_str(&in->code), in->code.len,
					      in->program.source, 0700, e) < 0)
		return err_in(e, "copy the program in");
	for (; support && support->key; support++)
		if (files_put_bytes(&s->files, support->value, strlen(support->value), support->key,
				    0600, e) < 0)
			return err_in(e, "write %.60s", support->key);
	return 0;
}

void run_inputs_fini(struct run_inputs *in)
{
	for (unsigned i = 0; i < in->nfiles; i++) {
		free(in->files[i].from);
		free(in->files[i].to);
	}
	free(in->files);
	own_close_fd(&in->workdir);
	free(in->root);
	buf_fini(&in->code);
	program_fini(&in->program);
	for (unsigned i = 0; i < in->nargs; i++)
		free(in->args[i]);
	free(in->args);
}
