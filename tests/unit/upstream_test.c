/* upstream_test.c - a request over an established link: plain, and TLS in both roles. */
#include "http/upstream.h"
#include "http_rig.h"
#include "tls_rig.h"

#include <signal.h>

static struct upstream up;
static struct upstream_link near, far;
static char body[8 << 20], far_got[8 << 20];
static size_t body_len, far_len;
static int status, over, drains, pause_at_body, far_end;
static char why_over[120];

static const char *saw_head(struct upstream *u, const struct http_answer *a)
{
	(void)u;
	status = a->status;
	return NULL;
}

static void saw_body(struct upstream *u, const char *bytes, size_t n)
{
	if (body_len + n > sizeof(body))
		abort();
	memcpy(body + body_len, bytes, n);
	body_len += n;
	if (pause_at_body)
		upstream_pause(u, 1);
}

static void saw_drain(struct upstream *u)
{
	(void)u;
	drains++;
}

static void saw_over(struct upstream *u, const char *why)
{
	(void)u;
	over++;
	snprintf(why_over, sizeof(why_over), "%s", why ? why : "");
}

static const struct upstream_events on = { saw_head, saw_body, saw_drain, saw_over };

static void forget(void)
{
	body_len = far_len = 0;
	status = over = drains = pause_at_body = far_end = 0;
	why_over[0] = 0;
}

/* version 0: plain. */
static void open_link(int version, int accepted)
{
	signal(SIGPIPE, SIG_IGN);
	if (loop_init(&loop, &oops) < 0)
		abort();
	rig_link(version, accepted, &near, &far);
	forget();
	upstream_init(&up, &loop, near, 60000, &on);
}

static void close_all(void)
{
	upstream_close(&up);
	upstream_link_close(&far);
	loop_fini(&loop);
}

static void ask(const char *head)
{
	upstream_ask(&up, &(struct upstream_question){ .head = head, .len = strlen(head) });
	upstream_body_end(&up);
}

/* What the server has received so far. */
static int far_took(const char *text)
{
	size_t n;
	enum link_result result;

	do {
		size_t room = sizeof(far_got) - far_len - 1;

		result = upstream_link_read(&far, far_got + far_len, room < 4096 ? room : 4096, &n);
		far_len += n;
	} while (n > 0);
	far_end = result == LINK_END ? 1 : result == LINK_BROKEN ? -1 : 0;
	far_got[far_len] = 0;
	return memmem(far_got, far_len, text, strlen(text)) != NULL;
}

/* Sends all, while the loop turns. */
static int far_says(const char *bytes, size_t n)
{
	uint64_t end = loop_now_ms() + PATIENCE_MS;
	size_t sent;

	while (n > 0 && loop_now_ms() < end) {
		enum link_result result =
			upstream_link_write(&far, &(struct iovec){ (void *)bytes, n }, 1, &sent);

		bytes += sent;
		n -= sent;
		if (result == LINK_BROKEN)
			return 0;
		if (n > 0)
			turn();
	}
	return n == 0;
}

static int answers(const char *text)
{
	return far_says(text, strlen(text));
}

static const struct row {
	int version, accepted;
} rows[] = { { 0, 0 },
	     { TLS1_3_VERSION, 0 },
	     { TLS1_3_VERSION, 1 },
	     { TLS1_2_VERSION, 0 },
	     { TLS1_2_VERSION, 1 } };
#define EACH_LINK                                                                                  \
	for (const struct row *w = rows; w < rows + sizeof(rows) / sizeof(rows[0]);                \
	     close_all(), w++)
#define EACH_TLS                                                                                   \
	for (const struct row *w = rows + 1; w < rows + sizeof(rows) / sizeof(rows[0]);            \
	     close_all(), w++)

#define GET "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

