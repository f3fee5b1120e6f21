/* templates.c - see templates.h. A name is its own id here: a filter by either finds the same. */
#include "e2bcontrol/templates.h"
#include "template/builtin.h"
#include "e2bcontrol/snapshots.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "e2bcontrol/sandbox_json.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_TAG "default"

/* Number of sandboxes that this server made of each. */
static struct spawns {
	uint64_t count;
	int64_t last_ns;
} spawns[BUILTIN_TEMPLATES];

static const struct builtin_template *templates_find(const char *reference)
{
	size_t n = strcspn(reference, ":");

	if (reference[n] && strcasecmp(reference + n + 1, DEFAULT_TAG) != 0)
		return NULL;
	for (unsigned i = 0; i < BUILTIN_TEMPLATES; i++)
		if (builtin_templates[i].build && strlen(builtin_templates[i].name) == n &&
		    !strncasecmp(builtin_templates[i].name, reference, n))
			return &builtin_templates[i];
	return NULL;
}

const char *templates_known(const char *reference)
{
	const struct builtin_template *t = templates_find(reference);

	return t ? t->name : NULL;
}

void templates_spawned(const char *id)
{
	const struct builtin_template *t = templates_find(id);

	if (t)
		spawns[t - builtin_templates] =
			(struct spawns){ spawns[t - builtin_templates].count + 1, fleet_now_ns() };
}

const char *templates_of(const struct e2b_box *x)
{
	return x->template[0] ? x->template : builtin_templates[0].name;
}

/* ---- as JSON ---- */

/* The template is this machine, so its age is that of the daemon. */
static json_t *templates_since(const struct call *c)
{
	return json_time((uint64_t)c->api->started_ns);
}

static struct store_limits templates_limits(const struct call *c)
{
	const struct wire_limits *l = &c->api->fleet.conf.limits;

	uint64_t mem = l->mem_bytes == WIRE_DEFAULT ? WIRE_USUAL_MEM : l->mem_bytes,
		 disk = mem / 2 < WIRE_USUAL_DISK ? mem / 2
						  : WIRE_USUAL_DISK; /* as the keeper does */

	return (struct store_limits){
		.mem_bytes = mem,
		.disk_bytes = l->disk_bytes == WIRE_DEFAULT ? disk : l->disk_bytes,
		.cpu_milli = l->cpu_milli == (uint32_t)WIRE_DEFAULT ? WIRE_USUAL_CPU_MILLI
								    : l->cpu_milli,
	};
}

static void set_size(const struct call *c, json_t *doc)
{
	struct store_limits l = templates_limits(c);

	json_object_set_new(doc, "cpuCount", json_integer(sandbox_json_cpus(&l)));
	json_object_set_new(doc, "memoryMB",
			    json_integer((json_int_t)(sandbox_json_memory(&l) >> 20)));
	json_object_set_new(doc, "diskSizeMB", json_integer((json_int_t)(l.disk_bytes >> 20)));
	json_object_set_new(doc, "envdVersion", json_string(E2B_ENVD_VERSION));
}

static json_t *templates_common(const struct call *c, const struct builtin_template *t)
{
	const struct spawns *n = &spawns[t - builtin_templates];

	return json_pack("{s:s, s:b, s:[s], s:[s], s:o, s:o, s:o, s:I}", "templateID", t->name,
			 "public", 1, "aliases", t->name, "names", t->name, "createdAt",
			 templates_since(c), "updatedAt", templates_since(c), "lastSpawnedAt",
			 n->last_ns ? json_time((uint64_t)n->last_ns) : json_null(), "spawnCount",
			 (json_int_t)n->count);
}

static json_t *templates_listed(const struct call *c, const struct builtin_template *t)
{
	json_t *doc = templates_common(c, t);

	json_object_set_new(doc, "buildID", json_string(t->build));
	json_object_set_new(doc, "buildStatus", json_string("ready"));
	json_object_set_new(doc, "buildCount", json_integer(1));
	json_object_set_new(doc, "createdBy", json_null());
	set_size(c, doc);
	return doc;
}

void templates_list(struct call *c)
{
	json_t *all = json_array();

	for (unsigned i = 0; i < BUILTIN_TEMPLATES; i++)
		if (builtin_templates[i].build)
			json_array_append_new(all, templates_listed(c, &builtin_templates[i]));
	call_json(c, 200, all);
}

/* ---- one ---- */

static const struct builtin_template *templates_asked(struct call *c)
{
	const struct builtin_template *t = templates_find(call_param(c, 0));
	auto_buf struct buf names = { 0 };

	if (!t) {
		builtin_template_names(&names, 1);
		e2b_error(c, 404, "there is no template '%.100s'; there are %s", call_param(c, 0),
			  buf_str(&names));
	}
	return t;
}

void templates_show(struct call *c)
{
	const struct builtin_template *t = templates_asked(c);
	json_t *doc, *build;

	if (!t)
		return;
	build = json_pack("{s:s, s:s, s:o, s:o, s:o}", "buildID", t->build, "status", "ready",
			  "createdAt", templates_since(c), "updatedAt", templates_since(c),
			  "finishedAt", templates_since(c));
	set_size(c, build);
	doc = templates_common(c, t);
	json_object_set_new(doc, "builds", json_pack("[o]", build));
	call_json(c, 200, doc);
}

void templates_alias(struct call *c)
{
	const struct builtin_template *t = templates_asked(c);

	if (t)
		call_json(c, 200, json_pack("{s:s, s:b}", "templateID", t->name, "public", 1));
}

void templates_tags(struct call *c)
{
	const struct builtin_template *t = templates_asked(c);

	if (t)
		call_json(c, 200,
			  json_pack("[{s:s, s:s, s:o}]", "tag", DEFAULT_TAG, "buildID", t->build,
				    "createdAt", templates_since(c)));
}

void templates_delete(struct call *c)
{
	const struct builtin_template *t;

	if (!templates_find(call_param(c, 0)) && e2b_snapshot_delete(c, call_param(c, 0)))
		return;
	t = templates_asked(c);
	if (t)
		call_error(c, 403, "denied", "this template is part of the server", t->name, NULL);
}
