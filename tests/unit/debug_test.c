/* debug_test.c - from a run that failed to what is done about it.
 *
 * The cases are programs that were really run (tests/unit/debug/LANGUAGE.toml) and what their runtimes and
 * compilers really said (said.json, written by tests/unit/debug/record). Each has its expectations. */
#include "agent/debug.h"
#include "agent/rules.h"
#include "base/buf.h"
#include "base/own.h"
#include "tap.h"

#include <dirent.h>
#include <stdlib.h>

/* ---- cases ---- */

struct cases {
	struct toml doc[32];
	unsigned n;
	json_t *said;
};

static char *read_all(const char *name, size_t *n)
{
	auto_buf struct buf path = { 0 }, text = { 0 };
	FILE *f;

	buf_printf(&path, TESTS "/unit/debug/%s", name);
	f = fopen(buf_str(&path), "re");
	if (!f)
		abort();
	for (size_t got = 1; got > 0;) {
		got = fread(buf_space(&text, 65536), 1, 65536, f);
		buf_grew(&text, got);
	}
	fclose(f);
	*n = text.len;
	return buf_steal(&text);
}

static struct cases *cases(void)
{
	static struct cases all;
	struct dirent **list = NULL;
	struct err e;
	size_t n;
	int files;

	if (all.said)
		return &all;
	files = scandir(TESTS "/unit/debug", &list, NULL, alphasort);
	for (int i = 0; i < files; i++) {
		const char *name = list[i]->d_name;
		auto_free char *text = NULL;

		if (strlen(name) < 5 || strcmp(name + strlen(name) - 5, ".toml") != 0)
			continue;
		text = read_all(name, &n);
		if (toml_parse(&all.doc[all.n++], name, text, n, &e) < 0) {
			printf("# %s\n", e.msg);
			abort();
		}
	}
	{
		auto_free char *text = read_all("said.json", &n);

		all.said = json_loadb(text, n, 0, NULL);
	}
	return &all;
}

static json_t *texts_of(const struct toml_node *table)
{
	json_t *o = json_object();

	for (const struct toml_node *v = table ? table->in.first : NULL; v; v = v->next)
		json_object_set_new(o, v->key, json_string(v->text));
	return o;
}

/* "pip numpy" -> {manager, name} */
static json_t *packages_of(const struct toml_node *list)
{
	json_t *all = json_array();

	for (const struct toml_node *v = list ? list->in.first : NULL; v; v = v->next) {
		const char *blank = strchr(v->text, ' ');

		json_array_append_new(all, json_pack("{s:s%, s:s}", "manager", v->text,
						     (size_t)(blank - v->text), "name", blank + 1));
	}
	return all;
}

static const char *entry_of(const struct toml_node *c)
{
	const char *entry = image_text(c, "entry");

	return *entry ? entry : lang_named(image_text(c, "language"))->file;
}

static json_t *artifact_of(const struct toml_node *c)
{
	json_t *a = json_pack("{s:s, s:s, s:o, s:s, s:o, s:s, s:{}, s:[], s:[], s:{s:i}, s:b, s:n}", "schema",
			      AGENT_ARTIFACT, "language", image_text(c, "language"), "files",
			      texts_of(toml_get(c, "files")), "entry", entry_of(c), "packages",
			      packages_of(toml_get(c, "packages")), "stdin", image_text(c, "stdin"), "env",
			      "examples", "tests", "limits", "run_ms", 10000, "network", 0, "parent");

	json_object_set_new(json_object_get(a, "files"), entry_of(c), json_string(image_text(c, "program")));
	if (*image_text(c, "example"))
		json_array_append_new(json_object_get(a, "examples"),
				      json_pack("{s:s, s:s}", "input", image_text(c, "example"), "expected",
						image_text(c, "expected")));
	artifact_seal(a);
	return a;
}

static json_t *result_of(const struct toml_node *c)
{
	const json_t *said = json_object_get(cases()->said, image_text(c, "name"));
	json_t *phase = said ? json_deep_copy(said) : json_object();
	const char *cause = image_text(c, "cause");

	json_object_set_new(phase, "cause",
			    json_string(*cause ? cause : json_object_get(phase, "signal") ? "signal" : "exit"));
	return json_pack("{s:s, s:b, s:O, s:[o], s:[], s:[]}", "schema", AGENT_RESULT, "success", 0, "phase",
			 json_object_get(phase, "name"), "phases", phase, "checks", "examples");
}

static json_t *diagnose(const struct toml_node *c)
{
	json_t *artifact = artifact_of(c), *result = result_of(c), *plan = json_object(), *d;

	d = debug_make(plan, artifact, result, NULL);
	json_decref(plan);
	json_decref(artifact);
	json_decref(result);
	return d;
}

/* ---- expectations ---- */

