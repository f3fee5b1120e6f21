/* libraryitems.c - every program of the library with the slots of every example, as items of a batch.
 *
 *	library-items [LANGUAGE...] >items	those of the languages that are installed
 *	library-items --hostile >items		with a text in every slot for texts that tries to get out
 *	library-items --judge <events		do outputs match their task's pattern? prints what does not
 *
 * An id is task/language/example. */
#include "agent/code.h"
#include "agent/library.h"
#include "agent/plan.h"
#include "lang/lang.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Closes quotes of every kind, interpolates in every way, comments out the rest. Whoever gets out says so. */
static const char hostile[] =
	"\"'`);}]{{numbers}}${OUT}$(echo OUT)`echo OUT`#{OUT}@OUT %s\\\" \\' \\u0022 */ // # -- \n"
	"print(\"OUT\")\nconsole.log(\"OUT\")\necho OUT\n?\?/\"\r\x01\xe2\x80\xae";

static json_t *plan_of(const struct library_task *t, const struct library_example *x,
		       const struct library_program *p)
{
	json_t *task = json_pack("{s:s, s:s}", "task", x->task, "language", p->lang->name), *plan;
	json_t *answers = json_pack("{s:s}", "task", t->id), *slots, *v;
	const char *name;

	json_object_set_new(task, "answers", answers);
	if (x->stdin_text)
		json_object_set_new(task, "stdin", json_string(x->stdin_text));
	if (x->files)
		json_object_set(task, "files", x->files);
	plan = plan_make(task);
	slots = json_object_get(plan, "slots");
	json_object_foreach(x->slots, name, v) json_object_set(slots, name, v);
	/* Slots that an example does not name have their defaults in every language. */
	for (unsigned i = 0; i < t->nslots; i++)
		if (!json_object_get(slots, t->slots[i].name) && t->slots[i].otherwise)
			json_object_set(slots, t->slots[i].name, t->slots[i].otherwise);
	json_array_clear(json_object_get(plan, "inputs_needed"));
	json_decref(task);
	return plan;
}

static void put(const struct library_task *t, const struct library_program *p, unsigned n,
		const json_t *plan, const char *expected)
{
	struct err e = { 0 };
	json_t *a = code_make(plan, &e), *item = json_object();

	if (!a) {
		fprintf(stderr, "%s/%s/%u: %s\n", t->id, p->lang->name, n, e.msg);
		exit(1);
	}
	json_object_set_new(item, "id", json_sprintf("%s/%s/%u", t->id, p->lang->name, n));
	json_object_set(item, "language", json_object_get(a, "language"));
	json_object_set(item, "files", json_object_get(a, "files"));
	json_object_set(item, "entry", json_object_get(a, "entry"));
	json_object_set(item, "stdin", json_object_get(a, "stdin"));
	if (expected)
		json_object_set_new(item, "expected",
				    json_pack("{s:s, s:s}", "stdout", expected, "compare",
					      "exact"));
	json_dumpf(item, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(item);
	json_decref(a);
}

static int wanted(const struct lang *l, int argc, char **argv)
{
	if (!lang_present(l))
		return 0;
	for (int i = 1; i < argc; i++)
		if (lang_named(argv[i]) == l)
			return 1;
	return argc == 1;
}

static void put_all(int argc, char **argv)
{
	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);

		for (unsigned k = 0; k < t->nprograms; k++)
			for (unsigned n = 0; n < t->nexamples; n++) {
				json_t *plan;

				if (!t->programs[k].text ||
				    !wanted(t->programs[k].lang, argc, argv))
					continue;
				plan = plan_of(t, &t->examples[n], &t->programs[k]);
				put(t, &t->programs[k], n, plan, t->examples[n].stdout_text);
				json_decref(plan);
			}
	}
}

static int make_hostile(const struct library_task *t, json_t *slots)
{
	int any = 0;

	for (unsigned i = 0; i < t->nslots; i++) {
		const char *name = t->slots[i].name;

		if (t->slots[i].type == SLOT_TEXT && json_is_string(json_object_get(slots, name)))
			any |= json_object_set_new(slots, name, json_string(hostile)) == 0;
		else if (t->slots[i].type == SLOT_TEXTS)
			any |= json_object_set_new(slots, name,
						   json_pack("[s, s]", hostile, "OUT")) == 0;
	}
	return any;
}

/* What it says is its own affair, and whether it refuses; that it compiles is not. */
static void put_hostile(void)
{
	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);

		for (unsigned k = 0; k < t->nprograms; k++) {
			json_t *plan;

			if (!t->nexamples || !t->programs[k].text ||
			    !lang_present(t->programs[k].lang))
				continue;
			plan = plan_of(t, &t->examples[0], &t->programs[k]);
			if (make_hostile(t, json_object_get(plan, "slots")))
				put(t, &t->programs[k], 0, plan, NULL);
			json_decref(plan);
		}
	}
}

/* ---- judging ---- */

static int matches(const char *id, const char *said)
{
	char name[128];
	const struct library_task *t;
	regex_t re;
	int rc;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(id, "/"), id);
	t = library_named(name);
	if (!t || !t->output)
		return t != NULL;
	if (regcomp(&re, t->output, REG_EXTENDED | REG_NOSUB) != 0)
		return 0;
	rc = regexec(&re, said, 0, NULL, 0);
	regfree(&re);
	return rc == 0;
}

static int judge(void)
{
	char *line = NULL;
	size_t room = 0;
	int bad = 0;

	while (getline(&line, &room, stdin) > 0) {
		json_t *event = json_loads(line, JSON_ALLOW_NUL, NULL);
		const char *id = json_string_value(json_object_get(event, "id"));
		const char *said = json_string_value(json_object_get(event, "stdout"));

		if (id && said && json_object_get(event, "verdict") && !matches(id, said)) {
			printf("%s: its output does not match its pattern\n", id);
			bad = 1;
		}
		json_decref(event);
	}
	free(line);
	return bad;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--judge"))
		return judge();
	if (argc == 2 && !strcmp(argv[1], "--hostile"))
		put_hostile();
	else
		put_all(argc, argv);
	return 0;
}
