/* image_read.c - an image that skopeo has written in the box: its files are read, checked against their
 * digests, and its layers are unpacked by the keeper. See image_internal.h. */
#include "template/image_internal.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "fleet/box.h"
#include "store/builds.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- layers ---- */

static void image_next_layer(struct image_pull *p);

/* What the team's cache has for a blob. */
static void image_layer_key(const char *digest, char out[STORE_HASH + 1])
{
	static const char head[] = "image layer\n";
	uint8_t key[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, head, sizeof(head) - 1);
	sha256_add(&s, digest, STORE_HASH);
	sha256_end(&s, key);
	hex_encode(out, key, sizeof(key));
}

static char *image_layer(struct image_pull *p)
{
	return p->image.layer[p->manifest.nlayers - 1 - p->at];
}

static int image_layer_record(struct image_pull *p, const struct wire_layer *l, struct err *e)
{
	struct store_layer row = { .bytes = l->bytes, .used_ns = fleet_now_ns() };
	char key[STORE_HASH + 1], state[96];

	snprintf(row.id, sizeof(row.id), "%.64s", l->id);
	snprintf(state, sizeof(state), "{\"bytes\":%llu,\"files\":%llu}",
		 (unsigned long long)l->bytes, (unsigned long long)l->files);
	image_layer_key(p->manifest.layer[p->at].digest, key);
	if (store_layer_put(p->fleet->store, &row, e) < 0)
		return -1;
	return store_cache_put(p->fleet->store, p->team, key, row.id, state, row.used_ns, e);
}

static void image_unpacked(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	struct image_pull *p = ctx;
	const struct wire_layer *l = (const struct wire_layer *)f;
	struct err own;

	(void)len;
	(void)fd;
	p->asking = NULL;
	if (!f) {
		own = *e;
		err_in(&own, "layer %u of %.80s", p->at + 1, p->image.reference);
		image_fail(p, &own);
		return;
	}
	snprintf(image_layer(p), STORE_HASH + 1, "%.64s", l->id);
	p->image.bytes += l->bytes;
	p->image.files += l->files;
	p->image.skipped += l->skipped;
	if (l->skipped)
		image_say(p, "layer %u: %llu device nodes were left out; boxes have their own",
			  p->at + 1, (unsigned long long)l->skipped);
	if (image_layer_record(p, l, &own) < 0) {
		image_fail(p, &own);
		return;
	}
	p->at++;
	image_next_layer(p);
}

static void image_unpack_blob(struct image_pull *p)
{
	struct wire_layer_unpack ask = { .head.type = WIRE_LAYER_UNPACK,
					 .bytes_most = p->conf->bytes_most,
					 .files_most = p->conf->files_most };

	snprintf(ask.diff, sizeof(ask.diff), "%s", p->diff[p->at]);
	(void)!lseek(p->blob, 0, SEEK_SET);
	p->asking = keeper_client_request_fd(&p->fleet->keeper, &ask, sizeof(ask),
					     steal_fd(&p->blob), WIRE_LAYER, image_unpacked, p);
}

/* ---- reading files of the box ---- */

static void image_read(struct image_pull *p, enum image_phase phase, const struct image_blob *blob)
{
	struct wire_get ask = { .bytes = UINT64_MAX };
	char path[160];

	p->phase = phase;
	p->got = 0;
	buf_cut(&p->text, 0);
	sha256_init(&p->sum);
	p->want = blob ? *blob : (struct image_blob){ .size = IMAGE_JSON };
	if (blob)
		snprintf(path, sizeof(path), IMAGE_LAYOUT "/blobs/sha256/%s", blob->digest);
	else
		snprintf(path, sizeof(path), IMAGE_LAYOUT "/index.json");
	file_client_ask(&p->files, WIRE_GET, &ask, sizeof(ask), path, strlen(path));
}

