/* templates.c - see templates.h. The name of a built-in template is also its id: a filter by either
 * finds the same. */
#include "e2bcontrol/templates.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "e2bcontrol/sandbox_json.h"
#include "e2bcontrol/snapshots.h"
#include "e2bcontrol/template_find.h"
#include "record/record.h"
#include "template/build.h"

#include <stdio.h>
#include <string.h>

enum { TEMPLATES_BUILDS = 100, TEMPLATES_TAGS = 64 };

const struct field templates_patch_fields[] = {
	{ "public", FIELD_BOOL, 0, 0, 0, "every team may create sandboxes from it", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field templates_tag_fields[] = {
	{ "target", FIELD_TEXT, 1, 0, 200, "name:tag of the build", NULL },
	{ "tags", FIELD_TEXTS, 1, 0, TEMPLATES_TAGS, "tags that name the same build", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field templates_untag_fields[] = {
	{ "name", FIELD_TEXT, 1, 0, 200, "name of the template", NULL },
	{ "tags", FIELD_TEXTS, 1, 0, TEMPLATES_TAGS, "tags to remove", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

/* Number of sandboxes that this server made of each built-in template. */
static struct spawns {
	uint64_t count;
	int64_t last_ns;
} spawns[BUILTIN_TEMPLATES];

void templates_spawned(const char *id)
{
	const struct builtin_template *t = builtin_template_find(id);
	struct spawns *n = t ? &spawns[t - builtin_templates] : NULL;

	if (n)
		*n = (struct spawns){ n->count + 1, fleet_now_ns() };
}

const char *templates_of(const struct e2b_box *x)
{
	return x->template[0] ? x->template : TEMPLATE_BASE;
}

json_t *templates_alias_of(const struct box *b, const struct e2b_box *x)
{
	if (!strcmp(b->row.template, TEMPLATE_BASE))
		return json_string(templates_of(x));
	return json_stringn(b->row.template, strcspn(b->row.template, ":"));
}

/* ---- as JSON ---- */

static struct store_limits templates_limits(const struct call *c, const struct store_build *b)
{
	const struct wire_limits *l = &c->api->fleet.conf.limits;
	uint64_t mem = l->mem_bytes == WIRE_DEFAULT ? WIRE_USUAL_MEM : l->mem_bytes, disk;
	struct store_limits out;

	mem = b && b->mem_bytes ? b->mem_bytes : mem;
	disk = mem / 2 < WIRE_USUAL_DISK ? mem / 2 : WIRE_USUAL_DISK; /* as the keeper does */
	out = (struct store_limits){
		.mem_bytes = mem,
		.disk_bytes = l->disk_bytes == WIRE_DEFAULT ? disk : l->disk_bytes,
		.cpu_milli = l->cpu_milli == (uint32_t)WIRE_DEFAULT ? WIRE_USUAL_CPU_MILLI
								    : l->cpu_milli,
	};
	if (b && b->disk_bytes)
		out.disk_bytes = b->disk_bytes;
	if (b && b->cpu_milli)
		out.cpu_milli = b->cpu_milli;
	return out;
}

void templates_set_size(const struct call *c, json_t *doc, const struct store_build *b)
{
	struct store_limits l = templates_limits(c, b);

	json_object_set_new(doc, "cpuCount", json_integer(sandbox_json_cpus(&l)));
	json_object_set_new(doc, "memoryMB",
			    json_integer((json_int_t)(sandbox_json_memory(&l) >> 20)));
	json_object_set_new(doc, "diskSizeMB", json_integer((json_int_t)(l.disk_bytes >> 20)));
	json_object_set_new(doc, "envdVersion", json_string(E2B_ENVD_VERSION));
}

const char *templates_status(const struct store_build *b)
{
	switch (b->state) {
	case STORE_BUILD_WAITING: /* perhaps only for another build to end */
		return strcmp(b->definition, "{}") != 0 ? "building" : "waiting";
	case STORE_BUILD_BUILDING:
		return "building";
	case STORE_BUILD_READY:
		return "ready";
	default:
		return "error";
	}
}

static json_t *templates_time(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

static json_t *templates_builtin_common(const struct call *c, const struct builtin_template *t)
{
	const struct spawns *n = &spawns[t - builtin_templates];
	int64_t since = c->api->started_ns; /* it is this machine, so it is as old as the daemon */

	return json_pack("{s:s, s:b, s:[s], s:[s], s:o, s:o, s:o, s:I}", "templateID", t->name,
			 "public", 1, "aliases", t->name, "names", t->name, "createdAt",
			 templates_time(since), "updatedAt", templates_time(since), "lastSpawnedAt",
			 templates_time(n->last_ns), "spawnCount", (json_int_t)n->count);
}

static json_t *templates_names(const struct store_template *t)
{
	return json_pack("[o]", json_sprintf("%s/%s", t->team, t->name));
}

static json_t *templates_common(const struct call *c, const struct template_found *f)
{
	const struct store_template *t = &f->row;

	if (f->builtin)
		return templates_builtin_common(c, f->builtin);
	return json_pack("{s:s, s:b, s:[s], s:o, s:o, s:o, s:o, s:I}", "templateID", t->id,
			 "public", t->public, "aliases", t->name, "names", templates_names(t),
			 "createdAt", templates_time(t->created_ns), "updatedAt",
			 templates_time(t->updated_ns), "lastSpawnedAt",
			 templates_time(t->spawned_ns), "spawnCount", (json_int_t)t->spawns);
}

/* The build that sandboxes start from; else the newest one, whatever its state. */
static void templates_set_builds(const struct call *c, json_t *doc, const struct store_template *t)
{
	struct store_builds all = { 0 };
	struct store_build ready = { 0 };
	const struct store_build *shown;
	struct err e;

	(void)!store_build_list(c->api->store, NULL, t->id, TEMPLATES_BUILDS, &all, &e);
	shown = store_build_newest(c->api->store, t->id, &ready, &e) == 0 ? &ready
		: all.n                                                   ? &all.v[0]
									  : NULL;
	json_object_set_new(doc, "buildID", json_string(shown ? shown->id : ""));
	json_object_set_new(doc, "buildStatus",
			    json_string(shown ? templates_status(shown) : "waiting"));
	json_object_set_new(doc, "buildCount", json_integer(all.n));
	templates_set_size(c, doc, shown);
	store_builds_fini(&all);
	store_build_fini(&ready);
}

json_t *templates_json(const struct call *c, const struct template_found *f)
{
	json_t *doc = templates_common(c, f);

	json_object_set_new(doc, "createdBy", json_null());
	if (!f->builtin) {
		templates_set_builds(c, doc, &f->row);
		return doc;
	}
	json_object_set_new(doc, "buildID", json_string(f->builtin->build));
	json_object_set_new(doc, "buildStatus", json_string("ready"));
	json_object_set_new(doc, "buildCount", json_integer(1));
	templates_set_size(c, doc, NULL);
	return doc;
}

static int templates_has(const struct store_templates *rows, const char *name)
{
	for (unsigned i = 0; i < rows->n; i++)
		if (!strcmp(rows->v[i].name, name))
			return 1;
	return 0;
}

void templates_list(struct call *c)
{
	struct store_templates rows = { 0 };
	json_t *all = json_array();
	struct err e;

	if (store_template_list(c->api->store, c->who.team, 1, &rows, &e) < 0) {
		json_decref(all);
		call_fail(c, &e);
		return;
	}
	for (unsigned i = 0; i < rows.n; i++) {
		struct template_found f = { .row = rows.v[i] };

		json_array_append_new(all, templates_json(c, &f));
	}
	for (unsigned i = 0; i < BUILTIN_TEMPLATES; i++) {
		struct template_found f = { .builtin = &builtin_templates[i] };

		if (f.builtin->build && !templates_has(&rows, f.builtin->name))
			json_array_append_new(all, templates_json(c, &f));
	}
	store_templates_fini(&rows);
	call_json(c, 200, all);
}

/* ---- one ---- */

static int templates_asked(struct call *c, struct template_found *out)
{
	struct err e;

	if (template_find_named(c, call_param(c, 0), out, &e) == 0)
		return 1;
	call_fail(c, &e);
	return 0;
}

static json_t *templates_build_json(const struct call *c, const struct store_build *b)
{
	int64_t updated = b->ended_ns ? b->ended_ns : b->started_ns ? b->started_ns : b->created_ns;
	json_t *doc = json_pack("{s:s, s:s, s:o, s:o}", "buildID", b->id, "status",
				templates_status(b), "createdAt", templates_time(b->created_ns),
				"updatedAt", templates_time(updated));

	if (b->ended_ns)
		json_object_set_new(doc, "finishedAt", templates_time(b->ended_ns));
	templates_set_size(c, doc, b);
	return doc;
}

static json_t *templates_builtin_build(const struct call *c, const struct builtin_template *t)
{
	struct store_build b = { .state = STORE_BUILD_READY,
				 .created_ns = c->api->started_ns,
				 .ended_ns = c->api->started_ns };

	snprintf(b.id, sizeof(b.id), "%s", t->build);
	return templates_build_json(c, &b);
}

void templates_show(struct call *c)
{
	struct store_builds rows = { 0 };
	json_t *doc, *builds = json_array();
	struct template_found f;
	struct err e;

	if (!templates_asked(c, &f)) {
		json_decref(builds);
		return;
	}
	doc = templates_common(c, &f);
	if (f.builtin)
		json_array_append_new(builds, templates_builtin_build(c, f.builtin));
	else if (store_build_list(c->api->store, NULL, f.row.id, TEMPLATES_BUILDS, &rows, &e) == 0)
		for (unsigned i = 0; i < rows.n; i++)
			json_array_append_new(builds, templates_build_json(c, &rows.v[i]));
	store_builds_fini(&rows);
	json_object_set_new(doc, "builds", builds);
	call_json(c, 200, doc);
	template_found_fini(&f);
}

void templates_alias(struct call *c)
{
	struct template_reference r;
	struct template_found f;
	struct store_tag tag;
	struct err e;

	if (!templates_asked(c, &f))
		return;
	if (f.builtin)
		call_json(c, 200,
			  json_pack("{s:s, s:b}", "templateID", f.builtin->name, "public", 1));
	else if (strcmp(f.row.team, c->who.team) != 0)
		e2b_error(c, 403, "template '%.100s' belongs to another team", call_param(c, 0));
	else if (template_reference_parse(call_param(c, 0), NULL, &r, &e) == 0 && r.tagged &&
		 store_tag_get(c->api->store, f.row.id, r.tag, &tag, &e) < 0)
		e2b_error(c, 404, "tag '%s' does not exist for template '%s'", r.tag, r.name);
	else
		call_json(c, 200,
			  json_pack("{s:s, s:b}", "templateID", f.row.id, "public", f.row.public));
	template_found_fini(&f);
}

void templates_patch(struct call *c)
{
	struct template_found f;
	struct err e;

	if (!template_find_own(c, call_param(c, 0), &f))
		return;
	f.row.public = call_flag(c, "public", f.row.public);
	f.row.updated_ns = fleet_now_ns();
	if (store_template_update(c->api->store, &f.row, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, json_pack("{s:o}", "names", templates_names(&f.row)));
	template_found_fini(&f);
}

void templates_delete(struct call *c)
{
	struct template_found f;
	struct err e;

	if (template_find_named(c, call_param(c, 0), &f, &e) == 0)
		template_found_fini(&f);
	else if (e2b_snapshot_delete(c, call_param(c, 0)))
		return;
	if (!template_find_own(c, call_param(c, 0), &f))
		return;
	if (template_delete(c->api->builds, f.row.id, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
	template_found_fini(&f);
}

/* ---- tags ---- */

void templates_tags(struct call *c)
{
	json_t *all = json_array();
	struct store_tags rows = { 0 };
	struct template_found f;
	struct err e;

	if (!templates_asked(c, &f)) {
		json_decref(all);
		return;
	}
	if (f.builtin)
		json_array_append_new(all, json_pack("{s:s, s:s, s:o}", "tag", TEMPLATE_TAG,
						     "buildID", f.builtin->build, "createdAt",
						     templates_time(c->api->started_ns)));
	else if (store_tag_list(c->api->store, f.row.id, &rows, &e) == 0)
		for (unsigned i = 0; i < rows.n; i++)
			json_array_append_new(all,
					      json_pack("{s:s, s:s, s:o}", "tag", rows.v[i].tag,
							"buildID", rows.v[i].build, "createdAt",
							templates_time(rows.v[i].created_ns)));
	store_tags_fini(&rows);
	call_json(c, 200, all);
	template_found_fini(&f);
}

static int templates_put_tags(struct call *c, const char *template, const char *build,
			      const json_t *tags, struct err *e)
{
	struct store_tag one = { .created_ns = fleet_now_ns() };
	const json_t *tag;
	size_t i;

	snprintf(one.build, sizeof(one.build), "%s", build);
	json_array_foreach(tags, i, tag)
	{
		snprintf(one.tag, sizeof(one.tag), "%s", json_string_value(tag));
		if (store_tag_put(c->api->store, template, &one, e) < 0)
			return -1;
	}
	return 0;
}

/* Points more tags to the build of one tag. */
void templates_tag(struct call *c)
{
	const char *target = call_text(c, "target", "");
	json_t *tags = json_array();
	struct template_reference r;
	struct template_found f;
	struct store_tag has;
	struct err e;

	if (template_find_tags(tags, call_get(c, "tags"), &e) < 0 ||
	    template_reference_parse(target, NULL, &r, &e) < 0) {
		call_fail(c, &e);
	} else if (!json_array_size(tags)) {
		e2b_error(c, 400, "tags: at least one is needed");
	} else if (template_find_own(c, target, &f)) {
		if (store_tag_get(c->api->store, f.row.id, r.tag, &has, &e) < 0)
			e2b_error(c, 404, "template '%s' has no tag '%s'", r.name, r.tag);
		else if (templates_put_tags(c, f.row.id, has.build, tags, &e) < 0)
			call_fail(c, &e);
		else
			call_json(c, 201,
				  json_pack("{s:s, s:O}", "buildID", has.build, "tags", tags));
		template_found_fini(&f);
	}
	json_decref(tags);
}

static int templates_remove_tags(struct call *c, const char *template, const json_t *tags,
				 struct err *e)
{
	const json_t *tag;
	size_t i;

	json_array_foreach(tags, i, tag)
	{
		if (store_tag_remove(c->api->store, template, json_string_value(tag), e) < 0 &&
		    e->kind != ERR_NOT_FOUND)
			return -1;
	}
	return 0;
}

static int templates_untag_check(struct call *c, json_t *tags, struct err *e)
{
	const json_t *tag;
	size_t i;

	if (template_find_tags(tags, call_get(c, "tags"), e) < 0)
		return -1;
	if (!json_array_size(tags))
		return err_set(e, ERR_INVALID, "tags: at least one is needed");
	if (strchr(call_text(c, "name", ""), ':'))
		return err_set(e, ERR_INVALID, "name: must not have a tag; put it into tags");
	json_array_foreach(
		tags, i,
		tag) if (!strcmp(json_string_value(tag),
				 TEMPLATE_TAG)) return err_set(e, ERR_INVALID,
							       "the tag '%s' cannot be removed",
							       TEMPLATE_TAG);
	return 0;
}

void templates_untag(struct call *c)
{
	json_t *tags = json_array();
	struct template_found f;
	struct err e;

	if (templates_untag_check(c, tags, &e) < 0) {
		call_fail(c, &e);
	} else if (template_find_own(c, call_text(c, "name", ""), &f)) {
		if (templates_remove_tags(c, f.row.id, tags, &e) < 0)
			call_fail(c, &e);
		else
			call_empty(c, 204);
		template_found_fini(&f);
	}
	json_decref(tags);
}
