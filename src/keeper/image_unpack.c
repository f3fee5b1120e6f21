/* image_unpack.c - see image_unpack.h.
 *
 *   descriptor ──► libarchive: gzip, zstd ──► counted and hashed ──► libarchive: tar ──► image_tree
 *
 * Two readers, because one reader shows neither the bytes between compression and tar, nor those
 * after the end of the archive. */
#include "keeper/image_unpack.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "keeper/image_tree.h"
#include "keeper/layer_image.h"
#include "keeper/libarchive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
	BLOCK = 1 << 16,
	END_MARKER = 1024,      /* two empty blocks */
	HEADERS_MOST = 8192,    /* bytes of headers for an entry, on average */
	HEADERS_FREE = 1 << 20, /* and these in addition */
};

#define WHITEOUT ".wh."
#define WHITEOUT_META ".wh..wh." /* names of AUFS; only the next one has a meaning in OCI */
#define WHITEOUT_OPAQUE ".wh..wh..opq"

struct unpack {
	int fd, root;
	struct image_limits limits;
	struct image_sum *out;
	struct archive *packed, *tar;
	struct sha256 sum;
	uint64_t stream,
		last_byte; /* bytes of the tar stream; end of its last byte that is not 0 */
	uint64_t input;    /* bytes read of the descriptor */
	uint64_t stream_most;
	int at_end;
	int too_long; /* more than stream_most */
	char block[BLOCK];
};

/* ---- the compressed bytes ---- */

static la_ssize_t unpack_read(struct archive *a, void *ctx, const void **out)
{
	struct unpack *u = ctx;
	ssize_t n;

	do
		n = read(u->fd, u->block, sizeof(u->block));
	while (n < 0 && errno == EINTR);
	if (n < 0)
		libarchive.set_error(a, errno, "read: %s", strerror(errno));
	else
		u->input += (uint64_t)n;
	*out = u->block;
	return n;
}

static int unpack_failed(struct unpack *u, struct archive *a, struct err *e)
{
	const char *why = libarchive.error_string(a);

	if (u->too_long)
		return err_set(e, ERR_LIMIT, "the archive is larger than %llu bytes",
			       (unsigned long long)u->stream_most);
	return err_set(e, ERR_INVALID, "damaged archive: %.150s", why ? why : "unknown error");
}

static int unpack_open_packed(struct unpack *u, struct err *e)
{
	struct archive_entry *entry;
	int rc;

	u->packed = libarchive.read_new();
	if (!u->packed)
		abort();
	if (libarchive.read_support_filter_gzip(u->packed) != ARCHIVE_OK ||
	    libarchive.read_support_filter_zstd(u->packed) != ARCHIVE_OK ||
	    libarchive.read_support_format_raw(u->packed) != ARCHIVE_OK)
		return err_set(e, ERR_SYS, "libarchive was built without zlib or libzstd");
	if (libarchive.read_open(u->packed, u, NULL, unpack_read, NULL) != ARCHIVE_OK)
		return unpack_failed(u, u->packed, e);
	rc = libarchive.read_next_header(u->packed, &entry);
	if (rc == ARCHIVE_EOF)
		return err_set(e, ERR_INVALID, "the archive is empty");
	if (rc != ARCHIVE_OK)
		return unpack_failed(u, u->packed, e);
	/* libarchive counts the reading of the descriptor, too. */
	return libarchive.filter_count(u->packed) > 2
		       ? err_set(e, ERR_INVALID, "an archive that is compressed more than once")
		       : 0;
}

/* ---- the tar stream ---- */

static void unpack_look(struct unpack *u, const char *bytes, size_t n)
{
	size_t used = n;

	while (used && !bytes[used - 1])
		used--;
	if (used)
		u->last_byte = u->stream + used;
	sha256_add(&u->sum, bytes, n);
	u->stream += n;
}

