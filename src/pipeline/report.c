/* report.c - see report.h. */
#include "pipeline/report.h"

#include <stdio.h>
#include <string.h>

static unsigned report_passed(const json_t *rows, const char *kind)
{
	unsigned n = 0;
	const json_t *one;
	size_t i;

	json_array_foreach(rows, i, one)
	{
		n += json_is_true(json_object_get(one, "pass")) &&
		     (!kind || !strcmp(doc_text(one, "kind"), kind));
	}
	return n;
}

static int is_of_library(const json_t *plan, const json_t *artifact)
{
	const char *how = doc_text(artifact, "provenance");

	return !strcmp(doc_text(plan, "source"), "library") &&
	       (!strncmp(how, "template:", 9) || !strncmp(how, "debug:", 6));
}

/* A program found by search passes the examples because the search selected it by them. It is
 * verified only if no other program passes them (`pinned`, see repair.h) and it passed an example
 * that the search did not have. */
static const char *repair_label(const json_t *repair, int held, const char **out_why)
{
	int pinned = json_is_true(json_object_get(repair, "pinned"));

	held = held || json_is_true(json_object_get(repair, "held_out"));
	if (pinned && held)
		*out_why =
			"every example passed, one of them unseen by the search; all candidates were tried, and "
			"no other repair passes";
	else
		*out_why =
			pinned ? "every example passed, and none was left to try it with"
			       : "every example passed, but another program may pass them as well";
	return pinned && held ? "verified" : "plausible";
}

/* A library program was not made from the examples, so they all count as unseen. Its own check
 * covers its output only, so it does not verify a program for a task that asks for more. */
static const char *library_label(const json_t *plan, unsigned examples, unsigned tests,
				 unsigned checks, const char **out_why)
{
	if (json_array_size(json_object_get(plan, "not_shown"))) {
		*out_why =
			"a program of the library passed its own check, but that check does not show all that the "
			"task asks for";
		return "plausible";
	}
	*out_why = examples || tests
			   ? "a program of the library that passed every given example and test"
		   : checks ? "a program of the library whose own check passed"
			    : "a program of the library; nothing but its exit status was checked";
	return examples >= 2 || tests || checks ? "verified" : "plausible";
}

const char *report_label(const json_t *plan, const json_t *artifact, const json_t *result,
			 const char **out_why)
{
	const json_t *held = json_object_get(result, "held_out"),
		     *repair = json_object_get(artifact, "repair"),
		     *rows = json_object_get(result, "checks");
	unsigned examples = report_passed(json_object_get(result, "examples"), NULL),
		 tests = report_passed(rows, "test"),
		 checks = report_passed(rows, NULL) - report_passed(rows, "exit");

	if (repair && !strncmp(doc_text(artifact, "provenance"), "repair:", 7))
		return repair_label(repair, json_is_true(json_object_get(held, "pass")), out_why);
	if (is_of_library(plan, artifact))
		return library_label(plan, examples, tests, checks, out_why);
	if (examples || tests) {
		*out_why =
			!strcmp(doc_text(artifact, "provenance"), "given")
				? "the given program passes every given example and test, and is returned "
				  "unchanged; nothing was tried beyond them"
				: "every given example and test passed; nothing was tried beyond them";
		return "examples_pass";
	}
	*out_why = "it ran; there was nothing to hold its output against";
	return "plausible";
}

static const json_t *last_run(const json_t *result)
{
	const json_t *phases = json_object_get(result, "phases"), *found = NULL, *one;
	size_t i;

	json_array_foreach(phases, i, one)
	{
		if (strcmp(doc_text(one, "name"), "install") != 0 || !found)
			found = one;
	}
	return found;
}

const char *report_output(const json_t *result)
{
	return doc_text(last_run(result), "stdout");
}

static void say_run(json_t *all, const json_t *phase)
{
	const json_t *code = json_object_get(phase, "exit_code");
	double ms = json_number_value(json_object_get(phase, "ms"));

	if (!phase)
		return;
	if (code)
		json_array_append_new(all, json_sprintf("%s: exit %d in %.1f ms",
							doc_text(phase, "name"),
							(int)json_integer_value(code), ms));
	else
		json_array_append_new(all,
				      json_sprintf("%s: %s after %.1f ms", doc_text(phase, "name"),
						   doc_text(phase, "cause"), ms));
}

