/* report_test.c - checks, calls and labels of a pipeline report. */
#include "execute/execute.h"
#include "execute/harness.h"
#include "pipeline/report.h"
#include "base/cleanup.h"
#include "tap.h"

static json_t *doc(const char *text)
{
	return json_loads(text, 0, NULL);
}

/* ---- checks ---- */

static int passes(const char *check, int code, const char *out)
{
	json_t *checks = json_pack("[o]", doc(check)),
	       *rows = execute_checks(checks, code, out, strlen(out), strlen(out));
	int pass = json_array_size(rows)
			   ? json_is_true(json_object_get(json_array_get(rows, 0), "pass"))
			   : -1;

	json_decref(rows);
	json_decref(checks);
	return pass;
}

TEST(each_check_type_compares_as_documented)
{
	CHECK_INT(passes("{\"kind\":\"exit\",\"arg\":\"3\"}", 3, ""), 1);
	CHECK_INT(passes("{\"kind\":\"exit\",\"arg\":3}", 0, ""), 0);
	CHECK_INT(passes("{\"kind\":\"stdout_equals\",\"arg\":\"a\\nb\"}", 0, "a \nb\n\n"), 1);
	CHECK_INT(passes("{\"kind\":\"stdout_equals\",\"arg\":\"a\"}", 0, "b"), 0);
	CHECK_INT(passes("{\"kind\":\"stdout_regex\",\"arg\":\"^mean: .+\\nmedian: .+\\n$\"}", 0,
			 "mean: 1\nmedian: 2\n"),
		  1);
	CHECK_INT(passes("{\"kind\":\"stdout_contains\",\"arg\":\"b\"}", 0, "abc"), 1);
	CHECK_INT(passes("{\"kind\":\"command\",\"arg\":\"true\"}", 0, ""), -1);
}

TEST(patterns_with_exponential_time_are_not_tried)
{
	static const char *const bad[] = { "(a*)\\\\1", "((a{100}){100}){100}", "(" };
	char text[200];

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		snprintf(text, sizeof(text), "{\"kind\":\"stdout_regex\",\"arg\":\"%s\"}", bad[i]);
		CHECK_INT(passes(text, 0, "aaaaaaaaaaaaaaaaaaaaaaaa"), 0);
	}
}

TEST(output_of_any_bytes_becomes_valid_text)
{
	json_t *v = execute_text("a\0b\xff", 4, "z", 1, 100);

	CHECK(json_is_string(v));
	CHECK_STR(json_string_value(v), "a?b\xef\xbf\xbd\n[... 95 bytes left out ...]\nz");
	json_decref(v);
}

/* ---- calls ---- */

TEST(a_result_is_the_text_after_the_mark)
{
	size_t n = 0;
	const char *at = harness_answer("noise\n@mark:[1, 2] \n", 20, "@mark:", &n);

	CHECK(at);
	CHECK_INT(n, 6);
	CHECK(!strncmp(at, "[1, 2]", 6));
	CHECK(!harness_answer("noise", 5, "@mark:", &n));
	CHECK(!harness_answer("", 0, "@mark:", &n));
}

