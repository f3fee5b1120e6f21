/* libraryitems.c - every program of the library with the slots of every example, as items of a batch.
 *
 *	library-items [LANGUAGE...] >items	those of the languages that are installed, as the coder's artifacts are run
 *	library-items --quick >items		the same texts, compiled without optimisation; the first example only except in
 *						Python, of compiled languages every ninth task and of others every third
 *	library-items --literals >items		texts that try to get out of their quotes, in every language
 *	library-items --plan TEXT >items	what the planner and the coder make of this text
 *	library-items --judge <events		do outputs match their task's pattern? prints what does not
 *
 * An id is task/language/example, or task/language/call-N: the form as a function, called with that example's slots. */
#include "plan/code.h"
#include "plan/library.h"
#include "plan/literal.h"
#include "plan/plan.h"
#include "base/id.h"
#include "base/cleanup.h"
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
	json_object_foreach(x->slots, name, v) json_object_set(slots, name, v);
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

/* What an optimiser does for a second to a program that runs for a millisecond is left out; for the rest of it
 * the compilers are the same. Java compiles within the machine that runs it. */
static const struct quick {
	const char *lang, *flags, *command;
} quicks[] = {
	{ "c", "-O0", NULL },
	{ "c++", "-O0", NULL },
	{ "rust", NULL,
	  "rustc --edition 2021 --crate-name main -C opt-level=0 -C debuginfo=0 -C overflow-checks=off "
	  "-C debug-assertions=off -o /tmp/program main.rs && exec /tmp/program" },
	{ "java", NULL,
	  "exec java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto -Dfile.encoding=UTF-8 "
	  "-Dstdout.encoding=UTF-8 Main.java" },
};
static int quickly;

static void hurry(json_t *item, const json_t *artifact)
{
	for (unsigned i = 0; quickly && i < ARRAY_LEN(quicks); i++) {
		const struct quick *q = &quicks[i];

		if (lang_named(q->lang) != lang_named(doc_text(artifact, "language")))
			continue;
		if (q->flags)
			json_object_set_new(item, "env", json_pack("{s:s}", "CFLAGS", q->flags));
		if (!q->command)
			continue;
		json_object_set_new(item, "command", json_string(q->command));
		json_object_del(item, "language");
		json_object_del(item, "entry");
	}
}

static json_t *made(const char *id, const json_t *plan)
{
	struct err e = { 0 };
	json_t *a = code_make(plan, &e);

	if (!a) {
		fprintf(stderr, "%s: %s\n", id, e.msg);
		exit(1);
	}
	return a;
}

