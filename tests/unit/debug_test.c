/* debug_test.c - from a failed run to the proposed fix. The cases are programs that were really
 * run (tests/unit/debug/LANGUAGE.toml) and the recorded output of their runtimes and compilers
 * (said.json, written by tests/unit/debug/record). Each has its expectations. */
#include "debug/debug.h"
#include "debug/rules.h"
#include "base/buf.h"
#include "base/cleanup.h"
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
		auto_free struct dirent *entry = list[i];
		const char *name = entry->d_name;
		auto_free char *text = NULL;

		if (strlen(name) < 5 || strcmp(name + strlen(name) - 5, ".toml") != 0)
			continue;
		text = read_all(name, &n);
		if (toml_parse(&all.doc[all.n++], name, text, n, &e) < 0) {
			printf("# %s\n", e.msg);
			abort();
		}
	}
	free(list);
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
	json_t *a = json_pack("{s:s, s:s, s:o, s:s, s:o, s:s, s:{}, s:[], s:[], s:{s:i}, s:b, s:n}",
			      "schema", AGENT_ARTIFACT, "language", image_text(c, "language"),
			      "files", texts_of(toml_get(c, "files")), "entry", entry_of(c),
			      "packages", packages_of(toml_get(c, "packages")), "stdin",
			      image_text(c, "stdin"), "env", "examples", "tests", "limits",
			      "run_ms", 10000, "network", 0, "parent");

	json_object_set_new(json_object_get(a, "files"), entry_of(c),
			    json_string(image_text(c, "program")));
	if (*image_text(c, "example"))
		json_array_append_new(json_object_get(a, "examples"),
				      json_pack("{s:s, s:s}", "input", image_text(c, "example"),
						"expected", image_text(c, "expected")));
	artifact_set_hash(a);
	return a;
}

static json_t *result_of(const struct toml_node *c)
{
	const json_t *said = json_object_get(cases()->said, image_text(c, "name"));
	json_t *phase = said ? json_deep_copy(said) : json_object();
	const char *cause = image_text(c, "cause");

	/* Of a version that is not installed: edited by hand. */
	if (toml_get(c, "stderr")) {
		json_object_set_new(phase, "name", json_string(image_text(c, "phase")));
		json_object_set_new(phase, "stderr", json_string(image_text(c, "stderr")));
		json_object_set_new(phase, "stdout", json_string(image_text(c, "stdout")));
		json_object_set_new(phase, "exit_code", json_integer(image_number(c, "exit")));
	}
	json_object_set_new(phase, "cause",
			    json_string(*cause                             ? cause
					: json_object_get(phase, "signal") ? "signal"
									   : "exit"));
	return json_pack("{s:s, s:b, s:O, s:[o], s:[], s:[]}", "schema", AGENT_RESULT, "success", 0,
			 "phase", json_object_get(phase, "name"), "phases", phase, "checks",
			 "examples");
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

	json_array_foreach(json_object_get(artifact, "packages"), i, one)
	{
		auto_buf struct buf text = { 0 };

		buf_printf(&text, "%s %s", doc_text(one, "manager"), doc_text(one, "name"));
		if (!strcmp(buf_str(&text), wanted))
			return 1;
	}
	return 0;
}

