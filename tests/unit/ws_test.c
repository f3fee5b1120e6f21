/* ws_test.c - WebSocket: the handshake, messages, and peers that violate the protocol. */
#include "http_rig.h"
#include "http/ws_codec.h"

static struct ws *open_ws;
static unsigned texts, binaries, closes, drains;
static char last[1 << 20];
static size_t last_len;
static int echo;

static void keep(const void *bytes, size_t n)
{
	last_len = n;
	memcpy(last, bytes, n);
	last[n] = 0;
}

static void on_text(struct ws *w, const char *text, size_t n)
{
	texts++;
	keep(text, n);
	if (echo)
		ws_text(w, text, n);
}

static void on_binary(struct ws *w, const void *bytes, size_t n)
{
	binaries++;
	keep(bytes, n);
	if (echo)
		ws_binary(w, bytes, n);
}

static void on_drain(struct ws *w)
{
	(void)w;
	drains++;
}

static void on_close(struct ws *w)
{
	closes++;
	if (w == open_ws)
		open_ws = NULL;
}

static const struct ws_events events = { on_text, on_binary, on_drain, on_close };

static void over(struct http_req *r)
{
	(void)r;
	overs++;
}

static void on_head(struct http_req *r)
{
	static const char *const ours[] = { "atoll.v2", "atoll.v1", NULL };

	heads++;
	r->on_over = over;
	if (r->upgrade)
		open_ws = http_ws(r, http_ws_protocol(r, ours), 1000, &events, &heads);
	else
		http_reply(r, 426, NULL, NULL, 0);
}

#define HANDSHAKE                                                                                  \
	"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n"   \
	"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"

static int begin_ws(const struct http_limits *limits)
{
	int fd;

	open_ws = NULL;
	texts = binaries = closes = drains = 0;
	echo = 0;
	if (!begin_server(limits, on_head))
		return -1;
	fd = dial();
	say(fd, HANDSHAKE "\r\n");
	if (!UNTIL(received(fd, "\r\n\r\n")) || status_of() != 101)
		return -1;
	got_len = 0;
	return fd;
}

/* A client's frame with the mask "mask" (or none). */
static size_t frame(uint8_t *out, uint8_t first, const void *payload, size_t n, int masked)
{
	static const uint8_t mask[] = { 'm', 'a', 's', 'k' };
	const uint8_t *p = payload;
	size_t at = 2;

	out[0] = first;
	out[1] = (uint8_t)((masked ? 0x80 : 0) | (n < 126 ? n : 126));
	if (n >= 126) {
		out[2] = (uint8_t)(n >> 8);
		out[3] = (uint8_t)n;
		at = 4;
	}
	if (masked) {
		memcpy(out + at, mask, 4);
		at += 4;
	}
	for (size_t i = 0; i < n; i++)
		out[at + i] = masked ? p[i] ^ mask[i % 4] : p[i];
	return at + n;
}

static void send_frame(int fd, uint8_t first, const void *payload, size_t n)
{
	static uint8_t bytes[70000];

	say_bytes(fd, bytes, frame(bytes, first, payload, n, 1));
}

enum { FIN = 0x80 };

/* Waits for the server's close frame and then its end. The code, 0 for none, -1 for no close. */
static int close_code(int fd)
{
	const uint8_t *p = (const uint8_t *)got;

	if (!UNTIL(ended(fd)))
		return -2;
	for (size_t at = 0; at + 2 <= got_len; at += 2u + p[at + 1]) {
		if (p[at] == (FIN | WS_CLOSE))
			return p[at + 1] < 2 ? 0 : p[at + 2] << 8 | p[at + 3];
		if (p[at + 1] > 125)
			return -3;
	}
	return -1;
}

