/* cluster_message_test.c - requests to the cluster process: as JSON, over its stream, and when it ends. */
#include "base/cleanup.h"
#include "coordinator/cluster_client.h"
#include "coordinator/message.h"
#include "outbound/json_pipe.h"
#include "tap.h"

#include <sys/socket.h>
#include <unistd.h>

static struct err e;

/* ---- JSON ---- */

TEST(a_request_is_read_as_it_was_written)
{
	const struct view_gateway dead[] = { { .number = 3, .renewals = INT64_C(1) << 40 },
					     { .number = 4 } };
	const struct coordinator_request q = { .op = COORDINATOR_DECLARE_LOST,
					       .gateway = 1,
					       .node = 32767,
					       .from = 2,
					       .incarnation = INT64_MAX,
					       .serial = 5,
					       .epoch = INT64_C(1) << 33,
					       .from_epoch = 7,
					       .up = 1,
					       .dead = dead,
					       .ndead = 2,
					       .key = { "team", 's', "name", "tmpl" },
					       .box = "b",
					       .new_box = "nb",
					       .role = "node",
					       .name = "n",
					       .fingerprint = "f",
					       .address = "a",
					       .version = "v" };
	json_t *m = message_of_request(&q), *again;
	struct coordinator_request r;
	struct view_gateway *found;

	CHECK_INT(message_read_request(m, &r, &found, &e), 0);
	CHECK(r.op == q.op && r.ndead == 2 && r.dead[0].number == 3 &&
	      r.dead[0].renewals == INT64_C(1) << 40 && r.dead[1].number == 4);
	CHECK(r.incarnation == INT64_MAX && r.key.kind == 's' && r.up == 1);
	CHECK_STR(r.key.template, "tmpl");
	again = message_of_request(&r);
	CHECK(json_equal(m, again));
	json_decref(again);
	free(found);
	json_decref(m);
}

TEST(every_operation_has_a_name_of_its_own)
{
	for (int i = 0; i < COORDINATOR_OPS; i++) {
		const struct coordinator_request q = { .op = (enum coordinator_op)i };
		json_t *m = message_of_request(&q);
		struct coordinator_request r;
		struct view_gateway *dead;

		CHECK_INT(message_read_request(m, &r, &dead, &e), 0);
		CHECK_INT(r.op, i);
		CHECK(!dead);
		json_decref(m);
	}
}

TEST(bad_requests_are_refused)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"op\": 7}",
		"{\"op\": \"drop_tables\"}",
		"{\"op\": \"renew\", \"gateway\": \"1\"}",
		"{\"op\": \"renew\", \"gateway\": 1.5}",
		"{\"op\": \"renew\", \"gateway\": 4294967296}",
		"{\"op\": \"claim_name\", \"kind\": \"nn\"}",
		"{\"op\": \"claim_name\", \"kind\": \"\"}",
		"{\"op\": \"claim_name\", \"box\": []}",
		"{\"op\": \"declare_lost\", \"dead\": {}}",
		"{\"op\": \"declare_lost\", \"dead\": [1]}",
		"{\"op\": \"declare_lost\", \"dead\": [[1, 2], [1]]}",
		"{\"op\": \"declare_lost\", \"dead\": [[1, 2, 3]]}",
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		json_t *m = json_loads(bad[i], 0, NULL);
		struct coordinator_request r;
		struct view_gateway *dead = (void *)1;

		CHECK(m);
		CHECK_INT(message_read_request(m, &r, &dead, &e), -1);
		CHECK_INT(e.kind, ERR_INVALID);
		CHECK(!dead);
		json_decref(m);
	}
}

static void answer_ignored(void *user, const struct coordinator_answer *a, const struct err *why)
{
	(void)user;
	(void)a;
	(void)why;
}

TEST(an_answer_is_read_as_it_was_written)
{
	const struct coordinator_request q = { .op = COORDINATOR_RENEW };
	const struct coordinator_name name = { { "t", 'n', "name", "" }, 9, 2, "box" };
	struct answer one, two;
	json_t *m, *again;

	answer_init(&one, &q, answer_ignored, NULL);
	answer_init(&two, &q, answer_ignored, NULL);
	one.answer.done = 1;
	one.answer.number = 5;
	one.answer.epoch = INT64_C(1) << 50;
	answer_add_gateway(&one, 1, 10, 100);
	answer_add_gateway(&one, 2, 20, 200);
	answer_add_tunnel(&one, 9, 1, 77);
	answer_add_node(&one, 9, 3, 1, 1, "nine");
	answer_add_name(&one, &name);
	answer_add_superseded(&one, "box", 3);
	m = message_of_answer(&one.answer);
	CHECK_INT(message_read_answer(m, &two, &e), 0);
	CHECK(two.answer.ngateways == 2 && two.answer.gateways[1].incarnation == 200 &&
	      two.answer.nodes[0].lost == 1 && two.answer.tunnels[0].serial == 77);
	CHECK_STR(two.answer.names[0].box, "box");
	CHECK_STR(two.answer.nodes[0].name, "nine");
	again = message_of_answer(&two.answer);
	CHECK(json_equal(m, again));
	json_decref(again);
	answer_fini(&two);
	answer_init(&two, &q, answer_ignored, NULL);
	json_object_set_new(m, "names", json_pack("[[s]]", "t"));
	CHECK_INT(message_read_answer(m, &two, &e), -1);
	answer_fini(&one);
	answer_fini(&two);
	json_decref(m);
}