/* Is the text in one of the files to be run? */
static int has_text(const json_t *artifact, const char *wanted)
{
	json_t *what = json_pack("{s:O*, s:O*, s:O*, s:O*, s:O*}", "files",
				 json_object_get(artifact, "files"), "env",
				 json_object_get(artifact, "env"), "entry",
				 json_object_get(artifact, "entry"), "limits",
				 json_object_get(artifact, "limits"), "stdin",
				 json_object_get(artifact, "stdin"));
	const char *path;
	const json_t *v;
	int found = 0;

	json_object_foreach(json_object_get(what, "files"), path, v) found =
		found || strstr(json_string_value(v), wanted) || !strcmp(path, wanted);
	json_object_foreach(json_object_get(what, "env"), path, v)
	{
		auto_buf struct buf pair = { 0 };

		buf_printf(&pair, "%s=%s", path, json_string_value(v));
		found = found || !strcmp(buf_str(&pair), wanted);
	}
	found = found || !strcmp(doc_text(artifact, "entry"), wanted) ||
		!strcmp(doc_text(artifact, "language"), wanted) ||
		!strcmp(doc_text(artifact, "stdin"), wanted);
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
	int ok = same(c, "category", doc_text(d, "category")) &&
		 same(c, "rule", doc_text(d, "subcategory")) && same(c, "action", kind);
	static const char *const makes[] = { "install",        "edit",        "rename",
					     "change_runtime", "raise_limit", "supply_input" };

	if (!ok)
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(makes); i++)
		if (!strcmp(kind, makes[i]) &&
		    (!artifact || strcmp(doc_text(d, "fixable"), "auto") != 0 ||
		     !*doc_text(artifact, "changed_because") ||
		     strncmp(doc_text(artifact, "provenance"), "debug:", 6) != 0)) {
			printf("# %s: no new artifact, or one that does not say why\n",
			       image_text(c, "name"));
			return 0;
		}
	if (*image_text(c, "package") && !has_package(artifact, image_text(c, "package"))) {
		printf("# %s: %s is not installed\n", image_text(c, "name"),
		       image_text(c, "package"));
		return 0;
	}
	if (*image_text(c, "has") && !has_text(artifact, image_text(c, "has"))) {
		printf("# %s: '%s' is not in it\n", image_text(c, "name"), image_text(c, "has"));
		return 0;
	}
	if (*image_text(c, "lacks") && has_text(artifact, image_text(c, "lacks"))) {
		printf("# %s: '%s' is still in it\n", image_text(c, "name"),
		       image_text(c, "lacks"));
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
		json_t *line =
			json_pack("{s:s, s:O}", "case", image_text(c, "name"), "diagnosis", d);

		json_dumpf(line, stderr, JSON_COMPACT);
		fputc('\n', stderr);
		json_decref(line);
	}
	json_decref(d);
	return ok;
}

TEST(every_recorded_failure_has_its_expected_category)
{
	unsigned count = 0;

	CHECK_INT(for_all(as_expected, &count), 0);
	printf("# %u programs\n", count);
}

/* The rules that decided a case. */
static json_t *hit;

static int note_rule(const struct toml_node *c)
{
	json_t *d = diagnose(c);

	json_object_set_new(hit, doc_text(d, "subcategory"), json_true());
	json_decref(d);
	return 1;
}

/* RULES_OFF=1: finds rules that could be left out. Slow; started by hand. */
static int fails_without(const struct toml_node *c)
{
	json_t *d = diagnose(c);
	int ok = holds(c, d);

	json_decref(d);
	return ok;
}

TEST(every_rule_is_needed_by_some_failure)
{
	unsigned idle = 0, count = 0;

	if (!getenv("RULES_OFF"))
		SKIP("RULES_OFF=1 runs it");
	for (unsigned i = 0; i < rules_count(); i++)
		for (unsigned j = 0; j < rules_at(i)->n; j++) {
			rules_without(rules_at(i)->v[j].name);
			if (!for_all(fails_without, &count)) {
				printf("# no failure needs %s\n", rules_at(i)->v[j].name);
				idle++;
			}
		}
	rules_without(NULL);
	CHECK_INT(idle, 0);
}

TEST(every_rule_has_a_recorded_failure)
{
	unsigned count = 0, rules = 0, missing = 0;

	hit = json_object();
	for_all(note_rule, &count);
	for (unsigned i = 0; i < rules_count(); i++)
		for (unsigned j = 0; j < rules_at(i)->n; j++, rules++)
			if (!json_object_get(hit, rules_at(i)->v[j].name)) {
				printf("# no case: %s\n", rules_at(i)->v[j].name);
				missing++;
			}
	printf("# %u rules\n", rules);
	json_decref(hit);
	CHECK_INT(missing, 0);
}

/* ---- facts ---- */

