/* devcontainer_fuzz.c - any bytes as devcontainer.json, and as atoll.toml: a definition that the engine accepts, or an
 * error. */
#include "fuzz.h"
#include "template/source.h"

#include <assert.h>
#include <string.h>

struct fuzz_file {
	const char *path, *text;
	size_t len;
};

static int fuzz_read(void *ctx, const char *path, struct buf *out, struct err *e)
{
	const struct fuzz_file *f = ctx;

	(void)e;
	if (!strcmp(path, f->path)) {
		buf_add(out, f->text, f->len);
		return 1;
	}
	if (strcmp(path, "D") != 0)
		return 0;
	buf_puts(out, "ARG V\nFROM x:${V:-1}\nCOPY a b\n");
	return 1;
}

static void fuzz_one(const char *path, const uint8_t *bytes, size_t len)
{
	struct fuzz_file f = { path, (const char *)bytes, len };
	struct source_options o = { .file = path, .files = "ab" };
	struct source got;
	struct err e = { 0 };

	if (template_source(fuzz_read, &f, &o, &got, &e) < 0) {
		assert(*e.msg && !got.definition);
		return;
	}
	assert(definition_check(got.definition, &e) == 0);
	source_fini(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	fuzz_one("c.json", bytes, len);
	fuzz_one("c.toml", bytes, len);
	return 0;
}