/* The next bytes; 0: the end; -1: the reader has an error. */
static la_ssize_t unpack_next(struct unpack *u, const void **out)
{
	const void *bytes = NULL;
	la_int64_t offset;
	size_t n = 0;
	int rc = ARCHIVE_OK;

	while (!u->at_end && n == 0 && rc == ARCHIVE_OK)
		rc = libarchive.read_data_block(u->packed, &bytes, &n, &offset);
	if (u->at_end || rc == ARCHIVE_EOF) {
		u->at_end = 1;
		return 0;
	}
	if (rc != ARCHIVE_OK)
		return -1;
	if (n > u->stream_most - u->stream) {
		u->too_long = 1;
		return -1;
	}
	unpack_look(u, bytes, n);
	*out = bytes;
	return (la_ssize_t)n;
}

static la_ssize_t unpack_read_tar(struct archive *a, void *ctx, const void **out)
{
	struct unpack *u = ctx;
	la_ssize_t n = unpack_next(u, out);

	if (n < 0) {
		const char *why = libarchive.error_string(u->packed);

		libarchive.set_error(a, EINVAL, "%s", why ? why : "it does not end");
		return ARCHIVE_FATAL;
	}
	return n;
}

static int unpack_open_tar(struct unpack *u, struct err *e)
{
	u->tar = libarchive.read_new();
	if (!u->tar)
		abort();
	if (libarchive.read_support_format_tar(u->tar) != ARCHIVE_OK)
		return err_set(e, ERR_SYS, "libarchive was built without tar");
	return libarchive.read_open(u->tar, u, NULL, unpack_read_tar, NULL) != ARCHIVE_OK
		       ? unpack_failed(u, u->tar, e)
		       : 0;
}

/* A decompressor stops at the end of its format. */
static int unpack_input_left(struct unpack *u)
{
	const void *bytes;

	return (uint64_t)libarchive.filter_bytes(u->packed, -1) < u->input ||
	       unpack_read(u->packed, u, &bytes) > 0;
}

/* After the last entry: the end marker, and then nothing but zeros. */
static int unpack_end(struct unpack *u, struct err *e)
{
	uint64_t marker = (uint64_t)libarchive.read_header_position(u->tar);
	const void *bytes;
	la_ssize_t n;

	while ((n = unpack_next(u, &bytes)) > 0)
		;
	if (n < 0)
		return unpack_failed(u, u->packed, e);
	if (u->last_byte > marker || unpack_input_left(u))
		return err_set(e, ERR_INVALID, "bytes after the end of the archive");
	if (u->stream < marker + END_MARKER)
		return err_set(e, ERR_INVALID, "a truncated archive: it has no end marker");
	return 0;
}

/* ---- entries ---- */

static int unpack_content(struct unpack *u, int fd, uint64_t size, struct err *e)
{
	const void *bytes;
	la_int64_t at;
	size_t n;
	int rc;

	while ((rc = libarchive.read_data_block(u->tar, &bytes, &n, &at)) == ARCHIVE_OK) {
		const char *p = bytes;

		if (at < 0 || (uint64_t)at > size || n > size - (uint64_t)at)
			return err_set(e, ERR_INVALID, "more content than its size");
		while (n > 0) {
			ssize_t done = pwrite(fd, p, n, at);

			if (done < 0 && errno == EINTR)
				continue;
			if (done <= 0)
				return err_sys(e, "write");
			p += done;
			at += done;
			n -= (size_t)done;
		}
	}
	if (rc != ARCHIVE_EOF)
		return unpack_failed(u, u->tar, e);
	/* Holes at the end. */
	return ftruncate(fd, (off_t)size) < 0 ? err_sys(e, "set the size") : 0;
}

static int unpack_attributes(struct archive_entry *entry, int fd, struct err *e)
{
	const char *name;
	const void *value;
	size_t n;

	libarchive.entry_xattr_reset(entry);
	while (libarchive.entry_xattr_next(entry, &name, &value, &n) == ARCHIVE_OK) {
		if (strncmp(name, "user.", 5) != 0 || !strncmp(name, "user.overlay.", 13))
			continue;
		if (fsetxattr(fd, name, value, n, 0) < 0 && errno != EOPNOTSUPP)
			return err_sys(e, "attribute '%.60s'", name);
	}
	return 0;
}

