/* relay_test.c - the relay between a client and a server, which are plain sockets here. */
#include "http/relay.h"
#include "http_rig.h"

static int far = -1; /* the server's end */
static int near = -1;
static char asked[4 << 20];
static size_t asked_len;
static int asked_end;
static struct relay *relay;
static char why_failed[200];
static int close_accepted = 1, switches;
static uint32_t patience_ms;

static const char *sends(void *user, const struct http_header *h)
{
	(void)user;
	return strcmp(h->name, "x-secret") != 0 ? h->value : NULL;
}

static void failed(void *user, const char *why)
{
	snprintf(why_failed, sizeof(why_failed), "%s", why);
	http_reply(user, 502, "text/plain", "no\n", 3);
}

static int close_is_complete(void *user)
{
	(void)user;
	return close_accepted;
}

static void switched(void *user)
{
	((struct http_req *)user)->on_eof = NULL;
	switches++;
}

static void on_body(struct http_req *r, const char *bytes, size_t n)
{
	relay_body(r->user, bytes, n);
}

static void on_body_end(struct http_req *r)
{
	relay_body_end(r->user);
	ends++;
}

static void on_drain(struct http_req *r)
{
	relay_drain(r->user);
}

static void on_over(struct http_req *r)
{
	relay_free(r->user);
	relay = NULL;
	overs++;
}

static void on_head(struct http_req *r)
{
	const struct relay_rules rules = { .sends = sends,
					   .failed = failed,
					   .close_is_complete = close_is_complete,
					   .switched = switched,
					   .user = r,
					   .head_ms = patience_ms };
	int pair[2];

	heads++;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	if (far >= 0)
		close(far);
	far = pair[1];
	asked_len = 0;
	asked_end = 0;
	http_set(r, "X-Own", "of the server");
	r->on_body = on_body;
	r->on_body_end = on_body_end;
	r->on_drain = on_drain;
	r->on_eof = http_abort;
	r->on_over = on_over;
	http_want_body(r, HTTP_BODY_STREAM, 0);
	r->user = relay = relay_new(r, &loop, upstream_link_plain(pair[0]), &rules);
}

static void begin(void)
{
	why_failed[0] = 0;
	close_accepted = 1;
	switches = 0;
	patience_ms = 60000;
	asked_len = 0;
	begin_server(NULL, on_head);
	near = dial();
}

static void finish(void)
{
	close(near);
	if (far >= 0)
		close(far);
	near = far = -1;
	end_server();
}

/* The requests that the server has received so far. */
static int was_asked(const char *text)
{
	ssize_t n = far < 0 ? 0 : recv(far, asked + asked_len, sizeof(asked) - 1 - asked_len, 0);

	if (n > 0)
		asked_len += (size_t)n;
	else if (far >= 0 && (n == 0 || errno != EAGAIN))
		asked_end = 1;
	asked[asked_len] = 0;
	return memmem(asked, asked_len, text, strlen(text)) != NULL;
}

static void hang_up(void)
{
	close(far);
	far = -1;
}

/* A GET, and the server has read it. */
static int get(void)
{
	asked_len = 0;
	return say(near, "GET / HTTP/1.1\r\nHost: h\r\n\r\n") && UNTIL(was_asked("\r\n\r\n"));
}

#define ANSWER(text) say(far, text)

TEST(a_request_is_serialised_again)
{
	begin();
	say(near,
	    "GET http://a.b:1/x?y=1 HTTP/1.1\r\nHOST: a.b:1\r\nx-one:  1 \r\nX-Secret: s\r\n"
	    "Connection: x-two, close\r\nX-Two: 2\r\nTE: trailers\r\nKeep-Alive: 3\r\n"
	    "Proxy-Authorization: p\r\nUpgrade: h2c\r\nForwarded: for=me\r\nExpect: 100-continue\r\n"
	    "Cookie: c=1\r\n\r\n");
	CHECK(UNTIL(was_asked("\r\n\r\n")));
	CHECK_STR(asked, "GET /x?y=1 HTTP/1.1\r\nHost: a.b:1\r\nx-one: 1\r\ncookie: c=1\r\n"
			 "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
			 "X-Forwarded-Host: a.b:1\r\nConnection: close\r\n\r\n");
	finish();
}

