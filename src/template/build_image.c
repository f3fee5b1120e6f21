/* build_image.c - FROM an image of a registry. See build_internal.h. */
#include "template/build_internal.h"
#include "template/image.h"

struct build_pull {
	struct image_pull *pull;
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
	return json_pack("{s:b, s:o, s:O, s:O, s:O, s:s}", "base", 0, "layers", layers, "env",
			 json_object_get(image->config, "env"), "user",
			 json_object_get(image->config, "user"), "workdir",
			 json_object_get(image->config, "workdir"), "digest", image->digest);
}

static void build_image_done(void *ctx, const struct image *image, const struct err *e)
{
	struct build *b = ctx;
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
	build_stage_set(b, build_image_stage(image));
	build_pull_free(b->pull);
	b->pull = NULL;
	if (build_save(b) == 0)
		build_continue(b);
}

void build_from_image(struct build *b, const char *reference, const json_t *auth)
{
	static const struct image_pull_events on = { .said = build_image_said,
						     .done = build_image_done };
	const struct image_source from = {
		.reference = reference,
		.archive = -1,
		.user = json_string_value(json_object_get(auth, "username")),
		.password = json_string_value(json_object_get(auth, "password")),
		.team = b->row.team,
		.force = b->force || b->retried,
	};
	struct err e;

	b->pull = calloc(1, sizeof(*b->pull));
	if (!b->pull)
		abort();
	if (image_pull_begin(b->all->fleet, &b->all->conf.image, &from, &on, b, &b->pull->pull,
			     &e) < 0) {
		err_in(&e, "FROM %.60s", reference);
		build_fail_err(b, &e);
	}
}

void build_pull_free(struct build_pull *p)
{
	if (p)
		image_pull_cancel(p->pull);
	free(p);
}