static int has_package(const json_t *artifact, const char *wanted)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(artifact, "packages"), i, one) {
		auto_buf struct buf text = { 0 };

		buf_printf(&text, "%s %s", doc_text(one, "manager"), doc_text(one, "name"));
		if (!strcmp(buf_str(&text), wanted))
			return 1;
	}
	return 0;
}

/* Somewhere in what would run. */
static int has_text(const json_t *artifact, const char *wanted)
{
	json_t *what = json_pack("{s:O*, s:O*, s:O*, s:O*, s:O*}", "files", json_object_get(artifact, "files"), "env",
				 json_object_get(artifact, "env"), "entry", json_object_get(artifact, "entry"),
				 "limits", json_object_get(artifact, "limits"), "stdin",
				 json_object_get(artifact, "stdin"));
	const char *path;
	const json_t *v;
	int found = 0;

	json_object_foreach(json_object_get(what, "files"), path, v)
		found = found || strstr(json_string_value(v), wanted) || !strcmp(path, wanted);
	json_object_foreach(json_object_get(what, "env"), path, v) {
		auto_buf struct buf pair = { 0 };

		buf_printf(&pair, "%s=%s", path, json_string_value(v));
		found = found || !strcmp(buf_str(&pair), wanted);
	}
	found = found || !strcmp(doc_text(artifact, "entry"), wanted) ||
		!strcmp(doc_text(artifact, "language"), wanted) || !strcmp(doc_text(artifact, "stdin"), wanted);
	json_decref(what);
	return found;
}

static int same(const struct toml_node *c, const char *member, const char *got)
{
	const char *want = image_text(c, member);

	if (!*want || !strcmp(want, got))
		return 1;
	printf("# %s: %s is '%s', not '%s'\n", image_text(c, "name"), member, got, want);
	return 0;
}

static int holds(const struct toml_node *c, const json_t *d)
{
	const json_t *artifact = json_object_get(d, "new_artifact");
	const char *kind = doc_text(json_object_get(d, "action"), "kind");
	int ok = same(c, "category", doc_text(d, "category")) && same(c, "rule", doc_text(d, "subcategory")) &&
		 same(c, "action", kind);
	static const char *const makes[] = { "install", "edit", "rename", "change_runtime", "raise_limit",
					     "supply_input" };

	if (!ok)
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(makes); i++)
		if (!strcmp(kind, makes[i]) && (!artifact || strcmp(doc_text(d, "fixable"), "auto") != 0 ||
						!*doc_text(artifact, "changed_because") ||
						strncmp(doc_text(artifact, "provenance"), "debug:", 6) != 0)) {
			printf("# %s: no new artifact, or one that does not say why\n", image_text(c, "name"));
			return 0;
		}
	if (*image_text(c, "package") && !has_package(artifact, image_text(c, "package"))) {
		printf("# %s: %s is not installed\n", image_text(c, "name"), image_text(c, "package"));
		return 0;
	}
	if (*image_text(c, "has") && !has_text(artifact, image_text(c, "has"))) {
		printf("# %s: '%s' is not in it\n", image_text(c, "name"), image_text(c, "has"));
		return 0;
	}
	if (*image_text(c, "lacks") && has_text(artifact, image_text(c, "lacks"))) {
		printf("# %s: '%s' is still in it\n", image_text(c, "name"), image_text(c, "lacks"));
		return 0;
	}
	if (image_number(c, "line") &&
	    json_integer_value(json_object_get(json_object_get(d, "location"), "line")) !=
		    image_number(c, "line")) {
		printf("# %s: another line\n", image_text(c, "name"));
		return 0;
	}
	return 1;
}

static unsigned for_all(int (*f)(const struct toml_node *c), unsigned *count)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < cases()->n; i++) {
		const struct toml_node *list = toml_get(cases()->doc[i].root, "cases");

		for (const struct toml_node *c = list ? list->in.first : NULL; c; c = c->next) {
			bad += !f(c);
			++*count;
		}
	}
	return bad;
}

static int as_expected(const struct toml_node *c)
{
	json_t *d = diagnose(c);
	int ok = holds(c, d);

	if (!ok) {
		auto_free char *text = json_dumps(d, JSON_INDENT(1));

		printf("# %s\n", text ? text : "no document");
	}
	if (getenv("DIAGNOSES")) { /* for tests/unit/debug/record --heal */
		json_t *line = json_pack("{s:s, s:O}", "case", image_text(c, "name"), "diagnosis", d);

		json_dumpf(line, stderr, JSON_COMPACT);
		fputc('\n', stderr);
		json_decref(line);
	}
	json_decref(d);
	return ok;
}

TEST(every_program_that_failed_is_understood)
{
	unsigned count = 0;

	CHECK_INT(for_all(as_expected, &count), 0);
	printf("# %u programs\n", count);
}
