/* support_bundle.c - `atoll support-bundle`: what a person needs to find a fault of an installation, in one file, without
 * secrets. Nothing of boxes, programs and their output is in it, and no row of the database.
 *
 *   doctor, version, settings   this executable prints them
 *   info, metrics               the daemon's API, if one serves
 *   log                         the end of the file to which the daemon writes, or of its journal
 *   schema                      version and size of the database, rows by table
 *
 * Every text is scrubbed (scrub.h). A part that cannot be had has the reason in its place. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/run_dir.h"
#include "cli/api_client.h"
#include "daemon/archive.h"
#include "daemon/commands.h"
#include "daemon/config.h"
#include "daemon/pidfile.h"
#include "daemon/scrub.h"
#include "daemon/state_dir.h"
#include "record/record.h"
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BUNDLE_STATE, BUNDLE_CONFIG, BUNDLE_NFLAGS };
enum { LOG_MOST = 512 << 10, PART_MOST = 4 << 20 };

static const struct flag flags[BUNDLE_NFLAGS] = {
	[BUNDLE_STATE] = { "state", 0, FLAG_TEXT, "DIR", "state folder of the daemon" },
	[BUNDLE_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of the daemon" },
};

struct bundle {
	const struct cli *cli;
	const struct args *args;
	struct archive_writer to;
	const char *values[3]; /* secrets that are known here */
	struct config config;
	struct err unread; /* why the settings could not be read; kind 0: they were */
};

static int bundle_add(struct bundle *b, const char *name, const struct buf *text, struct err *e)
{
	auto_buf struct buf clean = { 0 };
	auto_fd int fd = memfd_create("bundle", MFD_CLOEXEC);

	scrub_text(&clean, buf_str(text), text->len, b->values);
	if (fd < 0 || api_client_write(fd, clean.p, clean.len) < 0)
		return err_sys(e, "%s", name);
	return archive_add(&b->to, name, fd, e);
}

/* ---- output of programs ---- */

