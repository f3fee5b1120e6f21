/* template_source.c - see template_source.h. */
#include "v1box/template_source.h"
#include "template/build.h"

#include <stdio.h>
#include <string.h>

struct source_texts {
	const json_t *files; /* path: text */
	char missing[SOURCE_PATH + 1];
};

static int source_texts_read(void *ctx, const char *path, struct buf *out, struct err *e)
{
	struct source_texts *t = ctx;
	const json_t *text = json_object_get(t->files, path);

	if (!text) {
		snprintf(t->missing, sizeof(t->missing), "%s", path);
		return 0;
	}
	if (!json_is_string(text) || json_string_length(text) > SOURCE_BYTES)
		return err_set(e, ERR_INVALID,
			       "source.files: '%.80s' must be a text of at most %d bytes", path,
			       SOURCE_BYTES);
	buf_add(out, json_string_value(text), json_string_length(text));
	return 1;
}

/* Every member is known and of its type. */
static int source_check(const json_t *source, struct err *e)
{
	static const struct {
		const char *name;
		json_type type;
	} known[] = { { "files", JSON_OBJECT },   { "file", JSON_STRING },
		      { "args", JSON_OBJECT },    { "target", JSON_STRING },
		      { "archive", JSON_STRING }, { "folder", JSON_STRING },
		      { "manifest", JSON_OBJECT } };
	const char *name, *arg;
	json_t *v, *one;

	if (!json_is_object(source))
		return err_set(e, ERR_INVALID, "source must be an object");
	json_object_foreach((json_t *)source, name, v)
	{
		unsigned i = 0;

		while (i < sizeof(known) / sizeof(known[0]) && strcmp(known[i].name, name) != 0)
			i++;
		if (i == sizeof(known) / sizeof(known[0]))
			return err_set(e, ERR_INVALID, "source has no member '%.40s'", name);
		if (json_typeof(v) != known[i].type)
			return err_set(e, ERR_INVALID, "source.%s must be %s", name,
				       known[i].type == JSON_OBJECT ? "an object" : "a text");
	}
	json_object_foreach(
		json_object_get(source, "args"), arg,
		one) if (!json_is_string(one)) return err_set(e, ERR_INVALID,
							      "source.args.%.40s must be a text",
							      arg);
	return 0;
}

static void source_refuse(struct call *c, const struct source_texts *t, const struct err *e)
{
	if (e->kind == ERR_NOT_FOUND)
		call_error(c, 404, "file_missing", e->msg, t->missing,
			   "send its text in source.files");
	else if (e->kind == ERR_CONFLICT)
		call_error(
			c, 409, "files_needed", e->msg, NULL,
			"PUT the folder as tar.gz to /v1/templates/uploads/HASH, then send the hash in "
			"source.archive");
	else
		call_fail(c, e);
}

int v1_template_source(struct call *c, const json_t *source, struct source *out)
{
	struct source_texts t = { .files = json_object_get(source, "files") };
	const char *archive = json_string_value(json_object_get(source, "archive")),
		   *folder = json_string_value(json_object_get(source, "folder"));
	struct source_options o = { .file = json_string_value(json_object_get(source, "file")),
				    .args = json_object_get(source, "args"),
				    .target =
					    json_string_value(json_object_get(source, "target")) };
	struct err e;

	o.manifest = json_object_get(source, "manifest");
	memset(out, 0, sizeof(*out));
	if (source_check(source, &e) < 0) {
		call_fail(c, &e);
		return -1;
	}
	if (archive && build_upload_exists(c->api->builds, c->who.team, archive))
		o.files = archive;
	if (template_source(source_texts_read, &t, &o, out, &e) < 0) {
		source_refuse(c, &t, &e);
		return -1;
	}
	if (!*out->name && folder)
		snprintf(out->name, sizeof(out->name), "%s", folder);
	return 0;
}
