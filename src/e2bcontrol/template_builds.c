/* template_builds.c - see template_builds.h. */
#include "e2bcontrol/template_builds.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "e2bcontrol/template_find.h"
#include "e2bcontrol/template_steps.h"
#include "e2bcontrol/templates.h"
#include "fleet/bounds.h"
#include "record/record.h"
#include "template/build.h"
#include "template/dockerfile.h"

#include <stdio.h>
#include <string.h>

enum {
	BUILDS_ENTRIES = 100,
	BUILDS_WARN = 2,
	BUILDS_TAGS = 64,
	BUILDS_CPUS = 1024,
	BUILDS_MB = 1 << 30
};
#define BUILDS_MS_MAX (INT64_C(1) << 43)

const struct field template_builds_fields[] = {
	{ "name", FIELD_TEXT, 0, 0, 200, "name or name:tag", NULL },
	{ "alias", FIELD_TEXT, 0, 0, 200, "older clients: the name", NULL },
	{ "tags", FIELD_TEXTS, 0, 0, BUILDS_TAGS, "tags of the build (default: default)", NULL },
	{ "teamID", FIELD_TEXT, 0, 0, 200, "ignored; the team is that of the key", NULL },
	{ "cpuCount", FIELD_INT, 0, 1, BUILDS_CPUS, "processors of its sandboxes", NULL },
	{ "memoryMB", FIELD_INT, 0, 128, BUILDS_MB, "memory of its sandboxes", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field template_builds_v1_fields[] = {
	{ "dockerfile", FIELD_TEXT, 1, 0, DOCKERFILE_BYTES, "the Dockerfile", NULL },
	{ "alias", FIELD_TEXT, 0, 0, 200, "the name", NULL },
	{ "startCmd", FIELD_TEXT, 0, 0, DEFINITION_TEXT, "command that every sandbox starts with",
	  NULL },
	{ "readyCmd", FIELD_TEXT, 0, 0, DEFINITION_TEXT,
	  "command that succeeds when a sandbox is ready", NULL },
	{ "cpuCount", FIELD_INT, 0, 1, BUILDS_CPUS, "processors of its sandboxes", NULL },
	{ "memoryMB", FIELD_INT, 0, 128, BUILDS_MB, "memory of its sandboxes", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
static const struct field builds_levels[] = {
	FIELD_VALUE("debug"), FIELD_VALUE("info"), FIELD_VALUE("warn"), FIELD_VALUE("error"), { 0 }
};
static const struct field builds_directions[] = { FIELD_VALUE("forward"),
						  FIELD_VALUE("backward"),
						  { 0 } };
#define BUILDS_LOG_FIELDS                                                                            \
	{                                                                                            \
		"limit", FIELD_INT, 0, 0, BUILDS_ENTRIES, "maximum number of entries (default 100)", \
		NULL                                                                                 \
	},                                                                                           \
	{                                                                                            \
		"level", FIELD_CHOICE, 0, 0, 0, "lowest level (default debug)", builds_levels        \
	}
const struct field template_builds_status_query[] = {
	BUILDS_LOG_FIELDS,
	{ "logsOffset", FIELD_INT, 0, 0, INT32_MAX, "number of entries to skip", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field template_builds_logs_query[] = {
	BUILDS_LOG_FIELDS,
	{ "cursor", FIELD_INT, 0, 0, BUILDS_MS_MAX, "start time, in milliseconds since 1970",
	  NULL },
	{ "direction", FIELD_CHOICE, 0, 0, 0, "forward (default) or backward: newest first",
	  builds_directions },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

/* ---- requested ---- */

/* out_tags: the tag of the name first, then those of the body, each once; never empty. */
static int builds_names(struct call *c, struct template_reference *out, json_t *out_tags,
			struct err *e)
{
	const char *name = call_text(c, "name", call_text(c, "alias", ""));

	if (!*name)
		return err_set(e, ERR_INVALID, "name: is needed");
	if (template_reference_parse(name, c->who.team, out, e) < 0) {
		e->kind = ERR_INVALID; /* the name of another team is not a missing template */
		return -1;
	}
	if (out->tagged && template_find_tag(out_tags, out->tag, e) < 0)
		return -1;
	if (template_find_tags(out_tags, call_get(c, "tags"), e) < 0)
		return -1;
	if (!json_array_size(out_tags))
		json_array_append_new(out_tags, json_string(TEMPLATE_TAG));
	return 0;
}

static int builds_create(struct call *c, json_t *tags, struct template_reference *name,
			 struct store_build *out, struct err *e)
{
	struct wire_limits want = c->api->fleet.conf.limits;
	struct build_request r = { .team = c->who.team, .name = name->name, .tags = tags };

	if (builds_names(c, name, tags, e) < 0)
		return -1;
	r.cpu_milli = (uint32_t)call_int(c, "cpuCount", 0) * 1000;
	r.mem_bytes = (uint64_t)call_int(c, "memoryMB", 0) << 20;
	want.cpu_milli = r.cpu_milli ? r.cpu_milli : want.cpu_milli;
	want.mem_bytes = r.mem_bytes ? r.mem_bytes : want.mem_bytes;
	if (bounds_check(&c->api->fleet.conf.most, &want, e) < 0)
		return -1;
	return build_create(c->api->builds, &r, out, e);
}

static void builds_registered(struct call *c, const struct store_build *b, const json_t *tags,
			      const struct template_reference *name)
{
	struct template_found f;
	struct err e;

	if (template_find(c->api->store, c->who.team, b->template, &f, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_json(c, 202,
		  json_pack("{s:s, s:s, s:b, s:[s], s:[o], s:O}", "templateID", b->template,
			    "buildID", b->id, "public", f.row.public, "aliases", name->name,
			    "names", json_sprintf("%s/%s", c->who.team, name->name), "tags", tags));
	template_found_fini(&f);
}

void template_builds_request(struct call *c)
{
	struct template_reference name;
	struct store_build b = { 0 };
	json_t *tags = json_array();
	struct err e;

	if (builds_create(c, tags, &name, &b, &e) < 0)
		call_fail(c, &e);
	else
		builds_registered(c, &b, tags, &name);
	store_build_fini(&b);
	json_decref(tags);
}

static void builds_answer_v2(struct call *c, const struct template_found *f,
			     const struct store_build *b)
{
	json_t *doc = templates_json(c, f);

	json_object_set_new(doc, "buildID", json_string(b->id));
	call_json(c, 202, doc);
}

void template_builds_request_v2(struct call *c)
{
	struct template_reference name;
	struct template_found f = { 0 };
	struct store_build b = { 0 };
	json_t *tags = json_array();
	struct err e;

	if (builds_create(c, tags, &name, &b, &e) < 0 ||
	    template_find(c->api->store, c->who.team, b.template, &f, &e) < 0)
		call_fail(c, &e);
	else
		builds_answer_v2(c, &f, &b);
	template_found_fini(&f);
	store_build_fini(&b);
	json_decref(tags);
}

/* ---- started ---- */

/* E2B's first API: a Dockerfile. The client pushes an image to a registry of E2B's; here the Dockerfile
 * itself is built, from the request on. */
static int builds_dockerfile(struct call *c, json_t **out, struct err *e)
{
	static const char *const texts[][2] = { { "startCmd", "start" }, { "readyCmd", "ready" } };
	const char *text = call_text(c, "dockerfile", "");
	const struct dockerfile_options o = { 0 };

	if (dockerfile_parse(text, strlen(text), &o, out, e) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++)
		if (call_get(c, texts[i][0]))
			json_object_set(*out, texts[i][1], call_get(c, texts[i][0]));
	if (definition_check(*out, e) == 0)
		return 0;
	json_decref(*out);
	return err_in(e, "dockerfile");
}

void template_builds_request_v1(struct call *c)
{
	json_t *definition, *tags = json_array();
	struct template_reference name;
	struct template_found f = { 0 };
	struct store_build b = { 0 };
	struct err e;

	if (builds_dockerfile(c, &definition, &e) < 0) {
		call_fail(c, &e);
		json_decref(tags);
		return;
	}
	if (builds_create(c, tags, &name, &b, &e) < 0 ||
	    build_begin(c->api->builds, b.id, definition, NULL, 0, &e) < 0 ||
	    template_find(c->api->store, c->who.team, b.template, &f, &e) < 0)
		call_fail(c, &e);
	else
		builds_answer_v2(c, &f, &b);
	template_found_fini(&f);
	store_build_fini(&b);
	json_decref(definition);
	json_decref(tags);
}

/* Another build of a template: its name is in the path. */
void template_builds_again_v1(struct call *c)
{
	struct template_found f;

	if (!template_find_own(c, call_param(c, 0), &f))
		return;
	json_object_set_new(c->body, "name", json_string(f.row.name));
	template_found_fini(&f);
	template_builds_request_v1(c);
}

/* It was started by the request. */
void template_builds_start_v1(struct call *c)
{
	struct store_build b;

	if (!template_find_build(c, &b))
		return;
	if (!strcmp(b.definition, "{}"))
		e2b_error(c, 400,
			  "the build has no steps; send them to POST /v2/templates/%s/builds/%s",
			  b.template, b.id);
	else
		call_empty(c, 202);
	store_build_fini(&b);
}

void template_builds_start(struct call *c)
{
	json_t *definition;
	struct store_build b;
	struct err e;

	if (!template_find_build(c, &b))
		return;
	if (template_steps_definition(c->body, &definition, &e) < 0) {
		call_fail(c, &e);
	} else {
		if (build_begin(c->api->builds, b.id, definition, NULL, call_flag(c, "force", 0),
				&e) == 0)
			call_empty(c, 202);
		else if (e.kind == ERR_CONFLICT)
			e2b_error(c, 400, "build is not in waiting state");
		else
			call_fail(c, &e);
		json_decref(definition);
	}
	store_build_fini(&b);
}

/* ---- followed ---- */

struct builds_page {
	int64_t skip, limit;
	int level;
	int backward;
	const char *since; /* time of the first entry; "": any */
};

static int builds_level(const char *name)
{
	int i = 0;

	while (name && builds_levels[i].name && strcmp(builds_levels[i].name, name) != 0)
		i++;
	return name && builds_levels[i].name ? i : 0;
}

/* An entry as the client gets it; NULL: it is below the level, or older. */
static json_t *builds_entry(const char *line, size_t n, const struct builds_page *p)
{
	json_t *doc = json_loadb(line, n, 0, NULL);
	const char *at = json_string_value(json_object_get(doc, "timestamp"));

	if (doc && builds_level(json_string_value(json_object_get(doc, "level"))) >= p->level &&
	    (!p->since[0] || (at && strcmp(at, p->since) >= 0)))
		return doc;
	json_decref(doc);
	return NULL;
}

/* With a level or a time every line is parsed; otherwise only those of the page are. */
static void builds_forward(const struct buf *log, const struct builds_page *p, json_t *out)
{
	int all = !p->level && !p->since[0];
	int64_t skip = p->skip;

	for (size_t at = 0; at < log->len && (int64_t)json_array_size(out) < p->limit;) {
		const char *line = log->p + at, *end = memchr(line, '\n', log->len - at);
		size_t n = end ? (size_t)(end - line) : log->len - at;
		json_t *entry = all && skip > 0 ? NULL : builds_entry(line, n, p);

		at += n + 1;
		if (skip > 0)
			skip -= all || entry;
		else if (entry)
			json_array_append(out, entry);
		json_decref(entry);
	}
}

static void builds_backward(const struct buf *log, const struct builds_page *p, json_t *out)
{
	size_t end = log->len;

	while (end && (int64_t)json_array_size(out) < p->limit) {
		const char *before;
		size_t start;
		json_t *entry;

		if (log->p[end - 1] == '\n' && --end == 0)
			break;
		before = memrchr(log->p, '\n', end);
		start = before ? (size_t)(before - log->p) + 1 : 0;
		entry = builds_entry(log->p + start, end - start, p);
		if (entry)
			json_array_append_new(out, entry);
		end = start;
	}
}

static int builds_entries(struct call *c, const struct store_build *b, const struct builds_page *p,
			  json_t **out, struct err *e)
{
	auto_buf struct buf log = { 0 };
	json_t *definition, *one;
	uint64_t next;
	size_t i;

	if (build_log_read(c->api->builds, b->id, 0, 2 * BUILD_LOG_BYTES, &log, &next, e) < 0)
		return -1;
	*out = json_array();
	if (p->backward)
		builds_backward(&log, p, *out);
	else
		builds_forward(&log, p, *out);
	definition = json_loads(b->definition, 0, NULL);
	json_array_foreach(*out, i, one) json_object_set_new(
		one, "step", template_steps_name(definition, json_object_get(one, "step")));
	json_decref(definition);
	return 0;
}

/* Warnings and errors of the failed step, of the entries in this answer. */
static void builds_reason_entries(json_t *reason, const json_t *entries)
{
	json_t *out = json_array();
	json_t *one;
	size_t i;

	json_array_foreach(entries, i, one) if (json_equal(json_object_get(one, "step"),
							   json_object_get(reason, "step")) &&
						builds_level(json_string_value(
							json_object_get(one, "level"))) >=
							BUILDS_WARN) json_array_append(out, one);
	json_object_set_new(reason, "logEntries", out);
}

void template_builds_status(struct call *c)
{
	struct builds_page p = { .skip = call_query_int(c, "logsOffset", 0),
				 .limit = call_query_int(c, "limit", BUILDS_ENTRIES),
				 .level = builds_level(call_query(c, "level")),
				 .since = "" };
	json_t *entries, *reason, *doc;
	struct store_build b;
	struct err e;

	if (!template_find_build(c, &b))
		return;
	if (builds_entries(c, &b, &p, &entries, &e) < 0) {
		call_fail(c, &e);
	} else {
		doc = json_pack("{s:s, s:s, s:s, s:[], s:o}", "templateID", b.template, "buildID",
				b.id, "status", templates_status(&b), "logs", "logEntries",
				entries);
		reason = template_steps_reason(&b);
		if (reason) {
			builds_reason_entries(reason, entries);
			json_object_set_new(doc, "reason", reason);
		}
		call_json(c, 200, doc);
	}
	store_build_fini(&b);
}

void template_builds_logs(struct call *c)
{
	int64_t cursor = call_query_int(c, "cursor", 0);
	const char *direction = call_query(c, "direction");
	json_t *since = cursor ? json_time((uint64_t)cursor * 1000000) : json_string("");
	struct builds_page p = { .limit = call_query_int(c, "limit", BUILDS_ENTRIES),
				 .level = builds_level(call_query(c, "level")),
				 .backward = direction && !strcmp(direction, "backward"),
				 .since = json_string_value(since) };
	struct store_build b;
	json_t *entries;
	struct err e;

	if (template_find_build(c, &b)) {
		if (builds_entries(c, &b, &p, &entries, &e) < 0)
			call_fail(c, &e);
		else
			call_json(c, 200, json_pack("{s:o}", "logs", entries));
		store_build_fini(&b);
	}
	json_decref(since);
}
