/* http_test.c - requests, replies, streams, and misbehaving peers. */
#include "base/cleanup.h"
#include "http_rig.h"
#include "http/conn.h"

/* ---- a server that does a little of everything ---- */

static struct http_req *kept; /* by "/wait" and "/stream" */
static int full_said, drains;
static size_t streamed, piece_bytes;
static char piece[64 << 10];

static void over(struct http_req *r)
{
	overs++;
	if (r == kept)
		kept = NULL;
}

static void echo_body(struct http_req *r)
{
	ends++;
	http_reply(r, 200, "application/octet-stream", r->body.p, r->body.len);
}

static void count_piece(struct http_req *r, const char *bytes, size_t n)
{
	(void)r;
	(void)bytes;
	streamed += n;
	piece_bytes = n;
}

static void pause_piece(struct http_req *r, const char *bytes, size_t n)
{
	count_piece(r, bytes, n);
	http_pause(r);
	kept = r;
}

static void say_count(struct http_req *r)
{
	char text[32];

	ends++;
	http_reply(r, 200, "text/plain", text,
		   (size_t)snprintf(text, sizeof(text), "%zu", streamed));
}

static void saw_eof(struct http_req *r)
{
	(void)r;
	eofs++;
}

static void more(struct http_req *r)
{
	drains++;
	full_said = 0;
	while (!full_said) {
		full_said = http_write(r, piece, sizeof(piece));
		streamed += sizeof(piece);
	}
}

static void say_facts(struct http_req *r)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s|%s|%s|%s|%u|%d", r->method, r->target, r->path, r->query, r->nheaders,
		   r->keep_alive);
	for (unsigned i = 0; i < r->nheaders; i++)
		buf_printf(&b, "|%s=%s", r->headers[i].name, r->headers[i].value);
	http_reply(r, 200, "text/plain", b.p, b.len);
	buf_fini(&b);
}

static void on_head(struct http_req *r)
{
	heads++;
	r->on_over = over;
	r->on_eof = saw_eof;
	if (strcmp(r->path, "/echo") == 0) {
		r->on_body_end = echo_body;
		http_want_body(r, HTTP_BODY_WHOLE, 1000);
	} else if (strcmp(r->path, "/upload") == 0 || strcmp(r->path, "/slow-upload") == 0) {
		streamed = 0;
		r->on_body = r->path[1] == 'u' ? count_piece : pause_piece;
		r->on_body_end = say_count;
		http_want_body(r, HTTP_BODY_STREAM, 0);
	} else if (strcmp(r->path, "/wait") == 0) {
		kept = r;
	} else if (strcmp(r->path, "/stream") == 0) {
		kept = r;
		http_stream(r, 200, "text/plain", UINT64_MAX);
	} else if (strcmp(r->path, "/flood") == 0) {
		kept = r;
		streamed = 0;
		drains = -1;
		r->on_drain = more;
		http_stream(r, 200, "text/plain", UINT64_MAX);
		more(r);
	} else if (strcmp(r->path, "/facts") == 0) {
		say_facts(r);
	} else {
		http_reply(r, 200, "text/plain", "hello\n", 6);
	}
}

static int begin(void)
{
	kept = NULL;
	return begin_server(NULL, on_head);
}

/* Sends, waits for the end of the connection. The status, or -1. */
static int fate_of_bytes(const char *bytes, size_t n)
{
	int fd = dial();
	int status;

	say_bytes(fd, bytes, n);
	status = UNTIL(ended(fd)) ? status_of() : -2;
	close(fd);
	return status;
}

static int fate(const char *text)
{
	return fate_of_bytes(text, strlen(text));
}

/* A reset, not an end of file that could look complete. */
static void vanish(int fd)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

/* ---- the good cases ---- */

TEST(a_request_is_answered_and_the_connection_stays_open)
{
	int fd;

	CHECK(begin());
	fd = dial();
	for (unsigned i = 1; i <= 3; i++) {
		say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
		CHECK(UNTIL((take(fd), count_of("hello\n")) == i));
		CHECK(UNTIL(overs == i));
	}
	CHECK_INT(status_of(), 200);
	CHECK(strstr(got, "\r\nContent-Length: 6\r\n"));
	CHECK(strstr(got, "\r\nContent-Type: text/plain\r\n"));
	CHECK(strstr(got, " GMT\r\n"));
	CHECK(!strstr(got, "Connection:"));
	CHECK_INT(server.requests, 3);
	CHECK_INT(server.open, 1);
	close(fd);
	CHECK(UNTIL(server.open == 0));
	end_server();
}

TEST(header_names_are_lower_case_and_values_are_trimmed)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /facts?a=b&c HTTP/1.1\r\nHOST:a\r\nX-Some: \t v w \t\r\nEmpty:\r\n\r\n");
	CHECK(UNTIL(received(fd, "|empty=")));
	CHECK(strstr(got, "GET|/facts?a=b&c|/facts|a=b&c|3|1|host=a|x-some=v w|empty="));
	close(fd);
	end_server();
}

TEST(an_empty_header_value_does_not_affect_the_next_header)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /facts HTTP/1.1\r\nHost: a\r\nEmpty:\r\nBlank: \t\r\nAfter: x\r\n\r\n");
	CHECK(UNTIL(received(fd, "\r\n\r\n")));
	CHECK(strstr(got, "host=a|empty=|blank=|after=x"));
	close(fd);
	end_server();
}