static json_t *artifact_with(const char *language, const char *program)
{
	const struct lang *l = lang_named(language);
	json_t *a = json_pack("{s:s, s:{s:s}, s:s, s:[], s:s, s:{}, s:[], s:[], s:{s:i}, s:n}",
			      "language", language, "files", l ? l->file : "x", program, "entry",
			      l ? l->file : "x", "packages", "stdin", "", "env", "examples",
			      "tests", "limits", "run_ms", 10000, "parent");

	artifact_set_hash(a);
	return a;
}

static void add_example(json_t *artifact)
{
	json_array_append_new(json_object_get(artifact, "examples"),
			      json_pack("{s:s, s:s}", "input", "1\n", "expected", "2\n"));
}

/* A diagnosis of one phase; takes ownership of its arguments. */
static json_t *of_result(json_t *take_artifact, json_t *take_result, const json_t *before)
{
	json_t *plan = json_object(), *d = debug_make(plan, take_artifact, take_result, before);

	json_decref(plan);
	json_decref(take_artifact);
	json_decref(take_result);
	return d;
}

static json_t *result_with(const char *phase, const char *cause, const char *out, const char *err)
{
	return json_pack("{s:s, s:[{s:s, s:s, s:i, s:f, s:f, s:s, s:s}], s:[], s:[]}", "phase",
			 phase, "phases", "name", phase, "cause", cause, "exit_code", 1, "ms",
			 10000.5, "cpu_ms", 9000.1, "stdout", out, "stderr", err, "checks",
			 "examples");
}

static const char *action(const json_t *d)
{
	return doc_text(json_object_get(d, "action"), "kind");
}

TEST(kernel_evidence_precedes_program_output)
{
	static const struct {
		const char *cause, *category, *kind;
	} rows[] = {
		{ "memory", "oom", "raise_limit" },
		{ "processes", "pids", "stop" },
		{ "disk", "disk_full", "stop" },
		{ "cpu", "timeout_cpu", "raise_limit" },
		{ "wall", "timeout_cpu", "raise_limit" },
		{ "policy", "policy", "stop" },
		{ "lifetime", "timeout_wall", "stop" },
		{ "idle", "timeout_wall", "stop" },
		{ "host", "unknown", "stop" },
		{ "operator", "unknown", "stop" },
		{ "output", "wrong_output", "stop" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *d = of_result(artifact_with("python", "import cv2\n"),
				      result_with("run", rows[i].cause, "so far\n",
						  "ModuleNotFoundError: No module named 'cv2'\n"),
				      NULL);

		CHECK_STR(doc_text(d, "category"), rows[i].category);
		CHECK_STR(action(d), rows[i].kind);
		json_decref(d);
	}
}

TEST(a_reached_limit_counts_as_kernel_evidence)
{
	static const struct {
		const char *limit, *category;
	} rows[] = { { "memory", "oom" },
		     { "pids", "pids" },
		     { "disk", "disk_full" },
		     { "time", "timeout_cpu" } };

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *r = result_with("run", "exit", "", ""), *d;

		json_object_set_new(r, "limits_hit", json_pack("[s]", rows[i].limit));
		d = of_result(artifact_with("python", "x\n"), r, NULL);
		CHECK_STR(doc_text(d, "category"), rows[i].category);
		json_decref(d);
	}
}

TEST(signals_have_their_categories)
{
	static const struct {
		int signal;
		const char *name, *category;
	} rows[] = { { 11, "SIGSEGV", "crash" },       { 7, "SIGBUS", "crash" },
		     { 8, "SIGFPE", "zero_division" }, { 4, "SIGILL", "crash" },
		     { 6, "SIGABRT", "crash" },        { 31, "SIGSYS", "policy" },
		     { 24, "SIGXCPU", "timeout_cpu" }, { 25, "SIGXFSZ", "disk_full" } };

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		for (int named = 0; named < 2; named++) {
			json_t *r = result_with("run", "signal", "", ""), *d;
			json_t *phase = json_array_get(json_object_get(r, "phases"), 0);

			json_object_del(phase, "exit_code");
			json_object_set_new(phase, "signal",
					    named ? json_string(rows[i].name)
						  : json_integer(rows[i].signal));
			d = of_result(artifact_with("go", "package main\n"), r, NULL);
			CHECK_STR(doc_text(d, "category"), rows[i].category);
			json_decref(d);
		}
}