/* What a program prints, at most PART_MOST bytes; its messages are part of it. */
static void bundle_capture(struct buf *out, const char *const *argv)
{
	int pair[2];
	ssize_t n;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0 || (pid = fork()) < 0) {
		buf_printf(out, "%s: %s\n", argv[0], strerror(errno));
		return;
	}
	if (pid == 0) {
		if (dup2(pair[1], 1) >= 0 && dup2(pair[1], 2) >= 0)
			execvp(argv[0], (char *const *)argv);
		dprintf(pair[1], "%s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	close(pair[1]);
	while (out->len < PART_MOST && (n = read(pair[0], buf_space(out, 65536), 65536)) != 0)
		if (n > 0)
			buf_grew(out, (size_t)n);
		else if (errno != EINTR)
			break;
	close(pair[0]);
	kill(pid, SIGPIPE); /* one that has more to print */
	waitpid(pid, NULL, 0);
}

/* more: a subcommand that reads the settings, or NULL. */
static int bundle_add_command(struct bundle *b, const char *name, const char *word,
			      const char *more, struct err *e)
{
	const char *config = args_text(b->args, BUNDLE_CONFIG, NULL);
	const char *argv[] = { "/proc/self/exe", word,       "--json", more,
			       "--origin",       "--config", config,   NULL };
	auto_buf struct buf out = { 0 };

	if (more && !config)
		argv[5] = NULL;
	bundle_capture(&out, argv);
	return bundle_add(b, name, &out, e);
}

/* ---- the daemon ---- */

static int bundle_sink(void *ctx, const char *bytes, size_t n, struct err *e)
{
	struct buf *out = ctx;

	(void)e;
	buf_add(out, bytes, out->len + n <= PART_MOST ? n : 0);
	return 0;
}

static int bundle_add_answer(struct bundle *b, struct api_client *r, int status, const char *path,
			     const char *name, struct err *e)
{
	auto_buf struct buf text = { 0 };
	struct api_client_bytes x = { .method = "GET",
				      .path = path,
				      .from = -1,
				      .to = -1,
				      .sink = bundle_sink,
				      .ctx = &text };

	if (!status)
		status = api_client_bytes(r, &x);
	if (status)
		buf_printf(&text, "no answer: %s %s\n", r->error.what, r->error.why);
	return bundle_add(b, name, &text, e);
}

static int bundle_add_daemon(struct bundle *b, struct err *e)
{
	struct api_client r;
	int status = api_client_open(&r, b->cli), rc;

	rc = bundle_add_answer(b, &r, status, "/v1/info", "info.json", e) < 0 ||
			     bundle_add_answer(b, &r, status, "/metrics", "metrics.txt", e) < 0
		     ? -1
		     : 0;
	api_client_close(&r);
	return rc;
}

/* ---- the log ---- */

/* The standard error of the daemon, if that is a file. */
static int bundle_read_file_log(struct buf *out)
{
	struct pidfile_record daemon;
	char run[256], path[64];
	auto_fd int fd = -1;
	struct stat st;
	struct err e;
	off_t from;
	ssize_t n;

	if (run_dir_find(run, sizeof(run), &e) < 0 || pidfile_read(run, &daemon, &e) < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/fd/2", (int)daemon.supervisor);
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	from = st.st_size > LOG_MOST ? st.st_size - LOG_MOST : 0;
	n = pread(fd, buf_space(out, LOG_MOST), LOG_MOST, from);
	buf_grew(out, n > 0 ? (size_t)n : 0);
	return 0;
}

static int bundle_add_log(struct bundle *b, struct err *e)
{
	static const char *const journal[] = { "journalctl", "-u", "atoll.service", "-n", "3000",
					       "--no-pager", "-o", "short-iso",     NULL };
	auto_buf struct buf out = { 0 };

	if (bundle_read_file_log(&out) < 0)
		bundle_capture(&out, journal);
	return bundle_add(b, "log.txt", &out, e);
}

/* ---- the database ---- */

static int bundle_add_schema(struct bundle *b, struct err *e)
{
	const char *state = b->unread.kind ? args_text(b->args, BUNDLE_STATE, NULL)
					   : config_text(&b->config, CONFIG_STATE);
	auto_buf struct buf out = { 0 };
	char folder[1100];
	struct err why;

	if (!state) {
		buf_printf(&out, "the state folder is not known: %s\n", b->unread.msg);
		return bundle_add(b, "schema.txt", &out, e);
	}
	snprintf(folder, sizeof(folder), "%.1000s/server", state);
	if (access(folder, F_OK) < 0)
		snprintf(folder, sizeof(folder), "%.1000s/front", state);
	if (store_describe(folder, &out, &why) < 0)
		buf_printf(&out, "%s\n", why.msg);
	return bundle_add(b, "schema.txt", &out, e);
}

/* ---- all of it ---- */

static int bundle_add_all(struct bundle *b, struct err *e)
{
	if (bundle_add_command(b, "version.json", "version", NULL, e) < 0 ||
	    bundle_add_command(b, "doctor.json", "doctor", NULL, e) < 0 ||
	    bundle_add_command(b, "settings.json", "config", "show", e) < 0 ||
	    bundle_add_daemon(b, e) < 0 || bundle_add_log(b, e) < 0)
		return -1;
	return bundle_add_schema(b, e);
}

static int bundle_write(struct bundle *b, const char *file, struct err *e)
{
	auto_free char *part = buf_text("%s.part", file);
	auto_fd int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	json_t *about;
	int rc;

	if (fd < 0)
		return err_sys(e, "create %.150s", part);
	b->to = (struct archive_writer){ .fd = fd };
	rc = bundle_add_all(b, e);
	if (rc == 0) {
		about = json_pack("{s:s, s:o}", "version", ATOLL_VERSION, "created",
				  json_time(clock_ns(CLOCK_REALTIME)));
		rc = archive_finish(&b->to, about, e);
	}
	if (rc == 0 && rename(part, file) < 0)
		rc = err_sys(e, "write %.150s", file);
	if (rc < 0)
		unlink(part);
	archive_writer_fini(&b->to);
	return rc;
}

/* Wrong settings may be the fault that is looked for. */
static void bundle_open_config(struct bundle *b)
{
	struct config_given given = { CONFIG_STATE, args_text(b->args, BUNDLE_STATE, NULL) };
	struct config_source src = { .file = args_text(b->args, BUNDLE_CONFIG, NULL),
				     .given = &given,
				     .ngiven = given.text != NULL };

	if (config_load(&b->config, &src, &b->unread) == 0)
		b->values[0] = config_text(&b->config, CONFIG_KEY);
}

static int run_support_bundle(const struct cli *cli, const struct args *a)
{
	struct bundle b = { .cli = cli, .args = a };
	time_t now = time(NULL);
	char file[300];
	struct cli_error t;
	struct tm tm;
	struct err e;
	int rc;

	gmtime_r(&now, &tm);
	strftime(file, sizeof(file), "atoll-support-%Y%m%dT%H%M%SZ.tar", &tm);
	if (a->nwords)
		snprintf(file, sizeof(file), "%s", a->words[0]);
	bundle_open_config(&b);
	rc = bundle_write(&b, file, &e);
	if (!b.unread.kind)
		config_fini(&b.config);
	if (rc < 0) {
		cli_error_what(&t, err_kind_name(e.kind), "no bundle was written: %s", e.msg);
		return cli_error_print(&t, cli->json, STATUS_FAILED);
	}
	if (cli->json)
		printf("{\"file\":\"%s\"}\n", file);
	else
		printf("%s\n", file);
	if (!cli->quiet && !cli->json)
		fprintf(stderr,
			"atoll: secrets were removed as far as they can be recognized; look at it before you send it\n");
	return 0;
}

static const struct example examples[] = {
	{ "atoll support-bundle", "write atoll-support-TIME.tar to this folder" },
	{ 0 },
};

const struct command command_support_bundle = {
	/* clang-format off */
	.name = "support-bundle",
	.group = "Machine",
	.usage = "[FILE]",
	.summary = "write what is needed to find a fault to one file, without secrets",
	.notes = "The file has the results of doctor, version, settings, metrics, the end of the log, and version and size of\n"
		 "the database. It has nothing of boxes, programs, their output and the rows of the database.",
	.flags = flags,
	.nflags = BUNDLE_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_support_bundle,
	/* clang-format on */
};
