/* egress_test.c - which hosts a box may reach through the proxy, and how others are rejected. */
#include "base/cleanup.h"
#include "egress/approval.h"
#include "egress/ip_class.h"
#include "egress/http_message.h"
#include "egress/proxy.h"
#include "tap.h"
#include "wire/sock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- addresses ---- */

static enum ip_class class_of(const char *text)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	const char *why;

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		return ip_class_of((struct sockaddr *)&v4, &why);
	if (inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
		return (enum ip_class)99;
	return ip_class_of((struct sockaddr *)&v6, &why);
}

TEST(every_address_has_its_class)
{
	const struct {
		const char *text;
		enum ip_class is;
	} rows[] = {
		{ "0.0.0.0", IP_NEVER },
		{ "0.1.2.3", IP_NEVER },
		{ "1.0.0.0", IP_PUBLIC },
		{ "9.255.255.255", IP_PUBLIC },
		{ "10.0.0.0", IP_INTERNAL },
		{ "10.255.255.255", IP_INTERNAL },
		{ "11.0.0.0", IP_PUBLIC },
		{ "100.63.255.255", IP_PUBLIC },
		{ "100.64.0.0", IP_INTERNAL },
		{ "100.127.255.255", IP_INTERNAL },
		{ "100.128.0.0", IP_PUBLIC },
		{ "127.0.0.1", IP_INTERNAL },
		{ "127.255.255.255", IP_INTERNAL },
		{ "169.253.255.255", IP_PUBLIC },
		{ "168.63.129.15", IP_PUBLIC },
		{ "168.63.129.16", IP_NEVER },
		{ "168.63.129.17", IP_PUBLIC },
		{ "169.254.169.254", IP_NEVER },
		{ "172.15.255.255", IP_PUBLIC },
		{ "172.16.0.0", IP_INTERNAL },
		{ "172.31.255.255", IP_INTERNAL },
		{ "172.32.0.0", IP_PUBLIC },
		{ "192.0.0.8", IP_NEVER },
		{ "192.0.2.1", IP_NEVER },
		{ "192.167.255.255", IP_PUBLIC },
		{ "192.168.0.1", IP_INTERNAL },
		{ "192.169.0.0", IP_PUBLIC },
		{ "198.17.255.255", IP_PUBLIC },
		{ "198.18.0.1", IP_INTERNAL },
		{ "198.20.0.0", IP_PUBLIC },
		{ "223.255.255.255", IP_PUBLIC },
		{ "224.0.0.1", IP_NEVER },
		{ "239.255.255.255", IP_NEVER },
		{ "240.0.0.1", IP_NEVER },
		{ "255.255.255.255", IP_NEVER },
		{ "::", IP_NEVER },
		{ "::1", IP_INTERNAL },
		{ "::2", IP_NEVER },
		{ "::127.0.0.1", IP_NEVER },
		{ "::ffff:127.0.0.1", IP_NEVER },
		{ "::ffff:8.8.8.8", IP_NEVER },
		{ "64:ff9b::7f00:1", IP_NEVER },
		{ "64:ff9b:1::1", IP_NEVER },
		{ "2001::1", IP_NEVER },
		{ "2001:db8::1", IP_NEVER },
		{ "2001:470::1", IP_PUBLIC },
		{ "2002:7f00:1::", IP_NEVER },
		{ "2600::1", IP_PUBLIC },
		{ "fbff::1", IP_PUBLIC },
		{ "fc00::1", IP_INTERNAL },
		{ "fdff::1", IP_INTERNAL },
		{ "fe80::1", IP_NEVER },
		{ "febf::1", IP_NEVER },
		{ "fec0::1", IP_NEVER },
		{ "ff02::1", IP_NEVER },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (class_of(rows[i].text) != rows[i].is)
			printf("# %s\n", rows[i].text);
		CHECK_INT(class_of(rows[i].text), rows[i].is);
	}
}

TEST(local_addresses_of_this_machine_are_recognised)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(80) };

	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(ip_is_ours((struct sockaddr *)&a, sizeof(a)));
	inet_pton(AF_INET, "198.51.100.7", &a.sin_addr);
	CHECK(!ip_is_ours((struct sockaddr *)&a, sizeof(a)));
}

/* ---- messages ---- */

static struct message message;
static const char *wrong;

static int asked(const char *head)
{
	message_fini(&message);
	wrong = "";
	return message_request(&message, head, strlen(head), &wrong);
}

static const char *written(void)
{
	static char out[8192];
	struct evbuffer *b = evbuffer_new();
	int n;

	message_write_request(&message, b);
	n = evbuffer_remove(b, out, sizeof(out) - 1);
	out[n < 0 ? 0 : n] = 0;
	evbuffer_free(b);
	return out;
}

