/* template_steps.c - see template_steps.h.
 *
 *   {fromImage | fromTemplate, steps: [{type, args, force, filesHash}], startCmd, readyCmd, force}
 *     -> {stages: [{from, steps: [{type, args, ...}]}], start, ready, e2b: true}
 *
 * Line n of a step is its number in E2B's API, which counts from 1: a failure of the build is reported
 * with it. A build that starts from an image begins with two steps of line 0: the first user is `user`, in
 * its home folder. `e2b` selects E2B's rules: files and working folders belong to the
 * current user, and a missing user is created. */
#include "e2bcontrol/template_steps.h"
#include "base/cleanup.h"
#include "template/definition.h"
#include "template/templates.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct field template_steps_fields[] = {
	/* clang-format off */
	{ "fromImage", FIELD_TEXT, 0, 0, 512, "image to start from", NULL },
	{ "fromTemplate", FIELD_TEXT, 0, 0, 200, "template to start from", NULL },
	{ "fromImageRegistry", FIELD_ANY, 0, 0, 0, "credentials of the registry: {type: \"registry\", username, password} or {type: \"gcp\", serviceAccountJson}", NULL },
	{ "force", FIELD_BOOL, 0, 0, 0, "execute all steps, also those with a cached result", NULL },
	{ "steps", FIELD_ANY, 0, 0, 0, "array of {type, args, force, filesHash}", NULL },
	{ "startCmd", FIELD_TEXT, 0, 0, DEFINITION_TEXT, "command that every sandbox starts with", NULL },
	{ "readyCmd", FIELD_TEXT, 0, 0, DEFINITION_TEXT, "command that succeeds when a sandbox is ready", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
	/* clang-format on */
};

/* Login shells, as E2B uses them: bash where the image has it. $0 is the command. */
#define STEPS_SHELL                                                                                \
	"if [ -x /bin/bash ]; then exec /bin/bash -l -c \"$0\"; else exec /bin/sh -l -c \"$0\"; fi"

static const char *steps_text(const json_t *doc, const char *name)
{
	const char *v = json_string_value(json_object_get(doc, name));

	return v ? v : "";
}

/* ---- from ---- */

/* E2B's own images have what `base` has: 1 for their names, with any tag or digest. */
static int steps_is_base_image(const char *image)
{
	static const char *const hosts[] = { "docker.io/", "index.docker.io/" };
	static const char *const names[] = { "e2bdev/base", "e2bdev/code-interpreter" };

	for (unsigned i = 0; i < ARRAY_LEN(hosts); i++)
		if (!strncmp(image, hosts[i], strlen(hosts[i])))
			image += strlen(hosts[i]);
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(image, names[i], n) && (!image[n] || strchr(":@", image[n])))
			return 1;
	}
	return 0;
}

/* *out_fresh: it is an image, which may have no user of that name. */
static json_t *steps_from(const json_t *body, int *out_fresh, struct err *e)
{
	const char *image = steps_text(body, "fromImage"),
		   *parent = steps_text(body, "fromTemplate");
	struct template_reference r;

	if (!*image == !*parent) {
		err_set(e, ERR_INVALID, "fromImage, fromTemplate: exactly one of them is needed");
		return NULL;
	}
	*out_fresh = *image && !steps_is_base_image(image);
	if (*image)
		return json_string(*out_fresh ? image : TEMPLATE_BASE);
	if (template_reference_parse(parent, NULL, &r, e) < 0) {
		err_in(e, "fromTemplate");
		return NULL;
	}
	return json_sprintf("template:%s", parent);
}

static int steps_texts(const json_t *doc, const char *const *names, unsigned n, struct err *e)
{
	for (unsigned i = 0; i < n; i++)
		if (!json_is_string(json_object_get(doc, names[i])))
			return err_set(e, ERR_INVALID, "fromImageRegistry.%s: a text is needed",
				       names[i]);
	return 0;
}

