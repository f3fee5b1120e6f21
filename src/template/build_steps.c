/* build_steps.c - stages and steps in their order: what each changes in the state of its stage, and
 * which layer of the cache replaces its execution. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "template/expand.h"
#include "template/templates.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- state ---- */

const char *build_text(const json_t *doc, const char *name)
{
	const char *v = json_string_value(json_object_get(doc, name));

	return v ? v : "";
}

static unsigned build_index(const struct build *b, const char *name)
{
	return (unsigned)json_integer_value(json_object_get(b->progress, name));
}

json_t *build_stage_at(const struct build *b, unsigned stage)
{
	char name[12];

	snprintf(name, sizeof(name), "%u", stage);
	return json_object_get(json_object_get(b->progress, "stages"), name);
}

json_t *build_stage(const struct build *b)
{
	return build_stage_at(b, build_index(b, "stage"));
}

static json_t *build_definition_stage(const struct build *b, unsigned stage)
{
	return json_array_get(json_object_get(b->definition, "stages"), stage);
}

unsigned build_count_steps(const json_t *definition)
{
	const json_t *stages = json_object_get(definition, "stages"), *stage;
	unsigned n = 0;
	size_t i;

	json_array_foreach(stages, i, stage) if (definition_needs(definition, (unsigned)i)) n +=
		(unsigned)json_array_size(json_object_get(stage, "steps"));
	return n;
}

/* The number of the step in progress among all steps, from 1. */
static unsigned build_number(const struct build *b)
{
	unsigned stage = build_index(b, "stage"), n = build_index(b, "step") + 1;

	for (unsigned i = 0; i < stage; i++)
		if (definition_needs(b->definition, i))
			n += (unsigned)json_array_size(
				json_object_get(build_definition_stage(b, i), "steps"));
	return n;
}

/* ---- stages ---- */

void build_host(char out[BUILD_HOST])
{
	struct stat st = { 0 };

	if (stat("/var/lib/dpkg/status", &st) < 0)
		(void)!stat("/usr/bin", &st);
	snprintf(out, BUILD_HOST, "%lld.%09ld %lld", (long long)st.st_mtim.tv_sec,
		 st.st_mtim.tv_nsec, (long long)st.st_size);
}

void build_stage_set(struct build *b, json_t *take_state)
{
	json_t *stages = json_object_get(b->progress, "stages");
	char name[12], host[BUILD_HOST];

	build_host(host);
	if (json_is_true(json_object_get(take_state, "base")))
		json_object_set_new(take_state, "host", json_string(host));
	if (!stages) {
		stages = json_object();
		json_object_set_new(b->progress, "stages", stages);
	}
	json_object_set_new(take_state, "args", json_object());
	snprintf(name, sizeof(name), "%u", build_index(b, "stage"));
	json_object_set_new(stages, name, take_state);
}

/* E2B's builds begin as `user`, which base has. */
json_t *build_stage_new(const struct build *b, int base)
{
	int user = base && json_is_true(json_object_get(b->definition, "e2b"));

	return json_pack("{s:b, s:[], s:{}, s:s, s:s}", "base", base, "layers", "env", "user",
			 user ? "user" : "", "workdir", user ? "/home/user" : "");
}

/* The layers and the environment of a finished build. */
static int build_from_template(struct build *b, const char *reference, struct err *e)
{
	struct template_found f;
	json_t *progress;
	char name[12];
	json_t *state;

	if (template_resolve(b->all->fleet->store, b->row.team, reference, &f, e) < 0)
		return -1;
	if (f.builtin) {
		template_found_fini(&f);
		build_stage_set(b, build_stage_new(b, 1));
		return 0;
	}
	progress = json_loads(f.build.progress, 0, NULL);
	snprintf(name, sizeof(name), "%d",
		 (int)json_integer_value(json_object_get(progress, "stage")));
	state = json_deep_copy(json_object_get(json_object_get(progress, "stages"), name));
	json_decref(progress);
	template_found_fini(&f);
	if (!state)
		return err_set(e, ERR_CONFLICT, "the build of template '%.80s' has no layers",
			       reference);
	build_stage_set(b, state);
	return 0;
}

