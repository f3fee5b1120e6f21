/* planner.c - how many texts of a set of programming tasks the planner claims, and programs to
 * check whether it was right. The set is JSON lines as of MBPP: text, task_id, test_list of
 * asserts.
 *
 * atoll-bench-planner FILE.jsonl [FOLDER]
 *
 * Twice: with the text alone, where a program is whatever prints; and with the first assert as an example,
 * which asks for a function. The latter's programs, followed by all asserts, are in FOLDER/ID.py. */
#include "plan/code.h"
#include "plan/plan.h"
#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
	unsigned texts, claimed, asked, functions, functions_asked;
	uint64_t ns, most_ns;
};

static json_t *planned(const json_t *row, int with_example, struct tally *t)
{
	const char *first = json_string_value(json_array_get(json_object_get(row, "test_list"), 0));
	json_t *task = json_object(), *plan;
	uint64_t from;

	if (with_example)
		json_object_set_new(task, "task",
				    json_sprintf("%s\n%s", doc_text(row, "text"),
						 first ? first : ""));
	else
		json_object_set_new(task, "task", json_string(doc_text(row, "text")));
	from = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	plan = plan_make(task);
	from = clock_ns(CLOCK_THREAD_CPUTIME_ID) - from;
	t->ns += from;
	if (from > t->most_ns)
		t->most_ns = from;
	json_decref(task);
	return plan;
}

static int is_claim(const json_t *plan, unsigned *asked)
{
	if (json_object_get(plan, "not_understood"))
		return 0;
	if (json_array_size(json_object_get(plan, "inputs_needed"))) {
		++*asked;
		return 0;
	}
	return 1;
}

static void write_program(const char *folder, const json_t *row, const json_t *plan)
{
	struct err e;
	json_t *artifact = code_make(plan, &e), *one;
	char path[4096];
	size_t i;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%lld.py", folder,
		 (long long)json_integer_value(json_object_get(row, "task_id")));
	f = artifact ? fopen(path, "w") : NULL;
	if (!f) {
		fprintf(stderr, "%s: cannot be written\n", path);
		exit(1);
	}
	fputs(doc_text(json_object_get(artifact, "files"), doc_text(artifact, "entry")), f);
	fprintf(f, "\n%s\n", doc_text(row, "test_setup_code"));
	json_array_foreach(json_object_get(row, "test_list"), i, one)
		fprintf(f, "%s\n", json_string_value(one));
	fclose(f);
	json_decref(artifact);
}

static void try_one(const json_t *row, const char *folder, struct tally *t)
{
	json_t *plan = planned(row, 0, t);

	t->texts++;
	if (is_claim(plan, &t->asked)) {
		t->claimed++;
		printf("script\t%s\t%.2f\t%s\n", doc_text(plan, "template"),
		       json_number_value(json_object_get(plan, "confidence")),
		       doc_text(row, "text"));
	}
	json_decref(plan);
	plan = planned(row, 1, t);
	if (is_claim(plan, &t->functions_asked)) {
		t->functions++;
		printf("function\t%s\t%.2f\t%s\n", doc_text(plan, "template"),
		       json_number_value(json_object_get(plan, "confidence")),
		       doc_text(row, "text"));
		if (folder)
			write_program(folder, row, plan);
	}
	json_decref(plan);
}

int main(int argc, char **argv)
{
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	json_t *warm = json_pack("{s:s}", "task", "nothing");
	struct tally t = { 0 };
	char *line = NULL;
	size_t room = 0;

	if (!f) {
		fprintf(stderr, "usage: atoll-bench-planner FILE.jsonl [FOLDER]\n");
		return 2;
	}
	json_decref(plan_make(warm)); /* reads the library */
	json_decref(warm);
	while (getline(&line, &room, f) > 0) {
		json_t *row = json_loads(line, 0, NULL);

		if (row)
			try_one(row, argc > 2 ? argv[2] : NULL, &t);
		json_decref(row);
	}
	free(line);
	fclose(f);
	printf("%u texts; by the text alone: %u claimed, %u asked; with one assert: %u claimed, %u asked; "
	       "a plan in %.0f us, at most %.0f us\n",
	       t.texts, t.claimed, t.asked, t.functions, t.functions_asked,
	       (double)t.ns / 1000 / (2 * t.texts + !t.texts), (double)t.most_ns / 1000);
	return 0;
}
