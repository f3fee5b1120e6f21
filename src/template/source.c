/* source.c - see source.h. */
#include "template/source.h"
#include "base/glob.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "template/source_internal.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { SOURCE_MATCHES = 500000 }; /* of files with sources of COPY; a few milliseconds per 10000 */

/* ---- files ---- */

int source_path(const char *folder, const char *path, char out[SOURCE_PATH + 1], struct err *e)
{
	auto_buf struct buf all = { 0 }, clean = { 0 };
	const char *p, *part;

	buf_printf(&all, "%s/%s", folder, path);
	for (p = buf_str(&all); *p; p += *p == '/') {
		size_t n = strcspn(p, "/");

		part = p;
		p += n;
		if (!n || (n == 1 && *part == '.'))
			continue;
		if (n == 2 && !strncmp(part, "..", 2)) {
			const char *last = strrchr(buf_str(&clean), '/');

			if (!clean.len)
				return err_set(e, ERR_INVALID, "'%.80s' is outside of the folder",
					       path);
			buf_cut(&clean, last ? (size_t)(last - buf_str(&clean)) : 0);
			continue;
		}
		if (clean.len)
			buf_putc(&clean, '/');
		buf_add(&clean, part, n);
	}
	if (clean.len > SOURCE_PATH)
		return err_set(e, ERR_INVALID, "'%.80s' is longer than %d bytes", path,
			       SOURCE_PATH);
	strcpy(out, buf_str(&clean));
	return 0;
}

int source_text(struct source_job *j, const char *path, struct buf *out)
{
	int got = j->read(j->ctx, path, out, j->e);

	if (!got)
		return err_set(j->e, ERR_NOT_FOUND, "no file '%.120s' in the folder", path);
	return got < 0 ? -1 : 0;
}

/* ---- steps ---- */

void source_step(json_t *steps, const char *type, json_t *take_args, json_t *take_further,
		 unsigned line)
{
	json_t *step = json_pack("{s:s, s:o}", "type", type, "args", take_args);

	if (line)
		json_object_set_new(step, "line", json_integer(line));
	if (take_further)
		json_object_update(step, take_further);
	json_decref(take_further);
	json_array_append_new(steps, step);
}

/* Sources of COPY that are relative to another folder than the whole one. */
static void source_prefix(const json_t *step, const char *context)
{
	json_t *args = json_object_get(step, "args");

	for (size_t i = 0; i + 1 < json_array_size(args); i++) {
		const char *path = json_string_value(json_array_get(args, i));

		json_array_set_new(args, i, json_sprintf("%s/%s", context, path));
	}
}

static int source_is_copy(const json_t *step)
{
	enum definition_step type = definition_type(step);

	return (type == DEFINITION_COPY || type == DEFINITION_ADD) &&
	       !json_object_get(step, "from") && !json_object_get(step, "content");
}

typedef int source_each(struct source_job *j, json_t *step, const char *text);

static int source_each_copy(struct source_job *j, const json_t *definition, source_each *each,
			    const char *text)
{
	json_t *stage, *step;
	size_t i, k;

	json_array_foreach(json_object_get(definition, "stages"), i, stage) json_array_foreach(
		json_object_get(stage, "steps"), k,
		step) if (source_is_copy(step) && each(j, step, text) < 0) return -1;
	return 0;
}

static int source_copy_from(struct source_job *j, json_t *step, const char *context)
{
	(void)j;
	source_prefix(step, context);
	return 0;
}

int source_dockerfile(struct source_job *j, const char *path, const char *context,
		      const json_t *args, const char *target, json_t **out)
{
	struct dockerfile_options o = { .file = path,
					.args = args ? args : j->o->args,
					.target = target ? target : j->o->target,
					.arch = j->o->arch };
	auto_buf struct buf text = { 0 };

	if (source_text(j, path, &text) < 0 ||
	    dockerfile_parse(buf_str(&text), text.len, &o, out, j->e) < 0)
		return -1;
	return *context ? source_each_copy(j, *out, source_copy_from, context) : 0;
}

/* ---- formats ---- */

static int source_is_toml(struct source_job *j, const char *path, struct buf *text)
{
	struct toml doc;
	const struct toml_node *table;
	int failed;

	if (toml_parse(&doc, path, buf_str(text), text->len, j->e) < 0)
		return -1;
	table = toml_get(doc.root, "template");
	if (table && table->type == TOML_TABLE) {
		failed = source_atoll(j, path, table);
	} else if (toml_get(doc.root, "dockerfile") || toml_get(doc.root, "template_id")) {
		failed = source_e2b(j, path, doc.root);
	} else {
		failed = err_set(j->e, ERR_INVALID,
				 "%.120s has no [template]: type [template], then from = \"base\"",
				 path);
	}
	toml_fini(&doc);
	return failed;
}

static int source_is_dockerfile(struct source_job *j, const char *path, struct buf *text)
{
	(void)text;
	return source_dockerfile(j, path, "", NULL, NULL, &j->out->definition);
}

static int source_is_devcontainer(struct source_job *j, const char *path, struct buf *text)
{
	return source_devcontainer(j, path, buf_str(text), text->len);
}