TEST(forwarded_headers_of_a_local_proxy_are_trusted)
{
	begin();
	say(near,
	    "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n"
	    "X-Forwarded-Host: outside\r\n\r\n");
	CHECK(UNTIL(was_asked("\r\n\r\n")));
	CHECK(was_asked("X-Forwarded-For: 9.9.9.9, 127.0.0.1\r\nX-Forwarded-Proto: https\r\n"
			"X-Forwarded-Host: outside\r\n"));
	finish();
}

TEST(an_answer_is_serialised_again)
{
	begin();
	CHECK(get());
	ANSWER("HTTP/1.1 299 Whatever They Say\r\nset-cookie: a=1\r\nSet-Cookie: b=2\r\n"
	       "Connection: keep-alive, x-hop\r\nX-Hop: 1\r\nContent-Type: text/x\r\nDate: never\r\n"
	       "Keep-Alive: 5\r\nContent-Length: 5\r\nX-Odd: a\tb\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\n");
	CHECK(UNTIL(received(near, "hello")));
	CHECK(UNTIL(overs == 1));
	take(near);
	CHECK_INT(status_of(), 299);
	CHECK(received(near, "set-cookie: a=1\r\nset-cookie: b=2\r\n"));
	CHECK(received(near, "\r\nContent-Length: 5\r\n"));
	CHECK(received(near, "\r\ncontent-type: text/x\r\n"));
	CHECK(!received(near, "never") && !received(near, "x-hop") && !received(near, "X-Own"));
	CHECK_STR(got + got_len - 9, "\r\n\r\nhello"); /* and nothing after it */
	CHECK(!got_end);
	finish();
}

TEST(the_connection_of_the_client_is_reused)
{
	begin();
	for (unsigned i = 1; i <= 3; i++) {
		CHECK(get());
		ANSWER("HTTP/1.0 200 OK\r\n\r\nuntil the end");
		hang_up();
		CHECK(UNTIL(overs == i));
	}
	take(near);
	CHECK_INT(count_of("d\r\nuntil the end\r\n0\r\n\r\n"), 3);
	CHECK(!got_end);
	finish();
}

