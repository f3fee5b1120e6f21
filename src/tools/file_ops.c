/* file_ops.c - see file_ops.h; and the tools that need one file: read, write, edit. */
#include "tools/file_ops.h"
#include "api/event_stream.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POURED = 1 << 20 }; /* larger files are not sent by frames */

/* ---- the worker ---- */

static struct file_ops *content_of(struct file_client *k)
{
	return loop_owner(k, struct file_ops, file_req.file_client);
}

static void ops_ready(struct file_client *k)
{
	struct file_ops *x = content_of(k);

	x->next(x);
}

static void ops_entry(struct file_client *k, const struct wire_entry *e, const char *name, size_t n)
{
	struct file_ops *x = content_of(k);

	(void)name;
	(void)n;
	x->about = *e;
	if (x->looking) {
		x->looking = 0;
		x->folder = S_ISDIR(e->mode);
		x->next(x);
		return;
	}
	if (!x->reading)
		return;
	if (S_ISREG(e->mode) && e->size > CONTENT_MAX)
		file_request_error(&x->file_req, 413, "too_large",
				   "the file is too large for this tool", x->file_req.path,
				   "run_command with head, tail or sed shows parts of it");
}

static void ops_data(struct file_client *k, const char *bytes, size_t n)
{
	struct file_ops *x = content_of(k);

	if (!x->reading)
		return;
	if (n == 0) {
		x->reading = 0;
		x->next(x);
	} else if (x->bytes.len + n > CONTENT_MAX) { /* it grew, or has no size */
		file_request_error(&x->file_req, 413, "too_large",
				   "the file is too large for this tool", x->file_req.path, NULL);
	} else {
		buf_add(&x->bytes, bytes, n);
	}
}

static void ops_done(struct file_client *k, uint16_t flags)
{
	struct file_ops *x = content_of(k);

	(void)flags;
	x->next(x);
}

static void stop_pouring(struct file_ops *x)
{
	if (!x->pouring)
		return;
	x->pouring = 0;
	watch_stop(&x->room);
	own_close_fd(&x->pipe);
}

static void ops_failed(struct file_client *k, const struct err *e)
{
	struct file_ops *x = content_of(k);
	int was_reading = x->reading || x->looking;

	stop_pouring(x);
	x->reading = x->looking = 0;
	if (was_reading && x->may_miss && (e->sys == ENOENT || e->sys == EISDIR)) {
		x->there = 0;
		x->folder = e->sys == EISDIR;
		x->next(x);
	} else if (e->sys == ESTALE) {
		file_request_error(&x->file_req, 412, "changed", "the file has changed meanwhile",
				   x->file_req.path, "read it again");
	} else {
		file_request_fail(&x->file_req, e);
	}
}

static void ops_drop(struct tool_job *j)
{
	struct file_ops *x = j->state;

	stop_pouring(x);
	buf_fini(&x->bytes);
}

int file_ops_open(struct file_ops *x, struct tool_job *j, void (*next)(struct file_ops *x))
{
	static const struct file_client_events on = { .ready = ops_ready,
						      .entry = ops_entry,
						      .data = ops_data,
						      .done = ops_done,
						      .failed = ops_failed };

	x->job = j;
	x->next = next;
	j->state = x;
	j->drop = ops_drop;
	return file_request_open(&x->file_req, j->call, &on);
}

void file_ops_get(struct file_ops *x, const char *path, void (*next)(struct file_ops *x))
{
	struct wire_get get = { .from = 0 };

	x->file_req.path = path;
	x->next = next;
	x->reading = x->there = 1;
	x->folder = 0;
	buf_cut(&x->bytes, 0);
	file_client_ask(&x->file_req.file_client, WIRE_GET, &get, sizeof(get), path, strlen(path));
}

void file_ops_stat(struct file_ops *x, const char *path, void (*next)(struct file_ops *x))
{
	x->file_req.path = path;
	x->next = next;
	x->looking = x->there = 1;
	x->folder = 0;
	file_request_look(&x->file_req, path);
}

void file_ops_put(struct file_ops *x, const char *path, const void *bytes, size_t n,
		  enum file_ops_mode how, void (*next)(struct file_ops *x))
{
	struct wire_put put = { .mode = 0 };

	if (how == CONTENT_NEW)
		put.flags = WIRE_PUT_NEW;
	if (how == CONTENT_SAME) {
		put.flags = WIRE_PUT_IF;
		put.if_mtime_ns = x->about.mtime_ns;
		put.if_size = x->about.size;
	}
	x->file_req.path = path;
	x->next = next;
	file_client_put(&x->file_req.file_client, &put, path, bytes, n);
}