typedef int source_format(struct source_job *j, const char *path, struct buf *text);

/* What a file is, by the end of its name. */
static source_format *source_format_of(const char *path)
{
	const char *dot = strrchr(path, '.');

	if (dot && !strcasecmp(dot, ".toml"))
		return source_is_toml;
	if (dot && (!strcasecmp(dot, ".json") || !strcasecmp(dot, ".jsonc")))
		return source_is_devcontainer;
	return source_is_dockerfile;
}

/* atoll.toml may be there for other settings. */
static int source_has_template(const char *text, size_t len)
{
	struct err e;
	struct toml doc;
	int has;

	if (toml_parse(&doc, "", text, len, &e) < 0)
		return 1; /* its error is for the user */
	has = !!toml_get(doc.root, "template");
	toml_fini(&doc);
	return has;
}

static int source_find(struct source_job *j)
{
	static const char *const names[] = { "atoll.toml",
					     "e2b.toml",
					     "Dockerfile",
					     "e2b.Dockerfile",
					     ".devcontainer/devcontainer.json",
					     ".devcontainer.json" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		auto_buf struct buf text = { 0 };
		int got = j->read(j->ctx, names[i], &text, j->e);

		if (got < 0)
			return -1;
		if (!got || (!i && !source_has_template(buf_str(&text), text.len)))
			continue;
		strcpy(j->out->file, names[i]);
		return source_format_of(names[i])(j, names[i], &text);
	}
	return err_set(j->e, ERR_INVALID,
		       "the folder has no atoll.toml with [template], e2b.toml, Dockerfile, "
		       "e2b.Dockerfile or devcontainer.json: name the file with --file");
}

static int source_named(struct source_job *j)
{
	auto_buf struct buf text = { 0 };

	if (source_path("", j->o->file, j->out->file, j->e) < 0 ||
	    source_text(j, j->out->file, &text) < 0)
		return -1;
	return source_format_of(j->out->file)(j, j->out->file, &text);
}

/* ---- the result ---- */

static int source_copy_archive(struct source_job *j, json_t *step, const char *files)
{
	if (!files)
		return err_set(
			j->e, ERR_CONFLICT,
			"%.120s:%lld: %s needs the files of the folder, and only texts were sent",
			j->out->file, (long long)json_integer_value(json_object_get(step, "line")),
			json_string_value(json_object_get(step, "type")));
	json_object_set_new(step, "files", json_string(files));
	return 0;
}

/* Does a source of COPY mean a file of the manifest? whole: it means all of them. */
static int source_reads(const struct glob *g, int whole, const char *path)
{
	return whole || glob_match_below(g, path);
}

/* Adds the files that a source of COPY means to the hash. 0: they are not known. A link may lead to other files. */
static int source_digest_files(struct source_job *j, struct sha256 *s, const char *source)
{
	char path[SOURCE_PATH + 1];
	struct glob g;
	struct err e;
	const char *name;
	int whole, found = 0;
	json_t *v;

	if (strpbrk(source, "$\\") || source_path("", source, path, &e) < 0)
		return 0;
	whole = !*path;
	if (!whole && glob_compile(&g, path, &e) < 0)
		return 0;
	j->matches += json_object_size(j->o->manifest);
	if (j->matches > SOURCE_MATCHES)
		return 0;
	json_object_foreach((json_t *)j->o->manifest, name, v)
	{
		const char *text = json_string_value(v);

		if (!source_reads(&g, whole, name))
			continue;
		if (!text || !strncmp(text, "link ", 5))
			return 0;
		sha256_add(s, name, strlen(name) + 1);
		sha256_add(s, text, strlen(text) + 1);
		found = 1;
	}
	return found;
}

static int source_copy_digest(struct source_job *j, json_t *step, const char *unused)
{
	const json_t *args = json_object_get(step, "args");
	uint8_t sum[SHA256_BYTES];
	char hex[2 * SHA256_BYTES + 1];
	struct sha256 s;

	(void)unused;
	sha256_init(&s);
	for (size_t i = 0; i + 1 < json_array_size(args); i++)
		if (!source_digest_files(j, &s, json_string_value(json_array_get(args, i))))
			return 0;
	sha256_end(&s, sum);
	hex_encode(hex, sum, sizeof(sum));
	json_object_set_new(step, "digest", json_string(hex));
	return 0;
}

int template_source(source_read *read, void *ctx, const struct source_options *o,
		    struct source *out, struct err *e)
{
	struct source_job j = { .read = read, .ctx = ctx, .o = o, .out = out, .e = e };

	memset(out, 0, sizeof(*out));
	if ((o->file ? source_named(&j) : source_find(&j)) == 0 &&
	    source_each_copy(&j, out->definition, source_copy_archive, o->files) == 0 &&
	    (!o->manifest ||
	     source_each_copy(&j, out->definition, source_copy_digest, NULL) == 0) &&
	    definition_check(out->definition, e) == 0)
		return 0;
	source_fini(out);
	return -1;
}

void source_fini(struct source *s)
{
	json_decref(s->definition);
	memset(s, 0, sizeof(*s));
}