TEST(a_request_is_serialised_again_before_it_is_forwarded)
{
	CHECK_INT(asked("GET http://Host.Example:80/a?b HTTP/1.1\r\nHost: host.example\r\n"
			"X-Mine:  kept \r\nConnection: close, X-Secret\r\nX-Secret: 1\r\n"
			"Proxy-Authorization: x\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n"
			"Keep-Alive: 5\r\nUpgrade: h2c\r\n\r\n"),
		  0);
	CHECK_STR(written(), "GET /a?b HTTP/1.1\r\nhost: host.example\r\nx-mine: kept\r\n"
			     "connection: close\r\n\r\n");
	CHECK_INT(asked("POST http://h.example:8080 HTTP/1.1\r\nHost: h.example:8080\r\n"
			"Transfer-Encoding: chunked\r\n\r\n"),
		  0);
	CHECK_STR(written(), "POST / HTTP/1.1\r\nhost: h.example:8080\r\n"
			     "transfer-encoding: chunked\r\nconnection: close\r\n\r\n");
	CHECK_INT(
		asked("PUT http://h.example/?q HTTP/1.1\r\nHost: h.example\r\nContent-Length: 5\r\n\r\n"),
		0);
	CHECK_STR(written(), "PUT /?q HTTP/1.1\r\nhost: h.example\r\ncontent-length: 5\r\n"
			     "connection: close\r\n\r\n");
	CHECK_INT(
		asked("GET http://h.example/ HTTP/1.1\r\nHost: h.example\r\nA:\r\nB: \r\nC: \t \r\nD: d\r\n\r\n"),
		0);
	CHECK_STR(written(), "GET / HTTP/1.1\r\nhost: h.example\r\na: \r\nb: \r\nc: \r\nd: d\r\n"
			     "connection: close\r\n\r\n");
	CHECK_INT(asked("CONNECT h.example:443 HTTP/1.1\r\nHost: h.example:443\r\n\r\n"), 0);
	CHECK(message.connect);
	CHECK_STR(message.host, "h.example");
	CHECK_INT(message.port, 443);
}

TEST(an_ambiguous_request_is_rejected)
{
#define H "Host: h.example\r\n"
	const char *const rows[] = {
		"GET http://h.example/ HTTP/1.1\r\n" H
		"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H
		"Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H
		"Content-Length: 99999999999999999999\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n",
		"POST http://h.example/ HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
		"POST http://h.example/ HTTP/1.1\r\n" H "Transfer-Encoding:\r\n chunked\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\r\n" H H "\r\n",
		"GET http://h.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\r\nHost: h.example:81\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\r\n" H ": x\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\r\n" H "X\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\r\n" H "X: a\nY: b\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\r\n" H "X: a\rY: b\r\n\r\n",
		"GET http://h.example/ HTTP/1.1\n" H "\r\n\r\n",
		"GET  http://h.example/ HTTP/1.1\r\n" H "\r\n",
		"GET http://h.example/\thttp HTTP/1.1\r\n" H "\r\n",
		"GET http://h.example/#f HTTP/1.1\r\n" H "\r\n",
		"GET http://u@h.example/ HTTP/1.1\r\n" H "\r\n",
		"GET http://h.example@evil.example/ HTTP/1.1\r\n" H "\r\n",
		"GET http://h.example\\@evil.example/ HTTP/1.1\r\n" H "\r\n",
		"GET http:///x HTTP/1.1\r\n" H "\r\n",
		"GET https://h.example/ HTTP/1.1\r\n" H "\r\n",
		"GET /x HTTP/1.1\r\n" H "\r\n",
		"GET ftp://h.example/ HTTP/1.1\r\n" H "\r\n",
		"GET http://127.1/ HTTP/1.1\r\nHost: 127.1\r\n\r\n",
		"GET http://h.example/ HTTP/2.0\r\n" H "\r\n",
		"GET http://h.example/ RTSP/1.0\r\n" H "\r\n",
		"PRI * HTTP/2.0\r\n\r\n",
		"CONNECT h.example HTTP/1.1\r\n" H "\r\n",
		"CONNECT h.example:443 HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\n",
		"CONNECT h.example:443 HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n",
		"CONNECT h.example:443 HTTP/1.1\r\nHost: other.example:443\r\n\r\n",
		"CONNECT http://h.example:443 HTTP/1.1\r\n" H "\r\n",
		"GET http://h.example/ HTTP/1.1\r\n" H "Expect: miracles\r\n\r\n",
		"\r\n\r\n",
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (asked(rows[i]) != 400)
			printf("# taken: %s\n", rows[i]);
		CHECK_INT(asked(rows[i]), 400);
		CHECK(wrong[0]);
	}
}

TEST(a_request_with_too_many_headers_is_rejected)
{
	auto_buf struct buf b = { 0 };

	buf_puts(&b, "GET http://h.example/ HTTP/1.1\r\n" H);
	for (int i = 0; i < MESSAGE_HEADERS - 1; i++)
		buf_printf(&b, "x%d: y\r\n", i);
	buf_puts(&b, "\r\n");
	CHECK_INT(asked(b.p), 0);
	buf_cut(&b, b.len - 2);
	buf_puts(&b, "one: more\r\n\r\n");
	CHECK_INT(asked(b.p), 400);
	CHECK_STR(wrong, "too many headers");
}

static int answered(const char *head, int no_body)
{
	message_fini(&message);
	message.no_body = no_body;
	wrong = "";
	return message_response(&message, head, strlen(head), &wrong);
}