/* libarchive reads the fraction of a time before 1970 with the wrong sign. */
static struct timespec unpack_time(struct archive_entry *entry)
{
	time_t s = libarchive.entry_mtime(entry);
	long ns = libarchive.entry_mtime_nsec(entry);

	return (struct timespec){ s, s >= 0 && ns >= 0 && ns < 1000000000 ? ns : 0 };
}

static int unpack_owner(la_int64_t id, uint32_t *out, struct err *e)
{
	if (id < 0 || id > UINT32_MAX || !layer_image_owner_ok((uint32_t)id))
		return err_set(
			e, ERR_INVALID,
			"its owner or group is %lld; boxes have ids up to 65535, without 65533",
			(long long)id);
	*out = (uint32_t)id;
	return 0;
}

static int unpack_file(struct unpack *u, struct archive_entry *entry, const struct image_entry *in,
		       struct err *e)
{
	la_int64_t size = libarchive.entry_size(entry);
	auto_fd int fd = -1;

	if (size < 0 || (uint64_t)size > u->limits.bytes_most - u->out->bytes)
		return err_set(e, ERR_LIMIT, "the layer has more than %llu bytes",
			       (unsigned long long)u->limits.bytes_most);
	u->out->bytes += (uint64_t)size;
	if (image_tree_file(u->root, in, &fd, e) < 0 ||
	    unpack_content(u, fd, (uint64_t)size, e) < 0 || unpack_attributes(entry, fd, e) < 0)
		return -1;
	return image_tree_finish(fd, in, e);
}

static int unpack_dir(struct unpack *u, struct archive_entry *entry, const struct image_entry *in,
		      struct err *e)
{
	auto_fd int fd = -1;

	if (image_tree_dir(u->root, in, &fd, e) < 0 || unpack_attributes(entry, fd, e) < 0)
		return -1;
	return image_tree_finish(fd, in, e);
}

static int unpack_hardlink(struct unpack *u, const struct image_entry *in, const char *target,
			   struct err *e)
{
	char clean[IMAGE_TREE_PATH];

	if (image_tree_clean(target, clean, e) < 0)
		return err_in(e, "a hard link");
	return image_tree_hardlink(u->root, in->path, clean, e);
}

/* 1: the name was a deletion, and is done. */
static int unpack_deletion(struct unpack *u, const struct image_entry *in, struct err *e)
{
	const char *slash = strrchr(in->path, '/'), *name = slash ? slash + 1 : in->path;
	char path[IMAGE_TREE_PATH];
	int above = (int)(name - in->path);

	if (strncmp(name, WHITEOUT, strlen(WHITEOUT)) != 0)
		return 0;
	snprintf(path, sizeof(path), "%.*s", slash ? above - 1 : 0, in->path);
	if (!strcmp(name, WHITEOUT_OPAQUE))
		return image_tree_opaque(u->root, path, e) < 0 ? -1 : 1;
	if (!strncmp(name, WHITEOUT_META, strlen(WHITEOUT_META)))
		return 1;
	name += strlen(WHITEOUT);
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return err_set(e, ERR_INVALID, "a deletion without a name");
	snprintf(path, sizeof(path), "%.*s%s", above, in->path, name);
	return image_tree_whiteout(u->root, path, e) < 0 ? -1 : 1;
}

/* A folder with such a name would become a deletion when the layer is exported. */
static int unpack_below_deletion(const char *path)
{
	for (const char *at = path, *slash; (slash = strchr(at, '/')) != NULL; at = slash + 1)
		if (!strncmp(at, WHITEOUT, strlen(WHITEOUT)))
			return 1;
	return 0;
}

static int unpack_kind(struct unpack *u, struct archive_entry *entry, struct image_entry *in,
		       struct err *e)
{
	const char *hardlink = libarchive.entry_hardlink(entry),
		   *symlink = libarchive.entry_symlink(entry);
	unsigned type = libarchive.entry_filetype(entry);
	int done = unpack_deletion(u, in, e);

