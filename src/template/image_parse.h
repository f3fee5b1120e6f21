/* image_parse.h - what the server reads of an image: references, index, manifest, configuration, and
 * the messages of skopeo. Pure functions: the texts come from registries and are not trusted. */
#pragma once
#include "template/image.h"

enum { IMAGE_JSON = 4 << 20 }; /* bytes of a manifest or a configuration */

struct image_blob {
	char digest[STORE_HASH + 1]; /* without "sha256:" */
	uint64_t size;
};

struct image_manifest {
	struct image_blob config, layer[IMAGE_LAYERS]; /* the lowest first */
	unsigned nlayers;
};

/* The manifest that the index of a layout names: exactly one. */
must_check int image_parse_index(const char *text, size_t n, struct image_blob *out, struct err *e);
must_check int image_parse_manifest(const char *text, size_t n, struct image_manifest *out,
				    struct err *e);
/* out_config: as struct image has it. out_diff: the diff ids of nlayers layers. */
must_check int image_parse_config(const char *text, size_t n, unsigned nlayers, json_t **out_config,
				  char (*out_diff)[STORE_HASH + 1], struct err *e);

/* The host of a complete reference, with its port. */
void image_host(const char *reference, char out[256]);
/* The processor of this host, as images name it: "amd64". */
const char *image_architecture(void);

/* From the output of skopeo to a message; of an archive, and of a registry. why: of egress, the connection that failed; NULL: none
 * did. */
void image_explain_archive(const char *name, const char *said, struct err *out);
void image_explain(const char *reference, const char *said, const char *verdict, const char *why,
		   struct err *out);
