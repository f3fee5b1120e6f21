/* control_test.c - messages of the control connection: what is accepted, and why the rest is not. */
#include "cluster/control.h"
#include "tap.h"

#include <jansson.h>
#include <stdlib.h>

static struct err e;
static struct control_message m;

static int parse(int from_node, const char *line)
{
	e.msg[0] = 0;
	return control_parse(line, strlen(line), from_node, &m, &e);
}

#define BEAT(load, memory, more)                                                                   \
	"{\"heartbeat\":{\"seq\":3,\"load\":" load ",\"cpus\":4,\"memory_total\":1000,"            \
	"\"memory_free\":" memory ",\"boxes\":2,\"boxes_most\":9,\"pool\":1,\"refusals\":0,"       \
	"\"draining\":false,\"arch\":\"x86_64\"" more "}}"

TEST(a_heartbeat_has_the_figures_of_a_node)
{
	CHECK_INT(parse(1, BEAT("250", "600",
				",\"templates\":[\"00000000000000ff\",\"0000000000000001\"],"
				"\"labels\":[\"gpu=no\"],\"new\":[{}]")),
		  0);
	CHECK(m.kind == CONTROL_HEARTBEAT && m.seq == 3 && m.figures.load == 250);
	CHECK(m.figures.cpus == 4 && m.figures.memory_free == 600 && m.figures.boxes == 2);
	CHECK_STR(m.figures.arch, "x86_64");
	CHECK(m.has_templates && m.has_labels && m.figures.ntemplates == 2);
	CHECK(m.figures.templates[0] == 1 && control_has_template(&m.figures, 255));
	CHECK(!control_has_template(&m.figures, 2));
	CHECK(control_has_label(&m.figures, "gpu=no") && !control_has_label(&m.figures, "gpu"));
	control_message_fini(&m);
	CHECK_INT(parse(1, BEAT("0", "0", "")), 0);
	CHECK(!m.has_templates && !m.has_labels && !control_has_template(&m.figures, 1));
	control_message_fini(&m);
}

