/* budget_test.c - work of a client that has used more than its part of the loop's time runs after that
 * of others. What is checked is the order of events: the machine's speed does not matter. */
#include "base/clock.h"
#include "client/frame_conn.h"
#include "http_rig.h"
#include "wire/sock.h"

enum { MANY = 12 };

static struct loop_budget greedy, modest;
static char order[64]; /* 'g' and 'm' in the order in which the clients were served */

static void served(char who)
{
	size_t n = strlen(order);

	if (n < sizeof(order) - 1) {
		order[n] = who;
		order[n + 1] = 0;
	}
}

static void exceed(struct loop_budget *b)
{
	*b = (struct loop_budget){ .used_ns = UINT64_C(3600000000000), .at_ns = now_ns() };
}

static int begin_budgets(void)
{
	memset(order, 0, sizeof(order));
	greedy = modest = (struct loop_budget){ 0 };
	return 1;
}

/* ---- the loop ---- */

struct ready { /* a descriptor that can be read */
	struct watch watch;
	int fds[2];
};
static struct ready second; /* of the modest client, during the first greedy work */

static int ready_init(struct ready *x, struct loop_budget *b);

static void take_turn(struct watch *w, unsigned what)
{
	uint64_t end = now_ns() + LOOP_SLICE_NS;

	(void)what;
	served(w->budget == &greedy ? 'g' : 'm');
	if (w->budget == &greedy && !strcmp(order, "mg"))
		CHECK(ready_init(&second, &modest));
	while (w->budget == &greedy && now_ns() < end)
		;
	watch_want(w, 0);
}

static int ready_init(struct ready *x, struct loop_budget *b)
{
	if (pipe2(x->fds, O_CLOEXEC) < 0 || write(x->fds[1], "x", 1) != 1)
		return 0;
	watch_init(&x->watch, &loop, x->fds[0], take_turn);
	x->watch.budget = b;
	watch_want(&x->watch, LOOP_READ);
	return 1;
}

static void ready_fini(struct ready *x)
{
	watch_stop(&x->watch);
	close(x->fds[0]);
	close(x->fds[1]);
}

TEST(descriptors_of_an_exceeded_budget_are_served_after_others)
{
	struct ready all[5];

	CHECK(begin_budgets() && loop_init(&loop, &oops) == 0);
	exceed(&greedy);
	for (unsigned i = 0; i < 5; i++)
		CHECK(ready_init(&all[i], i < 4 ? &greedy : &modest));
	CHECK(UNTIL(strlen(order) == 6));
	CHECK_STR(order, "mgmggg");
	for (unsigned i = 0; i < 5; i++)
		ready_fini(&all[i]);
	ready_fini(&second);
	loop_fini(&loop);
}

TEST(a_budget_is_exceeded_by_work_and_recovers_with_time)
{
	struct loop_budget b = { 0 };

	CHECK(begin_budgets() && loop_init(&loop, &oops) == 0);
	CHECK(!loop_budget_exceeded(&loop, &b) && !loop_budget_exceeded(&loop, NULL));
	loop_work_begin(&loop, NULL);
	loop_work_charge(&loop, &b);
	loop.began_ns -= 2 * LOOP_BURST_NS; /* as if it had taken that long */
	loop_work_end(&loop);
	CHECK(loop_budget_exceeded(&loop, &b));
	b.at_ns -= UINT64_C(16) * LOOP_BURST_NS;
	CHECK(!loop_budget_exceeded(&loop, &b));
	loop_fini(&loop);
}

static void take_frame(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	uint64_t end = now_ns() + LOOP_SLICE_NS;

	(void)p, (void)f, (void)len, (void)fd;
	served('g');
	while (now_ns() < end)
		;
}

