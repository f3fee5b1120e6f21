/* report.c - see report.h. */
#include "agent/report.h"

#include <stdio.h>
#include <string.h>

static unsigned passed(const json_t *rows, const char *kind)
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

static int is_template(const json_t *plan, const json_t *artifact)
{
	const char *how = doc_text(artifact, "provenance");

	return !strcmp(doc_text(plan, "source"), "library") &&
	       (!strncmp(how, "template:", 9) || !strncmp(how, "debug:", 6));
}

/* One that examples led to has passed them; that says little, unless they leave no other. */
static const char *repair_label(const json_t *repair, int held, const char **out_why)
{
	int pinned = json_is_true(json_object_get(repair, "pinned"));

	held = held || json_is_true(json_object_get(repair, "held_out"));
	if (pinned && held)
		*out_why = "every example passed, one of them unseen by the search, and no other repair was found";
	else
		*out_why = pinned ? "every example passed, and none was left to try it with"
				  : "every example passed, but they do not say which of several repairs is right";
	return pinned && held ? "verified" : "plausible";
}

const char *report_label(const json_t *plan, const json_t *artifact, const json_t *result,
			 const char **out_why)
{
	const json_t *held = json_object_get(result, "held_out"),
		     *repair = json_object_get(artifact, "repair");
	unsigned examples = passed(json_object_get(result, "examples"), NULL),
		 tests = passed(json_object_get(result, "checks"), "test"),
		 checks = passed(json_object_get(result, "checks"), NULL);

	if (repair && !strncmp(doc_text(artifact, "provenance"), "repair:", 7))
		return repair_label(repair, json_is_true(json_object_get(held, "pass")), out_why);
	if (held && json_is_true(json_object_get(held, "pass"))) {
		*out_why = "every example passed, one of them unseen by who wrote it";
		return "verified";
	}
	if (examples >= 2) {
		*out_why = "every example passed";
		return "verified";
	}
	if (tests) {
		*out_why = "the tests passed";
		return "verified";
	}
	if (is_template(plan, artifact) && checks) {
		*out_why = "a program of the library whose own check passed";
		return "verified";
	}
	*out_why = examples ? "it ran, and the one example passed"
			    : "it ran; there was nothing to hold its output against";
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

json_t *report_evidence(const json_t *artifact, const json_t *result)
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
	say_run(all, last_run(result));
	say_checks(all, json_object_get(result, "checks"));
	if (json_array_size(examples))
		json_array_append_new(all, json_sprintf("%u of %zu examples passed",
							passed(examples, NULL),
							json_array_size(examples)));
	if (held)
		json_array_append_new(all, json_sprintf("an example that was held back: %s",
							json_is_true(json_object_get(held, "pass"))
								? "passed"
								: "failed"));
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
	/* Installing is done once: who comes later finds it there. So what counts is where it
	 * ended. */
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
