/* tier_test.c - the table of isolation tiers. */
#include "tier/tier.h"
#include "tap.h"

#include <string.h>

TEST(every_tier_of_the_table_is_found_by_number_and_by_name)
{
	for (unsigned i = 0; i < WIRE_TIER_COUNT; i++) {
		const struct tier *t = tier_find(i);

		if (!t)
			continue;
		CHECK_STR(t->name, tier_name(i));
		CHECK_INT(tier_number(t), i);
		CHECK(tier_named(t->name) == t);
		CHECK(t->pids_times >= 1);
		CHECK(t->mem_times >= 1 && tier_outer_memory(t, 1 << 20) >= 1 << 20);
		CHECK(i == WIRE_TIER_CONTAINER || i == WIRE_TIER_WASM || t->outer_box);
		CHECK((t->unsupported >> WIRE_NEED_COUNT) == 0);
	}
	CHECK(tier_find(WIRE_TIER_CONTAINER));
}

TEST(an_unknown_tier_has_no_row_and_no_name)
{
	CHECK(!tier_find(WIRE_TIER_COUNT));
	CHECK(!tier_find(~0u));
	CHECK(!tier_named(""));
	CHECK(!tier_named("Container"));
	CHECK_STR(tier_name(WIRE_TIER_COUNT), "?");
	CHECK_STR(tier_need_name(WIRE_NEED_COUNT), "?");
	for (unsigned i = 0; i < WIRE_NEED_COUNT; i++)
		CHECK(tier_need_name(i) && tier_need_name(i)[0]);
}

TEST(facts_of_a_tier_that_is_not_in_this_build_support_nothing)
{
	struct tier_host h = { .dir = -1, .init_exe = -1, .mux_exe = -1 };
	struct wire_tier_facts f;
	struct err e;

	tier_probe(WIRE_TIER_COUNT, &h, &f);
	CHECK_INT(f.state, WIRE_TIER_UNAVAILABLE);
	CHECK(f.reason[0]);
	CHECK_INT(tier_supports(&f, 1, &e), -1);
}

TEST(the_first_unsupported_need_is_rejected_by_name)
{
	struct wire_tier_facts f = { .tier = WIRE_TIER_MICROVM,
				     .unsupported = 1u << WIRE_NEED_LAYERS | 1u << WIRE_NEED_GPU };
	struct err e;

	CHECK_INT(tier_supports(&f, 1u << WIRE_NEED_VOLUME, &e), 0);
	CHECK_INT(tier_supports(&f, 1u << WIRE_NEED_GPU | 1u << WIRE_NEED_LAYERS, &e), -1);
	CHECK(strstr(e.msg, "microvm") && strstr(e.msg, "layers of packages"));
	CHECK_INT(e.kind, ERR_DENIED);
}
