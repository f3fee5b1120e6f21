/* repair_task.c - see repair_task.h. */
#include "repair/repair_task.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "lang/lang.h"
#include "repair/candidate_test.h"
#include "repair/mutate.h"
#include "repair/repair.h"
#include "repair/repair_programs.h"

#include <string.h>

enum { SOURCE_MOST = 256 * 1024 };

const char *repair_source(const json_t *artifact, size_t *len)
{
	const json_t *text =
		json_object_get(json_object_get(artifact, "files"), doc_text(artifact, "entry"));

	*len = json_string_length(text);
	return json_string_value(text);
}

/* A test without a command is run as a program; functions named test* are called. */
static void repair_set_command(json_t *test, const char *language)
{
	static const char call_all[] =
		"import runpy; n = runpy.run_path(\"%s\"); "
		"[n[f]() for f in list(n) if f.startswith(\"test\") and callable(n[f])]";
	const char *path = doc_text(test, "path"), *text = doc_text(test, "content");
	const struct lang *l = lang_named(language);
	auto_buf struct buf command = { 0 };

	if (!l || l->compile[0] || strpbrk(path, "'\"\\\n"))
		return;
	buf_printf(&command, "%s ", lang_program(l));
	if (strcmp(l->name, "python") != 0 || !strstr(text, "def test") ||
	    strstr(text, "__main__")) {
		buf_printf(&command, "'%s'", path);
	} else if (strstr(text, "unittest")) {
		buf_printf(&command, "-m unittest '%s'", path);
	} else {
		buf_puts(&command, "-c '");
		buf_printf(&command, call_all, path);
		buf_putc(&command, '\'');
	}
	json_object_set_new(test, "command", json_string(buf_str(&command)));
}

json_t *repair_examples(const json_t *artifact)
{
	const json_t *tests = json_object_get(artifact, "tests");
	json_t *all = json_array();

	json_array_extend(all, json_object_get(artifact, "examples"));
	for (size_t i = 0; i < json_array_size(tests); i++) {
		json_t *test = json_copy(json_array_get(tests, i));

		if (!*doc_text(test, "command"))
			repair_set_command(test, doc_text(artifact, "language"));
		json_array_append_new(all, test);
	}
	return all;
}

const char *repair_language(const char *language)
{
	const struct lang *l = lang_named(language);

	return l ? l->name : "";
}

int repair_knows(const char *language)
{
	return program_search(language) || mutate_knows(repair_language(language));
}

int repair_possible(const json_t *artifact)
{
	const char *language = doc_text(artifact, "language");
	json_t *examples = repair_examples(artifact);
	size_t n = 0;
	const char *source = repair_source(artifact, &n);
	int fine = source && n && n <= SOURCE_MOST && strlen(source) == n &&
		   repair_knows(language) && candidate_test_possible(language, examples);

	json_decref(examples);
	return fine;
}