/* Sets stage.auth. */
static int steps_auth(const json_t *registry, json_t *stage, struct err *e)
{
	static const char *const plain[] = { "username", "password" };
	static const char *const gcp[] = { "serviceAccountJson" };
	const char *type = steps_text(registry, "type");

	if (!registry)
		return 0;
	if (!strcmp(type, "aws"))
		return err_set(
			e, ERR_INVALID,
			"fromImageRegistry.type: 'aws' is not supported; use type 'registry' with "
			"username 'AWS' and the output of `aws ecr get-login-password` as password");
	if (!strcmp(type, "registry")) {
		if (steps_texts(registry, plain, ARRAY_LEN(plain), e) < 0)
			return -1;
		return json_object_set_new(
			stage, "auth",
			json_pack("{s:O, s:O}", "username", json_object_get(registry, "username"),
				  "password", json_object_get(registry, "password")));
	}
	if (strcmp(type, "gcp") != 0)
		return err_set(e, ERR_INVALID,
			       "fromImageRegistry.type: '%.20s' is none of registry, gcp, aws",
			       type);
	if (steps_texts(registry, gcp, ARRAY_LEN(gcp), e) < 0)
		return -1;
	return json_object_set_new(stage, "auth",
				   json_pack("{s:s, s:O}", "username", "_json_key", "password",
					     json_object_get(registry, "serviceAccountJson")));
}

/* ---- steps ---- */

/* The arguments as texts; a missing array is empty. */
static int steps_args(const json_t *step, json_t **out, struct err *e)
{
	json_t *args = json_object_get(step, "args"), *one;
	size_t i;

	if (args && !json_is_null(args) && !json_is_array(args))
		return err_set(e, ERR_INVALID, "args: must be an array of texts");
	json_array_foreach(args, i, one) if (!json_is_string(one)) return err_set(
		e, ERR_INVALID, "args[%zu]: must be a text", i);
	*out = args && json_is_array(args) ? json_incref(args) : json_array();
	return 0;
}

/* The client has packed the files that a pattern matches: the folder before the first pattern is
 * copied. "a/b*" -> "a", "*.txt" -> ".", "a/b" -> "a/b". */
static json_t *steps_source(const char *pattern)
{
	size_t n = strcspn(pattern, "*?[{\\");

	if (!pattern[n])
		return json_string(pattern);
	while (n && pattern[n - 1] != '/')
		n--;
	while (n > 1 && pattern[n - 1] == '/')
		n--;
	return n ? json_stringn(pattern, n) : json_string(".");
}

/* {"type": "COPY", "args": [source, destination, owner or "", mode or ""], "filesHash"} */
static int steps_copy(const json_t *step, const json_t *args, json_t *out, struct err *e)
{
	const char *hash = steps_text(step, "filesHash"), *owner, *mode;

	if (json_array_size(args) < 2 || json_array_size(args) > 4)
		return err_set(e, ERR_INVALID,
			       "args: must be source and destination, and perhaps owner and mode");
	if (!*hash)
		return err_set(e, ERR_INVALID,
			       "filesHash: the hash of the uploaded files is needed");
	json_object_set_new(out, "args",
			    json_pack("[o, O]",
				      steps_source(json_string_value(json_array_get(args, 0))),
				      json_array_get(args, 1)));
	json_object_set_new(out, "files", json_string(hash));
	owner = json_string_value(json_array_get(args, 2));
	mode = json_string_value(json_array_get(args, 3));
	if (owner && *owner)
		json_object_set_new(out, "owner",
				    strchr(owner, ':') ? json_string(owner)
						       : json_sprintf("%s:%s", owner, owner));
	if (mode && *mode)
		json_object_set_new(out, "mode", json_string(mode));
	return 0;
}

