/* lang_test.c - which runtime runs which file, and how. */
#include "lang/lang.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "lang/lang_file.h"
#include "tap.h"

static const char *of(const char *file, const char *head)
{
	const struct lang *l = lang_of(file, head, strlen(head));

	return l ? l->name : "none";
}

TEST(the_file_extension_selects_the_language)
{
	CHECK_STR(of("a.py", ""), "python");
	CHECK_STR(of("/x/y/a.mjs", ""), "node");
	CHECK_STR(of("a.b.c", ""), "c");
	CHECK_STR(of("x.cpp", ""), "c++");
	CHECK_STR(of("x.R", ""), "r");
	CHECK_STR(of("x.ts", ""), "typescript");
	CHECK_STR(of("x.jl", ""), "julia");
}

TEST(a_file_extension_must_match_completely)
{
	CHECK_STR(of("a.p", ""), "none");
	CHECK_STR(of("a.pyc", ""), "none");
	CHECK_STR(of("a.", ""), "none");
	CHECK_STR(of("a", ""), "none");
	CHECK_STR(of(".py", ""), "none");
	CHECK_STR(of("x.py/a", ""), "none");
}

TEST(a_shebang_selects_the_language_without_an_extension)
{
	CHECK_STR(of("tool", "#!/usr/bin/python3\n"), "python");
	CHECK_STR(of("tool", "#!/usr/bin/env node\nx"), "node");
	CHECK_STR(of("tool", "#! /usr/bin/env -S python3 -u\n"), "python");
	CHECK_STR(of("tool", "#!/bin/sh"), "bash");
	CHECK_STR(of("tool", "#!/opt/strange\n"), "none");
	CHECK_STR(of("tool", "#!"), "none");
	CHECK_STR(of("tool", "#!\npython3"), "none");
	CHECK_STR(of("tool", "#!/usr/bin/env\npython3"), "none");
}

TEST(an_executable_is_recognised_by_its_first_bytes)
{
	CHECK(lang_is_program("\177ELF\2", 5));
	CHECK(lang_is_program("#!/x", 4));
	CHECK(!lang_is_program("\177EL", 3));
	CHECK(!lang_is_program("", 0));
}

static const char *named(const char *name)
{
	const struct lang *l = lang_named(name);

	return l ? l->name : "none";
}

TEST(aliases_of_languages_are_accepted)
{
	CHECK_STR(named("js"), "node");
	CHECK_STR(named("JavaScript"), "node");
	CHECK_STR(named("py"), "python");
	CHECK_STR(named("sh"), "bash");
	CHECK_STR(named("cpp"), "c++");
	CHECK_STR(named("rs"), "rust");
	CHECK_STR(named("ts"), "typescript");
	CHECK_STR(named("golang"), "go");
	CHECK_STR(named(""), "none");
	CHECK_STR(named("pythonx"), "none");
}

TEST(placeholders_of_a_command_are_replaced)
{
	const char *const row[] = { "cc",          "-o",          "{program}", "{sources}",
				    "-x{stem}.o",  "{dir}{unit}", "{mystery",  "${x}",
				    "-Xmx{heap}m", NULL };
	const char *const sources[] = { "/h/a.c", "/h/b.c", NULL }, *const args[] = { "{dir}", "",
										      NULL };
	struct lang_job job = { .source = "/h/a.c",
				.program = "/tmp/p",
				.sources = sources,
				.unit = "U",
				.memory = 1000 << 20 };
	static const char *const want[] = { "cc",     "-o",       "/tmp/p", "/h/a.c",
					    "/h/b.c", "-x/h/a.o", "/hU",    "{mystery",
					    "${x}",   "-Xmx600m", "{dir}",  "" };
	auto_free const char **argv = lang_words(row, &job, args);

	for (unsigned i = 0; i < ARRAY_LEN(want); i++)
		CHECK_STR(argv[i], want[i]);
	CHECK(!argv[ARRAY_LEN(want)]);
}

