/* zone_fuzz.c - a file of a time zone that is accepted has an offset and a moment for each local time. */
#include "fuzz.h"
#include "schedule/zone.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct zone *z;
	struct err e;

	if (zone_parse(&z, "fuzzed", bytes, len, &e) < 0) {
		assert(e.kind == ERR_INVALID);
		return 0;
	}
	for (int64_t local = -2000000000; local < 7000000000; local += 333333333) {
		int64_t utc;

		zone_resolve(z, local, &utc);
		assert(zone_offset(z, utc) >= -26 * 3600 && zone_offset(z, utc) <= 26 * 3600);
		assert(zone_next_change(z, utc) > utc);
	}
	zone_free(z);
	return 0;
}