TEST(a_head_sent_byte_by_byte_is_parsed)
{
	const char *text = "GET /facts HTTP/1.1\r\nHost: a\r\nX-Some: v w\r\n\r\n";
	int fd;

	CHECK(begin());
	fd = dial();
	for (const char *p = text; *p; p++) {
		say_bytes(fd, p, 1);
		turn();
	}
	CHECK(UNTIL(received(fd, "|host=a|x-some=v w")));
	close(fd);
	end_server();
}

TEST(a_body_is_read_completely)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
	CHECK(UNTIL(heads == 1));
	say(fd, "cdeGET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "hello\n")));
	CHECK(strstr(got, "\r\n\r\nabcdeHTTP/1.1 200"));
	CHECK_INT(ends, 1);
	close(fd);
	end_server();
}

TEST(a_chunked_body_is_decoded)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd,
	    "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "hello\n")));
	CHECK(strstr(got, "\r\n\r\nabc0123456789HTTP/1.1 200"));
	close(fd);
	end_server();
}

TEST(the_end_of_an_empty_body_is_reported)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
	CHECK(UNTIL(received(fd, "Content-Length: 0")));
	CHECK_INT(ends, 1);
	close(fd);
	end_server();
}

TEST(reading_of_a_body_stops_while_the_handler_pauses)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "POST /slow-upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
	CHECK(UNTIL(streamed == 3));
	for (unsigned i = 0; i < 5; i++)
		turn();
	CHECK_INT(streamed, 3);
	http_resume(kept);
	CHECK(UNTIL(streamed == 5));
	CHECK_INT(ends, 0);
	http_resume(kept);
	CHECK(UNTIL(received(fd, "\r\n\r\n5")));
	close(fd);
	end_server();
}

TEST(a_body_paused_at_its_last_byte_ends_after_resume)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "POST /slow-upload HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
	CHECK(UNTIL(streamed == 3));
	CHECK_INT(ends, 0);
	http_resume(kept);
	CHECK(UNTIL(received(fd, "\r\n\r\n3")));
	CHECK_INT(ends, 1);
	close(fd);
	end_server();
}

TEST(a_paused_body_uses_bounded_memory)
{
	static char bytes[1 << 20];
	ssize_t n;
	size_t sent = 0;
	int fd, small = 8192;

	CHECK(begin());
	fd = dial();
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	say(fd, "POST /slow-upload HTTP/1.1\r\nHost: a\r\nContent-Length: 104857600\r\n\r\n");
	CHECK(UNTIL(heads == 1));
	for (unsigned idle = 0; idle < 20;) {
		n = send(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		idle = n > 0 ? 0 : idle + 1;
		turn();
	}
	CHECK(sent < 16 << 20); /* the kernel's buffers and 64 KiB of the server */
	CHECK(streamed <= 64 << 10);
	vanish(fd);
	CHECK(UNTIL(overs == 1));
	end_server();
}

TEST(expect_100_is_answered_when_the_handler_reads_the_body)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd,
	    "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
	CHECK(UNTIL(received(fd, "HTTP/1.1 100 Continue\r\n\r\n")));
	say(fd, "ab");
	CHECK(UNTIL(received(fd, "\r\n\r\nab")));
	close(fd);
	/* Not when the body is too large or not read: then only the answer is sent. */
	CHECK_INT(
		fate("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2000\r\n\r\n"),
		413);
	CHECK_INT(
		fate("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"),
		200);
	CHECK(strstr(got, "Connection: close\r\n"));
	CHECK_INT(fate("POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 2\r\n\r\n"),
		  417);
	end_server();
}

TEST(a_head_request_gets_the_length_and_no_body)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "HEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "hello\n")));
	CHECK(strstr(got, "Content-Length: 6\r\n\r\nHTTP/1.1 200 OK"));
	say(fd, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	got_len = 0;
	http_write(kept, "unseen", 6);
	http_end(kept);
	CHECK(UNTIL(received(fd, "\r\n\r\n")));
	CHECK(strstr(got, "Transfer-Encoding: chunked") && !strstr(got, "unseen") &&
	      !strstr(got, "0\r\n\r\n"));
	close(fd);
	end_server();
}

TEST(pipelined_requests_with_delayed_replies_are_answered_in_order)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	for (unsigned i = 0; i < 5; i++)
		turn();
	CHECK_INT(heads, 1);
	CHECK(!received(fd, "HTTP"));
	http_set(kept, "X-Late", "%s\r\nInjected: %d", "yes", 1);
	http_reply(kept, 202, "text/plain", "later\n", 6);
	CHECK(kept); /* no callback is called before http_reply() returns */
	CHECK(UNTIL(received(fd, "hello\n")));
	CHECK(strstr(got, "later\nHTTP/1.1 200"));
	CHECK(strstr(got, "X-Late: yes  Injected: 1\r\n"));
	CHECK_INT(overs, 2);
	close(fd);
	end_server();
}

