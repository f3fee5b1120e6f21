/* patch_fuzz.c - a file, followed by a patch for it that starts with "*** Begin Patch". All parsed
 * texts are ranges of the patch, paths have no NUL, a change adds no more text than the patch
 * contains, and an empty change leaves the file unchanged. */
#include "fuzz.h"
#include "tools/patch.h"

#include <assert.h>
#include <string.h>

#define MARK "*** Begin Patch"

static void patch_check_view(struct patch_text t, const char *text, size_t n)
{
	assert(t.p >= text && t.p + t.n <= text + n);
}

static void patch_check_apply(struct patch_text body, const char *old, size_t n)
{
	struct buf out = { 0 };
	struct err e = { 0 };

	if (patch_apply(body, old, n, &out, &e) == 0)
		assert(out.len <= n + 1 + body.n + 1);
	else
		assert((e.kind == ERR_INVALID || e.kind == ERR_CONFLICT) && e.msg[0]);
	buf_fini(&out);
}

static void patch_check_identity(const char *old, size_t n)
{
	struct buf out = { 0 };
	struct err e;

	assert(patch_apply((struct patch_text){ old, 0 }, old, n, &out, &e) == 0);
	assert(out.len == n && (!n || !memcmp(out.p, old, n)));
	buf_fini(&out);
}

static void patch_check_file(const struct patch_file *f, const char *old, size_t n)
{
	struct buf out = { 0 };
	struct err e = { 0 };

	assert(f->path.n && !memchr(f->path.p, 0, f->path.n));
	assert(!f->move.n || (f->kind == PATCH_UPDATE && !memchr(f->move.p, 0, f->move.n)));
	if (patch_content(f->body, &out, &e) == 0)
		assert(out.len <= f->body.n);
	else
		assert(e.kind == ERR_INVALID);
	buf_fini(&out);
	patch_check_apply(f->body, old, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct patch_file files[PATCH_FILES];
	const char *old = (const char *)bytes, *text = memmem(bytes, len, MARK, strlen(MARK));
	size_t n = text ? (size_t)(text - old) : len, rest = len - n;
	struct err e = { 0 };
	int count;

	text = text ? text : old + n;
	count = patch_parse(text, rest, files, &e);
	assert(count <= PATCH_FILES && count != 0);
	assert(count > 0 || (e.kind == ERR_INVALID && e.msg[0]));
	for (int i = 0; i < count; i++) {
		patch_check_view(files[i].path, text, rest);
		patch_check_view(files[i].body, text, rest);
		if (files[i].move.n)
			patch_check_view(files[i].move, text, rest);
		patch_check_file(&files[i], old, n);
	}
	patch_check_identity(old, n);
	patch_check_apply((struct patch_text){ text, rest }, old, n);
	return 0;
}
