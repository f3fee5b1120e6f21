/* tcp.c - see tcp.h.
 * On loopback a connect succeeds or fails within the call; it waits only while the listener's
 * queue is full. The descriptor that is sent is non-blocking. */
#include "init/tcp.h"
#include "base/err.h"
#include "init/conn.h"
#include "initlib/loop.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include <linux/in.h>
#include <linux/in6.h>

#define PATIENCE_NS 5000000000ull

struct tcp {
	struct event_source src;
	struct conn *conn; /* NULL: a free slot */
	uint32_t ref;
	uint16_t port;
	uint8_t tried_v6;
	uint8_t done; /* src.fd is connected, or err has the reason; the client must still be
		       * notified */
	int err;
	uint64_t deadline_ns;
};

static LAZY struct tcp dials[TCP_MAX];
static uint32_t busy; /* one bit per slot */

static void tcp_ready(struct event_source *s, uint32_t events);

/* 0: connected; -EINPROGRESS: wait; else it is refused. */
static int try_v4(struct tcp *d)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = __builtin_bswap16(d->port),
				  .sin_addr = { __builtin_bswap32(INADDR_LOOPBACK) } };

	d->src.fd = (int)sys_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	return d->src.fd < 0 ? d->src.fd : (int)sys_connect(d->src.fd, &to, sizeof(to));
}

static int try_v6(struct tcp *d)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6,
				   .sin6_port = __builtin_bswap16(d->port) };

	to.sin6_addr.s6_addr[15] = 1;
	d->tried_v6 = 1;
	d->src.fd = (int)sys_socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC);
	return d->src.fd < 0 ? d->src.fd : (int)sys_connect(d->src.fd, &to, sizeof(to));
}

int tcp_listen(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = __builtin_bswap16(port),
				  .sin_addr = { __builtin_bswap32(INADDR_LOOPBACK) } };
	int fd = (int)sys_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC), on = 1, err;

	if (fd < 0)
		return fd;
	/* Connections of the one before it may still be closing. */
	err = (int)sys_setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (err >= 0)
		err = (int)sys_bind(fd, &at, sizeof(at));
	if (err >= 0)
		err = (int)sys_listen(fd, TCP_BACKLOG);
	if (err < 0)
		sys_close(fd);
	return err < 0 ? err : fd;
}

/* Sends the result to the client, if its socket takes it now. */
static void tcp_tell(struct tcp *d)
{
	struct frame f = conn_head(WIRE_FD, d->ref);
	int told;

	if (d->err)
		told = conn_error(d->conn, d->ref, ERR_NONE, d->err, "connect inside the box");
	else
		told = conn_answer(d->conn, &f, sizeof(f), d->src.fd);
	if (!told)
		return;
	d->conn = NULL;
	busy &= ~(1u << (d - dials));
}

static void tcp_decided(struct tcp *d, int err)
{
	if (err == -EINPROGRESS) {
		loop_want(&d->src, EPOLLOUT);
		return;
	}
	if (err < 0)
		loop_close(&d->src);
	if (err < 0 && !d->tried_v6) {
		int v6 = try_v6(d);

		/* Where ::1 does not exist, the error of 127.0.0.1 is the better reason. */
		tcp_decided(d, v6 < 0 && v6 != -EINPROGRESS ? err : v6);
		return;
	}
	loop_want(&d->src, 0);
	d->err = -err;
	d->done = 1;
	tcp_tell(d);
}

int tcp_start(struct conn *c, uint32_t ref, uint16_t port)
{
	int i = busy == (1u << TCP_MAX) - 1 ? TCP_MAX : __builtin_ctz(~busy);
	struct tcp *d = &dials[i];

	if (i == TCP_MAX)
		return -1;
	*d = (struct tcp){ .src = { .fd = -1, .ready = tcp_ready }, .conn = c, .ref = ref };
	d->port = port;
	d->deadline_ns = loop_now_ns + PATIENCE_NS;
	busy |= 1u << i;
	tcp_decided(d, try_v4(d));
	return 0;
}

static void tcp_ready(struct event_source *s, uint32_t events)
{
	struct tcp *d = source_owner(s, struct tcp, src);
	int err = 0;
	unsigned len = sizeof(err);

	(void)events;
	if (!d->conn || d->done || sys_getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return;
	tcp_decided(d, -err);
}

void tcp_drop(const struct conn *c)
{
	uint32_t rest;

	for (rest = busy; rest; rest &= rest - 1) {
		struct tcp *d = &dials[__builtin_ctz(rest)];

		if (d->conn != c)
			continue;
		loop_close(&d->src);
		d->conn = NULL;
		busy &= ~(1u << (d - dials));
	}
}

int tcp_timeout_ms(void)
{
	return busy ? 100 : -1; /* rare and short: a check ten times a second is enough */
}

void tcp_timers(void)
{
	uint32_t rest;

	for (rest = busy; rest; rest &= rest - 1) {
		struct tcp *d = &dials[__builtin_ctz(rest)];

		if (d->done) {
			tcp_tell(d);
		} else if (d->deadline_ns <= loop_now_ns) {
			d->tried_v6 = 1;
			tcp_decided(d, -ETIMEDOUT);
		}
	}
}