TEST(an_ambiguous_answer_is_rejected)
{
	CHECK_INT(answered("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 0), 0);
	CHECK_INT(message.framing, MESSAGE_LENGTH);
	CHECK_INT(answered("HTTP/1.1 200 OK\r\n\r\n", 0), 0);
	CHECK_INT(message.framing, MESSAGE_TO_THE_END);
	CHECK_INT(answered("HTTP/1.1 204 No\r\n\r\n", 0), 0);
	CHECK_INT(message.framing, MESSAGE_EMPTY);
	CHECK(message.done);
	CHECK_INT(answered("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 1), 0);
	CHECK(message.done);
	CHECK_INT(answered("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
			   0),
		  502);
	CHECK_INT(
		answered(
			"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
			0),
		502);
	CHECK_INT(answered("SSH-2.0-x\r\n\r\n", 0), 502);
	message_fini(&message);
}

/* ---- the proxy, between a socket pair and a server on the loopback ---- */

static struct loop loop;
static struct egress egress;
static struct net_rule operators[2];
static int server = -1, link_fd = -1;
static uint16_t server_port;
static char box_says[2048], got[200000];
static size_t ngot;

/* Formats are parameters here, with two numbers each. */
static int fill(char *out, size_t room, const char *fmt, unsigned a, unsigned b)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	return snprintf(out, room, fmt, a, b);
#pragma GCC diagnostic pop
}

static int listen_somewhere(uint16_t *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, 16) < 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		abort();
	*port = ntohs(a.sin_port);
	return fd;
}

static void end_egress(void)
{
	if (!egress.loop)
		return;
	egress_fini(&egress);
	for (int i = 0; i < 20; i++)
		event_base_loop(loop.base, EVLOOP_NONBLOCK);
	own_close_fd(&link_fd);
	own_close_fd(&server);
	loop_fini(&loop);
	egress.loop = NULL;
}

/* An egress that permits the server, and a box that may reach the hosts in `hosts`. */
static struct egress_endpoint *begin(const char *hosts, int internal,
				     const struct egress_limits *limits)
{
	struct egress_conf conf = { .rules = operators, .nrules = 2 };
	struct wire_egress_open ask = { .id = "abcdefghijkl" };
	static char text[1000];
	static const char *const dns[] = { "127.0.0.1:9", NULL };
	struct err e;
	int pair[2];

	end_egress();
	signal(SIGPIPE, SIG_IGN);
	server = listen_somewhere(&server_port);
	operators[0] = operators[1] = (struct net_rule){ .port = server_port,
							 .port_last = server_port,
							 .internal = (uint8_t)internal };
	strcpy(operators[0].host, "127.0.0.1");
	strcpy(operators[1].host, "localhost");
	conf.dns = dns;
	if (limits)
		conf.limits = *limits;
	fill(text, sizeof(text), hosts, server_port, server_port);
	if (loop_init(&loop, &e) < 0 || egress_init(&egress, &loop, &conf, &e) < 0 ||
	    sock_pair(pair, &e) < 0)
		abort();
	egress_add_server(&egress, pair[0]);
	link_fd = pair[1];
	fcntl(link_fd, F_SETFL, O_NONBLOCK);
	if (egress_open(&egress, &ask, text, strlen(text), -1, &e) < 0) {
		printf("# %s\n", e.msg);
		return NULL;
	}
	return egress.ways;
}

static int dial(struct egress_endpoint *w)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	proxy_new(w, pair[0], &proxy_http);
	return pair[1];
}

static void turn(void)
{
	struct timespec little = { .tv_nsec = 200000 };

	event_base_loop(loop.base, EVLOOP_NONBLOCK);
	ppoll(NULL, 0, &little, NULL);
}

static void say(int fd, const char *fmt, unsigned a, unsigned b)
{
	int n = fill(box_says, sizeof(box_says), fmt, a, b);

	if (send(fd, box_says, (size_t)n, MSG_NOSIGNAL) != n)
		abort();
}

/* Reads all available bytes; 1: the peer has closed. */
static int take(int fd)
{
	ssize_t n;

	while ((n = recv(fd, got + ngot, sizeof(got) - 1 - ngot, MSG_DONTWAIT)) > 0)
		ngot += (size_t)n;
	got[ngot] = 0;
	return n == 0 || (n < 0 && errno != EAGAIN);
}

/* Reads until `text` arrives, or the end of file; 5 seconds at most. */
static int receives(int fd, const char *text)
{
	for (int i = 0; i < 10000; i++) {
		int end = take(fd);

		if (text && strstr(got, text))
			return 1;
		if (end)
			return !text;
		turn();
	}
	printf("# received only: %.300s\n", got);
	return 0;
}

static void fresh(void)
{
	ngot = 0;
	got[0] = 0;
}

static int accepted(void)
{
	for (int i = 0; i < 10000; i++) {
		int fd = accept4(server, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0)
			return fd;
		turn();
	}
	return -1;
}

/* The next report; its texts are in `report_text`. */
static struct wire_egress_report report;
static const char *report_text[5];
static int reported(void)
{
	static char buf[WIRE_MAX];
	struct err e;
	unsigned nfds = 0;

	for (int i = 0; i < 10000; i++) {
		int n = sock_recv(link_fd, buf, NULL, &nfds, &e);
		const char *p = buf + sizeof(report);

		if (n > 0 && ((struct frame *)buf)->type == WIRE_EGRESS_REPORT) {
			memcpy(&report, buf, sizeof(report));
			for (int k = 0; k < 5; k++, p += strlen(p) + 1)
				report_text[k] = p;
			return p == buf + n;
		}
		if (n <= 0)
			turn();
	}
	return 0;
}

#define LISTED "127.0.0.1:%u\nlocalhost:%u"

TEST(a_request_for_an_allowed_host_is_answered_and_reported)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	int box = dial(w), host;

	fresh();
	say(box, "GET http://127.0.0.1:%u/a HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", server_port,
	    server_port);
	host = accepted();
	CHECK(host >= 0);
	CHECK(receives(host, "\r\n\r\n"));
	CHECK(strncmp(got, "GET /a HTTP/1.1\r\nhost: 127.0.0.1:", 32) == 0);
	fresh();
	say(host, "HTTP/1.1 200 Fine\r\nContent-Length: 5\r\nSet-Cookie: a\r\n\r\nhello%c%c", 'x',
	    'y');
	CHECK(receives(box, NULL));
	CHECK_STR(got, "HTTP/1.1 200 OK\r\nset-cookie: a\r\ncontent-length: 5\r\n"
		       "connection: close\r\n\r\nhello");
	close(box);
	CHECK(reported());
	CHECK_STR(report_text[0], "127.0.0.1");
	CHECK(strncmp(report_text[1], "127.0.0.1:", 10) == 0);
	CHECK_STR(report_text[2], "ok");
	CHECK_INT(report.port, server_port);
	CHECK(report.bytes_in > 5 && report.bytes_out > 20);
	CHECK_STR(report.id, "abcdefghijkl");
	for (int i = 0; i < 1000 && w->nproxies; i++)
		turn();
	CHECK_INT(w->nproxies, 0);
	close(host);
}