TEST(frames_that_take_long_are_read_one_at_a_time)
{
	struct frame f = sock_head(WIRE_FORGET, 1);
	struct frame_conn p;
	struct ready other;
	int fds[2];

	CHECK(begin_budgets() && loop_init(&loop, &oops) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	for (unsigned i = 0; i < 4; i++)
		CHECK(send(fds[1], &f, sizeof(f), 0) == sizeof(f));
	frame_conn_init(&p, &loop, fds[0]);
	p.on_frame = take_frame;
	CHECK(ready_init(&other, &modest));
	CHECK(UNTIL(strlen(order) == 5));
	CHECK(strchr(order, 'm') && strchr(order, 'm') <= order + 1);
	frame_conn_fini(&p);
	ready_fini(&other);
	close(fds[1]);
	loop_fini(&loop);
}

/* ---- the server ---- */

static void reply_greedy(struct http_req *r)
{
	uint64_t end = now_ns() + LOOP_SLICE_NS;

	served('g');
	while (now_ns() < end)
		;
	http_reply(r, 200, "text/plain", "greedy\n", 7);
}

static unsigned heads_then; /* when the modest client was served */

static void reply_modest(struct http_req *r)
{
	served('m');
	heads_then = heads;
	http_reply(r, 200, "text/plain", "modest\n", 7);
}

static void over(struct http_req *r)
{
	(void)r;
	overs++;
}

/* The path says whose request it is, as a key would. */
static void on_head(struct http_req *r)
{
	int is_greedy = strcmp(r->path, "/greedy") == 0;

	heads++;
	r->on_over = over;
	http_charge(r, is_greedy ? &greedy : &modest, is_greedy ? reply_greedy : reply_modest);
}

static int ask(int fd, const char *path)
{
	char text[100];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);

	return send(fd, text, (size_t)n, MSG_NOSIGNAL) == n;
}

/* How many of the others were served before the modest client. */
static size_t before_modest(void)
{
	const char *m = strchr(order, 'm');

	return m ? (size_t)(m - order) : sizeof(order);
}

TEST(requests_on_new_connections_of_an_exceeded_budget_wait_for_others)
{
	int fds[MANY + 1];

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	exceed(&greedy);
	for (unsigned i = 0; i <= MANY; i++) {
		fds[i] = dial();
		CHECK(fds[i] >= 0 && ask(fds[i], i < MANY ? "/greedy" : "/modest"));
	}
	CHECK(UNTIL(overs == MANY + 1));
	CHECK_INT(before_modest(), 0);
	for (unsigned i = 0; i <= MANY; i++)
		close(fds[i]);
	end_server();
}

TEST(kept_connections_of_an_exceeded_budget_are_read_after_others)
{
	int fds[MANY + 1];

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	exceed(&greedy);
	for (unsigned i = 0; i <= MANY; i++) {
		fds[i] = dial();
		CHECK(fds[i] >= 0 && ask(fds[i], i < MANY ? "/greedy" : "/modest"));
	}
	CHECK(UNTIL(overs == MANY + 1));
	exceed(&greedy);
	memset(order, 0, sizeof(order));
	for (unsigned i = 0; i <= MANY; i++)
		CHECK(ask(fds[i], i < MANY ? "/greedy" : "/modest"));
	heads = 0;
	CHECK(UNTIL(overs == 2 * (MANY + 1)));
	CHECK_INT(before_modest(), 0);
	CHECK_INT(heads_then, 1); /* the others were not even read */
	for (unsigned i = 0; i <= MANY; i++)
		close(fds[i]);
	end_server();
}

TEST(many_requests_on_one_connection_do_not_hold_up_others)
{
	int pipelined, other;

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	pipelined = dial();
	other = dial();
	for (unsigned i = 0; i < MANY; i++)
		CHECK(ask(pipelined, "/greedy"));
	CHECK(ask(other, "/modest"));
	CHECK(UNTIL(overs == MANY + 1));
	CHECK(before_modest() <= 2); /* each takes a slice */
	close(pipelined);
	close(other);
	end_server();
}

TEST(a_client_that_leaves_while_its_request_waits_is_forgotten)
{
	int fd;

	CHECK(begin_budgets() && begin_server(NULL, on_head));
	fd = dial();
	exceed(&greedy);
	CHECK(ask(fd, "/greedy"));
	UNTIL(heads == 1);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 },
		   sizeof(struct linger));
	close(fd); /* a reset */
	CHECK(UNTIL(overs == 1 && server.open == 0));
	end_server();
}
