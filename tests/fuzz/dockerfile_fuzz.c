/* dockerfile_fuzz.c - any bytes: the result is a definition that the engine accepts, or an error with the file's name. */
#include "base/buf.h"
#include "fuzz.h"
#include "template/dockerfile.h"
#include "template/expand.h"

#include <assert.h>
#include <string.h>

static const char *fuzz_look(void *ctx, const char *name)
{
	(void)ctx;
	return name[0] == 'A' ? "value" : NULL;
}

/* The texts of a step have valid variables: only their values can fail at build time. */
static void fuzz_step(const json_t *step)
{
	json_t *v;
	size_t i;

	json_array_foreach(json_object_get(step, "args"), i, v)
	{
		struct buf out = { 0 };
		struct err e;

		if (definition_type(step) != DEFINITION_RUN &&
		    expand_text(&out, json_string_value(v), fuzz_look, NULL, &e) < 0)
			assert(e.kind == ERR_LIMIT || strstr(json_string_value(v), "?"));
		buf_fini(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct dockerfile_options o = { .file = "f" };
	json_t *doc = NULL, *stage, *step;
	struct err e = { 0 };
	size_t i, k;

	if (dockerfile_parse((const char *)bytes, len, &o, &doc, &e) < 0) {
		assert(!strncmp(e.msg, "f", 1) && (e.kind == ERR_INVALID || e.kind == ERR_LIMIT));
		return 0;
	}
	if (definition_check(doc, &e) < 0)
		assert(strstr(e.msg, "needs `files`") || strstr(e.msg, "larger than"));
	json_array_foreach(json_object_get(doc, "stages"), i, stage)
		json_array_foreach(json_object_get(stage, "steps"), k, step) fuzz_step(step);
	json_decref(doc);
	return 0;
}
