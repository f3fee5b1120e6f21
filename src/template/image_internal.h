/* image_internal.h - one pull of an image, for image.c and image_read.c only.
 *
 *   image.c       the box, what is written into it, skopeo
 *   image_read.c  what is read out of it: index, manifest, config, layers */
#pragma once
#include "base/sha256.h"
#include "client/file_client.h"
#include "fleet/exec_reader.h"
#include "template/image.h"
#include "template/image_parse.h"

#define IMAGE_LAYOUT "/home/user/image" /* in the box: where skopeo writes it */

enum image_phase {
	IMAGE_AUTH,    /* credentials are written */
	IMAGE_ARCHIVE, /* the archive is written */
	IMAGE_INDEX,   /* small files are read */
	IMAGE_MANIFEST,
	IMAGE_CONFIG,
	IMAGE_BLOB, /* a layer is read */
};

struct image_pull {
	struct fleet *fleet;
	const struct image_conf *conf;
	const struct image_pull_events *on;
	void *ctx;
	struct image image;
	char team[STORE_NAME + 1];
	char box[ID_MAX + 1];
	struct box_wait made;
	struct timer way; /* waits for the egress endpoint; ends a pull from the loop */
	unsigned tries;
	/* into the box */
	int force;
	int archive, docker_archive; /* the latter: the second form of archives is tried */
	struct watch pipe;
	char *auth; /* content of AUTH_FILE; NULL: none */
	/* skopeo */
	struct exec_reader reader;
	int tapped;
	struct buf said, line;
	unsigned lines;
	/* out of the box */
	struct file_client files;
	int has_files;
	enum image_phase phase;
	struct image_blob want; /* the file that is read */
	struct image_manifest manifest;
	char diff[IMAGE_LAYERS][STORE_HASH + 1];
	unsigned at; /* layer, the lowest is 0 */
	struct sha256 sum;
	uint64_t got;
	struct buf text;
	int blob;
	struct keeper_call *asking;
};

/* ---- image.c ---- */
void image_fail(struct image_pull *p, const struct err *e); /* p is freed */
void image_finish(struct image_pull *p);                    /* the same */
void image_say(struct image_pull *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The box that pulls; NULL: it has ended, and p is freed. */
struct box *image_box(struct image_pull *p);

/* ---- image_read.c ---- */
/* Skopeo has succeeded: reads the image, and ends with image_finish() or image_fail(). */
void image_read_begin(struct image_pull *p);
void image_files_data(struct file_client *c, const char *bytes, size_t n); /* of p->files */
