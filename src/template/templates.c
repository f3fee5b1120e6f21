/* templates.c - see templates.h. */
#include "template/templates.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "store/teams.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- references ---- */

/* n bytes in lower case; -1: another character than letters, digits and `more`, or too long. */
static int templates_word(char *out, size_t size, const char *from, size_t n, const char *more)
{
	if (n == 0 || n >= size)
		return -1;
	for (size_t i = 0; i < n; i++) {
		char x = (char)tolower((unsigned char)from[i]);

		if (!(x >= 'a' && x <= 'z') && !(x >= '0' && x <= '9') &&
		    (i == 0 || !strchr(more, x)))
			return -1;
		out[i] = x;
	}
	out[n] = 0;
	return 0;
}

int template_reference_parse(const char *text, const char *team, struct template_reference *out,
			     struct err *e)
{
	const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text,
		   *colon = strchr(name, ':');

	*out = (struct template_reference){ .tag = TEMPLATE_TAG, .tagged = colon != NULL };
	if (slash && team &&
	    ((size_t)(slash - text) != strlen(team) || strncmp(text, team, strlen(team))))
		return err_set(e, ERR_NOT_FOUND, "template '%.80s' belongs to another team", text);
	if (templates_word(out->name, sizeof(out->name), name,
			   colon ? (size_t)(colon - name) : strlen(name), "-_") < 0 ||
	    (colon &&
	     templates_word(out->tag, sizeof(out->tag), colon + 1, strlen(colon + 1), "-_.") < 0))
		return err_set(
			e, ERR_INVALID,
			"template '%.80s': a name has up to %d letters, digits, - and _, and "
			"begins with a letter or digit; a tag, after a colon, has dots as well",
			text, STORE_NAME);
	return 0;
}

int template_id_new(char out_id[STORE_TEMPLATE_ID + 1], struct err *e)
{
	uint8_t random[STORE_TEMPLATE_ID];

	if (id_random(random, sizeof(random), e) < 0)
		return -1;
	for (unsigned i = 0; i < STORE_TEMPLATE_ID; i++)
		out_id[i] = "abcdefghijklmnopqrstuvwxyz234567"[random[i] % 32];
	out_id[STORE_TEMPLATE_ID] = 0;
	return 0;
}

int template_uuid_new(char out_id[STORE_BUILD_ID + 1], struct err *e)
{
	uint8_t r[16];

	if (id_random(r, sizeof(r), e) < 0)
		return -1;
	snprintf(out_id, STORE_BUILD_ID + 1,
		 "%02x%02x%02x%02x-%02x%02x-4%x%02x-%x%x%02x-%02x%02x%02x%02x%02x%02x", r[0], r[1],
		 r[2], r[3], r[4], r[5], r[6] & 15u, r[7], 8 + (r[8] & 3u), r[8] >> 4, r[9], r[10],
		 r[11], r[12], r[13], r[14], r[15]);
	return 0;
}