static void put(const char *id, const json_t *plan, const char *expected)
{
	json_t *a = made(id, plan), *item = json_object();

	json_object_set_new(item, "id", json_string(id));
	json_object_set(item, "language", json_object_get(a, "language"));
	json_object_set(item, "files", json_object_get(a, "files"));
	json_object_set(item, "entry", json_object_get(a, "entry"));
	json_object_set(item, "stdin", json_object_get(a, "stdin"));
	hurry(item, a);
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

/* ---- functions ---- */

/* Each is given {args, returns} on its input. */
static const struct {
	/* clang-format off */
	const char *lang, *text;
} callers[] = {
	{ "python", "\nimport json, math, sys\nask = json.load(sys.stdin)\ngot = some_name(*ask['args'])\n"
		    "same = math.isclose(got, ask['returns']) if isinstance(got, float) else got == ask['returns']\n"
		    "print('same' if same else got)\n" },
	{ "node", "\nconst ask = JSON.parse(require('fs').readFileSync(0));\nconst got = some_name(...ask.args);\n"
		  "const near = typeof got === 'number' && Math.abs(got - ask.returns) <= 1e-9 * Math.abs(got);\n"
		  "const text = (v) => JSON.stringify(typeof v === 'bigint' ? Number(v) : v);\n"
		  "console.log(near || text(got) === text(ask.returns) ? 'same' : text(got));\n" },
	/* clang-format on */
};

/* "integer" takes a slot of numbers as well, "text" one of a word. */
static int is_for(const struct library_slot *s, const char *type)
{
	const char *own = slot_type_name(s->type);

	return !strcmp(own, type) || (!strcmp(own, "word") && !strcmp(type, "text")) ||
	       (!strncmp(own, "integer", 7) && !strncmp(type, "number", 6) &&
		!strcmp(own + 7, type + 6)) ||
	       (!strncmp(type, "integer", 7) && !strncmp(own, "number", 6) &&
		!strcmp(type + 7, own + 6));
}

/* The slots, in the order of the parameters. */
static json_t *args_of(const struct library_task *t, const char *takes, const json_t *slots)
{
	json_t *args = json_array();
	auto_free char *types = strdup(takes);
	uint64_t used = 0;

	for (char *rest = types, *type; (type = strsep(&rest, " "));) {
		unsigned i = 0;

		while (i < t->nslots && (used >> i & 1 || !is_for(&t->slots[i], type)))
			i++;
		if (i == t->nslots) {
			fprintf(stderr, "%s: no slot is for '%s' of its function\n", t->id, type);
			exit(1);
		}
		used |= 1ull << i;
		json_array_append(args, json_object_get(slots, t->slots[i].name));
	}
	return args;
}

static void put_call(const struct library_task *t, const struct library_program *p, unsigned n)
{
	json_t *plan = plan_of(t, &t->examples[n], p), *slots = json_object_get(plan, "slots"),
	       *ask, *a;
	auto_free char *text = NULL;
	const char *entry;
	unsigned i = 0;
	char id[256];

	snprintf(id, sizeof(id), "%s/%s/call-%u", t->id, p->lang->name, n);
	while (i < ARRAY_LEN(callers) && strcmp(callers[i].lang, p->lang->name) != 0)
		i++;
	if (i == ARRAY_LEN(callers) || !t->examples[n].returns) {
		fprintf(stderr,
			"%s: an example without a return value, or a language without a caller\n",
			id);
		exit(1);
	}
	ask = json_pack("{s:o, s:O}", "args", args_of(t, p->takes ? p->takes : "", slots),
			"returns", t->examples[n].returns);
	text = json_dumps(ask, JSON_COMPACT);
	json_object_set_new(slots, "function", json_string("some_name"));
	a = made(id, plan);
	entry = doc_text(a, "entry");
	print_item(json_pack(
		"{s:s, s:O, s:{s:o}, s:s, s:s, s:{s:s, s:s}}", "id", id, "language",
		json_object_get(a, "language"), "files", entry,
		json_sprintf("%s%s", doc_text(json_object_get(a, "files"), entry), callers[i].text),
		"entry", entry, "stdin", text, "expected", "stdout", "same\n", "compare", "exact"));
	json_decref(a);
	json_decref(ask);
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

/* A compiler takes a hundred times as long as the program. That the slots of every example get into a program is
 * seen in Python; other languages have the first example of a part of the tasks. */
static unsigned examples_of(unsigned task, const struct library_task *t,
			    const struct library_program *p)
{
	static const char *const compiled[] = { "c", "c++", "go", "java", "rust" };

	for (unsigned i = 0; quickly && i < ARRAY_LEN(compiled); i++)
		if (!strcmp(compiled[i], p->lang->name))
			return t->nexamples > 0 && (task + i) % 9 == 0;
	if (quickly && strcmp(p->lang->name, "python") != 0)
		return t->nexamples > 0 && task % 3 == 0;
	return t->nexamples;
}

static void put_all(int argc, char **argv)
{
	for (unsigned i = 0; i < library_count(); i++) {
		const struct library_task *t = library_at(i);

		for (unsigned k = 0; k < t->nprograms; k++) {
			const struct library_program *p = &t->programs[k];

			for (unsigned n = 0;
			     n < examples_of(i, t, p) && wanted(p->lang, argc, argv); n++) {
				if (p->text)
					put_example(t, p, n);
				if (p->function)
					put_call(t, p, n);
			}
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

		if (id && said && json_object_get(event, "verdict") && !strstr(id, "/call-") &&
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
	else {
		quickly = argc > 1 && !strcmp(argv[1], "--quick");
		put_all(argc - quickly, argv + quickly);
	}
	return 0;
}