/* Without a name; removed by the kernel when it is closed. */
static int image_temporary(const struct image_conf *conf, struct err *e)
{
	int fd = conf->folder ? open(conf->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

	if (fd < 0)
		fd = memfd_create("image", MFD_CLOEXEC);
	return fd < 0 ? err_sys(e, "a temporary file for a layer") : fd;
}

static void image_read_layer(struct image_pull *p)
{
	const struct image_blob *blob = &p->manifest.layer[p->at];
	struct err e;

	if (blob->size > p->conf->bytes_most) {
		err_set(&e, ERR_LIMIT, "layer %u of %.80s has %llu bytes; %llu are allowed",
			p->at + 1, p->image.reference, (unsigned long long)blob->size,
			(unsigned long long)p->conf->bytes_most);
		image_fail(p, &e);
		return;
	}
	p->blob = image_temporary(p->conf, &e);
	if (p->blob < 0) {
		image_fail(p, &e);
		return;
	}
	image_say(p, "unpacking layer %u of %u (%llu bytes)", p->at + 1, p->manifest.nlayers,
		  (unsigned long long)blob->size);
	image_read(p, IMAGE_BLOB, blob);
}

/* 1: the team has unpacked it before. */
static int image_layer_known(struct image_pull *p)
{
	char key[STORE_HASH + 1], *state = NULL;
	json_t *doc;
	struct err e;

	image_layer_key(p->manifest.layer[p->at].digest, key);
	if (p->force || store_cache_get(p->fleet->store, p->team, key, fleet_now_ns(),
					image_layer(p), &state, &e) < 0)
		return 0;
	doc = json_loads(state, 0, NULL);
	p->image.bytes += (uint64_t)json_integer_value(json_object_get(doc, "bytes"));
	p->image.files += (uint64_t)json_integer_value(json_object_get(doc, "files"));
	json_decref(doc);
	free(state);
	return 1;
}

static void image_next_layer(struct image_pull *p)
{
	for (; p->at < p->manifest.nlayers && image_layer_known(p); p->at++) {
		p->image.known++;
		image_say(p, "layer %u of %u is here already", p->at + 1, p->manifest.nlayers);
	}
	if (p->at < p->manifest.nlayers)
		image_read_layer(p);
	else
		image_finish(p);
}

/* The whole file was read, and has the digest that was asked for. */
static void image_file_read(struct image_pull *p)
{
	struct image_blob manifest;
	struct err e;
	int done = 0;

	switch (p->phase) {
	case IMAGE_INDEX:
		done = image_parse_index(buf_str(&p->text), p->text.len, &manifest, &e);
		if (done == 0) {
			snprintf(p->image.digest, sizeof(p->image.digest), "sha256:%s",
				 manifest.digest);
			image_read(p, IMAGE_MANIFEST, &manifest);
		}
		break;
	case IMAGE_MANIFEST:
		done = image_parse_manifest(buf_str(&p->text), p->text.len, &p->manifest, &e);
		p->image.nlayers = p->manifest.nlayers;
		if (done == 0)
			image_read(p, IMAGE_CONFIG, &p->manifest.config);
		break;
	case IMAGE_CONFIG:
		done = image_parse_config(buf_str(&p->text), p->text.len, p->manifest.nlayers,
					  &p->image.config, p->diff, &e);
		if (done == 0)
			image_next_layer(p);
		break;
	default:
		image_unpack_blob(p);
	}
	if (done < 0)
		image_fail(p, &e);
}

static int image_check_file(struct image_pull *p, struct err *e)
{
	uint8_t digest[SHA256_BYTES];
	char hex[STORE_HASH + 1];

	if (!p->want.digest[0])
		return 0;
	sha256_end(&p->sum, digest);
	hex_encode(hex, digest, sizeof(digest));
	if (p->got != p->want.size || strcmp(hex, p->want.digest) != 0)
		return err_set(e, ERR_CONFLICT,
			       "%.80s has content with another digest: sha256:%.64s instead of "
			       "sha256:%.64s",
			       p->image.reference, hex, p->want.digest);
	return 0;
}

static int image_take_bytes(struct image_pull *p, const char *bytes, size_t n, struct err *e)
{
	if (n > p->want.size - p->got || (p->phase != IMAGE_BLOB && p->got + n > IMAGE_JSON))
		return err_set(e, ERR_CONFLICT, "%.80s has a file that is larger than its size",
			       p->image.reference);
	p->got += n;
	sha256_add(&p->sum, bytes, n);
	if (p->phase != IMAGE_BLOB) {
		buf_add(&p->text, bytes, n);
		return 0;
	}
	while (n > 0) {
		ssize_t done = write(p->blob, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return err_sys(e, "write a layer to a temporary file");
		bytes += done;
		n -= (size_t)done;
	}
	return 0;
}

void image_files_data(struct file_client *c, const char *bytes, size_t n)
{
	struct image_pull *p = loop_owner(c, struct image_pull, files);
	struct err e;

	if ((n ? image_take_bytes(p, bytes, n, &e) : image_check_file(p, &e)) < 0)
		image_fail(p, &e);
	else if (!n)
		image_file_read(p);
}

void image_read_begin(struct image_pull *p)
{
	image_read(p, IMAGE_INDEX, NULL);
}
