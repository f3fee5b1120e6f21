/* build_image.c - FROM an image of a registry. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/sha256.h"
#include "template/image.h"

#include <fcntl.h>
#include <string.h>

#define UPLOAD "upload:" /* an archive of an image that a client has uploaded, by its hash */

struct build_pull {
	struct image_pull *pull;
	int archive;                                       /* or -1 */
	char key[STORE_HASH + 1];                          /* of the cache; "": it may change */
	void (*rooted)(struct build *b, const char *root); /* COPY: gets its root; NULL: FROM */
};

static void build_image_said(void *ctx, const char *line)
{
	build_log(ctx, "info", "%s", line);
}

/* A stage whose lowest layers are those of the image. */
static json_t *build_image_stage(const struct image *image)
{
	json_t *layers = json_array();

	for (unsigned i = image->nlayers; i-- > 0;)
		json_array_append_new(layers, json_string(image->layer[i]));
	return json_pack("{s:b, s:o, s:O, s:O, s:O, s:s, s:O}", "base", 0, "layers", layers, "env",
			 json_object_get(image->config, "env"), "user",
			 json_object_get(image->config, "user"), "workdir",
			 json_object_get(image->config, "workdir"), "digest", image->digest,
			 "entrypoint", json_object_get(image->config, "entrypoint"));
}

/* ---- the cache: of images that cannot change, by the hash of an upload or a digest ---- */

static void build_image_key(const char *reference, const char *file, char out[STORE_HASH + 1])
{
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, "image\n", 6);
	sha256_add(&s, reference, strlen(reference));
	sha256_add(&s, file, strlen(file) + 1);
	sha256_end(&s, sum);
	hex_encode(out, sum, sizeof(sum));
}

static void build_image_remember(struct build *b, const json_t *stage)
{
	const json_t *layers = json_object_get(stage, "layers");
	const char *top = json_string_value(json_array_get(layers, json_array_size(layers) - 1));
	auto_free char *state = json_dumps(stage, JSON_COMPACT);
	struct err e;

	if (b->pull->key[0] && top && state &&
	    store_cache_put(b->all->fleet->store, b->row.team, b->pull->key, top, state,
			    fleet_now_ns(), &e) < 0)
		log_warn("cannot remember an image", LOG_E(&e));
}

/* 1: the stage is that of an earlier pull. */
static int build_image_known(struct build *b, const char *key, const char *reference)
{
	char layer[STORE_HASH + 1];
	auto_free char *text = NULL;
	json_t *stage;
	struct err e;

	if (!key[0] || b->force || b->retried ||
	    store_cache_get(b->all->fleet->store, b->row.team, key, fleet_now_ns(), layer, &text,
			    &e) < 0)
		return 0;
	stage = json_loads(text, 0, NULL);
	if (!stage)
		return 0;
	build_log(b, "info", "CACHED FROM %s", reference);
	build_stage_set(b, stage);
	return 1;
}

static void build_image_done(void *ctx, const struct image *image, const struct err *e)
{
	void (*rooted)(struct build * b, const char *root);
	struct build *b = ctx;
	json_t *stage;
	struct err own;

	b->pull->pull = NULL;
	if (e) {
		own = *e;
		build_fail_err(b, &own);
		return;
	}
	build_log(b, "info", "%s is %s: %u layers, %u of them were here, %llu bytes",
		  image->reference, image->digest, image->nlayers, image->known,
		  (unsigned long long)image->bytes);
	rooted = b->pull->rooted;
	stage = build_image_stage(image);
	build_image_remember(b, stage);
	build_pull_free(b->pull);
	b->pull = NULL;
	if (rooted) {
		build_root(b, stage, 0, rooted);
		json_decref(stage);
		return;
	}
	build_stage_set(b, stage);
	if (build_save(b) == 0)
		build_continue(b);
}

/* The archive that a reference names; -1: it is the reference of a registry, or e is set. key: "" if the
 * image may be another one the next time. */
static int build_image_archive(struct build *b, const char *reference, char key[STORE_HASH + 1],
			       struct err *e)
{
	const char *hash = reference + strlen(UPLOAD);
	struct store_upload row;
	struct err ignored;
	int fd;

	key[0] = 0;
	if (strncmp(reference, UPLOAD, strlen(UPLOAD)) != 0) {
		if (strstr(reference, "@sha256:"))
			build_image_key(reference, "", key);
		return -1;
	}
	if (store_upload_get(b->all->fleet->store, b->row.team, hash, &row, e) < 0)
		return err_set(e, ERR_NOT_FOUND,
			       "there is no upload %.64s; send the archive with PUT "
			       "/v1/templates/uploads/{hash} first",
			       hash);
	build_image_key(reference, row.file, key);
	fd = openat(b->all->uploads, row.file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "open upload %.64s", hash);
	(void)!store_upload_use(b->all->fleet->store, b->row.team, hash, fleet_now_ns(), &ignored);
	return fd;
}

static void build_pull_image(struct build *b, const char *reference, const json_t *auth,
			     void (*rooted)(struct build *b, const char *root))
{
	static const struct image_pull_events on = { .said = build_image_said,
						     .done = build_image_done };
	struct image_source from = {
		.reference = reference,
		.user = json_string_value(json_object_get(auth, "username")),
		.password = json_string_value(json_object_get(auth, "password")),
		.team = b->row.team,
		.force = b->force || b->retried,
	};
	struct err e = { 0 };

	b->pull = calloc(1, sizeof(*b->pull));
	if (!b->pull)
		abort();
	b->pull->rooted = rooted;
	b->pull->archive = from.archive = build_image_archive(b, reference, b->pull->key, &e);
	if (!e.kind && !rooted && build_image_known(b, b->pull->key, reference)) {
		build_pull_free(b->pull);
		b->pull = NULL;
		if (build_save(b) == 0)
			build_continue(b);
		return;
	}
	if (e.kind || image_pull_begin(b->all->fleet, &b->all->conf.image, &from, &on, b,
				       &b->pull->pull, &e) < 0) {
		err_in(&e, "%s %.60s", rooted ? "COPY --from" : "FROM", reference);
		build_fail_err(b, &e);
	}
}

void build_from_image(struct build *b, const char *reference, const json_t *auth)
{
	build_pull_image(b, reference, auth, NULL);
}

void build_source_image(struct build *b, const char *reference,
			void (*rooted)(struct build *b, const char *root))
{
	build_pull_image(b, reference, NULL, rooted);
}

void build_pull_free(struct build_pull *p)
{
	if (!p)
		return;
	image_pull_cancel(p->pull);
	own_close_fd(&p->archive);
	free(p);
}

void build_forget_auth(struct store_build *row)
{
	json_t *doc = json_loads(row->definition, 0, NULL), *stage;
	int any = 0;
	size_t i;

	json_array_foreach(json_object_get(doc, "stages"), i, stage) any |=
		json_object_del(stage, "auth") == 0;
	if (any) {
		explicit_bzero(row->definition, strlen(row->definition));
		free(row->definition);
		row->definition = json_dumps(doc, JSON_COMPACT);
		if (!row->definition)
			abort();
	}
	json_decref(doc);
}
