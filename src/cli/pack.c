/* pack.c - see pack.h. */
#include "cli/pack.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/units.h"
#include "cli/below.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

/* ---- the folder ---- */

int pack_text(struct pack *p, const char *path, size_t most, struct buf *out, struct err *e)
{
	auto_fd int fd = below_open(p->root, path, O_RDONLY | O_NONBLOCK, 0);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : err_sys(e, "read %.150s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.150s is not a file", path);
	if ((uint64_t)st.st_size > most)
		return err_set(e, ERR_LIMIT, "%.150s has %lld bytes, of at most %zu", path,
			       (long long)st.st_size, most);
	while ((n = read(fd, buf_space(out, 4096), 4096)) > 0) {
		buf_grew(out, (size_t)n);
		if (out->len > most)
			return err_set(e, ERR_LIMIT, "%.150s grows", path);
	}
	return n < 0 ? err_sys(e, "read %.150s", path) : 1;
}

static int pack_read_ignore(struct pack *p, struct err *e)
{
	for (const char *const *name = ignore_names; *name; name++) {
		auto_buf struct buf text = { 0 };
		int got = pack_text(p, *name, IGNORE_BYTES, &text, e);

		if (got < 0)
			return -1;
		if (!got)
			continue;
		snprintf(p->ignore_file, sizeof(p->ignore_file), "%s", *name);
		return ignore_parse(&p->ignore, *name, buf_str(&text), text.len, e);
	}
	return 0;
}

int pack_open(struct pack *p, const char *folder, struct err *e)
{
	*p = (struct pack){ .root = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	if (p->root < 0)
		return err_sys(e, "open the folder %.150s", folder);
	return pack_read_ignore(p, e);
}

static int pack_add(struct pack *p, const char *path, const struct stat *st, struct err *e)
{
	struct pack_entry *at;

	if (p->n == PACK_ENTRIES)
		return err_set(e, ERR_LIMIT, "the folder has more than %d files", PACK_ENTRIES);
	if (p->n == p->room) {
		p->room = p->room ? 2 * p->room : 256;
		p->v = reallocarray(p->v, p->room, sizeof(*p->v));
		if (!p->v)
			abort();
	}
	at = &p->v[p->n++];
	*at = (struct pack_entry){ .path = strdup(path),
				   .mode = st->st_mode,
				   .mtime = st->st_mtime };
	if (!at->path)
		abort();
	if (S_ISREG(st->st_mode)) {
		at->bytes = (uint64_t)st->st_size;
		p->bytes += at->bytes;
		p->files++;
	}
	return 0;
}

static int pack_scan_folder(struct pack *p, int folder, struct buf *path, unsigned depth,
			    struct err *e);

/* path: of the entry. */
static int pack_scan_entry(struct pack *p, int folder, const char *name, struct buf *path,
			   unsigned depth, struct err *e)
{
	struct stat st;
	auto_fd int below = -1;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "look at %.150s", buf_str(path));
	if (S_ISDIR(st.st_mode)) {
		if (ignore_match_all(&p->ignore, buf_str(path)))
			return 0;
		if (!ignore_match(&p->ignore, buf_str(path)) &&
		    pack_add(p, buf_str(path), &st, e) < 0)
			return -1;
		below = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (below < 0)
			return err_sys(e, "open the folder %.150s", buf_str(path));
		return pack_scan_folder(p, below, path, depth + 1, e);
	}
	if (ignore_match(&p->ignore, buf_str(path)))
		return 0;
	if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode)) {
		p->skipped++;
		return 0;
	}
	return pack_add(p, buf_str(path), &st, e);
}

static int pack_scan_folder(struct pack *p, int folder, struct buf *path, unsigned depth,
			    struct err *e)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), failed = 0;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *at;
	size_t len = path->len;

	if (!d) {
		own_close_fd(&fd);
		return err_sys(e, "open the folder %.150s", buf_str(path));
	}
	if (depth > PACK_DEPTH)
		failed = err_set(e, ERR_LIMIT, "%.100s... is deeper than %d folders", buf_str(path),
				 PACK_DEPTH);
	while (!failed && (at = readdir(d))) {
		if (!strcmp(at->d_name, ".") || !strcmp(at->d_name, ".."))
			continue;
		buf_printf(path, "%s%s", len ? "/" : "", at->d_name);
		failed = pack_scan_entry(p, folder, at->d_name, path, depth, e);
		buf_cut(path, len);
	}
	closedir(d);
	return failed;
}

