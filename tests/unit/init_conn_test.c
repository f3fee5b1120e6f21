/* init_conn_test.c - connections to init and keeper on the loop: what is accepted and rejected.
 * The other side is played by the test over a socket pair; nothing it sends may do harm. */
#include "client/init_conn.h"
#include "base/cleanup.h"
#include "client/keeper_client.h"
#include "tap.h"
#include "wire/sock.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>

enum { REF = 9, SOON_MS = 5000, SHORT_MS = 30 };

struct test_call {
	struct init_call call;
	char text[2][256];
	unsigned len[2];
	int started, exited, lost, status, refused;
	struct err why;
};

static struct play {
	/* clang-format off */
	struct loop loop;
	struct init_conn line;
	struct timer timer;
	int theirs;
	int gone;
	struct err why;
	struct test_call x;
	struct err e;
} p;

static void stop(struct timer *t)
{
	(void)t;
	loop_stop(&p.loop);
}

/* Turns the loop until nothing has happened for a moment. */
static void turn(void)
{
	timer_set(&p.timer, SHORT_MS);
	p.loop.stopping = 0;
	loop_run(&p.loop);
}

static void on_started(struct init_call *x, int pid)
{
	loop_owner(x, struct test_call, call)->started = pid;
}

static void on_output(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes, size_t n)
{
	struct test_call *h = loop_owner(x, struct test_call, call);

	(void)offset;
	if (h->len[stream] + n < sizeof(h->text[0]))
		memcpy(h->text[stream] + h->len[stream], bytes, n);
	h->len[stream] += (unsigned)n;
}

static void on_exited(struct init_call *x, const struct wire_exit *end)
{
	struct test_call *h = loop_owner(x, struct test_call, call);

	h->exited++;
	h->status = end->status;
}

static void on_refused(struct init_call *x, const struct err *e)
{
	struct test_call *h = loop_owner(x, struct test_call, call);

	h->refused++;
	h->why = *e;
}

static void on_lost(struct init_call *x)
{
	loop_owner(x, struct test_call, call)->lost++;
}

static const struct init_call_ops events = {
	.started = on_started, .output = on_output, .exited = on_exited,
	.refused = on_refused, .lost = on_lost,
	/* clang-format on */
};

static void line_gone(struct init_conn *l, const struct err *why)
{
	(void)l;
	p.gone++;
	p.why = *why;
}

static int begin(void)
{
	int pair[2];

	memset(&p, 0, sizeof(p));
	if (loop_init(&p.loop, &p.e) < 0 || sock_pair(pair, &p.e) < 0)
		return -1;
	timer_init(&p.timer, &p.loop, stop);
	p.theirs = pair[0];
	p.line.on_gone = line_gone;
	if (init_conn_open(&p.line, &p.loop, pair[1], "abc", &p.e) < 0)
		return -1;
	init_conn_add_call(&p.line, &p.x.call, REF, &events);
	p.x.call.granted[0] = p.x.call.granted[1] = 100;
	return 0;
}

static void finish(void)
{
	init_conn_close(&p.line);
	own_close_fd(&p.theirs);
	timer_fini(&p.timer);
	loop_fini(&p.loop);
}

static int say(const void *frame, size_t n, const void *tail, size_t tail_n)
{
	return sock_send(p.theirs, frame, n, tail, tail_n, NULL, 0, &p.e);
}

static int say_output(uint32_t ref, uint32_t stream, uint64_t offset, const char *text)
{
	struct wire_output f = { sock_head(WIRE_OUTPUT, ref), .stream = stream, .offset = offset };

	return say(&f, sizeof(f), text, strlen(text));
}

TEST(output_and_exit_are_delivered_in_order)
{
	struct wire_exit end = { sock_head(WIRE_EXIT, REF), .status = 3 };

	CHECK_INT(begin(), 0);
	CHECK_INT(say_output(REF, 0, 0, "one"), 0);
	CHECK_INT(say_output(REF, 1, 0, "two"), 0);
	CHECK_INT(say_output(REF, 0, 3, "three"), 0);
	CHECK_INT(say(&end, sizeof(end), NULL, 0), 0);
	turn();
	CHECK_STR(p.x.text[0], "onethree");
	CHECK_STR(p.x.text[1], "two");
	CHECK_INT(p.x.exited, 1);
	CHECK_INT(p.x.status, 3);
	CHECK(!p.x.call.line);
	finish();
}

TEST(frames_without_a_call_are_dropped)
{
	CHECK_INT(begin(), 0);
	CHECK_INT(say_output(REF + 1, 0, 0, "x"), 0);
	CHECK_INT(say_output(REF, 0, 0, "y"), 0);
	turn();
	CHECK_STR(p.x.text[0], "y");
	CHECK_INT(p.gone, 0);
	finish();
}

