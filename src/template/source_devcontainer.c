/* source_devcontainer.c - devcontainer.json as a definition: the image or the Dockerfile, the variables, the files of the
 * folder, then the commands; see source_internal.h. */
#include "base/cleanup.h"
#include "template/expand.h"
#include "template/source_internal.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DEVCONTAINER_COMMANDS = 50 };

struct devcontainer {
	struct source_job *j;
	const char *path;
	char folder[SOURCE_PATH + 1]; /* in which the file lies */
	const json_t *doc;
	json_t *steps;
	char workspace[SOURCE_PATH + 1];
};

static int __attribute__((format(printf, 2, 3)))
devcontainer_fail(struct devcontainer *d, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(d->j->e, ERR_INVALID, "%.80s: %s", d->path, what);
}

/* ---- JSON with comments ---- */

/* The end of a string or a comment at p; p itself: there is none. */
static const char *devcontainer_skip(const char *p, const char *end)
{
	const char *q = p;

	if (*p == '"') {
		for (q = p + 1; q < end && *q != '"'; q++)
			q += *q == '\\';
		return q < end ? q + 1 : end;
	}
	if (*p != '/' || p + 1 == end || (p[1] != '/' && p[1] != '*'))
		return p;
	if (p[1] == '/') {
		while (q < end && *q != '\n')
			q++;
		return q;
	}
	for (q = p + 2; q + 1 < end && !(*q == '*' && q[1] == '/'); q++)
		;
	return q + 1 < end ? q + 2 : end;
}

/* Comments become blanks, so that lines keep their numbers. A comma before the end of a list is removed. */
static void devcontainer_bare(struct buf *out, const char *p, const char *end)
{
	size_t comma = 0; /* place after the last one, if only blanks followed it */

	while (p < end) {
		const char *next = devcontainer_skip(p, end);

		if (next > p && *p == '"') {
			buf_add(out, p, (size_t)(next - p));
			comma = 0;
		} else if (next > p) {
			for (; p < next; p++)
				buf_putc(out, *p == '\n' ? '\n' : ' ');
		} else {
			if (comma && (*p == '}' || *p == ']'))
				out->p[comma - 1] = ' ';
			buf_putc(out, *p);
			if (*p == ',')
				comma = out->len;
			else if (!isspace((unsigned char)*p))
				comma = 0;
			next = p + 1;
		}
		p = next;
	}
}

static json_t *devcontainer_read(struct devcontainer *d, const char *text, size_t len)
{
	auto_buf struct buf bare = { 0 };
	json_error_t why;
	json_t *doc;

	devcontainer_bare(&bare, text, text + len);
	doc = json_loadb(buf_str(&bare), bare.len, JSON_REJECT_DUPLICATES, &why);
	if (!doc)
		err_set(d->j->e, ERR_INVALID, "%.80s:%d: %.100s", d->path, why.line, why.text);
	else if (!json_is_object(doc))
		devcontainer_fail(d, "the file must be an object: {\"image\": \"base\"}");
	if (!json_is_object(doc)) {
		json_decref(doc);
		return NULL;
	}
	return doc;
}

/* ---- variables ---- */

/* ${containerEnv:X} becomes ${X}; what is of the user's machine has its default or is empty. */
static int devcontainer_variable(struct devcontainer *d, struct buf *out, const char *name)
{
	const char *colon = strchr(name, ':'), *other = colon ? strchr(colon + 1, ':') : NULL;

	if (!strncmp(name, "containerEnv:", 13) && !other && expand_is_name(colon + 1) &&
	    strlen(colon + 1) <= EXPAND_NAME)
		buf_printf(out, "${%s}", colon + 1);
	else if (!strncmp(name, "localEnv:", 9) || !strncmp(name, "env:", 4))
		expand_quote(out, other ? other + 1 : "");
	else if (!strcmp(name, "localWorkspaceFolderBasename") ||
		 !strcmp(name, "containerWorkspaceFolderBasename"))
		buf_puts(out, "workspace");
	else if (!strcmp(name, "containerWorkspaceFolder"))
		buf_puts(out, d->workspace);
	else if (!strcmp(name, "devcontainerId"))
		buf_puts(out, "template");
	else
		return devcontainer_fail(d, "${%.60s} is not supported", name);
	return 0;
}

/* The text as one of a definition. NULL: the error is set. */
static json_t *devcontainer_text(struct devcontainer *d, const char *text)
{
	auto_buf struct buf out = { 0 };

	while (*text) {
		const char *end = !strncmp(text, "${", 2) ? strchr(text, '}') : NULL;
		char c[2] = { *text, 0 };

		if (end) {
			auto_free char *name = strndup(text + 2, (size_t)(end - text - 2));

			if (devcontainer_variable(d, &out, name ? name : "") < 0)
				return NULL;
			text = end + 1;
		} else {
			expand_quote(&out, c);
			text++;
		}
	}
	return json_string(buf_str(&out));
}