TEST(chunked_bodies_are_encoded_again_in_both_directions)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	int box = dial(w), host;

	fresh();
	say(box,
	    "POST http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "3;ext=1\r\nabc\r\n0\r\nTrailer: x\r\n\r\nGET http://x/ HTTP/1.1\r\n\r\n",
	    server_port, server_port);
	host = accepted();
	CHECK(receives(host, "0\r\n\r\n"));
	CHECK(strstr(got, "\r\n\r\n3\r\nabc\r\n0\r\n\r\n"));
	CHECK(!strstr(got, "Trailer") && !strstr(got, "http://x"));
	fresh();
	say(host,
	    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "%c\r\nhello\r\n%c\r\n\r\n",
	    '5', '0');
	CHECK(receives(box, NULL));
	CHECK_STR(got, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
		       "5\r\nhello\r\n0\r\n\r\n");
	close(host);
	close(box);
}

TEST(a_tunnel_passes_bytes_and_half_closes)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	int box = dial(w), host;

	fresh();
	say(box, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\nearly", server_port,
	    server_port);
	host = accepted();
	CHECK(receives(box, "HTTP/1.1 200 Connection established\r\n\r\n"));
	fresh();
	CHECK(receives(host, "early"));
	shutdown(box, SHUT_WR);
	fresh();
	CHECK(receives(host, NULL));
	say(host, "late%c%c", 'r', '!');
	close(host);
	fresh();
	CHECK(receives(box, NULL));
	CHECK_STR(got, "later!");
	CHECK(reported());
	CHECK_STR(report_text[2], "ok");
	CHECK_INT(report.bytes_out, 5);
	CHECK_INT(report.bytes_in, 6);
	close(box);
}

static const char *verdict_of(struct egress_endpoint *w, const char *request, int status)
{
	static char why[300];
	int box = dial(w);
	char line[32];

	fresh();
	say(box, request, server_port, server_port);
	snprintf(line, sizeof(line), "HTTP/1.1 %d ", status);
	if (!receives(box, line) || !receives(box, NULL) || strncmp(got, line, strlen(line)) != 0) {
		close(box);
		return "another answer";
	}
	close(box);
	if (!reported())
		return "no report";
	snprintf(why, sizeof(why), "%s", report_text[2]);
	return why;
}

