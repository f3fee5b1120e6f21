/* json_reader_test.c - large bodies are parsed by a thread, short ones first, and not for a
 * client that has disconnected. */
#include "api/json_reader.h"
#include "loop/loop.h"
#include "tap.h"

#include <stdio.h>

enum { LARGE = 2 << 20, JOBS = 6 };

static struct loop loop;
static struct json_reader *reader;
static unsigned order[JOBS], ended, awaited;

static void is_done(struct json_job *j, json_t *take_doc, const struct err *e)
{
	(void)e;
	order[ended++] = (unsigned)(uintptr_t)j->user;
	json_decref(take_doc);
	if (ended == awaited)
		loop_stop(&loop);
}

/* Characters of two bytes take the parser longest. */
static struct buf text_of(size_t bytes)
{
	struct buf text = { 0 };

	buf_puts(&text, "{\"a\":\"");
	while (text.len < bytes)
		buf_puts(&text, "\xc3\xa9");
	buf_puts(&text, "\"}");
	return text;
}

static void read_text(unsigned number, size_t bytes, struct json_job **out)
{
	struct buf text = text_of(bytes);

	CHECK_INT(json_reader_read(reader, &text, is_done, (void *)(uintptr_t)number, out), 0);
}

static void begin(unsigned jobs)
{
	struct err e;

	ended = 0;
	awaited = jobs;
	CHECK_INT(loop_init(&loop, &e), 0);
	reader = json_reader_new(&loop);
}

static void end(void)
{
	json_reader_free(reader);
	loop_fini(&loop);
}

TEST(a_short_body_does_not_wait_for_all_long_ones)
{
	struct buf texts[JOBS];
	struct json_job *job;

	begin(JOBS);
	for (unsigned i = 0; i < JOBS; i++) /* before the first one is parsed */
		texts[i] = text_of(i + 1 < JOBS ? LARGE : 20000);
	for (unsigned i = 0; i < JOBS; i++)
		CHECK_INT(json_reader_read(reader, &texts[i], is_done, (void *)(uintptr_t)i, &job),
			  0);
	loop_run(&loop);
	CHECK(order[0] == JOBS - 1 || order[1] == JOBS - 1);
	end();
}

TEST(a_body_whose_client_left_is_not_answered_and_the_others_are)
{
	struct json_job *left[2], *job;

	begin(2);
	read_text(1, LARGE, &job);
	read_text(2, LARGE, &left[0]);
	read_text(3, LARGE, &left[1]);
	read_text(4, LARGE + 1000, &job);
	json_job_cancel(left[0]);
	json_job_cancel(left[1]);
	loop_run(&loop);
	CHECK_INT(order[0], 1);
	CHECK_INT(order[1], 4);
	end();
}