/* 0: the stage has its state. 1: it will have it later, or the build has failed. */
static int build_stage_begin(struct build *b)
{
	unsigned stage = build_index(b, "stage");
	const json_t *doc = build_definition_stage(b, stage);
	const char *from = build_text(doc, "from");
	int other = definition_stage(b->definition, from, stage);
	struct err e;

	if (other >= 0) {
		build_stage_set(b, json_deep_copy(build_stage_at(b, (unsigned)other)));
		return 0;
	}
	if (!strcmp(from, TEMPLATE_BASE) || !strcmp(from, "scratch")) {
		build_stage_set(b, build_stage_new(b, !strcmp(from, TEMPLATE_BASE)));
		return 0;
	}
	if (!strncmp(from, "template:", 9)) {
		if (build_from_template(b, from + 9, &e) == 0)
			return 0;
		err_in(&e, "FROM %.60s", from);
		build_fail_err(b, &e);
		return 1;
	}
	if (!strncmp(from, "box:", 4))
		build_from_box(b, from + 4);
	else if (!strncmp(from, "archive:", 8))
		build_from_archive(b, from + 8, json_is_true(json_object_get(doc, "base")));
	else
		build_from_image(b, from, json_object_get(doc, "auth"));
	return 1;
}

/* ---- variables ---- */

const char **build_env(const json_t *stage)
{
	json_t *env = json_object_get(stage, "env"), *args = json_object_get(stage, "args"), *v;
	const char **all = calloc(json_object_size(env) + json_object_size(args) + 1, sizeof(*all));
	const char *name;
	size_t n = 0;

	if (!all)
		abort();
	json_object_foreach(args, name, v) if (!json_object_get(env, name)) all[n++] =
		buf_text("%s=%s", name, json_string_value(v));
	json_object_foreach(env, name, v) all[n++] = buf_text("%s=%s", name, json_string_value(v));
	return all;
}

void build_env_free(const char **env)
{
	for (size_t i = 0; env && env[i]; i++)
		free((char *)env[i]);
	free(env);
}

/* ---- words ---- */

static const char *build_variable(void *ctx, const char *name)
{
	const json_t *stage = ctx;
	const char *v = json_string_value(json_object_get(json_object_get(stage, "env"), name));

	return v ? v : json_string_value(json_object_get(json_object_get(stage, "args"), name));
}

int build_expand_text(const struct build *b, const char *text, struct buf *out, struct err *e)
{
	return expand_text(out, text, build_variable, build_stage(b), e);
}

/* The args of a step with their variables replaced; NULL: failed. */
static json_t *build_expand(const struct build *b, const json_t *step, struct err *e)
{
	json_t *out = json_array();
	const json_t *word;
	size_t i;

	json_array_foreach(json_object_get(step, "args"), i, word)
	{
		auto_buf struct buf text = { 0 };

		if (build_expand_text(b, json_string_value(word), &text, e) < 0) {
			json_decref(out);
			return NULL;
		}
		json_array_append_new(out, json_string(buf_str(&text)));
	}
	return out;
}

/* ---- steps that change only the state ---- */

static void build_set_pairs(json_t *map, const json_t *args)
{
	for (size_t i = 0; i + 1 < json_array_size(args); i += 2)
		json_object_set(map, json_string_value(json_array_get(args, i)),
				json_array_get(args, i + 1));
}

void build_workdir(const json_t *stage, const char *path, struct buf *out)
{
	const char *now = build_text(stage, "workdir");

	if (*path != '/')
		buf_printf(out, "%s/", !strcmp(now, "/") ? "" : now);
	buf_puts(out, path);
	while (out->len > 1 && out->p[out->len - 1] == '/')
		buf_cut(out, out->len - 1);
}

static void build_set_workdir(json_t *stage, const char *path)
{
	auto_buf struct buf whole = { 0 };

	build_workdir(stage, path, &whole);
	json_object_set_new(stage, "workdir", json_string(buf_str(&whole)));
}

/* A build arg of the request is in the definition already: a value that exists is kept. */
static void build_apply(struct build *b, enum definition_step type, const json_t *args)
{
	json_t *stage = build_stage(b);
	const char *first = json_string_value(json_array_get(args, 0));

	if (type == DEFINITION_ENV)
		build_set_pairs(json_object_get(stage, "env"), args);
	else if (type == DEFINITION_ARG)
		build_set_pairs(json_object_get(stage, "args"), args);
	else if (type == DEFINITION_USER)
		json_object_set_new(stage, "user", json_string(first));
	else
		build_set_workdir(stage, first);
}

/* ---- the cache ---- */

/* The layers that a COPY of another stage or image reads; NULL: it reads an upload. */
static json_t *build_source_layers(const struct build *b)
{
	const char *from = build_text(b->step, "from");
	int stage = *from ? definition_stage(b->definition, from, build_index(b, "stage")) : -1;

	return stage < 0 ? NULL : json_object_get(build_stage_at(b, (unsigned)stage), "layers");
}