TEST(an_argument_with_an_unknown_heap_size_is_left_out)
{
	const char *const row[] = { "java", "-Xmx{heap}m", "{sources}", NULL };
	struct lang_job job = { .source = "A.java", .program = "p" };
	auto_free const char **argv = lang_words(row, &job, NULL);

	CHECK_STR(argv[0], "java");
	CHECK_STR(argv[1], "A.java");
	CHECK(!argv[2]);
}

/* ---- the files ---- */

TEST(every_language_file_is_parsed_and_its_patterns_compile)
{
	struct err e;

	CHECK(runtime_images_end - runtime_images >= 15);
	for (const struct runtime_image *i = runtime_images; i < runtime_images_end; i++) {
		struct lang l;
		int rc = runtime_read(&l, i->name, i->text, (size_t)(i->end - i->text), &e);

		CHECK_STR(rc < 0 ? e.msg : "", "");
		rc = runtime_check(&l, &e);
		runtime_fini(&l);
		CHECK_STR(rc < 0 ? e.msg : "", "");
	}
}

TEST(names_aliases_and_extensions_are_unique)
{
	for (unsigned i = 0; i < lang_count(); i++) {
		const struct lang *l = lang_at(i);
		char file[64];

		CHECK(lang_named(l->name) == l);
		for (const char *const *a = l->aliases; *a; a++)
			CHECK(lang_named(*a) == l);
		for (const char *const *x = l->endings; *x; x++) {
			snprintf(file, sizeof(file), "x%s", *x);
			CHECK(lang_of(file, "", 0) == l);
		}
		CHECK(lang_has_ending(l, l->file));
		CHECK(l->times.install == 30000 && l->times.compile == 60000 &&
		      l->times.run == 30000);
	}
	CHECK(!lang_at(lang_count()));
}

static const char *why(const char *text)
{
	static struct err e;
	struct lang l;

	e = (struct err){ 0 };
	if (runtime_read(&l, "x.toml", text, strlen(text), &e) == 0)
		runtime_fini(&l);
	return e.msg;
}

#define GOOD                                                                                       \
	"name = 'x'\ntitle = 'X'\nfile = 'main.x'\nendings = ['.x']\napt = ['x']\n"                \
	"version = ['x']\nrun = ['x', '{source}']\nhello = ''\nselftest = ''\n"

TEST(an_invalid_language_file_is_rejected_with_the_line)
{
	CHECK_STR(why(GOOD), "");
	CHECK_STR(why(GOOD "colour = 'red'\n"), "x.toml:10: colour: is not known");
	CHECK_STR(why(GOOD "[limits]\nmemory = '1G'\n"),
		  "x.toml:11: memory: must be an integer, not a string");
	CHECK_STR(why(GOOD "[limits]\nmemory = 0\n"), "x.toml:11: memory: is out of range");
	CHECK_STR(why(GOOD "test = ['{sauce}']\n"),
		  "x.toml:10: a value: has a {place} that there is not");
	CHECK_STR(why(GOOD "aliases = 'y'\n"),
		  "x.toml:10: aliases: must be an array, not a string");
	CHECK_STR(why(GOOD "[[errors]]\nmatch = 'x'\n"),
		  "x.toml: the message of an error's pattern is missing");
	CHECK_STR(why("name = 'x'\n"), "x.toml: name or title is missing");
	CHECK(*why("name = \n"));
}

/* ---- versions ---- */

static const char *version(const char *said)
{
	static char out[LANG_VERSION + 1];

	lang_version_in(said, strlen(said), out);
	return out;
}

TEST(a_version_is_parsed_from_program_output)
{
	CHECK_STR(version("Python 3.11.2\n"), "3.11.2");
	CHECK_STR(version("v20.20.2\n"), "20.20.2");
	CHECK_STR(version("go version go1.19.8 linux/arm64"), "1.19.8");
	CHECK_STR(version("This is perl 5, version 36, subversion 0 (v5.36.0)"), "5.36.0");
	CHECK_STR(version("javac 21"), "21");
	CHECK_STR(version("none"), "");
	CHECK_STR(version(""), "");
	CHECK_STR(version("1.2.3.4.5.6.7.8.9.10.11.12.13.14.15.16.17"),
		  "1.2.3.4.5.6.7.8.9.10.11.12.13.14");
}

