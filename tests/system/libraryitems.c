/* libraryitems.c - every program of the library with the slots of every example, as items of a batch.
 *
 *	library-items [LANGUAGE...] >items	those of the languages that are installed
 *	library-items --sample >items		the first example of each; of what compiles slowly every eighth task
 *	library-items --literals >items		texts that try to get out of their quotes, in every language
 *	library-items --plan TEXT >items	what the planner and the coder make of this text
 *	library-items --judge <events		do outputs match their task's pattern? prints what does not
 *
 * An id is task/language/example. */
#include "agent/code.h"
#include "agent/library.h"
#include "agent/literal.h"
#include "agent/plan.h"
#include "base/id.h"
#include "base/own.h"
#include "lang/lang.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	json_object_foreach(x->slots, name, v)
		json_object_set(slots, name, v);
	/* Slots that an example does not name have their defaults in every language. */
	for (unsigned i = 0; i < t->nslots; i++)
		if (!json_object_get(slots, t->slots[i].name) && t->slots[i].otherwise)
			json_object_set(slots, t->slots[i].name, t->slots[i].otherwise);
	json_array_clear(json_object_get(plan, "inputs_needed"));
	json_decref(task);
	return plan;
}

static void print_item(json_t *take_item)
{
	json_dumpf(take_item, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(take_item);
}

static void put(const char *id, const json_t *plan, const char *expected)
{
	struct err e = { 0 };
	json_t *a = code_make(plan, &e), *item = json_object();

	if (!a) {
		fprintf(stderr, "%s: %s\n", id, e.msg);
		exit(1);
	}
	json_object_set_new(item, "id", json_string(id));
	json_object_set(item, "language", json_object_get(a, "language"));
	json_object_set(item, "files", json_object_get(a, "files"));
	json_object_set(item, "entry", json_object_get(a, "entry"));
	json_object_set(item, "stdin", json_object_get(a, "stdin"));
	if (expected)
		json_object_set_new(item, "expected",
				    json_pack("{s:s, s:s}", "stdout", expected, "compare",
					      "exact"));
	print_item(item);
	json_decref(a);
}

static void put_example(const struct library_task *t, const struct library_program *p, unsigned n)
{
	json_t *plan = plan_of(t, &t->examples[n], p);
	char id[256];

	snprintf(id, sizeof(id), "%s/%s/%u", t->id, p->lang->name, n);
	put(id, plan, t->examples[n].stdout_text);
	json_decref(plan);
}

/* The form as a function: that it can be read is all that it shows by itself. */
static void put_function(const struct library_task *t, const struct library_program *p)
{
	json_t *plan = plan_of(t, &t->examples[0], p);
	char id[256];

	snprintf(id, sizeof(id), "%s/%s/function", t->id, p->lang->name);
	json_object_set_new(json_object_get(plan, "slots"), "function", json_string("some_name"));
	put(id, plan, NULL);
	json_decref(plan);
}

static void put_plan(const char *text)
{
	json_t *task = json_pack("{s:s}", "task", text), *plan = plan_make(task);

	put("plan", plan, NULL);
	json_decref(plan);
	json_decref(task);
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

static int compiles_slowly(const struct lang *l)
{
	static const char *const slow[] = {
		"typescript", "c++", "go", "rust", "java", "julia", "r"
	};

	for (unsigned i = 0; i < ARRAY_LEN(slow); i++)
		if (!strcmp(slow[i], l->name))
			return 1;
	return 0;
}

/* By the task and the language, so that every task is there in some. */
static int in_sample(const struct library_task *t, const struct lang *l)
{
	return lang_present(l) &&
	       (!compiles_slowly(l) || (id_hash(t->id) + id_hash(l->name)) % 8 == 0);
}

static void put_sample(void)
{
	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);

		for (unsigned k = 0; k < t->nprograms; k++)
			if (t->nexamples && t->programs[k].text &&
			    in_sample(t, t->programs[k].lang))
				put_example(t, &t->programs[k], 0);
	}
}

static void put_all(int argc, char **argv)
{
	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);

		for (unsigned k = 0; k < t->nprograms; k++) {
			const struct library_program *p = &t->programs[k];

			for (unsigned n = 0; n < t->nexamples; n++)
				if (p->text && wanted(p->lang, argc, argv))
					put_example(t, p, n);
			if (p->function && t->nexamples && wanted(p->lang, argc, argv))
				put_function(t, p);
		}
	}
}

/* ---- literals ---- */

