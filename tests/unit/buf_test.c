/* buf_test.c - growing text buffers. */
#include "base/buf.h"
#include "tap.h"

#include <stdlib.h>

TEST(a_zeroed_buffer_is_an_empty_string)
{
	struct buf b = { 0 };

	CHECK_STR(buf_str(&b), "");
	CHECK_INT(b.len, 0);
	buf_fini(&b);
}

TEST(adding_nothing_allocates_nothing)
{
	struct buf b = { 0 };

	buf_add(&b, NULL, 0);
	buf_puts(&b, "");
	buf_grew(&b, 0);
	CHECK(!b.p);
}

TEST(added_parts_are_in_order)
{
	auto_buf struct buf b = { 0 };

	buf_puts(&b, "box ");
	buf_printf(&b, "%s has %d", "7f3a", 12);
	buf_putc(&b, '!');
	CHECK_STR(buf_str(&b), "box 7f3a has 12!");
	CHECK_INT(b.len, 16);
}

TEST(bytes_may_contain_a_nul)
{
	auto_buf struct buf b = { 0 };

	buf_add(&b, "a\0b", 3);
	CHECK_INT(b.len, 3);
	CHECK(memcmp(buf_str(&b), "a\0b", 4) == 0);
}

TEST(a_buffer_is_nul_terminated_at_every_length)
{
	auto_buf struct buf b = { 0 };

	for (size_t i = 0; i < 5000; i++) {
		buf_putc(&b, 'x');
		CHECK_INT(b.len, i + 1);
		CHECK_INT(strlen(buf_str(&b)), i + 1);
	}
}

TEST(formatted_text_longer_than_the_capacity_fits)
{
	auto_buf struct buf b = { 0 };

	buf_printf(&b, "%0*d", 10000, 7);
	CHECK_INT(b.len, 10000);
	CHECK_STR(buf_str(&b) + 9998, "07");
}

TEST(the_capacity_grows_by_doubling)
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

TEST(reserved_space_is_counted_after_it_is_written)
{
	auto_buf struct buf b = { 0 };

	buf_puts(&b, "he");
	memset(buf_space(&b, 100), 'l', 100);
	CHECK_INT(b.len, 2);
	memcpy(buf_space(&b, 100), "llo", 3);
	buf_grew(&b, 3);
	CHECK_STR(buf_str(&b), "hello");
}

TEST(truncation_keeps_the_beginning_and_the_memory)
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

TEST(stolen_text_is_valid_after_the_buffer_is_freed)
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

TEST(stealing_from_an_empty_buffer_returns_an_empty_string)
{
	struct buf b = { 0 };
	char *s = buf_steal(&b);

	CHECK_STR(s, "");
	free(s);
}
