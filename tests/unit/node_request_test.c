/* Requests of a gateway itself to a node whose answers cannot be trusted. The test is the node. */
#include "gateway/node_request.h"
#include "cluster/tunnel.h"
#include "tap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct err e;
static struct loop loop;
static struct tunnels *tunnels;
static struct node_request request;
static struct timer writer, limit;
static int node, link_end;
static size_t written;
static int dones, status;
static char why[160];

static int connect_plain(int control)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
	    tunnels_connected(tunnels, 7, "one", "test", control, upstream_link_plain(pair[0]),
			      &e) < 0)
		abort();
	return pair[1];
}

static void say(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
		abort();
}

static void turn_ended(struct timer *t)
{
	(void)t;
	loop_stop(&loop);
}

static void run(uint32_t ms)
{
	timer_set(&limit, ms);
	loop_run(&loop);
	loop.stopping = 0;
}

static void request_done(struct node_request *x, int got, const char *text, size_t n,
			 const char *reason)
{
	(void)x;
	(void)text;
	(void)n;
	dones++;
	status = got;
	snprintf(why, sizeof(why), "%s", reason ? reason : "");
	loop_stop(&loop);
}

/* As much as the gateway reads. */
static void write_more(struct timer *t)
{
	static char zeros[256 << 10];
	ssize_t n;

	while ((n = send(link_end, zeros, sizeof(zeros), MSG_NOSIGNAL)) > 0)
		written += (size_t)n;
	if (n < 0 && errno == EAGAIN)
		timer_set(t, 0);
}

static void begin(void)
{
	if (loop_init(&loop, &e) < 0)
		abort();
	tunnels = tunnels_new(&loop, 2, "0.3.0", NULL);
	timer_init(&limit, &loop, turn_ended);
	timer_init(&writer, &loop, write_more);
	node = connect_plain(1);
	say(node,
	    "{\"hello\":{\"number\":7,\"name\":\"bad\",\"version\":\"0.3.9\",\"epoch\":0}}\n");
	run(20);
	link_end = connect_plain(0);
	dones = 0;
	written = 0;
	request = (struct node_request){ .done = request_done };
	node_request_send(&request, tunnels, &loop, 7,
			  &(struct node_request_what){ .target = "/v1/boxes", .identity = "" },
			  60000);
}

static void end(void)
{
	node_request_cancel(&request);
	close(node);
	close(link_end);
	tunnels_free(tunnels);
	timer_fini(&writer);
	timer_fini(&limit);
	loop_fini(&loop);
}

TEST(ten_gigabytes_are_not_read)
{
	begin();
	run(20);
	say(link_end, "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n");
	timer_set(&writer, 0);
	run(20000);
	CHECK_INT(dones, 1);
	CHECK_INT(status, 0);
	CHECK_STR(why, "its answer is too long");
	CHECK(written < 4 * (size_t)NODE_REQUEST_BYTES);
	CHECK_INT(tunnels_find(tunnels, 7)->busy, 0);
	end();
}

TEST(chunks_without_end_are_not_read)
{
	begin();
	run(20);
	say(link_end, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n280000000\r\n");
	timer_set(&writer, 0);
	run(20000);
	CHECK_INT(dones, 1);
	CHECK_STR(why, "its answer is too long");
	CHECK(written < 4 * (size_t)NODE_REQUEST_BYTES);
	end();
}
