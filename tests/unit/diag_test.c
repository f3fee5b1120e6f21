/* diag_test.c - errors of compilers and failed programs, parsed. */
#include "lang/diag.h"
#include "tap.h"

#include <stdlib.h>

/* The errors as compact text; valid until the next call. */
static const char *errors(const char *lang, const char *text)
{
	static char *out;
	json_t *all = diag_errors(lang_named(lang), text, strlen(text));

	free(out);
	out = all ? json_dumps(all, JSON_COMPACT) : strdup("none");
	json_decref(all);
	return out;
}

static const char *fault(const char *lang, const char *text)
{
	static char *out;
	json_t *doc = diag_fault(lang_named(lang), text, strlen(text));

	free(out);
	out = doc ? json_dumps(doc, JSON_COMPACT) : strdup("none");
	json_decref(doc);
	return out;
}

TEST(a_compiler_names_file_line_and_column)
{
	CHECK_STR(errors("c", "In file included from x.h:1:\n"
			      "/home/user/a/main.c:3:16: fatal error: no.h: No such file\n"
			      "    3 | #include <no.h>\n"),
		  "[{\"file\":\"a/main.c\",\"line\":3,\"column\":16,\"severity\":\"error\","
		  "\"message\":\"no.h: No such file\"}]");
	CHECK_STR(errors("typescript", "main.ts(2,7): error TS2322: Type 'x'.\r\n"),
		  "[{\"file\":\"main.ts\",\"line\":2,\"column\":7,\"severity\":\"error\","
		  "\"message\":\"TS2322: Type 'x'.\"}]");
	CHECK_STR(errors("go", "# command-line-arguments\n./main.go:4:2: undefined: x\n"),
		  "[{\"file\":\"main.go\",\"line\":4,\"column\":2,\"severity\":\"error\","
		  "\"message\":\"undefined: x\"}]");
}

TEST(an_error_may_take_several_lines)
{
	CHECK_STR(errors("rust",
			 "error[E0308]: mismatched types\n --> /home/user/main.rs:2:18\n  |\n"),
		  "[{\"file\":\"main.rs\",\"line\":2,\"column\":18,\"severity\":\"error\","
		  "\"message\":\"mismatched types\"}]");
	CHECK_STR(errors("java",
			 "A.java:3: error: ';' expected\n        int x\n             ^\n1 error\n"),
		  "[{\"file\":\"A.java\",\"line\":3,\"column\":14,\"severity\":\"error\","
		  "\"message\":\"';' expected\"}]");
	CHECK_STR(errors("java", "A.java:3: error: alone"),
		  "[{\"file\":\"A.java\",\"line\":3,\"column\":null,\"severity\":\"error\","
		  "\"message\":\"alone\"}]");
}

TEST(linker_errors_have_no_line)
{
	CHECK_STR(errors("c", "/usr/bin/ld: /tmp/x.o: in function `main':\n"
			      "main.c:(.text+0x8): undefined reference to `f'\n"),
		  "[{\"file\":\"main.c\",\"line\":null,\"column\":null,\"severity\":\"error\","
		  "\"message\":\"undefined reference to `f'\"}]");
}

TEST(output_without_errors_has_no_diagnostics)
{
	CHECK_STR(errors("c", ""), "none");
	CHECK_STR(errors("c", "hello\nworld: 3\n"), "none");
	CHECK_STR(errors("python", "main.py:3:4: error: x\n"), "none");
}

TEST(the_number_of_errors_is_bounded)
{
	auto_buf struct buf b = { 0 };
	json_t *all;

	for (int i = 0; i < 20000; i++)
		buf_puts(&b, "a.c:1:1: error: x\n");
	all = diag_errors(lang_named("c"), b.p, b.len);
	CHECK_INT(json_array_size(all), 50);
	json_decref(all);
}

TEST(diagnostics_of_invalid_utf8_are_valid_text)
{
	static const char bytes[] = "a\xff.c:1:99999999999999999999: error: \0\xfe\xc3\n";
	json_t *all = diag_errors(lang_named("c"), bytes, sizeof(bytes) - 1);
	char *text = json_dumps(all, 0);

	CHECK(text);
	CHECK_INT(json_array_size(all), 1);
	free(text);
	json_decref(all);
}

TEST(a_line_of_a_megabyte_is_truncated)
{
	auto_buf struct buf b = { 0 };
	json_t *all;

	buf_puts(&b, "a.c:1:1: error: ");
	for (int i = 0; i < 1 << 20; i++)
		buf_putc(&b, 'x');
	all = diag_errors(lang_named("c"), b.p, b.len);
	CHECK_INT(json_array_size(all), 1);
	CHECK(json_string_length(json_object_get(json_array_get(all, 0), "message")) < 600);
	json_decref(all);
}

TEST(the_error_of_a_traceback_is_its_last_line)
{
	CHECK_STR(
		fault("python", "Traceback (most recent call last):\n"
				"  File \"/home/user/main.py\", line 9, in <module>\n    f()\n"
				"  File \"/home/user/lib/x.py\", line 2, in f\n    raise E\n"
				"x.MyError: bad: thing\n"),
		"{\"type\":\"x.MyError\",\"message\":\"bad: thing\",\"file\":\"lib/x.py\",\"line\":2}");
	CHECK_STR(
		fault("python", "  File \"/home/user/main.py\", line 1\n    x = = 1\n        ^\n"
				"SyntaxError: invalid syntax\n"),
		"{\"type\":\"SyntaxError\",\"message\":\"invalid syntax\",\"file\":\"main.py\",\"line\":1}");
	CHECK_STR(fault("python", "usage: main.py FILE\n"), "none");
	CHECK_STR(fault("python", ""), "none");
}

TEST(both_panic_formats_of_rust_are_parsed)
{
	CHECK_STR(fault("rust", "thread 'main' panicked at 'boom', main.rs:2:5\nnote: run\n"),
		  "{\"type\":\"panicked\",\"message\":\"boom\",\"file\":\"main.rs\",\"line\":2}");
	CHECK_STR(fault("rust", "\nthread 'main' (7) panicked at main.rs:2:5:\nboom\nnote: run\n"),
		  "{\"type\":\"panicked\",\"message\":\"boom\",\"file\":\"main.rs\",\"line\":2}");
}

TEST(the_end_of_a_long_output_is_analysed)
{
	auto_buf struct buf kept = { 0 };
	char block[1000];

	memset(block, 'x', sizeof(block));
	block[sizeof(block) - 1] = '\n';
	for (int i = 0; i < 200; i++)
		diag_tail(&kept, block, sizeof(block));
	diag_tail(&kept, "perl: no\nboom at main.pl line 3.\n", 33);
	CHECK(kept.len <= 2 * DIAG_BYTES);
	CHECK_STR(fault("perl", buf_str(&kept)),
		  "{\"type\":null,\"message\":\"boom\",\"file\":\"main.pl\",\"line\":3}");
	buf_cut(&kept, 0);
	for (int i = 0; i < 200; i++)
		diag_head(&kept, block, sizeof(block));
	CHECK_INT(kept.len, DIAG_BYTES);
}
