/* mutate_test.c - tokens of C-like languages, and edits of one token. */
#include "repair/mutate.h"
#include "base/cleanup.h"
#include "tap.h"

#include <string.h>

/* All tokens with a blank between them. */
static void tokens(const char *language, const char *source, struct buf *out)
{
	size_t n = strlen(source), at = 0;
	struct token t;

	buf_cut(out, 0);
	while ((t = token_next(language, source, n, &at)).kind != TOKEN_END) {
		buf_printf(out, "%s%c:", out->len ? " " : "", "nNto"[t.kind]);
		buf_add(out, t.p, t.n);
	}
}

TEST(tokens_are_names_numbers_texts_and_operators)
{
	auto_buf struct buf out = { 0 };

	tokens("c", "x1 += 0x1f * \"a\\\"b\" + 'c'; // gone\n/* gone */ y->z <= 1.5e3", &out);
	CHECK_STR(buf_str(&out),
		  "n:x1 o:+= N:0x1f o:* t:\"a\\\"b\" o:+ t:'c' o:; n:y o:-> n:z o:<= N:1.5e3");
	tokens("c", "#include <stdio.h>\n  #define X 1 < 2\nint x;", &out);
	CHECK_STR(buf_str(&out), "n:int n:x o:;");
	tokens("node", "a = /x\\/\"y/ .test(`q\n${1}`) === b / c", &out);
	CHECK_STR(buf_str(&out),
		  "n:a o:= t:/x\\/\"y/ o:. n:test o:( t:`q\n${1}` o:) o:=== n:b o:/ n:c");
	tokens("rust", "fn f<'a>(c: &'a str) -> char { '\\n' }", &out);
	CHECK_STR(
		buf_str(&out),
		"n:fn n:f o:< o:' n:a o:> o:( n:c o:: o:& o:' n:a n:str o:) o:-> n:char o:{ t:'\\n' o:}");
}

TEST(unterminated_strings_and_comments_end_with_the_program)
{
	auto_buf struct buf out = { 0 };

	tokens("c", "a /* b", &out);
	CHECK_STR(buf_str(&out), "n:a");
	tokens("c", "a \"b", &out);
	CHECK_STR(buf_str(&out), "n:a t:\"b");
	tokens("c", "\"b\\", &out);
	CHECK_STR(buf_str(&out), "t:\"b\\");
	tokens("node", "`", &out);
	CHECK_STR(buf_str(&out), "t:`");
	tokens("c", "", &out);
	CHECK_STR(buf_str(&out), "");
	tokens("c", "\"a\nb\"", &out);
	CHECK_STR(buf_str(&out), "t:\"a\n n:b t:\"");
}

/* The rank of the edit that turns one text into the other, or -1. */
static int rank_of(const char *language, const char *from, const char *to)
{
	struct mutations m;
	int rank = -1;

	mutate_make(&m, language, from, strlen(from), 1000);
	for (unsigned i = 0; rank < 0 && i < m.n; i++) {
		auto_buf struct buf text = { 0 };

		edit_apply(&m.v[i], from, strlen(from), &text);
		if (!strcmp(buf_str(&text), to))
			rank = (int)i;
	}
	mutations_fini(&m);
	return rank;
}

