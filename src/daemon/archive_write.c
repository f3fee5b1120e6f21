/* archive_write.c - see archive.h: writing. */
#include "daemon/archive.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 512, CHUNK = 1 << 20 };

/* ---- bytes ---- */

static int archive_put(struct archive_writer *w, EVP_MD_CTX *hash, const void *bytes, size_t n,
		       struct err *e)
{
	const char *p = bytes;

	if (hash)
		EVP_DigestUpdate(hash, bytes, n);
	for (size_t did = 0; did < n;) {
		ssize_t got = write(w->fd, p + did, n - did);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return err_sys(e, "write the archive");
		did += (size_t)got;
	}
	w->bytes += n;
	return 0;
}

static int archive_pad(struct archive_writer *w, struct err *e)
{
	static const char zeros[BLOCK];

	return w->bytes % BLOCK ? archive_put(w, NULL, zeros, BLOCK - w->bytes % BLOCK, e) : 0;
}

/* Octal, or for what does not fit the binary form of GNU tar. */
static void archive_number(unsigned char *out, unsigned width, uint64_t n)
{
	if (n < 1ull << (3 * (width - 1))) {
		snprintf((char *)out, width, "%0*llo", (int)width - 1, (unsigned long long)n);
		return;
	}
	memset(out, 0, width);
	for (unsigned i = width - 1; n; i--, n >>= 8)
		out[i] = (unsigned char)n;
	out[0] |= 0x80;
}

static int archive_head(struct archive_writer *w, const char *name, char type, uint64_t bytes,
			struct err *e)
{
	unsigned char h[BLOCK] = { 0 };
	unsigned sum = 0;

	memcpy(h, name, strlen(name)); /* at most 100 bytes, then without a NUL */
	archive_number(h + 100, 8, 0600);
	archive_number(h + 108, 8, 0);
	archive_number(h + 116, 8, 0);
	archive_number(h + 124, 12, bytes);
	archive_number(h + 136, 12, 0);
	memset(h + 148, ' ', 8);
	h[156] = (unsigned char)type;
	memcpy(h + 257, "ustar\00000", 8);
	for (unsigned i = 0; i < BLOCK; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
	return archive_put(w, NULL, h, sizeof(h), e);
}

/* ---- holes ---- */

struct archive_part {
	uint64_t at, n;
};

/* The parts of a file that have data. n 1 and the whole file: it has no holes. */
static int archive_parts(int from, uint64_t size, struct archive_part **out, unsigned *out_n,
			 struct err *e)
{
	auto_free struct archive_part *v = NULL;
	unsigned n = 0;

	for (off_t at = 0, end; (uint64_t)at < size; at = end) {
		at = lseek(from, at, SEEK_DATA);
		if (at < 0 && errno == ENXIO)
			break; /* only a hole is left */
		end = at < 0 ? -1 : lseek(from, at, SEEK_HOLE);
		if (end < 0)
			return err_sys(e, "find the holes");
		if ((uint64_t)at >= size)
			break;
		if ((uint64_t)end > size)
			end = (off_t)size;
		v = realloc(v, (n + 1) * sizeof(*v));
		if (!v)
			abort();
		v[n++] = (struct archive_part){ (uint64_t)at, (uint64_t)(end - at) };
	}
	*out = steal(&v);
	*out_n = n;
	return 0;
}

/* The map at the beginning of a sparse member: decimal numbers, a line each. A part of no bytes at its end says how large
 * the file is. */
static void archive_map(struct buf *map, const struct archive_part *v, unsigned n, uint64_t size)
{
	static const char zeros[BLOCK];

	buf_printf(map, "%u\n", n + 1);
	for (unsigned i = 0; i < n; i++)
		buf_printf(map, "%llu\n%llu\n", (unsigned long long)v[i].at,
			   (unsigned long long)v[i].n);
	buf_printf(map, "%llu\n0\n", (unsigned long long)size);
	if (map->len % BLOCK)
		buf_add(map, zeros, BLOCK - map->len % BLOCK);
}

/* One record: its length, which counts itself, and the text. */
static void archive_pax(struct buf *out, const char *key, const char *value)
{
	size_t n = strlen(key) + strlen(value) + 3, all = n;
	char text[24];

	while (all != n + (size_t)snprintf(text, sizeof(text), "%zu", all))
		all = n + strlen(text);
	buf_printf(out, "%zu %s=%s\n", all, key, value);
}

void archive_pax_text(struct buf *out, const char *name, uint64_t size)
{
	char number[24];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)size);
	archive_pax(out, "GNU.sparse.major", "1");
	archive_pax(out, "GNU.sparse.minor", "0");
	archive_pax(out, "GNU.sparse.name", name);
	archive_pax(out, "GNU.sparse.realsize", number);
}

