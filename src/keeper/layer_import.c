/* layer_import.c - see layer_import.h.
 *
 *   LIST  ->  ENTRY ... DONE      the whole tree, by name, held here: bounded in number and bytes
 *   GET   ->  ENTRY DATA ... ""   for each plain file; some are requested in advance
 *
 * The sizes in the list are not trusted: bytes are counted as they arrive. */
#include "keeper/layer_import.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>

enum { AHEAD = 32, QUIET_S = 60, NAMES_MOST = 64 << 20 };

struct item {
	size_t name, target; /* in text; target 0: none */
	uint32_t mode;
};

struct fetch {
	int worker;
	const char *path, *place;
	struct layer_tree *tree;
	struct item *v;
	size_t n, room;
	struct buf text;
	_Alignas(8) char bytes[WIRE_MAX];
};

static struct fetch *fetch_new(void)
{
	struct fetch *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	return f;
}

static void fetch_fini(struct fetch **at)
{
	struct fetch *f = *at;

	free(f->v);
	buf_fini(&f->text);
	free(f);
}

/* Reads one frame; the end of the stream is an error here, and so is an ERROR of the worker. */
static int next_frame(struct fetch *f, const struct frame **out, struct err *e)
{
	const struct wire_error *told = (const void *)f->bytes;
	unsigned nfds = 0;
	int n = sock_recv(f->worker, f->bytes, NULL, &nfds, e);

	if (n < 0)
		return err_in(e, "file worker");
	if (n == 0)
		return err_set(e, ERR_SYS, "the box ended while its files were read");
	*out = (const struct frame *)f->bytes;
	if ((*out)->type == WIRE_ERROR)
		return err_set(e, ERR_SYS, "file worker: %.180s", told->msg);
	return n;
}

static int import_unexpected(const struct frame *got, struct err *e)
{
	return err_set(e, ERR_INVALID, "file worker: unexpected frame (type %u)", got->type);
}

/* ---- the list ---- */

/* The list has no entries below the last level, so a folder at that level is rejected. */
static int too_deep(const char *name, size_t n, uint32_t mode)
{
	unsigned depth = 1;

	for (size_t i = 0; i < n; i++)
		depth += name[i] == '/';
	return S_ISDIR(mode) && depth >= TREE_DEPTH;
}

static int keep_entry(struct fetch *f, const struct wire_entry *entry, size_t len, struct err *e)
{
	const char *tail = (const char *)(entry + 1);
	size_t n = len - sizeof(*entry), name = strnlen(tail, n);
	struct item item = { .name = f->text.len, .mode = entry->mode };

	if (f->n >= f->tree->files_most || f->text.len + n + 2 > NAMES_MOST)
		return err_set(e, ERR_LIMIT, "more than %llu files",
			       (unsigned long long)f->tree->files_most);
	if (name == 0 || memchr(tail + name + (name < n), 0, n - name - (name < n)))
		return err_set(e, ERR_INVALID, "file worker: an invalid entry");
	if (too_deep(tail, name, entry->mode))
		return err_set(e, ERR_LIMIT, "folders more than %d deep", TREE_DEPTH);
	buf_add(&f->text, tail, name);
	buf_putc(&f->text, 0);
	if (name < n) {
		item.target = f->text.len;
		buf_add(&f->text, tail + name + 1, n - name - 1);
		buf_putc(&f->text, 0);
	}
	if (f->n == f->room) {
		f->room = f->room ? f->room * 2 : 1024;
		f->v = realloc(f->v, f->room * sizeof(*f->v));
		if (!f->v)
			abort();
	}
	f->v[f->n++] = item;
	return 0;
}

static int import_list(struct fetch *f, struct err *e)
{
	struct wire_list ask = { .head = sock_head(WIRE_LIST, 1), .depth = TREE_DEPTH };
	const struct frame *got;

	if (sock_send(f->worker, &ask, sizeof(ask), f->path, strlen(f->path), NULL, 0, e) < 0)
		return -1;
	for (;;) {
		int n = next_frame(f, &got, e);

		if (n < 0)
			return -1;
		if (got->type == WIRE_DONE && got->flags)
			return err_set(e, ERR_DENIED, "some folder below %.80s cannot be read",
				       f->path);
		if (got->type == WIRE_DONE)
			return 0;
		if (got->type != WIRE_ENTRY)
			return import_unexpected(got, e);
		if (keep_entry(f, (const struct wire_entry *)got, (size_t)n, e) < 0)
			return -1;
	}
}

/* ---- the files ---- */