	if (done)
		return done < 0 ? -1 : 0;
	if (hardlink)
		return unpack_hardlink(u, in, hardlink, e);
	if (type == AE_IFCHR || type == AE_IFBLK) {
		u->out->skipped++;
		return 0;
	}
	if (unpack_owner(libarchive.entry_uid(entry), &in->uid, e) < 0 ||
	    unpack_owner(libarchive.entry_gid(entry), &in->gid, e) < 0)
		return -1;
	in->mtime = unpack_time(entry);
	in->mode = (mode_t)(type | (libarchive.entry_perm(entry) & 07777));
	switch (type) {
	case AE_IFREG:
		return unpack_file(u, entry, in, e);
	case AE_IFDIR:
		return unpack_dir(u, entry, in, e);
	case AE_IFLNK:
		return image_tree_symlink(u->root, in, symlink ? symlink : "", e);
	case AE_IFIFO:
		return image_tree_fifo(u->root, in, e);
	default:
		return err_set(e, ERR_INVALID, "neither a file, a folder, a link nor a named pipe");
	}
}

static int unpack_entry(struct unpack *u, struct archive_entry *entry, struct err *e)
{
	const char *name = libarchive.entry_pathname(entry);
	struct image_entry in = { 0 };

	if (!name || !*name)
		return err_set(e, ERR_INVALID, "entry %llu has no name",
			       (unsigned long long)u->out->files + 1);
	if (u->out->files >= u->limits.files_most)
		return err_set(e, ERR_LIMIT, "the archive has more than %llu entries",
			       (unsigned long long)u->limits.files_most);
	u->out->files++;
	if (image_tree_clean(name, in.path, e) < 0)
		return -1;
	if (unpack_below_deletion(in.path))
		return err_set(e, ERR_INVALID, "'%.120s' lies below a deletion", name);
	return unpack_kind(u, entry, &in, e) < 0 ? err_in(e, "'%.100s'", name) : 0;
}

static int unpack_all(struct unpack *u, struct err *e)
{
	struct archive_entry *entry;
	int rc;

	if (unpack_open_packed(u, e) < 0 || unpack_open_tar(u, e) < 0)
		return -1;
	/* A warning: a name that is not ASCII. Its bytes are used unchanged. */
	while ((rc = libarchive.read_next_header(u->tar, &entry)) == ARCHIVE_OK ||
	       rc == ARCHIVE_WARN)
		if (unpack_entry(u, entry, e) < 0)
			return -1;
	return rc == ARCHIVE_EOF ? unpack_end(u, e) : unpack_failed(u, u->tar, e);
}

/* The folder itself, in case that the archive has no entry for it. */
static int unpack_root(int root, struct err *e)
{
	static const struct image_entry in = { .mode = S_IFDIR | 0755 };

	return image_tree_finish(root, &in, e);
}

int image_unpack(int archive, int root, const struct image_limits *limits, struct image_sum *out,
		 struct err *e)
{
	struct unpack *u = calloc(1, sizeof(*u));
	uint8_t digest[SHA256_BYTES];
	int done;

	if (!u)
		abort();
	*out = (struct image_sum){ 0 };
	u->fd = archive;
	u->root = root;
	u->limits = *limits;
	if (u->limits.files_most > IMAGE_UNPACK_ENTRIES)
		u->limits.files_most = IMAGE_UNPACK_ENTRIES;
	if (u->limits.bytes_most > INT64_MAX / 2)
		u->limits.bytes_most = INT64_MAX / 2;
	u->stream_most = u->limits.bytes_most + u->limits.files_most * HEADERS_MOST + HEADERS_FREE;
	u->out = out;
	sha256_init(&u->sum);
	done = unpack_root(root, e) < 0 ? -1 : unpack_all(u, e);
	sha256_end(&u->sum, digest);
	hex_encode(out->diff, digest, sizeof(digest));
	libarchive.read_free(u->tar);
	libarchive.read_free(u->packed);
	free(u);
	return done;
}
