/* template_export.c - GET /v1/templates/{template}/export: a template as one file, for another machine. See templates.h.
 *
 *	{"atoll_template": 1, "name": ..., "definition": ...} newline, then a tar archive of its root file system
 *
 * The definition builds the same template from the archive, which the client uploads first: the hash of it is to be inserted in `from`. */
#include "v1box/templates.h"
#include "base/cleanup.h"
#include "template/expand.h"
#include "template/templates.h"
#include "v1box/keeper_archive.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

/* ---- the definition ---- */

static json_t *export_quoted(const char *text)
{
	auto_buf struct buf out = { 0 };

	expand_quote(&out, text);
	return json_string(buf_str(&out));
}

static void export_step(json_t *steps, const char *type, const json_t *value)
{
	const char *text = json_string_value(value);

	if (text && *text)
		json_array_append_new(steps, json_pack("{s:s, s:[o]}", "type", type, "args",
						       export_quoted(text)));
}

/* Variables, working folder and user are steps; the rest are settings of the same name. */
static json_t *export_definition(const struct store_build *b, const json_t *settings)
{
	static const char *const same[] = { "start", "ready", "port",         "labels",      "lib",
					    "file",  "pool",  "instructions", "description", NULL };
	json_t *steps = json_array(), *pairs = json_array(), *doc, *v;
	json_t *progress = json_loads(b->progress, 0, NULL), *state;
	const char *name;
	char stage[12];

	snprintf(stage, sizeof(stage), "%d",
		 (int)json_integer_value(json_object_get(progress, "stage")));
	state = json_object_get(json_object_get(progress, "stages"), stage);
	json_object_foreach(json_object_get(settings, "env"), name, v)
	{
		json_array_append_new(pairs, json_string(name));
		json_array_append_new(pairs, export_quoted(json_string_value(v)));
	}
	if (json_array_size(pairs))
		json_array_append_new(steps, json_pack("{s:s, s:O}", "type", "ENV", "args", pairs));
	json_decref(pairs);
	export_step(steps, "WORKDIR", json_object_get(settings, "workdir"));
	export_step(steps, "USER", json_object_get(settings, "user"));
	doc = json_pack("{s:[{s:s, s:s, s:b, s:o}]}", "stages", "name", "0", "from",
			*b->root ? "archive:" : TEMPLATE_BASE, "base",
			json_is_true(json_object_get(state, "base")) || !*b->root, "steps", steps);
	json_decref(progress);
	for (const char *const *k = same; *k; k++) {
		v = json_object_get(settings, *k);
		if (v && !json_is_null(v))
			json_object_set(doc, *k, v);
	}
	if (b->cpu_milli)
		json_object_set_new(doc, "cpu", json_integer(b->cpu_milli));
	if (b->mem_bytes)
		json_object_set_new(doc, "memory", json_integer((json_int_t)b->mem_bytes));
	if (b->disk_bytes)
		json_object_set_new(doc, "disk", json_integer((json_int_t)b->disk_bytes));
	return doc;
}

static char *export_header(const struct template_found *f)
{
	json_t *settings = json_loads(f->build.settings, 0, NULL), *doc;
	char *text;

	doc = json_pack("{s:i, s:s, s:o}", "atoll_template", 1, "name", f->row.name, "definition",
			export_definition(&f->build, settings));
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(settings);
	json_decref(doc);
	if (!text)
		abort();
	return text;
}

void v1_templates_export(struct call *c)
{
	struct wire_layer ask = { .head = { .type = WIRE_LAYER_EXPORT,
					    .flags = WIRE_LAYER_OF_ROOT } };
	struct template_found f;
	auto_free char *json = NULL;
	auto_buf struct buf header = { 0 };
	struct err e;

	if (template_resolve(c->api->store, c->who.team, call_param(c, 0), &f, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	if (f.builtin) {
		call_error(c, 409, "conflict", "this template is part of every server", f.name,
			   NULL);
		template_found_fini(&f);
		return;
	}
	json = export_header(&f);
	buf_printf(&header, "%s\n", json);
	if (!*f.build.root) {
		http_stream(c->req, 200, "application/octet-stream", header.len);
		http_write(c->req, buf_str(&header), header.len);
		http_end(c->req);
	} else {
		snprintf(ask.id, sizeof(ask.id), "%s", f.build.root);
		if (keeper_archive_send(c, &ask, sizeof(ask), WIRE_LAYER,
					"application/octet-stream", buf_str(&header), &e) < 0)
			call_fail(c, &e);
	}
	template_found_fini(&f);
}
