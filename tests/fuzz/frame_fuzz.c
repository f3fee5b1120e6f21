/* frame_fuzz.c - any bytes as a frame: an accepted frame has the length of its type. */
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
