/* splice_test.c - bodies that are spliced through a pipe: complete, in order, with
 * back-pressure. */
#include "http_rig.h"

enum { LARGE = 3 << 20 };

static struct http_req *kept;
static int ours = -1; /* the test's end of the pipe: read for a request, written for a reply */
static int full;
static uint64_t announced;
static char sent[LARGE], taken[LARGE + 1];
static size_t taken_len;

static void over(struct http_req *r)
{
	(void)r;
	overs++;
	kept = NULL;
}

static void body_ended(struct http_req *r)
{
	ends++;
	http_reply(r, 200, "text/plain", "whole\n", 6);
}

static void is_full(struct http_req *r, int yes)
{
	(void)r;
	full = yes;
}

/* POST: the body into the pipe. GET: as many bytes as are announced out of it. */
static void on_head(struct http_req *r)
{
	int ends_of[2];

	heads++;
	kept = r;
	r->on_over = over;
	r->on_body_end = body_ended;
	r->on_full = is_full;
	if (strcmp(r->path, "/plain") == 0) {
		http_reply(r, 200, "text/plain", "plain\n", 6);
		return;
	}
	if (pipe2(ends_of, O_CLOEXEC) < 0)
		abort();
	if (strcmp(r->method, "POST") == 0) {
		ours = ends_of[0];
		fcntl(ours, F_SETFL, O_NONBLOCK);
		http_body_pipe(r, ends_of[1], LARGE + 1);
	} else {
		ours = ends_of[1];
		fcntl(ours, F_SETFL, O_NONBLOCK);
		http_stream(r, 200, "text/plain", announced);
		http_stream_pipe(r, ends_of[0]);
	}
}

static int begin(const struct http_limits *limits)
{
	for (size_t i = 0; i < LARGE; i++)
		sent[i] = (char)(i * 7 + i / 251);
	taken_len = 0;
	full = 0;
	return begin_server(limits, on_head);
}

static void close_ours(void)
{
	if (ours >= 0)
		close(ours);
	ours = -1;
}

static void end(int fd)
{
	close(fd);
	close_ours();
	end_server();
}

/* Reads the content of the pipe, at most `most` bytes. 1: the end was reached. */
static int drain(size_t most)
{
	ssize_t n = 1;

	while (n > 0 && most > 0) {
		size_t room = sizeof(taken) - taken_len;

		n = read(ours, taken + taken_len, most < room ? most : room);
		taken_len += n > 0 ? (size_t)n : 0;
		most -= n > 0 ? (size_t)n : 0;
	}
	return n == 0;
}

/* Sends all of it while the other end of the pipe is read in small pieces. */
static void send_and_drain(int fd, const char *bytes, size_t n)
{
	uint64_t late = loop_now_ms() + PATIENCE_MS;

	while (n > 0 && loop_now_ms() < late) {
		ssize_t w = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		bytes += w > 0 ? w : 0;
		n -= w > 0 ? (size_t)w : 0;
		turn();
		drain(50000);
	}
}

TEST(a_body_is_spliced_to_the_pipe_unchanged)
{
	char head[100];
	int fd;

	CHECK(begin(NULL));
	fd = dial();
	snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
		 LARGE);
	say(fd, head);
	CHECK(UNTIL(heads == 1));
	send_and_drain(fd, sent, LARGE);
	CHECK(UNTIL(drain(LARGE)));
	CHECK_INT(taken_len, LARGE);
	CHECK(memcmp(sent, taken, LARGE) == 0);
	CHECK(UNTIL(received(fd, "whole")));
	CHECK_INT(ends, 1);
	/* The connection stays usable: no byte too many was spliced. */
	say(fd, "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "plain\n")));
	end(fd);
}

