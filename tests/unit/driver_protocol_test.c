/* driver_protocol_test.c - messages of a driver, valid and invalid. */
#include "notebook/driver_protocol.h"
#include "base/cleanup.h"
#include "tap.h"

#include <stdlib.h>

static struct driver_msg t;
static struct driver_msg_event ev;
static struct err e;

static int says(const char *text, size_t n)
{
	int rc = 0;

	while (n && !rc)
		rc = driver_msg_take(&t, &text, &n, &ev, &e);
	return rc;
}

static int line(const char *text)
{
	int rc = says(text, strlen(text));

	return rc ? rc : says("\n", 1);
}

static const char *field(const char *name)
{
	const char *v = json_string_value(json_object_get(ev.doc, name));

	return v ? v : "";
}

static void clear(void)
{
	json_decref(ev.doc);
	ev.doc = NULL;
	driver_msg_fini(&t);
	t = (struct driver_msg){ 0 };
}

TEST(the_five_driver_events_are_parsed)
{
	CHECK_INT(line("{\"ev\":\"ready\",\"language\":\"python\",\"version\":\"3.11.2\"}"), 1);
	CHECK_INT(ev.kind, DRIVER_MSG_READY);
	CHECK_STR(field("version"), "3.11.2");
	clear();
	CHECK_INT(
		line("{\"ev\":\"result\",\"id\":\"7\",\"main\":true,\"data\":{\"text/plain\":\"2\"},\"extra\":{}}"),
		1);
	CHECK(ev.kind == DRIVER_MSG_RESULT && ev.cell == 7);
	CHECK_STR(field("type"), "result");
	clear();
	CHECK_INT(line("{\"ev\":\"input\",\"id\":\"7\",\"prompt\":\"name? \",\"password\":false}"),
		  1);
	CHECK_INT(ev.kind, DRIVER_MSG_INPUT);
	clear();
	CHECK_INT(
		line("{\"ev\":\"error\",\"id\":\"7\",\"name\":\"E\",\"value\":\"v\",\"frames\":[],\"text\":\"t\"}"),
		1);
	CHECK_INT(ev.kind, DRIVER_MSG_ERROR);
	clear();
	CHECK_INT(
		line("{\"ev\":\"end\",\"id\":\"999999999999999999\",\"status\":\"interrupted\",\"count\":3}"),
		1);
	CHECK(ev.kind == DRIVER_MSG_END && ev.status == DRIVER_MSG_INTERRUPTED &&
	      ev.cell == 999999999999999999u);
	clear();
}

TEST(unknown_driver_events_are_rejected)
{
	static const char *const bad[] = {
		"x",
		"[]",
		"1",
		"\"ready\"",
		"{}",
		"{\"ev\":\"nothing\"}",
		"{\"ev\":1}",
		"{\"ev\":\"ready\"}",
		"{\"ev\":\"ready\",\"language\":1}",
		"{\"ev\":\"result\",\"id\":\"1\",\"main\":true}",
		"{\"ev\":\"result\",\"id\":\"1\",\"main\":true,\"data\":[]}",
		"{\"ev\":\"result\",\"id\":1,\"main\":true,\"data\":{}}",
		"{\"ev\":\"result\",\"id\":\"0\",\"main\":true,\"data\":{}}",
		"{\"ev\":\"result\",\"id\":\"-1\",\"main\":true,\"data\":{}}",
		"{\"ev\":\"result\",\"id\":\"1x\",\"main\":true,\"data\":{}}",
		"{\"ev\":\"result\",\"id\":\"9999999999999999999\",\"main\":true,\"data\":{}}",
		"{\"ev\":\"end\",\"id\":\"1\",\"status\":\"well\"}",
		"{\"ev\":\"end\",\"id\":\"1\"}",
		"{\"ev\":\"input\",\"id\":\"1\",\"prompt\":null}",
		"{\"ev\":\"ready\",\"ev\":\"ready\",\"language\":\"x\"}",
		"{\"ev\":\"ready\",\"language\":\"\xff\"}",
		"{\"ev\":\"ready\",\"language\":\"x\"} {}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		int rc = line(bad[i]);

		if (rc != -1)
			printf("# taken: %s\n", bad[i]);
		CHECK_INT(rc, -1);
		CHECK(strstr(e.msg, "the driver sent an invalid message"));
		e.msg[0] = 0;
		clear();
	}
}