TEST(another_host_is_rejected_with_a_hint)
{
	struct egress_endpoint *w = begin("other.example\n127.0.0.1:9", 1, NULL);

	CHECK_STR(verdict_of(w, "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
			     403),
		  "denied");
	CHECK(strstr(got, "To allow it: atoll net allow abcdefghijkl 127.0.0.1:"));
	CHECK(strstr(got, "{\"error\": {\"code\": \"denied\""));
	CHECK(strncmp(report_text[4], "To allow it: ", 13) == 0);
	CHECK_STR(verdict_of(w, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", 403),
		  "denied");
	/* A rule of the box allows it, but none of the operator. */
	CHECK_STR(verdict_of(w, "CONNECT other.example:443 HTTP/1.1\r\nHost: other.example\r\n\r\n",
			     403),
		  "denied");
	CHECK(strstr(got, "egress.allow"));
	CHECK(accept4(server, NULL, NULL, 0) < 0);
}

TEST(the_rules_of_an_open_endpoint_can_change)
{
	struct egress_endpoint *w = begin("other.example", 1, NULL);
	struct err e;

	CHECK_STR(verdict_of(w, "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
			     403),
		  "denied");
	CHECK(egress_change(&egress, w->id, "127.0.0.1:9\nother.example", 25, &e) == 0);
	CHECK_INT(w->policy.allow.n, 2);
	CHECK_STR(w->policy.allow.v[0].host, "127.0.0.1");
	/* A rule that cannot be parsed changes nothing; neither does one for a box without
	 * endpoint. */
	CHECK(egress_change(&egress, w->id, "a b", 3, &e) < 0);
	CHECK_INT(e.kind, ERR_INVALID);
	CHECK(egress_change(&egress, "missing", "a.example", 9, &e) < 0);
	CHECK_INT(e.kind, ERR_NOT_FOUND);
	CHECK_INT(w->policy.allow.n, 2);
	CHECK(egress_change(&egress, w->id, "", 0, &e) == 0);
	CHECK_INT(w->policy.allow.n, 0);
}

/* A tunnel to the server, open; sets *host. */
static int open_tunnel(struct egress_endpoint *w, int *host)
{
	int box = dial(w);

	fresh();
	say(box, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", server_port,
	    server_port);
	*host = accepted();
	if (!receives(box, "HTTP/1.1 200 Connection established\r\n\r\n"))
		abort();
	fresh();
	return box;
}

TEST(a_change_of_rules_cuts_connections_that_are_no_longer_permitted)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	char text[100];
	struct err e;
	int host, box = open_tunnel(w, &host);

	snprintf(text, sizeof(text), "localhost:%u\ndeny other.example", server_port);
	CHECK(egress_change(&egress, w->id, text, strlen(text), &e) == 0);
	CHECK_INT(w->nproxies, 1);
	/* By the address that the name has. */
	snprintf(text, sizeof(text), "localhost:%u\ndeny 127.0.0.0/8", server_port);
	CHECK(egress_change(&egress, w->id, text, strlen(text), &e) == 0);
	CHECK_INT(w->nproxies, 0);
	CHECK(receives(host, NULL));
	CHECK(reported());
	CHECK_STR(report_text[2], "denied");
	close(box);
	close(host);
	CHECK(egress_change(&egress, w->id, text, (size_t)(strchr(text, '\n') - text), &e) == 0);
	box = open_tunnel(w, &host);
	CHECK(egress_change(&egress, w->id, "other.example", 13, &e) == 0);
	CHECK_INT(w->nproxies, 0);
	close(box);
	close(host);
}