/* Each tries to get out of some language's quotes, or to become something else within them. */
static const char *const hostile[] = {
	"\"); OUT(); (\"",
	"'; echo OUT; '",
	"`echo OUT`",
	"$(echo OUT)",
	"${OUT}",
	"$OUT",
	"#{OUT}",
	"#$OUT #@OUT",
	"@OUT @{[OUT]}",
	"{{numbers}}",
	"%s %n %d",
	"\\",
	"\\\"",
	"\\n",
	"\\u0022 \\x22 \\42",
	"*/ // # -- <!-- ?> %>",
	"a\nb\r\nc\td\n",
	"\x01"
	"23 \x7f"
	"9 \x1b[0m",
	"?\?/\" ?\?=",
	"",
	"]]] }}} )))",
	"\xe2\x80\xae"
	"evil",
	"\xe2\x80\xa8"
	"line",
	"\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xa2",
	"\xef\xbb\xbf",
	"\xc2\x85 \xc2\xa0",
	"EOF\nEOF\n",
	"\"\"\"",
	"'''",
	"\\",
	"R\"(x)\"",
	"q{OUT}",
	"-n",
	"!x !! !$",
};

static const struct {
	const char *lang, *file, *begin, *before, *behind, *end;
} echoes[] = {
	{ "python", "main.py", "import sys\n", "sys.stdout.buffer.write(", ".encode())\n", "" },
	{ "node", "main.js", "", "process.stdout.write(", ");\n", "" },
	{ "typescript", "main.ts", "", "process.stdout.write(", ");\n", "" },
	{ "bash", "main.sh", "", "printf %s ", "\n", "" },
	{ "c", "main.c", "#include <stdio.h>\nint main(void)\n{\n",
	  "{ static const char t[] = ", "; fwrite(t, 1, sizeof(t) - 1, stdout); }\n", "}\n" },
	{ "c++", "main.cc", "#include <cstdio>\nint main()\n{\n",
	  "{ static const char t[] = ", "; fwrite(t, 1, sizeof(t) - 1, stdout); }\n", "}\n" },
	{ "go", "main.go", "package main\nimport \"os\"\nfunc main() {\n", "os.Stdout.WriteString(",
	  ")\n", "}\n" },
	{ "rust", "main.rs", "fn main() {\n", "print!(\"{}\", ", ");\n", "}\n" },
	{ "java", "Main.java",
	  "public class Main {\npublic static void main(String[] a) throws Exception {\n",
	  "System.out.write(", ".getBytes(\"UTF-8\"));\n", "System.out.flush();\n}\n}\n" },
	{ "ruby", "main.rb", "", "$stdout.write(", ")\n", "" },
	{ "php", "main.php", "<?php\n", "echo ", ";\n", "" },
	{ "perl", "main.pl", "", "print(", ");\n", "" },
	{ "lua", "main.lua", "", "io.write(", ")\n", "" },
	{ "r", "main.R", "out <- pipe(\"cat\", \"wb\")\n", "invisible(writeBin(charToRaw(enc2utf8(",
	  ")), out))\n", "invisible(close(out))\n" },
	{ "julia", "main.jl", "", "write(stdout, ", ")\n", "" },
};

static void put_echo(unsigned i)
{
	auto_buf struct buf text = { 0 }, expected = { 0 };
	struct err e;

	buf_puts(&text, echoes[i].begin);
	for (unsigned k = 0; k < ARRAY_LEN(hostile); k++) {
		json_t *v = json_string(hostile[k]);

		buf_puts(&text, echoes[i].before);
		if (literal_add(&text, lang_named(echoes[i].lang), v, 0, LITERAL_WHOLE, &e) < 0)
			abort();
		buf_puts(&text, echoes[i].behind);
		buf_puts(&expected, hostile[k]);
		json_decref(v);
	}
	buf_puts(&text, echoes[i].end);
	print_item(json_pack("{s:o, s:s, s:{s:s}, s:s, s:{s:s, s:s}}", "id",
			     json_sprintf("literals/%s/0", echoes[i].lang), "language",
			     echoes[i].lang, "files", echoes[i].file, buf_str(&text), "entry",
			     echoes[i].file, "expected", "stdout", buf_str(&expected), "compare",
			     "exact"));
}

static void put_echoes(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(echoes); i++)
		if (lang_present(lang_named(echoes[i].lang)))
			put_echo(i);
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

		if (id && said && json_object_get(event, "verdict") && !strstr(id, "/function") &&
		    !matches(id, said)) {
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
	if (argc == 3 && !strcmp(argv[1], "--plan"))
		put_plan(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "--literals"))
		put_echoes();
	else if (argc == 2 && !strcmp(argv[1], "--sample"))
		put_sample();
	else
		put_all(argc, argv);
	return 0;
}
