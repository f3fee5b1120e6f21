/* frame_test.c - the size table: every type, every length. */
#include "wire/frame.h"
#include "tap.h"

static union {
	struct frame head;
	unsigned char bytes[WIRE_MAX + 8];
} packet;

static int check(uint8_t version, uint8_t type, uint32_t len)
{
	packet.head = (struct frame){ .version = version, .type = type };
	return frame_check(&packet, len);
}

static int takes_tail(uint8_t type)
{
	return check(WIRE_VERSION, type, frame_body(type) + 1) == 0;
}

TEST(every_known_type_is_accepted_at_its_size_and_not_below)
{
	unsigned known = 0;

	for (unsigned type = 0; type < 256; type++) {
		uint32_t body = frame_body((uint8_t)type);

		if (!body)
			continue;
		known++;
		CHECK(body >= sizeof(struct frame));
		CHECK_INT(check(WIRE_VERSION, (uint8_t)type, body), 0);
		for (uint32_t len = 0; len < body; len++)
			CHECK_INT(check(WIRE_VERSION, (uint8_t)type, len), -1);
	}
	printf("# %u types\n", known);
	CHECK(known > 40);
}

TEST(a_frame_tail_is_accepted_up_to_the_largest_frame)
{
	for (unsigned type = 0; type < 256; type++) {
		uint32_t body = frame_body((uint8_t)type);
		int want;

		if (!body)
			continue;
		want = takes_tail((uint8_t)type) ? 0 : -1;
		for (uint32_t len = body + 1; len <= WIRE_MAX; len += 997)
			CHECK_INT(check(WIRE_VERSION, (uint8_t)type, len), want);
		CHECK_INT(check(WIRE_VERSION, (uint8_t)type, WIRE_MAX + 1), -1);
	}
	CHECK(takes_tail(WIRE_START) && takes_tail(WIRE_CREATE) && takes_tail(WIRE_DATA));
	CHECK(!takes_tail(WIRE_PERSIST) && !takes_tail(WIRE_EXIT) && !takes_tail(WIRE_BOX));
}

TEST(unknown_types_have_no_size_and_no_name)
{
	const uint8_t unknown[] = { 0, 46, 47, 79, 111, 200, 255 };

	for (unsigned i = 0; i < sizeof(unknown); i++) {
		CHECK_INT(frame_body(unknown[i]), 0);
		CHECK_STR(frame_name(unknown[i]), "?");
		CHECK_INT(check(WIRE_VERSION, unknown[i], sizeof(struct frame)), -1);
	}
	CHECK_STR(frame_name(WIRE_START), "START");
}

TEST(a_frame_of_another_version_is_rejected)
{
	for (unsigned version = 0; version < 256; version++)
		CHECK_INT(check((uint8_t)version, WIRE_INFO, sizeof(struct frame)),
			  version == WIRE_VERSION ? 0 : -1);
}

TEST(the_tier_is_four_bits_of_the_flags_of_create)
{
	for (unsigned tier = 0; tier < 16; tier++) {
		uint16_t flags =
			wire_tier_flags(tier) | WIRE_CREATE_COLD | WIRE_CREATE_HOST_WRITABLE;

		CHECK_INT(wire_tier_of(flags), tier);
		CHECK_INT(flags & ~WIRE_CREATE_TIER, WIRE_CREATE_COLD | WIRE_CREATE_HOST_WRITABLE);
	}
	CHECK_INT(wire_tier_of(0x00ff), WIRE_TIER_CONTAINER);
	CHECK_INT(wire_tier_of(0xf000), WIRE_TIER_CONTAINER);
	CHECK_INT(wire_tier_flags(WIRE_TIER_COUNT + 16), wire_tier_flags(WIRE_TIER_COUNT));
}

/* Older keepers have a `warm` of 32 bits, 0 or 1, at the place of `warm` and `tier`. */
TEST(a_box_of_an_older_keeper_is_a_container)
{
	uint32_t warm = 1;
	struct wire_box box = { .tier = WIRE_TIER_MICROVM };

	CHECK_INT(sizeof(struct wire_box), 8 + 16 + 32 + 40 + 2 * 8 + 6 * 4);
	memcpy(&box.warm, &warm, sizeof(warm));
	CHECK_INT(box.warm, 1);
	CHECK_INT(box.tier, WIRE_TIER_CONTAINER);
}

TEST(all_facts_fit_into_one_frame)
{
	CHECK(sizeof(struct frame) + WIRE_TIER_COUNT * sizeof(struct wire_tier_facts) <= WIRE_MAX);
}

/* Both ends copy these structs as bytes: padding would send bytes of the stack. The compiler can
 * clear padding on request, which shows where it is. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
#define CAN_SEE_HOLES
#endif
#endif

#ifdef CAN_SEE_HOLES
#define HOLES(type)                                                                                \
	({                                                                                         \
		struct type filled;                                                                \
		unsigned holes = 0;                                                                \
		memset(&filled, 0xff, sizeof(filled));                                             \
		__builtin_clear_padding(&filled);                                                  \
		for (unsigned i = 0; i < sizeof(filled); i++)                                      \
			holes += ((unsigned char *)&filled)[i] != 0xff;                            \
		holes;                                                                             \
	})

TEST(wire_structs_have_no_padding)
{
	CHECK_INT(HOLES(frame), 0);
	CHECK_INT(HOLES(wire_create), 0);
	CHECK_INT(HOLES(wire_id), 0);
	CHECK_INT(HOLES(wire_pool_size), 0);
	CHECK_INT(HOLES(wire_volume), 0);
	CHECK_INT(HOLES(wire_limit), 0);
	CHECK_INT(HOLES(wire_layer_make), 0);
	CHECK_INT(HOLES(wire_layer), 0);
	CHECK_INT(HOLES(wire_layer_unpack), 0);
	CHECK_INT(HOLES(wire_root_make), 0);
	CHECK_INT(HOLES(wire_root), 0);
	CHECK_INT(HOLES(wire_pool_root), 0);
	CHECK_INT(HOLES(wire_box), 0);
	CHECK_INT(HOLES(wire_counters), 0);
	CHECK_INT(HOLES(wire_info), 0);
	CHECK_INT(HOLES(wire_tier_facts), 0);
	CHECK_INT(HOLES(wire_error), 0);
	CHECK_INT(HOLES(wire_start), 0);
	CHECK_INT(HOLES(wire_signal), 0);
	CHECK_INT(HOLES(wire_resize), 0);
	CHECK_INT(HOLES(wire_output_window), 0);
	CHECK_INT(HOLES(wire_connect), 0);
	CHECK_INT(HOLES(wire_started), 0);
	CHECK_INT(HOLES(wire_output), 0);
	CHECK_INT(HOLES(wire_attached), 0);
	CHECK_INT(HOLES(wire_stdin_window), 0);
	CHECK_INT(HOLES(wire_exit), 0);
	CHECK_INT(HOLES(wire_exec), 0);
	CHECK_INT(HOLES(wire_status), 0);
	CHECK_INT(HOLES(wire_put), 0);
	CHECK_INT(HOLES(wire_get), 0);
	CHECK_INT(HOLES(wire_list), 0);
	CHECK_INT(HOLES(wire_search), 0);
	CHECK_INT(HOLES(wire_hit), 0);
	CHECK_INT(HOLES(wire_socket), 0);
	CHECK_INT(HOLES(wire_event), 0);
	CHECK_INT(HOLES(wire_changes), 0);
	CHECK_INT(HOLES(wire_entry), 0);
}
#else
TEST(wire_structs_have_no_padding)
{
	SKIP("this compiler cannot point at the holes; gcc can");
}
#endif