static int pack_by_path(const void *a, const void *b)
{
	return strcmp(((const struct pack_entry *)a)->path, ((const struct pack_entry *)b)->path);
}

int pack_scan(struct pack *p, struct err *e)
{
	auto_buf struct buf path = { 0 };

	if (pack_scan_folder(p, p->root, &path, 0, e) < 0)
		return -1;
	qsort(p->v, p->n, sizeof(*p->v), pack_by_path);
	return 0;
}

/* ---- sizes ---- */

struct pack_part {
	const char *path;
	size_t len;
	uint64_t bytes;
};

static int pack_by_bytes(const void *a, const void *b)
{
	uint64_t x = ((const struct pack_part *)a)->bytes, y = ((const struct pack_part *)b)->bytes;

	return x < y ? 1 : x > y ? -1 : 0;
}

void pack_largest(const struct pack *p, struct buf *out)
{
	enum { SHOWN_PARTS = 3 };
	struct pack_part *parts = calloc(p->n + 1, sizeof(*parts));
	unsigned n = 0;
	char size[UNITS_TEXT];

	if (!parts)
		abort();
	for (unsigned i = 0; i < p->n; i++) { /* sorted: parts of one folder are neighbours */
		size_t len = strcspn(p->v[i].path, "/");

		if (!n || parts[n - 1].len != len ||
		    strncmp(parts[n - 1].path, p->v[i].path, len) != 0)
			parts[n++] = (struct pack_part){ p->v[i].path, len, 0 };
		parts[n - 1].bytes += p->v[i].bytes;
	}
	qsort(parts, n, sizeof(*parts), pack_by_bytes);
	for (unsigned i = 0; i < n && i < SHOWN_PARTS && parts[i].bytes; i++)
		buf_printf(out, "%s%.*s %s", i ? ", " : "",
			   (int)(parts[i].len > 60 ? 60 : parts[i].len), parts[i].path,
			   units_size(size, parts[i].bytes));
	free(parts);
}

/* ---- the archive ---- */

enum { PACK_BLOCK = 512, PACK_PIECE = 64 << 10, PACK_MANIFEST = 5000 };

struct pack_writer {
	struct buf head; /* blocks that are to be written next */
	size_t head_at;
	unsigned next; /* entry */
	int fd;        /* of the current file, or -1 */
	uint64_t left; /* of its content */
	int ended;
	z_stream z;
	int z_open, z_ended;
	unsigned char raw[PACK_PIECE];
};

static void pack_writer_free(struct pack_writer *w)
{
	if (!w)
		return;
	if (w->z_open)
		deflateEnd(&w->z);
	own_close_fd(&w->fd);
	buf_fini(&w->head);
	free(w);
}

static struct pack_writer *pack_writer_new(void)
{
	struct pack_writer *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->fd = -1;
	return w;
}

struct pack_header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100],
		magic[8], user[32], group[32], major[8], minor[8], prefix[155], end[12];
};
_Static_assert(sizeof(struct pack_header) == PACK_BLOCK, "a header is one block");

static void pack_pad(struct buf *out)
{
	static const char zeros[PACK_BLOCK];

	buf_add(out, zeros, (PACK_BLOCK - out->len % PACK_BLOCK) % PACK_BLOCK);
}

/* Sizes from 8 GiB on do not fit in octal digits: then it is a binary number. */
static void pack_size(char out[12], uint64_t bytes)
{
	if (bytes < UINT64_C(1) << 33) {
		snprintf(out, 12, "%011llo", (unsigned long long)bytes);
		return;
	}
	memset(out, 0, 12);
	out[0] = (char)0x80;
	for (int i = 11; i > 3; i--, bytes >>= 8)
		out[i] = (char)(bytes & 0xff);
}