TEST(a_streamed_reply_is_chunked)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	CHECK_INT(http_write(kept, "one", 3), 0);
	CHECK_INT(http_write(kept, "", 0), 0);
	CHECK(UNTIL(received(fd, "3\r\none\r\n")));
	CHECK_INT(http_write(kept, piece, 17000), 0);
	http_end(kept);
	CHECK(UNTIL(received(fd, "\r\n0\r\n\r\n")));
	CHECK(strstr(got, "4268\r\n"));
	CHECK(UNTIL(overs == 1));
	CHECK_INT(server.open, 1);
	close(fd);
	end_server();
}

TEST(a_streamed_reply_of_http_1_0_ends_with_the_connection)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	CHECK(UNTIL(kept));
	http_write(kept, "one", 3);
	http_end(kept);
	CHECK(UNTIL(ended(fd) == 1));
	CHECK(!strstr(got, "chunked") && strstr(got, "Connection: close\r\n\r\none"));
	close(fd);
	CHECK_INT(fate("GET / HTTP/1.0\r\n\r\n"), 200);
	fd = dial();
	say(fd, "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	CHECK(UNTIL(received(fd, "hello\n")));
	CHECK(strstr(got, "Connection: keep-alive\r\n"));
	close(fd);
	end_server();
}

static uint64_t promised;

static void promise_head(struct http_req *r)
{
	r->on_over = over;
	kept = r;
	http_stream(r, 200, "text/plain", promised);
}

TEST(a_streamed_reply_shorter_than_its_length_closes_the_connection)
{
	int fd;

	promised = 4;
	kept = NULL;
	CHECK(begin_server(NULL, promise_head));
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	http_write(kept, "ab", 2);
	http_write(kept, "cdef", 4);
	http_end(kept);
	CHECK(UNTIL(received(fd, "Content-Length: 4\r\n\r\nabcd")));
	CHECK(UNTIL(overs == 1));
	CHECK_INT(server.open, 1);
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	http_write(kept, "a", 1);
	http_end(kept);
	CHECK(UNTIL(ended(fd) == -1)); /* a reset, not an end */
	CHECK_INT(overs, 2);
	close(fd);
	end_server();
}

TEST(an_aborted_stream_is_not_terminated)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	http_write(kept, "half", 4);
	CHECK(UNTIL(received(fd, "half")));
	http_abort(kept);
	CHECK(UNTIL(ended(fd)));
	CHECK_INT(got_end, 1); /* a FIN: the client detects the error by the missing last chunk */
	CHECK(!received(fd, "0\r\n\r\n"));
	CHECK_INT(overs, 1);
	close(fd);
	/* Without chunks the end of the connection could look like the end of the reply. */
	fd = dial();
	kept = NULL;
	say(fd, "GET /stream HTTP/1.0\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	http_write(kept, "half", 4);
	CHECK(UNTIL(received(fd, "half")));
	http_abort(kept);
	CHECK(UNTIL(ended(fd)));
	CHECK_INT(got_end, -1);
	close(fd);
	end_server();
}

static void query_head(struct http_req *r)
{
	static const char *const allowed[] = { "a", "name", "z z", NULL };
	struct err e;
	const char *a = http_query(r, "a"), *name = http_query(r, "name");
	struct buf b = { 0 };

	buf_printf(&b, "a=%s name=%s ", a ? a : "-", name ? name : "-");
	buf_puts(&b, http_query_check(r, allowed, &e) == 0 ? "fine" : e.msg);
	http_reply(r, 200, NULL, b.p, b.len);
	buf_fini(&b);
}

static const char *asked(const char *query)
{
	char text[512];
	int fd = dial();

	snprintf(text, sizeof(text), "GET /?%s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
		 query);
	say(fd, text);
	UNTIL(ended(fd));
	close(fd);
	return strstr(got, "\r\n\r\n") + 4;
}

TEST(query_parameters_are_decoded_and_checked)
{
	CHECK(begin_server(NULL, query_head));
	CHECK_STR(asked(""), "a=- name=- fine");
	CHECK_STR(asked("a=1&name=x%2Fy+z%C3%A9"), "a=1 name=x/y z\xc3\xa9 fine");
	CHECK_STR(asked("&a&&n%61me=&"), "a= name= fine");
	CHECK_STR(asked("a=b=c"), "a=b=c name=- fine");
	CHECK_STR(asked("z+z=1&z%20z=2"), "a=- name=- query: 'z z' is given twice");
	CHECK_STR(asked("b=1"), "a=- name=- query: there is no parameter 'b' here");
	CHECK_STR(asked("a=%00"),
		  "a=- name=- query: the value of 'a' is not valid percent-encoding");
	CHECK_STR(asked("a=%4"),
		  "a=- name=- query: the value of 'a' is not valid percent-encoding");
	CHECK_STR(asked("a=%zz"),
		  "a=- name=- query: the value of 'a' is not valid percent-encoding");
	CHECK_STR(asked("%=1"), "a=- name=- query: '%' is not a percent-encoded name");
	end_server();
}