/* ---- the stream ---- */

static struct loop loop;
static struct cluster_client *client;
static struct json_pipe process; /* the other end */
static struct timer limit;
static unsigned lines, requests;
static int mute;
static struct coordinator_answer got;
static struct err got_error;
static unsigned answers, wanted;

static void need_line(void *user)
{
	(void)user;
	lines++;
}

static void process_message(struct json_pipe *p, const json_t *m)
{
	const json_t *q = json_object_get(m, "coordinator");
	json_t *ask = json_object_get(m, "ask");

	requests++;
	if (mute)
		return;
	if (!strcmp(json_string_value(json_object_get(q, "op")), "renew"))
		json_pipe_send(p,
			       json_pack("{s:O, s:i, s:i}", "done", ask, "ok", 1, "epoch",
					 (int)json_integer_value(json_object_get(q, "gateway"))));
	else
		json_pipe_send(p, json_pack("{s:O, s:s, s:i}", "done", ask, "error", "no such node",
					    "kind", ERR_NOT_FOUND));
}

static void process_gone(struct json_pipe *p)
{
	json_pipe_fini(p);
}

static void process_start(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	process = (struct json_pipe){ .message = process_message, .gone = process_gone };
	json_pipe_init(&process, &loop, pair[0]);
	cluster_client_connect(client, pair[1]);
}

static void coordinated(void *user, const struct coordinator_answer *a, const struct err *why)
{
	(void)user;
	got = a ? *a : (struct coordinator_answer){ 0 };
	got_error = why ? *why : (struct err){ 0 };
	if (++answers == wanted)
		loop_stop(&loop);
}

static void too_late(struct timer *t)
{
	(void)t;
	loop_stop(&loop);
}

static void run_until(unsigned n)
{
	wanted = n;
	timer_set(&limit, 30000);
	if (answers < n)
		loop_run(&loop);
	loop.stopping = 0;
}

TEST(requests_are_answered_or_end_with_the_process)
{
	const struct coordinator_request renew = { .op = COORDINATOR_RENEW, .gateway = 3 },
					 remove = { .op = COORDINATOR_REMOVE_NODE, .node = 9 };
	struct coordinator *c;

	CHECK_INT(loop_init(&loop, &e), 0);
	timer_init(&limit, &loop, too_late);
	CHECK_INT(cluster_client_new(&client, &loop, need_line, NULL, &e), 0);
	CHECK_INT(coordinator_process_new(&c, client, &e), 0);
	coordinator_ask(c, &renew, coordinated, NULL); /* waits for the process */
	process_start();
	run_until(1);
	CHECK(answers == 1 && got.done == 1 && got.epoch == 3);
	CHECK_STR(coordinator_trouble(c), "");
	coordinator_ask(c, &remove, coordinated, NULL);
	run_until(2);
	CHECK(answers == 2 && got_error.kind == ERR_NOT_FOUND);
	CHECK_STR(got_error.msg, "no such node");
	/* The process ends while it has a request: unknown, not "no". Another line is requested. */
	mute = 1;
	lines = 0;
	coordinator_ask(c, &renew, coordinated, NULL);
	while (requests < 3) {
		wanted = answers + 1;
		timer_set(&limit, 10);
		loop_run(&loop);
		loop.stopping = 0;
	}
	json_pipe_fini(&process);
	run_until(3);
	CHECK(answers == 3 && got_error.kind == ERR_SYS);
	CHECK(*coordinator_trouble(c));
	while (!lines) {
		timer_set(&limit, 10);
		loop_run(&loop);
		loop.stopping = 0;
	}
	mute = 0;
	process_start();
	coordinator_ask(c, &renew, coordinated, NULL);
	run_until(4);
	CHECK(answers == 4 && got.done == 1);
	/* Requests in progress end with the coordinator, without a call. */
	coordinator_ask(c, &renew, coordinated, NULL);
	coordinator_free(c);
	cluster_client_free(client);
	CHECK_INT(answers, 4);
	json_pipe_fini(&process);
	timer_fini(&limit);
	loop_fini(&loop);
}
