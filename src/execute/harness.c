/* harness.c - see harness.h. */
#include "execute/harness.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "batch/output_compare.h"
#include "lang/lang.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* {text} is the program, {head} what it has up to its class, {tail} the rest, {call} the call,
 * {mark} the mark, {entry} the program's path. file: NULL: replaces the file of the program; else
 * the program is kept in addition. */
static const struct way {
	const char *language, *file, *text;
} ways[] = {
	{ "python", "atoll_call.py",
	  "import importlib.util, os, sys\n"
	  "spec = importlib.util.spec_from_file_location('program', '{entry}')\n"
	  "program = importlib.util.module_from_spec(spec)\n"
	  "sys.modules['program'] = program\n"
	  "sys.path.insert(0, os.path.dirname(os.path.abspath('{entry}')))\n"
	  "spec.loader.exec_module(program)\n"
	  "value = eval('''{quoted}''', program.__dict__)\n"
	  "sys.stdout.flush()\n"
	  "print('\\n{mark}' + repr(value))\n" },
	{ "node", NULL,
	  "{text}\n;process.stdout.write('\\n{mark}' + JSON.stringify({call}) + '\\n');\n" },
	{ "typescript", NULL, "{text}\n;console.log('\\n{mark}' + JSON.stringify({call}));\n" },
	{ "ruby", NULL, "{text}\nputs \"\\n{mark}\" + ({call}).inspect\n" },
	{ "php", NULL, "{text}\necho \"\\n{mark}\", json_encode({call}), \"\\n\";\n" },
	{ "lua", NULL, "{text}\nprint('\\n{mark}' .. tostring({call}))\n" },
	{ "perl", NULL, "{text}\nprint \"\\n{mark}\", join(' ', ({call})), \"\\n\";\n" },
	{ "bash", NULL, "{text}\nprintf '\\n{mark}'\n{call}\n" },
	{ "r", NULL, "{text}\ncat('\\n{mark}')\ncat(format({call}), '\\n')\n" },
	{ "julia", NULL, "{text}\nprintln('\\n', \"{mark}\", repr({call}))\n" },
	{ "c", NULL,
	  "#define main program_main\n{text}\n#undef main\n#include <stdio.h>\n"
	  "int main(void)\n{\n\t__typeof__({call}) value = {call};\n\n"
	  "\tprintf(\"\\n{mark}\");\n"
	  "\tprintf(_Generic(value, char *: \"%s\", const char *: \"%s\", float: \"%.17g\", "
	  "double: \"%.17g\", unsigned long: \"%lu\", unsigned long long: \"%llu\", long: \"%ld\", "
	  "long long: \"%lld\", unsigned: \"%u\", char: \"%c\", default: \"%d\"), value);\n"
	  "\tputchar('\\n');\n}\n" },
	{ "go", "atoll_call.go",
	  "package main\n\nimport (\n\tatoll_json \"encoding/json\"\n\tatoll_fmt \"fmt\"\n)\n\n"
	  "func main() {\n\tvalue, _ := atoll_json.Marshal({call})\n\tatoll_fmt.Printf(\"\\n{mark}%s\\n\", value)\n}\n" },
	{ "rust", NULL, "{text}\nfn main() {\n    println!(\"\\n{mark}{:?}\", {call});\n}\n" },
	/* Inside the class, so that its methods need no qualifier. An array is printed only inside
	 * another one. */
	{ "java", NULL,
	  "{head}\n    public static void main(String[] atollArgs) throws Exception {\n"
	  "        String value = java.util.Arrays.deepToString(new Object[] { {call} });\n"
	  "        System.out.println(\"\\n{mark}\" + value.substring(1, value.length() - 1));\n    }\n{tail}" },
	{ "c++", NULL,
	  "#define main program_main\n{text}\n#undef main\n#include <iostream>\n"
	  "int main()\n{\n\tauto value = {call};\n\n\tstd::cout.precision(17);\n"
	  "\tstd::cout << \"\\n{mark}\" << value << std::endl;\n}\n" },
};

/* The harness has the only main; that of the program is renamed, if the text above does not. */
static const struct {
	const char *language, *main, *aside;
} mains[] = {
	{ "go", "func main()", "func program_main()" },
	{ "rust", "fn main()", "fn program_main()" },
	{ "java", "void main(", "void program_main(" },
};

/* Text that a file of functions lacks; languages without a row need none. */
static const struct {
	const char *language, *word;
} entries[] = {
	{ "c", "main" },       { "c++", "main" },       { "go", "func main" },
	{ "rust", "fn main" }, { "java", "void main" },
};

