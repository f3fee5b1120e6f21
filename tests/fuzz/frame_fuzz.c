/* frame_fuzz.c - whatever arrives, a frame that passes is as long as its type says. */
#include "wire/frame.h"
#include "fuzz.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const struct frame *f = (const void *)bytes;

	if (frame_check(bytes, (uint32_t)len) < 0)
		return 0;
	assert(len >= sizeof(*f) && len <= WIRE_MAX);
	assert(f->version == WIRE_VERSION);
	assert(frame_body(f->type) >= sizeof(*f) && frame_body(f->type) <= len);
	assert(frame_name(f->type)[0] != '?');
	return 0;
}
