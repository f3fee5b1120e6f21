/* item_fuzz.c - a line of a batch. An item that is accepted has one or two commands, an environment,
 * times and sizes within their limits, files below the home only, and no text that a NUL would cut. */
#include "batch/item.h"
#include "client/box_handle.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static void item_check_steps(const struct batch_item *x)
{
	assert(x->nsteps >= 1 && x->nsteps <= ITEM_STEPS);
	for (unsigned i = 0; i < x->nsteps; i++) {
		assert(x->steps[i].what && x->steps[i].argv && x->steps[i].argv[0]);
		assert(x->steps[i].wall_ms >= 1 && x->steps[i].wall_ms <= 3600000);
	}
	for (unsigned i = 0; x->env[i]; i++)
		assert(strchr(x->env[i], '=') > x->env[i]);
}

static void item_check_files(const struct batch_item *x)
{
	const char *path;
	json_t *v;

	json_object_foreach((json_t *)x->files, path, v)
	{
		char full[512];

		assert(!strncmp(program_path(path, full), BOX_HOME "/", strlen(BOX_HOME "/")));
		assert(!strstr(path, "..") && strlen(path) <= 400);
	}
	for (unsigned i = 0; x->program.sources && x->program.sources[i]; i++)
		assert(x->program.sources[i][0]);
}

/* What becomes a C string is as long as it was in the line. */
static void item_check_texts(const struct batch_item *x)
{
	static const char *const names[] = { "command", "language", "entry", "cwd" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const json_t *v = json_object_get(x->doc, names[i]);

		if (json_is_string(v))
			assert(strlen(json_string_value(v)) == json_string_length(v));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct batch_item_defaults d = { .max_output = 100 };
	struct err e = { 0 };
	struct batch_item x;

	if (batch_item_parse(&x, (const char *)bytes, len, &d, &e) < 0) {
		assert((e.kind == ERR_INVALID || e.kind == ERR_LIMIT) && e.msg[0]);
	} else {
		item_check_steps(&x);
		item_check_files(&x);
		item_check_texts(&x);
		assert(x.max_output <= ITEM_OUTPUT_MAX && x.want_code >= 0 && x.want_code <= 255);
		assert(!x.program.lang ||
		       (x.program.source[0] && x.program.binary[0] && x.program.sources));
	}
	assert(!x.id || json_is_integer(x.id) || json_string_length(x.id) <= 256);
	batch_item_fini(&x);
	return 0;
}
