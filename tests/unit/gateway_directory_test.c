/* Rows that a node sends for the directory: what a gateway accepts, and what it sends to the database together. In the
 * second part the test is the cluster process. */
#include "gateway/directory.h"
#include "cluster/tunnel.h"
#include "coordinator/cluster_client.h"
#include "outbound/json_pipe.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

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

/* ---- transactions ---- */

static struct loop loop;
static struct cluster_client *client;
static struct json_pipe process;
static struct timer limit;
static struct tunnels *tunnels;
static struct directory *directory;
static unsigned queries;
static json_int_t asked; /* number of the last query */
static char ids[200];    /* of its rows */
static char kept[200];   /* what was acknowledged, in this order */

static void need_line(void *user)
{
	(void)user;
}

static void process_message(struct json_pipe *p, const json_t *m)
{
	const json_t *query = json_object_get(m, "query");
	const char *name = json_string_value(json_object_get(query, "name"));
	json_t *rows, *row;
	size_t i;

	(void)p;
	if (strcmp(name, "directory_rows") != 0)
		return;
	rows = json_loads(json_string_value(json_array_get(json_object_get(query, "params"), 1)), 0,
			  NULL);
	ids[0] = 0;
	json_array_foreach(rows, i, row)
	{
		strcat(ids, json_string_value(json_object_get(row, "id")));
		strcat(ids, " ");
	}
	json_decref(rows);
	asked = json_integer_value(json_object_get(m, "ask"));
	queries++;
	loop_stop(&loop);
}

static void process_gone(struct json_pipe *p)
{
	json_pipe_fini(p);
}

static void turn_ended(struct timer *t)
{
	(void)t;
	loop_stop(&loop);
}

/* The rows of the next query; "": there is none. */
static const char *next_query(void)
{
	unsigned before = queries;

	timer_set(&limit, 2000);
	loop_run(&loop);
	loop.stopping = 0;
	return queries > before ? ids : "";
}

static void row_kept(void *user, uint64_t last)
{
	(void)user;
	snprintf(kept + strlen(kept), sizeof(kept) - strlen(kept), "%d ", (int)last);
}

/* A message with one row, whose id and number are n. */
static void add(int n)
{
	char text[300];
	json_t *rows;

	snprintf(text, sizeof(text), "[{\"kind\": \"event\", \"id\": \"%d\", " REST "]", n);
	rows = json_loads(text, 0, NULL);
	if (directory_add_own(directory, 7, rows, (uint64_t)n, row_kept, NULL, &err) < 0)
		abort();
	json_decref(rows);
}

static void answer(enum err_kind kind)
{
	json_t *m =
		kind ? json_pack("{s:I, s:s, s:i}", "done", asked, "error", "no", "kind", (int)kind)
		     : json_pack("{s:I, s:[]}", "done", asked, "results");

	json_pipe_send(&process, m);
}

static void begin(void)
{
	int pair[2];

	kept[0] = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
	    loop_init(&loop, &err) < 0 ||
	    cluster_client_new(&client, &loop, need_line, NULL, &err) < 0)
		abort();
	process = (struct json_pipe){ .message = process_message, .gone = process_gone };
	json_pipe_init(&process, &loop, pair[0]);
	cluster_client_connect(client, pair[1]);
	timer_init(&limit, &loop, turn_ended);
	tunnels = tunnels_new(&loop, 2, "0.3.0", NULL);
	directory = directory_new(&loop, tunnels, client);
}

static void end(void)
{
	directory_free(directory);
	tunnels_free(tunnels);
	cluster_client_free(client);
	json_pipe_fini(&process);
	timer_fini(&limit);
	loop_fini(&loop);
}

TEST(messages_that_wait_are_stored_in_one_transaction)
{
	begin();
	add(1);
	CHECK_STR(next_query(), "1 ");
	add(2);
	add(3);
	add(4);
	answer(ERR_NONE);
	CHECK_STR(next_query(), "2 3 4 ");
	CHECK_STR(kept, "1 ");
	add(5);
	answer(ERR_SYS); /* its outcome is not known: all again */
	CHECK_STR(next_query(), "2 3 4 5 ");
	CHECK_STR(kept, "1 ");
	answer(ERR_NONE);
	CHECK_STR(next_query(), "");
	CHECK_STR(kept, "1 2 3 4 5 ");
	end();
}

TEST(a_message_that_is_rejected_with_others_is_sent_alone)
{
	begin();
	add(1);
	CHECK_STR(next_query(), "1 ");
	add(2);
	add(3);
	answer(ERR_NONE);
	CHECK_STR(next_query(), "2 3 ");
	answer(ERR_INVALID);
	CHECK_STR(next_query(), "2 ");
	answer(ERR_INVALID); /* left out */
	CHECK_STR(next_query(), "3 ");
	answer(ERR_NONE);
	CHECK_STR(next_query(), "");
	CHECK_STR(kept, "1 2 3 ");
	end();
}