/* The word, followed by blanks and a parenthesis only. */
static int has_entry(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += n) {
		const char *next = at + n + strspn(at + n, " \t");

		if (*next == '(' &&
		    (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')))
			return 1;
	}
	return 0;
}

int harness_has_main(const json_t *artifact)
{
	const struct lang *l = lang_named(doc_text(artifact, "language"));
	const char *path;
	json_t *text;

	for (unsigned i = 0; l && i < ARRAY_LEN(entries); i++) {
		if (strcmp(entries[i].language, l->name) != 0)
			continue;
		json_object_foreach(json_object_get(artifact, "files"), path,
				    text) if (json_is_string(text) &&
					      has_entry(json_string_value(text),
							entries[i].word)) return 1;
		return 0;
	}
	return 1;
}

static const struct way *way_of(const char *language)
{
	const struct lang *l = lang_named(language);

	for (unsigned i = 0; l && i < ARRAY_LEN(ways); i++)
		if (!strcmp(ways[i].language, l->name))
			return &ways[i];
	return NULL;
}

int harness_can(const char *language)
{
	return way_of(language) != NULL;
}

/* Inside a triple-quoted string of Python. */
static void harness_quote(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			buf_putc(out, '\\');
		buf_putc(out, *text);
	}
}

/* After the brace of the first class; the end of the text without one. */
static const char *class_of(const char *text)
{
	const char *at = strstr(text, "class ");

	at = at ? strchr(at, '{') : NULL;
	return at ? at + 1 : text + strlen(text);
}

static void put_aside(json_t *files, const char *entry, const char *language)
{
	for (unsigned i = 0; i < ARRAY_LEN(mains); i++) {
		const char *text = doc_text(files, entry), *at = strstr(text, mains[i].main);

		if (at && !strcmp(mains[i].language, language))
			json_object_set_new(files, entry,
					    json_sprintf("%.*s%s%s", (int)(at - text), text,
							 mains[i].aside,
							 at + strlen(mains[i].main)));
	}
}

static void harness_fill(struct buf *out, const char *from, const json_t *artifact,
			 const char *call, const char *mark)
{
	const char *entry = doc_text(artifact, "entry");
	const char *text = doc_text(json_object_get(artifact, "files"), entry),
		   *tail = class_of(text);
	auto_buf struct buf quoted = { 0 }, head = { 0 };
	const struct {
		const char *name, *value;
	} words[] = { { "{text}", text },
		      { "{head}", (buf_add(&head, text, (size_t)(tail - text)), buf_str(&head)) },
		      { "{tail}", tail },
		      { "{call}", call },
		      { "{mark}", mark },
		      { "{entry}", entry },
		      { "{quoted}", (harness_quote(&quoted, call), buf_str(&quoted)) } };

	while (*from) {
		unsigned i = 0;

		while (i < ARRAY_LEN(words) &&
		       strncmp(from, words[i].name, strlen(words[i].name)) != 0)
			i++;
		if (i < ARRAY_LEN(words)) {
			buf_puts(out, words[i].value);
			from += strlen(words[i].name);
		} else {
			buf_putc(out, *from++);
		}
	}
}

/* A file that ends in the middle of a program would have the call outside of it. */
static void close_php(json_t *files, const char *entry)
{
	const char *text = doc_text(files, entry), *end = strstr(text, "?>");

	if (end && strspn(end + 2, " \n\r\t") == strlen(end + 2))
		json_object_set_new(files, entry, json_stringn(text, (size_t)(end - text)));
}

/* The first line that starts with the word, after comments; NULL: none. */
static const char *line_with(const char *text, const char *word)
{
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += at != text;
		if (!strncmp(at, word, strlen(word)))
			return at;
	}
	return NULL;
}

/* The call is in a file of package main, so all of them are. */
static void in_package_main(json_t *files)
{
	const char *path;
	json_t *text;
	void *next;

	json_object_foreach_safe(files, next, path, text)
	{
		const char *all = json_string_value(text),
			   *at = all ? line_with(all, "package ") : NULL;
		size_t n = strlen(path);

		if (!all || n < 3 || strcmp(path + n - 3, ".go") != 0 || strchr(path, '/'))
			continue;
		if (at)
			json_object_set_new(files, path,
					    json_sprintf("%.*spackage main%s", (int)(at - all), all,
							 at + strcspn(at, "\n")));
		else
			json_object_set_new(files, path, json_sprintf("package main\n%s", all));
	}
}

