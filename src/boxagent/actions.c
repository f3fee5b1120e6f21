/* actions.c - see actions.h.
 *
 * Paths are opened by openat2() below the workspace: these tools do not follow a link that leads
 * outside. A command may access everything that the user of the box may; the isolation is that of
 * the box. */
#include "boxagent/actions.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "boxagent/short_text.h"
#include "boxagent/shell.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { LIST_ENTRIES = 1000, LIST_DEPTH = 1 };

int actions_init(struct actions *h, const char *root, struct err *e)
{
	h->root = root;
	h->workspace = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return h->workspace < 0 ? err_sys(e, "open %s", root) : 0;
}

void actions_fini(struct actions *h)
{
	if (h->workspace >= 0)
		close(h->workspace);
	h->workspace = -1;
}

/* ---- results for the model ---- */

static json_t *actions_said(int ok, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static json_t *actions_said(int ok, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 }, clean = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	utf8_scrub(&clean, buf_str(&text), text.len);
	return json_pack("{s:b, s:s}", "ok", ok, "text", buf_str(&clean));
}

static json_t *actions_failed(const char *path)
{
	const char *why =
		errno == EXDEV || errno == ELOOP
			? "is outside of the workspace; use a path below it, without links "
			  "that lead out"
			: strerror(errno);

	return actions_said(0, "error: %.200s: %s", path, why);
}

static const char *text_of(const struct action *r, const char *name, const char *otherwise)
{
	const char *v = json_string_value(json_object_get(r->args, name));

	return v ? v : otherwise;
}

static int64_t number_of(const struct action *r, const char *name, int64_t otherwise)
{
	const json_t *v = json_object_get(r->args, name);

	return v ? json_integer_value(v) : otherwise;
}

/* ---- paths ---- */

/* The path relative to the workspace; NULL: outside. */
static const char *actions_below(const struct actions *h, const char *path)
{
	size_t n = strlen(h->root);

	if (*path != '/')
		return *path ? path : ".";
	if (strncmp(path, h->root, n) != 0 || (path[n] && path[n] != '/')) {
		errno = EXDEV;
		return NULL;
	}
	for (path += n; *path == '/'; path++)
		;
	return *path ? path : ".";
}

static int open_below(const struct actions *h, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC,
				.mode = mode,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };

	return path ? (int)syscall(SYS_openat2, h->workspace, path, &how, sizeof(how)) : -1;
}

/* Creates the parent folders of a file. */
static int make_folders(const struct actions *h, const char *path)
{
	char part[PATH_MAX];

	if (strlen(path) >= sizeof(part)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		auto_fd int there = -1, above = -1;
		char *name;

		snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		there = open_below(h, part, O_PATH | O_DIRECTORY, 0);
		if (there >= 0)
			continue;
		if (errno != ENOENT)
			return -1;
		name = strrchr(part, '/');
		if (name)
			*name++ = 0;
		above = open_below(h, name ? part : ".", O_PATH | O_DIRECTORY, 0);
		if (above < 0 || (mkdirat(above, name ? name : part, 0755) < 0 && errno != EEXIST))
			return -1;
	}
	return 0;
}

/* ---- files ---- */

/* Reads a complete regular file; -1 with errno, EFBIG: too long. */
static int actions_slurp(const struct actions *h, const char *path, struct buf *out)
{
	/* Non-blocking: it may be a FIFO without a writer. */
	auto_fd int fd = open_below(h, actions_below(h, path), O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	ssize_t n = 1;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		return -1;
	}
	while (n > 0 && out->len <= ACTIONS_FILE) {
		n = read(fd, buf_space(out, 65536), 65536);
		if (n > 0)
			buf_grew(out, (size_t)n);
	}
	if (out->len > ACTIONS_FILE)
		errno = EFBIG;
	return n < 0 || out->len > ACTIONS_FILE ? -1 : 0;
}

static int actions_spill(const struct actions *h, const char *path, const char *bytes, size_t n)
{
	const char *rest = actions_below(h, path);
	auto_fd int fd = -1;

	if (!rest || make_folders(h, rest) < 0)
		return -1;
	fd = open_below(h, rest, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK, 0644);
	if (fd < 0)
		return -1;
	while (n) {
		ssize_t some = write(fd, bytes, n);

		if (some < 0)
			return -1;
		bytes += some;
		n -= (size_t)some;
	}
	return 0;
}