TEST(values_are_equal_in_every_notation)
{
	static const struct {
		const char *got, *expected;
		int same;
	} rows[] = {
		{ "5", "5", 1 },
		{ "5.0", "5", 1 },
		{ "[1,2]", "[1, 2]", 1 },
		{ "(1, 2)", "[1, 2]", 1 },
		{ "'abc'", "abc", 1 },
		{ "\"abc\"", "abc", 1 },
		{ "True", "true", 1 },
		{ "None", "null", 1 },
		{ "0.30000000000000004", "0.3", 1 },
		{ "['a', 'b']", "[\"a\",\"b\"]", 1 },
		{ "5", "6", 0 },
		{ "'5'", "6", 0 },
		{ "[1, 2]", "[1, 2, 3]", 0 },
		{ "", "0", 0 },
		{ "[", "]", 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		int same = harness_same(rows[i].got, strlen(rows[i].got), rows[i].expected);

		if (same != rows[i].same)
			printf("# %s, %s\n", rows[i].got, rows[i].expected);
		CHECK_INT(same, rows[i].same);
	}
}

TEST(a_call_is_added_to_the_program)
{
	json_t *a = doc(
		       "{\"language\":\"python\",\"entry\":\"main.py\",\"files\":{\"main.py\":\"x = 1\"}}"),
	       *files = NULL;
	const char *entry = NULL;
	struct err e;

	CHECK_INT(harness_call(a, "f('a')", "M", &files, &entry, &e), 0);
	CHECK_STR(entry, "atoll_call.py");
	CHECK_STR(doc_text(files, "main.py"), "x = 1");
	CHECK(strstr(doc_text(files, entry), "f(\\'a\\')"));
	json_decref(files);
	CHECK_STR(doc_text(json_object_get(a, "files"), "main.py"), "x = 1");
	json_object_set_new(a, "language", json_string("no such language"));
	CHECK_INT(harness_call(a, "f()", "M", &files, &entry, &e), -1);
	json_object_set_new(a, "language", json_string("c"));
	json_object_set_new(a, "entry", json_string("none.c"));
	CHECK_INT(harness_call(a, "f()", "M", &files, &entry, &e), -1);
	json_decref(a);
}

TEST(a_program_that_has_a_main_keeps_it_under_another_name)
{
	static const struct {
		const char *language, *file, *text, *kept, *ours;
	} rows[] = {
		{ "go", "main.go", "package main\nfunc main() {}\n", "func program_main() {}",
		  "func main() {" },
		{ "rust", "main.rs", "fn main() {}\n", "fn program_main() {}", "fn main() {" },
		{ "java", "Main.java", "class Main { static void main(String[] a) {} }\n",
		  "void program_main(String[] a)",
		  "class Main {\n    public static void main(String[] atollArgs)" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *a = json_pack("{s:s, s:s, s:{s:s}}", "language", rows[i].language, "entry",
				      rows[i].file, "files", rows[i].file, rows[i].text),
		       *files = NULL;
		const char *entry = NULL;
		struct err e;

		CHECK_INT(harness_call(a, "f(2)", "M", &files, &entry, &e), 0);
		CHECK(strstr(doc_text(files, rows[i].file), rows[i].kept));
		CHECK(strstr(doc_text(files, entry), rows[i].ours));
		CHECK(strstr(doc_text(files, entry), "f(2)"));
		json_decref(files);
		json_decref(a);
	}
}

static void detail_is(const char *kind, const char *arg, const char *out, uint64_t all,
		      const char *want)
{
	json_t *checks = json_pack("[{s:s, s:s}]", "kind", kind, "arg", arg),
	       *rows = execute_checks(checks, 0, out, strlen(out), all);

	CHECK(json_is_false(json_object_get(json_array_get(rows, 0), "pass")));
	CHECK_STR(doc_text(json_array_get(rows, 0), "detail"), want);
	json_decref(rows);
	json_decref(checks);
}

TEST(a_check_that_fails_says_what_was_expected_and_what_was_seen)
{
	detail_is("stdout_contains", "right", "wrong 7\n", 8,
		  "expected stdout to contain 'right', seen 'wrong 7\n'");
	detail_is("stdout_regex", "^r", "wrong", 5, "expected stdout to match '^r', seen 'wrong'");
	detail_is("stdout_equals", "a\nb\n", "a\nc\n", 4,
		  "stdout differs in line 2: expected 'b', seen 'c'");
	detail_is("stdout_equals", "a\n", "a\nb\n", 4,
		  "stdout differs in line 2: expected '', seen 'b'");
	detail_is(
		"stdout_contains", "b", "a", 99,
		"expected stdout to contain 'b', seen 'a'; only the first 1 of 99 bytes of stdout were looked at");
	/* Fields that are not compared may differ. */
	detail_is("stdout_equals", "a", "a", 99,
		  "only the first 1 of 99 bytes of stdout were looked at");
}

/* ---- labels ---- */

static const char *label(const char *plan, const char *artifact, const char *result)
{
	json_t *p = doc(plan), *a = doc(artifact), *r = doc(result);
	const char *why, *found = report_label(p, a, r, &why);

	json_decref(p);
	json_decref(a);
	json_decref(r);
	return found;
}

TEST(a_repair_is_verified_if_unique_and_a_held_out_example_passes)
{
	static const char many[] =
		"{\"examples\":[{\"pass\":true},{\"pass\":true},{\"pass\":true}]}";
	static const char held[] =
		"{\"examples\":[{\"pass\":true},{\"pass\":true}],\"held_out\":{\"pass\":true}}";

	CHECK_STR(
		label("{}",
		      "{\"provenance\":\"repair:x\",\"repair\":{\"pinned\":true,\"held_out\":true}}",
		      many),
		"verified");
	CHECK_STR(
		label("{}",
		      "{\"provenance\":\"repair:x\",\"repair\":{\"pinned\":true,\"held_out\":false}}",
		      held),
		"verified");
	CHECK_STR(
		label("{}",
		      "{\"provenance\":\"repair:x\",\"repair\":{\"pinned\":true,\"held_out\":false}}",
		      many),
		"plausible");
	CHECK_STR(
		label("{}",
		      "{\"provenance\":\"repair:x\",\"repair\":{\"pinned\":false,\"held_out\":true}}",
		      held),
		"plausible");
	/* A program that was edited after the repair is no longer that repair. */
	CHECK_STR(label("{}",
			"{\"provenance\":\"llm:x\",\"repair\":{\"pinned\":true,\"held_out\":true}}",
			held),
		  "examples_pass");
}

TEST(a_result_without_evidence_is_not_verified)
{
	CHECK_STR(label("{}", "{}", "{}"), "plausible");
	CHECK_STR(label("{}", "{}", "{\"checks\":[{\"kind\":\"exit\",\"pass\":true}]}"),
		  "plausible");
	CHECK_STR(label("{}", "{}", "{\"held_out\":{\"pass\":false}}"), "plausible");
	CHECK_STR(label("{\"source\":\"library\"}", "{\"provenance\":\"template:x@1\"}",
			"{\"checks\":[{\"kind\":\"stdout_regex\",\"pass\":true}]}"),
		  "verified");
	CHECK_STR(label("{\"source\":\"library\"}", "{\"provenance\":\"llm:x\"}",
			"{\"checks\":[{\"kind\":\"stdout_regex\",\"pass\":true}]}"),
		  "plausible");
}

/* For every origin: passing the given examples and tests proves nothing beyond them. */
TEST(a_program_that_passes_its_examples_is_examples_pass)
{
	static const char *const artifacts[] = { "{}", "{\"provenance\":\"given\"}",
						 "{\"provenance\":\"llm:x\"}",
						 "{\"provenance\":\"debug:x\"}" };
	static const char *const results[] = {
		"{\"examples\":[{\"pass\":true}]}",
		"{\"examples\":[{\"pass\":true},{\"pass\":true}]}",
		"{\"examples\":[{\"pass\":true},{\"pass\":true},{\"pass\":true}],\"held_out\":{\"pass\":true}}",
		"{\"checks\":[{\"kind\":\"exit\",\"pass\":true},{\"kind\":\"test\",\"pass\":true}]}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(artifacts); i++)
		for (unsigned k = 0; k < ARRAY_LEN(results); k++) {
			CHECK_STR(label("{\"source\":\"given\"}", artifacts[i], results[k]),
				  "examples_pass");
			CHECK_STR(label("{\"source\":\"llm:m\"}", artifacts[i], results[k]),
				  "examples_pass");
		}
}

TEST(a_library_program_is_verified_only_if_its_check_shows_the_whole_task)
{
	static const char check[] = "{\"checks\":[{\"kind\":\"stdout_regex\",\"pass\":true}]}";
	static const char exited[] = "{\"checks\":[{\"kind\":\"exit\",\"pass\":true}]}";
	static const char template[] = "{\"provenance\":\"template:x@1\"}";

	CHECK_STR(label("{\"source\":\"library\",\"not_shown\":[]}", template, check), "verified");
	CHECK_STR(label("{\"source\":\"library\",\"not_shown\":[\"a file\"]}", template, check),
		  "plausible");
	CHECK_STR(label("{\"source\":\"library\"}", template, exited), "plausible");
}

TEST(two_runs_are_equal_when_exit_and_output_are_equal)
{
	json_t *a = doc(
		       "{\"success\":true,\"phase\":\"run\",\"phases\":[{\"name\":\"install\",\"ms\":5},"
		       "{\"name\":\"run\",\"exit_code\":0,\"ms\":1,\"stdout\":\"x\"}]}"),
	       *b = doc(
		       "{\"success\":true,\"phase\":\"run\",\"phases\":[{\"name\":\"run\",\"exit_code\":0,"
		       "\"ms\":9,\"stdout\":\"x\"}]}"),
	       *c = doc(
		       "{\"success\":true,\"phase\":\"run\",\"phases\":[{\"name\":\"run\",\"exit_code\":0,"
		       "\"ms\":9,\"stdout\":\"y\"}]}");
	const char *what;

	CHECK_INT(report_same(a, b, &what), 1);
	CHECK_INT(report_same(a, c, &what), 0);
	CHECK_STR(what, "phases");
	CHECK_STR(report_output(a), "x");
	json_decref(a);
	json_decref(b);
	json_decref(c);
}