TEST(an_idle_program_with_threads_at_the_wall_limit_is_a_deadlock)
{
	json_t *r = result_with("run", "wall", "", ""), *d;

	json_object_set_new(json_array_get(json_object_get(r, "phases"), 0), "cpu_ms",
			    json_integer(20));
	d = of_result(artifact_with("python", "import threading\nthreading.Lock().acquire()\n"),
		      json_incref(r), NULL);
	CHECK_STR(doc_text(d, "category"), "deadlock");
	CHECK_STR(action(d), "stop");
	json_decref(d);
	d = of_result(artifact_with("python", "import time\ntime.sleep(100)\n"), r, NULL);
	CHECK_STR(doc_text(d, "category"), "timeout_wall");
	CHECK_STR(action(d), "stop"); /* no output: more time would not help */
	json_decref(d);
}

TEST(a_limit_is_raised_once_and_within_bounds)
{
	json_t *a = artifact_with("python", "x = 1\n"), *d, *before, *child;

	d = of_result(json_incref(a), result_with("run", "cpu", "1 of 10\n", ""), NULL);
	CHECK_STR(action(d), "raise_limit");
	child = json_object_get(d, "new_artifact");
	CHECK_INT(json_integer_value(json_object_get(json_object_get(child, "limits"), "run_ms")),
		  30000);
	CHECK(strcmp(doc_text(child, "hash"), doc_text(a, "hash")) != 0);
	CHECK_STR(doc_text(child, "parent"), doc_text(a, "hash"));
	before = json_pack("[O]", d);
	{
		json_t *again = of_result(json_incref(child),
					  result_with("run", "memory", "1 of 10\n", ""), before);

		CHECK_STR(doc_text(again, "category"), "oom");
		CHECK_STR(action(again), "stop");
		json_decref(again);
	}
	json_decref(before);
	json_decref(d);

	json_object_set_new(json_object_get(a, "limits"), "run_ms", json_integer(120000));
	d = of_result(json_incref(a), result_with("run", "cpu", "1 of 10\n", ""), NULL);
	CHECK_STR(action(d), "stop");
	json_decref(d);
	json_object_set_new(json_object_get(a, "limits"), "run_ms", json_integer(1000));
	json_object_set_new(json_object_get(a, "limits"), "fixed", json_true());
	d = of_result(a, result_with("run", "cpu", "1 of 10\n", ""), NULL);
	CHECK_STR(action(d), "stop");
	json_decref(d);
}

TEST(the_same_diagnosis_twice_stops)
{
	static const char said[] =
		"Traceback (most recent call last):\n  File \"/home/user/main.py\", line 1, in "
		"<module>\n    print(totl)\nNameError: name 'totl' is not defined\n";
	json_t *a = artifact_with("python", "print(totl)\ntotal = 1\n"), *before;
	json_t *one = of_result(json_incref(a), result_with("run", "exit", "", said), NULL), *two;

	CHECK_STR(action(one), "edit");
	before = json_pack("[O]", one);
	two = of_result(a, result_with("run", "exit", "", said), before);
	CHECK_STR(doc_text(two, "novelty"), doc_text(one, "novelty"));
	CHECK_STR(action(two), "stop");
	CHECK(!json_object_get(two, "new_artifact"));
	json_decref(before);
	json_decref(one);
	json_decref(two);
}

TEST(a_different_wrong_output_is_a_different_fault)
{
	json_t *a = artifact_with("python", "print(1)\n"), *r;
	static const char *const said[] = { "1\n", "2\n", "1\n" };
	json_t *d[3];

	for (unsigned i = 0; i < 3; i++) {
		r = result_with("check", "exit", said[i], "");
		json_object_set_new(json_array_get(json_object_get(r, "phases"), 0), "exit_code",
				    json_integer(0));
		json_object_set_new(r, "checks",
				    json_pack("[{s:s, s:s, s:b, s:s}]", "kind", "stdout_contains",
					      "arg", "7", "pass", 0, "detail", said[i]));
		d[i] = of_result(json_incref(a), r, NULL);
	}
	CHECK_STR(doc_text(d[0], "category"), "wrong_output");
	CHECK(strcmp(doc_text(d[0], "novelty"), doc_text(d[1], "novelty")) != 0);
	CHECK_STR(doc_text(d[0], "novelty"), doc_text(d[2], "novelty"));
	for (unsigned i = 0; i < 3; i++)
		json_decref(d[i]);
	json_decref(a);
}