/* Methods without a class are put into one; their imports stay outside. */
static void within_class(json_t *files, const char *entry)
{
	const char *text = doc_text(files, entry), *body = text, *at;
	char name[64];

	if (strstr(text, "class ") || strstr(text, "interface ") || strstr(text, "record "))
		return;
	for (at = text; at; at = strchr(at, '\n')) {
		at += at != text;
		if (!strncmp(at, "import ", 7) || !strncmp(at, "package ", 8))
			body = at + strcspn(at, "\n");
	}
	at = strrchr(entry, '/');
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(at ? at + 1 : entry, "."),
		 at ? at + 1 : entry);
	json_object_set_new(files, entry,
			    json_sprintf("%.*s\npublic class %s {\n%s\n}\n", (int)(body - text),
					 text, name, body));
}

int harness_call(const json_t *artifact, const char *call, const char *mark, json_t **out_files,
		 const char **out_entry, struct err *e)
{
	const char *language = doc_text(artifact, "language"), *entry = doc_text(artifact, "entry");
	const struct way *w = way_of(language);
	auto_buf struct buf text = { 0 };
	json_t *copy;

	if (!w)
		return err_set(e, ERR_INVALID, "a call cannot be tested in %.40s", language);
	if (!json_is_string(json_object_get(json_object_get(artifact, "files"), entry)) ||
	    strpbrk(entry, "'\\\n"))
		return err_set(e, ERR_INVALID, "there is no file '%.60s' to call", entry);
	copy = json_pack("{s:o, s:s}", "files", json_copy(json_object_get(artifact, "files")),
			 "entry", entry);
	if (!strcmp(w->language, "php"))
		close_php(json_object_get(copy, "files"), entry);
	if (!strcmp(w->language, "go"))
		in_package_main(json_object_get(copy, "files"));
	if (!strcmp(w->language, "java"))
		within_class(json_object_get(copy, "files"), entry);
	put_aside(json_object_get(copy, "files"), entry, w->language);
	harness_fill(&text, w->text, copy, call, mark);
	*out_files = json_incref(json_object_get(copy, "files"));
	*out_entry = w->file ? w->file : entry;
	json_decref(copy);
	json_object_set_new(*out_files, *out_entry, json_stringn(buf_str(&text), text.len));
	return 0;
}

const char *harness_answer(const char *said, size_t n, const char *mark, size_t *out_n)
{
	const char *at = n ? memmem(said, n, mark, strlen(mark)) : NULL;

	if (!at)
		return NULL;
	at += strlen(mark);
	n -= (size_t)(at - said);
	while (n && strchr("\n\r\t ", at[n - 1]))
		n--;
	*out_n = n;
	return at;
}

static int same_value(const json_t *a, const json_t *b)
{
	size_t i;
	json_t *one;

	if (json_is_number(a) && json_is_number(b)) {
		double x = json_number_value(a), y = json_number_value(b);

		return x == y || fabs(x - y) <= 1e-9 * fmax(fabs(x), fabs(y));
	}
	if (!json_is_array(a) || !json_is_array(b))
		return json_equal(a, b);
	if (json_array_size(a) != json_array_size(b))
		return 0;
	json_array_foreach(a, i, one)
	{
		if (!same_value(one, json_array_get(b, i)))
			return 0;
	}
	return 1;
}

/* Parsed as JSON, or as a literal of Python, Ruby and similar; NULL: neither. */
static json_t *value_of(const char *text, size_t n)
{
	static const char *const words[][2] = {
		{ "True", "true" }, { "False", "false" }, { "None", "null" }, { "nil", "null" }
	};
	json_t *v = json_loadb(text, n, JSON_DECODE_ANY, NULL);
	auto_free char *copy = NULL;

	if (v || n > 65536)
		return v;
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i][0]) == n && !memcmp(words[i][0], text, n))
			return json_loads(words[i][1], JSON_DECODE_ANY, NULL);
	if (memchr(text, '"', n) || memchr(text, '\\', n))
		return NULL;
	copy = strndup(text, n);
	if (!copy)
		abort();
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c == '(' ? '[' : *c == ')' ? ']' : *c;
	return json_loads(copy, JSON_DECODE_ANY, NULL);
}

int harness_same(const char *got, size_t n, const char *expected)
{
	json_t *a, *b;
	int same;

	if (output_compare_same(JUDGE_TRIMMED, got, n, expected, strlen(expected)))
		return 1;
	a = value_of(got, n);
	b = value_of(expected, strlen(expected));
	same = a && b && same_value(a, b);
	if (!same && json_is_string(a)) /* abc without quotes means 'abc' */
		same = output_compare_same(JUDGE_TRIMMED, json_string_value(a),
					   json_string_length(a), expected, strlen(expected));
	json_decref(a);
	json_decref(b);
	return same;
}