TEST(a_link_carries_one_request_after_the_other)
{
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		for (int i = 0; i < 3; i++) {
			struct upstream_link again;

			ask(GET);
			CHECK(UNTIL(far_took(GET)));
			CHECK(answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
			CHECK(UNTIL(over == 1));
			CHECK_STR(why_over, "");
			CHECK_INT(status, 200);
			CHECK(body_len == 5 && memcmp(body, "hello", 5) == 0);
			CHECK(up.spare.fd >= 0 && up.spare.tls == near.tls);
			CHECK(upstream_link_is_silent(&up.spare));
			again = up.spare;
			up.spare = upstream_link_plain(-1);
			upstream_close(&up);
			forget();
			upstream_init(&up, &loop, again, 60000, &on);
		}
	}
}

TEST(bytes_after_an_answer_make_a_link_unusable)
{
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		ask(GET);
		CHECK(UNTIL(far_took(GET)));
		CHECK(answers(
			"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n"));
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "");
		CHECK_INT(up.spare.fd, -1);
	}
}

TEST(a_link_is_silent_until_its_peer_sends_or_closes)
{
	EACH_LINK
	{
		struct upstream_link l;

		open_link(w->version, w->accepted);
		upstream_link_close(&far);
		rig_link(w->version, w->accepted, &l, &far);
		CHECK(upstream_link_is_silent(&l)); /* session tickets of TLS 1.3 may wait */
		CHECK(upstream_link_is_silent(&l));
		CHECK(answers("x"));
		CHECK(!upstream_link_is_silent(&l));
		upstream_link_close(&l);
		upstream_link_close(&far);
		rig_link(w->version, w->accepted, &l, &far);
		upstream_link_close(&far);
		CHECK(!upstream_link_is_silent(&l));
		upstream_link_close(&l);
	}
}

static void fill(char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (char)(i * 2654435761u >> 13);
}

static void shrink_buffers(void)
{
	int small = 4096;

	(void)setsockopt(near.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	(void)setsockopt(far.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
}

TEST(a_body_waits_for_a_slow_server_and_arrives_unchanged)
{
	enum { N = 2 << 20 };
	static char sent[N];
	size_t at, most = 0, head;

	fill(sent, N);
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		shrink_buffers();
		upstream_ask(&up, &(struct upstream_question){ .head = "POST", .len = 4 });
		/* full: at most the mark and one piece wait */
		for (at = 0; at < N;) {
			size_t n = N - at < 30011 ? N - at : 30011;

			drains = 0;
			at += n;
			if (upstream_body(&up, sent + at - n, n)) {
				most = up.out.len > most ? up.out.len : most;
				CHECK(UNTIL((far_took("-"), drains)));
			}
		}
		upstream_body_end(&up);
		head = 4;
		CHECK(UNTIL((far_took("-"), far_len == N + head)));
		CHECK(memcmp(far_got + head, sent, N) == 0);
		CHECK(most > UPSTREAM_HIGH && most < UPSTREAM_HIGH * 4);
		CHECK_INT(over, 0);
	}
}

TEST(chunks_are_complete_under_short_writes)
{
	static const size_t sizes[] = { 1, 16384, 16383, 7, 100000, 16370, 3 };
	static char sent[100000];
	size_t at = 0;

	fill(sent, sizeof(sent));
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		shrink_buffers();
		upstream_ask(&up,
			     &(struct upstream_question){ .head = "P", .len = 1, .chunked = 1 });
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			upstream_body(&up, sent, sizes[i]);
		upstream_body_end(&up);
		CHECK(UNTIL(far_took("\r\n0\r\n\r\n")));
		at = 1;
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			char size[24];
			size_t n = (size_t)snprintf(size, sizeof(size), "%zx\r\n", sizes[i]);

			CHECK(memcmp(far_got + at, size, n) == 0);
			CHECK(memcmp(far_got + at + n, sent, sizes[i]) == 0);
			at += n + sizes[i] + 2;
		}
		CHECK_INT(at + 5, far_len);
	}
}

