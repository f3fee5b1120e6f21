/* cell_test.c - events of a cell: in order, from any offset, bounded. */
#include "notebook/cell.h"
#include "tap.h"

#include <stdlib.h>

static struct cell *c;
static struct cell_reader r;
static int news;

static void count(struct cell_reader *x)
{
	(void)x;
	news++;
}

static void begin(uint64_t o, uint64_t e, uint64_t ch)
{
	r = (struct cell_reader){ .told = { o, e, ch }, .news = count };
	cell_read(c, &r);
}

static void say(uint64_t end, const char *type)
{
	cell_event(c, end, json_pack("{s:s}", "type", type));
}

/* All that is left for the reader, as "o:abc e:x {...} end". */
static const char *rest(size_t most)
{
	static char out[4096];
	size_t n = 0;

	out[0] = 0;
	for (;;) {
		struct cell_piece p = cell_next(&r, most);

		if (p.what == CELL_NOTHING)
			return out;
		if (p.what == CELL_END) {
			snprintf(out + n, sizeof(out) - n, "end");
			return out;
		}
		n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s ",
				      p.what == CELL_STDOUT   ? "o:"
				      : p.what == CELL_STDERR ? "e:"
							      : "",
				      (int)p.n, p.bytes);
		cell_told(&r, &p);
	}
}

static void over(void)
{
	cell_over(c, json_pack("{s:s}", "status", "ok"));
}

TEST(events_are_read_in_the_order_of_arrival)
{
	c = cell_new();
	begin(0, 0, 0);
	cell_output(c, 0, 0, "ab", 2);
	say(10, "result");
	cell_output(c, 1, 0, "x", 1);
	cell_output(c, 0, 2, "cd", 2);
	say(20, "input");
	cell_output(c, 0, 4, "ef", 2);
	over();
	CHECK_STR(rest(100), "o:ab {\"type\":\"result\"} o:cd e:x {\"type\":\"input\"} o:ef end");
	cell_unread(&r);
	cell_unref(c);
}

TEST(reading_from_any_offset_returns_exactly_the_rest)
{
	char all[4096];

	for (uint64_t o = 0; o <= 6; o++)
		for (size_t most = 1; most < 4; most++) {
			char want[64];

			c = cell_new();
			cell_output(c, 0, 0, "abc", 3);
			cell_output(c, 0, 3, "def", 3); /* perhaps in other pieces than before */
			over();
			begin(o, 0, 0);
			want[0] = all[0] = 0;
			for (;;) {
				struct cell_piece p = cell_next(&r, most);

				if (p.what == CELL_END)
					break;
				strncat(all, p.bytes, p.n);
				cell_told(&r, &p);
			}
			snprintf(want, sizeof(want), "%s", &"abcdef"[o]);
			CHECK_STR(all, want);
			cell_unread(&r);
			cell_unref(c);
		}
}

TEST(an_event_before_the_offset_is_not_repeated)
{
	c = cell_new();
	cell_output(c, 0, 0, "ab", 2);
	say(10, "result");
	say(30, "error");
	over();
	begin(2, 0, 10);
	CHECK_STR(rest(9), "{\"type\":\"error\"} end");
	cell_unread(&r);
	begin(1, 0, 30); /* a position inside a character is answered, too */
	CHECK_STR(rest(9), "o:b end");
	cell_unread(&r);
	begin(99, 99, 99);
	CHECK_STR(rest(9), "end");
	cell_unread(&r);
	cell_unref(c);
}

TEST(output_over_the_limit_is_counted_and_not_stored)
{
	static char much[100000];

	c = cell_new();
	c->max_output = 5;
	memset(much, 'x', sizeof(much));
	for (uint64_t i = 0; i < 1000; i++)
		cell_output(c, 0, i * sizeof(much), much, sizeof(much));
	CHECK(c->truncated && c->out[0].len == 5 && c->seen[0] == 1000 * sizeof(much));
	say(1, "result");
	over();
	begin(0, 0, 0);
	CHECK_STR(rest(9), "o:xxxxx {\"type\":\"result\"} end");
	CHECK(json_is_true(json_object_get(c->end, "truncated")));
	cell_unread(&r);
	cell_unref(c);
	CHECK_INT(cell_held(), 0);
}

TEST(the_number_of_events_is_limited_and_the_end_is_still_stored)
{
	c = cell_new();
	for (uint64_t i = 1; i < 2000000 && !c->truncated; i++)
		say(i, "result");
	CHECK(c->truncated && c->event_bytes <= CELL_EVENTS);
	over();
	CHECK_INT(c->state, CELL_OVER);
	cell_unref(c);
	CHECK_INT(cell_held(), 0);
}

TEST(lost_bytes_are_reported)
{
	c = cell_new();
	cell_output(c, 0, 10, "tail", 4); /* the first ten are gone */
	over();
	begin(3, 0, 0);
	CHECK_STR(rest(9), "o:tail end");
	CHECK(c->truncated);
	cell_unread(&r);
	cell_unref(c);
	c = cell_new();
	cell_output(c, 0, 0, "head", 4);
	cell_output(c, 0, 10, "tail", 4); /* output after a gap is not shown as if it followed */
	over();
	begin(0, 0, 0);
	CHECK_STR(rest(9), "o:head end");
	cell_unread(&r);
	cell_unref(c);
}

TEST(no_event_is_added_after_the_end)
{
	c = cell_new();
	over();
	cell_output(c, 0, 0, "late", 4);
	say(3, "result");
	over();
	begin(0, 0, 0);
	CHECK_STR(rest(9), "end");
	cell_unread(&r);
	cell_unref(c);
}

TEST(readers_are_notified_and_may_detach)
{
	struct cell_reader other = { .news = count };

	c = cell_new();
	begin(0, 0, 0);
	cell_read(c, &other);
	news = 0;
	cell_tell(c);
	CHECK_INT(news, 2);
	cell_unread(&r);
	cell_unread(&r);
	cell_tell(c);
	CHECK_INT(news, 3);
	cell_unref(c); /* the reader keeps it */
	cell_output(other.cell, 0, 0, "x", 1);
	cell_unread(&other);
	CHECK_INT(cell_held(), 0);
}