static int ask_file(struct fetch *f, size_t i, struct err *e)
{
	struct wire_get ask = { .head = sock_head(WIRE_GET, (uint32_t)i), .bytes = UINT64_MAX };
	char path[2 * TREE_PATH];
	int n = snprintf(path, sizeof(path), "%s/%s", f->path, f->text.p + f->v[i].name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return err_set(e, ERR_INVALID, "a path that is too long");
	return sock_send(f->worker, &ask, sizeof(ask), path, (size_t)n, NULL, 0, e);
}

/* Requests more files until enough are in progress; *next is the first entry not examined yet. */
static int ask_ahead(struct fetch *f, size_t *next, unsigned *under_way, struct err *e)
{
	for (; *next < f->n && *under_way < AHEAD; ++*next) {
		if (!S_ISREG(f->v[*next].mode))
			continue;
		if (ask_file(f, *next, e) < 0)
			return -1;
		++*under_way;
	}
	return 0;
}

static int take_file(struct fetch *f, size_t i, const char *path, struct err *e)
{
	const struct frame *got;
	auto_fd int fd = -1;
	int n = next_frame(f, &got, e);

	if (n < 0)
		return -1;
	if (got->type != WIRE_ENTRY)
		return import_unexpected(got, e);
	if (layer_tree_file(f->tree, path, f->v[i].mode & 0111, &fd, e) < 0)
		return -1;
	for (;;) {
		n = next_frame(f, &got, e);
		if (n < 0)
			return -1;
		if (got->type != WIRE_DATA || got->ref != (uint32_t)i)
			return import_unexpected(got, e);
		if ((size_t)n == sizeof(*got))
			return 0;
		if (layer_tree_bytes(f->tree, fd, got + 1, (size_t)n - sizeof(*got), e) < 0)
			return err_in(e, "%.80s", path);
	}
}

static int import_take(struct fetch *f, size_t i, struct err *e)
{
	const struct item *item = &f->v[i];
	char path[2 * TREE_PATH];

	snprintf(path, sizeof(path), "%s%s%s", f->place, *f->place ? "/" : "",
		 f->text.p + item->name);
	if (S_ISDIR(item->mode))
		return layer_tree_dir(f->tree, path, e);
	if (S_ISLNK(item->mode) && item->target)
		return layer_tree_link(f->tree, path, f->text.p + item->target, e);
	if (S_ISREG(item->mode))
		return take_file(f, i, path, e);
	return err_set(e, ERR_INVALID, "'%.80s' is neither file, folder nor link", path);
}

/* Creates every folder above the place. */
static int make_place(struct layer_tree *t, const char *place, struct err *e)
{
	char part[TREE_PATH];

	for (size_t n = 0; *place && n < strlen(place); n++) {
		n += strcspn(place + n, "/");
		snprintf(part, sizeof(part), "%.*s", (int)n, place);
		if (layer_tree_dir(t, part, e) < 0)
			return -1;
	}
	return 0;
}

int layer_import_from_worker(int worker, const char *path, const char *place, struct layer_tree *t,
			     struct err *e)
{
	__attribute__((cleanup(fetch_fini))) struct fetch *f = fetch_new();
	unsigned under_way = 0;
	size_t next = 0;

	f->worker = worker;
	f->path = path;
	f->place = place;
	f->tree = t;
	if (import_list(f, e) < 0 || make_place(t, place, e) < 0)
		return -1;
	for (size_t i = 0; i < f->n; i++) {
		if (ask_ahead(f, &next, &under_way, e) < 0 || import_take(f, i, e) < 0)
			return -1;
		under_way -= S_ISREG(f->v[i].mode);
	}
	return 0;
}

/* ---- from init to the worker ---- */

static void import_patience(int fd)
{
	const struct timeval t = { .tv_sec = QUIET_S };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof(t));
}

int layer_import_tree(int conn, const char *path, const char *place, struct layer_tree *t,
		      struct err *e)
{
	static _Alignas(8) char bytes[WIRE_MAX];
	struct frame ask = sock_head(WIRE_FILES, 1);
	const struct frame *got = (const void *)bytes;
	auto_fd int worker = -1;
	unsigned nfds = 1;
	int n;

	ask.flags = WIRE_FILES_ALONE;
	import_patience(conn);
	if (sock_send(conn, &ask, sizeof(ask), NULL, 0, NULL, 0, e) < 0)
		return -1;
	n = sock_recv(conn, bytes, &worker, &nfds, e);
	if (n < 0)
		return -1;
	if (n == 0 || got->type != WIRE_FD || nfds != 1)
		return err_set(e, ERR_SYS, "init started no file worker in the box");
	import_patience(worker);
	return layer_import_from_worker(worker, path, place, t, e);
}
