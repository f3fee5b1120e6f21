/* uid_range_test.c - uid ranges of boxes do not overlap. */
#include "base/cleanup.h"
#include "keeper/uid_range.h"
#include "tap.h"

static int overlap(uint32_t a, uint32_t b)
{
	return a < b ? b - a < RANGE_SIZE : a - b < RANGE_SIZE;
}

TEST(uid_ranges_of_running_boxes_do_not_overlap)
{
	static struct uid_ranges r;
	uint32_t base[64];
	struct err e;

	for (unsigned i = 0; i < ARRAY_LEN(base); i++) {
		CHECK(uid_range_take(&r, &base[i], &e) == 0);
		CHECK(base[i] >= RANGE_FIRST_UID);
		for (unsigned k = 0; k < i; k++)
			CHECK(!overlap(base[i], base[k]));
	}
}

TEST(a_uid_range_is_reused_as_late_as_possible)
{
	static struct uid_ranges r;
	uint32_t first, other;
	struct err e;

	CHECK(uid_range_take(&r, &first, &e) == 0);
	uid_range_free(&r, first);
	for (unsigned i = 1; i < RANGE_PER_SHARE; i++) {
		CHECK(uid_range_take(&r, &other, &e) == 0);
		CHECK(other != first);
		uid_range_free(&r, other);
	}
	CHECK(uid_range_take(&r, &other, &e) == 0);
	CHECK_INT(other, first);
}

TEST(a_uid_range_in_use_is_not_allocated)
{
	static struct uid_ranges r;
	uint32_t first = RANGE_FIRST_UID, got;
	struct err e;

	uid_range_mark(&r, first);
	CHECK(uid_range_take(&r, &got, &e) == 0);
	CHECK(!overlap(got, first));
}

TEST(shares_do_not_overlap_and_end_below_the_last_id)
{
	static struct uid_ranges a, b = { .first = RANGE_PER_SHARE, .next = RANGE_PER_SHARE };
	uint32_t last = 0, next;
	struct err e;

	for (unsigned i = 0; i < RANGE_PER_SHARE; i++)
		CHECK(uid_range_take(&a, &last, &e) == 0);
	CHECK(uid_range_take(&b, &next, &e) == 0);
	CHECK(next > last && !overlap(next, last));
	CHECK(RANGE_FIRST_UID + (uint64_t)RANGE_COUNT * RANGE_STRIDE < UINT32_MAX);
}

TEST(allocation_fails_when_all_uid_ranges_are_taken)
{
	static struct uid_ranges r;
	uint32_t base;
	struct err e;

	for (unsigned i = 0; i < RANGE_PER_SHARE; i++)
		CHECK(uid_range_take(&r, &base, &e) == 0);
	CHECK(uid_range_take(&r, &base, &e) < 0);
	CHECK_INT(e.kind, ERR_LIMIT);
}