TEST(an_unread_body_is_skipped_if_small_and_ends_the_connection_if_large)
{
	static char bytes[60000];
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n");
	CHECK(UNTIL(received(fd, "hello\n")));
	CHECK(!strstr(got, "Connection"));
	CHECK(UNTIL(overs == 1));
	say_bytes(fd, bytes, sizeof(bytes));
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL((take(fd), count_of("hello\n")) == 2));
	close(fd);
	CHECK_INT(fate("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n"), 200);
	CHECK(strstr(got, "Connection: close\r\n"));
	CHECK_INT(fate("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 200);
	CHECK(strstr(got, "Connection: close\r\n"));
	end_server();
}

TEST(a_unix_peer_is_identified_by_its_uid)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *dir = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(begin());
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/http.%d", dir, (int)getpid());
	CHECK(bind(fd, (void *)&un, sizeof(un)) == 0 && listen(fd, 5) == 0);
	CHECK(http_listen(&server, fd, NULL, &oops) == 0);
	CHECK(connect(client, (void *)&un, sizeof(un)) == 0);
	got_len = 0;
	got_end = 0;
	say(client, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	CHECK_INT(kept->unix_peer, 1);
	CHECK_INT(kept->peer_uid, getuid());
	CHECK(strncmp(kept->peer, "unix:", 5) == 0);
	unlink(un.sun_path);
	close(client);
	/* Here the kernel reports it: the peer has closed both directions. */
	CHECK(UNTIL(overs == 1));
	CHECK_INT(http_listen(&server, dup(0), NULL, &oops), -1);
	end_server();
}

TEST(draining_finishes_replies_and_accepts_no_requests)
{
	int busy, idle, fd;

	CHECK(begin());
	idle = dial();
	say(idle, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(idle, "hello\n")));
	busy = dial();
	say(busy, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept && server.open == 2));
	http_drain(&server);
	CHECK(UNTIL(server.open == 1));
	CHECK(ended(idle));
	CHECK(!http_drained(&server));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(fd, (void *)&where, sizeof(where)) < 0);
	close(fd);
	got_len = 0;
	got_end = 0;
	http_reply(kept, 200, NULL, "bye", 3);
	CHECK(UNTIL(ended(busy)));
	CHECK(strstr(got, "Connection: close\r\n") && strstr(got, "\r\n\r\nbye"));
	close(busy);
	close(idle);
	CHECK(UNTIL(http_drained(&server)));
	end_server();
}

/* Between its connect() and its first byte the client may lose the processor. */
TEST(draining_waits_for_the_first_request_of_a_new_connection)
{
	static const struct http_limits brief = { .idle_ms = 100, .fresh_ms = 300 };
	int slow, silent;

	CHECK(begin_server(&brief, on_head));
	slow = dial();
	silent = dial();
	CHECK(UNTIL(server.open == 2));
	http_drain(&server);
	for (unsigned i = 0; i < 5; i++)
		turn();
	CHECK_INT(server.open, 2);
	say(slow, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(ended(slow)));
	CHECK(strstr(got, "Connection: close\r\n") && strstr(got, "hello\n"));
	got_end = 0;
	CHECK(UNTIL(ended(silent)));
	close(slow);
	close(silent);
	CHECK(UNTIL(http_drained(&server)));
	end_server();
}

/* ---- what is not HTTP ---- */