static void pack_put_header(struct buf *out, char type, const char *name, const char *link,
			    unsigned mode, uint64_t size, int64_t mtime)
{
	struct pack_header h = { .type = type };
	unsigned sum = 0;

	memcpy(h.name, name, strnlen(name, sizeof(h.name)));
	memcpy(h.link, link, strnlen(link, sizeof(h.link)));
	snprintf(h.mode, sizeof(h.mode), "%07o", mode & 07777);
	snprintf(h.uid, sizeof(h.uid), "%07o", 0);
	snprintf(h.gid, sizeof(h.gid), "%07o", 0);
	pack_size(h.size, size);
	snprintf(h.mtime, sizeof(h.mtime), "%011llo",
		 (unsigned long long)(mtime > 0 ? mtime : 0) & 077777777777);
	memcpy(h.magic, "ustar  ", 8); /* GNU's: long names are entries of their own */
	memset(h.sum, ' ', sizeof(h.sum));
	for (unsigned i = 0; i < sizeof(h); i++)
		sum += ((const unsigned char *)&h)[i];
	snprintf(h.sum, sizeof(h.sum), "%06o", sum);
	buf_add(out, &h, sizeof(h));
}

static void pack_put_long(struct buf *out, char type, const char *text)
{
	if (strlen(text) <= 100)
		return;
	pack_put_header(out, type, "././@LongLink", "", 0644, strlen(text) + 1, 0);
	buf_add(out, text, strlen(text) + 1);
	pack_pad(out);
}

static int pack_begin_file(struct pack *p, struct pack_entry *at, struct err *e)
{
	struct pack_writer *w = p->writer;
	struct stat st;

	w->fd = below_open(p->root, at->path, O_RDONLY | O_NONBLOCK, 0);
	if (w->fd < 0 || fstat(w->fd, &st) < 0)
		return err_sys(e, "read %.150s", at->path);
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != at->bytes)
		return err_set(e, ERR_CONFLICT, "%.150s has changed while it was packed", at->path);
	w->left = at->bytes;
	return 0;
}

/* The header of the next entry, or the two blocks at the end. */
static int pack_begin(struct pack *p, struct err *e)
{
	struct pack_writer *w = p->writer;
	struct pack_entry *at = w->next < p->n ? &p->v[w->next++] : NULL;
	auto_buf struct buf name = { 0 };
	char link[PATH_MAX] = "";
	ssize_t n;

	buf_cut(&w->head, 0);
	w->head_at = 0;
	if (!at) {
		buf_add(&w->head, (char[2 * PACK_BLOCK]){ 0 }, 2 * PACK_BLOCK);
		w->ended = 1;
		return 0;
	}
	buf_printf(&name, "%s%s", at->path, S_ISDIR(at->mode) ? "/" : "");
	if (S_ISLNK(at->mode)) {
		n = readlinkat(p->root, at->path, link, sizeof(link) - 1);
		if (n < 0)
			return err_sys(e, "read the link %.150s", at->path);
		link[n] = 0;
	} else if (S_ISREG(at->mode) && pack_begin_file(p, at, e) < 0) {
		return -1;
	}
	pack_put_long(&w->head, 'K', link);
	pack_put_long(&w->head, 'L', buf_str(&name));
	pack_put_header(&w->head,
			S_ISDIR(at->mode)   ? '5'
			: S_ISLNK(at->mode) ? '2'
					    : '0',
			buf_str(&name), link, S_ISLNK(at->mode) ? 0777 : (unsigned)at->mode,
			at->bytes, at->mtime);
	return 0;
}

static ssize_t pack_read_file(struct pack *p, void *out, size_t room, struct err *e)
{
	struct pack_writer *w = p->writer;
	ssize_t n = read(w->fd, out, room < w->left ? room : (size_t)w->left);

	if (n < 0)
		return err_sys(e, "read %.150s", p->v[w->next - 1].path);
	if (n == 0)
		return err_set(e, ERR_CONFLICT, "%.150s has changed while it was packed",
			       p->v[w->next - 1].path);
	w->left -= (uint64_t)n;
	p->read += (uint64_t)n;
	return n;
}

/* The next bytes of the archive before its compression. */
static ssize_t pack_read_tar(struct pack *p, void *out, size_t room, struct err *e)
{
	struct pack_writer *w = p->writer;

	for (;;) {
		size_t have = w->head.len - w->head_at;

		if (have) {
			have = have < room ? have : room;
			memcpy(out, w->head.p + w->head_at, have);
			w->head_at += have;
			return (ssize_t)have;
		}
		if (w->left)
			return pack_read_file(p, out, room, e);
		if (w->fd >= 0) { /* its last block is filled up */
			size_t over = p->v[w->next - 1].bytes % PACK_BLOCK;

			own_close_fd(&w->fd);
			buf_cut(&w->head, 0);
			w->head_at = 0;
			if (over)
				buf_add(&w->head, (char[PACK_BLOCK]){ 0 }, PACK_BLOCK - over);
			continue;
		}
		if (w->ended)
			return 0;
		if (pack_begin(p, e) < 0)
			return -1;
	}
}

