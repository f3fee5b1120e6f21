/* plan_test.c - from a task's text to a plan, and from a plan to a program. */
#include "document/document.h"
#include "plan/code.h"
#include "plan/literal.h"
#include "plan/plan.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "lang/lang.h"
#include "tap.h"

#include <stdlib.h>

static json_t *planned(const char *text)
{
	json_t *task = json_pack("{s:s}", "task", text), *plan = plan_make(task);

	json_decref(task);
	return plan;
}

/* A task as JSON, with ' for ". */
static json_t *planned_of(const char *text)
{
	char *copy = strdup(text);
	json_t *task, *plan;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	task = json_loads(copy, 0, NULL);
	plan = plan_make(task);
	json_decref(task);
	free(copy);
	return plan;
}

static const char *as_text(const json_t *v)
{
	static char *out;

	free(out);
	out = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS)
		: strdup("nothing");
	return out;
}

static const char *member(const json_t *plan, const char *name)
{
	return as_text(json_object_get(plan, name));
}

TEST(a_library_task_becomes_a_plan_with_its_slots)
{
	json_t *plan =
		planned("Write a Python script that computes the mean and median of 3, 1 and 2");

	CHECK_STR(doc_text(plan, "template"), "mean-median@1");
	CHECK_STR(doc_text(plan, "language"), "python");
	CHECK_STR(doc_text(plan, "source"), "library");
	CHECK_STR(member(plan, "slots"), "{\"numbers\":[3,1,2]}");
	CHECK_STR(member(plan, "inputs_needed"), "[]");
	CHECK_STR(member(plan, "assumptions"), "[]");
	CHECK(json_number_value(json_object_get(plan, "confidence")) > 0.7);
	json_decref(plan);
}

TEST(values_that_the_task_does_not_give_are_listed_as_assumptions)
{
	json_t *plan = planned("mean and median of numbers");

	CHECK_STR(doc_text(plan, "template"), "mean-median@1");
	CHECK_INT(json_array_size(json_object_get(plan, "assumptions")), 2);
	json_decref(plan);
}

TEST(the_plan_lists_what_its_checks_cannot_show)
{
	json_t *all = planned(
		       "Write a Python script that computes the mean and median of a list of numbers"),
	       *some = planned("download a file from a url");

	CHECK(json_is_array(json_object_get(all, "not_shown")));
	CHECK_INT(json_array_size(json_object_get(all, "not_shown")), 0);
	CHECK_STR(doc_text(some, "template"), "http-client@1");
	CHECK_INT(json_array_size(json_object_get(some, "not_shown")), 2);
	CHECK_STR(json_string_value(json_array_get(json_object_get(some, "not_shown"), 1)),
		  "the task says 'file', and nothing of that was checked");
	json_decref(all);
	json_decref(some);
}

TEST(the_same_task_gives_the_same_plan)
{
	json_t *a = planned("median and mean of [1, 2] in JavaScript");
	json_t *b = planned("median and mean of [1, 2] in JavaScript");

	CHECK(json_equal(a, b));
	json_decref(a);
	json_decref(b);
}

TEST(an_unknown_task_is_not_understood_and_the_reason_is_given)
{
	json_t *plan = planned(
		"Compute the mean and median salary of all astronauts by their blood group");
	json_t *none = json_object_get(plan, "not_understood");

	CHECK(none);
	CHECK(strstr(doc_text(none, "why"), "astronauts"));
	CHECK(json_array_size(json_object_get(none, "nearest")) >= 1);
	CHECK(json_array_size(json_object_get(none, "nearest")) <= 3);
	json_decref(plan);
	plan = planned("");
	CHECK(json_object_get(plan, "not_understood"));
	json_decref(plan);
	plan = planned("\"\" ((( ,,, 3 3 3 ```");
	CHECK(json_object_get(plan, "not_understood"));
	json_decref(plan);
}