/* Reduces the text to these lines; counts all. */
static unsigned lines_of(const struct buf *text, int64_t first, int64_t last, const char **from,
			 size_t *n)
{
	const char *p = buf_str(text), *end = p + text->len, *line = p;
	unsigned count = 0;

	*from = end;
	*n = 0;
	for (; line < end; count++) {
		const char *next = memchr(line, '\n', (size_t)(end - line));

		next = next ? next + 1 : end;
		if (count + 1 >= first && count + 1 <= last) {
			*from = *n ? *from : line;
			*n = (size_t)(next - *from);
		}
		line = next;
	}
	return count;
}

static json_t *do_read(struct actions *h, const struct action *r)
{
	const char *path = text_of(r, "path", ""), *from;
	struct head_tail c = { .half = h->result_bytes / 2 };
	auto_buf struct buf all = { 0 }, text = { 0 };
	unsigned lines;
	size_t n;

	if (actions_slurp(h, path, &all) < 0)
		return actions_failed(path);
	if (memchr(buf_str(&all), 0, all.len))
		return actions_said(0, "error: %.200s: %zu bytes that are not text", path, all.len);
	lines = lines_of(&all, number_of(r, "start_line", 1), number_of(r, "end_line", INT64_MAX),
			 &from, &n);
	head_tail_add(&c, from, n);
	short_text_put(&c, &text);
	head_tail_fini(&c);
	return json_pack("{s:b, s:s, s:i, s:I}", "ok", 1, "text", buf_str(&text), "lines",
			 (int)lines, "bytes", (json_int_t)all.len);
}

static json_t *do_write(struct actions *h, const struct action *r)
{
	const json_t *content = json_object_get(r->args, "content");
	const char *path = text_of(r, "path", "");

	if (actions_spill(h, path, json_string_value(content), json_string_length(content)) < 0)
		return actions_failed(path);
	return actions_said(1, "wrote %zu bytes to %.200s", json_string_length(content), path);
}

/* Replaces old; returns the number of occurrences. */
static unsigned actions_replace(const struct buf *in, const char *old, const char *new,
				struct buf *out)
{
	const char *p = buf_str(in), *end = p + in->len, *hit;
	size_t n = strlen(old);
	unsigned count = 0;

	while ((hit = memmem(p, (size_t)(end - p), old, n))) {
		buf_add(out, p, (size_t)(hit - p));
		buf_puts(out, new);
		p = hit + n;
		count++;
	}
	buf_add(out, p, (size_t)(end - p));
	return count;
}

static json_t *do_edit(struct actions *h, const struct action *r)
{
	const char *path = text_of(r, "path", ""), *old = text_of(r, "old_str", "");
	auto_buf struct buf before = { 0 }, after = { 0 };
	unsigned n;

	if (!*old)
		return actions_said(0, "error: old_str is empty");
	if (actions_slurp(h, path, &before) < 0)
		return actions_failed(path);
	n = actions_replace(&before, old, text_of(r, "new_str", ""), &after);
	if (!n)
		return actions_said(0, "error: %.200s: old_str is not in the file; read it again",
				    path);
	if (n > 1 && !json_is_true(json_object_get(r->args, "replace_all")))
		return actions_said(
			0,
			"error: %.200s: old_str is there %u times; give more of what is around it, "
			"or replace_all",
			path, n);
	if (actions_spill(h, path, buf_str(&after), after.len) < 0)
		return actions_failed(path);
	return actions_said(1, "replaced in %u place%s of %.200s", n, n == 1 ? "" : "s", path);
}

/* ---- folders ---- */

struct actions_listing {
	struct buf *out;
	int64_t left;
	int more;
};

static void list_folder(int take_dir, const char *prefix, int64_t depth, struct actions_listing *l);

static void list_one(int dir, const struct dirent *d, const char *prefix, int64_t depth,
		     struct actions_listing *l)
{
	char path[PATH_MAX];
	int folder = d->d_type == DT_DIR;

	if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
		return;
	if (!l->left) {
		l->more = 1;
		return;
	}
	l->left--;
	if (snprintf(path, sizeof(path), "%s%s%s", prefix, d->d_name, folder ? "/" : "") >=
	    (int)sizeof(path))
		return;
	utf8_scrub(l->out, path, strlen(path));
	buf_putc(l->out, '\n');
	if (folder && depth > 1)
		list_folder(openat(dir, d->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
			    path, depth - 1, l);
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct dirent *const *)a)->d_name,
		      (*(const struct dirent *const *)b)->d_name);
}