TEST(a_package_without_a_configured_source_names_the_setting)
{
	json_t *a = artifact_with("python", "import yaml\n"), *d;

	json_object_set_new(a, "packages",
			    json_pack("[{s:s, s:s}]", "manager", "pip", "name", "pyyaml"));
	d = of_result(
		a,
		result_with(
			"install", "policy", "",
			"no source for pip packages is configured: packages.pip or packages.mirror"),
		NULL);
	CHECK_STR(doc_text(d, "category"), "network_denied");
	CHECK_STR(doc_text(d, "root_cause"),
		  "no package can be installed: no source for pip packages is configured: "
		  "packages.pip or packages.mirror");
	json_decref(d);
}

TEST(a_fix_that_leads_to_an_earlier_artifact_is_not_repeated)
{
	static const char said[] =
		"  File \"main.py\", line 1\nModuleNotFoundError: No module named 'yaml'\n";
	json_t *a = artifact_with("python", "import yaml\n"), *before, *two;
	json_t *one = of_result(json_incref(a), result_with("run", "exit", "", said), NULL);

	CHECK_STR(action(one), "install");
	/* As if another path had led to the same artifact. */
	json_object_set_new(one, "novelty", json_string("other"));
	before = json_pack("[O]", one);
	two = of_result(a, result_with("run", "exit", "", said), before);
	CHECK_STR(action(two), "stop");
	json_decref(before);
	json_decref(one);
	json_decref(two);
}

TEST(an_installed_package_is_not_installed_again)
{
	json_t *a = artifact_with("python", "import yaml\n"), *d;

	json_array_append_new(json_object_get(a, "packages"),
			      json_pack("{s:s, s:s}", "manager", "pip", "name", "pyyaml"));
	artifact_set_hash(a);
	d = of_result(
		a, result_with("run", "exit", "", "ModuleNotFoundError: No module named 'yaml'\n"),
		NULL);
	CHECK_STR(doc_text(d, "category"), "dependency_missing");
	CHECK_STR(action(d), "stop");
	json_decref(d);
}

TEST(an_unknown_package_is_a_question_when_the_plan_requires_it)
{
	json_t *plan = json_pack("{s:b}", "unknown_packages", 0),
	       *a = artifact_with("python", "import zedzed\n");
	json_t *r =
		result_with("run", "exit", "", "ModuleNotFoundError: No module named 'zedzed'\n");
	json_t *d = debug_make(plan, a, r, NULL);

	CHECK_STR(action(d), "ask");
	CHECK_STR(doc_text(json_object_get(d, "question"), "name"), "zedzed");
	CHECK_STR(doc_text(d, "fixable"), "human");
	json_decref(d);
	json_object_clear(plan);
	d = debug_make(plan, a, r, NULL);
	CHECK_STR(action(d), "install");
	CHECK(strstr(doc_text(json_object_get(d, "action"), "detail"), "no list") != NULL);
	json_decref(d);
	json_decref(plan);
	json_decref(a);
	json_decref(r);
}

TEST(failed_examples_start_a_repair_search)
{
	json_t *a = artifact_with("python", "print(int(input()) + 2)\n"), *r, *d;

	add_example(a);
	r = json_pack("{s:s, s:[{s:s, s:s, s:i, s:s, s:s}], s:[{s:i, s:b, s:s, s:s}], s:[]}",
		      "phase", "check", "phases", "name", "run", "cause", "exit", "exit_code", 0,
		      "stdout", "3\n", "stderr", "", "examples", "n", 1, "pass", 0, "got", "3\n",
		      "expected", "2\n", "checks");
	d = of_result(json_incref(a), json_incref(r), NULL);
	CHECK_STR(doc_text(d, "category"), "wrong_output");
	CHECK_STR(action(d), "repair");
	CHECK_STR(doc_text(d, "fixable"), "search");
	json_decref(d);
	json_array_clear(json_object_get(a, "examples"));
	d = of_result(a, r, NULL);
	CHECK_STR(action(d), "stop");
	CHECK_STR(doc_text(d, "fixable"), "llm");
	json_decref(d);
}

