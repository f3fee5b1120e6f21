/* cron_fuzz.c - an expression that is accepted has words, and its next time is later and stable. */
#include "fuzz.h"
#include "schedule/cron.h"
#include "schedule/zone.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const int64_t after = 1800000000;
	char text[CRON_TEXT + 50], words[CRON_WORDS];
	struct zone *z;
	struct cron c;
	int64_t next, again;
	struct err e;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, bytes, len);
	text[len] = 0;
	if (cron_parse(&c, text, &e) < 0) {
		assert((e.kind == ERR_INVALID || e.kind == ERR_LIMIT) && e.msg[0]);
		return 0;
	}
	cron_words(&c, words);
	assert(words[0]);
	if (zone_load(&z, "UTC", &e) < 0)
		return 0;
	if (cron_next(&c, z, after - 7, after, &next)) {
		assert(next > after);
		assert(cron_next(&c, z, after - 7, next - 1, &again) && again == next);
	} else {
		assert(c.kind == CRON_AT || c.kind == CRON_ONCE);
	}
	zone_free(z);
	return 0;
}