static void list_folder(int take_dir, const char *prefix, int64_t depth, struct actions_listing *l)
{
	DIR *dir = take_dir < 0 ? NULL : fdopendir(take_dir);
	struct dirent **all = NULL, *d;
	size_t n = 0, room = 0;

	if (!dir)
		return;
	while (n < 100000 && (d = readdir(dir))) {
		if (n == room)
			all = reallocarray(all, room = room ? 2 * room : 64, sizeof(*all));
		if (!all || !(all[n] = malloc(d->d_reclen)))
			abort();
		memcpy(all[n++], d, d->d_reclen);
	}
	if (n)
		qsort(all, n, sizeof(*all), by_name);
	for (size_t i = 0; i < n; i++) {
		list_one(take_dir, all[i], prefix, depth, l);
		free(all[i]);
	}
	free(all);
	closedir(dir);
}

static json_t *do_list(struct actions *h, const struct action *r)
{
	const char *path = text_of(r, "path", ".");
	auto_buf struct buf all = { 0 }, text = { 0 };
	struct actions_listing l = { .out = &all, .left = number_of(r, "limit", LIST_ENTRIES) };
	int dir = open_below(h, actions_below(h, path), O_RDONLY | O_DIRECTORY, 0);
	struct head_tail c = { .half = h->result_bytes / 2 };

	if (dir < 0)
		return actions_failed(path);
	list_folder(dir, "", number_of(r, "depth", LIST_DEPTH), &l);
	if (l.more)
		buf_puts(&all, "[there are more]\n");
	head_tail_add(&c, buf_str(&all), all.len);
	short_text_put(&c, &text);
	head_tail_fini(&c);
	return json_pack("{s:b, s:s}", "ok", 1, "text", text.len ? buf_str(&text) : "[empty]\n");
}

/* ---- commands ---- */

static json_t *actions_ended(struct actions *h, const struct head_tail *c,
			     const struct shell_end *end)
{
	int code = WIFEXITED(end->status) ? WEXITSTATUS(end->status) : 128 + WTERMSIG(end->status);
	auto_buf struct buf text = { 0 };

	short_text_put(c, &text);
	if (text.len && text.p[text.len - 1] != '\n')
		buf_putc(&text, '\n');
	h->timeouts = end->timed_out ? h->timeouts + 1 : 0;
	if (end->timed_out)
		buf_printf(&text, "[ended: it took longer than %.1f s]", (double)end->ms / 1e3);
	else
		buf_printf(&text, "[exit %d, %.1f s]", code, (double)end->ms / 1e3);
	return json_pack("{s:b, s:s, s:i, s:b, s:I, s:I}", "ok", !end->timed_out && code == 0,
			 "text", buf_str(&text), "exit_code", code, "timed_out", end->timed_out,
			 "bytes", (json_int_t)c->total, "ms", (json_int_t)end->ms);
}

static json_t *do_run(struct actions *h, const struct action *r)
{
	const json_t *command = json_object_get(r->args, "command");
	const char *cwd = text_of(r, "cwd", ".");
	uint64_t ms = (uint64_t)number_of(r, "timeout_ms", (int64_t)h->command_ms);
	auto_fd int dir = -1;
	struct head_tail c = { .half = h->result_bytes / 2 };
	struct shell_end end;
	struct err e;
	json_t *result;

	if (json_string_length(command) > SHELL_COMMAND)
		return actions_said(
			0,
			"error: the command has %zu bytes; the maximum is %d: write a file and run that",
			json_string_length(command), SHELL_COMMAND);
	dir = open_below(h, actions_below(h, cwd), O_RDONLY | O_DIRECTORY, 0);
	if (dir < 0)
		return actions_failed(cwd);
	if (shell_run(dir, json_string_value(command), ms, &c, &end, &e) < 0)
		result = actions_said(0, "error: %s", e.msg);
	else
		result = actions_ended(h, &c, &end);
	head_tail_fini(&c);
	return result;
}

json_t *actions_run(struct actions *h, const struct action *r)
{
	static json_t *(*const row[AGENT_TOOL_COUNT])(struct actions * h,
						      const struct action *r) = {
		[AGENT_TOOL_READ] = do_read, [AGENT_TOOL_WRITE] = do_write,
		[AGENT_TOOL_LIST] = do_list, [AGENT_TOOL_EDIT] = do_edit,
		[AGENT_TOOL_RUN] = do_run,
	};

	return row[r->kind](h, r);
}