TEST(a_paused_answer_continues_with_what_TLS_has_buffered)
{
	enum { N = 300000 };
	static char sent[N];

	fill(sent, N);
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		ask(GET);
		CHECK(UNTIL(far_took(GET)));
		pause_at_body = 1;
		CHECK(answers("HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n"));
		while (body_len < N && !over) {
			size_t before = body_len, n;
			static size_t at;

			at = before == 0 ? 0 : at;
			if (at < N) {
				(void)upstream_link_write(
					&far, &(struct iovec){ sent + at, N - at }, 1, &n);
				at += n;
			}
			CHECK(UNTIL(body_len > before || at == 0 || over));
			for (int i = 0; i < 3; i++) {
				before = body_len;
				turn(); /* paused: nothing arrives */
				CHECK_INT(body_len, before);
			}
			upstream_pause(&up, 0);
		}
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "");
		CHECK(body_len == N && memcmp(body, sent, N) == 0);
	}
}

TEST(an_answer_until_close_needs_a_close_notify)
{
	EACH_TLS
	{
		for (int clean = 0; clean < 2; clean++) {
			if (clean)
				close_all();
			open_link(w->version, w->accepted);
			ask(GET);
			CHECK(UNTIL(far_took(GET)));
			CHECK(answers("HTTP/1.1 200 OK\r\n\r\nhello"));
			CHECK(UNTIL(body_len == 5));
			if (clean)
				CHECK_INT(upstream_link_shut(&far), LINK_OK);
			upstream_link_close(&far);
			CHECK(UNTIL(over == 1));
			CHECK_STR(why_over, clean ? "" : "the connection broke");
			CHECK_INT(up.until_close, clean);
			CHECK_INT(up.spare.fd, -1);
		}
	}
}

TEST(a_close_notify_together_with_the_last_bytes_ends_the_answer)
{
	EACH_TLS
	{
		open_link(w->version, w->accepted);
		ask(GET);
		CHECK(UNTIL(far_took(GET)));
		/* without a turn of the loop: one read gets the bytes and the end */
		CHECK(answers("HTTP/1.1 200 OK\r\n\r\nhello"));
		CHECK_INT(upstream_link_shut(&far), LINK_OK);
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "");
		CHECK(body_len == 5);
	}
}

TEST(a_link_that_ends_with_a_complete_answer_is_not_kept)
{
	EACH_TLS
	{
		open_link(w->version, w->accepted);
		ask(GET);
		CHECK(UNTIL(far_took(GET)));
		CHECK(answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
		CHECK_INT(upstream_link_shut(&far), LINK_OK);
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "");
		CHECK_INT(up.spare.fd, -1);
	}
}

TEST(invalid_TLS_breaks_the_connection)
{
	static const char bad[] = "\x17\x03\x03\x00\x20 this is not a sealed record of TLS";

	EACH_TLS
	{
		open_link(w->version, w->accepted);
		ask(GET);
		CHECK(UNTIL(far_took(GET)));
		CHECK(answers("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhello"));
		CHECK(say_bytes(far.fd, bad, sizeof(bad) - 1));
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "the connection broke");
		CHECK_INT(body_len, 5); /* what was valid was passed on */
	}
}

static void ask_upgrade(void)
{
	upstream_ask(&up,
		     &(struct upstream_question){ .head = GET, .len = strlen(GET), .upgrade = 1 });
	upstream_body_end(&up);
}

TEST(after_a_101_each_direction_ends_alone)
{
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		ask_upgrade();
		CHECK(UNTIL(far_took(GET)));
		CHECK(answers("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nearly"));
		CHECK(UNTIL(body_len == 5));
		upstream_body(&up, "one", 3);
		CHECK(UNTIL(far_took("one")));
		upstream_body(&up, "two", 3);
		upstream_shut(&up);
		CHECK(UNTIL((far_took("two"), far_end == 1)));
		CHECK(far_took("onetwo"));
		upstream_body(&up, "three", 5); /* is not sent */
		CHECK(answers("last"));
		CHECK(UNTIL(body_len == 9));
		CHECK_INT(over, 0);
		CHECK_INT(upstream_link_shut(&far), LINK_OK);
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "");
		CHECK(memcmp(body, "earlylast", 9) == 0);
	}
}

