/* files.c - see files.h.
 * Requests are pipelined: a tree of a thousand small files is one stream of frames, not a thousand
 * round trips. Answers come in order, one per request; PIPELINE bounds how many may wait, so that
 * a worker blocked on its answers can never face a client blocked on its requests. */
#include "client/files.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PIPELINE = 64, DATA_MAX = 60 * 1024 };

int files_open(struct files *f, struct box_handle *b, struct err *e)
{
	*f = (struct files){ .fd = -1, .next_ref = 1 };
	return boxh_files(b, 0, &f->fd, e);
}

int files_open_alone(struct files *f, struct box_handle *b, struct err *e)
{
	*f = (struct files){ .fd = -1, .next_ref = 1 };
	return boxh_files(b, WIRE_FILES_ALONE, &f->fd, e);
}

void files_close(struct files *f)
{
	own_close_fd(&f->fd);
}

/* Receives one frame, which must be of type `want`; an ERROR becomes e, DONE returns 0. */
static int files_receive(struct files *f, uint8_t want, char *buf, struct err *e)
{
	const struct frame *head = (const struct frame *)buf;
	unsigned nfds = 0;
	int n = sock_recv(f->fd, buf, NULL, &nfds, e);

	if (n < 0)
		return err_in(e, "file worker");
	if (n == 0)
		return err_set(e, ERR_NOT_FOUND, "file worker: the box ended");
	if (head->type == WIRE_ERROR)
		return wire_error_read((const struct wire_error *)buf, e);
	if (head->type != want && head->type != WIRE_DONE)
		return err_set(e, ERR_INVALID, "file worker: unexpected frame (type %u)",
			       head->type);
	return head->type == WIRE_DONE ? 0 : n;
}

/* Reads the answers that have already arrived, so that a copy into a full box ends early. */
static int files_collect(struct files *f, struct err *e)
{
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	char buf[WIRE_MAX];

	for (; f->waiting && poll(&p, 1, 0) > 0; f->waiting--)
		if (files_receive(f, WIRE_DONE, buf, e) < 0)
			return -1;
	return 0;
}

/* Waits until at most `most` requests have no answer. */
static int files_settle(struct files *f, unsigned most, struct err *e)
{
	char buf[WIRE_MAX];

	for (; f->waiting > most; f->waiting--)
		if (files_receive(f, WIRE_DONE, buf, e) < 0)
			return -1;
	return 0;
}

static int files_ask(struct files *f, const void *body, size_t len, const void *tail,
		     size_t tail_len, struct err *e)
{
	if (files_settle(f, PIPELINE - 1, e) < 0)
		return -1;
	f->waiting++;
	if (sock_send(f->fd, body, len, tail, tail_len, NULL, 0, e) < 0) {
		struct err said;

		/* The worker may have sent an error before it closed the connection. */
		if (files_settle(f, 0, &said) < 0)
			*e = said;
		return -1;
	}
	return 0;
}

static int send_data(struct files *f, uint32_t ref, const void *bytes, size_t n, struct err *e)
{
	struct frame head = sock_head(WIRE_DATA, ref);

	return sock_send(f->fd, &head, sizeof(head), bytes, n, NULL, 0, e);
}

static int begin_put(struct files *f, const char *path, mode_t mode, uint32_t *out_ref,
		     struct err *e)
{
	struct wire_put put = { .head = sock_head(WIRE_PUT, f->next_ref++), .mode = mode & 0777 };

	*out_ref = put.head.ref;
	return files_ask(f, &put, sizeof(put), path, strlen(path), e);
}

/* Not inlined into recursive functions: its buffer would cost 60 KiB of stack per level. */
#define OUT_OF_LINE __attribute__((noinline))