TEST(bytes_read_with_the_head_and_after_the_body_are_kept_separate)
{
	int fd;

	CHECK(begin(NULL));
	fd = dial();
	say(fd, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\n\r\nabcd");
	CHECK(UNTIL(heads == 1));
	say(fd, "efghGET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "plain\n")));
	CHECK(drain(LARGE));
	CHECK_INT(taken_len, 8);
	CHECK(memcmp(taken, "abcdefgh", 8) == 0);
	end(fd);
}

TEST(a_chunked_body_waits_for_a_slow_reader_of_the_pipe)
{
	static char chunks[LARGE + 4096];
	size_t n = 0;
	int fd;

	CHECK(begin(NULL));
	for (size_t at = 0; at < LARGE; at += LARGE / 16) {
		n += (size_t)sprintf(chunks + n, "%x\r\n", LARGE / 16);
		memcpy(chunks + n, sent + at, LARGE / 16);
		n += LARGE / 16;
		n += (size_t)sprintf(chunks + n, "\r\n");
	}
	n += (size_t)sprintf(chunks + n, "0\r\n\r\n");
	fd = dial();
	say(fd, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
	CHECK(UNTIL(heads == 1));
	send_and_drain(fd, chunks, n);
	CHECK(UNTIL(drain(LARGE)));
	CHECK_INT(taken_len, LARGE);
	CHECK(memcmp(sent, taken, LARGE) == 0);
	CHECK(UNTIL(received(fd, "whole")));
	end(fd);
}

TEST(a_full_pipe_stops_the_sender_and_a_closed_one_is_reported)
{
	static const struct http_limits hasty = { .body_stall_ms = 100 };
	char head[100];
	size_t before;
	int fd;

	CHECK(begin(&hasty));
	fd = dial();
	snprintf(head, sizeof(head), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n",
		 LARGE);
	say(fd, head);
	CHECK(UNTIL(heads == 1));
	while (send(fd, sent, 65536, MSG_NOSIGNAL | MSG_DONTWAIT) > 0 || !full)
		turn();
	/* It is not the client's fault: no 408. */
	for (uint64_t late = loop_now_ms() + 400; loop_now_ms() < late;)
		turn();
	CHECK(kept && got_len == 0);
	before = server.bytes_in;
	drain(4096 * 8);
	CHECK(UNTIL(server.bytes_in > before));
	/* If the reader closes the pipe, the handler answers. */
	close_ours();
	CHECK(UNTIL(full));
	CHECK(kept);
	http_reply(kept, 507, "text/plain", "no room\n", 8);
	CHECK(UNTIL(received(fd, "no room")));
	CHECK(received(fd, "Connection: close"));
	CHECK_INT(ends, 0);
	end(fd);
}

TEST(an_incomplete_body_is_rejected_and_its_pipe_closed)
{
	int fd;

	CHECK(begin(NULL));
	fd = dial();
	say(fd, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf");
	CHECK(UNTIL(heads == 1));
	shutdown(fd, SHUT_WR);
	CHECK(UNTIL(received(fd, "400 Bad Request")));
	CHECK(UNTIL(drain(LARGE)));
	CHECK_INT(taken_len, 4);
	CHECK_INT(ends, 0);
	end(fd);
}

TEST(a_reply_is_spliced_from_the_pipe_until_its_length)
{
	size_t put = 0;
	int fd;

	CHECK(begin(NULL));
	announced = LARGE;
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(heads == 1));
	while (put < LARGE) {
		ssize_t n = write(ours, sent + put, LARGE - put);

		put += n > 0 ? (size_t)n : 0;
		turn();
		take(fd);
	}
	/* Bytes over the announced length are not sent. */
	(void)!write(ours, "more", 4);
	CHECK(UNTIL(overs == 1));
	CHECK(UNTIL((take(fd), got_len > LARGE)));
	CHECK(memcmp(got + got_len - LARGE, sent, LARGE) == 0);
	close_ours();
	say(fd, "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "plain\n")));
	end(fd);
}

TEST(a_pipe_that_ends_early_aborts_the_reply)
{
	int fd;

	CHECK(begin(NULL));
	announced = 100;
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(heads == 1));
	CHECK(write(ours, "some", 4) == 4);
	close_ours();
	CHECK(UNTIL(ended(fd) == -1));
	CHECK_INT(overs, 1);
	end(fd);
}

TEST(a_client_that_does_not_read_is_closed_and_a_disconnect_reported)
{
	static const struct http_limits hasty = { .send_stall_ms = 200 };
	int fd;

	CHECK(begin(&hasty));
	announced = 1ull << 40;
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(heads == 1));
	/* While the pipe is empty it has no bytes to read. */
	for (uint64_t late = loop_now_ms() + 500; loop_now_ms() < late;)
		turn();
	CHECK(kept);
	for (uint64_t late = loop_now_ms() + PATIENCE_MS; !overs && loop_now_ms() < late; turn())
		while (write(ours, sent, LARGE) > 0)
			;
	CHECK_INT(overs, 1);
	close(fd);
	close_ours();
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(heads == 2));
	close(fd);
	for (uint64_t late = loop_now_ms() + PATIENCE_MS; overs < 2 && loop_now_ms() < late; turn())
		(void)!write(ours, sent, 65536);
	CHECK_INT(overs, 2);
	end(-1);
}

TEST(a_body_of_length_0_ends_at_once)
{
	int fd;

	CHECK(begin(NULL));
	announced = 0;
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "Content-Length: 0\r\n")));
	CHECK(UNTIL(overs == 1));
	end(fd);
}
