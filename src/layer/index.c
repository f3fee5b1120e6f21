/* index.c - see index.h. */
#include "layer/index.h"
#include "base/cleanup.h"
#include "base/id.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { INDEX_BUFFER = 256 * 1024 };

_Static_assert(INDEX_BUFFER >= sizeof(struct layer_index_fixed) + LAYER_INDEX_PATH + 8 + 1,
	       "an entry fits into the buffer");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are written as they are");

static size_t index_padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

int layer_index_compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
	size_t n = a_len < b_len ? a_len : b_len;

	for (size_t i = 0; i < n; i++) {
		unsigned char x = (unsigned char)a[i], y = (unsigned char)b[i];

		if (x != y)
			return (x == '/' ? 0 : x) < (y == '/' ? 0 : y) ? -1 : 1;
	}
	return a_len == b_len ? 0 : a_len < b_len ? -1 : 1;
}

/* ---- reading ---- */

static int index_bad(const struct layer_index_reader *r, struct err *e, const char *what)
{
	return err_set(e, ERR_INVALID, "index of a checkpoint, entry %llu: %s",
		       (unsigned long long)r->seen, what);
}

/* An id with its NUL and zeros after it; or empty. */
static int index_id_ok(const char id[LAYER_INDEX_ID], int may_be_empty)
{
	size_t n = strnlen(id, LAYER_INDEX_ID);

	for (size_t i = n; i < LAYER_INDEX_ID; i++)
		if (id[i])
			return 0;
	return n == LAYER_INDEX_ID ? 0 : n ? id_valid(id) : may_be_empty;
}

static int index_read(int fd, void *to, size_t n, uint64_t at, struct err *e)
{
	for (size_t done = 0; done < n;) {
		ssize_t got = pread(fd, (char *)to + done, n - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "read the index of a checkpoint");
		if (got == 0)
			return err_set(e, ERR_INVALID,
				       "index of a checkpoint: the file is cut off");
		done += (size_t)got;
	}
	return 0;
}

int layer_index_open(struct layer_index_reader *r, int fd, struct err *e)
{
	struct layer_index_head *h = &r->head;
	struct stat st;

	*r = (struct layer_index_reader){ .fd = fd };
	if (fstat(fd, &st) < 0)
		return err_sys(e, "index of a checkpoint");
	if (!S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(*h))
		return err_set(e, ERR_INVALID, "index of a checkpoint: %lld bytes are too few",
			       (long long)st.st_size);
	r->size = (uint64_t)st.st_size;
	if (index_read(fd, h, sizeof(*h), 0, e) < 0)
		return -1;
	if (h->magic != LAYER_INDEX_MAGIC)
		return err_set(e, ERR_INVALID, "not the index of a checkpoint");
	if (h->version != LAYER_INDEX_VERSION)
		return err_set(e, ERR_INVALID,
			       "index of a checkpoint: its version is %u, this program reads %u",
			       h->version, LAYER_INDEX_VERSION);
	if (!index_id_ok(h->id, 0) || !index_id_ok(h->box, 0) || !index_id_ok(h->base, 1) ||
	    h->same > 1 || (h->same && h->layer_bytes) || !h->entries ||
	    h->entries > (r->size - sizeof(*h)) / sizeof(struct layer_index_fixed))
		return err_set(e, ERR_INVALID, "index of a checkpoint: its head is invalid");
	r->at = sizeof(*h);
	r->buf = malloc(INDEX_BUFFER);
	r->last = calloc(1, LAYER_INDEX_PATH + 1);
	if (!r->buf || !r->last)
		abort();
	return 0;
}

/* At least n unread bytes are in the buffer afterwards. */
static int index_fill(struct layer_index_reader *r, size_t n, struct err *e)
{
	size_t have = r->to - r->from, want;

	if (have >= n)
		return 0;
	memmove(r->buf, r->buf + r->from, have);
	r->from = 0;
	r->to = have;
	want = INDEX_BUFFER - have;
	if (want > r->size - r->at)
		want = (size_t)(r->size - r->at);
	if (have + want < n)
		return index_bad(r, e, "the file is cut off");
	if (index_read(r->fd, r->buf + have, want, r->at, e) < 0)
		return -1;
	r->at += want;
	r->to += want;
	return 0;
}

static int index_is_zero(const void *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const unsigned char *)at)[i])
			return 0;
	return 1;
}

static int index_fixed_ok(const struct layer_index_fixed *f)
{
	int is_white = f->flags & LAYER_INDEX_WHITEOUT, is_folder = S_ISDIR(f->mode);
	int is_file = S_ISREG(f->mode), is_link = S_ISLNK(f->mode);

	if (f->flags & ~LAYER_INDEX_FLAGS || f->mode & ~(uint32_t)(S_IFMT | 07777) || f->pad ||
	    f->uid > LAYER_INDEX_OWNER_MAX || f->gid > LAYER_INDEX_OWNER_MAX || !f->nlink ||
	    !index_id_ok(f->origin, 0) || f->size > INT64_MAX)
		return 0;
	if (is_white ? !S_ISCHR(f->mode) : !is_file && !is_folder && !is_link && !S_ISFIFO(f->mode))
		return 0;
	if ((f->flags & LAYER_INDEX_OPAQUE && !is_folder) ||
	    (f->flags & LAYER_INDEX_MAPPED && !is_file) ||
	    (f->flags & LAYER_INDEX_HASHED && !is_file && !is_link))
		return 0;
	return f->flags & LAYER_INDEX_HASHED || index_is_zero(f->sha256, sizeof(f->sha256));
}