/* Writes as much as the pipe accepts. A worker that has closed it will send the reason. */
static void ops_pour(struct watch *w, unsigned what)
{
	struct file_ops *x = loop_owner(w, struct file_ops, room);

	(void)what;
	while (x->nrest) {
		ssize_t n = write(x->pipe, x->rest, x->nrest);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			watch_want(&x->room, LOOP_WRITE);
			file_request_stalls(&x->file_req, 1);
			return;
		}
		x->rest += n < 0 ? x->nrest : (size_t)n;
		x->nrest -= n < 0 ? x->nrest : (size_t)n;
	}
	stop_pouring(x);
	file_request_stalls(&x->file_req, 0);
	if (x->file_req.open)
		file_client_data(&x->file_req.file_client, NULL, 0);
}

void file_ops_stream(struct file_ops *x, const char *path, const char *bytes, size_t n,
		     void (*next)(struct file_ops *x))
{
	struct wire_put put = { .mode = 0 };
	struct err e;

	if (n <= POURED) {
		file_ops_put(x, path, bytes, n, CONTENT_ANY, next);
		return;
	}
	x->file_req.path = path;
	x->next = next;
	if (file_client_ask_pipe(&x->file_req.file_client, WIRE_PUT, &put, sizeof(put), path,
				 &x->pipe, &e) < 0) {
		file_request_fail(&x->file_req, &e);
		return;
	}
	x->pouring = 1;
	x->rest = bytes;
	x->nrest = n;
	(void)!fcntl(x->pipe, F_SETFL, fcntl(x->pipe, F_GETFL) | O_NONBLOCK);
	watch_init(&x->room, x->job->call->api->loop, x->pipe, ops_pour);
	ops_pour(&x->room, LOOP_WRITE);
}

void file_ops_remove(struct file_ops *x, const char *path, void (*next)(struct file_ops *x))
{
	x->file_req.path = path;
	x->next = next;
	file_request_ask(&x->file_req, WIRE_REMOVE, WIRE_REMOVE_ONE, path, strlen(path));
}

void file_ops_close(struct file_ops *x)
{
	stop_pouring(x);
	file_request_close(&x->file_req);
}

int file_ops_is_text(const struct buf *b)
{
	if (!b->len)
		return 1;
	return !memchr(b->p, 0, b->len) && utf8_valid(b->p, b->len);
}

/* A tool for the file of its argument `path`. NULL: rejected, and the error was sent. */
static struct file_ops *content_new(struct tool_job *j, void (*next)(struct file_ops *x))
{
	struct file_ops *x = call_alloc(j->call, sizeof(*x));

	*x = (struct file_ops){ .file_req.path =
					file_request_path(j->call, tool_text(j, "path", "")) };
	return x->file_req.path && file_ops_open(x, j, next) ? x : NULL;
}

/* ---- read_file ---- */

enum { READ_MAX = 128 * 1024 };

/* From the first byte of line `first` to the end of line `last`, READ_MAX at most. */
static size_t lines_of(const struct buf *b, int64_t first, int64_t last, size_t *from,
		       int64_t *to_line)
{
	const char *p = b->p, *end = p + b->len, *begin;
	int64_t line = 1;

	for (; p < end && line < first; line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));

		p = nl ? nl + 1 : end;
	}
	begin = p;
	for (; p < end && line <= last; line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)), *after = nl ? nl + 1 : end;

		if ((size_t)(after - begin) > READ_MAX && p > begin)
			break;
		p = after;
	}
	*from = (size_t)(begin - b->p);
	*to_line = line - 1;
	return (size_t)(p - begin);
}

static int64_t count_lines(const struct buf *b)
{
	int64_t n = b->len && b->p[b->len - 1] != '\n';

	for (size_t i = 0; i < b->len; i++)
		n += b->p[i] == '\n';
	return n;
}

static void has_read(struct file_ops *x)
{
	struct tool_job *j = x->job;
	int64_t first = tool_int(j, "start_line", 1), last = tool_int(j, "end_line", INT64_MAX), to,
		all = count_lines(&x->bytes);
	auto_buf struct buf text = { 0 };
	size_t from, n;
	json_t *data;

	file_ops_close(x);
	data = json_pack("{s:s, s:I, s:I}", "path", x->file_req.path, "size",
			 (json_int_t)x->bytes.len, "lines", (json_int_t)all);
	if (!data)
		data = json_object();
	if (!file_ops_is_text(&x->bytes)) {
		json_object_set_new(data, "binary", json_true());
		tool_say(j, data, "[%zu bytes that are not text]", x->bytes.len);
		return;
	}
	n = x->bytes.len ? lines_of(&x->bytes, first, last, &from, &to) : 0;
	if (n)
		buf_add(&text, x->bytes.p + from, n);
	json_object_set_new(data, "content", tool_string(j, buf_str(&text), n));
	json_object_set_new(data, "truncated", json_boolean(n && to < last && to < all));
	if (n && to < last && to < all)
		buf_printf(&text, "[... %lld of %lld lines; continue with start_line=%lld ...]\n",
			   (long long)to, (long long)all, (long long)to + 1);
	else if (!n && x->bytes.len)
		buf_printf(&text, "[the file has %lld lines]", (long long)all);
	tool_done(j, data, buf_str(&text), text.len);
}

