/* watch.c - see watch.h.
 *
 *   run ---> ended ---> wait for a change ---> wait for quiet ---> run
 *    └── a change: end it, wait for quiet ──────────────────────^
 *
 * Folders are watched, not files: editors write another file and rename it. */
#include "cli/watch.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { QUIET_MS = 100, GRACE_MS = 2000, FOLDERS_MAX = 1024, DEPTH_MAX = 32 };
enum { CHANGES = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE };

struct box_path { /* a folder that is watched */
	int wd;
	int all;    /* every name in it counts; else only those of the list */
	char *path; /* as it was named */
};

struct watch_watcher {
	const struct watch_files *what;
	int inotify, signals;
	struct box_path *places;
	unsigned nplaces;
	char changed[NAME_MAX + 1];
	int stop; /* the signal that ends this process, or 0 */
};

/* ---- what is watched ---- */

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int add_place(struct watch_watcher *w, const char *path, int all, struct err *e)
{
	int wd = inotify_add_watch(w->inotify, path, CHANGES | IN_ONLYDIR | IN_EXCL_UNLINK);

	if (wd < 0)
		return err_sys(e, "watch '%.80s'", path);
	for (unsigned i = 0; i < w->nplaces; i++) {
		if (w->places[i].wd == wd) {
			w->places[i].all |= all;
			return 0;
		}
	}
	if (w->nplaces == FOLDERS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d folders to watch", FOLDERS_MAX);
	if (!w->places)
		w->places = calloc(FOLDERS_MAX, sizeof(*w->places));
	if (!w->places)
		abort();
	w->places[w->nplaces++] = (struct box_path){ wd, all, strdup(path) };
	return 0;
}

static int add_file(struct watch_watcher *w, const char *file, struct err *e)
{
	size_t n = (size_t)(name_of(file) - file);
	auto_free char *folder = strndup(n ? file : ".", n ? n : 1);

	if (!folder)
		abort();
	return add_place(w, folder, 0, e);
}

/* Files that tools keep for themselves change often and are not programs. */
static int is_theirs(const char *name)
{
	size_t n = strlen(name);

	return !n || name[0] == '.' || name[n - 1] == '~' || !strcmp(name, "node_modules") ||
	       !strcmp(name, "__pycache__");
}

static int add_tree(struct watch_watcher *w, const char *path, int depth, struct err *e)
{
	DIR *d = opendir(path);
	struct dirent *de;
	int bad = d ? add_place(w, path, 1, e) : 0;

	if (!d)
		return errno == ENOENT || errno == ENOTDIR || errno == EACCES
			       ? 0
			       : err_sys(e, "watch '%.80s'", path);
	while (!bad && depth < DEPTH_MAX && (de = readdir(d)) != NULL) {
		auto_buf struct buf below = { 0 };

		if (is_theirs(de->d_name) || (de->d_type != DT_DIR && de->d_type != DT_UNKNOWN))
			continue;
		buf_printf(&below, "%s/%s", path, de->d_name);
		bad = add_tree(w, buf_str(&below), depth + 1, e);
	}
	closedir(d);
	return bad;
}

/* ---- changes ---- */

static int watch_counts(const struct watch_watcher *w, const struct box_path *p, const char *name)
{
	if (w->what->ignore && !strcmp(name_of(w->what->ignore), name))
		return 0;
	if (p->all)
		return !is_theirs(name);
	for (const char *const *f = w->what->files; *f; f++)
		if (!strcmp(name_of(*f), name))
			return 1;
	return 0;
}

static int watch_heed(struct watch_watcher *w, const struct inotify_event *ev)
{
	struct err ignored;

	for (unsigned i = 0; i < w->nplaces && ev->len; i++) {
		const struct box_path *p = &w->places[i];

		if (p->wd != ev->wd || !watch_counts(w, p, ev->name))
			continue;
		if (p->all && (ev->mask & IN_ISDIR) && (ev->mask & (IN_CREATE | IN_MOVED_TO))) {
			auto_buf struct buf below = { 0 };

			buf_printf(&below, "%s/%s", p->path, ev->name);
			(void)!add_tree(w, buf_str(&below), 1, &ignored); /* one more or less */
		} else if ((ev->mask & CHANGES) == IN_CREATE) {
			continue; /* an event for the end of writing follows */
		}
		snprintf(w->changed, sizeof(w->changed), "%s", ev->name);
		return 1;
	}
	return !!(ev->mask & IN_Q_OVERFLOW);
}

/* 1: something changed. */
static int read_changes(struct watch_watcher *w)
{
	char bytes[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(w->inotify, bytes, sizeof(bytes));
	int some = 0;

	for (const char *at = bytes; n > 0 && at < bytes + n;) {
		const struct inotify_event *ev = (const struct inotify_event *)at;

		some |= watch_heed(w, ev);
		at += sizeof(*ev) + ev->len;
	}
	return some;
}

/* Waits: 1 a change, 2 the process has ended, 0 the time has passed, or it must stop. child may
 * be -1. */
static int wait_for(struct watch_watcher *w, int child, int ms)
{
	for (;;) {
		struct pollfd p[3] = { { .fd = w->inotify, .events = POLLIN },
				       { .fd = w->signals, .events = POLLIN },
				       { .fd = child, .events = POLLIN } };
		struct signalfd_siginfo s;
		int n = poll(p, 3, ms);

		if (n == 0)
			return 0;
		if (p[1].revents && read(w->signals, &s, sizeof(s)) == sizeof(s)) {
			w->stop = (int)s.ssi_signo;
			return 0;
		}
		if (p[2].revents)
			return 2;
		if (p[0].revents && read_changes(w))
			return 1;
	}
}

/* ---- runs ---- */

static int status_of(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* With kill on close the box ends with the process, for any reason. */
static int end_child(struct watch_watcher *w, pid_t pid, int fd, int signo)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)w;
	kill(pid, signo);
	if (poll(&p, 1, GRACE_MS) == 0)
		kill(pid, SIGKILL);
	return status_of(pid);
}

static pid_t watch_start(struct watch_watcher *w, const sigset_t *before, int (*once)(void *),
			 void *ctx)
{
	pid_t pid = fork();

	if (pid == 0) {
		close(w->inotify);
		close(w->signals);
		sigprocmask(SIG_SETMASK, before, NULL);
		exit(once(ctx));
	}
	return pid;
}

/* Runs until the process has ended, or a file changed (*out_changed), or it must stop. */
static int run_once(struct watch_watcher *w, const sigset_t *before, int (*once)(void *), void *ctx,
		    int *out_changed, struct err *e)
{
	pid_t pid = watch_start(w, before, once, ctx);
	auto_fd int fd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	int what;

	if (pid < 0 || fd < 0)
		return err_sys(e, "start another process");
	what = wait_for(w, fd, -1);
	*out_changed = what == 1;
	if (what == 2)
		return status_of(pid);
	return end_child(w, pid, fd, w->stop ? w->stop : SIGTERM);
}

static void watch_settle(struct watch_watcher *w)
{
	while (!w->stop && wait_for(w, -1, QUIET_MS) == 1)
		;
}

static int again_and_again(struct watch_watcher *w, const sigset_t *before, int (*once)(void *),
			   void *ctx, int quiet, struct err *e)
{
	int status = 0;

	for (;;) {
		int changed = 0;

		status = run_once(w, before, once, ctx, &changed, e);
		if (status < 0 || w->stop)
			return status;
		if (!changed) {
			if (!quiet)
				fprintf(stderr, "atoll: waiting for changes, Ctrl-C ends\n");
			changed = wait_for(w, -1, -1);
		}
		watch_settle(w);
		if (w->stop)
			return status;
		if (!quiet)
			fprintf(stderr, "\natoll: ---- '%s' changed, running again ----\n",
				w->changed);
	}
}

static int add_all(struct watch_watcher *w, struct err *e)
{
	for (const char *const *f = w->what->files; *f; f++)
		if (add_file(w, *f, e) < 0)
			return -1;
	return w->what->folder ? add_tree(w, w->what->folder, 0, e) : 0;
}

int watch_loop(const struct watch_files *what, int (*once)(void *ctx), void *ctx, int quiet,
	       struct err *e)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct watch_watcher w = { .what = what,
				   .inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
	sigset_t set, before;
	int status;

	sigemptyset(&set);
	for (unsigned i = 0; i < ARRAY_LEN(ends); i++)
		sigaddset(&set, ends[i]);
	sigprocmask(SIG_BLOCK, &set, &before);
	w.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w.inotify < 0 || w.signals < 0)
		status = err_sys(e, "inotify");
	else if (add_all(&w, e) < 0)
		status = -1;
	else
		status = again_and_again(&w, &before, once, ctx, quiet, e);
	own_close_fd(&w.inotify);
	own_close_fd(&w.signals);
	sigprocmask(SIG_SETMASK, &before, NULL);
	for (unsigned i = 0; i < w.nplaces; i++)
		free(w.places[i].path);
	free(w.places);
	return status;
}