/* Each of these closes the connection and notifies the call once. */
static int ends_the_line(uint32_t stream, uint64_t offset, const char *text)
{
	if (begin() < 0 || say_output(REF, 0, 0, "0123456789") < 0 ||
	    say_output(REF, stream, offset, text) < 0)
		return -1;
	turn();
	finish();
	return p.gone == 1 && p.x.lost == 1 && p.why.kind == ERR_INVALID;
}

TEST(output_of_an_unknown_stream_closes_the_connection)
{
	CHECK_INT(ends_the_line(2, 0, "x"), 1);
}

TEST(repeated_output_bytes_close_the_connection)
{
	CHECK_INT(ends_the_line(0, 5, "x"), 1);
}

TEST(output_over_the_credit_closes_the_connection)
{
	CHECK_INT(ends_the_line(0, 99, "xx"), 1);
	CHECK_INT(ends_the_line(0, 101, "x"), 1);
	CHECK_INT(ends_the_line(0, UINT64_MAX, "x"), 1);
}

TEST(a_gap_in_the_output_is_reported_by_its_offset)
{
	CHECK_INT(begin(), 0);
	CHECK_INT(say_output(REF, 0, 50, "x"), 0);
	turn();
	CHECK_INT(p.gone, 0);
	CHECK_INT(p.x.call.next_byte[0], 51);
	finish();
}

TEST(an_invalid_frame_closes_the_connection)
{
	static const char *const garbage[] = { "x", "\002", "\002\101\0\0\0\0\0\0", "" };

	for (unsigned i = 0; i < 3; i++) {
		CHECK_INT(begin(), 0);
		CHECK(send(p.theirs, garbage[i], i == 2 ? 8 : 1, MSG_NOSIGNAL) > 0);
		turn();
		CHECK_INT(p.gone, 1);
		CHECK_INT(p.x.lost, 1);
		finish();
	}
}

