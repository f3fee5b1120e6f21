/* archive_read.c - see archive.h: reading. Only what archive_write.c writes is accepted. */
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
#include <unistd.h>

enum { BLOCK = 512, CHUNK = 1 << 20, PAX_MAX = 4096, PARTS_MAX = 1 << 20, NAME_ROOM = 128 };

struct archive_member {
	char name[NAME_ROOM];
	uint64_t stored; /* bytes in the archive */
	uint64_t size;   /* of the file */
	int sparse;
};

/* What is done with the bytes of members. */
struct archive_reader {
	int fd;
	uint64_t at;
	int (*begin)(struct archive_reader *r, const struct archive_member *m, struct err *e);
	int (*bytes)(struct archive_reader *r, const char *p, size_t n, struct err *e);
	int (*end)(struct archive_reader *r, const struct archive_member *m, struct err *e);
	void *ctx;
};

int archive_name_valid(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= ARCHIVE_NAME && name[0] != '/' && name[0] != '.' &&
	       !strstr(name, "..") && !strstr(name, "//") && name[n - 1] != '/' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") ==
		       n;
}

static int archive_read(struct archive_reader *r, void *out, size_t n, struct err *e)
{
	for (size_t did = 0; did < n;) {
		ssize_t got = read(r->fd, (char *)out + did, n - did);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "read the archive");
		if (got == 0)
			return err_set(e, ERR_INVALID,
				       "the archive was cut: it ends after %llu bytes",
				       (unsigned long long)(r->at + did));
		did += (size_t)got;
	}
	r->at += n;
	return 0;
}

static int archive_skip_pad(struct archive_reader *r, struct err *e)
{
	char rest[BLOCK];

	return r->at % BLOCK ? archive_read(r, rest, BLOCK - r->at % BLOCK, e) : 0;
}

/* ---- headers ---- */

static uint64_t archive_parse_number(const unsigned char *p, unsigned width)
{
	uint64_t n = 0;

	if (p[0] & 0x80) {
		for (unsigned i = 1; i < width; i++)
			n = n << 8 | p[i];
		return n;
	}
	for (unsigned i = 0; i < width && p[i] >= '0' && p[i] <= '7'; i++)
		n = n << 3 | (uint64_t)(p[i] - '0');
	return n;
}

static int archive_sum_fits(const unsigned char h[BLOCK])
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : h[i];
	return sum == archive_parse_number(h + 148, 8);
}

static const char *archive_pax_value(const char *text, const char *key, char out[NAME_ROOM])
{
	const char *at = strstr(text, key);
	size_t n;

	if (!at)
		return NULL;
	at += strlen(key);
	n = strcspn(at, "\n");
	snprintf(out, NAME_ROOM, "%.*s", (int)(n < NAME_ROOM ? n : NAME_ROOM - 1), at);
	return out;
}

/* The extended header of a sparse member. */
static int archive_read_pax(struct archive_reader *r, uint64_t n, struct archive_member *m,
			    struct err *e)
{
	char text[PAX_MAX + 1], value[NAME_ROOM];
	auto_buf struct buf again = { 0 };

	if (n > PAX_MAX)
		return err_set(e, ERR_INVALID, "an extended header of %llu bytes",
			       (unsigned long long)n);
	if (archive_read(r, text, (size_t)n, e) < 0 || archive_skip_pad(r, e) < 0)
		return -1;
	text[n] = 0;
	if (!archive_pax_value(text, " GNU.sparse.name=", m->name) ||
	    !archive_pax_value(text, " GNU.sparse.realsize=", value))
		return err_set(e, ERR_INVALID, "an extended header that no backup has");
	m->size = strtoull(value, NULL, 10);
	archive_pax_text(&again, m->name, m->size);
	if (again.len != n || memcmp(again.p, text, again.len) != 0)
		return err_set(e, ERR_INVALID, "an extended header that was changed");
	m->sparse = 1;
	return 0;
}