TEST(unknown_fields_are_left_out)
{
	CHECK_INT(line("{\"ev\":\"end\",\"id\":\"1\",\"status\":\"ok\",\"took\":3}"), 1);
	CHECK(!json_object_get(ev.doc, "took") && !json_object_get(ev.doc, "id"));
	clear();
}

TEST(lines_in_any_parts_are_joined)
{
	static const char text[] = "{\"ev\":\"end\",\"id\":\"1\",\"status\":\"ok\"}\n\n"
				   "{\"ev\":\"end\",\"id\":\"2\",\"status\":\"error\"}\n";
	const char *at = text;
	size_t n = strlen(text);
	int seen = 0;

	for (size_t i = 0; i < n; i++) {
		if (says(text + i, 1) == 1) {
			seen++;
			CHECK_INT(ev.cell, seen);
			json_decref(ev.doc);
			ev.doc = NULL;
		}
	}
	CHECK_INT(seen, 2);
	while (n)
		if (driver_msg_take(&t, &at, &n, &ev, &e) == 1) {
			seen++;
			json_decref(ev.doc);
		}
	ev.doc = NULL;
	CHECK_INT(seen, 4);
	clear();
}

TEST(a_line_over_the_limit_is_rejected)
{
	size_t piece = 1 << 20, told = 0;
	char *text = malloc(piece);

	memset(text, ' ', piece);
	while (told <= DRIVER_MSG_LINE + piece && says(text, piece) == 0)
		told += piece;
	CHECK_INT(told, DRIVER_MSG_LINE);
	free(text);
	clear();
}

TEST(a_line_with_too_many_values_is_rejected_before_parsing)
{
	size_t n = 0, room = DRIVER_MSG_NODES * 2 + 100;
	char *text = malloc(room);

	n += (size_t)sprintf(
		text,
		"{\"ev\":\"result\",\"id\":\"1\",\"main\":true,\"data\":{},\"extra\":{\"a\":[0");
	for (int i = 0; i < DRIVER_MSG_NODES; i++, n += 2)
		memcpy(text + n, ",0", 2);
	n += (size_t)sprintf(text + n, "]}}\n");
	CHECK_INT(says(text, n), -1);
	CHECK(strstr(e.msg, "too many"));
	free(text);
	clear();
}

TEST(commas_in_a_string_do_not_count_as_values)
{
	size_t n = 0, room = DRIVER_MSG_NODES * 4;
	char *text = malloc(room);

	n += (size_t)sprintf(
		text,
		"{\"ev\":\"result\",\"id\":\"1\",\"main\":true,\"data\":{\"text/plain\":\"\\\"");
	memset(text + n, ',', DRIVER_MSG_NODES * 2);
	n += DRIVER_MSG_NODES * 2;
	n += (size_t)sprintf(text + n, "\"}}\n");
	CHECK_INT(says(text, n), 1);
	free(text);
	clear();
}

TEST(after_a_gap_parsing_continues_with_the_next_line)
{
	static const char text[] = "of a line\n{\"ev\":\"end\",\"id\":\"2\",\"status\":\"ok\"}\n";

	CHECK_INT(says("{\"ev\":", 6), 0);
	driver_msg_gap(&t);
	CHECK_INT(says(text, strlen(text)), 1);
	CHECK_INT(ev.cell, 2);
	clear();
}

TEST(messages_to_a_driver_are_one_ascii_line)
{
	auto_buf struct buf out = { 0 };
	json_t *env = json_pack("{s:s}", "A", "b");

	driver_msg_run(&out, 12, "print('\n\xc3\xa4\0')", 13, env);
	CHECK_STR(buf_str(&out),
		  "{\"op\":\"run\",\"id\":\"12\",\"code\":\"print('\\n\\u00E4\\u0000')\","
		  "\"env\":{\"A\":\"b\"}}\n");
	json_decref(env);
	buf_cut(&out, 0);
	driver_msg_run(&out, 1, "", 0, NULL);
	CHECK_STR(buf_str(&out), "{\"op\":\"run\",\"id\":\"1\",\"code\":\"\",\"env\":{}}\n");
	buf_cut(&out, 0);
	driver_msg_input(&out, 3, NULL, 0);
	CHECK_STR(buf_str(&out), "{\"op\":\"input\",\"id\":\"3\",\"text\":null}\n");
	buf_cut(&out, 0);
	driver_msg_input(&out, 3, "yes", 3);
	CHECK_STR(buf_str(&out), "{\"op\":\"input\",\"id\":\"3\",\"text\":\"yes\"}\n");
}