TEST(a_missing_language_is_reported_and_not_replaced)
{
	json_t *plan = planned_of("{'task': 'mean and median of 1, 2', 'language': 'cobol'}");

	CHECK(strstr(doc_text(json_object_get(plan, "not_understood"), "why"), "cobol"));
	json_decref(plan);
	plan = planned_of("{'task': 'mean and median of 1, 2', 'language': 'python@3.11'}");
	CHECK_STR(doc_text(plan, "language"), "python");
	CHECK(!json_object_get(plan, "not_understood"));
	json_decref(plan);
	plan = planned_of("{'task': 'mean and median of 1, 2 in Julia'}");
	CHECK(json_object_get(plan, "not_understood"));
	CHECK(strstr(member(plan, "not_understood"), "a program in Julia"));
	json_decref(plan);
}

TEST(a_function_gets_the_name_that_the_examples_call)
{
	json_t *plan = planned("Area of a rectangle in Python: area2(2, 3) -> 6"), *artifact;
	struct err e;

	CHECK_STR(doc_text(plan, "template"), "area-of-rectangle@1");
	CHECK_STR(member(plan, "examples"), "[{\"call\":\"area2(2, 3)\",\"expected\":\"6\"}]");
	artifact = code_make(plan, &e);
	CHECK(artifact);
	CHECK(strstr(doc_text(json_object_get(artifact, "files"), "main.py"),
		     "def area2(length, width):"));
	json_decref(artifact);
	json_decref(plan);
}

TEST(a_call_with_other_arguments_does_not_match_the_function)
{
	json_t *plan = planned("Area of a rectangle in Python: area2([2, 3]) -> 6");

	CHECK(strstr(member(plan, "not_understood"), "a form of it as such a function"));
	json_decref(plan);
}

TEST(examples_with_input_need_a_program_that_reads_stdin)
{
	json_t *plan = planned("Mean and median of numbers in Python.\nInput: 1 2\nOutput: 1.5\n");

	CHECK(strstr(member(plan, "not_understood"), "a program that reads its input"));
	CHECK_INT(json_array_size(json_object_get(plan, "examples")), 1);
	json_decref(plan);
}

TEST(an_answer_fills_a_slot)
{
	json_t *plan = planned_of(
		"{'task': 'mean and median of numbers', 'answers': {'numbers': '7 and 8'}}");

	CHECK_STR(member(plan, "slots"), "{\"numbers\":[7,8]}");
	json_decref(plan);
}

TEST(an_invalid_answer_is_asked_again)
{
	json_t *plan =
		planned_of("{'task': 'mean and median of numbers', 'answers': {'numbers': 'no'}}");

	CHECK_STR(member(plan, "inputs_needed"),
		  "[{\"name\":\"numbers\",\"question\":\"Which numbers?\",\"type\":\"numbers\"}]");
	json_decref(plan);
}

TEST(given_files_are_executed_unchanged)
{
	json_t *plan = planned_of(
		"{'task': 'run it', 'files': {'a.js': '1', 'd.csv': 'x'}, 'stdin': 'in', "
		"'packages': {'npm': ['left-pad']}, 'network': true}");
	json_t *artifact;
	struct err e;

	CHECK_STR(doc_text(plan, "source"), "given");
	CHECK_STR(doc_text(plan, "language"), "node");
	CHECK_STR(doc_text(plan, "entry"), "a.js");
	CHECK_STR(doc_text(plan, "stdin"), "in");
	artifact = code_make(plan, &e);
	CHECK(artifact);
	CHECK_STR(doc_text(artifact, "provenance"), "given");
	CHECK_STR(member(artifact, "packages"), "[{\"manager\":\"npm\",\"name\":\"left-pad\"}]");
	CHECK_STR(member(artifact, "network"), "true");
	CHECK_INT(strlen(doc_text(artifact, "hash")), 64);
	json_decref(artifact);
	json_decref(plan);
}

TEST(a_fenced_code_block_is_a_program)
{
	json_t *plan = planned("Why does this fail?\n```js\nconsole.log(x)\n```\n");

	CHECK_STR(doc_text(plan, "source"), "given");
	CHECK_STR(doc_text(plan, "language"), "node");
	CHECK_STR(doc_text(json_object_get(plan, "files"), "main.js"), "console.log(x)\n");
	json_decref(plan);
}