TEST(figures_that_cannot_be_true_are_rejected)
{
	static const struct {
		const char *line, *why;
	} rows[] = {
		{ BEAT("-1", "5", ""), "heartbeat: load is -1, not 0 to 1000" },
		{ BEAT("1001", "5", ""), "heartbeat: load is 1001, not 0 to 1000" },
		{ BEAT("1e30", "5", ""), "heartbeat: load is not a whole number" },
		{ BEAT("0.5", "5", ""), "heartbeat: load is not a whole number" },
		{ BEAT("\"NaN\"", "5", ""), "heartbeat: load is not a whole number" },
		{ BEAT("NaN", "5", ""), "invalid JSON at byte" },
		{ BEAT("1000000000000000000000000000000", "5", ""), "invalid JSON at byte" },
		{ BEAT("null", "5", ""), "heartbeat: load is not a whole number" },
		{ BEAT("1", "-5", ""), "heartbeat: memory_free is -5" },
		{ BEAT("1", "1001", ""), "heartbeat: memory_free is 1001, more than memory_total" },
		{ BEAT("1", "9007199254740993", ""), "heartbeat: memory_free is 9007199254740993" },
		{ BEAT("1", "5", ",\"templates\":{}"), "heartbeat: templates is not a list" },
		{ BEAT("1", "5", ",\"templates\":[\"zz\"]"), "heartbeat: templates[0] is not" },
		{ BEAT("1", "5", ",\"templates\":[7]"), "heartbeat: templates[0] is not" },
		{ BEAT("1", "5", ",\"labels\":[\"\"]"), "heartbeat: a label is not a text of 1" },
		{ BEAT("1", "5", ",\"labels\":[\"a\\u0007\"]"),
		  "heartbeat: a label contains a control character" },
		{ BEAT("1", "5", ",\"load\":2"), "invalid JSON at byte" },
		{ "{\"heartbeat\":{\"seq\":1}}", "heartbeat: load is missing" },
		{ "{\"heartbeat\":[]}", "heartbeat: seq is missing" },
		{ "{\"heartbeat\":7}", "heartbeat: seq is missing" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_INT(parse(1, rows[i].line), -1);
		if (strncmp(e.msg, rows[i].why, strlen(rows[i].why)) != 0)
			printf("# %s: '%s'\n", rows[i].line, e.msg);
		CHECK(strncmp(e.msg, rows[i].why, strlen(rows[i].why)) == 0);
	}
}

TEST(too_many_templates_and_labels_are_rejected)
{
	auto_buf struct buf line = { 0 };

	for (int i = 0; i <= CONTROL_TEMPLATES; i++)
		buf_printf(&line, "%s\"%016x\"", i ? "," : "", i);
	char *text = buf_text(BEAT("1", "5", ",\"templates\":[%s]"), buf_str(&line));
	int rc = parse(1, text);
	free(text);
	CHECK_INT(rc, -1);
	CHECK_STR(e.msg, "heartbeat: templates is not a list of at most 1024 hashes");
	buf_cut(&line, 0);
	for (int i = 0; i <= CONTROL_LABELS; i++)
		buf_printf(&line, "%s\"a=%d\"", i ? "," : "", i);
	text = buf_text(BEAT("1", "5", ",\"labels\":[%s]"), buf_str(&line));
	rc = parse(1, text);
	free(text);
	CHECK_INT(rc, -1);
	CHECK_STR(e.msg, "heartbeat: labels is not a list of at most 32 texts");
}

TEST(each_side_may_send_only_its_own_messages)
{
	CHECK_INT(parse(1, "{\"ack\":{\"seq\":1}}"), -1);
	CHECK_STR(e.msg, "'ack' is not a message of a node");
	CHECK_INT(parse(0, "{\"rows\":{\"last\":1,\"rows\":[]}}"), -1);
	CHECK_STR(e.msg, "'rows' is not a message of a gateway");
	CHECK_INT(parse(1, "{\"shell\":{}}"), -1);
	CHECK_INT(parse(1, "{}"), -1);
	CHECK_STR(e.msg, "not an object with one field");
	CHECK_INT(parse(1, "{\"hello\":1,\"heartbeat\":2}"), -1);
	CHECK_INT(parse(1, "[]"), -1);
	CHECK_INT(parse(1, ""), -1);
	CHECK_INT(parse(1, "{\"hello\":{\"number\":7"), -1);
	CHECK_INT(parse(1, "\xff\xfe"), -1);
	CHECK_INT(control_parse("{\"hello\"\0:1}", 12, 1, &m, &e), -1);
}

TEST(deeply_nested_lines_are_rejected_without_harm)
{
	char *line = malloc(CONTROL_LINE_NODE + 1);

	memset(line, '[', CONTROL_LINE_NODE);
	line[CONTROL_LINE_NODE] = 0;
	int rc = parse(1, line);
	free(line);
	CHECK_INT(rc, -1);
}

TEST(hellos_are_read_again_as_written)
{
	auto_buf struct buf out = { 0 };
	json_t *owned = json_pack("[s,s]", "team/a", "team/b");

	control_put_node_hello(&out, 7, "node \"seven\"", "0.1.0", 3);
	CHECK(out.p[out.len - 1] == '\n');
	CHECK_INT(control_parse(out.p, out.len - 1, 1, &m, &e), 0);
	CHECK(m.kind == CONTROL_HELLO && m.number == 7 && m.epoch == 3);
	CHECK_STR(m.name, "node \"seven\"");
	CHECK_STR(m.version, "0.1.0");
	control_message_fini(&m);
	buf_cut(&out, 0);
	control_put_gateway_hello(&out, 2, "0.2.0", 4, owned);
	json_decref(owned);
	CHECK_INT(control_parse(out.p, out.len - 1, 0, &m, &e), 0);
	CHECK(m.kind == CONTROL_HELLO && m.number == 2 && m.epoch == 4);
	CHECK_INT(json_array_size(m.body), 2);
	control_message_fini(&m);
	CHECK_INT(parse(1,
			"{\"hello\":{\"number\":0,\"name\":\"a\",\"version\":\"1\",\"epoch\":0}}"),
		  -1);
	CHECK_INT(
		parse(1,
		      "{\"hello\":{\"number\":32768,\"name\":\"a\",\"version\":\"1\",\"epoch\":0}}"),
		-1);
	CHECK_INT(parse(1,
			"{\"hello\":{\"number\":1,\"name\":\"\",\"version\":\"1\",\"epoch\":0}}"),
		  -1);
}

TEST(the_other_messages_are_read_again_as_written)
{
	auto_buf struct buf out = { 0 };
	struct control_figures f = { .seq = 9,
				     .load = 1000,
				     .cpus = 2,
				     .memory_total = 1 << 30,
				     .memory_free = 5,
				     .boxes = 1,
				     .draining = 1,
				     .arch = "aarch64" };
	uint64_t hashes[] = { control_hash("python"), 7 };
	char labels[][CONTROL_LABEL] = { "zone=a" };
	json_t *row = json_pack("[{ss}]", "id", "a");

	f.templates = hashes;
	f.ntemplates = 2;
	f.labels = labels;
	f.nlabels = 1;
	control_put_heartbeat(&out, &f, 1);
	CHECK_INT(control_parse(out.p, out.len - 1, 1, &m, &e), 0);
	CHECK(m.figures.seq == 9 && m.figures.load == 1000 && m.figures.draining == 1);
	CHECK(control_has_template(&m.figures, control_hash("python")));
	CHECK(control_has_label(&m.figures, "zone=a"));
	control_message_fini(&m);
	buf_cut(&out, 0);
	control_put_heartbeat(&out, &f, 0);
	CHECK_INT(control_parse(out.p, out.len - 1, 1, &m, &e), 0);
	CHECK(!m.has_templates && !m.has_labels);
	control_message_fini(&m);
	buf_cut(&out, 0);
	control_put_rows(&out, 12, row);
	CHECK_INT(control_parse(out.p, out.len - 1, 1, &m, &e), 0);
	CHECK(m.kind == CONTROL_ROWS_SENT && m.seq == 12 && json_array_size(m.body) == 1);
	control_message_fini(&m);
	buf_cut(&out, 0);
	control_put_ack(&out, 5);
	CHECK_INT(control_parse(out.p, out.len - 1, 0, &m, &e), 0);
	CHECK(m.kind == CONTROL_ACK && m.seq == 5);
	buf_cut(&out, 0);
	control_put_rows_kept(&out, 6);
	CHECK_INT(control_parse(out.p, out.len - 1, 0, &m, &e), 0);
	CHECK(m.kind == CONTROL_ROWS_KEPT && m.seq == 6);
	buf_cut(&out, 0);
	control_put_open(&out, 1000);
	CHECK_INT(control_parse(out.p, out.len - 1, 0, &m, &e), 0);
	CHECK(m.kind == CONTROL_OPEN_MORE && m.count == CONTROL_OPEN);
	buf_cut(&out, 0);
	control_put_order(&out, json_array_get(row, 0));
	CHECK_INT(control_parse(out.p, out.len - 1, 0, &m, &e), 0);
	CHECK(m.kind == CONTROL_ORDER && m.body);
	control_message_fini(&m);
	json_decref(row);
	CHECK_INT(parse(0, "{\"open\":65}"), -1);
	CHECK_INT(parse(0, "{\"open\":0}"), -1);
	CHECK_INT(parse(0, "{\"order\":[]}"), -1);
}

TEST(rows_have_a_limit)
{
	auto_buf struct buf out = { 0 };
	json_t *rows = json_array();

	for (int i = 0; i <= CONTROL_ROWS; i++)
		json_array_append_new(rows, json_object());
	control_put_rows(&out, 1, rows);
	json_decref(rows);
	CHECK_INT(control_parse(out.p, out.len - 1, 1, &m, &e), -1);
	CHECK_STR(e.msg, "rows: rows is not a list of at most 500 rows");
	CHECK_INT(parse(1, "{\"rows\":{\"last\":1,\"rows\":[1]}}"), -1);
	CHECK_STR(e.msg, "rows: rows[0] is not an object");
	CHECK_INT(parse(1, "{\"rows\":{\"last\":-1,\"rows\":[]}}"), -1);
	CHECK_INT(parse(1, "{\"rows\":{\"rows\":[]}}"), -1);
}

/* ---- lines ---- */

static char got[200];

static int note(void *user, const char *text, size_t len, struct err *why)
{
	(void)user;
	if (len == 3 && memcmp(text, "bad", 3) == 0)
		return err_set(why, ERR_INVALID, "bad");
	snprintf(got + strlen(got), sizeof(got) - strlen(got), "[%.*s]", (int)len, text);
	return 0;
}

TEST(bytes_become_lines_in_any_pieces)
{
	static const char all[] = "one\n\nthree\nfo";

	for (size_t piece = 1; piece < sizeof(all); piece++) {
		struct control_lines c = { .most = 5 };

		got[0] = 0;
		for (size_t at = 0; at < sizeof(all) - 1; at += piece) {
			size_t left = sizeof(all) - 1 - at;

			CHECK_INT(control_feed(&c, all + at, left < piece ? left : piece, note,
					       NULL, &e),
				  0);
		}
		CHECK_STR(got, "[one][][three]");
		CHECK_INT(c.line.len, 2);
		buf_fini(&c.line);
	}
}

TEST(a_line_that_is_too_long_ends_the_input)
{
	struct control_lines c = { .most = 5 };

	got[0] = 0;
	CHECK_INT(control_feed(&c, "ok\nlonger", 9, note, NULL, &e), -1);
	CHECK_STR(e.msg, "a line is longer than 5 bytes");
	CHECK_STR(got, "[ok]");
	CHECK_INT(control_feed(&c, "abc", 3, note, NULL, &e), 0);
	CHECK_INT(control_feed(&c, "def", 3, note, NULL, &e), -1);
	buf_fini(&c.line);
	CHECK_INT(control_feed(&c, "bad\nok\n", 7, note, NULL, &e), -1);
	CHECK_STR(got, "[ok]");
	buf_fini(&c.line);
}

TEST(minor_versions_may_differ_by_one)
{
	CHECK_INT(control_check_version("0.3.1", "0.3.0", &e), 0);
	CHECK_INT(control_check_version("0.3.1", "0.4.9-rc1", &e), 0);
	CHECK_INT(control_check_version("0.3.1", "0.2", &e), 0);
	CHECK_INT(control_check_version("0.3.1", "0.5.0", &e), -1);
	CHECK_INT(control_check_version("0.3.1", "0.1.0", &e), -1);
	CHECK(strstr(e.msg, "version 0.1.0 does not work with version 0.3.1") != NULL);
	CHECK_INT(control_check_version("0.3.1", "1.3.1", &e), -1);
	for (const char *const *bad =
		     (const char *const[]){ "", "x", "1", "1.", "1.x", ".1", "-1.2", "1.2x", "1 2",
					    "99999999999.1", NULL };
	     *bad; bad++) {
		CHECK_INT(control_check_version("0.3.1", *bad, &e), -1);
		CHECK(strstr(e.msg, "is not a version") != NULL);
	}
}