/* {"type": "RUN", "args": [command, user]} */
static int steps_run(const json_t *args, json_t *out, struct err *e)
{
	const char *user = json_string_value(json_array_get(args, 1));

	if (json_array_size(args) < 1 || json_array_size(args) > 2)
		return err_set(e, ERR_INVALID, "args: must be a command, and perhaps a user");
	json_object_set_new(out, "args", json_pack("[O]", json_array_get(args, 0)));
	json_object_set_new(out, "shell", json_pack("[s, s, s]", "/bin/sh", "-c", STEPS_SHELL));
	if (user && *user)
		json_object_set_new(out, "user", json_string(user));
	return 0;
}

static int steps_fill(const json_t *step, const char *type, const json_t *args, json_t *out,
		      struct err *e)
{
	if (!strcmp(type, "RUN"))
		return steps_run(args, out, e);
	if (!strcmp(type, "COPY") || !strcmp(type, "ADD"))
		return steps_copy(step, args, out, e);
	if (!strcmp(type, "USER") && json_array_size(args) == 2)
		/* the second one asks for sudo, which every user of a box may use */
		return json_object_set_new(out, "args", json_pack("[O]", json_array_get(args, 0)));
	return json_object_set(out, "args", (json_t *)args);
}

static int steps_flag(const json_t *doc, const char *name, int *out, struct err *e)
{
	const json_t *v = json_object_get(doc, name);

	if (v && !json_is_null(v) && !json_is_boolean(v))
		return err_set(e, ERR_INVALID, "%s: must be true or false", name);
	*out = json_is_true(v);
	return 0;
}

static int steps_one(const json_t *step, unsigned number, int force, json_t *all, struct err *e)
{
	static const char *const types[] = {
		"RUN", "COPY", "ADD", "ENV", "ARG", "WORKDIR", "USER"
	};
	const char *type = json_string_value(json_object_get(step, "type"));
	const json_t *hash = json_object_get(step, "filesHash");
	json_t *args = NULL, *out;
	unsigned i = 0;
	int again = 0, done;

	if (!json_is_object(step))
		return err_set(e, ERR_INVALID, "must be an object {type, args, force, filesHash}");
	while (type && i < ARRAY_LEN(types) && strcasecmp(types[i], type) != 0)
		i++;
	if (!type || i == ARRAY_LEN(types))
		return err_set(e, ERR_INVALID,
			       "type: '%.20s' is none of RUN, COPY, ADD, ENV, ARG, WORKDIR, USER",
			       type ? type : "");
	if (hash && !json_is_null(hash) && !json_is_string(hash))
		return err_set(e, ERR_INVALID, "filesHash: must be a text");
	if (steps_flag(step, "force", &again, e) < 0 || steps_args(step, &args, e) < 0)
		return -1;
	out = json_pack("{s:s, s:i}", "type", types[i], "line", (int)number);
	if (force || again)
		json_object_set_new(out, "force", json_true());
	done = steps_fill(step, types[i], args, out, e);
	json_decref(args);
	json_array_append_new(all, out);
	return done;
}

static int steps_all(const json_t *steps, int force, json_t *out, struct err *e)
{
	const json_t *one;
	size_t i;

	if (steps && !json_is_array(steps))
		return err_set(e, ERR_INVALID, "steps: must be an array");
	if (json_array_size(steps) > DEFINITION_STEPS)
		return err_set(e, ERR_INVALID, "steps: %zu are too many, at most %d",
			       json_array_size(steps), DEFINITION_STEPS);
	json_array_foreach(steps, i, one) if (steps_one(one, (unsigned)i + 1, force, out, e) <
					      0) return err_in(e, "steps[%zu]", i);
	return 0;
}