TEST(chunks_are_decoded_and_trailers_dropped)
{
	begin();
	CHECK(get());
	ANSWER("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
	       "3;ext=1\r\nabc\r\n0\r\nX-T: 1\r\n\r\n");
	CHECK(UNTIL(received(near, "0\r\n\r\n")));
	CHECK(received(near, "\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
	CHECK(!received(near, "X-T") && !received(near, "ext") && !received(near, "trailer"));
	finish();
}

TEST(interim_answers_are_skipped)
{
	begin();
	CHECK(get());
	ANSWER("HTTP/1.1 100 Continue\r\nX-A: 1\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: l\r\n\r\n"
	       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	CHECK(UNTIL(received(near, "\r\n\r\nok")));
	CHECK_INT(status_of(), 200);
	CHECK(!received(near, "103") && !received(near, "x-a") && !received(near, "link"));
	finish();
}

TEST(answers_without_a_body_are_relayed)
{
	static const struct {
		const char *method, *answer, *has;
	} rows[] = {
		{ "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "Content-Length: 9\r\n" },
		{ "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "200 OK" },
		{ "GET", "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n", "x-a: 1\r\n" },
		{ "GET", "HTTP/1.1 304 Not Modified\r\nETag: \"e\"\r\nContent-Length: 9\r\n\r\n",
		  "etag: \"e\"\r\n" },
		{ "GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "Content-Length: 0\r\n" },
	};

	begin();
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		got_len = asked_len = 0;
		say(near, rows[i].method);
		say(near, " / HTTP/1.1\r\nHost: h\r\n\r\n");
		CHECK(UNTIL(heads == i + 1 && was_asked("\r\n\r\n")));
		ANSWER(rows[i].answer);
		CHECK(UNTIL(overs == i + 1));
		CHECK(received(near, rows[i].has));
		CHECK_STR(got + got_len - 4, "\r\n\r\n");
		CHECK_INT(count_of("\r\n\r\n"), 1);
	}
	CHECK(!ended(near));
	finish();
}

TEST(an_invalid_answer_of_the_server_is_a_502)
{
	static const char *const wrong[] = {
		"SSH-2.0-OpenSSH_9.2\r\n",
		"HTTP/2 200\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\n: nameless\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX-A : 1\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
		"HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"\r\n\r\n\x01\x02",
	};

	begin();
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		got_len = 0;
		CHECK(get());
		ANSWER(wrong[i]);
		hang_up();
		CHECK(UNTIL(received(near, "no\n")));
		CHECK_INT(status_of(), 502);
		CHECK(why_failed[0]);
		CHECK(UNTIL(overs == i + 1));
	}
	CHECK(!ended(near)); /* the client may send further requests */
	finish();
}

TEST(a_server_that_closes_without_an_answer_is_a_502)
{
	begin();
	CHECK(get());
	hang_up();
	CHECK(UNTIL(received(near, "no\n")));
	CHECK_STR(why_failed, "it closed the connection without an answer");
	finish();
}

TEST(an_endless_head_is_a_502)
{
	unsigned n = 0;

	begin();
	CHECK(get());
	ANSWER("HTTP/1.1 200 OK\r\n");
	while (!why_failed[0] && n++ < 10000) {
		send(far, "X-More: and more and more\r\n", 27, MSG_NOSIGNAL | MSG_DONTWAIT);
		turn();
	}
	CHECK(UNTIL(received(near, "no\n")));
	CHECK(n < 10000);
	finish();
}

TEST(a_slow_head_has_the_same_timeout_as_silence)
{
	uint64_t begun, sent;

	begin();
	patience_ms = 150;
	CHECK(get());
	begun = sent = loop_now_ms();
	send(far, "HTTP/1.1 200 OK\r\na: ", 20, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (!why_failed[0] && loop_now_ms() < begun + 5000) {
		if (loop_now_ms() > sent) { /* a byte per millisecond: the head stays short */
			send(far, "b", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			sent = loop_now_ms();
		}
		turn();
	}
	CHECK_STR(why_failed, "it did not answer in time");
	CHECK(loop_now_ms() - begun < 3000);
	CHECK(UNTIL(received(near, "no\n")));
	finish();
}

TEST(interim_answers_without_end_are_a_502)
{
	begin();
	CHECK(get());
	for (int i = 0; i < 1000 && !why_failed[0]; i++) {
		send(far, "HTTP/1.1 100 C\r\n\r\n", 18, MSG_NOSIGNAL | MSG_DONTWAIT);
		turn();
	}
	CHECK_STR(why_failed, "it sends interim answers without end");
	CHECK(UNTIL(received(near, "no\n")));
	finish();
}

TEST(an_incomplete_answer_is_incomplete_for_the_client)
{
	static const char *const begun[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
	};

	for (unsigned i = 0; i < sizeof(begun) / sizeof(begun[0]); i++) {
		begin();
		CHECK(get());
		ANSWER(begun[i]);
		if (i < 2)
			hang_up();
		CHECK(UNTIL(ended(near)));
		CHECK(!received(near, "0\r\n\r\n"));
		finish();
	}
}

TEST(an_answer_that_ends_with_the_connection_is_accepted_only_when_allowed)
{
	begin();
	CHECK(get());
	ANSWER("HTTP/1.1 200 OK\r\n\r\nhello");
	CHECK(UNTIL(received(near, "hello")));
	close_accepted = 0;
	hang_up();
	CHECK(UNTIL(ended(near)));
	CHECK(!received(near, "0\r\n\r\n"));
	finish();
}

TEST(request_bodies_are_relayed_with_length_or_chunked)
{
	begin();
	say(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
	CHECK(UNTIL(was_asked("\r\n\r\nhello")));
	CHECK(was_asked("Content-Length: 5\r\n"));
	ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	CHECK(UNTIL(overs == 1));
	say(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
	CHECK(UNTIL(heads == 2 && was_asked("\r\n\r\n")));
	CHECK(was_asked("Content-Length: 0\r\n"));
	ANSWER("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	CHECK(UNTIL(overs == 2));
	say(near,
	    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n");
	CHECK(UNTIL(was_asked("\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n")));
	CHECK(was_asked("Transfer-Encoding: chunked\r\n"));
	say(near, "0\r\nX-Trailer: 1\r\n\r\n");
	CHECK(UNTIL(was_asked("llo\r\n0\r\n\r\n")));
	CHECK(!was_asked("railer"));
	finish();
}

TEST(an_answer_before_the_end_of_the_body_is_relayed)
{
	static char body[1 << 20];

	begin();
	memset(body, 'b', sizeof(body));
	say(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n");
	CHECK(UNTIL(was_asked("\r\n\r\n")));
	ANSWER("HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
	hang_up();
	say_bytes(near, body, sizeof(body));
	CHECK(UNTIL(received(near, "\r\n\r\nbig")));
	CHECK_INT(status_of(), 413);
	CHECK(received(near, "Connection: close\r\n"));
	finish();
}

TEST(a_server_that_does_not_read_stops_reading_from_the_client)
{
	static char body[64 << 10];
	size_t sent = 0;
	unsigned idle = 0;

	begin();
	say(near, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000000\r\n\r\n");
	CHECK(UNTIL(heads == 1));
	while (idle < 50) {
		ssize_t n = send(near, body, sizeof(body), MSG_NOSIGNAL | MSG_DONTWAIT);

		idle = n > 0 ? 0 : idle + 1;
		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	CHECK(sent < 64u << 20); /* the buffers of the kernel and of the server */
	while (asked_len + sizeof(body) < sizeof(asked) && UNTIL(was_asked("\r\n\r\n")))
		turn();
	CHECK(UNTIL(send(near, body, sizeof(body), MSG_NOSIGNAL | MSG_DONTWAIT) > 0));
	finish();
}

TEST(a_client_that_does_not_read_stops_reading_from_the_server)
{
	static char body[64 << 10];
	size_t sent = 0;
	unsigned idle = 0;

	begin();
	CHECK(get());
	ANSWER("HTTP/1.1 200 OK\r\n\r\n");
	while (idle < 50) {
		ssize_t n = send(far, body, sizeof(body), MSG_NOSIGNAL | MSG_DONTWAIT);

		idle = n > 0 ? 0 : idle + 1;
		sent += n > 0 ? (size_t)n : 0;
		turn();
	}
	CHECK(sent < 64u << 20);
	CHECK(UNTIL(
		(take(near), got_len = 0, send(far, body, 1, MSG_NOSIGNAL | MSG_DONTWAIT) > 0)));
	finish();
}

TEST(a_client_disconnect_closes_the_server_connection)
{
	begin();
	CHECK(get());
	ANSWER("HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n");
	CHECK(UNTIL(received(near, "data: 1")));
	close(near);
	CHECK(UNTIL((was_asked("-"), asked_end)));
	CHECK_INT(overs, 1);
	near = -1;
	finish();
}

#define UPGRADE                                                                                    \
	"GET /ws HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"             \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

TEST(after_a_101_bytes_are_relayed_in_both_directions)
{
	begin();
	say(near, UPGRADE "early");
	CHECK(UNTIL(was_asked("\r\n\r\n")));
	CHECK(was_asked("Connection: Upgrade\r\nUpgrade: websocket\r\n"));
	CHECK(was_asked("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"));
	ANSWER("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	       "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n\x01\x02greeting");
	CHECK(UNTIL(received(near, "\r\n\r\n\x01\x02greeting")));
	CHECK_INT(status_of(), 101);
	CHECK_INT(switches, 1);
	CHECK(received(near, "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	CHECK_INT(count_of("pgrade: websocket\r\n"), 1);
	CHECK(UNTIL(was_asked("\r\n\r\nearly")));
	say(near, "GET / HTTP/1.1\r\n\r\n"); /* no longer a request */
	CHECK(UNTIL(was_asked("earlyGET / HTTP/1.1\r\n\r\n")));
	ANSWER("more");
	CHECK(UNTIL(received(near, "greetingmore")));
	CHECK_INT(heads, 1);
	shutdown(near, SHUT_WR);
	CHECK(UNTIL((was_asked("-"), asked_end)));
	ANSWER("last output");
	hang_up();
	CHECK(UNTIL(ended(near)));
	CHECK(received(near, "morelast output"));
	CHECK_INT(got_end, 1);
	finish();
}

TEST(an_upgrade_may_be_declined)
{
	begin();
	say(near, UPGRADE);
	CHECK(UNTIL(was_asked("\r\n\r\n")));
	ANSWER("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
	CHECK(UNTIL(overs == 1));
	CHECK(received(near, "\r\n\r\nno"));
	CHECK_INT(status_of(), 403);
	CHECK_INT(switches, 0);
	finish();
}

TEST(an_upgrade_to_something_else_is_a_502)
{
	begin();
	say(near, UPGRADE);
	CHECK(UNTIL(was_asked("\r\n\r\n")));
	ANSWER("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n");
	CHECK(UNTIL(received(near, "no\n")));
	CHECK_INT(status_of(), 502);
	finish();
}