/* A member that is a text, or NULL. *bad: it is something else. */
static const char *devcontainer_get(struct devcontainer *d, const json_t *doc, const char *name,
				    int *bad)
{
	const json_t *v = json_object_get(doc, name);

	if (v && !json_is_string(v))
		*bad = devcontainer_fail(d, "%s must be a text", name);
	return json_string_value(v);
}

/* ---- the parts ---- */

static int devcontainer_build(struct devcontainer *d, const json_t *build, json_t **out)
{
	int bad = 0;
	const char *file = devcontainer_get(d, build, "dockerfile", &bad),
		   *context = devcontainer_get(d, build, "context", &bad),
		   *target = devcontainer_get(d, build, "target", &bad);
	char path[SOURCE_PATH + 1], folder[SOURCE_PATH + 1];
	json_t *args;

	if (!file)
		file = devcontainer_get(d, d->doc, "dockerFile", &bad);
	if (!context)
		context = devcontainer_get(d, d->doc, "context", &bad);
	if (bad)
		return -1;
	if (!file)
		return devcontainer_fail(d, "build has no dockerfile");
	if (source_path(d->folder, file, path, d->j->e) < 0 ||
	    source_path(d->folder, context ? context : ".", folder, d->j->e) < 0)
		return err_in(d->j->e, "%.60s", d->path);
	args = json_object();
	json_object_update(args, json_object_get(build, "args"));
	json_object_update(args, (json_t *)d->j->o->args);
	bad = source_dockerfile(d->j, path, folder, args, target, out);
	json_decref(args);
	return bad;
}

static int devcontainer_origin(struct devcontainer *d, json_t **out)
{
	const json_t *features = json_object_get(d->doc, "features");
	int bad = 0;
	const char *image = devcontainer_get(d, d->doc, "image", &bad);

	if (json_object_size(features))
		return devcontainer_fail(
			d,
			"feature '%.80s' is not supported: install it with a Dockerfile or onCreateCommand",
			json_object_iter_key(json_object_iter((json_t *)features)));
	if (json_object_get(d->doc, "dockerComposeFile"))
		return devcontainer_fail(
			d, "dockerComposeFile is not supported: name an image or build.dockerfile");
	if (bad)
		return -1;
	if (json_object_get(d->doc, "build") || json_object_get(d->doc, "dockerFile"))
		return devcontainer_build(d, json_object_get(d->doc, "build"), out);
	if (!image || !*image)
		return devcontainer_fail(
			d, "neither image nor build.dockerfile: type \"image\": \"base\"");
	*out = json_pack("{s:[{s:s, s:s, s:[]}], s:i}", "stages", "name", "0", "from", image,
			 "steps", "target", 0);
	return 0;
}

static int devcontainer_env(struct devcontainer *d, const char *member)
{
	const json_t *env = json_object_get(d->doc, member);
	json_t *pairs = json_array(), *v, *text;
	const char *name;

	json_object_foreach((json_t *)env, name, v)
	{
		if (json_is_null(v))
			continue;
		text = json_is_string(v) && expand_is_name(name)
			       ? devcontainer_text(d, json_string_value(v))
			       : NULL;
		if (!text) {
			json_decref(pairs);
			return json_is_string(v) && expand_is_name(name)
				       ? -1
				       : devcontainer_fail(d,
							   "%s: '%.40s' must be a name with a text",
							   member, name);
		}
		json_array_append_new(pairs, json_string(name));
		json_array_append_new(pairs, text);
	}
	if (json_array_size(pairs))
		source_step(d->steps, "ENV", pairs, NULL, 0);
	else
		json_decref(pairs);
	return 0;
}