TEST(a_program_that_calls_no_function_gets_a_call)
{
	static const struct {
		const char *language, *program, *has;
	} rows[] = {
		{ "python", "def main():\n    print(1)\n",
		  "if __name__ == \"__main__\":\n    main()\n" },
		{ "python", "def answer():\n    return 42\n", "print(answer())" },
		{ "node", "function main() {\n  console.log(1);\n}\n", "main();\n" },
		{ "ruby", "def main\n  puts 1\nend\n", "end\n\nmain\n" },
		{ "php", "<?php\nfunction main() {\n  echo 1;\n}\n", "}\n\nmain();\n" },
		{ "perl", "sub main {\n  print 1;\n}\n", "main();\n" },
		{ "lua", "function main()\n  print(1)\nend\n", "main()\n" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *r = result_with("check", "exit", "", ""), *d;

		json_object_set_new(json_array_get(json_object_get(r, "phases"), 0), "exit_code",
				    json_integer(0));
		json_object_set_new(r, "checks",
				    json_pack("[{s:s, s:b, s:s}]", "kind", "stdout_equals", "pass",
					      0, "detail", "nothing"));
		d = of_result(artifact_with(rows[i].language, rows[i].program), r, NULL);
		CHECK_STR(doc_text(d, "category"), "entry_point");
		CHECK_STR(action(d), "edit");
		CHECK(has_text(json_object_get(d, "new_artifact"), rows[i].has));
		json_decref(d);
	}
}

TEST(a_failed_check_command_has_category_assertion)
{
	json_t *r = result_with("check", "exit", "x\n", ""), *d;

	json_object_set_new(r, "checks",
			    json_pack("[{s:s, s:b, s:s}]", "kind", "command", "pass", 0, "detail",
				      "exit 1"));
	d = of_result(artifact_with("python", "print('x')\n"), r, NULL);
	CHECK_STR(doc_text(d, "category"), "assertion");
	json_decref(d);
}

TEST(a_failure_that_passes_unchanged_is_flaky)
{
	json_t *r, *d;

	r = result_with("check", "exit", "", "");
	json_object_set_new(r, "examples",
			    json_pack("[{s:i, s:b}, {s:i, s:b}]", "n", 1, "pass", 1, "n", 1, "pass",
				      0));
	d = of_result(artifact_with("python", "x\n"), r, NULL);
	CHECK_STR(doc_text(d, "category"), "flaky");
	json_decref(d);
}

TEST(a_failed_example_after_a_good_run_is_not_flaky)
{
	json_t *r = result_with("run", "exit", "", "ZeroDivisionError: division by zero\n"), *d;

	json_array_insert_new(json_object_get(r, "phases"), 0,
			      json_pack("{s:s, s:i, s:s}", "name", "run", "exit_code", 0, "cause",
					"exit"));
	d = of_result(artifact_with("python", "x\n"), r, NULL);
	CHECK_STR(doc_text(d, "category"), "zero_division");
	json_decref(d);
}

TEST(output_of_a_successful_run_is_no_failure)
{
	json_t *r = result_with("check", "exit", "", "warning: x.txt: Permission denied\n"), *d;

	json_object_set_new(json_array_get(json_object_get(r, "phases"), 0), "exit_code",
			    json_integer(0));
	json_object_set_new(r, "checks",
			    json_pack("[{s:s, s:b, s:s}]", "kind", "stdout_equals", "pass", 0,
				      "detail", "x"));
	d = of_result(artifact_with("python", "print(1)\n"), r, NULL);
	CHECK_STR(doc_text(d, "category"), "wrong_output");
	json_decref(d);
}

TEST(code_that_the_scan_blocks_is_not_retried)
{
	json_t *r =
		json_pack("{s:s, s:[], s:[{s:s, s:i, s:s, s:s}]}", "phase", "scan", "phases",
			  "scan", "rule", "miner", "line", 3, "why", "a miner", "action", "block");
	json_t *d = of_result(artifact_with("python", "x\n"), r, NULL);

	CHECK_STR(doc_text(d, "category"), "policy");
	CHECK_STR(doc_text(d, "fixable"), "no");
	CHECK_STR(action(d), "stop");
	CHECK(strstr(doc_text(d, "root_cause"), "a miner") != NULL);
	json_decref(d);
}

TEST(errors_of_package_managers_are_classified)
{
	static const struct {
		const char *manager, *said, *category;
	} rows[] = {
		{ "pip",
		  "ERROR: Could not find a version that satisfies the requirement zedzed (from versions: none)\n"
		  "ERROR: No matching distribution found for zedzed\n",
		  "dependency_missing" },
		{ "pip",
		  "ERROR: Could not find a version that satisfies the requirement numpy==99 (from versions: 1.0, 1.1)\n"
		  "ERROR: No matching distribution found for numpy==99\n",
		  "version_conflict" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *a = artifact_with("python", "x\n"), *d;

		json_array_append_new(json_object_get(a, "packages"),
				      json_pack("{s:s, s:s, s:s}", "manager", rows[i].manager,
						"name", "numpy", "version", "99"));
		artifact_set_hash(a);
		d = of_result(a, result_with("install", "exit", "", rows[i].said), NULL);
		CHECK_STR(doc_text(d, "category"), rows[i].category);
		CHECK_STR(action(d), i ? "install" : "stop");
		json_decref(d);
	}
}

TEST(the_category_of_the_installer_is_used)
{
	static const struct {
		const char *fault, *category;
	} rows[] = { { "no_such_package", "dependency_missing" },
		     { "unreachable", "network_denied" },
		     { "not_configured", "network_denied" },
		     { "no_manager", "dependency_missing" },
		     { "timeout", "timeout_wall" } };

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *r = result_with("install", "exit", "", ""), *d;

		json_object_set_new(json_array_get(json_object_get(r, "phases"), 0), "fault",
				    json_string(rows[i].fault));
		d = of_result(artifact_with("python", "x\n"), r, NULL);
		CHECK_STR(doc_text(d, "category"), rows[i].category);
		json_decref(d);
	}
}

TEST(a_standard_library_module_is_not_installed)
{
	json_t *a = artifact_with("python", "import json\n"), *d;

	json_array_append_new(json_object_get(a, "packages"),
			      json_pack("{s:s, s:s}", "manager", "pip", "name", "json"));
	artifact_set_hash(a);
	d = of_result(
		a,
		result_with(
			"install", "exit", "",
			"ERROR: Could not find a version that satisfies the requirement json (from "
			"versions: none)\nERROR: No matching distribution found for json\n"),
		NULL);
	CHECK_STR(action(d), "edit");
	CHECK_INT(json_array_size(json_object_get(json_object_get(d, "new_artifact"), "packages")),
		  0);
	json_decref(d);
}

TEST(a_missing_file_of_the_task_is_added_at_the_path_that_is_read)
{
	json_t *plan = json_pack("{s:{s:s}}", "files", "data.csv", "1,2\n");
	json_t *a = artifact_with("python", "print(open('data.csv').read())\n");
	json_t *r =
		result_with("run", "exit", "",
			    "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'\n");
	json_t *d = debug_make(plan, a, r, NULL);

	CHECK_STR(doc_text(d, "category"), "file_missing");
	CHECK(has_text(json_object_get(d, "new_artifact"), "1,2\n"));
	json_decref(d);
	json_decref(plan);
	json_decref(a);
	json_decref(r);
}

/* ---- hostile ---- */

static int whole(json_t *take_d)
{
	auto_free char *text = json_dumps(take_d, 0);
	int ok = text && debug_category(doc_text(take_d, "category")) >= 0 && *action(take_d) &&
		 strlen(doc_text(take_d, "novelty")) == 64;

	json_decref(take_d);
	return ok;
}

TEST(empty_and_invalid_documents_have_a_diagnosis)
{
	static const char *const docs[] = {
		"{}",
		"[]",
		"null",
		"1",
		"{\"phases\": 1, \"phase\": [], \"files\": 3, \"language\": {}}",
		"{\"phases\": [1, null, {\"name\": 4, \"stderr\": []}], \"phase\": \"run\", \"examples\": {}, "
		"\"checks\": [1], \"scan\": [2], \"limits_hit\": [3, null]}",
		"{\"phase\": \"scan\"}",
		"{\"phase\": \"install\"}",
		"{\"phase\": \"check\"}",
		"{\"language\": \"python\", \"files\": {\"main.py\": 1}, \"entry\": \"main.py\", \"packages\": 1, "
		"\"env\": [], \"limits\": 2}",
		"{\"language\": \"python\", \"files\": [], \"entry\": 7}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(docs); i++)
		for (unsigned j = 0; j < ARRAY_LEN(docs); j++) {
			json_t *a = json_loads(docs[i], JSON_DECODE_ANY, NULL);
			json_t *b = json_loads(docs[j], JSON_DECODE_ANY, NULL);

			CHECK(whole(debug_make(a, b, a, b)));
			CHECK(whole(debug_make(NULL, a, b, NULL)));
			json_decref(a);
			json_decref(b);
		}
	CHECK(whole(debug_make(NULL, NULL, NULL, NULL)));
}

TEST(analysis_of_a_hostile_text_is_fast)
{
	static const char letters[] = "aB('\"[{ \t:;/.=-_`\n";
	auto_buf struct buf big = { 0 }, line = { 0 };

	for (unsigned i = 0; i < 1 << 20; i++)
		buf_putc(&big, letters[i * 2654435761u % (sizeof(letters) - 1)]);
	for (unsigned i = 0; i < 1 << 18; i++)
		buf_puts(&line, "': ");
	for (unsigned i = 0; i < lang_count(); i++) {
		CHECK(whole(of_result(artifact_with(lang_at(i)->name, buf_str(&line)),
				      result_with("run", "exit", buf_str(&line), buf_str(&big)),
				      NULL)));
		CHECK(whole(of_result(artifact_with(lang_at(i)->name, "x\n"),
				      result_with("compile", "exit", buf_str(&big), buf_str(&line)),
				      NULL)));
	}
}

TEST(text_cut_inside_a_character_is_valid_utf8)
{
	auto_buf struct buf said = { 0 };
	json_t *d;

	buf_puts(&said, "ModuleNotFoundError: No module named '");
	for (unsigned i = 0; i < 1000; i++)
		buf_puts(&said, "\xc3\xa4");
	buf_puts(&said, "'\n");
	d = of_result(artifact_with("python", "import x\n"),
		      result_with("run", "exit", "", buf_str(&said)), NULL);
	CHECK(whole(d));
}

/* ---- the page ---- */

TEST(docs_errors_md_lists_the_category_table)
{
	auto_free char *text = NULL;
	unsigned bad = 0;
	size_t n;

	text = read_all("../../../docs/errors.md", &n);
	for (const struct debug_category *c = debug_categories; c->name; c++) {
		auto_buf struct buf row = { 0 };

		buf_printf(&row, "| `%s` | %s | %s |\n", c->name, c->evidence, c->done);
		if (strstr(text, buf_str(&row)))
			continue;
		printf("# not in docs/errors.md: %s", buf_str(&row));
		bad++;
	}
	CHECK_INT(bad, 0);
}

TEST(every_category_states_whether_it_can_be_fixed)
{
	for (const struct debug_category *c = debug_categories; c->name; c++)
		CHECK(!strcmp(c->fixable, "llm") || !strcmp(c->fixable, "human") ||
		      !strcmp(c->fixable, "no"));
	CHECK_INT(debug_category("nonsense"), -1);
	CHECK_INT(debug_category("dependency_missing"), 0);
}