TEST(common_mistakes_are_among_the_edits)
{
	static const struct {
		const char *language, *wrong, *right;
	} rows[] = {
		{ "node", "for (let i = 0; i <= n; i++) s += i;",
		  "for (let i = 0; i < n; i++) s += i;" },
		{ "node", "return a - b;", "return a + b;" },
		{ "node", "if (a && b) return 1;", "if (a || b) return 1;" },
		{ "node", "return x === 0;", "return x !== 0;" },
		{ "node", "return Math.min(a, b);", "return Math.max(a, b);" },
		{ "node", "return s.toUpperCase();", "return s.toLowerCase();" },
		{ "node", "if (ok(x)) { y(); }", "if (!(ok(x))) { y(); }" },
		{ "node", "f(a, b); return a;", "f(a, b); return b;" },
		{ "c", "int f(int a, int b) { return a * b; }",
		  "int f(int a, int b) { return a + b; }" },
		{ "c", "x = 0; y += 2;", "x = 1; y += 2;" },
		{ "c", "{ a = 1; a--; b = a; }", "{ a = 1; ; b = a; }" },
		{ "c", "return false;", "return true;" },
		{ "c", "while (!done) step();", "while (done) step();" },
		{ "go", "if a < b { return a }", "if !(a < b) { return a }" },
		{ "go", "return strings.ToUpper(s)", "return strings.ToLower(s)" },
		{ "rust", "for i in 0..n { t += i; }", "for i in 0..=n { t += i; }" },
		{ "java", "for (int i = 1; i < n; i++) t += i;",
		  "for (int i = 0; i < n; i++) t += i;" },
		{ "c++", "return v[i] > v[j];", "return v[i] < v[j];" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		int rank = rank_of(rows[i].language, rows[i].wrong, rows[i].right);

		if (rank < 0)
			printf("# %s\n", rows[i].wrong);
		CHECK(rank >= 0);
	}
}

TEST(types_pointers_strings_comments_and_includes_are_not_edited)
{
	CHECK(rank_of("c++", "vector<int> v;", "vector<=int> v;") < 0);
	CHECK(rank_of("c", "char *p;", "char +p;") < 0);
	CHECK(rank_of("c", "puts(\"1\");", "puts(\"2\");") < 0);
	CHECK(rank_of("c", "x; // 1\n", "x; // 2\n") < 0);
	CHECK(rank_of("c", "#define N 1\n", "#define N 2\n") < 0);
	CHECK(rank_of("java", "import a.b1;\nint x;", "import b1.b1;\nint x;") < 0);
	CHECK(rank_of("node", "x = -1;", "x = +1;") < 0);
}

TEST(likely_edits_come_first)
{
	const char *source = "function f(a, b) { g(a); return a <= b; }";

	CHECK(rank_of("node", source, "function f(a, b) { g(a); return a < b; }") <
	      rank_of("node", source, "function f(a, b) { ; return a <= b; }"));
}

TEST(every_edit_is_small_and_their_number_is_limited)
{
	auto_buf struct buf source = { 0 };
	struct mutations m;
	struct err e;
	unsigned bad = 0;

	while (source.len < 200000)
		buf_puts(&source,
			 "if (a1 + (b2 < c3)) { d4(e5[1], \"\xc3\xa4\" + f6); return g7 * h8; }\n");
	mutate_make(&m, "node", source.p, source.len, 50);
	CHECK_INT(m.n, 50);
	for (unsigned i = 0; i < m.n; i++)
		bad += edit_check(&m.v[i], source.p, source.len, &e) < 0;
	CHECK_INT(bad, 0);
	mutations_fini(&m);
	mutate_make(&m, "cobol", source.p, source.len, 50);
	CHECK_INT(m.n, 0);
	mutations_fini(&m);
}

TEST(edits_of_random_text_are_valid)
{
	static const char *const noise[] = { "((((((",
					     "))))",
					     "if (",
					     "if",
					     "return",
					     "return (",
					     "{;;}",
					     "\"",
					     "'",
					     "`",
					     "/",
					     "/*",
					     "!",
					     "x",
					     "1",
					     "99999999999999999999",
					     "\xff\xfe\x80",
					     "if a { ",
					     "while {",
					     "return ((;",
					     "a.b.c..=" };
	static const char *const languages[] = { "node", "typescript", "c",   "c++",
						 "go",   "java",       "rust" };
	struct err e;
	unsigned bad = 0;

	for (unsigned l = 0; l < ARRAY_LEN(languages); l++)
		for (unsigned i = 0; i < ARRAY_LEN(noise); i++) {
			struct mutations m;

			mutate_make(&m, languages[l], noise[i], strlen(noise[i]), 100);
			for (unsigned j = 0; j < m.n; j++)
				bad += edit_check(&m.v[j], noise[i], strlen(noise[i]), &e) < 0;
			mutations_fini(&m);
		}
	CHECK_INT(bad, 0);
}
