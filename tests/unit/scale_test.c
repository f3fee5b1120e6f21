/* How many nodes are wanted: the formula, the last minute, fewer nodes only after ten minutes. */
#include "cluster/scale.h"
#include "tap.h"

#define GIB (UINT64_C(1) << 30)

static struct scale_figures fleet(unsigned ready, uint64_t reserved)
{
	return (struct scale_figures){ .ready = ready,
				       .capacity = ready * 100 * GIB,
				       .reserved = reserved,
				       .least = 1,
				       .boot_ms = 120000 };
}

TEST(wanted_is_load_divided_by_the_planned_part_of_a_node)
{
	static const struct {
		unsigned ready;
		uint64_t reserved, refused, created;
		unsigned wanted;
	} rows[] = {
		{ 3, 0, 0, 0, 1 },
		{ 3, 80 * GIB, 0, 0, 1 },
		{ 3, 81 * GIB, 0, 0, 2 },
		{ 3, 240 * GIB, 0, 0, 3 },
		{ 3, 240 * GIB, 1 * GIB, 0, 4 },
		/* 30 GiB per minute for the 2 minutes that a new node needs */
		{ 3, 200 * GIB, 0, 30 * GIB, 4 },
		{ 0, 0, 0, 0, 1 },
		{ 0, 0, 500 * GIB, 0, 1 },
		{ 1, UINT64_MAX / 2, 0, 0, SCALE_NODES_MAX },
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scale_figures f = fleet(rows[i].ready, rows[i].reserved);

		CHECK_INT(scale_needed(&f, rows[i].refused, rows[i].created), rows[i].wanted);
	}
}

TEST(the_minimum_is_never_undercut)
{
	struct scale_figures f = fleet(2, 0);
	struct scale s = { 0 };

	f.least = 5;
	CHECK_INT(scale_wanted(&s, &f, 1000).wanted, 5);
	f.least = 0;
	CHECK_INT(scale_needed(&f, 0, 0), 0);
}

TEST(refusals_and_creations_count_for_a_minute)
{
	struct scale_figures f = fleet(3, 240 * GIB);
	struct scale s = { 0 };

	scale_count_refused(&s, 100 * GIB, 1000);
	scale_count_created(&s, 30 * GIB, 30000);
	/* 240 + 100 + 30/min x 2 min = 400 GiB */
	CHECK_INT(scale_wanted(&s, &f, 31000).wanted, 5);
	CHECK(scale_wanted(&s, &f, 31000).reason[0]);
	s = (struct scale){ 0 };
	scale_count_refused(&s, 100 * GIB, 1000);
	CHECK_INT(scale_wanted(&s, &f, 62000).wanted, 3);
}

TEST(fewer_nodes_are_wanted_after_ten_minutes_only)
{
	struct scale_figures busy = fleet(4, 320 * GIB), idle = fleet(4, 0);
	struct scale s = { 0 };
	uint64_t now = 5 * 60000;

	CHECK_INT(scale_wanted(&s, &busy, now).wanted, 4);
	for (unsigned minute = 1; minute < SCALE_HOLD_SLOTS; minute++)
		CHECK_INT(scale_wanted(&s, &idle, now + minute * 60000).wanted, 4);
	CHECK_INT(scale_wanted(&s, &idle, now + SCALE_HOLD_MS).wanted, 1);
	/* More are wanted at once. */
	CHECK_INT(scale_wanted(&s, &busy, now + SCALE_HOLD_MS + 1).wanted, 4);
}