static int archive_is_zero(const unsigned char h[BLOCK])
{
	for (unsigned i = 0; i < BLOCK; i++)
		if (h[i])
			return 0;
	return 1;
}

/* 1: a member; 0: the end. */
static int archive_next(struct archive_reader *r, struct archive_member *m, struct err *e)
{
	unsigned char h[BLOCK];

	*m = (struct archive_member){ 0 };
	for (;;) {
		if (archive_read(r, h, sizeof(h), e) < 0)
			return -1;
		if (archive_is_zero(h))
			return archive_read(r, h, sizeof(h), e) < 0 ? -1 : 0;
		if (memcmp(h + 257, "ustar", 5) || !archive_sum_fits(h) ||
		    (h[156] != '0' && h[156] != 'x'))
			return err_set(e, ERR_INVALID,
				       "not a backup of atoll, or changed at byte %llu",
				       (unsigned long long)(r->at - BLOCK));
		m->stored = archive_parse_number(h + 124, 12);
		if (h[156] == '0')
			break;
		if (m->sparse)
			return err_set(e, ERR_INVALID, "two extended headers in a row");
		if (archive_read_pax(r, m->stored, m, e) < 0)
			return -1;
	}
	if (!m->sparse) {
		snprintf(m->name, sizeof(m->name), "%.100s", (const char *)h);
		m->size = m->stored;
	}
	return archive_name_valid(m->name)
		       ? 1
		       : err_set(e, ERR_INVALID, "'%.80s' is no name of a backup", m->name);
}

static int archive_read_member(struct archive_reader *r, const struct archive_member *m,
			       struct err *e)
{
	auto_free char *chunk = malloc(CHUNK);

	if (!chunk)
		abort();
	if (r->begin(r, m, e) < 0)
		return -1;
	for (uint64_t did = 0; did < m->stored;) {
		size_t n = m->stored - did < CHUNK ? (size_t)(m->stored - did) : CHUNK;

		if (archive_read(r, chunk, n, e) < 0 || r->bytes(r, chunk, n, e) < 0)
			return -1;
		did += n;
	}
	return r->end(r, m, e) < 0 ? -1 : archive_skip_pad(r, e);
}

static int archive_each(struct archive_reader *r, struct err *e)
{
	struct archive_member m;
	int rc;

	if (lseek(r->fd, 0, SEEK_SET) < 0)
		return err_sys(e, "read the archive");
	while ((rc = archive_next(r, &m, e)) > 0)
		if (archive_read_member(r, &m, e) < 0)
			return err_in(e, "%s", m.name);
	return rc;
}

/* ---- verification ---- */

struct archive_check {
	EVP_MD_CTX *hash;
	json_t *seen; /* path -> hash */
	struct buf manifest;
	int in_manifest, ended;
};

static int check_begin(struct archive_reader *r, const struct archive_member *m, struct err *e)
{
	struct archive_check *c = r->ctx;

	c->in_manifest = !strcmp(m->name, ARCHIVE_MANIFEST);
	if (c->ended)
		return err_set(e, ERR_INVALID, "follows the manifest, which is the last member");
	if (json_object_get(c->seen, m->name))
		return err_set(e, ERR_INVALID, "occurs twice");
	if (c->in_manifest && m->stored > ARCHIVE_MANIFEST_MAX)
		return err_set(e, ERR_INVALID, "has %llu bytes", (unsigned long long)m->stored);
	return EVP_DigestInit_ex(c->hash, EVP_sha256(), NULL) == 1
		       ? 0
		       : err_set(e, ERR_SYS, "OpenSSL has failed");
}

static int check_bytes(struct archive_reader *r, const char *p, size_t n, struct err *e)
{
	struct archive_check *c = r->ctx;

	(void)e;
	if (c->in_manifest)
		buf_add(&c->manifest, p, n);
	EVP_DigestUpdate(c->hash, p, n);
	return 0;
}

