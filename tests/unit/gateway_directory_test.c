/* Rows that a node sends for the directory: what a gateway accepts. */
#include "gateway/directory.h"
#include "tap.h"

static struct err err;

static int check(const char *text, unsigned node)
{
	json_t *rows = json_loads(text, 0, NULL);
	int rc = rows ? directory_check(rows, node, &err) : -2;

	json_decref(rows);
	return rc;
}

#define REST                                                                                       \
	"\"team\": \"t\", \"rev\": 5, \"at_ns\": 7, \"row\": {\"v1\": {}, \"started_ns\": 1, \"ended_ns\": 0}}"
#define ROW(kind, id) "[{\"kind\": \"" kind "\", \"id\": \"" id "\", " REST "]"

TEST(rows_of_the_node_are_accepted)
{
	/* aah: 7 */
	CHECK_INT(check(ROW("box", "aahaaaaaaaaaaaa"), 7), 0);
	CHECK_INT(check(ROW("box", "aaaaaaaaaaaa"), 7), 0); /* from before it joined */
	CHECK_INT(check(ROW("run", "aahaaaaaaaaaaaa"), 7), 0);
	CHECK_INT(check(ROW("event", "12"), 7), 0);
	CHECK_INT(check(ROW("audit", "999999999999999999"), 7), 0);
	CHECK_INT(check(ROW("usage", "[4,1,\\\"t\\\",\\\"\\\",\\\"USD\\\"]"), 7), 0);
	CHECK_INT(check("[]", 7), 0);
}

TEST(other_rows_are_refused)
{
	CHECK_INT(check(ROW("run", "aahaaaaaaaaaaaa"), 8), -1); /* of another node */
	CHECK(strstr(err.msg, "belongs to node 7") != NULL);
	CHECK_INT(check(ROW("key", "aahaaaaaaaaaaaa"), 7), -1);
	CHECK_INT(check(ROW("box", "name"), 7), -1);
	CHECK_INT(check(ROW("box", ""), 7), -1);
	CHECK_INT(check(ROW("event", "1x"), 7), -1);
	CHECK_INT(check(ROW("event", "-1"), 7), -1);
	CHECK_INT(check(ROW("audit", "9999999999999999999"), 7), -1);
	CHECK_INT(check("[{}]", 7), -1);
	CHECK_INT(check("[1]", 7), -1);
	CHECK_INT(
		check("[{\"kind\": \"event\", \"id\": \"1\", \"team\": \"t\", \"rev\": 0, \"at_ns\": 7, \"row\": {}}]",
		      7),
		-1);
	CHECK_INT(
		check("[{\"kind\": \"event\", \"id\": \"1\", \"team\": \"t\", \"rev\": 1, \"at_ns\": -7, \"row\": {}}]",
		      7),
		-1);
	CHECK_INT(
		check("[{\"kind\": \"event\", \"id\": \"1\", \"team\": \"t\", \"rev\": 1, \"at_ns\": 7, \"row\": []}]",
		      7),
		-1);
	CHECK_INT(
		check("[{\"kind\": \"event\", \"id\": \"1\", \"rev\": 1, \"at_ns\": 7, \"row\": {}}]",
		      7),
		-1);
	CHECK_INT(
		check("[{\"kind\": \"box\", \"id\": \"aahaaaaaaaaaaaa\", \"team\": \"t\", \"rev\": 1, \"at_ns\": 7,"
		      " \"row\": {\"v1\": {}, \"started_ns\": \"x\", \"ended_ns\": 0}}]",
		      7),
		-1);
}