/* The files of the folder are in the workspace, and belong to the user of the commands. */
static int devcontainer_workspace(struct devcontainer *d)
{
	int bad = 0;
	const char *folder = devcontainer_get(d, d->doc, "workspaceFolder", &bad),
		   *container = devcontainer_get(d, d->doc, "containerUser", &bad),
		   *remote = devcontainer_get(d, d->doc, "remoteUser", &bad),
		   *user = remote ? remote : container;
	json_t *text = bad ? NULL : devcontainer_text(d, folder ? folder : "/workspace");

	if (!text)
		return -1;
	if (json_string_length(text) > SOURCE_PATH || *json_string_value(text) != '/') {
		json_decref(text);
		return devcontainer_fail(d, "workspaceFolder must be a path like /workspace");
	}
	strcpy(d->workspace, json_string_value(text));
	if (devcontainer_env(d, "containerEnv") < 0 || devcontainer_env(d, "remoteEnv") < 0) {
		json_decref(text);
		return -1;
	}
	source_step(d->steps, "WORKDIR", json_pack("[O]", text), NULL, 0);
	source_step(d->steps, "COPY", json_pack("[s, o]", ".", text),
		    user ? json_pack("{s:s}", "owner", user) : NULL, 0);
	if (user)
		source_step(d->steps, "USER", json_pack("[s]", user), NULL, 0);
	return 0;
}

/* A text for the shell, words without one, or an object of either: their order does not matter to their author. */
static int devcontainer_command(struct devcontainer *d, const char *member, const json_t *v,
				int top)
{
	const char *name;
	json_t *one;
	size_t i;

	if (json_array_size(d->steps) > DEVCONTAINER_COMMANDS)
		return devcontainer_fail(d, "more than %d commands", DEVCONTAINER_COMMANDS);
	if (json_is_string(v)) {
		source_step(d->steps, "RUN", json_pack("[O]", v), NULL, 0);
		return 0;
	}
	if (json_is_array(v) && json_array_size(v)) {
		json_array_foreach((json_t *)v, i, one) if (
			!json_is_string(one)) return devcontainer_fail(d, "%.40s must have texts",
								       member);
		source_step(d->steps, "RUN", json_deep_copy(v), json_pack("{s:b}", "exec", 1), 0);
		return 0;
	}
	if (!json_is_object(v) || !top)
		return devcontainer_fail(
			d, "%.40s must be a text, a list of texts or an object of them", member);
	json_object_foreach((json_t *)v, name,
			    one) if (devcontainer_command(d, name, one, 0) < 0) return -1;
	return 0;
}

static void devcontainer_port(struct devcontainer *d, json_t *definition)
{
	const json_t *ports = json_object_get(d->doc, "forwardPorts");
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)ports, i, v) if (json_is_integer(v) &&
						      json_integer_value(v) > 0 &&
						      json_integer_value(v) < 65536)
	{
		json_object_set(definition, "port", v);
		return;
	}
}

/* What other programs read is not worth a note; what would change the box is. */
static void devcontainer_notes(struct devcontainer *d, json_t *definition)
{
	static const char *const lost[] = { "mounts",
					    "runArgs",
					    "postStartCommand",
					    "postAttachCommand",
					    "initializeCommand",
					    "privileged",
					    "capAdd",
					    "securityOpt",
					    "workspaceMount",
					    "init",
					    "hostRequirements",
					    "appPort",
					    NULL };
	json_t *notes = json_object_get(definition, "notes");

	notes = notes ? json_incref(notes) : json_array();
	for (const char *const *k = lost; *k; k++)
		if (json_object_get(d->doc, *k))
			json_array_append_new(notes,
					      json_sprintf("%s: %s has no effect", d->path, *k));
	if (json_array_size(notes))
		json_object_set(definition, "notes", notes);
	json_decref(notes);
}

static int devcontainer_definition(struct devcontainer *d, json_t **out)
{
	static const char *const commands[] = { "onCreateCommand", "updateContentCommand",
						"postCreateCommand" };
	json_t *stages;

	if (devcontainer_origin(d, out) < 0)
		return -1;
	stages = json_object_get(*out, "stages");
	d->steps = json_array();
	if (devcontainer_workspace(d) < 0)
		return -1;
	for (unsigned i = 0; i < ARRAY_LEN(commands); i++) {
		const json_t *v = json_object_get(d->doc, commands[i]);

		if (v && devcontainer_command(d, commands[i], v, 1) < 0)
			return -1;
	}
	json_array_extend(json_object_get(json_array_get(stages, definition_target(*out)), "steps"),
			  d->steps);
	devcontainer_port(d, *out);
	devcontainer_notes(d, *out);
	return 0;
}

int source_devcontainer(struct source_job *j, const char *path, const char *text, size_t len)
{
	struct devcontainer d = { .j = j, .path = path };
	const char *slash = strrchr(path, '/');
	json_t *doc;
	int failed;

	snprintf(d.folder, sizeof(d.folder), "%.*s", slash ? (int)(slash - path) : 0, path);
	doc = devcontainer_read(&d, text, len);
	if (!doc)
		return -1;
	d.doc = doc;
	failed = devcontainer_definition(&d, &j->out->definition);
	json_decref(d.steps);
	json_decref(doc);
	return failed;
}