TEST(a_budget_for_a_destination_limits_connections_and_survives_the_process)
{
	static struct egress_used used[EGRESS_WAYS];
	struct egress_endpoint *w = begin("localhost:%u\n127.0.0.1:%u", 1, NULL);
	struct wire_egress_open ask = { .id = "abcdefghijkl" };
	int host, box;
	char text[200];
	struct err e;

	memset(used, 0, sizeof(used));
	egress.conf.used = used;
	egress_close(&egress, ask.id);
	snprintf(text, sizeof(text), "localhost:%u\n127.0.0.1:%u\nbudget 0 0 1 localhost",
		 server_port, server_port);
	CHECK(egress_open(&egress, &ask, text, strlen(text), -1, &e) == 0);
	w = egress.ways;
	box = open_tunnel(w, &host);
	close(box);
	close(host);
	CHECK_STR(verdict_of(w, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", 403),
		  "ok"); /* the report of the first connection */
	CHECK(strstr(got, "budget for localhost: 1 connections"));
	CHECK(reported());
	CHECK_STR(report_text[2], "budget");
	/* As another process finds it; other rules do not matter. */
	used[0].id[0] = 'x';
	memset(w->spent, 0, sizeof(w->spent));
	egress_close(&egress, ask.id);
	used[0].id[0] = 'a';
	memcpy(used[0].id, ask.id, sizeof(ask.id));
	snprintf(text, sizeof(text),
		 "localhost:%u\nbudget 5 5 5 other.example\nbudget 0 0 1 localhost", server_port);
	CHECK(egress_open(&egress, &ask, text, strlen(text), -1, &e) == 0);
	CHECK_STR(verdict_of(egress.ways,
			     "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", 403),
		  "budget");
	egress.conf.used = NULL;
	end_egress();
}

TEST(a_budget_of_bytes_for_a_destination_cuts_its_connections)
{
	struct egress_endpoint *w = begin("localhost:%u\nbudget 0 8 0 localhost:%u", 1, NULL);
	int host, box = open_tunnel(w, &host);

	say(box, "four%c%c", '5', '6');
	CHECK(receives(host, "four56"));
	say(box, "more%c%c", '7', '8');
	CHECK(reported());
	CHECK_STR(report_text[2], "budget");
	close(box);
	close(host);
}

TEST(the_number_of_names_of_a_box_is_limited)
{
	struct egress_limits limits = { .dns_queries = 1 };
	struct egress_endpoint *w = begin(LISTED, 1, &limits);
	int host, box = open_tunnel(w, &host);

	CHECK_INT(w->dns_queries, 1);
	CHECK_STR(verdict_of(w, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", 403),
		  "budget");
	CHECK(strstr(got, "egress.dns_queries"));
	CHECK_INT(w->dns_queries, 1);
	close(box);
	close(host);
}

/* ---- approvals ---- */

static struct wire_egress_request request;
static int requested(void)
{
	static char buf[WIRE_MAX];
	struct err e;
	unsigned nfds = 0;

	for (int i = 0; i < 10000; i++) {
		int n = sock_recv(link_fd, buf, NULL, &nfds, &e);

		if (n > 0 && ((struct frame *)buf)->type == WIRE_EGRESS_REQUEST) {
			memcpy(&request, buf, sizeof(request));
			return 1;
		}
		if (n <= 0)
			turn();
	}
	return 0;
}

static void decide(struct egress_endpoint *w, int allow)
{
	struct wire_egress_decide f = { .head = sock_head(WIRE_EGRESS_DECIDE, 0),
					.request = request.request,
					.allow = (uint32_t)allow };
	struct err e;

	memcpy(f.id, w->id, sizeof(f.id));
	CHECK(sock_send(link_fd, &f, sizeof(f), NULL, 0, NULL, 0, &e) == 0);
}

static int wait_for_approval(struct egress_endpoint *w)
{
	int box = dial(w);

	fresh();
	say(box, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", server_port,
	    server_port);
	return box;
}

TEST(an_approval_lets_all_waiting_connections_of_a_destination_continue)
{
	struct egress_endpoint *w = begin("ask", 1, NULL);
	int one = wait_for_approval(w), two, host;

	CHECK(requested() && request.port == server_port && !request.ended);
	two = wait_for_approval(w);
	for (int i = 0; i < 20; i++)
		turn();
	CHECK(accept4(server, NULL, NULL, 0) < 0);
	decide(w, 1);
	host = accepted();
	CHECK(host >= 0);
	close(host);
	host = accepted();
	CHECK(host >= 0);
	CHECK(receives(one, "HTTP/1.1 200 "));
	fresh();
	CHECK(receives(two, "HTTP/1.1 200 "));
	CHECK(requested() && request.ended); /* one request, which ended */
	close(host);
	close(one);
	close(two);
}

TEST(a_refused_or_late_approval_is_403)
{
	struct egress_limits limits = { .ask_ms = 50 };
	struct egress_endpoint *w = begin("ask", 1, NULL);
	int box = wait_for_approval(w);

	CHECK(requested());
	decide(w, 0);
	CHECK(receives(box, "HTTP/1.1 403 ") && receives(box, "was refused"));
	CHECK(reported());
	CHECK_STR(report_text[2], "denied");
	CHECK(strncmp(report_text[4], "To allow it: ", 13) == 0);
	close(box);
	w = begin("ask", 1, &limits);
	box = wait_for_approval(w);
	CHECK(receives(box, "HTTP/1.1 403 ") && receives(box, "none was given within"));
	close(box);
}

TEST(a_new_rule_answers_the_connections_that_wait)
{
	struct egress_endpoint *w = begin("ask", 1, NULL);
	int box = wait_for_approval(w), host;
	char text[100];
	struct err e;

	CHECK(requested());
	snprintf(text, sizeof(text), "ask\nuntil 99999999999 localhost:%u", server_port);
	CHECK(egress_change(&egress, w->id, text, strlen(text), &e) == 0);
	host = accepted();
	CHECK(host >= 0 && receives(box, "HTTP/1.1 200 "));
	close(box);
	close(host);
	CHECK(egress_change(&egress, w->id, "ask", 3, &e) == 0);
	box = wait_for_approval(w);
	CHECK(requested() && requested());
	snprintf(text, sizeof(text), "ask\ndeny localhost:%u", server_port);
	CHECK(egress_change(&egress, w->id, text, strlen(text), &e) == 0);
	CHECK(receives(box, "HTTP/1.1 403 ") && receives(box, "deny rule"));
	close(box);
}

TEST(the_number_of_requests_of_a_box_that_wait_is_bounded)
{
	struct egress_limits limits = { .connections = 100, .ask_ms = 60000 };
	struct egress_endpoint *w = begin("ask", 1, &limits);
	int boxes[APPROVAL_REQUESTS + 1];

	operators[0] = (struct net_rule){ .kind = NET_RULE_OPEN };
	for (unsigned i = 0; i < ARRAY_LEN(boxes); i++) {
		boxes[i] = dial(w);
		say(boxes[i], "CONNECT h%u.example:443 HTTP/1.1\r\nHost: h%u.example\r\n\r\n", i,
		    i);
		if (i < APPROVAL_REQUESTS)
			CHECK(requested() && !request.ended);
	}
	fresh();
	CHECK(receives(boxes[APPROVAL_REQUESTS], "HTTP/1.1 403 ") &&
	      receives(boxes[APPROVAL_REQUESTS], "wait for one already"));
	for (unsigned i = 0; i < ARRAY_LEN(boxes); i++)
		close(boxes[i]);
	end_egress();
}

TEST(an_internal_address_is_rejected_unless_configured)
{
	struct egress_endpoint *w = begin(LISTED, 0, NULL);

	CHECK_STR(verdict_of(w, "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
			     403),
		  "internal");
	CHECK(strstr(got, "egress.allow_internal"));
	CHECK_STR(verdict_of(w, "CONNECT localhost:%u HTTP/1.1\r\nHost: localhost:%u\r\n\r\n", 403),
		  "internal");
	CHECK(accept4(server, NULL, NULL, 0) < 0);
}

TEST(a_metadata_service_is_never_reached)
{
	struct egress_endpoint *w = begin("open\n127.0.0.1:%u", 1, NULL);

	strcpy(operators[0].host, "169.254.169.254");
	operators[0].port = 0;
	CHECK_STR(
		verdict_of(w,
			   "GET http://169.254.169.254/ HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n",
			   403),
		"internal");
	CHECK(strstr(got, "never reached"));
}

TEST(a_refused_connection_is_a_502)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);

	own_close_fd(&server);
	CHECK_STR(verdict_of(w, "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
			     502),
		  "unreachable");
}