TEST(the_end_of_a_direction_follows_all_of_its_bytes)
{
	enum { N = 1 << 20 };
	static char sent[N];

	fill(sent, N);
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		shrink_buffers();
		ask_upgrade();
		CHECK(UNTIL(far_took(GET)));
		CHECK(answers("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"));
		CHECK(UNTIL(status == 101));
		far_len = 0;
		upstream_body(&up, sent, N);
		upstream_shut(&up);
		CHECK(UNTIL((far_took("-"), far_end)));
		CHECK_INT(far_end, 1);
		CHECK(far_len == N && memcmp(far_got, sent, N) == 0);
	}
}

TEST(an_upgraded_link_that_is_cut_is_no_end)
{
	EACH_TLS
	{
		open_link(w->version, w->accepted);
		ask_upgrade();
		CHECK(UNTIL(far_took(GET)));
		CHECK(answers("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"));
		CHECK(UNTIL(status == 101));
		upstream_link_close(&far);
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "the connection broke");
	}
}

TEST(a_closed_upstream_is_a_cut_for_the_server)
{
	EACH_TLS
	{
		open_link(w->version, w->accepted);
		ask(GET);
		CHECK(UNTIL(far_took(GET)));
		upstream_close(&up);
		CHECK(UNTIL((far_took("-"), far_end)));
		CHECK_INT(far_end, -1);
	}
}

TEST(keys_can_be_updated_at_any_time)
{
	for (int accepted = 0; accepted < 2; accepted++, close_all()) {
		open_link(TLS1_3_VERSION, accepted);
		ask(GET);
		CHECK(UNTIL(far_took(GET)));
		CHECK(answers("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"));
		CHECK_INT(SSL_key_update(far.tls, SSL_KEY_UPDATE_REQUESTED), 1);
		CHECK(answers("world"));
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "");
		CHECK(body_len == 10 && memcmp(body, "helloworld", 10) == 0);
		CHECK(up.spare.fd >= 0);
		near = up.spare;
		up.spare = upstream_link_plain(-1);
		upstream_close(&up);
		forget();
		upstream_init(&up, &loop, near, 60000, &on);
		ask(GET); /* sends this side's update, too */
		CHECK(UNTIL(far_took(GET)));
	}
}

/* In the middle of a renegotiation OpenSSL cannot write before it has read. */
TEST(a_write_waits_for_a_read_while_TLS_1_2_renegotiates)
{
	open_link(TLS1_2_VERSION, 0);
	CHECK_INT(SSL_renegotiate(far.tls), 1);
	CHECK_INT(SSL_do_handshake(far.tls), 1); /* sends the request for it */
	CHECK(UNTIL(SSL_in_init(up.link.tls)));
	pause_at_body = 1;
	upstream_pause(&up, 1); /* the answer is not wanted, but the handshake is */
	ask(GET);
	CHECK(up.write_wants_read);
	CHECK(UNTIL(far_took(GET)));
	CHECK(!up.write_wants_read);
	CHECK(answers("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"));
	for (int i = 0; i < 3; i++)
		turn();
	CHECK_INT(status, 0);
	upstream_pause(&up, 0);
	CHECK(UNTIL(over == 1));
	CHECK_STR(why_over, "");
	close_all();
}

TEST(a_server_that_reads_no_more_can_still_answer)
{
	static char much[1 << 20];

	EACH_LINK
	{
		open_link(w->version, w->accepted);
		upstream_ask(&up, &(struct upstream_question){ .head = "POST", .len = 4 });
		CHECK(UNTIL(far_took("POST")));
		CHECK(answers("HTTP/1.1 413 Large\r\nContent-Length: 3\r\n\r\nbig"));
		upstream_body(&up, much, sizeof(much));
		CHECK(UNTIL(over == 1));
		CHECK_INT(status, 413);
		CHECK_INT(up.spare.fd, -1); /* the body was not sent to its end */
	}
}

TEST(a_silent_server_is_late_with_TLS_as_well)
{
	EACH_LINK
	{
		open_link(w->version, w->accepted);
		upstream_close(&up);
		upstream_link_close(&far);
		rig_link(w->version, w->accepted, &near, &far);
		upstream_init(&up, &loop, near, 30, &on);
		ask(GET);
		CHECK(UNTIL(over == 1));
		CHECK_STR(why_over, "it did not answer in time");
	}
}