static void to_read(struct file_ops *x)
{
	file_ops_get(x, x->file_req.path, has_read);
}

void tool_read(struct tool_job *j)
{
	int64_t first = tool_int(j, "start_line", 1), last = tool_int(j, "end_line", INT64_MAX);

	if (last < first)
		tool_fail(j, "invalid", "end_line: is before start_line", NULL, NULL);
	else
		content_new(j, to_read);
}

/* ---- write_file ---- */

static void has_written(struct file_ops *x)
{
	size_t n = json_string_length(json_object_get(x->job->args, "content"));

	file_ops_close(x);
	call_audit(x->job->call, "file.write", x->file_req.path, "ok");
	tool_say(x->job,
		 json_pack("{s:o, s:I}", "path",
			   tool_string(x->job, x->file_req.path, strlen(x->file_req.path)), "size",
			   (json_int_t)n),
		 "wrote %zu bytes to %s", n, x->file_req.path);
}

static void to_write(struct file_ops *x)
{
	const json_t *text = json_object_get(x->job->args, "content");

	file_ops_stream(x, x->file_req.path, json_string_value(text), json_string_length(text),
			has_written);
}

void tool_write(struct tool_job *j)
{
	content_new(j, to_write);
}

/* ---- edit_file ---- */

struct ops_edit {
	size_t at; /* of the first one */
	unsigned count;
};

static struct ops_edit ops_find(const struct buf *b, const char *old, size_t n)
{
	struct ops_edit found = { 0 };
	const char *p = b->p, *end = p + b->len;

	while (n && p < end && (p = memmem(p, (size_t)(end - p), old, n))) {
		if (!found.count++)
			found.at = (size_t)(p - b->p);
		p += n;
	}
	return found;
}

static void ops_replace(const struct buf *b, const json_t *old, const json_t *new, struct buf *out)
{
	const char *p = b->p, *end = p + b->len, *hit;
	size_t n = json_string_length(old);

	while (p < end && (hit = memmem(p, (size_t)(end - p), json_string_value(old), n))) {
		buf_add(out, p, (size_t)(hit - p));
		buf_add(out, json_string_value(new), json_string_length(new));
		p = hit + n;
	}
	buf_add(out, p, (size_t)(end - p));
}

static unsigned line_at(const struct buf *b, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += b->p[i] == '\n';
	return line;
}

static void has_edited(struct file_ops *x)
{
	struct ops_edit *d = x->user;

	file_ops_close(x);
	call_audit(x->job->call, "file.write", x->file_req.path, "ok");
	tool_say(x->job, json_pack("{s:i, s:i}", "replaced", (int)d->count, "line", (int)d->at),
		 "replaced %u in %s, the first at line %u", d->count, x->file_req.path,
		 (unsigned)d->at);
}

static void to_edit(struct file_ops *x)
{
	const json_t *old = json_object_get(x->job->args, "old_str"),
		     *new = json_object_get(x->job->args, "new_str");
	struct ops_edit *d = call_alloc(x->job->call, sizeof(*d));
	auto_buf struct buf after = { 0 };
	char why[80];

	*d = ops_find(&x->bytes, json_string_value(old), json_string_length(old));
	if (d->count == 0) {
		file_request_error(&x->file_req, 409, "no_match", "old_str is not in the file",
				   x->file_req.path, "it must match exactly, blanks and all");
		return;
	}
	if (d->count > 1 && !tool_flag(x->job, "replace_all")) {
		snprintf(why, sizeof(why), "it is there %u times", d->count);
		file_request_error(&x->file_req, 409, "no_match",
				   "old_str must be in the file exactly once", why,
				   "add lines around it, or set replace_all");
		return;
	}
	ops_replace(&x->bytes, old, new, &after);
	d->at = line_at(&x->bytes, d->at);
	x->user = d;
	file_ops_put(x, x->file_req.path, after.p, after.len, CONTENT_SAME, has_edited);
}

static void to_read_and_edit(struct file_ops *x)
{
	file_ops_get(x, x->file_req.path, to_edit);
}

void tool_edit(struct tool_job *j)
{
	if (!*tool_text(j, "old_str", ""))
		tool_fail(j, "invalid", "old_str: is empty", NULL, "write_file creates a file");
	else
		content_new(j, to_read_and_edit);
}