static void build_key(struct build *b, const json_t *args)
{
	/* The digest is of the files that the step reads; without one, it is any file of the archive. */
	const char *files = json_object_get(b->step, "digest") ? "digest" : "files";
	const char *const fields[] = { "shell",   "exec",    files,     "from",
				       "owner",   "mode",    "content", "manager",
				       "secrets", "network", "user",    "resolve_links" };
	json_t *doc = json_deep_copy(build_stage(b)), *source = build_source_layers(b);
	auto_free char *text = NULL;
	uint8_t sum[SHA256_BYTES];
	struct sha256 s;

	json_object_set_new(doc, "type", json_string(build_text(b->step, "type")));
	json_object_set(doc, "words", (json_t *)args);
	json_object_set_new(doc, "e2b",
			    json_boolean(json_is_true(json_object_get(b->definition, "e2b"))));
	if (source)
		json_object_set(doc, "source", source);
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++) {
		json_t *v = json_object_get(b->step, fields[i]);
		char name[32];

		snprintf(name, sizeof(name), "step.%s", fields[i]);
		if (v && !json_is_null(v))
			json_object_set(doc, name, v);
	}
	text = json_dumps(doc, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(doc);
	if (!text)
		abort();
	sha256_init(&s);
	sha256_add(&s, text, strlen(text));
	sha256_end(&s, sum);
	hex_encode(b->key, sum, sizeof(sum));
}

/* 1: the cache has the layer of this step. */
static int build_cached(struct build *b, char out_layer[STORE_HASH + 1])
{
	auto_free char *state = NULL;
	struct err e;

	if (b->force || json_is_true(json_object_get(b->step, "force"))) {
		b->force = 1; /* all later steps as well */
		return 0;
	}
	return store_cache_get(b->all->fleet->store, b->row.team, b->key, fleet_now_ns(), out_layer,
			       &state, &e) == 0;
}

/* ---- steps ---- */

void build_add_layer(json_t *layers, const char *layer)
{
	for (size_t i = json_array_size(layers); i-- > 0;)
		if (!strcmp(json_string_value(json_array_get(layers, i)), layer))
			json_array_remove(layers, i);
	json_array_append_new(layers, json_string(layer));
}

/* Adds the layer and moves on to the next step. -1: the build has failed. */
static int build_record(struct build *b, const char *layer)
{
	json_t *stage = build_stage(b), *layers = json_object_get(stage, "layers");
	struct err e;

	if (layer[0]) {
		if (json_array_size(layers) >= BUILD_LAYERS) {
			build_fail(b, "more than %d layers: join RUN steps with &&", BUILD_LAYERS);
			return -1;
		}
		build_add_layer(layers, layer);
	}
	if (b->key[0] && layer[0] &&
	    store_cache_put(b->all->fleet->store, b->row.team, b->key, layer, "{}", fleet_now_ns(),
			    &e) < 0) {
		build_fail_err(b, &e);
		return -1;
	}
	if (b->step && (definition_type(b->step) == DEFINITION_USER ||
			definition_type(b->step) == DEFINITION_WORKDIR))
		build_apply(b, definition_type(b->step), b->args);
	json_object_set_new(b->progress, "step", json_integer(build_index(b, "step") + 1));
	b->step = NULL;
	return build_save(b);
}

void build_step_done(struct build *b, const char *layer)
{
	build_log(b, "info", "[%u/%u] done in %.1f s", b->number, b->steps,
		  (double)(loop_now_ms() - b->step_began_ms) / 1000);
	build_box_close(&b->box);
	if (build_record(b, layer) == 0)
		build_continue(b);
}

static void build_packages_done(struct packages_wait *w, const char *layer, uint64_t ms,
				const struct packages_failure *f)
{
	struct build *b = loop_owner(w, struct build, packages);

	(void)ms;
	if (f) {
		if (f->said)
			build_log_output(b, 1, f->said, strlen(f->said));
		build_log_flush(b);
		build_fail(b, "%s", f->message);
	} else {
		build_step_done(b, layer);
	}
}

static void build_packages_said(struct packages_wait *w, unsigned stream, const char *bytes,
				size_t n)
{
	build_log_output(loop_owner(w, struct build, packages), stream, bytes, n);
}