static int check_end(struct archive_reader *r, const struct archive_member *m, struct err *e)
{
	struct archive_check *c = r->ctx;
	unsigned char sum[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];

	(void)e;
	EVP_DigestFinal_ex(c->hash, sum, NULL);
	hex_encode(hex, sum, sizeof(sum));
	if (c->in_manifest)
		c->ended = 1;
	else
		json_object_set_new(c->seen, m->name,
				    json_pack("{s:s, s:I}", "sha256", hex, "bytes",
					      (json_int_t)m->size));
	return 0;
}

/* Every member is in the manifest as it is, and every file of the manifest is a member. */
static int check_manifest(const struct archive_check *c, const json_t *manifest, struct err *e)
{
	const json_t *files = json_object_get(manifest, "files");
	json_int_t format = json_integer_value(json_object_get(manifest, "format"));
	json_t *file;
	size_t i;

	if (!json_is_array(files) || format != ARCHIVE_FORMAT)
		return err_set(e, ERR_INVALID,
			       ARCHIVE_MANIFEST ": format %lld is not %d, the one of this version",
			       (long long)format, ARCHIVE_FORMAT);
	json_array_foreach(files, i, file)
	{
		const char *path = json_string_value(json_object_get(file, "path"));
		const json_t *has = json_object_get(c->seen, path ? path : "");

		if (!has)
			return err_set(e, ERR_INVALID,
				       "%.100s: is in the manifest and not in the archive",
				       path ? path : "a file without a name");
		if (!json_equal(json_object_get(file, "sha256"), json_object_get(has, "sha256")) ||
		    !json_equal(json_object_get(file, "bytes"), json_object_get(has, "bytes")))
			return err_set(
				e, ERR_INVALID,
				"%.100s: was changed: its checksum is not that of the manifest",
				path);
	}
	return json_array_size(files) == json_object_size(c->seen)
		       ? 0
		       : err_set(e, ERR_INVALID,
				 "the archive has files that are not in its manifest");
}

int archive_verify(int fd, json_t **out, struct err *e)
{
	struct archive_check c = { .hash = EVP_MD_CTX_new(), .seen = json_object() };
	struct archive_reader r = {
		.fd = fd, .begin = check_begin, .bytes = check_bytes, .end = check_end, .ctx = &c
	};
	json_t *manifest = NULL;
	int rc = archive_each(&r, e);

	if (rc == 0 && !c.ended)
		rc = err_set(e, ERR_INVALID, "the archive was cut: it has no manifest");
	if (rc == 0 && !(manifest = json_loadb(buf_str(&c.manifest), c.manifest.len,
					       JSON_REJECT_DUPLICATES, NULL)))
		rc = err_set(e, ERR_INVALID, ARCHIVE_MANIFEST " is not JSON");
	if (rc == 0)
		rc = check_manifest(&c, manifest, e);
	if (rc == 0)
		*out = manifest;
	else
		json_decref(manifest);
	EVP_MD_CTX_free(c.hash);
	json_decref(c.seen);
	buf_fini(&c.manifest);
	return rc;
}

/* ---- extraction ---- */

struct archive_target {
	int (*open)(void *ctx, const char *name, struct err *e);
	void *ctx;
	int fd; /* -1: the member is not extracted */
	int sparse;
	struct buf map; /* what was read of the map of a sparse member; its rest after the map */
	uint64_t *parts;
	size_t nparts, part, into;
	int has_map;
};

static int target_write(struct archive_target *t, uint64_t at, const char *p, size_t n,
			struct err *e)
{
	while (n) {
		ssize_t did = pwrite(t->fd, p, n, (off_t)at);

		if (did < 0 && errno == EINTR)
			continue;
		if (did <= 0)
			return err_sys(e, "write");
		p += did;
		at += (uint64_t)did;
		n -= (size_t)did;
	}
	return 0;
}