/* The box with whose files the programs started, or why they did not. */
static void say_from(json_t *all, const json_t *from)
{
	const char *box = doc_text(from, "box"), *why = doc_text(from, "why");

	if (*why)
		json_array_append_new(all, json_sprintf("it ran without the files of box %s: %s",
							box, why));
	else if (*box)
		json_array_append_new(all, json_sprintf("it ran in a copy of box %s", box));
}

static void say_checks(json_t *all, const json_t *checks)
{
	const json_t *one;
	size_t i;

	json_array_foreach(checks, i, one)
	{
		const json_t *arg = json_object_get(one, "arg");
		const char *text = json_string_value(arg) ? json_string_value(arg) : "";

		json_array_append_new(all, json_sprintf("%s%s%.80s: %s", doc_text(one, "kind"),
							*text ? " " : "", text,
							json_is_true(json_object_get(one, "pass"))
								? "passed"
								: "failed"));
	}
}

json_t *report_evidence(const json_t *plan, const json_t *artifact, const json_t *result)
{
	const json_t *examples = json_object_get(result, "examples"),
		     *held = json_object_get(result, "held_out"), *one;
	json_t *all = json_array();
	size_t i;

	if (!result)
		return all;
	json_array_foreach(json_object_get(artifact, "packages"), i, one)
	{
		json_array_append_new(all, json_sprintf("installed %s %s", doc_text(one, "manager"),
							doc_text(one, "name")));
	}
	say_from(all, json_object_get(result, "from"));
	say_run(all, last_run(result));
	if (is_of_library(plan, artifact))
		json_array_foreach(json_object_get(plan, "not_shown"), i, one)
			json_array_append_new(all, json_sprintf("not shown: %s",
								json_string_value(one)));
	say_checks(all, json_object_get(result, "checks"));
	if (json_array_size(examples))
		json_array_append_new(all, json_sprintf("%u of %zu examples passed",
							report_passed(examples, NULL),
							json_array_size(examples)));
	if (held)
		json_array_append_new(all, json_sprintf("an example that was held back: %s",
							json_is_true(json_object_get(held, "pass"))
								? "passed"
								: "failed"));
	if (*doc_text(json_object_get(artifact, "repair"), "doubt"))
		json_array_append_new(
			all, json_sprintf("not verified: %s",
					  doc_text(json_object_get(artifact, "repair"), "doubt")));
	json_array_foreach(json_object_get(result, "scan"), i, one)
	{
		json_array_append_new(all, json_sprintf("scan: %s: %s", doc_text(one, "rule"),
							doc_text(one, "why")));
	}
	return all;
}

static int same_rows(const json_t *a, const json_t *b, const char *const *members)
{
	const json_t *one;
	size_t i;

	if (json_array_size(a) != json_array_size(b))
		return 0;
	json_array_foreach(a, i, one)
	{
		for (const char *const *m = members; *m; m++) {
			const json_t *x = json_object_get(one, *m),
				     *y = json_object_get(json_array_get(b, i), *m);

			if ((x || y) && !json_equal(x, y))
				return 0;
		}
	}
	return 1;
}

int report_same(const json_t *a, const json_t *b, const char **out_what)
{
	static const char *const of_phases[] = { "name",  "exit_code", "signal",
						 "cause", "stdout",    NULL };
	static const char *const of_rows[] = { "pass", "got", NULL };
	/* Packages are installed once and found by later runs, so only the last phase is
	 * compared. */
	json_t *x = json_pack("[O?]", last_run(a)), *y = json_pack("[O?]", last_run(b));
	int runs = same_rows(x, y, of_phases);

	json_decref(x);
	json_decref(y);
	*out_what =
		json_is_true(json_object_get(a, "success")) !=
				json_is_true(json_object_get(b, "success"))
			? "success"
		: strcmp(doc_text(a, "phase"), doc_text(b, "phase")) != 0 ? "phase"
		: !runs                                                   ? "phases"
		: !same_rows(json_object_get(a, "examples"), json_object_get(b, "examples"),
			     of_rows)
			? "examples"
		: !same_rows(json_object_get(a, "checks"), json_object_get(b, "checks"), of_rows)
			? "checks"
			: NULL;
	return !*out_what;
}