static const struct {
	const char *text;
	int status;
} malformed[] = {
	/* Two lengths, or an invalid length: the basis of request smuggling. */
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nabcde", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nabcde", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\nabcde", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nabcde", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\nabcde", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nabcde",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	  501 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	  400 },
	{ "POST /echo HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0b"
	  "chunked\r\n\r\n0\r\n\r\n",
	  400 },
	/* Chunks. */
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\na\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\na\r\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na\r\n",
	  413 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nzz\r\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n\r\n", 400 },
	/* Lines. */
	{ "GET / HTTP/1.1\nHost: a\n\n\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\nHost: a\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\n\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\rHost: a\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\tc\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\n Host: a\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX\x80: b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX: b\x01\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX: b\x7f\r\n\r\n", 400 },
	/* The request line. */
	{ "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400 },
	{ "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET /#f HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "get / HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "NONSENSE / HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", 400 },
	{ "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400 },
	{ "GET /\r\n\r\n", 505 },
	{ "GET / HTTP/0.9\r\nHost: a\r\n\r\n", 505 },
	{ "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505 },
	{ "GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505 },
	{ "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505 },
	{ "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505 },
	{ "DESCRIBE / RTSP/1.0\r\nHost: a\r\n\r\n", 400 },
	{ "SOURCE / ICE/1.0\r\nHost: a\r\n\r\n", 400 },
	{ "\x16\x03\x01\x02 a TLS hello on the wrong port\r\n\r\n", 400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\n",
	  400 },
	{ "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: x\r\n\n",
	  400 },
	/* Headers that two parsers could read differently if they occur twice. */
	{ "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: a\r\nAuthorization: a\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: a\r\nX-Api-Key: b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nOrigin: a\r\nX: y\r\norigin: b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nContent-Type: a\r\nContent-Type: b\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nE2b-Sandbox-Id: a\r\nE2b-Sandbox-Id: b\r\n\r\n", 400 },
	/* Host. */
	{ "GET / HTTP/1.1\r\n\r\n", 400 },
	{ "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400 },
	{ "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", 400 },
};

TEST(an_ambiguous_request_is_rejected_and_ends_the_connection)
{
	CHECK(begin());
	for (unsigned i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
		char smuggled[1024];
		int status;

		snprintf(smuggled, sizeof(smuggled), "%sGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n",
			 malformed[i].text);
		status = fate(smuggled);
		if (status != malformed[i].status)
			printf("# row %u: %s\n# %s\n", i, malformed[i].text, got);
		CHECK_INT(status, malformed[i].status);
		CHECK(strstr(got, "\r\nConnection: close\r\n"));
		CHECK(strstr(got, "\r\nContent-Type: application/json\r\n"));
		CHECK(strstr(got, "{\"error\":{\"code\":\"") &&
		      strstr(got, "\"hints\":[],\"doc\":\"\"}}"));
		CHECK_INT(count_of("\nContent-Length: "), 1);
	}
	CHECK_INT(overs, heads);
	CHECK(UNTIL(server.open == 0));
	end_server();
}

TEST(a_few_empty_lines_before_a_request_are_skipped_and_many_refused)
{
	static char many[4000 + 64];

	CHECK(begin());
	for (unsigned i = 0; i < 2000; i++)
		memcpy(many + 2 * i, "\r\n", 2);
	strcpy(many + 4000, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
	CHECK_INT(fate(many), 400);
	CHECK_INT(fate(many + 4000 - 4), 200);
	end_server();
}

TEST(a_nul_in_the_head_is_refused)
{
	static const char in_value[] = "GET / HTTP/1.1\r\nHost: a\0b\r\n\r\n";
	static const char in_name[] = "GET / HTTP/1.1\r\nHo\0st: a\r\n\r\n";
	static const char in_target[] = "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n";

	CHECK(begin());
	CHECK_INT(fate_of_bytes(in_value, sizeof(in_value) - 1), 400);
	CHECK_INT(fate_of_bytes(in_name, sizeof(in_name) - 1), 400);
	CHECK_INT(fate_of_bytes(in_target, sizeof(in_target) - 1), 400);
	CHECK_INT(heads, 0);
	end_server();
}

TEST(other_forms_of_the_target_mean_the_same_host)
{
	CHECK(begin());
	CHECK_INT(
		fate("GET http://A:80/facts?x HTTP/1.1\r\nHost: a:80\r\nConnection: close\r\n\r\n"),
		200);
	CHECK(strstr(got, "GET|http://A:80/facts?x|/facts|x|"));
	CHECK_INT(fate("GET http://a?facts HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 200);
	CHECK_INT(fate("OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 200);
	CHECK_INT(fate("\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), 200);
	end_server();
}

/* ---- too much ---- */

TEST(a_head_over_the_limit_is_rejected_before_it_is_complete)
{
	static char bytes[1 << 20];

	CHECK(begin());
	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes, "GET / HTTP/1.1\r\nHost: a\r\nX: ", 28);
	CHECK_INT(fate_of_bytes(bytes, sizeof(bytes)), 431);
	memcpy(bytes, "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaa", 28);
	CHECK_INT(fate_of_bytes(bytes, sizeof(bytes)), 414);
	CHECK_INT(heads, 0);
	CHECK(UNTIL(server.open == 0));
	end_server();
}

TEST(too_many_headers_are_refused)
{
	struct http_limits limits = { .head_bytes = 1 << 20 };
	struct buf b = { 0 };

	kept = NULL;
	CHECK(begin_server(&limits, on_head));
	buf_puts(&b, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n");
	for (unsigned i = 0; i < 98; i++)
		buf_printf(&b, "h%u: v\r\n", i);
	buf_puts(&b, "\r\n");
	CHECK_INT(fate(buf_str(&b)), 200);
	buf_cut(&b, b.len - 2);
	for (unsigned i = 0; i < 10000; i++)
		buf_printf(&b, "h%u: v\r\n", i);
	buf_puts(&b, "\r\n");
	CHECK_INT(fate(buf_str(&b)), 431);
	CHECK_INT(heads, 1);
	buf_fini(&b);
	end_server();
}

TEST(a_body_over_the_limit_is_rejected_before_it_is_read)
{
	char big[3000];

	CHECK(begin());
	CHECK_INT(fate("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n"), 413);
	CHECK(strstr(got, "\"code\":\"body_too_large\""));
	CHECK_INT(ends, 0);
	snprintf(big, sizeof(big),
		 "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "200\r\n%0512d\r\n1e8\r\n%0488d\r\n1\r\na\r\n0\r\n\r\n",
		 0, 0);
	CHECK_INT(fate(big), 413);
	CHECK_INT(ends, 0);
	CHECK_INT(overs, heads);
	end_server();
}

TEST(overlong_chunk_extensions_and_trailers_are_rejected)
{
	struct buf b = { 0 };

	CHECK(begin());
	buf_puts(&b, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;");
	for (unsigned i = 0; i < 200000; i++)
		buf_putc(&b, 'x');
	CHECK_INT(fate(buf_str(&b)), 400);
	buf_cut(&b, 0);
	buf_puts(&b, "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n");
	for (unsigned i = 0; i < 20000; i++)
		buf_puts(&b, "trailer: x\r\n");
	CHECK_INT(fate(buf_str(&b)), 400);
	buf_fini(&b);
	end_server();
}

TEST(many_pipelined_requests_are_answered_in_order_with_bounded_memory)
{
	enum { COUNT = 5000 };
	struct buf b = { 0 };
	unsigned at = 0;
	int fd;

	CHECK(begin());
	fd = dial();
	for (unsigned i = 0; i < COUNT; i++)
		buf_printf(&b, "GET /facts?%05u HTTP/1.1\r\nHost: a\r\n\r\n", i);
	CHECK(say_bytes(fd, b.p, b.len));
	CHECK(UNTIL((take(fd), count_of("HTTP/1.1 200 OK")) == COUNT));
	for (const char *p = got; (p = strstr(p, "|/facts|")); p++)
		CHECK_INT(atoi(p + 8), at++);
	CHECK_INT(at, COUNT);
	buf_fini(&b);
	close(fd);
	end_server();
}

/* A connection whose source is 127.0.0.LAST. */
static int dial_from(unsigned last)
{
	struct sockaddr_in from = { .sin_family = AF_INET,
				    .sin_addr = { htonl(0x7f000000u + last) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (void *)&from, sizeof(from)) < 0 ||
	    connect(fd, (void *)&where, sizeof(where)) < 0)
		return -1;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	got_len = 0;
	got_end = 0;
	return fd;
}

static int ask(int fd)
{
	got_len = 0;
	got_end = 0;
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	return UNTIL(received(fd, "hello"));
}

/* A request that the handler does not answer yet. */
static void occupy(int fd)
{
	unsigned before = heads;

	say(fd, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(heads == before + 1));
}

/* Reads until the server has closed the connection, ignoring earlier bytes. */
static int is_closed(int fd)
{
	got_end = 0;
	got_len = 0;
	return UNTIL(ended(fd));
}

TEST(a_connection_over_the_limit_gets_503)
{
	struct http_limits limits = { .connections = 2, .per_address = 2 };
	int a, b, c;

	CHECK(begin_server(&limits, on_head));
	a = dial();
	b = dial();
	occupy(a);
	occupy(b);
	c = dial();
	CHECK(UNTIL(ended(c)));
	CHECK_INT(status_of(), 503);
	CHECK(strstr(got, "\"code\":\"overloaded\""));
	close(c);
	vanish(b);
	CHECK(UNTIL(server.open == 1));
	c = dial();
	CHECK(ask(c));
	close(a);
	close(c);
	end_server();
}

TEST(connections_without_a_request_are_closed_first_then_idle_ones)
{
	struct http_limits limits = { .connections = 4, .per_address = 4 };
	int kept_one, busy, silent[2], fd;

	CHECK(begin_server(&limits, on_head));
	kept_one = dial();
	CHECK(ask(kept_one));
	silent[0] = dial();
	CHECK(UNTIL(server.open == 2));
	silent[1] = dial();
	CHECK(UNTIL(server.open == 3));
	busy = dial();
	occupy(busy);
	say(silent[1], "GET / HTT"); /* half a head is none */
	for (unsigned i = 0; i < 2; i++) {
		fd = dial();
		CHECK(ask(fd));
		CHECK(is_closed(silent[i]));
		CHECK_INT(server.evicted, i + 1);
	}
	/* Left are kept_one, busy and two that were answered: the one that has been idle longest
	 * is closed. */
	CHECK(ask(dial()));
	CHECK(is_closed(kept_one));
	/* A request in progress is never ended. */
	for (unsigned i = 0; i < 8; i++)
		CHECK(ask(dial()));
	CHECK_INT(overs, heads - 1);
	CHECK(kept != NULL);
	end_server();
}

TEST(connections_per_address_are_limited)
{
	struct http_limits limits = { .connections = 6, .per_address = 3 };
	int mine[4], other;

	CHECK(begin_server(&limits, on_head));
	for (unsigned i = 0; i < 3; i++) {
		mine[i] = dial_from(1);
		occupy(mine[i]);
	}
	mine[3] = dial_from(1);
	CHECK(UNTIL(ended(mine[3])));
	CHECK_INT(status_of(), 503);
	CHECK(strstr(got, "of this address"));
	for (unsigned i = 2; i < 5; i++) {
		other = dial_from(i);
		CHECK(ask(other));
	}
	/* The limit is reached and more clients connect: no client loses its share, idle
	 * connections are closed. */
	for (unsigned i = 5; i < 20; i++)
		CHECK(ask(dial_from(i)));
	CHECK_INT(overs, heads - 3);
	end_server();
}

TEST(silent_connections_do_not_block_other_clients)
{
	enum { FLOOD = 400 };
	struct http_limits limits = { .connections = 64 };
	static int fds[FLOOD];

	CHECK(begin_server(&limits, on_head));
	for (unsigned i = 0; i < FLOOD; i++) {
		fds[i] = dial();
		if (i % 32 == 0)
			turn();
	}
	for (unsigned i = 0; i < 5; i++) {
		CHECK(ask(dial()));
		CHECK(ask(dial_from(9)));
	}
	CHECK(UNTIL(server.open <= 64));
	for (unsigned i = 0; i < FLOOD; i++)
		close(fds[i]);
	end_server();
}

TEST(a_connection_without_a_request_has_the_head_timeout_and_an_idle_one_longer)
{
	struct http_limits limits = { .head_ms = 40, .idle_ms = 60000 };
	int silent, answered;

	CHECK(begin_server(&limits, on_head));
	answered = dial();
	CHECK(ask(answered));
	silent = dial();
	CHECK(UNTIL(ended(silent)));
	CHECK_INT(got_len, 0);
	CHECK_INT(server.open, 1);
	CHECK(ask(answered));
	end_server();
}

TEST(thousands_of_connections_may_be_idle)
{
	enum { MANY = 10000 };
	static int fds[MANY];
	int n = 0;

	CHECK(begin_server(&(struct http_limits){ .per_address = MANY, .head_ms = 600000 },
			   on_head));
	while (n < MANY && (fds[n] = dial()) >= 0) {
		n++;
		if (n % 256 == 0 && !UNTIL(server.open >= (unsigned)n - 8))
			break; /* out of descriptors, both ends counted */
	}
	CHECK(n >= 400);
	say(fds[0], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fds[0], "hello")));
	for (int i = 0; i < n; i++)
		close(fds[i]);
	CHECK(UNTIL(server.open == 0));
	end_server();
}

/* ---- too slow, and gone ---- */

static const struct http_limits hasty = {
	.headers = 1 << 20,
	.head_bytes = 1 << 24,
	.head_ms = 60,
	.idle_ms = 100,
	.body_stall_ms = 60,
	.send_stall_ms = 150,
};

TEST(a_slow_head_is_ended_by_its_timeout)
{
	uint64_t begun = loop_now_ms();
	int fd;

	CHECK(begin_server(&hasty, on_head));
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n");
	while (!ended(fd) && loop_now_ms() - begun < PATIENCE_MS) {
		say(fd, "X: y\r\n");
		turn();
	}
	CHECK_INT(status_of(), 408);
	CHECK(loop_now_ms() - begun >= 60 && loop_now_ms() - begun < 5000);
	close(fd);
	end_server();
}

TEST(idle_connections_and_stalled_bodies_are_closed_by_timeout)
{
	int fd;

	CHECK(begin_server(&hasty, on_head));
	fd = dial();
	CHECK(UNTIL(ended(fd) == 1));
	CHECK_INT(got_len, 0);
	close(fd);
	CHECK_INT(fate("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"), 408);
	CHECK_INT(overs, 1);
	CHECK_INT(ends, 0);
	/* But a client that waits for its reply has no timeout. */
	fd = dial();
	kept = NULL;
	say(fd, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	for (uint64_t end = loop_now_ms() + 300; loop_now_ms() < end;)
		turn();
	CHECK(kept);
	http_reply(kept, 200, NULL, "late", 4);
	CHECK(UNTIL(received(fd, "late")));
	close(fd);
	end_server();
}

TEST(a_body_that_arrives_too_slowly_is_ended)
{
	struct http_limits limits = { .body_stall_ms = 100 };
	uint64_t begun = loop_now_ms(), last = 0;
	int fd;

	CHECK(begin_server(&limits, on_head));
	fd = dial();
	say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n");
	while (!ended(fd) && loop_now_ms() - begun < PATIENCE_MS) {
		if (loop_now_ms() - last >= 20) {
			last = loop_now_ms();
			say(fd, "x");
		}
		turn();
	}
	CHECK_INT(status_of(), 408);
	CHECK(strstr(got, "too slowly"));
	close(fd);
	/* The handler of a stream decides, and this one accepts it. */
	fd = dial();
	say(fd, "POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 60\r\n\r\n");
	for (unsigned i = 0; i < 60; i++) {
		say(fd, "x");
		turn();
	}
	CHECK(UNTIL(received(fd, "60")));
	close(fd);
	end_server();
}

TEST(a_client_that_never_reads_uses_bounded_memory_and_is_closed)
{
	int fd;

	kept = NULL;
	CHECK(begin_server(&hasty, on_head));
	fd = dial();
	say(fd, "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	CHECK(UNTIL(!kept || http_waiting(kept) > 0));
	CHECK(kept && http_waiting(kept) <= (256 << 10) + sizeof(piece) + 64);
	CHECK(UNTIL(overs == 1));
	CHECK_INT(server.open, 0);
	CHECK(streamed < 64 << 20);
	close(fd);
	end_server();
}

TEST(a_slow_client_gets_the_complete_reply)
{
	static char sink[256 << 10];
	size_t total = 0;
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	while (total < 40 << 20) {
		ssize_t n = recv(fd, sink, sizeof(sink), MSG_DONTWAIT);

		CHECK(n > 0 || (n < 0 && errno == EAGAIN));
		total += n > 0 ? (size_t)n : 0;
		turn();
		CHECK(kept && http_waiting(kept) <= (256 << 10) + sizeof(piece) + 64);
	}
	CHECK(drains > 10);
	close(fd);
	CHECK(UNTIL(overs == 1));
	end_server();
}

/* A write is possible when the buffer is no longer full and not yet drained. */
TEST(a_writer_that_was_paused_is_resumed)
{
	static char sink[4 << 10];
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /flood HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept && full_said));
	while (http_waiting(kept) > 256 << 10) {
		(void)!recv(fd, sink, sizeof(sink), MSG_DONTWAIT);
		turn();
	}
	CHECK(http_waiting(kept) > 128 << 10);
	CHECK_INT(drains, 0);
	CHECK_INT(http_write(kept, "x", 1), 1);
	CHECK(UNTIL((recv(fd, sink, sizeof(sink), MSG_DONTWAIT), drains > 0)));
	close(fd);
	CHECK(UNTIL(overs == 1));
	end_server();
}

TEST(a_client_that_half_closed_gets_its_reply)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
	shutdown(fd, SHUT_WR);
	CHECK(UNTIL(eofs == 1));
	CHECK(kept);
	CHECK_INT(overs, 0);
	http_reply(kept, 200, NULL, "still here", 10);
	CHECK(UNTIL(ended(fd) == 1));
	CHECK(received(fd, "still here"));
	close(fd);

	fd = dial();
	say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
	shutdown(fd, SHUT_WR);
	CHECK(UNTIL(ended(fd) == 1));
	CHECK(received(fd, "\r\n\r\nabc"));
	close(fd);

	fd = dial();
	say(fd, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc");
	shutdown(fd, SHUT_WR);
	CHECK(UNTIL(ended(fd) == 1));
	CHECK_INT(status_of(), 400);
	close(fd);
	end_server();
}

TEST(a_disconnect_is_reported_once_in_every_state)
{
	static const char *const places[] = {
		"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /flood HTTP/1.1\r\nHost: a\r\n\r\n",
		"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
		"POST /slow-upload HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
		"POST /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
	};

	CHECK(begin());
	for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int fd = dial();

		kept = NULL;
		say(fd, places[i]);
		CHECK(UNTIL(heads == i + 1));
		for (unsigned j = 0; j < 3; j++)
			turn();
		vanish(fd);
		CHECK(UNTIL(overs == i + 1));
		CHECK(UNTIL(server.open == 0));
	}
	CHECK_INT(overs, heads);
	end_server();
}

TEST(a_stream_to_a_closed_peer_ends_with_the_next_write)
{
	uint64_t begun = loop_now_ms();
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(received(fd, "\r\n\r\n")));
	close(fd);
	CHECK(UNTIL(eofs == 1));
	CHECK_INT(overs, 0);
	while (kept && loop_now_ms() < begun + PATIENCE_MS) {
		http_write(kept, "x", 1);
		turn();
	}
	CHECK_INT(overs, 1);
	end_server();
}

TEST(freeing_the_server_ends_its_requests)
{
	int fd;

	CHECK(begin());
	fd = dial();
	say(fd, "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	end_server();
	CHECK_INT(overs, 1);
	close(fd);
}

static void resume_own(struct http_req *r)
{
	overs++;
	http_resume(r);
}

static void wait_and_resume(struct http_req *r)
{
	heads++;
	kept = r;
	r->on_over = resume_own;
}

/* The sanitised build finds the second use of the connection. */
TEST(a_request_that_is_resumed_at_its_end_is_freed_once)
{
	int fd;

	CHECK(begin_server(NULL, wait_and_resume));
	kept = NULL;
	fd = dial();
	say(fd, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	CHECK(UNTIL(kept));
	vanish(fd);
	CHECK(UNTIL(overs == 1));
	CHECK(server.open == 0 && server.conns == NULL);
	for (unsigned i = 0; i < 3; i++)
		turn();
	CHECK_INT(overs, 1);
	end_server();
}

static struct http_req *three[3];

static void resume_next(struct http_req *r)
{
	overs++;
	for (unsigned i = 0; i < ARRAY_LEN(three); i++)
		if (three[i] == r)
			three[i] = NULL;
		else if (three[i] && overs == 2)
			http_resume(three[i]);
}

static void keep_three(struct http_req *r)
{
	three[heads++ % ARRAY_LEN(three)] = r;
	r->on_over = resume_next;
}

/* The connection that is freed first is the last one of a list: the third one would be appended to
 * it. */
TEST(freeing_the_server_schedules_no_connection_again)
{
	int fds[ARRAY_LEN(three)];

	CHECK(begin_server(NULL, keep_three));
	for (unsigned i = 0; i < ARRAY_LEN(three); i++) {
		fds[i] = dial();
		say(fds[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
		CHECK(UNTIL(heads == i + 1));
	}
	for (unsigned i = 0; i < ARRAY_LEN(three); i++)
		if (three[i]->conn == server.conns)
			http_resume(three[i]);
	end_server();
	CHECK_INT(overs, 3);
	for (unsigned i = 0; i < ARRAY_LEN(three); i++)
		close(fds[i]);
}

/* ---- the tables of states ---- */

TEST(every_state_of_a_connection_can_end_and_the_last_one_is_final)
{
	for (unsigned i = 0; i < CONN_STATES; i++) {
		enum conn_state now = (enum conn_state)i;

		CHECK_INT(conn_state_follows(now, CONN_DEAD), now != CONN_DEAD);
		CHECK(!conn_state_follows(CONN_DEAD, now));
		CHECK(!conn_state_follows(now, now));
	}
	CHECK(!conn_state_follows(CONN_WS,
				  CONN_BUSY)); /* after 101 the connection is not HTTP again */
	CHECK(!conn_state_follows(CONN_LINGER, CONN_IDLE));
}

TEST(reply_that_is_done_is_not_continued)
{
	CHECK(conn_reply_follows(REPLY_NONE, REPLY_DONE));
	CHECK(conn_reply_follows(REPLY_STREAM, REPLY_DONE));
	CHECK(!conn_reply_follows(REPLY_DONE, REPLY_STREAM));
	CHECK(!conn_reply_follows(REPLY_STREAM, REPLY_NONE)); /* a stream is ended or cut */
}