static int archive_head_sparse(struct archive_writer *w, const char *name, uint64_t size,
			       uint64_t stored, struct err *e)
{
	auto_buf struct buf pax = { 0 };
	char plain[128];

	archive_pax_text(&pax, name, size);
	snprintf(plain, sizeof(plain), "sparse.%s", name);
	return archive_head(w, "pax", 'x', pax.len, e) < 0 ||
			       archive_put(w, NULL, pax.p, pax.len, e) < 0 || archive_pad(w, e) < 0
		       ? -1
		       : archive_head(w, plain, '0', stored, e);
}

/* ---- members ---- */

static int archive_copy(struct archive_writer *w, EVP_MD_CTX *hash, int from,
			const struct archive_part *p, struct err *e)
{
	auto_free char *chunk = malloc(CHUNK);

	if (!chunk)
		abort();
	for (uint64_t did = 0; did < p->n;) {
		size_t want = p->n - did < CHUNK ? (size_t)(p->n - did) : CHUNK;
		ssize_t got = pread(from, chunk, want, (off_t)(p->at + did));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "read");
		if (got == 0)
			return err_set(e, ERR_CONFLICT, "became shorter while it was read");
		if (archive_put(w, hash, chunk, (size_t)got, e) < 0)
			return -1;
		did += (uint64_t)got;
	}
	return 0;
}

static int archive_body(struct archive_writer *w, EVP_MD_CTX *hash, const char *name, int from,
			uint64_t size, struct err *e)
{
	auto_free struct archive_part *v = NULL;
	auto_buf struct buf map = { 0 };
	unsigned n = 0;
	uint64_t stored = 0;

	if (archive_parts(from, size, &v, &n, e) < 0)
		return -1;
	for (unsigned i = 0; i < n; i++)
		stored += v[i].n;
	if (stored < size) {
		archive_map(&map, v, n, size);
		stored += map.len;
		if (archive_head_sparse(w, name, size, stored, e) < 0 ||
		    archive_put(w, hash, map.p, map.len, e) < 0)
			return -1;
	} else if (archive_head(w, name, '0', size, e) < 0) {
		return -1;
	}
	for (unsigned i = 0; i < n; i++)
		if (archive_copy(w, hash, from, &v[i], e) < 0)
			return -1;
	return archive_pad(w, e);
}

static void archive_list(struct archive_writer *w, const char *name, uint64_t size,
			 EVP_MD_CTX *hash)
{
	unsigned char sum[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	EVP_DigestFinal_ex(hash, sum, NULL);
	hex_encode(hex, sum, sizeof(sum));
	if (!w->files)
		w->files = json_array();
	json_array_append_new(w->files, json_pack("{s:s, s:I, s:s}", "path", name, "bytes",
						  (json_int_t)size, "sha256", hex));
}

int archive_add(struct archive_writer *w, const char *name, int from, struct err *e)
{
	EVP_MD_CTX *hash;
	struct stat st;
	int rc;

	if (!archive_name_valid(name))
		return err_set(e, ERR_INVALID, "'%.100s' cannot be a name in a backup", name);
	if (fstat(from, &st) < 0)
		return err_sys(e, "%s", name);
	hash = EVP_MD_CTX_new();
	if (!hash || EVP_DigestInit_ex(hash, EVP_sha256(), NULL) != 1)
		abort();
	rc = archive_body(w, hash, name, from, (uint64_t)st.st_size, e);
	if (rc == 0)
		archive_list(w, name, (uint64_t)st.st_size, hash);
	EVP_MD_CTX_free(hash);
	return rc < 0 ? err_in(e, "%s", name) : 0;
}

int archive_finish(struct archive_writer *w, json_t *take_about, struct err *e)
{
	static const char zeros[2 * BLOCK];
	auto_free char *text = NULL;
	size_t n;

	json_object_set_new(take_about, "format", json_integer(ARCHIVE_FORMAT));
	json_object_set_new(take_about, "files", w->files ? w->files : json_array());
	w->files = NULL;
	text = json_dumps(take_about, JSON_INDENT(1));
	json_decref(take_about);
	if (!text)
		abort();
	n = strlen(text);
	if (archive_head(w, ARCHIVE_MANIFEST, '0', n, e) < 0 ||
	    archive_put(w, NULL, text, n, e) < 0 || archive_pad(w, e) < 0)
		return -1;
	return archive_put(w, NULL, zeros, sizeof(zeros), e);
}

void archive_writer_fini(struct archive_writer *w)
{
	json_decref(w->files);
	w->files = NULL;
}