static void build_packages(struct build *b, const json_t *args)
{
	struct packages set = { 0 };
	char layer[STORE_HASH + 1];
	const char *manager = build_text(b->step, "manager");
	const json_t *one;
	struct err e;
	size_t i;
	int there = -1, known;

	if (!json_is_true(json_object_get(build_stage(b), "base"))) {
		build_fail(b, "PACKAGES needs FROM base: packages are for the host's interpreters; "
			      "use RUN in an image");
		return;
	}
	known = package_manager_named(*manager ? manager : "pip");
	if (known < 0) {
		err_set(&e, ERR_INVALID, "PACKAGES: there is no manager '%.20s'", manager);
	} else {
		set.manager = (enum package_manager)known;
		there = 0;
		json_array_foreach(args, i, one) if (there == 0) there =
			packages_add(&set, json_string_value(one), &e);
	}
	if (there == 0) {
		b->packages = (struct packages_wait){ .done = build_packages_done,
						      .said = build_packages_said };
		there = packages_get(b->all->fleet, &set, b->row.team, &b->packages, layer, &e);
	}
	packages_fini(&set);
	if (there < 0)
		build_fail_err(b, &e);
	else if (there > 0)
		build_step_done(b, layer);
}

static void build_box_prepared(struct build *b)
{
	if (definition_type(b->step) == DEFINITION_RUN)
		build_run(b);
	else if (definition_type(b->step) == DEFINITION_USER)
		build_user_step(b);
	else if (definition_type(b->step) == DEFINITION_WORKDIR)
		build_workdir_step(b);
	else
		build_copy_begin(b);
}

static void build_box_ready(struct build_box *x)
{
	build_read_users(x->build, build_box_prepared);
}

static void build_rooted(struct build *b, const char *root)
{
	const json_t *network = json_object_get(b->step, "network");
	int reaches = definition_type(b->step) == DEFINITION_RUN && !json_is_false(network);

	build_box_open(&b->box, root, BUILD_BOX_STEP | (reaches ? BUILD_BOX_NETWORK : 0),
		       b->all->conf.disk_bytes, b->all->conf.step_ms, build_box_ready);
}

/* USER and WORKDIR of an E2B build create the user and the folder; otherwise they only change the state. */
static int build_changes_files(const struct build *b, enum definition_step type)
{
	return type == DEFINITION_RUN || type == DEFINITION_COPY || type == DEFINITION_ADD ||
	       type == DEFINITION_PACKAGES ||
	       ((type == DEFINITION_USER || type == DEFINITION_WORKDIR) &&
		json_is_true(json_object_get(b->definition, "e2b")));
}

/* 0: done. 1: in progress, or the build has failed. */
static int build_step_begin(struct build *b, const json_t *step)
{
	enum definition_step type = definition_type(step);
	char text[200], layer[STORE_HASH + 1];
	json_t *args;
	struct err e;

	b->step = step;
	b->number = build_number(b);
	b->step_began_ms = loop_now_ms();
	b->key[0] = 0;
	buf_cut(&b->said, 0);
	definition_step_text(step, text, sizeof(text));
	args = type == DEFINITION_RUN ? json_incref(json_object_get(step, "args"))
				      : build_expand(b, step, &e);
	if (!args) {
		build_fail_err(b, &e);
		return 1;
	}
	if (!build_changes_files(b, type)) {
		build_log(b, "info", "[%u/%u] %s", b->number, b->steps, text);
		build_apply(b, type, args);
		json_object_set_new(b->progress, "step", json_integer(build_index(b, "step") + 1));
		json_decref(args);
		return 0;
	}
	json_decref(b->args);
	b->args = args;
	build_key(b, args);
	if (build_cached(b, layer)) {
		build_log(b, "info", "CACHED [%u/%u] %s", b->number, b->steps, text);
		return build_record(b, layer) < 0;
	}
	build_log(b, "info", "[%u/%u] %s", b->number, b->steps, text);
	if (type == DEFINITION_PACKAGES)
		build_packages(b, args);
	else
		build_root(b, build_stage(b), 0, build_rooted);
	return 1;
}

void build_continue(struct build *b)
{
	unsigned target = definition_target(b->definition);

	for (;;) {
		unsigned stage = build_index(b, "stage"), step = build_index(b, "step");
		const json_t *steps = json_object_get(build_definition_stage(b, stage), "steps");
		int needed = definition_needs(b->definition, stage);

		if (needed && !build_stage(b)) {
			if (build_stage_begin(b))
				return;
		} else if (needed && step < json_array_size(steps)) {
			if (build_step_begin(b, json_array_get(steps, step)))
				return;
		} else if (stage >= target) {
			b->step = NULL;
			build_finish(b);
			return;
		} else {
			json_object_set_new(b->progress, "stage", json_integer(stage + 1));
			json_object_set_new(b->progress, "step", json_integer(0));
		}
	}
}