/* Sends the content of one file, without waiting for the answer. */
OUT_OF_LINE static int send_file(struct files *f, int src_fd, const char *path, mode_t mode,
				 uint64_t *out_bytes, struct err *e)
{
	char bytes[DATA_MAX];
	uint32_t ref;
	ssize_t n;

	if (begin_put(f, path, mode, &ref, e) < 0)
		return -1;
	do {
		n = read(src_fd, bytes, sizeof(bytes));
		if (n < 0)
			return err_sys(e, "read %.80s", path);
		if (send_data(f, ref, bytes, (size_t)n, e) < 0)
			return err_in(e, "put %.80s", path);
		*out_bytes += (uint64_t)n;
		if (files_collect(f, e) < 0)
			return -1;
	} while (n > 0);
	return 0;
}

int files_put(struct files *f, int src_fd, const char *path, mode_t mode, struct err *e)
{
	uint64_t bytes = 0;

	if (send_file(f, src_fd, path, mode, &bytes, e) < 0)
		return -1;
	return files_settle(f, 0, e);
}

int files_put_bytes(struct files *f, const void *bytes, size_t n, const char *path, mode_t mode,
		    struct err *e)
{
	uint32_t ref;

	if (begin_put(f, path, mode, &ref, e) < 0)
		return -1;
	for (size_t done = 0; done < n;) {
		size_t part = n - done > DATA_MAX ? DATA_MAX : n - done;

		if (send_data(f, ref, (const char *)bytes + done, part, e) < 0)
			return err_in(e, "put %.80s", path);
		done += part;
	}
	if (send_data(f, ref, NULL, 0, e) < 0)
		return err_in(e, "put %.80s", path);
	return files_settle(f, 0, e);
}

/* ---- trees ---- */

struct files_walk {
	struct files *f;
	struct files_tally *tally;
	char path[PATH_MAX]; /* path inside the box of the present entry */
	size_t len;
	unsigned depth;
};

static int walk_folder(struct files_walk *w, int dir_fd, struct err *e);

static int walk_into(struct files_walk *w, int dir_fd, const char *name, mode_t mode, struct err *e)
{
	struct wire_put mk = { .head = sock_head(WIRE_MKDIR, w->f->next_ref++),
			       .mode = (mode & 0777) | 0700 };
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return err_sys(e, "open folder %.80s", w->path);
	if (w->depth >= FILES_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "folders deeper than %d levels: %.60s...",
			       FILES_DEPTH_MAX, w->path);
	w->tally->folders++;
	if (files_ask(w->f, &mk, sizeof(mk), w->path, w->len, e) < 0)
		return -1;
	w->depth++;
	rc = walk_folder(w, fd, e);
	w->depth--;
	return rc;
}

OUT_OF_LINE static int walk_link(struct files_walk *w, int dir_fd, const char *name, struct err *e)
{
	struct frame head = sock_head(WIRE_LINK, w->f->next_ref++);
	char tail[2 * PATH_MAX];
	ssize_t n = readlinkat(dir_fd, name, tail, PATH_MAX);

	if (n < 0 || n >= PATH_MAX)
		return err_sys(e, "read link %.80s", w->path);
	tail[n] = 0;
	memcpy(tail + n + 1, w->path, w->len);
	w->tally->links++;
	return files_ask(w->f, &head, sizeof(head), tail, (size_t)n + 1 + w->len, e);
}

static int walk_file(struct files_walk *w, int dir_fd, const char *name, struct err *e)
{
	/* O_NONBLOCK: the name may be a pipe now, created since the stat. */
	auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "open %.80s", w->path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_CONFLICT, "%.80s changed its type while it was copied",
			       w->path);
	w->tally->files++;
	return send_file(w->f, fd, w->path, st.st_mode | 0600, &w->tally->bytes, e);
}

static int walk_entry(struct files_walk *w, int dir_fd, const char *name, struct err *e)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(e, "stat %.80s", w->path);
	if (S_ISDIR(st.st_mode))
		return walk_into(w, dir_fd, name, st.st_mode, e);
	if (S_ISLNK(st.st_mode))
		return walk_link(w, dir_fd, name, e);
	if (S_ISREG(st.st_mode))
		return walk_file(w, dir_fd, name, e);
	if (w->tally->skipped++ == 0)
		snprintf(w->tally->first_skipped, sizeof(w->tally->first_skipped), "%.255s",
			 w->path);
	return 0;
}

