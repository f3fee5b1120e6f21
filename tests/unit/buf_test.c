/* buf_test.c - text that grows. */
#include "base/buf.h"
#include "tap.h"

#include <stdlib.h>

TEST(zero_is_an_empty_string)
{
	struct buf b = { 0 };

	CHECK_STR(buf_str(&b), "");
	CHECK_INT(b.len, 0);
	buf_fini(&b);
}

TEST(adding_nothing_needs_no_memory)
{
	struct buf b = { 0 };

	buf_add(&b, NULL, 0);
	buf_puts(&b, "");
	buf_grew(&b, 0);
	CHECK(!b.p);
}

TEST(pieces_come_out_in_order)
{
	auto_buf struct buf b = { 0 };

	buf_puts(&b, "box ");
	buf_printf(&b, "%s has %d", "7f3a", 12);
	buf_putc(&b, '!');
	CHECK_STR(buf_str(&b), "box 7f3a has 12!");
	CHECK_INT(b.len, 16);
}

TEST(bytes_may_hold_a_nul)
{
	auto_buf struct buf b = { 0 };

	buf_add(&b, "a\0b", 3);
	CHECK_INT(b.len, 3);
	CHECK(memcmp(buf_str(&b), "a\0b", 4) == 0);
}

TEST(it_is_terminated_at_every_length)
{
	auto_buf struct buf b = { 0 };

	for (size_t i = 0; i < 5000; i++) {
		buf_putc(&b, 'x');
		CHECK_INT(b.len, i + 1);
		CHECK_INT(strlen(buf_str(&b)), i + 1);
	}
}

TEST(a_format_longer_than_the_room_fits)
{
	auto_buf struct buf b = { 0 };

	buf_printf(&b, "%0*d", 10000, 7);
	CHECK_INT(b.len, 10000);
	CHECK_STR(buf_str(&b) + 9998, "07");
}

TEST(growth_is_by_doubling)
{
	auto_buf struct buf b = { 0 };
	unsigned moves = 0;
	size_t room = 0;

	for (unsigned i = 0; i < 1u << 20; i++) {
		buf_putc(&b, 'x');
		moves += b.room != room;
		room = b.room;
	}
	CHECK(moves < 20);
}

TEST(space_is_written_by_others_and_then_counted)
{
	auto_buf struct buf b = { 0 };

	buf_puts(&b, "he");
	memset(buf_space(&b, 100), 'l', 100);
	CHECK_INT(b.len, 2);
	memcpy(buf_space(&b, 100), "llo", 3);
	buf_grew(&b, 3);
	CHECK_STR(buf_str(&b), "hello");
}

TEST(a_cut_keeps_the_front_and_the_memory)
{
	auto_buf struct buf b = { 0 };
	const char *before;

	buf_puts(&b, "one two");
	before = buf_str(&b);
	buf_cut(&b, 3);
	CHECK_STR(buf_str(&b), "one");
	CHECK(buf_str(&b) == before);
	buf_cut(&b, 99);
	CHECK_STR(buf_str(&b), "one");
}

TEST(stolen_text_outlives_the_buffer)
{
	struct buf b = { 0 };
	char *s;

	buf_puts(&b, "mine");
	s = buf_steal(&b);
	CHECK_STR(buf_str(&b), "");
	buf_fini(&b);
	CHECK_STR(s, "mine");
	free(s);
}

TEST(stolen_nothing_is_an_empty_string)
{
	struct buf b = { 0 };
	char *s = buf_steal(&b);

	CHECK_STR(s, "");
	free(s);
}
