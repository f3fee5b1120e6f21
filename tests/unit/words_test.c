/* words_test.c - words and examples in the text of a task. */
#include "plan/task_examples.h"
#include "plan/detect_language.h"
#include "plan/words.h"
#include "base/buf.h"
#include "lang/lang.h"
#include "tap.h"

#include <stdlib.h>

static const char letters[] = "wntfuds,";

/* "w:mean n:3": kind and text of every word. */
static const char *read_as(const char *text)
{
	static struct buf out;
	struct words w;

	buf_cut(&out, 0);
	words_read(&w, text, strlen(text));
	for (unsigned i = 0; i < w.n; i++)
		buf_printf(&out, "%s%c:%.*s", i ? " " : "", letters[w.all[i].kind], (int)w.all[i].n,
			   w.all[i].p);
	words_fini(&w);
	return buf_str(&out);
}

static const char *stem(const char *word)
{
	static char out[WORD_STEM];

	words_stem(word, strlen(word), out);
	return out;
}

static int one_family(const char *a, const char *b)
{
	char first[WORD_STEM];

	strcpy(first, stem(a));
	if (!strcmp(first, stem(b)))
		return 1;
	printf("# %s: %s, %s: %s\n", a, first, b, stem(b));
	return 0;
}

static const char *language(const char *text)
{
	unsigned char spoken[WORDS_MOST] = { 0 };
	const struct lang *l;
	struct words w;

	words_read(&w, text, strlen(text));
	l = detect_language(&w, spoken);
	words_fini(&w);
	return l ? l->name : "none";
}

static const char *examples(const char *text)
{
	static char *out;
	struct task_examples s;

	task_examples_read(&s, text, strlen(text));
	free(out);
	out = json_dumps(s.examples, JSON_COMPACT);
	task_examples_fini(&s);
	return out;
}

TEST(numbers_in_a_task_are_parsed_exactly)
{
	CHECK_STR(read_as("3, -1.5 and 10th"), "n:3 ,:, n:-1.5 w:and n:10");
	CHECK_STR(read_as("[3,1,2]"), ",:[ n:3 ,:, n:1 ,:, n:2 ,:]");
	CHECK_STR(read_as("1,000,000 1_000 1e9"), "n:1,000,000 n:1_000 n:1e9");
	CHECK_STR(read_as("1..10 1-10 4/13"), "n:1 ,:. ,:. n:10 n:1 ,:- n:10 n:4 ,:/ n:13");
	CHECK_STR(read_as("10 MB, 4KiB, 3 kids"), "s:10 MB ,:, s:4KiB ,:, n:3 w:kids");
}

TEST(strings_files_urls_and_dates_are_distinguished)
{
	CHECK_STR(read_as("it's 'a b' or \"x \\\" y\" or “c”"),
		  "w:it's t:a b w:or t:x \\\" y w:or t:c");
	CHECK_STR(read_as("data.csv /etc/hosts ./x and/or node.js e.g."),
		  "f:data.csv f:/etc/hosts f:./x w:and ,:/ w:or w:node.js w:e ,:. w:g ,:.");
	CHECK_STR(read_as("see https://a.b/c?d=1."), "w:see u:https://a.b/c?d=1 ,:.");
	CHECK_STR(read_as("2024-02-29 3.5.2024 3.5"), "d:2024-02-29 d:3.5.2024 n:3.5");
	CHECK_STR(read_as("c++ C# utf-8"), "w:c++ w:C# w:utf ,:- n:8");
}

TEST(an_unmatched_quote_is_punctuation)
{
	CHECK_STR(read_as("say \"hello"), "w:say ,:\" w:hello");
	CHECK_STR(read_as("the dogs' bones"), "w:the w:dogs ,:' w:bones");
	CHECK_STR(read_as(""), "");
}

TEST(inflected_words_have_one_stem)
{
	CHECK(one_family("computes", "compute"));
	CHECK(one_family("computing", "computed"));
	CHECK(one_family("sorted", "Sorting"));
	CHECK(one_family("reversing", "reverses"));
	CHECK(one_family("summing", "sums"));
	CHECK(one_family("queries", "query"));
	CHECK(one_family("classes", "class"));
	CHECK(one_family("encryption", "encrypts"));
	CHECK(!one_family("mean", "median"));
}

TEST(a_language_name_is_recognised_and_an_everyday_word_is_not)
{
	CHECK_STR(language("Write a Python script"), "python");
	CHECK_STR(language("in C, please"), "c");
	CHECK_STR(language("a C program"), "c");
	CHECK_STR(language("using Go"), "go");
	CHECK_STR(language("go through the list"), "none");
	CHECK_STR(language("the node of a tree"), "none");
	CHECK_STR(language("a Node.js program"), "node");
	CHECK_STR(language("say hello to Julia"), "none");
	CHECK_STR(language("write fizz.rb"), "ruby");
	CHECK_STR(language("plot with matplotlib"), "python");
	CHECK_STR(language("a program in C++ that prints 'Python'"), "c++");
	CHECK_STR(language("grade c and grade r"), "none");
}

TEST(examples_are_found_in_every_notation)
{
	CHECK_STR(
		examples("f(2) -> 4, and f(3) => 9."),
		"[{\"call\":\"f(2)\",\"expected\":\"4\"},{\"call\":\"f(3)\",\"expected\":\"9\"}]");
	CHECK_STR(examples("assert add(2, (3)) == [1, 2], 'why'"),
		  "[{\"call\":\"add(2, (3))\",\"expected\":\"[1, 2]\"}]");
	CHECK_STR(examples(">>> f('a)')\n'b'\n"), "[{\"call\":\"f('a)')\",\"expected\":\"'b'\"}]");
	CHECK_STR(examples("Input: 3 1 2\nOutput: 1 2 3\n"),
		  "[{\"input\":\"3 1 2\\n\",\"expected\":\"1 2 3\\n\"}]");
	CHECK_STR(
		examples("input: a output: b input: c output: d"),
		"[{\"input\":\"a\\n\",\"expected\":\"b\\n\"},{\"input\":\"c\\n\",\"expected\":\"d\\n\"}]");
	CHECK_STR(examples("f(x) is a function; f(2) returns something; f((2 -> 3"), "[]");
}

TEST(fenced_code_is_removed_from_the_text)
{
	const char *text = "Run this\n```python\nprint(1)\n```\nplease";
	struct task_examples s;

	task_examples_read(&s, text, strlen(text));
	CHECK_STR(s.code, "print(1)\n");
	CHECK_STR(s.tag, "python");
	CHECK(!strstr(s.rest, "print") && strstr(s.rest, "please"));
	CHECK_INT(strlen(s.rest), strlen(text));
	task_examples_fini(&s);
}

TEST(fenced_asserts_are_examples_and_no_program)
{
	const char *text = "A function f.\n```\nassert f(1) == 2\n```\n";
	struct task_examples s;

	task_examples_read(&s, text, strlen(text));
	CHECK(!s.code);
	CHECK_INT(json_array_size(s.examples), 1);
	task_examples_fini(&s);
}