TEST(data_files_are_not_programs)
{
	json_t *plan = planned_of("{'task': 'mean and median of 1, 2', 'files': {'d.csv': 'x'}}");

	CHECK_STR(doc_text(plan, "template"), "mean-median@1");
	CHECK_STR(doc_text(json_object_get(plan, "files"), "d.csv"), "x");
	json_decref(plan);
}

TEST(a_plan_with_a_question_has_no_program)
{
	json_t *plan = planned("xyzzy");
	struct err e;

	CHECK(!code_make(plan, &e));
	json_decref(plan);
}

/* ---- several steps ---- */

TEST(independent_steps_are_separate_programs)
{
	json_t *plan = planned(
		"Compute the mean and median of 1, 2 and 4, then find the area of a circle with "
		"radius 2, in Python");
	json_t *artifact, *files;
	struct err e;

	CHECK(!json_object_get(plan, "not_understood"));
	CHECK_STR(doc_text(plan, "template"), "");
	CHECK_INT(json_array_size(json_object_get(plan, "steps")), 2);
	CHECK_STR(as_text(json_object_get(json_array_get(json_object_get(plan, "steps"), 0),
					  "slots")),
		  "{\"numbers\":[1,2,4]}");
	artifact = code_make(plan, &e);
	CHECK(artifact);
	CHECK_STR(doc_text(artifact, "provenance"), "template:mean-median@1,area-of-circle@1");
	files = json_object_get(artifact, "files");
	CHECK(strstr(doc_text(files, "step1.py"), "[1, 2, 4]"));
	CHECK(strstr(doc_text(files, "step2.py"), "radius = 2"));
	CHECK(strstr(doc_text(files, "main.py"), "[\"step1.py\", \"step2.py\"]"));
	json_decref(artifact);
	json_decref(plan);
}

TEST(a_step_that_depends_on_another_is_not_understood)
{
	static const char *const texts[] = {
		"Compute the mean and median of 1, 2, then find the area of it with radius 2",
		"Compute the mean and median of 1, 2, then find the area of a circle",
		"Compute the mean and median of 1, 2, then fly to the moon",
		"then then then, after that",
	};

	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		json_t *plan = planned(texts[i]);

		CHECK(json_object_get(plan, "not_understood"));
		json_decref(plan);
	}
}

/* ---- literals ---- */

static const char *literal(const char *language, const char *bytes, size_t n)
{
	static struct buf out;
	struct err e;
	json_t *v = json_stringn_nocheck(bytes, n);
	int rc;

	buf_cut(&out, 0);
	rc = literal_add(&out, lang_named(language), v, 0, LITERAL_WHOLE, &e);
	json_decref(v);
	return rc < 0 ? "refused" : buf_str(&out);
}

TEST(a_nul_is_escaped_or_refused)
{
	CHECK_STR(literal("python", "a\0b", 3), "\"a\\x00b\"");
	CHECK_STR(literal("c",
			  "a\0"
			  "1",
			  3),
		  "\"a\\0001\"");
	CHECK_STR(literal("lua",
			  "\0"
			  "1",
			  2),
		  "\"\\0001\"");
	CHECK_STR(literal("java", "\0", 1), "\"\\000\"");
	CHECK_STR(literal("bash", "a\0b", 3), "refused");
	CHECK_STR(literal("r", "a\0b", 3), "refused");
}

TEST(bytes_that_are_not_utf8_become_the_replacement_character)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		const char *out = literal(lang_at(i)->name, "\xff\xc3(\xed\xa0\x80", 6);
		json_t *v = json_string(out); /* refuses text that is not UTF-8 */

		CHECK(v);
		CHECK(strstr(out, "\xef\xbf\xbd") || strstr(out, "\\ufffd"));
		json_decref(v);
	}
}

TEST(quotes_inside_a_literal_are_escaped)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		const char *out = literal(lang_at(i)->name, "\"'\\\n$(x)", 8);
		size_t n = strlen(out);

		CHECK(n > 8 && out[0] == out[n - 1]);
	}
	CHECK_STR(literal("bash", "it's $(x)", 9), "'it'\\''s $(x)'");
	CHECK_STR(literal("ruby", "#{x}", 4), "\"\\#{x}\"");
	CHECK_STR(literal("php", "$x", 2), "\"\\$x\"");
	CHECK_STR(literal("perl", "@x", 2), "\"\\@x\"");
	CHECK_STR(literal("python", "\xe2\x80\xae", 3), "\"\\u202e\"");
}

