/* kernel_spec_fuzz.c - a kernel.json. An accepted one has arguments and variables that execve() can
 * take, all of limited length, and is accepted again after it was serialised. */
#include "fuzz.h"
#include "jupyter/spec.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void spec_check_word(const json_t *v)
{
	assert(json_is_string(v) && json_string_length(v) <= SPEC_WORD);
	assert(strlen(json_string_value(v)) == json_string_length(v));
}

static void spec_check_words(const struct kernel_spec *s)
{
	size_t n = json_array_size(s->argv);
	const char *name;
	int has_file = 0;
	json_t *v;

	assert(n >= 1 && n <= SPEC_WORDS && *json_string_value(json_array_get(s->argv, 0)));
	for (size_t i = 0; i < n; i++) {
		v = json_array_get(s->argv, i);
		spec_check_word(v);
		has_file |= strstr(json_string_value(v), "{connection_file}") != NULL;
	}
	assert(has_file && json_object_size(s->env) <= SPEC_WORDS);
	json_object_foreach((json_t *)s->env, name, v)
	{
		assert(*name && !strchr(name, '='));
		spec_check_word(v);
	}
	assert(strlen(s->title) <= 256 && strlen(s->language) <= 256);
}

static void spec_check_again(const struct kernel_spec *s)
{
	char *text = json_dumps(s->doc, JSON_COMPACT);
	struct kernel_spec again;
	struct err e;

	assert(text);
	/* The serialised text may be longer because of escapes. */
	if (strlen(text) <= SPEC_BYTES) {
		assert(spec_parse(&again, text, strlen(text), &e) == 0);
		assert(json_equal(again.doc, s->doc) && again.by_message == s->by_message);
		spec_fini(&again);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct err e = { 0 };
	struct kernel_spec s;

	if (spec_parse(&s, (const char *)bytes, len, &e) < 0) {
		assert(e.kind == ERR_INVALID && e.msg[0]);
		return 0;
	}
	spec_check_words(&s);
	spec_check_again(&s);
	spec_fini(&s);
	return 0;
}