static void close_folder(DIR **d)
{
	if (*d)
		closedir(*d);
}

static int walk_folder(struct files_walk *w, int dir_fd, struct err *e)
{
	int own = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	__attribute__((cleanup(close_folder))) DIR *d = own < 0 ? NULL : fdopendir(own);
	size_t base = w->len;
	struct dirent *de;

	if (!d)
		return err_sys(e, "open folder %.80s", w->path);
	while ((errno = 0, de = readdir(d))) {
		size_t n = strlen(de->d_name);

		if (!strcmp(de->d_name, ".") || !strcmp(de->d_name, ".."))
			continue;
		if (base + 1 + n >= sizeof(w->path))
			return err_set(e, ERR_LIMIT, "path too long: %.80s/...", w->path);
		w->path[base] = '/';
		memcpy(w->path + base + 1, de->d_name, n + 1);
		w->len = base + 1 + n;
		if (walk_entry(w, dir_fd, de->d_name, e) < 0)
			return -1;
		w->len = base;
		w->path[base] = 0;
	}
	return errno ? err_sys(e, "read folder %.80s", w->path) : 0;
}

int files_put_tree(struct files *f, int dir_fd, const char *to, struct files_tally *out,
		   struct err *e)
{
	struct files_walk w = { .f = f, .tally = out };

	*out = (struct files_tally){ 0 };
	w.len = (size_t)snprintf(w.path, sizeof(w.path), "%s", to);
	if (walk_folder(&w, dir_fd, e) < 0)
		return -1;
	return files_settle(f, 0, e);
}

/* ---- from the box ---- */

static int write_all(int fd, const char *bytes, size_t n, struct err *e)
{
	while (n > 0) {
		ssize_t w = write(fd, bytes, n);

		if (w < 0 && errno != EINTR)
			return err_sys(e, "write");
		if (w > 0) {
			bytes += w;
			n -= (size_t)w;
		}
	}
	return 0;
}

int files_get(struct files *f, const char *path, int to_fd, uint64_t max, uint64_t *out_bytes,
	      struct err *e)
{
	struct wire_get get = { .head = sock_head(WIRE_GET, f->next_ref++), .bytes = UINT64_MAX };
	char buf[WIRE_MAX];
	int n;

	*out_bytes = 0;
	if (sock_send(f->fd, &get, sizeof(get), path, strlen(path), NULL, 0, e) < 0 ||
	    files_receive(f, WIRE_ENTRY, buf, e) < 0)
		return err_in(e, "get %.80s", path);
	do {
		n = files_receive(f, WIRE_DATA, buf, e);
		if (n < 0)
			return err_in(e, "get %.80s", path);
		n -= (int)sizeof(struct frame);
		*out_bytes += n > 0 ? (uint64_t)n : 0;
		if (*out_bytes > max)
			return err_set(e, ERR_LIMIT, "get %.80s: more than %llu bytes", path,
				       (unsigned long long)max);
		if (n > 0 && write_all(to_fd, buf + sizeof(struct frame), (size_t)n, e) < 0)
			return err_in(e, "get %.80s", path);
	} while (n > 0);
	return 0;
}

int files_changes(struct files *f, const struct files_changes *want, struct err *e)
{
	struct wire_changes head = {
		.head = sock_head(WIRE_CHANGES, f->next_ref++),
		.max_entries = want->max_entries,
		.hash_bytes = want->hash_bytes,
	};
	char buf[WIRE_MAX + 1];
	int n;

	if (sock_send(f->fd, &head, sizeof(head), NULL, 0, NULL, 0, e) < 0)
		return err_in(e, "changes");
	while ((n = files_receive(f, WIRE_ENTRY, buf, e)) > 0) {
		buf[n] = 0;
		want->each(want->ctx, (const struct wire_entry *)buf,
			   buf + sizeof(struct wire_entry));
	}
	if (n < 0)
		return err_in(e, "changes");
	return ((const struct frame *)buf)->flags & WIRE_DONE_TRUNCATED ? 1 : 0;
}