int template_is_uuid(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

	if (strlen(text) != sizeof(form) - 1)
		return 0;
	for (unsigned i = 0; form[i]; i++)
		if (form[i] == '-' ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return 0;
	return 1;
}

/* ---- finding ---- */

void template_found_fini(struct template_found *f)
{
	store_template_fini(&f->row);
	store_build_fini(&f->build);
}

static int templates_missing(struct store *s, const char *team, const char *reference,
			     struct err *e)
{
	auto_buf struct buf names = { 0 };
	struct store_templates rows = { 0 };

	if (store_template_list(s, team, 0, &rows, e) < 0)
		return -1;
	for (unsigned i = 0; i < rows.n && names.len < 60; i++)
		buf_printf(&names, "%s, ", rows.v[i].name);
	store_templates_fini(&rows);
	builtin_template_names(&names, 1);
	return err_set(e, ERR_NOT_FOUND, "there is no template '%.60s'; there are %.120s",
		       reference, buf_str(&names));
}

int template_find(struct store *s, const char *team, const char *reference,
		  struct template_found *out, struct err *e)
{
	struct template_found found = { 0 };
	struct template_reference r;

	if (template_reference_parse(reference, NULL, &r, e) < 0)
		return -1;
	if (strcmp(r.name, TEMPLATE_BASE) == 0 ||
	    store_template_find(s, team, r.name, &found.row, e) < 0) {
		if (strcmp(r.name, TEMPLATE_BASE) != 0 && e->kind != ERR_NOT_FOUND)
			return -1;
		found.shipped = shipped_template_find(r.name);
		found.builtin = found.shipped ? NULL : builtin_template_find(r.name);
		if ((!found.builtin && !found.shipped) ||
		    (r.tagged && strcmp(r.tag, TEMPLATE_TAG) != 0))
			return templates_missing(s, team, reference, e);
	}
	snprintf(found.name, sizeof(found.name), "%s%s%s",
		 found.builtin   ? found.builtin->name
		 : found.shipped ? found.shipped->name
				 : found.row.name,
		 r.tagged && strcmp(r.tag, TEMPLATE_TAG) != 0 ? ":" : "",
		 r.tagged && strcmp(r.tag, TEMPLATE_TAG) != 0 ? r.tag : "");
	*out = found;
	return 0;
}

/* No tag of that name: says why. */
static int templates_unbuilt(struct store *s, const struct template_found *f, const char *tag,
			     struct err *e)
{
	struct store_builds newest = { 0 };
	enum store_build_state state = STORE_BUILD_STATES;

	if (store_build_list(s, NULL, f->row.id, 1, &newest, e) == 0 && newest.n)
		state = newest.v[0].state;
	store_builds_fini(&newest);
	if (state == STORE_BUILD_READY)
		return err_set(e, ERR_NOT_FOUND,
			       "template '%s' has no tag '%s'; GET /v1/templates/%s lists its tags",
			       f->row.name, tag, f->row.name);
	if (state == STORE_BUILD_STATES)
		return err_set(e, ERR_CONFLICT, "template '%s' has no build yet", f->row.name);
	return err_set(e, ERR_CONFLICT,
		       "template '%s' has no ready build with the tag '%s'; its newest build is in "
		       "state %s",
		       f->row.name, tag, store_build_state_name(state));
}

/* The build that a tag names, or that has this id. */
static int templates_build(struct store *s, struct template_found *f, const char *tag,
			   struct err *e)
{
	struct store_tag named;

	if (template_is_uuid(tag)) {
		if (store_build_get(s, tag, &f->build, e) == 0 &&
		    !strcmp(f->build.template, f->row.id) && f->build.state == STORE_BUILD_READY)
			return 0;
		return err_set(e, ERR_NOT_FOUND, "template '%s' has no ready build '%s'",
			       f->row.name, tag);
	}
	if (store_tag_get(s, f->row.id, tag, &named, e) < 0)
		return e->kind == ERR_NOT_FOUND ? templates_unbuilt(s, f, tag, e) : -1;
	return store_build_get(s, named.build, &f->build, e);
}

/* The id of a build as `ID:BUILD`; that of a missing build as it is. */
static const char *templates_by_build(struct store *s, const char *reference, char *out,
				      size_t size)
{
	struct store_build b = { 0 };
	struct err ignored;

	snprintf(out, size, "%s", reference);
	if (store_build_get(s, reference, &b, &ignored) == 0)
		snprintf(out, size, "%s:%s", b.template, b.id);
	store_build_fini(&b);
	return out;
}

int template_resolve(struct store *s, const char *team, const char *reference,
		     struct template_found *out, struct err *e)
{
	char by_build[STORE_TEMPLATE_ID + STORE_BUILD_ID + 2];
	struct template_reference r;
	struct template_found found;
	int rc = 0;

	if (template_is_uuid(reference))
		reference = templates_by_build(s, reference, by_build, sizeof(by_build));
	if (template_find(s, team, reference, &found, e) < 0)
		return -1;
	if (found.shipped) {
		rc = err_set(e, ERR_CONFLICT,
			     "template '%s' has not been built yet: atoll template build %s",
			     found.shipped->name, found.shipped->name);
	} else if (!found.builtin) {
		rc = template_reference_parse(reference, NULL, &r, e);
		if (rc == 0)
			rc = templates_build(s, &found, r.tag, e);
	}
	if (rc < 0)
		template_found_fini(&found);
	else
		*out = found;
	return rc;
}

/* ---- as JSON ---- */

static json_t *templates_time(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

static json_t *templates_parse(const char *text, json_t *otherwise)
{
	json_t *doc = text ? json_loads(text, 0, NULL) : NULL;

	if (!doc)
		return otherwise;
	json_decref(otherwise);
	return doc;
}

json_t *template_build_json(const struct store_build *b)
{
	json_t *reason = templates_parse(b->reason, json_object());
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:I}", "id", b->id, "template",
			  b->template, "state", store_build_state_name(b->state), "tags",
			  templates_parse(b->tags, json_array()), "created",
			  templates_time(b->created_ns), "started", templates_time(b->started_ns),
			  "ended", templates_time(b->ended_ns), "reason",
			  json_object_size(reason) ? json_incref(reason) : json_null(), "bytes",
			  (json_int_t)b->bytes);

	json_decref(reason);
	return doc;
}

