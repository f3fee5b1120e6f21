/* checkpoint_archive.c - `atoll checkpoint export` and `import`: the files of a checkpoint as an archive of an OCI image
 * with one layer, or as that layer alone.
 *
 *	blobs/sha256/LAYER, blobs/sha256/CONFIG, blobs/sha256/MANIFEST, index.json, oci-layout
 *
 * The layer is the first entry, so that it is received in its place; its header is written when its hash is known. */
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/units.h"
#include "commands/checkpoint_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	BLOCK = 512,
	PIECE = 64 << 10,
	JSON_MOST = 4 << 20,
	ENTRIES_MOST = 10000,
	HASH = 2 * SHA256_BYTES + 1
};
#define LAYER_TYPE "application/vnd.oci.image.layer.v1.tar"
#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define CONFIG_TYPE "application/vnd.oci.image.config.v1+json"
#define OCTAL_11 (UINT64_C(1) << 33)

static int archive_failed(struct api_client *r, const char *what, const char *path)
{
	int status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_FAILED;
	char shown[SHOWN];

	cli_error_what(&r->error, status == STATUS_FAILED ? "failed" : "not_found", "%s %s: %s",
		       what, cli_error_shown(path, shown), strerror(errno));
	return r->status = status;
}

static int archive_hash(int fd, off_t at, uint64_t size, char out[HASH])
{
	static char bytes[PIECE];
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	while (size) {
		ssize_t n = pread(fd, bytes, size < PIECE ? (size_t)size : PIECE, at);

		if (n <= 0)
			return -1;
		sha256_add(&s, bytes, (size_t)n);
		at += n;
		size -= (uint64_t)n;
	}
	sha256_end(&s, sum);
	hex_encode(out, sum, sizeof(sum));
	return 0;
}

/* ---- export ---- */

static void archive_header(char b[BLOCK], const char *name, uint64_t size)
{
	unsigned sum = 0;

	memset(b, 0, BLOCK);
	snprintf(b, 100, "%s", name);
	memcpy(b + 100, "0000644", 7);
	memcpy(b + 108, "0000000", 7);
	memcpy(b + 116, "0000000", 7);
	memcpy(b + 136, "00000000000", 11);
	if (size < OCTAL_11) {
		snprintf(b + 124, 12, "%011llo", (unsigned long long)size);
	} else { /* a binary number, as GNU tar writes it */
		b[124] = (char)0x80;
		for (int i = 0; i < 8; i++)
			b[135 - i] = (char)(size >> 8 * i);
	}
	memset(b + 148, ' ', 8);
	b[156] = '0';
	memcpy(b + 257, "ustar\00000", 8);
	for (int i = 0; i < BLOCK; i++)
		sum += (unsigned char)b[i];
	snprintf(b + 148, 8, "%06o", sum);
}

static int archive_put(int fd, const void *bytes, size_t n)
{
	return write(fd, bytes, n) == (ssize_t)n ? 0 : -1;
}

