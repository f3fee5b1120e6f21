/* library_test.c - every task of the library: its file, and the interpretation of its own
 * examples. The output of its programs is tested by tests/system/library.sh. */
#include "document/document.h"
#include "plan/code.h"
#include "document/embedded.h"
#include "plan/library.h"
#include "plan/plan.h"
#include "lang/lang.h"
#include "tap.h"

#include <dirent.h>
#include <stdlib.h>

static json_t *planned(const char *text)
{
	json_t *task = json_pack("{s:s}", "task", text), *plan = plan_make(task);

	json_decref(task);
	return plan;
}

/* Compared as numbers where possible: 3 equals 3.0. */
static int same(const json_t *a, const json_t *b)
{
	if (json_is_number(a) && json_is_number(b))
		return json_number_value(a) == json_number_value(b);
	if (json_is_array(a) && json_is_array(b) && json_array_size(a) == json_array_size(b)) {
		for (size_t i = 0; i < json_array_size(a); i++)
			if (!same(json_array_get(a, i), json_array_get(b, i)))
				return 0;
		return 1;
	}
	return json_equal(a, b);
}

static int slots_are(const struct library_task *t, const struct library_example *x,
		     const json_t *plan)
{
	json_t *wanted, *got;
	const char *name;
	int ok = 1;

	json_object_foreach(x->slots, name, wanted)
	{
		got = json_object_get(json_object_get(plan, "slots"), name);
		if (same(got, wanted))
			continue;
		printf("# %s: \"%s\": %s is %s, not %s\n", t->id, x->task, name,
		       got ? json_dumps(got, JSON_ENCODE_ANY) : "nothing",
		       json_dumps(wanted, JSON_ENCODE_ANY));
		ok = 0;
	}
	return ok;
}

static void print_nearest(const json_t *none)
{
	size_t i;
	json_t *one;

	json_array_foreach(json_object_get(none, "nearest"), i, one)
	{
		char *missing = json_dumps(json_object_get(one, "missing"), 0);

		printf("#   near: %s, missing %s\n", doc_text(one, "template"), missing);
		free(missing);
	}
}

static int understood(const struct library_task *t, const struct library_example *x)
{
	json_t *plan = planned(x->task);
	json_t *none = json_object_get(plan, "not_understood");
	const struct library_task *got = library_named(doc_text(plan, "template"));
	int ok = got == t && !none && !json_array_size(json_object_get(plan, "inputs_needed"));

	if (!ok)
		print_nearest(none);
	if (!ok)
		printf("# %s: \"%s\" is %s%s%s\n", t->id, x->task,
		       got ? got->id : "not understood: ", none ? doc_text(none, "why") : "",
		       got == t ? ", with a question" : "");
	else if (strcmp(doc_text(plan, "language"), x->lang->name) != 0)
		printf("# %s: \"%s\" is in %s\n", t->id, x->task, doc_text(plan, "language")),
			ok = 0;
	else
		ok = slots_are(t, x, plan);
	json_decref(plan);
	return ok;
}

TEST(every_file_of_share_tasks_is_in_the_library)
{
	DIR *d = opendir(TASKS);
	unsigned files = 0;

	CHECK(d);
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		size_t n = strlen(e->d_name);

		files += n > 5 && !strcmp(e->d_name + n - 5, ".toml");
	}
	closedir(d);
	if (files != library_count())
		printf("# a file is new or gone: meson setup --reconfigure\n");
	CHECK_INT(library_count(), files);
}

TEST(every_task_file_is_valid)
{
	for (const struct image *i = task_images; i->text; i++) {
		struct library_task t;
		struct err e = { 0 };

		if (library_read(&t, i->name, i->text, (size_t)(i->end - i->text), &e) < 0)
			printf("# %s\n", e.msg);
		library_forget(&t);
		CHECK_STR(e.msg, "");
	}
}

static const char *read_of(const char *text)
{
	static struct err e;
	struct library_task t;

	e.msg[0] = 0;
	if (library_read(&t, "x", text, strlen(text), &e) == 0)
		library_forget(&t);
	return e.msg;
}

TEST(an_invalid_task_file_is_rejected_with_the_line)
{
	CHECK_STR(read_of("version = 1\nsay = 2\n"), "x.toml:2: say: is not known here");
	CHECK_STR(read_of("version = '1'\n"),
		  "x.toml:1: version: must be an integer, not a string");
	CHECK_STR(read_of("needs = [['a', '?']]\n"), "x.toml:1: a value: has no word in it");
	CHECK_STR(read_of("output = '('\n"), "x.toml:1: output: is not a regular expression");
	CHECK_STR(read_of("[slots.n]\ntype = 'real'\n"), "x.toml:1: n: has no type that is known");
	CHECK_STR(read_of("[slots.n]\ntype = 'integer'\ndefault = 'x'\n"),
		  "x.toml:1: n: its default is of another type");
	CHECK_STR(read_of("[code.cobol]\ntext = ''\n"), "x.toml:1: cobol: is not a language");
	CHECK_STR(read_of("version = 1\n"), "x.toml: version, says, needs and code are required");
	CHECK(strstr(read_of("version = \n"), "x:1:"));
}

TEST(every_task_has_examples_with_their_output)
{
	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);

		if (t->nexamples < 2)
			printf("# %s has %u\n", t->id, t->nexamples);
		CHECK(t->nexamples >= 2);
	}
}

TEST(every_function_has_a_return_value_for_every_example)
{
	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);
		int function = 0;

		for (unsigned k = 0; k < t->nprograms; k++)
			function |= t->programs[k].function != NULL;
		for (unsigned n = 0; n < t->nexamples; n++)
			CHECK(!t->examples[n].returns == !function);
	}
}

TEST(every_example_matches_its_own_task)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < library_count(); i++)
		for (unsigned k = 0; k < library_at(i)->nexamples; k++)
			bad += !understood(library_at(i), &library_at(i)->examples[k]);
	CHECK_INT(bad, 0);
}

/* With the example's own slots instead of those found in its text. */
static json_t *program_of(const struct library_task *t, const struct library_example *x,
			  const struct library_program *p, struct err *e)
{
	json_t *plan = planned(x->task), *v, *artifact;
	const char *name;

	json_object_set_new(plan, "template", json_sprintf("%s@%u", t->id, t->version));
	json_object_set_new(plan, "language", json_string(p->lang->name));
	json_object_foreach(x->slots, name, v)
		json_object_set(json_object_get(plan, "slots"), name, v);
	json_object_del(plan, "not_understood");
	json_array_clear(json_object_get(plan, "inputs_needed"));
	artifact = code_make(plan, e);
	json_decref(plan);
	return artifact;
}

TEST(slots_are_filled_in_every_program_of_every_language)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);

		for (unsigned k = 0; k < t->nexamples; k++)
			for (unsigned n = 0; n < t->nprograms; n++) {
				struct err e = { 0 };
				json_t *a = program_of(t, &t->examples[k], &t->programs[n], &e);

				if (!a && t->programs[n].text) {
					printf("# %s in %s: %s\n", t->id, t->programs[n].lang->name,
					       e.msg);
					bad++;
				}
				json_decref(a);
			}
	}
	CHECK_INT(bad, 0);
}