/* ---- the manifest ---- */

static int pack_file_hash(struct pack *p, const char *path, char out[PACK_HASH + 1], struct err *e)
{
	auto_fd int fd = below_open(p->root, path, O_RDONLY | O_NONBLOCK, 0);
	static unsigned char bytes[PACK_PIECE];
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	ssize_t n = -1;

	sha256_init(&s);
	while (fd >= 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
		sha256_add(&s, bytes, (size_t)n);
	if (n < 0)
		return err_sys(e, "read %.150s", path);
	sha256_end(&s, sum);
	hex_encode(out, sum, sizeof(sum));
	return 0;
}

static int pack_describe(struct pack *p, struct pack_entry *at, struct err *e)
{
	char text[PATH_MAX] = "";
	ssize_t n;

	free(at->what);
	at->what = NULL;
	if (S_ISLNK(at->mode)) {
		n = readlinkat(p->root, at->path, text, sizeof(text) - 1);
		if (n < 0)
			return err_sys(e, "read the link %.150s", at->path);
		text[n] = 0;
		at->what = buf_text("link %s", text);
		return 0;
	}
	if (S_ISREG(at->mode) && pack_file_hash(p, at->path, text, e) < 0)
		return -1;
	at->what = buf_text("%c%04o %s", S_ISDIR(at->mode) ? 'd' : 'f', at->mode & 07777u, text);
	return 0;
}

int pack_hash(struct pack *p, char out[PACK_HASH + 1], struct err *e)
{
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	for (unsigned i = 0; i < p->n; i++) {
		if (pack_describe(p, &p->v[i], e) < 0)
			return -1;
		sha256_add(&s, p->v[i].path, strlen(p->v[i].path) + 1);
		sha256_add(&s, p->v[i].what, strlen(p->v[i].what) + 1);
	}
	sha256_end(&s, sum);
	hex_encode(out, sum, sizeof(sum));
	return 0;
}

json_t *pack_manifest(const struct pack *p)
{
	json_t *all;

	if (p->n > PACK_MANIFEST)
		return NULL;
	all = json_object();
	for (unsigned i = 0; i < p->n; i++)
		if (json_object_set_new(all, p->v[i].path, json_string(p->v[i].what)) < 0) {
			json_decref(all);
			return NULL;
		}
	return all;
}

/* ---- compression ---- */

static int pack_writer_begin(struct pack *p, struct err *e)
{
	enum { GZIP = 16 };

	if (p->writer)
		return 0;
	p->writer = pack_writer_new();
	if (deflateInit2(&p->writer->z, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + GZIP, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return err_set(e, ERR_SYS, "zlib cannot start");
	p->writer->z_open = 1;
	return 0;
}

ssize_t pack_read(void *pack, void *out, size_t room, struct err *e)
{
	struct pack *p = pack;
	struct pack_writer *w;

	if (pack_writer_begin(p, e) < 0)
		return -1;
	w = p->writer;
	w->z.next_out = out;
	w->z.avail_out = (uInt)(room < PACK_PIECE ? room : PACK_PIECE);
	while (!w->z_ended && w->z.avail_out) {
		if (!w->z.avail_in) {
			ssize_t n = pack_read_tar(p, w->raw, sizeof(w->raw), e);

			if (n < 0)
				return -1;
			w->z.next_in = w->raw;
			w->z.avail_in = (uInt)n;
		}
		w->z_ended = deflate(&w->z, w->z.avail_in ? Z_NO_FLUSH : Z_FINISH) == Z_STREAM_END;
	}
	return (ssize_t)((char *)w->z.next_out - (char *)out);
}

void pack_fini(struct pack *p)
{
	pack_writer_free(p->writer);
	for (unsigned i = 0; i < p->n; i++) {
		free(p->v[i].path);
		free(p->v[i].what);
	}
	free(p->v);
	ignore_fini(&p->ignore);
	if (p->root > 0)
		close(p->root);
	memset(p, 0, sizeof(*p));
}