TEST(an_invalid_request_is_400_and_a_large_head_431)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	static char a[40000];
	int box;

	CHECK_STR(verdict_of(w, "\x16\x03\x01 hello\r\n\r\n", 400), "bad");
	CHECK_STR(verdict_of(w, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 400), "bad");
	CHECK(strstr(got, "this is a proxy"));
	box = dial(w);
	memset(a, 'a', sizeof(a));
	fresh();
	say(box, "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nX: ", server_port,
	    server_port);
	CHECK(send(box, a, sizeof(a), MSG_NOSIGNAL) == (ssize_t)sizeof(a));
	CHECK(receives(box, "HTTP/1.1 431 "));
	close(box);
	CHECK(reported());
	CHECK_STR(report_text[2], "bad");
}

TEST(a_request_that_arrives_too_slowly_is_408)
{
	struct egress_limits m = { .head_ms = 30 };
	struct egress_endpoint *w = begin(LISTED, 1, &m);
	int box = dial(w);

	fresh();
	say(box, "GET http://127.0.0.1:%u/ HTTP/1.1\r\n", server_port, 0);
	CHECK(receives(box, "HTTP/1.1 408 "));
	close(box);
	CHECK(reported());
	CHECK_STR(report_text[2], "timeout");
}

TEST(a_silent_tunnel_ends)
{
	struct egress_limits m = { .idle_ms = 30 };
	struct egress_endpoint *w = begin(LISTED, 1, &m);
	int box = dial(w), host;

	fresh();
	say(box, "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", server_port,
	    server_port);
	host = accepted();
	CHECK(receives(host, NULL));
	CHECK(reported());
	CHECK_STR(report_text[2], "timeout");
	close(host);
	close(box);
}

TEST(an_exhausted_byte_budget_ends_this_and_later_transfers)
{
	struct egress_limits m = { .bytes_in = 1000 };
	struct egress_endpoint *w = begin(LISTED, 1, &m);
	int box = dial(w), host;
	static char a[100000];

	fresh();
	say(box, "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", server_port,
	    server_port);
	host = accepted();
	memset(a, 'a', sizeof(a));
	CHECK(send(host, a, sizeof(a), MSG_NOSIGNAL) > 0);
	CHECK(receives(box, NULL));
	CHECK(ngot < sizeof(a));
	CHECK(reported());
	CHECK_STR(report_text[2], "budget");
	close(host);
	close(box);
	CHECK_STR(verdict_of(w, "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n",
			     403),
		  "budget");
	CHECK(strstr(got, "egress.bytes_in"));
}

TEST(a_peer_that_does_not_read_stops_reading_from_the_other)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	int box = dial(w), host;
	size_t sent = 0;
	static char a[65536];
	ssize_t n;

	fresh();
	say(box, "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", server_port,
	    server_port);
	host = accepted();
	for (int i = 0; i < 2000; i++) {
		while ((n = send(host, a, sizeof(a), MSG_NOSIGNAL)) > 0 && sent < (64u << 20))
			sent += (size_t)n;
		event_base_loop(loop.base, EVLOOP_NONBLOCK);
	}
	CHECK(sent < 32u << 20); /* what kernel buffers hold */
	CHECK(w->bytes_in < 1u << 20);
	close(box); /* in the middle of it */
	CHECK(reported());
	CHECK_STR(report_text[2], "cut");
	close(host);
	CHECK_INT(w->nproxies, 0);
}

TEST(an_incomplete_answer_is_not_forwarded_as_complete)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	int box = dial(w), host;

	fresh();
	say(box, "GET http://127.0.0.1:%u/ HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", server_port,
	    server_port);
	host = accepted();
	say(host, "HTTP/1.1 200 Fine\r\nContent-Length: %u\r\n\r\nhello", 50, 0);
	CHECK(receives(box, "hello"));
	close(host);
	CHECK(receives(box, NULL));
	CHECK(reported());
	CHECK_STR(report_text[2], "cut");
	close(box);
}

TEST(closing_an_endpoint_closes_its_connections)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	int box = dial(w), asking = dial(w), host;

	fresh();
	say(box, "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: 127.0.0.1:%u\r\n\r\n", server_port,
	    server_port);
	host = accepted();
	CHECK(receives(box, "200 Connection"));
	egress_close(&egress, "abcdefghijkl");
	CHECK(receives(host, NULL));
	fresh();
	CHECK(receives(asking, NULL));
	CHECK(reported() && reported());
	CHECK_INT(egress.nproxies, 0);
	CHECK(egress.ways == NULL);
	close(host);
	close(box);
	close(asking);
}

