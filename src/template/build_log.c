/* build_log.c - the log of a build: one line of JSON per entry, in <state>/builds/ID.log; and the
 * archives that clients upload, in <state>/builds/uploads. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "record/changes.h"
#include "record/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_NAME = STORE_BUILD_ID + 8 };

static const char *build_log_name(const char *id, char out[LOG_NAME])
{
	snprintf(out, LOG_NAME, "%.36s.log", id);
	return out;
}

/* ---- folders ---- */

static int build_folder(int in, const char *path, int *out, struct err *e)
{
	if (mkdirat(in, path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "make the folder %s", path);
	*out = openat(in, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *out < 0 ? err_sys(e, "open the folder %s", path) : 0;
}

int build_folders(struct builds *b, struct err *e)
{
	auto_fd int state = open(b->conf.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (state < 0)
		return err_sys(e, "open %.150s", b->conf.state);
	if (build_folder(state, "builds", &b->folder, e) < 0)
		return -1;
	return build_folder(b->folder, "uploads", &b->uploads, e);
}

void build_log_remove(struct builds *b, const char *id)
{
	char name[LOG_NAME];

	unlinkat(b->folder, build_log_name(id, name), 0);
}

static void build_sweep_log(struct builds *b, const char *name)
{
	char id[STORE_BUILD_ID + 1];
	struct store_build row = { 0 };
	struct err e;

	if (strlen(name) != STORE_BUILD_ID + 4 || strcmp(name + STORE_BUILD_ID, ".log") != 0)
		return;
	snprintf(id, sizeof(id), "%.36s", name);
	if (store_build_get(b->fleet->store, id, &row, &e) < 0 && e.kind == ERR_NOT_FOUND)
		unlinkat(b->folder, name, 0);
	store_build_fini(&row);
}

static void build_sweep_upload(struct builds *b, const char *name)
{
	struct err e;

	if (store_upload_has_file(b->fleet->store, name, &e) == 0)
		unlinkat(b->uploads, name, 0);
}

static void build_sweep_folder(struct builds *b, int folder,
			       void (*each)(struct builds *b, const char *name))
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *at;

	if (!d) {
		own_close_fd(&fd);
		return;
	}
	while ((at = readdir(d)))
		if (at->d_name[0] != '.')
			each(b, at->d_name);
	closedir(d);
}

void build_sweep_files(struct builds *b)
{
	build_sweep_folder(b, b->folder, build_sweep_log);
	build_sweep_folder(b, b->uploads, build_sweep_upload);
}

/* ---- writing ---- */

int build_log_open(struct build *b, struct err *e)
{
	char name[LOG_NAME];
	struct stat st;

	b->log = openat(b->all->folder, build_log_name(b->row.id, name),
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (b->log < 0 || fstat(b->log, &st) < 0)
		return err_sys(e, "open the log of build %s", b->row.id);
	b->log_bytes = (uint64_t)st.st_size;
	return 0;
}

static void build_log_add(struct build *b, const char *level, const char *message)
{
	json_t *doc;
	char *line;
	size_t n;

	if (b->log < 0 || b->log_bytes > BUILD_LOG_BYTES)
		return;
	doc = json_pack("{s:o, s:s, s:o, s:i}", "timestamp", json_time((uint64_t)fleet_now_ns()),
			"level", level, "message", json_text(message), "step", (int)b->number);
	line = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!line)
		abort();
	n = strlen(line);
	line[n] = '\n'; /* in place of the NUL: one write, so that a reader sees whole lines */
	if (write(b->log, line, n + 1) == (ssize_t)n + 1) /* a full disk must not end the build */
		b->log_bytes += n + 1;
	free(line);
}

void build_log(struct build *b, const char *level, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	int was_full = b->log_bytes > BUILD_LOG_BYTES;
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	build_log_add(b, level, buf_str(&text));
	if (!was_full && b->log_bytes > BUILD_LOG_BYTES) {
		b->log_bytes = BUILD_LOG_BYTES;
		build_log_add(b, "warn", "the log is full: further output is not stored");
		b->log_bytes = BUILD_LOG_BYTES + 1;
	}
	build_notify(b);
}

static void build_log_line(struct build *b, unsigned stream)
{
	build_log(b, stream ? "warn" : "info", "%s", buf_str(&b->line[stream]));
	buf_cut(&b->line[stream], 0);
}

void build_log_flush(struct build *b)
{
	for (unsigned i = 0; i < ARRAY_LEN(b->line); i++)
		if (b->line[i].len)
			build_log_line(b, i);
}

void build_log_output(struct build *b, unsigned stream, const char *bytes, size_t n)
{
	stream = stream ? 1 : 0;
	buf_add(&b->said, bytes, n);
	if (b->said.len > 2 * BUILD_SAID) {
		memmove(b->said.p, b->said.p + b->said.len - BUILD_SAID, BUILD_SAID);
		buf_cut(&b->said, BUILD_SAID);
	}
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n')
			build_log_line(b, stream);
		else if (bytes[i] != '\r' && bytes[i])
			buf_putc(&b->line[stream], bytes[i]);
		if (b->line[stream].len >= BUILD_LINE)
			build_log_line(b, stream);
	}
}

/* ---- reading ---- */

int build_log_read(struct builds *b, const char *id, uint64_t from, size_t most, struct buf *out,
		   uint64_t *out_next, struct err *e)
{
	char name[LOG_NAME];
	auto_fd int fd = openat(b->folder, build_log_name(id, name), O_RDONLY | O_CLOEXEC);
	size_t before = out->len, whole = 0;
	ssize_t n;

	*out_next = from;
	if (fd < 0)
		return errno == ENOENT ? 0 : err_sys(e, "open the log of build %s", id);
	n = pread(fd, buf_space(out, most), most, (off_t)from);
	if (n < 0)
		return err_sys(e, "read the log of build %s", id);
	buf_grew(out, (size_t)n);
	for (size_t i = 0; i < (size_t)n; i++)
		if (out->p[before + i] == '\n')
			whole = i + 1;
	buf_cut(out, before + whole);
	*out_next = from + whole;
	return 0;
}

/* ---- waiters ---- */

int build_await(struct builds *b, const char *id, struct build_wait *w)
{
	struct build *x = build_lookup(b, id);

	w->build = x;
	if (!x)
		return 0;
	w->next = x->waiters;
	x->waiters = w;
	return 1;
}

void build_wait_cancel(struct build_wait *w)
{
	struct build_wait **at = w->build ? &w->build->waiters : NULL;

	while (at && *at && *at != w)
		at = &(*at)->next;
	if (at && *at)
		*at = w->next;
	w->build = NULL;
}

void build_notify(struct build *b)
{
	for (struct build_wait *w = b->waiters, *next; w; w = next) {
		next = w->next;
		w->news(w);
	}
}

/* ---- uploads ---- */

int build_upload_open(struct builds *b, struct build_upload *out, struct err *e)
{
	out->fd = -1;
	if (id_new(out->file, e) < 0)
		return -1;
	out->fd = openat(b->uploads, out->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return out->fd < 0 ? err_sys(e, "make the file of an upload") : 0;
}

void build_upload_drop(struct builds *b, struct build_upload *u)
{
	own_close_fd(&u->fd);
	unlinkat(b->uploads, u->file, 0);
}

static void build_uploads_trim(struct builds *b, const char *keep)
{
	struct store_upload oldest;
	uint64_t bytes;
	struct err e;

	while (store_upload_bytes(b->fleet->store, "", &bytes, &e) == 0 &&
	       bytes > b->conf.cache_bytes && b->conf.cache_bytes &&
	       store_upload_oldest(b->fleet->store, &oldest, &e) == 0 &&
	       strcmp(oldest.file, keep) != 0) {
		unlinkat(b->uploads, oldest.file, 0);
		if (store_upload_remove(b->fleet->store, oldest.file, &e) < 0)
			return;
	}
}

int build_upload_finish(struct builds *b, struct build_upload *u, const char *team,
			const char *hash, struct err *e)
{
	struct store_upload row = { .used_ns = fleet_now_ns() }, old;
	struct stat st;
	int had = store_upload_get(b->fleet->store, team, hash, &old, e) == 0;

	snprintf(row.team, sizeof(row.team), "%s", team);
	snprintf(row.hash, sizeof(row.hash), "%s", hash);
	snprintf(row.file, sizeof(row.file), "%s", u->file);
	if (fstat(u->fd, &st) < 0) {
		err_sys(e, "read the size of an upload");
		build_upload_drop(b, u);
		return -1;
	}
	row.bytes = (uint64_t)st.st_size;
	own_close_fd(&u->fd);
	if (store_upload_put(b->fleet->store, &row, e) < 0) {
		build_upload_drop(b, u);
		return -1;
	}
	if (had)
		unlinkat(b->uploads, old.file, 0);
	build_uploads_trim(b, u->file);
	return 0;
}

int build_upload_exists(struct builds *b, const char *team, const char *hash)
{
	struct store_upload row;
	struct err e;

	return store_upload_get(b->fleet->store, team, hash, &row, &e) == 0 &&
	       faccessat(b->uploads, row.file, R_OK, 0) == 0;
}