TEST(a_version_pin_matches_a_prefix_of_the_version)
{
	char name[LANG_NAME + 1];

	CHECK_STR(lang_pin("python@3.11", name), "3.11");
	CHECK_STR(name, "python");
	CHECK_STR(lang_pin("c++", name), "");
	CHECK_STR(name, "c++");
	CHECK(lang_pin_fits("3.11", "3.11.2"));
	CHECK(lang_pin_fits("3", "3.11.2"));
	CHECK(!lang_pin_fits("3.1", "3.11.2"));
	CHECK(!lang_pin_fits("3.11.2.1", "3.11.2"));
}

/* ---- names in the text ---- */

static const char *unit(const char *file, const char *text)
{
	static char out[LANG_UNIT];

	lang_unit_of(lang_named("java"), file, text, strlen(text), out);
	return out;
}

static const char *file_of(const char *lang, const char *text)
{
	static char out[LANG_UNIT];

	lang_file_of(lang_named(lang), text, strlen(text), out);
	return out;
}

TEST(the_java_class_with_main_is_the_program)
{
	CHECK_STR(unit("/h/Main.java",
		       "public class Main {\n  static class Inner {}\n"
		       "  public static void main(String[] a) {}\n}\nclass After {}\n"),
		  "Main");
	CHECK_STR(unit("x.java", "class Helper {}\nfinal class App { static  void main() {} }"),
		  "App");
	CHECK_STR(unit("a/b/C.java", "package a.b;\nclass C { static void main() {} }"), "a.b.C");
	CHECK_STR(unit("a/Later.java", ""), "Later");
}

TEST(a_hostile_java_source_is_scanned_quickly)
{
	static const char *const pieces[] = { "\n",           " ",   "public ", "class A\n",
					      "static void ", "\t\n" };
	static char text[1 << 16];
	char out[LANG_UNIT];

	for (unsigned i = 0; i < ARRAY_LEN(pieces); i++) {
		uint64_t began = now_ns();

		for (size_t at = 0; at < sizeof(text); at++)
			text[at] = pieces[i][at % strlen(pieces[i])];
		lang_unit_of(lang_named("java"), "A.java", text, sizeof(text), out);
		lang_file_of(lang_named("java"), text, sizeof(text), out);
		/* Takes some milliseconds; with a quadratic algorithm it would be most of a
		 * minute. */
		CHECK(now_ns() - began < 2000000000u);
	}
}

TEST(a_public_java_class_names_its_file)
{
	CHECK_STR(file_of("java", "import x;\npublic final class Foo {}"), "Foo.java");
	CHECK_STR(file_of("java", "class Foo {}"), "Main.java");
	CHECK_STR(file_of("python", "class Foo: pass"), "main.py");
}

/* ---- warm interpreters ---- */

static const char *warm(const char *lang, const char *text)
{
	const char *s = lang_warm(lang_named(lang), text, strlen(text));

	return s ? s : "none";
}

TEST(the_imports_of_a_program_select_its_warm_interpreter)
{
	CHECK_STR(warm("python", "print(1)\n"), "python");
	CHECK_STR(warm("python", "import os, numpy as np\n"), "python-data");
	CHECK_STR(warm("python", "x = 1\n  from sklearn.svm import SVC"), "python-data");
	CHECK_STR(warm("python", "import numpyro\nimportnumpy\nfrom x import numpy\n"), "python");
	CHECK_STR(warm("python", "import matplotlib.pyplot as plt"), "python-data");
	CHECK_STR(warm("python", ""), "python");
	CHECK_STR(warm("node", "import numpy"), "node");
	CHECK_STR(warm("go", ""), "none");
}