static int archive_pad(int fd, uint64_t size)
{
	static const char zeros[BLOCK];

	return archive_put(fd, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

static int archive_add(int fd, const char *name, const char *text, size_t n)
{
	char head[BLOCK];

	archive_header(head, name, n);
	return archive_put(fd, head, BLOCK) < 0 || archive_put(fd, text, n) < 0 ||
			       archive_pad(fd, n) < 0
		       ? -1
		       : 0;
}

/* As a blob; a descriptor of it is returned. */
static json_t *archive_add_blob(int fd, const char *type, json_t *take_doc)
{
	char *text = json_dumps(take_doc, JSON_COMPACT | JSON_SORT_KEYS);
	char hash[HASH], name[100];
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;
	json_t *out = NULL;

	if (!text)
		abort();
	sha256_init(&s);
	sha256_add(&s, text, strlen(text));
	sha256_end(&s, sum);
	hex_encode(hash, sum, sizeof(sum));
	snprintf(name, sizeof(name), "blobs/sha256/%s", hash);
	if (archive_add(fd, name, text, strlen(text)) == 0)
		out = json_pack("{s:s, s:o, s:I}", "mediaType", type, "digest",
				json_sprintf("sha256:%s", hash), "size", (json_int_t)strlen(text));
	free(text);
	json_decref(take_doc);
	return out;
}

static const char *archive_architecture(void)
{
#if defined(__x86_64__)
	return "amd64";
#else
	return "arm64";
#endif
}

/* The layer lies after the first block. */
static int archive_complete(int fd, uint64_t size, const char *id)
{
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}", zeros[2 * BLOCK];
	char hash[HASH], name[100], head[BLOCK];
	json_t *config, *manifest, *layer, *index;
	char *text;
	int rc;

	if (archive_hash(fd, BLOCK, size, hash) < 0 || lseek(fd, 0, SEEK_END) < 0 ||
	    archive_pad(fd, size) < 0)
		return -1;
	snprintf(name, sizeof(name), "blobs/sha256/%s", hash);
	archive_header(head, name, size);
	if (pwrite(fd, head, BLOCK, 0) != BLOCK)
		return -1;
	config = archive_add_blob(fd, CONFIG_TYPE,
				  json_pack("{s:s, s:s, s:{}, s:{s:s, s:[o]}}", "architecture",
					    archive_architecture(), "os", "linux", "config",
					    "rootfs", "type", "layers", "diff_ids",
					    json_sprintf("sha256:%s", hash)));
	layer = json_pack("{s:s, s:o, s:I}", "mediaType", LAYER_TYPE, "digest",
			  json_sprintf("sha256:%s", hash), "size", (json_int_t)size);
	if (!config) {
		json_decref(layer);
		return -1;
	}
	manifest = archive_add_blob(fd, MANIFEST_TYPE,
				    json_pack("{s:i, s:s, s:o, s:[o]}", "schemaVersion", 2,
					      "mediaType", MANIFEST_TYPE, "config", config,
					      "layers", layer));
	if (!manifest)
		return -1;
	json_object_set_new(manifest, "annotations",
			    json_pack("{s:s}", "org.opencontainers.image.ref.name", id));
	index = json_pack("{s:i, s:[o]}", "schemaVersion", 2, "manifests", manifest);
	text = json_dumps(index, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(index);
	rc = !text || archive_add(fd, "index.json", text, strlen(text)) < 0 ||
			     archive_add(fd, "oci-layout", layout, strlen(layout)) < 0 ||
			     archive_put(fd, zeros, sizeof(zeros)) < 0
		     ? -1
		     : 0;
	free(text);
	return rc;
}

int checkpoint_file_export(struct api_client *r, const char *id, const char *path, int delta,
			   int layer)
{
	auto_free char *url = delta ? api_client_path("/v1/checkpoints/%s/export?delta=true", id)
				    : api_client_path("/v1/checkpoints/%s/export", id);
	struct api_client_bytes x = { .method = "GET", .path = url, .from = -1 };
	auto_buf struct buf hidden = { 0 };
	auto_fd int fd = -1;
	char size[UNITS_TEXT];

	buf_printf(&hidden, "%s.XXXXXX", path);
	fd = mkostemp(hidden.p, O_CLOEXEC);
	if (fd < 0)
		return archive_failed(r, "write", path);
	if (!layer)
		(void)!lseek(fd, BLOCK, SEEK_SET);
	x.to = fd;
	r->status = api_client_bytes(r, &x);
	if (!r->status && ((!layer && archive_complete(fd, x.written, id) < 0) ||
			   fchmod(fd, 0644) < 0 || rename(hidden.p, path) < 0))
		archive_failed(r, "write", path);
	if (r->status)
		unlink(hidden.p);
	else if (!r->cli->quiet && !r->cli->json)
		fprintf(stderr, "wrote %s\n", units_size(size, x.written));
	return r->status;
}

/* ---- import ---- */

struct entries {
	struct entry {
		char name[101];
		off_t at;
		uint64_t size;
	} * v;
	unsigned n;
};

static uint64_t archive_size(const char *b)
{
	uint64_t size = 0;

	if (!(b[0] & 0x80))
		return strtoull(b, NULL, 8);
	for (int i = 4; i < 12; i++)
		size = size << 8 | (unsigned char)b[i];
	return size;
}

/* The plain entries of a tar archive; names that are longer than its headers are left out. */
static void entries_read(struct entries *l, int fd, uint64_t end)
{
	uint64_t at = 0;
	char b[BLOCK];

	l->v = calloc(ENTRIES_MOST, sizeof(*l->v));
	if (!l->v)
		abort();
	while (l->n < ENTRIES_MOST && pread(fd, b, BLOCK, (off_t)at) == BLOCK &&
	       !memcmp(b + 257, "ustar", 5)) {
		struct entry *x = &l->v[l->n];

		at += BLOCK;
		x->at = (off_t)at;
		x->size = archive_size(b + 124);
		if (x->size > end - at)
			return;
		memcpy(x->name, b, 100);
		l->n += b[156] == '0' || !b[156];
		at += (x->size + BLOCK - 1) / BLOCK * BLOCK;
	}
}

static const struct entry *entries_find(const struct entries *l, const char *name)
{
	for (unsigned i = 0; i < l->n; i++) {
		const char *has = l->v[i].name;

		if (!strcmp(has + (strncmp(has, "./", 2) ? 0 : 2), name))
			return &l->v[i];
	}
	return NULL;
}

static const struct entry *entries_blob(const struct entries *l, const json_t *descriptor)
{
	const char *digest = api_client_text(descriptor, "digest");
	char name[128];

	if (strncmp(digest, "sha256:", 7) != 0)
		return NULL;
	snprintf(name, sizeof(name), "blobs/sha256/%.64s", digest + 7);
	return entries_find(l, name);
}

static json_t *entries_json(const struct entry *x, int fd)
{
	auto_free char *text = x && x->size <= JSON_MOST ? malloc(x->size + 1) : NULL;

	if (!text || pread(fd, text, x->size, x->at) != (ssize_t)x->size)
		return NULL;
	return json_loadb(text, x->size, 0, NULL);
}

/* Where the layer lies: all of a file that is no image. */
static int archive_find_layer(struct api_client *r, int fd, const char *path, off_t *at,
			      uint64_t *size)
{
	struct entries l = { 0 };
	json_t *index, *manifest;
	const json_t *layers, *one;
	const struct entry *blob;
	struct stat st;
	char shown[SHOWN];

	if (fstat(fd, &st) < 0)
		return archive_failed(r, "read", path);
	*at = 0;
	*size = (uint64_t)st.st_size;
	entries_read(&l, fd, *size);
	index = entries_json(entries_find(&l, "index.json"), fd);
	if (!index || !entries_find(&l, "oci-layout")) {
		json_decref(index);
		free(l.v);
		return 0;
	}
	one = json_array_get(json_object_get(index, "manifests"), 0);
	manifest = entries_json(entries_blob(&l, one), fd);
	layers = json_object_get(manifest, "layers");
	blob = entries_blob(&l, json_array_get(layers, 0));
	if (json_array_size(layers) != 1 || !blob) {
		api_client_usage(r, "%s is an image of %zu layers; a checkpoint has one",
				 cli_error_shown(path, shown), json_array_size(layers));
	} else {
		*at = blob->at;
		*size = blob->size;
	}
	json_decref(index);
	json_decref(manifest);
	free(l.v);
	return r->status;
}

struct part { /* of a file that is sent */
	int fd;
	off_t at;
	uint64_t left;
};

static ssize_t part_more(void *ctx, void *out, size_t room, struct err *e)
{
	struct part *p = ctx;
	ssize_t n = pread(p->fd, out, p->left < room ? (size_t)p->left : room, p->at);

	if (n < 0 || (!n && p->left))
		return err_sys(e, "read the archive");
	p->at += n;
	p->left -= (uint64_t)n;
	return n;
}

int checkpoint_file_import(struct api_client *r, const char *box, const char *path,
			   const char *name, int pin)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_free char *url = api_client_path("/v1/boxes/%s/checkpoints/import?pin=%s", box,
					      pin ? "true" : "false");
	auto_buf struct buf full = { 0 };
	struct part part = { .fd = fd };
	struct api_client_bytes x = { .method = "POST",
				      .type = "application/x-tar",
				      .from = -1,
				      .more = part_more,
				      .ctx = &part,
				      .to = -1 };

	if (fd < 0)
		return archive_failed(r, "read", path);
	if (archive_find_layer(r, fd, path, &part.at, &part.left))
		return r->status;
	buf_printf(&full, "%s%s%s", url, name ? "&name=" : "", name ? name : "");
	x.path = buf_str(&full);
	r->status = api_client_bytes(r, &x);
	if (r->status)
		api_client_explain_box(r, box);
	else if (r->cli->json)
		api_client_print(x.answer);
	else
		puts(api_client_text(x.answer, "id"));
	json_decref(x.answer);
	return r->status;
}