static int target_begin(struct archive_reader *r, const struct archive_member *m, struct err *e)
{
	struct archive_target *t = r->ctx;

	t->sparse = m->sparse;
	t->has_map = 0;
	t->part = t->into = t->nparts = 0;
	buf_cut(&t->map, 0);
	t->fd = -1;
	if (!strcmp(m->name, ARCHIVE_MANIFEST))
		return 0;
	t->fd = t->open(t->ctx, m->name, e);
	if (t->fd < 0)
		return -1;
	return ftruncate(t->fd, m->sparse ? (off_t)m->size : 0) < 0 ? err_sys(e, "write") : 0;
}

/* 1: the map is complete, and *used of its bytes belong to it; 0: more is needed. */
static int target_read_map(struct archive_target *t, size_t *used, struct err *e)
{
	const char *p = buf_str(&t->map), *end;
	size_t want = 1, n = 0;
	uint64_t count = 0;

	for (; n < want; n++, p = end + 1) {
		uint64_t value = strtoull(p, (char **)&end, 10);

		if (*end != '\n')
			return *end ? err_set(e, ERR_INVALID, "its map is damaged") : 0;
		if (n == 0) {
			count = value;
			if (count > PARTS_MAX)
				return err_set(e, ERR_INVALID, "%llu parts",
					       (unsigned long long)count);
			want = 1 + 2 * (size_t)count;
			t->parts = realloc(t->parts, want * sizeof(*t->parts));
			if (!t->parts)
				abort();
		} else {
			t->parts[n - 1] = value;
		}
	}
	*used = ((size_t)(p - buf_str(&t->map)) + BLOCK - 1) / BLOCK * BLOCK;
	t->nparts = (size_t)count;
	return t->map.len >= *used;
}

static int target_put(struct archive_target *t, const char *p, size_t n, struct err *e)
{
	while (n) {
		uint64_t left;
		size_t now;

		if (t->part == t->nparts)
			return err_set(e, ERR_INVALID, "more data than its map has");
		left = t->parts[2 * t->part + 1] - t->into;
		now = left < n ? (size_t)left : n;
		if (target_write(t, t->parts[2 * t->part] + t->into, p, now, e) < 0)
			return -1;
		p += now;
		n -= now;
		t->into += now;
		if (t->into == t->parts[2 * t->part + 1]) {
			t->part++;
			t->into = 0;
		}
	}
	return 0;
}

static int target_bytes(struct archive_reader *r, const char *p, size_t n, struct err *e)
{
	struct archive_target *t = r->ctx;
	size_t used = 0;
	int rc;

	if (t->fd < 0)
		return 0;
	if (!t->sparse) {
		rc = target_write(t, t->into, p, n, e);
		t->into += n;
		return rc;
	}
	if (t->has_map)
		return target_put(t, p, n, e);
	buf_add(&t->map, p, n);
	rc = target_read_map(t, &used, e);
	if (rc <= 0)
		return rc;
	t->has_map = 1;
	return target_put(t, t->map.p + used, t->map.len - used, e);
}

static int target_end(struct archive_reader *r, const struct archive_member *m, struct err *e)
{
	struct archive_target *t = r->ctx;
	int rc = 0;

	(void)m;
	if (t->fd < 0)
		return 0;
	if (fsync(t->fd) < 0)
		rc = err_sys(e, "write");
	own_close_fd(&t->fd);
	return rc;
}

int archive_extract(int fd, int (*open)(void *ctx, const char *name, struct err *e), void *ctx,
		    struct err *e)
{
	struct archive_target t = { .open = open, .ctx = ctx, .fd = -1 };
	struct archive_reader r = {
		.fd = fd, .begin = target_begin, .bytes = target_bytes, .end = target_end, .ctx = &t
	};
	int rc = archive_each(&r, e);

	own_close_fd(&t.fd);
	buf_fini(&t.map);
	free(t.parts);
	return rc;
}