TEST(client_frames_from_init_are_dropped_or_close_the_connection)
{
	struct wire_signal f = { .head = sock_head(WIRE_SIGNAL, REF), .signo = 9 };

	CHECK_INT(begin(), 0);
	CHECK_INT(say(&f, sizeof(f), NULL, 0), 0);
	CHECK_INT(say_output(REF, 0, 0, "alive"), 0);
	turn();
	CHECK(p.gone == 1 || !strcmp(p.x.text[0], "alive"));
	finish();
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

TEST(unexpected_descriptors_are_closed)
{
	struct frame f = sock_head(WIRE_FD, REF);
	int fds[WIRE_FDS], before;

	CHECK_INT(begin(), 0);
	for (unsigned i = 0; i < WIRE_FDS; i++)
		fds[i] = dup(0);
	before = open_files();
	for (unsigned i = 0; i < 20; i++)
		CHECK_INT(sock_send(p.theirs, &f, sizeof(f), NULL, 0, fds, WIRE_FDS, &p.e), 0);
	turn();
	turn();
	CHECK_INT(open_files(), before);
	for (unsigned i = 0; i < WIRE_FDS; i++)
		close(fds[i]);
	finish();
}

TEST(a_closed_connection_notifies_every_call_once)
{
	CHECK_INT(begin(), 0);
	CHECK_INT(say_output(REF, 0, 0, "last output"), 0);
	own_close_fd(&p.theirs);
	turn();
	CHECK_STR(p.x.text[0], "last output");
	CHECK_INT(p.x.lost, 1);
	CHECK_INT(p.gone, 1);
	CHECK(!init_conn_is_open(&p.line));
	finish();
}

TEST(marking_the_box_as_ended_notifies_its_calls)
{
	CHECK_INT(begin(), 0);
	init_conn_box_ended(&p.line);
	CHECK_INT(p.x.lost, 1);
	CHECK_INT(p.gone, 0);
	CHECK(!init_conn_is_open(&p.line));
	finish();
}

TEST(control_characters_of_an_error_are_removed)
{
	struct wire_error f = { .head = sock_head(WIRE_ERROR, REF), .kind = 999, .sys = 5 };

	memset(f.msg, 27, sizeof(f.msg)); /* no NUL at its end either */
	CHECK_INT(begin(), 0);
	CHECK_INT(say(&f, sizeof(f), NULL, 0), 0);
	turn();
	CHECK_INT(p.x.refused, 1);
	CHECK_INT(p.x.why.kind, ERR_SYS);
	CHECK(!strchr(p.x.why.msg, 27));
	finish();
}

TEST(a_box_that_does_not_read_is_disconnected)
{
	static char bytes[32 * 1024];

	CHECK_INT(begin(), 0);
	for (unsigned i = 0; i < FRAME_CONN_QUEUE / sizeof(bytes) + 100; i++)
		init_conn_stdin(&p.line, REF, bytes, sizeof(bytes));
	CHECK(p.line.post.queued <= FRAME_CONN_QUEUE);
	turn();
	CHECK_INT(p.gone, 1);
	CHECK_INT(p.x.lost, 1);
	finish();
}

static void closes_the_line(struct init_call *x, const struct wire_exit *end)
{
	(void)x;
	(void)end;
	init_conn_close(&p.line);
}

TEST(a_callback_may_close_its_connection)
{
	static const struct init_call_ops on = { .exited = closes_the_line };
	struct wire_exit end = { sock_head(WIRE_EXIT, REF), .status = 0 };

	CHECK_INT(begin(), 0);
	p.x.call.on = &on;
	CHECK_INT(say(&end, sizeof(end), NULL, 0), 0);
	CHECK_INT(say_output(REF, 0, 0, "after"), 0);
	turn();
	CHECK(!init_conn_is_open(&p.line));
	finish();
}

/* ---- the keeper client ---- */

static struct {
	struct keeper_client keeper;
	int answers, errors, lost;
	struct err why;
} o;

static void keeper_lost(struct keeper_client *x)
{
	(void)x;
	o.lost++;
}

static void answered(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	(void)ctx;
	(void)len;
	(void)fd;
	o.answers += f != NULL;
	o.errors += e != NULL;
	if (e)
		o.why = *e;
}

static int open_keeper(void)
{
	int pair[2];

	memset(&o, 0, sizeof(o));
	if (begin() < 0 || sock_pair(pair, &p.e) < 0)
		return -1;
	close(p.theirs);
	p.theirs = pair[0];
	init_conn_close(&p.line);
	keeper_client_init(&o.keeper, &p.loop, keeper_lost);
	keeper_client_connect(&o.keeper, pair[1]);
	return 0;
}

static void close_keeper(void)
{
	keeper_client_fini(&o.keeper);
	finish();
}

static uint32_t next_question(uint8_t *type)
{
	char buf[WIRE_MAX];
	unsigned nfds = 0;

	if (sock_recv(p.theirs, buf, NULL, &nfds, &p.e) <= 0)
		return 0;
	*type = ((struct frame *)buf)->type;
	return ((struct frame *)buf)->ref;
}

TEST(a_reply_is_matched_to_its_request)
{
	struct wire_counters a = { .head = sock_head(WIRE_COUNTERS_REPLY, 0) };
	uint8_t type = 0;

	CHECK_INT(open_keeper(), 0);
	keeper_client_request_box(&o.keeper, WIRE_COUNTERS, 0, "abc", WIRE_COUNTERS_REPLY, answered,
				  NULL);
	a.head.ref = next_question(&type);
	CHECK_INT(type, WIRE_COUNTERS);
	CHECK_INT(say(&a, sizeof(a), NULL, 0), 0);
	CHECK_INT(say(&a, sizeof(a), NULL, 0), 0); /* twice: the second reply has no request */
	turn();
	CHECK_INT(o.answers, 1);
	CHECK_INT(o.keeper.waiting, 0);
	close_keeper();
}

/* A keeper without tiers ignores the bits, and answers with a container box. */
TEST(a_box_of_another_tier_is_killed)
{
	struct wire_create ask = { .head = sock_head(WIRE_CREATE, 0) };
	struct wire_box box = { .head = sock_head(WIRE_BOX, 0), .id = "abc" };
	union {
		struct wire_id kill;
		char bytes[WIRE_MAX];
	} got;
	unsigned nfds = 0;
	uint8_t type = 0;

	CHECK_INT(open_keeper(), 0);
	ask.head.flags = wire_tier_flags(WIRE_TIER_GVISOR);
	keeper_client_request(&o.keeper, &ask, sizeof(ask), WIRE_BOX, answered, NULL);
	box.head.ref = next_question(&type);
	CHECK_INT(type, WIRE_CREATE);
	CHECK_INT(say(&box, sizeof(box), NULL, 0), 0);
	turn();
	CHECK_INT(o.answers, 0);
	CHECK_INT(o.errors, 1);
	CHECK_INT(o.why.kind, ERR_DENIED);
	CHECK(sock_recv(p.theirs, got.bytes, NULL, &nfds, &p.e) > 0);
	CHECK_INT(got.kill.head.type, WIRE_KILL);
	CHECK_STR(got.kill.id, "abc");

	keeper_client_request(&o.keeper, &ask, sizeof(ask), WIRE_BOX, answered, NULL);
	box.head.ref = next_question(&type);
	box.tier = WIRE_TIER_GVISOR;
	CHECK_INT(say(&box, sizeof(box), NULL, 0), 0);
	turn();
	CHECK_INT(o.answers, 1);
	CHECK_INT(o.errors, 1);
	close_keeper();
}

TEST(a_reply_of_another_type_is_an_error)
{
	struct wire_info a = { .head = sock_head(WIRE_INFO_REPLY, 0) };
	uint8_t type;

	CHECK_INT(open_keeper(), 0);
	keeper_client_request_box(&o.keeper, WIRE_COUNTERS, 0, "abc", WIRE_COUNTERS_REPLY, answered,
				  NULL);
	a.head.ref = next_question(&type);
	CHECK_INT(say(&a, sizeof(a), NULL, 0), 0);
	turn();
	CHECK_INT(o.errors, 1);
	CHECK_INT(o.why.kind, ERR_INVALID);
	close_keeper();
}

TEST(pending_requests_are_sent_again_to_the_next_keeper)
{
	struct wire_counters a = { .head = sock_head(WIRE_COUNTERS_REPLY, 0) };
	int pair[2];
	uint8_t type;

	CHECK_INT(open_keeper(), 0);
	keeper_client_request_box(&o.keeper, WIRE_COUNTERS, 0, "one", WIRE_COUNTERS_REPLY, answered,
				  NULL);
	own_close_fd(&p.theirs);
	turn();
	CHECK_INT(o.lost, 1);
	CHECK(!keeper_client_is_connected(&o.keeper));
	keeper_client_request_box(&o.keeper, WIRE_COUNTERS, 0, "two", WIRE_COUNTERS_REPLY, answered,
				  NULL);
	CHECK_INT(sock_pair(pair, &p.e), 0);
	p.theirs = pair[0];
	keeper_client_connect(&o.keeper, pair[1]);
	for (int i = 0; i < 2; i++) {
		a.head.ref = next_question(&type);
		CHECK_INT(say(&a, sizeof(a), NULL, 0), 0);
	}
	turn();
	CHECK_INT(o.answers, 2);
	close_keeper();
}

/* Its descriptor is gone with the keeper that has it: it fails, unless it was not sent yet. */
TEST(a_keeper_request_with_a_descriptor_is_sent_once)
{
	struct wire_layer ask = { .head.type = WIRE_LAYER_EXPORT };
	struct wire_layer a = { .head = sock_head(WIRE_LAYER, 0) };
	_Alignas(8) char buf[WIRE_MAX];
	int pair[2], pipes[2], got = -1;
	unsigned nfds = 1;
	char byte;

	CHECK_INT(open_keeper(), 0);
	CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
	keeper_client_request_fd(&o.keeper, &ask, sizeof(ask), pipes[1], WIRE_LAYER, answered,
				 NULL);
	CHECK(sock_recv(p.theirs, buf, &got, &nfds, &p.e) == sizeof(ask) && nfds == 1);
	CHECK_INT(write(got, "x", 1), 1);
	CHECK_INT(read(pipes[0], &byte, 1), 1);
	own_close_fd(&got);
	CHECK_INT(read(pipes[0], &byte, 1), 0); /* this process has no copy of it either */
	own_close_fd(&p.theirs);
	turn();
	CHECK_INT(o.errors, 0);
	/* Requested without a connection: this one is sent to the next keeper. */
	CHECK_INT(close(pipes[0]), 0);
	CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
	keeper_client_request_fd(&o.keeper, &ask, sizeof(ask), pipes[1], WIRE_LAYER, answered,
				 NULL);
	CHECK_INT(sock_pair(pair, &p.e), 0);
	p.theirs = pair[0];
	keeper_client_connect(&o.keeper, pair[1]);
	CHECK_INT(o.errors, 1);
	CHECK(strstr(o.why.msg, "repeat the request") != NULL);
	nfds = 1;
	CHECK(sock_recv(p.theirs, buf, &got, &nfds, &p.e) == sizeof(ask) && nfds == 1);
	own_close_fd(&got);
	a.head.ref = ((const struct frame *)(const void *)buf)->ref;
	CHECK_INT(say(&a, sizeof(a), NULL, 0), 0);
	turn();
	CHECK_INT(o.answers, 1);
	CHECK_INT(o.errors, 1);
	CHECK_INT(o.keeper.waiting, 0);
	close(pipes[0]);
	close_keeper();
}

TEST(the_reply_to_a_cancelled_request_is_dropped)
{
	struct wire_counters a = { .head = sock_head(WIRE_COUNTERS_REPLY, 0) };
	struct keeper_call *ask;
	uint8_t type;

	CHECK_INT(open_keeper(), 0);
	ask = keeper_client_request_box(&o.keeper, WIRE_COUNTERS, 0, "abc", WIRE_COUNTERS_REPLY,
					answered, NULL);
	a.head.ref = next_question(&type);
	keeper_client_cancel(&o.keeper, ask);
	CHECK_INT(say(&a, sizeof(a), NULL, 0), 0);
	turn();
	CHECK_INT(o.answers + o.errors, 0);
	CHECK_INT(o.keeper.waiting, 0);
	close_keeper();
}