/* env, user, workdir ... of the build that `default` names. */
static void templates_add_settings(json_t *doc, const struct store_build *b)
{
	json_t *settings = templates_parse(b->settings, json_object()), *v;
	const char *name;

	json_object_foreach(settings, name, v)
	{
		if (strcmp(name, "description") != 0 ||
		    !json_string_length(json_object_get(doc, name)))
			json_object_set(doc, name, v);
	}
	json_decref(settings);
	json_object_set_new(doc, "cpu", json_integer((json_int_t)b->cpu_milli));
	json_object_set_new(doc, "memory", json_integer((json_int_t)b->mem_bytes));
	json_object_set_new(doc, "disk", json_integer((json_int_t)b->disk_bytes));
}

static void templates_add_rows(struct store *s, const struct store_template *t, json_t *doc)
{
	json_t *tags = json_object(), *aliases = json_array(), *builds = json_array();
	struct store_build used = { 0 };
	struct store_aliases names = { 0 };
	struct store_builds rows = { 0 };
	struct store_tags named = { 0 };
	struct err e;

	if (store_tag_list(s, t->id, &named, &e) == 0)
		for (unsigned i = 0; i < named.n; i++)
			json_object_set_new(tags, named.v[i].tag, json_string(named.v[i].build));
	if (store_alias_list(s, t->id, &names, &e) == 0)
		for (unsigned i = 0; i < names.n; i++)
			json_array_append_new(aliases, json_string(names.v[i]));
	if (store_build_list(s, NULL, t->id, 20, &rows, &e) == 0)
		for (unsigned i = 0; i < rows.n; i++)
			json_array_append_new(builds, template_build_json(&rows.v[i]));
	if (store_build_newest(s, t->id, &used, &e) == 0)
		templates_add_settings(doc, &used);
	json_object_set_new(doc, "built", json_boolean(named.n > 0));
	json_object_set_new(doc, "tags", tags);
	json_object_set_new(doc, "aliases", aliases);
	json_object_set_new(doc, "builds", builds);
	store_tags_fini(&named);
	store_aliases_fini(&names);
	store_builds_fini(&rows);
	store_build_fini(&used);
}

