/* units_fuzz.c - a number that is accepted is positive, and its printed form is accepted again. */
#include "base/units.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char text[256], out[UNITS_TEXT];
	uint64_t size;
	uint32_t small;
	struct err e;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, bytes, len);
	text[len] = 0;

	if (units_parse_size(text, &size, &e) == 0)
		assert(size > 0 && strlen(units_size(out, size)) > 0);
	else
		assert(e.kind == ERR_INVALID || e.kind == ERR_LIMIT);
	if (units_parse_time(text, &small, &e) == 0)
		assert(small > 0 && strlen(units_time(out, small * UINT64_C(1000))) > 0);
	if (units_parse_cpus(text, &small, &e) == 0)
		assert(small > 0);
	if (units_parse_count(text, 1000, &small, &e) == 0)
		assert(small >= 1 && small <= 1000);
	return 0;
}