int template_steps_definition(const json_t *body, json_t **out, struct err *e)
{
	const char *start = steps_text(body, "startCmd"), *ready = steps_text(body, "readyCmd");
	json_t *from, *steps, *stage, *doc;
	int fresh;

	from = steps_from(body, &fresh, e);
	if (!from)
		return -1;
	steps = fresh ? json_pack("[{s:s, s:[s], s:i}, {s:s, s:[s], s:i}]", "type", "USER", "args",
				  "user", "line", 0, "type", "WORKDIR", "args", "/home/user",
				  "line", 0)
		      : json_array();
	stage = json_pack("{s:o, s:o}", "from", from, "steps", steps);
	doc = json_pack("{s:[o], s:b}", "stages", stage, "e2b", 1);
	if (*start)
		json_object_set_new(doc, "start", json_string(start));
	if (*ready)
		json_object_set_new(doc, "ready", json_string(ready));
	if (steps_auth(json_object_get(body, "fromImageRegistry"), stage, e) < 0 ||
	    steps_all(json_object_get(body, "steps"), json_is_true(json_object_get(body, "force")),
		      steps, e) < 0 ||
	    definition_check(doc, e) < 0) {
		json_decref(doc);
		return -1;
	}
	*out = doc;
	return 0;
}

/* ---- failures ---- */

static json_t *steps_parse(const char *text)
{
	json_t *doc = text ? json_loads(text, 0, NULL) : NULL;

	return doc ? doc : json_object();
}

/* The steps of E2B's only stage. */
static json_t *steps_of(const json_t *definition)
{
	return json_object_get(json_array_get(json_object_get(definition, "stages"), 0), "steps");
}

json_t *template_steps_name(const json_t *definition, const json_t *number)
{
	const json_t *steps = steps_of(definition);
	json_int_t n = json_integer_value(number);
	const json_t *step = n > 0 ? json_array_get(steps, (size_t)n - 1) : NULL;
	json_int_t line = json_integer_value(json_object_get(step, "line"));

	if (n > (json_int_t)json_array_size(steps))
		return json_string("finalize");
	return line ? json_sprintf("%lld", (long long)line) : json_string("base");
}

/* The step that failed; NULL: none, but FROM or the end of the build. */
static const json_t *steps_failed(const json_t *definition, const json_t *reason)
{
	const json_t *line = json_object_get(reason, "line"), *one;
	size_t i;

	json_array_foreach(steps_of(definition), i,
			   one) if (line &&
				    json_equal(json_object_get(one, "line"), line)) return one;
	return NULL;
}

/* As E2B's server writes it; a test of E2B expects the second text. */
static json_t *steps_message(const json_t *step, const json_t *reason)
{
	const char *message = steps_text(reason, "message"), *user = steps_text(step, "user"),
		   *command = json_string_value(json_array_get(json_object_get(step, "args"), 0));

	if (strcmp(steps_text(step, "type"), "RUN") != 0 || !command)
		return json_string(message);
	if (*user && !strncmp(message, "there is no user", 16))
		return json_sprintf("failed to run command '%s': command failed: unauthenticated: "
				    "invalid username: '%s'",
				    command, user);
	return json_sprintf("failed to run command '%s': command failed: %s", command, message);
}

json_t *template_steps_reason(const struct store_build *b)
{
	json_t *definition, *progress, *reason, *out;
	const json_t *step, *begun;

	if (b->state != STORE_BUILD_ERROR && b->state != STORE_BUILD_CANCELLED)
		return NULL;
	definition = steps_parse(b->definition);
	progress = steps_parse(b->progress);
	reason = steps_parse(b->reason);
	step = steps_failed(definition, reason);
	begun = json_object_get(progress, "stages");
	out = json_pack("{s:o}", "message",
			b->state == STORE_BUILD_CANCELLED ? json_string("the build was cancelled")
							  : steps_message(step, reason));
	if (json_integer_value(json_object_get(step, "line")))
		json_object_set_new(out, "step",
				    json_sprintf("%lld", (long long)json_integer_value(
								 json_object_get(step, "line"))));
	else
		json_object_set_new(out, "step",
				    json_string(!step && json_object_size(begun) ? "finalize"
										 : "base"));
	json_decref(definition);
	json_decref(progress);
	json_decref(reason);
	return out;
}