static int index_path_ok(const char *path, size_t len)
{
	size_t name = 0;

	for (size_t i = 0; i <= len; i++) {
		const char *at = path + name;
		size_t n = i - name;

		if (i < len && path[i] != '/') {
			if (!path[i])
				return 0;
			continue;
		}
		if (!n || n > 255 || (n == 1 && at[0] == '.') ||
		    (n == 2 && at[0] == '.' && at[1] == '.'))
			return 0;
		name = i + 1;
	}
	return 1;
}

/* The folder of the entry must be one of those that contain the entry before it, or that entry. */
static int index_parent_ok(struct layer_index_reader *r, const char *path, size_t len)
{
	size_t up = len;

	while (up > 0 && path[up - 1] != '/')
		up--;
	up = up ? up - 1 : 0; /* of the parent; 0: the root */
	while (r->nfolders &&
	       (r->folders[r->nfolders - 1] > up ||
		memcmp(path, r->last, r->folders[r->nfolders - 1]) != 0 ||
		(r->folders[r->nfolders - 1] && path[r->folders[r->nfolders - 1]] != '/')))
		r->nfolders--;
	return r->nfolders && r->folders[r->nfolders - 1] == up;
}

static void index_push(struct layer_index_reader *r, size_t len)
{
	if (r->nfolders == r->folders_room) {
		r->folders_room = r->folders_room ? 2 * r->folders_room : 64;
		r->folders = realloc(r->folders, r->folders_room * sizeof(*r->folders));
		if (!r->folders)
			abort();
	}
	r->folders[r->nfolders++] = (uint32_t)len;
}

static int index_check(struct layer_index_reader *r, const struct layer_index_fixed *f,
		       const char *path, struct err *e)
{
	size_t len = f->path_len;

	if (!index_fixed_ok(f))
		return index_bad(r, e, "a field is invalid");
	if (r->seen == 0)
		return len == 0 && S_ISDIR(f->mode) ? 0
						    : index_bad(r, e, "the first is not the root");
	if (!len || !index_path_ok(path, len))
		return index_bad(r, e, "the path is invalid");
	if (layer_index_compare(r->last, r->last_len, path, len) >= 0)
		return index_bad(r, e, "it is not in order");
	return index_parent_ok(r, path, len) ? 0 : index_bad(r, e, "it is in no folder");
}

int layer_index_next(struct layer_index_reader *r, struct layer_index_entry *out, struct err *e)
{
	size_t len, padded;
	const char *path;

	if (r->seen == r->head.entries) {
		if (r->to != r->from || r->at != r->size)
			return index_bad(r, e, "there are bytes after the last one");
		return 0;
	}
	if (index_fill(r, sizeof(out->f), e) < 0)
		return -1;
	memcpy(&out->f, r->buf + r->from, sizeof(out->f));
	len = out->f.path_len;
	padded = index_padded(len);
	if (index_fill(r, sizeof(out->f) + padded, e) < 0)
		return -1;
	path = r->buf + r->from + sizeof(out->f);
	if (!index_is_zero(path + len, padded - len))
		return index_bad(r, e, "there are bytes after the path");
	if (index_check(r, &out->f, path, e) < 0)
		return -1;
	memcpy(r->last, path, len);
	r->last[len] = 0;
	r->last_len = len;
	if (S_ISDIR(out->f.mode))
		index_push(r, len);
	r->from += sizeof(out->f) + padded;
	r->seen++;
	out->path = r->last;
	return 1;
}

void layer_index_close(struct layer_index_reader *r)
{
	free(r->buf);
	free(r->last);
	free(r->folders);
	*r = (struct layer_index_reader){ .fd = -1 };
}

/* ---- writing ---- */

void layer_index_begin(struct layer_index_writer *w, int fd)
{
	*w = (struct layer_index_writer){ .fd = fd, .at = sizeof(struct layer_index_head) };
	w->buf = malloc(INDEX_BUFFER);
	if (!w->buf)
		abort();
}

static int index_write(int fd, const void *from, size_t n, uint64_t at, struct err *e)
{
	for (size_t done = 0; done < n;) {
		ssize_t put = pwrite(fd, (const char *)from + done, n - done, (off_t)(at + done));

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return err_sys(e, "write the index of a checkpoint");
		done += (size_t)put;
	}
	return 0;
}

static int index_flush(struct layer_index_writer *w, struct err *e)
{
	if (index_write(w->fd, w->buf, w->used, w->at, e) < 0)
		return -1;
	w->at += w->used;
	w->used = 0;
	return 0;
}

int layer_index_add(struct layer_index_writer *w, const struct layer_index_fixed *f,
		    const char *path, struct err *e)
{
	size_t len = f->path_len, padded = index_padded(len);

	if (w->used + sizeof(*f) + padded > INDEX_BUFFER && index_flush(w, e) < 0)
		return -1;
	memcpy(w->buf + w->used, f, sizeof(*f));
	memcpy(w->buf + w->used + sizeof(*f), path, len);
	memset(w->buf + w->used + sizeof(*f) + len, 0, padded - len);
	w->used += sizeof(*f) + padded;
	w->entries++;
	return 0;
}

int layer_index_end(struct layer_index_writer *w, const struct layer_index_head *head,
		    uint64_t *out_bytes, struct err *e)
{
	struct layer_index_head h = *head;

	h.magic = LAYER_INDEX_MAGIC;
	h.version = LAYER_INDEX_VERSION;
	h.entries = w->entries;
	if (index_flush(w, e) < 0 || index_write(w->fd, &h, sizeof(h), 0, e) < 0)
		return -1;
	*out_bytes = w->at;
	return 0;
}

void layer_index_drop(struct layer_index_writer *w)
{
	free(w->buf);
	*w = (struct layer_index_writer){ .fd = -1 };
}
