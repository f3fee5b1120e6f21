/* http_rig.h - a real server on a loopback port and a client that is a bare socket, in one thread:
 * the client's waiting turns the server's loop. */
#pragma once
#include "http/http.h"
#include "tap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Not every test file uses all of it. */
#define RIG __attribute__((unused)) static

enum { PATIENCE_MS = 10000, GOT_MAX = 4 << 20 };

static struct loop loop;
static struct http_server server;
static struct sockaddr_in where;
static struct err oops;
static unsigned heads, overs, ends, eofs;
static char got[GOT_MAX + 1]; /* bytes that the client has received */
static size_t got_len;
static int got_end; /* 1: an orderly end, -1: a reset */

RIG void nothing_due(struct timer *t)
{
	(void)t;
}

/* One turn of the loop: handles ready events, or waits 5 ms. */
RIG void turn(void)
{
	struct timer t;

	timer_init(&t, &loop, nothing_due);
	timer_set(&t, 5);
	event_base_loop(loop.base, EVLOOP_ONCE);
	timer_fini(&t);
}

#define UNTIL(so)                                                                                  \
	({                                                                                         \
		uint64_t end_ = loop_now_ms() + PATIENCE_MS;                                       \
		while (!(so) && loop_now_ms() < end_)                                              \
			turn();                                                                    \
		(so);                                                                              \
	})

/* tls: NULL, or a context for it (borrowed). */
RIG int begin_server_with(const struct http_limits *limits, void (*on_head)(struct http_req *),
			  struct ssl_ctx_st *tls)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(where);

	heads = overs = ends = eofs = 0;
	where = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr = { htonl(INADDR_LOOPBACK) } };
	if (loop_init(&loop, &oops) < 0 || fd < 0 || bind(fd, (void *)&where, sizeof(where)) < 0 ||
	    listen(fd, 1024) < 0 || getsockname(fd, (void *)&where, &len) < 0)
		return 0;
	http_server_init(&server, &loop);
	if (limits)
		server.limits = *limits;
	server.on_head = on_head;
	return http_listen(&server, fd, tls, &oops) == 0;
}

RIG int begin_server(const struct http_limits *limits, void (*on_head)(struct http_req *))
{
	return begin_server_with(limits, on_head, NULL);
}

RIG void end_server(void)
{
	http_server_fini(&server);
	loop_fini(&loop);
}

RIG int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (void *)&where, sizeof(where)) < 0)
		return -1;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	got_len = 0;
	got_end = 0;
	return fd;
}

/* The bytes that have arrived so far, as a string. */
RIG const char *take(int fd)
{
	ssize_t n = 1;

	while (!got_end && got_len < GOT_MAX && n > 0) {
		n = recv(fd, got + got_len, GOT_MAX - got_len, MSG_DONTWAIT);
		if (n > 0)
			got_len += (size_t)n;
		else if (n == 0)
			got_end = 1;
		else if (errno != EAGAIN)
			got_end = -1;
	}
	got[got_len] = 0;
	return got;
}

/* 1 when all was sent, 0 when the peer closed the connection. */
RIG int say_bytes(int fd, const void *bytes, size_t n)
{
	uint64_t end = loop_now_ms() + PATIENCE_MS;
	const char *p = bytes;

	while (n > 0 && loop_now_ms() < end) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno != EAGAIN)
			return 0;
		if (sent > 0) {
			p += sent;
			n -= (size_t)sent;
		} else {
			turn();
			take(fd);
		}
	}
	return n == 0;
}

RIG int say(int fd, const char *text)
{
	return say_bytes(fd, text, strlen(text));
}

RIG int received(int fd, const char *text)
{
	take(fd);
	return memmem(got, got_len, text, strlen(text)) != NULL;
}

RIG int ended(int fd)
{
	take(fd);
	return got_end;
}

RIG unsigned count_of(const char *text)
{
	unsigned n = 0;

	for (const char *p = got; (p = memmem(p, (size_t)(got + got_len - p), text, strlen(text)));
	     p++)
		n++;
	return n;
}

RIG int status_of(void)
{
	return strncmp(got, "HTTP/1.1 ", 9) == 0 ? atoi(got + 9) : -1;
}