TEST(a_new_server_gets_the_list_of_open_endpoints)
{
	struct egress_endpoint *w = begin(LISTED, 1, NULL);
	struct wire_egress_open ask = { .head = sock_head(WIRE_EGRESS_OPEN, 7), .id = "second" };
	char buf[WIRE_MAX];
	unsigned nfds = 0, held = 0;
	uint16_t port;
	auto_fd int listener = listen_somewhere(&port);
	int pair[2], n;
	struct err e;

	CHECK(w);
	while (sock_recv(link_fd, buf, NULL, &nfds, &e) > 0)
		;
	CHECK(sock_send(link_fd, &ask, sizeof(ask), "a.example", 9, &listener, 1, &e) == 0);
	for (int i = 0; i < 100 && egress.nways < 2; i++)
		turn();
	CHECK_INT(egress.nways, 2);
	CHECK(sock_recv(link_fd, buf, NULL, &nfds, &e) > 0);
	CHECK_INT(((struct frame *)buf)->type, WIRE_DONE);
	CHECK_INT(((struct frame *)buf)->ref, 7);
	/* The same again; a file instead of a socket; no valid host. */
	CHECK(sock_send(link_fd, &ask, sizeof(ask), "a.example", 9, &listener, 1, &e) == 0);
	snprintf(ask.id, sizeof(ask.id), "third");
	CHECK(sock_send(link_fd, &ask, sizeof(ask), "a.example", 9, (int[]){ 0 }, 1, &e) == 0);
	CHECK(sock_send(link_fd, &ask, sizeof(ask), "a b", 3, &listener, 1, &e) == 0);
	CHECK(sock_send(link_fd, &ask, sizeof(ask), "a.example", 9, NULL, 0, &e) == 0);
	for (int i = 0; i < 50; i++)
		turn();
	for (int i = 0; i < 4; i++) {
		CHECK(sock_recv(link_fd, buf, NULL, &nfds, &e) > 0);
		CHECK_INT(((struct frame *)buf)->type, WIRE_ERROR);
	}
	CHECK_INT(egress.nways, 2);
	CHECK(sock_pair(pair, &e) == 0);
	egress_add_server(&egress, pair[0]);
	while ((n = sock_recv(pair[1], buf, NULL, &nfds, &e)) > 0 &&
	       ((struct frame *)buf)->type == WIRE_EGRESS_LIST)
		held++;
	CHECK_INT(held, 2);
	CHECK_INT(((struct frame *)buf)->type, WIRE_DONE);
	close(link_fd);
	link_fd = pair[1];
	fcntl(link_fd, F_SETFL, O_NONBLOCK);
	CHECK_STR(verdict_of(w, "nonsense\r\n\r\n", 400), "bad"); /* reported to the new one */
}

/* mux has the listener of a guest as a unix socket: docs/tiers.md. */
TEST(the_listener_of_a_guest_is_a_unix_socket)
{
	struct wire_egress_open ask = { .id = "guest" };
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	socklen_t n = sizeof(to);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), c;
	struct err e;

	CHECK(begin(LISTED, 1, NULL));
	CHECK(bind(listener, (struct sockaddr *)&to, sizeof(sa_family_t)) == 0);
	c = dup(listener);
	CHECK(egress_open(&egress, &ask, "a.example", 9, c, &e) == -1); /* it does not listen */
	CHECK(listen(listener, 4) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&to, &n) == 0);
	CHECK(egress_open(&egress, &ask, "a.example", 9, listener, &e) == 0);
	c = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(c, (struct sockaddr *)&to, n) == 0);
	fresh();
	say(c, "nonsense\r\n\r\n%c%c", ' ', ' ');
	CHECK(receives(c, "HTTP/1.1 400"));
	close(c);
	for (int i = 0; i < 200 && egress.ways->nproxies; i++)
		turn();
	CHECK_INT(egress.ways->nproxies, 0);
}

TEST(connections_over_the_limit_of_a_box_wait)
{
	struct egress_limits m = { .connections = 2 };
	struct wire_egress_open ask = { .id = "listening" };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener, c[3];
	uint16_t port;
	struct err e;

	CHECK(begin(LISTED, 1, &m));
	listener = listen_somewhere(&port);
	CHECK(egress_open(&egress, &ask, "a.example", 9, listener, &e) == 0);
	to.sin_port = htons(port);
	for (int i = 0; i < 3; i++) {
		c[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(c[i], (struct sockaddr *)&to, sizeof(to)) == 0);
	}
	for (int i = 0; i < 50; i++)
		turn();
	CHECK_INT(egress.ways->nproxies, 2);
	close(c[0]);
	for (int i = 0; i < 200 && egress.ways->sockets[WAY_PROXY].watch.wants == 0; i++)
		turn();
	fresh();
	say(c[2], "nonsense\r\n\r\n%c%c", ' ', ' ');
	CHECK(receives(c[2], "HTTP/1.1 400"));
	close(c[1]);
	close(c[2]);
	for (int i = 0; i < 200 && egress.ways->nproxies; i++)
		turn();
	CHECK_INT(egress.ways->nproxies, 0);
}

TEST(the_connection_rate_of_a_box_is_limited)
{
	struct egress_limits m = { .rate = 1 };
	struct wire_egress_open ask = { .id = "busy" };
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener, c[4];
	uint16_t port;
	struct err e;

	CHECK(begin(LISTED, 1, &m));
	listener = listen_somewhere(&port);
	CHECK(egress_open(&egress, &ask, "a.example", 9, listener, &e) == 0);
	to.sin_port = htons(port);
	for (int i = 0; i < 4; i++) {
		c[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(c[i], (struct sockaddr *)&to, sizeof(to)) == 0);
	}
	for (int i = 0; i < 200; i++)
		turn();
	CHECK_INT(egress.ways->nproxies, 2);
	for (int i = 0; i < 20000 && egress.ways->nproxies < 3; i++)
		turn();
	CHECK_INT(egress.ways->nproxies, 3);
	for (int i = 0; i < 4; i++)
		close(c[i]);
	end_egress();
	message_fini(&message);
}