TEST(the_handshake_returns_the_accept_key)
{
	int fd;

	CHECK(begin_server(NULL, on_head));
	fd = dial();
	say(fd, HANDSHAKE
	    "Sec-WebSocket-Protocol: other, atoll.v1\r\nSec-WebSocket-Protocol: atoll.v2\r\n\r\n");
	CHECK(UNTIL(received(fd, "\r\n\r\n")));
	CHECK_INT(status_of(), 101);
	CHECK(strstr(got, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
	CHECK(strstr(got, "\r\nUpgrade: websocket\r\n") &&
	      strstr(got, "\r\nConnection: Upgrade\r\n"));
	CHECK(strstr(got, "\r\nSec-WebSocket-Protocol: atoll.v1\r\n"));
	CHECK(!strstr(got, "Content-Length"));
	CHECK(ws_user(open_ws) == &heads);
	close(fd);
	CHECK(UNTIL(closes > 0 && overs == 1));
	end_server();
}

TEST(half_a_handshake_is_an_ordinary_request)
{
	static const char *const bad[] = {
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Version: 12\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: short\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
	};
	int fd;

	CHECK(begin_server(NULL, on_head));
	fd = dial();
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		got_len = 0;
		say(fd, bad[i]);
		CHECK(UNTIL(received(fd, "\r\n\r\n")));
		CHECK_INT(status_of(), 426);
		CHECK(strstr(got, "\r\nSec-WebSocket-Version: 13\r\n") &&
		      strstr(got, "\r\nUpgrade: websocket\r\n"));
	}
	close(fd);
	end_server();
}

TEST(messages_are_received_and_sent)
{
	int fd = begin_ws(NULL);
	uint8_t bytes[600] = { 0, 255, 1 };

	CHECK(fd >= 0);
	echo = 1;
	send_frame(fd, FIN | WS_TEXT, "h\xc3\xa9llo", 6);
	CHECK(UNTIL(received(fd, "\x81\x06h\xc3\xa9llo")));
	send_frame(fd, FIN | WS_BINARY, bytes, sizeof(bytes));
	CHECK(UNTIL((take(fd), got_len) == 8 + 4 + sizeof(bytes)));
	CHECK(memcmp(got + 8, "\x82\x7e\x02\x58", 4) == 0);
	CHECK(memcmp(got + 12, bytes, sizeof(bytes)) == 0);
	send_frame(fd, FIN | WS_TEXT, "", 0);
	CHECK(UNTIL(texts == 2));
	CHECK_INT(last_len, 0);
	close(fd);
	CHECK(UNTIL(closes == 1));
	CHECK_INT(overs, 1);
	end_server();
}

TEST(fragments_form_one_message_with_control_frames_between)
{
	int fd = begin_ws(NULL);

	CHECK(fd >= 0);
	send_frame(fd, WS_TEXT, "a\xc3", 2); /* a character in two frames */
	send_frame(fd, 0, "", 0);
	send_frame(fd, FIN | WS_PING, "are you there", 13);
	send_frame(fd, 0, "\xa9", 1);
	send_frame(fd, FIN | WS_PONG, "unasked", 7);
	send_frame(fd, FIN, "b", 1);
	CHECK(UNTIL(texts == 1));
	CHECK_STR(last, "a\xc3\xa9"
			"b");
	CHECK(UNTIL(received(fd, "\x8a\x0d"
				 "are you there")));
	close(fd);
	end_server();
}

TEST(frames_sent_byte_by_byte_are_parsed)
{
	uint8_t bytes[32];
	int fd = begin_ws(NULL);
	size_t n = frame(bytes, FIN | WS_TEXT, "hello", 5, 1);

	CHECK(fd >= 0);
	for (size_t i = 0; i < n; i++) {
		say_bytes(fd, bytes + i, 1);
		turn();
	}
	CHECK(UNTIL(texts == 1));
	CHECK_STR(last, "hello");
	close(fd);
	end_server();
}

TEST(a_frame_sent_with_the_handshake_is_not_lost)
{
	uint8_t bytes[512];
	size_t n = strlen(HANDSHAKE "\r\n");
	int fd;

	texts = 0;
	CHECK(begin_server(NULL, on_head));
	fd = dial();
	memcpy(bytes, HANDSHAKE "\r\n", n);
	n += frame(bytes + n, FIN | WS_TEXT, "early", 5, 1);
	say_bytes(fd, bytes, n);
	CHECK(UNTIL(texts == 1));
	CHECK_STR(last, "early");
	close(fd);
	end_server();
}

static const struct {
	const char *what, *bytes;
	size_t n;
	int code;
} abuses[] = {
#define ROW(what, bytes, code)                                                                     \
	{                                                                                          \
		what, bytes, sizeof(bytes) - 1, code                                               \
	}
	ROW("a frame without a mask", "\x81\x02hi", 1002),
	ROW("a reserved bit", "\xc1\x80\0\0\0\0", 1002),
	ROW("an unknown opcode", "\x83\x80\0\0\0\0", 1002),
	ROW("an unknown control opcode", "\x8b\x80\0\0\0\0", 1002),
	ROW("a continuation of nothing", "\x80\x80\0\0\0\0", 1002),
	ROW("a message inside another", "\x01\x81\0\0\0\0a\x81\x81\0\0\0\0b", 1002),
	ROW("a ping in pieces", "\x09\x80\0\0\0\0", 1002),
	ROW("a ping too long", "\x89\xfe\0\x7e\0\0\0\0", 1002),
	ROW("a length not in its shortest form", "\x82\xfe\0\x05\0\0\0\0abcde", 1002),
	ROW("a length not in its shortest form, long", "\x82\xff\0\0\0\0\0\0\0\x05\0\0\0\0abcde",
	    1002),
	ROW("a negative length", "\x82\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0a", 1002),
	ROW("a message too long", "\x82\xfe\x03\xe9\0\0\0\0a", 1009),
	ROW("an enormous message", "\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0a", 1009),
	ROW("not UTF-8", "\x81\x81\0\0\0\0\xff", 1007),
	ROW("an overlong character", "\x81\x82\0\0\0\0\xc0\x80", 1007),
	ROW("a surrogate", "\x81\x83\0\0\0\0\xed\xa0\x80", 1007),
	ROW("beyond Unicode", "\x81\x84\0\0\0\0\xf4\x90\x80\x80", 1007),
	ROW("half a character", "\x81\x81\0\0\0\0\xc3", 1007),
	ROW("a close with half a code", "\x88\x81\0\0\0\0\x03", 1002),
	ROW("a close with code 0", "\x88\x82\0\0\0\0\0\0", 1002),
	ROW("a close with code 1005", "\x88\x82\0\0\0\0\x03\xed", 1002),
	ROW("a close with code 5000", "\x88\x82\0\0\0\0\x13\x88", 1002),
	ROW("a close with a reason not UTF-8", "\x88\x83\0\0\0\0\x03\xe8\xff", 1007),
	ROW("a good close", "\x88\x82\0\0\0\0\x03\xe8", 1000),
	ROW("a good close with a reason", "\x88\x84\0\0\0\0\x0b\xb8ok", 3000),
	ROW("a close without a code", "\x88\x80\0\0\0\0", 0),
#undef ROW
};

TEST(a_protocol_violation_is_answered_with_its_close_code)
{
	for (unsigned i = 0; i < sizeof(abuses) / sizeof(abuses[0]); i++) {
		int fd = begin_ws(NULL), code;

		CHECK(fd >= 0);
		say_bytes(fd, abuses[i].bytes, abuses[i].n);
		send_frame(fd, FIN | WS_TEXT, "after", 5);
		code = close_code(fd);
		if (code != abuses[i].code)
			printf("# %s\n", abuses[i].what);
		CHECK_INT(code, abuses[i].code);
		CHECK_INT(texts + binaries, 0);
		CHECK_INT(closes, 1);
		CHECK_INT(overs, 1);
		close(fd);
		end_server();
	}
}

TEST(the_total_length_of_fragments_is_limited)
{
	char bytes[300] = { 0 };
	int fd = begin_ws(NULL);

	CHECK(fd >= 0);
	send_frame(fd, WS_BINARY, bytes, sizeof(bytes));
	for (unsigned i = 0; i < 3; i++)
		send_frame(fd, 0, bytes, sizeof(bytes));
	CHECK_INT(close_code(fd), 1009);
	CHECK_INT(binaries, 0);
	close(fd);
	end_server();
}

TEST(a_client_that_does_not_read_pongs_is_closed_when_it_sends_pings)
{
	static uint8_t pings[131 * 500];
	struct http_limits limits = { .out_high = 4096, .send_stall_ms = 300 };
	int fd = begin_ws(&limits);
	char payload[125] = { 0 };
	size_t sent = 0;

	CHECK(fd >= 0);
	for (size_t at = 0; at < sizeof(pings);)
		at += frame(pings + at, FIN | WS_PING, payload, sizeof(payload), 1);
	while (open_ws && sent < 200 << 20) {
		size_t at = sent % sizeof(pings);
		ssize_t n = send(fd, pings + at, sizeof(pings) - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		CHECK(ws_waiting(open_ws) < 70000);
		turn();
	}
	CHECK(sent < 200 << 20);
	CHECK(UNTIL(closes == 1)); /* stalled: cut */
	close(fd);
	end_server();
}

TEST(writing_to_a_slow_reader_reports_full_and_then_drain)
{
	static char bytes[64 << 10];
	struct iovec two[2] = { { bytes, 10 }, { bytes, sizeof(bytes) - 10 } };
	int fd = begin_ws(NULL), full = 0;
	size_t sent = 0;

	CHECK(fd >= 0);
	while (!full && sent < 64 << 20) {
		full = ws_binaryv(open_ws, two, 2);
		sent += sizeof(bytes) + 10;
		turn();
	}
	CHECK(full);
	CHECK_INT(drains, 0);
	CHECK(ws_waiting(open_ws) < 512 << 10);
	for (size_t total = 0; total < sent;) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

		CHECK(n > 0 || errno == EAGAIN);
		total += n > 0 ? (size_t)n : 0;
		turn();
	}
	CHECK_INT(drains, 1);
	close(fd);
	end_server();
}

TEST(a_paused_socket_receives_its_messages_after_resume)
{
	int fd = begin_ws(NULL);

	CHECK(fd >= 0);
	ws_pause(open_ws);
	send_frame(fd, FIN | WS_TEXT, "wait", 4);
	for (unsigned i = 0; i < 5; i++)
		turn();
	CHECK_INT(texts, 0);
	ws_resume(open_ws);
	CHECK(UNTIL(texts == 1));
	close(fd);
	end_server();
}

TEST(a_local_close_waits_for_the_close_of_the_peer)
{
	int fd = begin_ws(NULL);

	CHECK(fd >= 0);
	ws_close(open_ws, 4000, "enough");
	CHECK_INT(ws_text(open_ws, "unheard", 7), 0);
	CHECK(UNTIL(received(fd, "\x88\x08\x0f\xa0"
				 "enough")));
	CHECK_INT(closes, 0);
	send_frame(fd, FIN | WS_TEXT, "crossing", 8);
	send_frame(fd, FIN | WS_CLOSE, "\x0f\xa0", 2);
	CHECK(UNTIL(closes == 1));
	CHECK_INT(texts, 0);
	CHECK(UNTIL(ended(fd)));
	CHECK(!received(fd, "unheard"));
	close(fd);
	end_server();
}

TEST(a_peer_that_does_not_answer_a_close_is_disconnected)
{
	struct http_limits limits = { .ws_ping_ms = 100 }; /* so that the sweep runs often */
	int fd = begin_ws(&limits);

	CHECK(fd >= 0);
	ws_close(open_ws, 1000, NULL);
	CHECK(UNTIL(closes == 1));
	close(fd);
	end_server();
}

TEST(pings_are_sent_and_a_silent_peer_is_disconnected)
{
	struct http_limits limits = { .ws_ping_ms = 40, .ws_silence_ms = 200 };
	int fd = begin_ws(&limits);

	CHECK(fd >= 0);
	CHECK(UNTIL((take(fd), got_len) >= 2));
	CHECK(memcmp(got, "\x89\x00", 2) == 0);
	for (uint64_t end = loop_now_ms() + 400; loop_now_ms() < end;) {
		send_frame(fd, FIN | WS_PONG, "", 0);
		turn();
	}
	CHECK_INT(closes, 0);
	CHECK(UNTIL(closes == 1));
	close(fd);
	end_server();
}

TEST(draining_sends_a_close_frame)
{
	int fd = begin_ws(NULL);

	CHECK(fd >= 0);
	http_drain(&server);
	CHECK(UNTIL((take(fd), got_len) > 4));
	CHECK(memcmp(got + 2, "\x03\xe9", 2) == 0);
	send_frame(fd, FIN | WS_CLOSE, "\x03\xe9", 2);
	shutdown(fd, SHUT_WR);
	CHECK(UNTIL(http_drained(&server)));
	CHECK_INT(closes, 1);
	close(fd);
	end_server();
}
