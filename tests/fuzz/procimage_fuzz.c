/* procimage_fuzz.c - any bytes as a process image, and a valid image with any bytes of it changed: what is
 * accepted becomes lists of calls within their bound. */
#include "fuzz.h"
#include "procimage/arch.h"
#include "procimage/image.h"
#include "procimage/plan.h"
#include "procimage/zygote_memory.h"
#include "../procimage_sample.h"

#include <assert.h>

static void use(const struct image *im)
{
	static char frame[ARCH_FRAME_MOST];
	struct call_list l = { 0 };
	struct plan_tree tree;
	struct err e = { 0 };
	struct call_data d = { .at = 0x10000, .most = zygote_memory_bound(im) };
	const struct arch_code none = { 0 };

	if (procimage_check_tree(&im, 1, &e) < 0)
		return;
	tree = plan_tree_of(&im, 1, 0);
	plan_add_objects(&tree, &l, &d);
	plan_add_program(&tree, im, &l, &d);
	for (uint64_t i = 0; i < im->header.count[TABLE_THREADS]; i++) {
		const struct image_thread *t = &image_threads(im)[i];

		plan_add_thread(im, t, &l, &d);
		assert(arch_build_frame(frame, 0x20000, &none, t,
					(const char *)im->table[TABLE_VECTORS].at + t->vector_at) <=
		       sizeof(frame));
	}
	assert(d.len <= d.most && plan_count_outside(&im, 1) <= RESTORER_OUTSIDE + 1);
	call_list_fini(&l);
	free(d.bytes);
}

static void try_bytes(const char *bytes, size_t len)
{
	struct image im;
	struct err e = { 0 };
	char *copy = malloc(len + 1);

	memcpy(copy, bytes, len);
	if (procimage_decode(&im, copy, len, &e) == 0)
		use(&im);
	else
		assert(e.kind && e.msg[0]);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static char *valid;
	static size_t valid_len;
	char *changed;

	if (!valid) {
		struct image im;
		struct err e = { 0 };

		sample_make(&im);
		valid = sample_encode(&im, &valid_len, &e);
		assert(valid);
		procimage_fini(&im);
	}
	try_bytes((const char *)bytes, len);
	changed = malloc(valid_len);
	memcpy(changed, valid, valid_len);
	/* Two bytes of an offset, one byte of a value. */
	for (size_t i = 0; i + 3 <= len; i += 3)
		changed[((size_t)bytes[i] << 8 | bytes[i + 1]) % valid_len] = (char)bytes[i + 2];
	try_bytes(changed, valid_len);
	free(changed);
	return 0;
}