static json_t *templates_builtin_json(const struct builtin_template *t, int64_t started_ns)
{
	json_t *none = json_object();
	json_t *doc = json_pack(
		"{s:s, s:s, s:s, s:b, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:i, s:o, s:i, s:o}", "id",
		t->name, "name", t->name, "team", TEAM_DEFAULT, "public", 1, "builtin", 1, "built",
		1, "description",
		t->cells ? "the host's /usr; code runs as cells, with state, results and plots"
			 : "the host's /usr",
		"tags", none, "aliases", json_array(), "builds", json_array(), "created",
		json_time((uint64_t)started_ns), "pool", 0, "updated",
		json_time((uint64_t)started_ns), "spawns", 0, "spawned", json_null());

	if (t->cells) {
		json_object_set_new(doc, "file", json_string("script.py"));
		json_object_set_new(
			doc, "instructions",
			json_string(
				"Code of a cell, in Python unless another language is named. "
				"Variables stay for the next cell; the last value and figures are results."));
	}
	return doc;
}

/* One that comes with the server, before its first build: what its file says. */
static json_t *templates_shipped_json(const struct shipped_template *t, int64_t started_ns)
{
	static const char *const copied[] = { "description", "lib",   "file",  "instructions",
					      "port",        "start", "ready", "cpu",
					      "memory",      "disk" };
	json_t *definition = NULL;
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:s, s:{}, s:[], s:[], s:o, s:o}",
			  "id", t->name, "name", t->name, "team", TEAM_DEFAULT, "public", 1,
			  "builtin", 0, "shipped", 1, "built", 0, "description", "", "tags",
			  "aliases", "builds", "created", json_time((uint64_t)started_ns),
			  "updated", json_time((uint64_t)started_ns));
	struct err e;

	if (shipped_template_definition(t, &definition, &e) < 0)
		json_object_set_new(doc, "description", json_string(e.msg));
	for (unsigned i = 0; i < ARRAY_LEN(copied) && definition; i++)
		if (json_object_get(definition, copied[i]))
			json_object_set(doc, copied[i], json_object_get(definition, copied[i]));
	json_decref(definition);
	return doc;
}

json_t *template_json(struct store *s, const struct template_found *f, int64_t started_ns)
{
	const struct store_template *t = &f->row;
	json_t *doc;

	if (f->builtin)
		return templates_builtin_json(f->builtin, started_ns);
	if (f->shipped)
		return templates_shipped_json(f->shipped, started_ns);
	doc = json_pack("{s:s, s:s, s:s, s:b, s:b, s:s, s:o, s:o, s:i, s:I, s:o}", "id", t->id,
			"name", t->name, "team", t->team, "public", t->public, "builtin", 0,
			"description", t->description, "created", templates_time(t->created_ns),
			"updated", templates_time(t->updated_ns), "pool", (int)t->pool, "spawns",
			(json_int_t)t->spawns, "spawned", templates_time(t->spawned_ns));
	templates_add_rows(s, t, doc);
	return doc;
}

static int templates_has(const struct store_templates *rows, const char *name)
{
	for (unsigned i = 0; i < rows->n; i++)
		if (!strcmp(rows->v[i].name, name))
			return 1;
	return 0;
}

int template_list_json(struct store *s, const char *team, int64_t started_ns, json_t **out,
		       struct err *e)
{
	struct store_templates rows = { 0 };
	json_t *all;

	if (store_template_list(s, team, 0, &rows, e) < 0)
		return -1;
	all = json_array();
	for (unsigned i = 0; i < BUILTIN_TEMPLATES; i++) {
		struct template_found f = { .builtin = &builtin_templates[i] };

		if (f.builtin->build && !templates_has(&rows, f.builtin->name))
			json_array_append_new(all, template_json(s, &f, started_ns));
	}
	for (const struct shipped_template *t = shipped_templates; t < shipped_templates_end; t++) {
		struct template_found f = { .shipped = t };

		if (!templates_has(&rows, t->name))
			json_array_append_new(all, template_json(s, &f, started_ns));
	}
	for (unsigned i = 0; i < rows.n; i++) {
		struct template_found f = { .row = rows.v[i] };

		json_array_append_new(all, template_json(s, &f, started_ns));
	}
	store_templates_fini(&rows);
	*out = all;
	return 0;
}
