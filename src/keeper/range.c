/* range.c - see range.h. */
#include "keeper/range.h"

#include <assert.h>

static uint64_t *word(struct ranges *r, uint32_t n, uint64_t *out_bit)
{
	*out_bit = UINT64_C(1) << (n % 64);
	return &r->taken[n / 64];
}

static uint32_t number(uint32_t uid_base)
{
	uint32_t n = (uid_base - RANGE_FIRST_UID) / RANGE_STRIDE;

	assert(uid_base >= RANGE_FIRST_UID && n < RANGE_COUNT);
	return n;
}

int range_take(struct ranges *r, uint32_t *out_uid_base, struct err *e)
{
	for (uint32_t i = 0; i < RANGE_COUNT; i++) {
		uint32_t n = (r->next + i) % RANGE_COUNT;
		uint64_t bit, *w = word(r, n, &bit);

		if (*w & bit)
			continue;
		*w |= bit;
		r->next = n + 1;
		*out_uid_base = RANGE_FIRST_UID + n * RANGE_STRIDE;
		return 0;
	}
	return err_set(e, ERR_LIMIT, "all %u id ranges are in use", RANGE_COUNT);
}

void range_mark(struct ranges *r, uint32_t uid_base)
{
	uint64_t bit, *w = word(r, number(uid_base), &bit);

	*w |= bit;
}

void range_free(struct ranges *r, uint32_t uid_base)
{
	uint64_t bit, *w = word(r, number(uid_base), &bit);

	assert(*w & bit);
	*w &= ~bit;
}
