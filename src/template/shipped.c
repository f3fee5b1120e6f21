/* shipped.c - see shipped.h. */
#include "template/shipped.h"
#include "base/sha256.h"
#include "template/build.h"
#include "template/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TAR_BLOCK = 512, TAR_NAME = 100, TAR_SIZE = 124, TAR_TYPE = 156 };

const struct shipped_template *shipped_template_find(const char *name)
{
	for (const struct shipped_template *t = shipped_templates; t < shipped_templates_end; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

void shipped_template_hash(const struct shipped_template *t, char out[STORE_HASH + 1])
{
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, t->archive, (size_t)(t->end - t->archive));
	sha256_end(&s, sum);
	for (unsigned i = 0; i < SHA256_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

/* The bytes of a file of the archive; NULL: it has none of that name. */
static const char *shipped_file(const struct shipped_template *t, const char *path, size_t *out_n)
{
	for (const char *p = t->archive; t->end - p >= TAR_BLOCK && *p;) {
		size_t n = strtoul(p + TAR_SIZE, NULL, 8);
		const char *name = strncmp(p, "./", 2) == 0 ? p + 2 : p;

		if (p[TAR_TYPE] == '0' && !strncmp(name, path, TAR_NAME - 2)) {
			*out_n = n;
			return p + TAR_BLOCK;
		}
		p += TAR_BLOCK + (n + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	}
	return NULL;
}

static int shipped_read(void *ctx, const char *path, struct buf *out, struct err *e)
{
	size_t n = 0;
	const char *bytes = shipped_file(ctx, path, &n);

	(void)e;
	if (!bytes)
		return 0;
	buf_add(out, bytes, n);
	return 1;
}

int shipped_template_definition(const struct shipped_template *t, json_t **out, struct err *e)
{
	char hash[STORE_HASH + 1];
	struct source_options o = { .file = "atoll.toml", .files = hash };
	struct source found = { 0 };

	shipped_template_hash(t, hash);
	if (template_source(shipped_read, (void *)t, &o, &found, e) < 0)
		return -1;
	*out = json_incref(found.definition);
	source_fini(&found);
	return 0;
}

int shipped_template_upload(const struct shipped_template *t, struct builds *b, const char *team,
			    struct err *e)
{
	char hash[STORE_HASH + 1];
	struct build_upload up;

	shipped_template_hash(t, hash);
	if (build_upload_exists(b, team, hash))
		return 0;
	if (build_upload_open(b, &up, e) < 0)
		return -1;
	for (const char *p = t->archive; p < t->end;) {
		ssize_t n = write(up.fd, p, (size_t)(t->end - p));

		if (n < 0) {
			err_sys(e, "store the files of template %s", t->name);
			build_upload_drop(b, &up);
			return -1;
		}
		p += n;
	}
	return build_upload_finish(b, &up, team, hash, e);
}

/* Managers of packages whose sources the build of this definition needs. */
static unsigned shipped_managers(const json_t *definition)
{
	const json_t *steps =
		json_object_get(json_array_get(json_object_get(definition, "stages"), 0), "steps");
	unsigned all = 0;
	json_t *step;
	size_t i;

	json_array_foreach(steps, i, step)
	{
		const char *name = json_string_value(json_object_get(step, "manager"));
		int m = name ? package_manager_named(name) : -1;

		if (m >= 0)
			all |= 1u << m;
		name = json_string_value(json_array_get(json_object_get(step, "args"), 0));
		if (name && (strstr(name, "npm ci ") || strstr(name, "npm install ")))
			all |= 1u << PM_NPM;
		if (name && strstr(name, "apt-get update -q || exit"))
			all |= 1u << PM_APT;
	}
	return all;
}

json_t *shipped_template_missing(const struct shipped_template *t, const struct install_conf *conf)
{
	json_t *definition, *missing = json_array();
	struct err e;
	unsigned all;

	if (shipped_template_definition(t, &definition, &e) < 0) {
		json_array_append_new(missing, json_string(e.msg));
		return missing;
	}
	all = shipped_managers(definition);
	json_decref(definition);
	for (unsigned m = 0; m < PM_COUNT; m++)
		if ((all & 1u << m) && !conf->source[m] && !conf->mirror)
			json_array_append_new(missing, json_sprintf("%s packages: %s is not set",
								    package_manager_name(m),
								    install_setting(m)));
	return missing;
}