TEST(list_literals_have_the_syntax_of_the_language)
{
	static const struct {
		const char *lang, *reals, *texts;
	} rows[] = {
		{ "python", "[1, 2.5]", "[\"a\"]" },
		{ "c", "{1, 2.5}", "{\"a\"}" },
		{ "go", "[]float64{1, 2.5}", "[]string{\"a\"}" },
		{ "rust", "vec![1.0, 2.5]", "vec![\"a\"]" },
		{ "java", "new double[]{1, 2.5}", "new String[]{\"a\"}" },
		{ "perl", "(1, 2.5)", "(\"a\")" },
		{ "bash", "(1 2.5)", "('a')" },
		{ "r", "c(1, 2.5)", "c(\"a\")" },
		{ "lua", "{1, 2.5}", "{\"a\"}" },
	};
	json_t *reals = json_pack("[i, f]", 1, 2.5), *texts = json_pack("[s]", "a");

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		auto_buf struct buf a = { 0 }, b = { 0 };
		struct err e;

		CHECK(literal_add(&a, lang_named(rows[i].lang), reals, 1, LITERAL_WHOLE, &e) == 0);
		CHECK_STR(buf_str(&a), rows[i].reals);
		CHECK(literal_add(&b, lang_named(rows[i].lang), texts, 0, LITERAL_WHOLE, &e) == 0);
		CHECK_STR(buf_str(&b), rows[i].texts);
	}
	json_decref(reals);
	json_decref(texts);
}

TEST(an_integer_of_more_than_32_bits_is_long_in_java)
{
	json_t *v = json_pack("[I, I, I, I]", (json_int_t)3000000000, (json_int_t)-3000000000,
			      (json_int_t)2147483647, (json_int_t)-2147483648);
	auto_buf struct buf java = { 0 }, go = { 0 }, real = { 0 };
	struct err e;

	CHECK(literal_add(&java, lang_named("java"), v, 0, LITERAL_WHOLE, &e) == 0);
	CHECK_STR(buf_str(&java), "new long[]{3000000000L, -3000000000L, 2147483647, -2147483648}");
	CHECK(literal_add(&real, lang_named("java"), json_array_get(v, 0), 1, LITERAL_WHOLE, &e) ==
	      0);
	CHECK_STR(buf_str(&real), "3000000000L");
	CHECK(literal_add(&go, lang_named("go"), json_array_get(v, 0), 0, LITERAL_WHOLE, &e) == 0);
	CHECK_STR(buf_str(&go), "3000000000");
	json_decref(v);
}

TEST(inserted_slot_values_are_not_expanded_again)
{
	json_t *plan = planned("mean and median of 1, 2"), *artifact;
	struct err e;

	/* The type is not enforced: a text where numbers are expected stays a text. */
	json_object_set_new(json_object_get(plan, "slots"), "numbers",
			    json_string("{{numbers}}\"+x"));
	artifact = code_make(plan, &e);
	CHECK(artifact);
	CHECK(strstr(doc_text(json_object_get(artifact, "files"), "main.py"),
		     "numbers = \"{{numbers}}\\\"+x\"\n"));
	json_decref(artifact);
	json_decref(plan);
}

TEST(planning_of_a_long_hostile_text_is_fast)
{
	static const char *const parts[] = { "f(",
					     "1 ",
					     "[",
					     "1, ",
					     "mean median of ",
					     "input: a output: ",
					     "```\n",
					     "\"",
					     "x.csv ",
					     "assert f(1) == " };
	uint64_t from = now_ns();

	for (unsigned i = 0; i < ARRAY_LEN(parts); i++) {
		auto_buf struct buf text = { 0 };

		while (text.len < AGENT_TASK_BYTES - 100)
			buf_puts(&text, parts[i]);
		json_decref(planned(buf_str(&text)));
	}
	CHECK(now_ns() - from < 20000000000ull); /* ten times the usual time, for a busy machine */
}
