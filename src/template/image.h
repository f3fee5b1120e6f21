/* image.h - images of registries and archives: from a reference to layers and settings.
 * Owns:         the pulls in progress, one box each.
 * Does not own: the layers (the keeper); their rows (store/builds.h: the team's cache by digest).
 *
 *   pull box (base; may reach templates.registries only)
 *     skopeo copy docker://REFERENCE oci:/home/user/image        output: said()
 *       └► index.json, manifest, config: read through the file worker, bounded, checked by digest
 *       └► each layer: its digest is known  -> the layer exists already
 *                      else  -> temporary file, SHA-256 compared -> LAYER_UNPACK with its diff id
 *
 * Everything that reads bytes of a registry runs in the box, or in the unpacking process of the
 * keeper (keeper/image_process.h); the server only compares hashes and parses small JSON files. */
#pragma once
#include "fleet/fleet.h"
#include <jansson.h>

enum { IMAGE_LAYERS = 60 }; /* of one image; a root has space for those of the steps, too */
enum { IMAGE_DIGEST = 71 }; /* "sha256:" and 64 digits */

struct image_conf {
	const char *const *registries; /* rules: what pull boxes may reach; NULL: nothing */
	const char *mirror;            /* HOST[:PORT][/PATH] for names without a host; NULL: none */
	const char *const *insecure;   /* HOST[:PORT] that are asked without TLS; NULL: none */
	uint64_t timeout_ms;           /* of the download */
	uint64_t bytes_most, files_most; /* of one layer; bytes_most also of the download */
	const char *folder;              /* for temporary files */
};

struct image {
	char reference[512];           /* complete: HOST/NAME:TAG */
	char digest[IMAGE_DIGEST + 1]; /* of the manifest */
	unsigned nlayers;
	char layer[IMAGE_LAYERS][STORE_HASH + 1]; /* the topmost first */
	/* {"env": {NAME: value}, "user": "", "workdir": "/", "cmd": [...], "entrypoint": [...],
	 *  "ports": [8080], "labels": {NAME: value}}: always all of them. env has the names as they
	 * are; a port has no protocol. */
	json_t *config;
	uint64_t bytes, files; /* of its layers */
	uint64_t skipped;      /* device nodes, which boxes cannot have; 0 for known layers */
	unsigned known;        /* layers that were not unpacked, because they were here */
};

struct image_source {
	const char *reference; /* [HOST[:PORT]/]NAME[:TAG][@sha256:...] */
	/* Instead: an archive (an OCI layout or `docker save`, as tar), from its start. Borrowed until
	 * done(). -1: none; then reference is only a name for messages. */
	int archive;
	const char *user, *password; /* for the registry; NULL: none. In a file of the box's /run */
	const char *team;
	int force; /* unpack its layers although the team's cache has them */
};

struct image_pull;
struct image_pull_events {
	void (*said)(void *ctx, const char *line); /* progress; without a newline */
	/* Called last, once, never from within image_pull_begin(). image: borrowed; NULL: e.
	 * ERR_INVALID   the image is damaged, hostile, or for another processor
	 * ERR_NOT_FOUND no such image or tag; skopeo is not installed
	 * ERR_DENIED    the registry wants (other) credentials, or is not in templates.registries
	 * ERR_LIMIT     too large, too slow, or the registry answers 429
	 * ERR_CONFLICT  content with another digest
	 * ERR_SYS       the registry cannot be reached, or something failed here */
	void (*done)(void *ctx, const struct image *image, const struct err *e);
};

/* ERR_INVALID: not a reference; ERR_DENIED: no registry is configured. conf is borrowed until the
 * end of the pull, the rest for this call. */
must_check int image_pull_begin(struct fleet *f, const struct image_conf *conf,
				const struct image_source *from, const struct image_pull_events *on,
				void *ctx, struct image_pull **out, struct err *e);
void image_pull_cancel(struct image_pull *p); /* done() is not called after it; NULL is fine */

/* The complete reference: with host and tag. */
must_check int image_reference(const struct image_conf *conf, const char *text, char out[512],
			       struct err *e);
