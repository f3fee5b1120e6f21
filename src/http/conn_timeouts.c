/* conn_timeouts.c - closes connections that exceeded a time limit. The sweep checks every
 * connection about once a second, which is cheaper than a timer that every received byte would
 * have to move. A wait begins when the sweep first sees it, so a limit is enforced within one
 * interval, never early. */
#include "http/conn.h"

#include <poll.h>

static int too_long(struct http_conn *c, uint64_t now, uint64_t limit_ms)
{
	if (c->stamp == 0)
		c->stamp = now;
	return now - c->stamp >= limit_ms;
}

/* Has the peer received none of the waiting bytes? */
static int send_stalled(struct http_conn *c, uint64_t now)
{
	uint64_t taken = c->out_total - conn_waiting(c);

	if (taken != c->taken) {
		c->taken = taken;
		c->stamp = 0;
	}
	return too_long(c, now, c->req.server->limits.send_stall_ms);
}

/* A peer that has sent its end may still read. While the server does not read, it does not
 * notice that the peer has closed. The kernel knows when both directions are closed. */
static int has_hung_up(const struct http_conn *c)
{
	struct pollfd p = { .fd = c->fd };

	return !c->reading && poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP));
}

/* Did too few bytes of body arrive since the last check, half a minute ago? */
static int is_trickle(struct http_conn *c, uint64_t now)
{
	uint64_t took = now - c->rate_at, came = c->body_got - c->rate_got;

	if (!c->body_rate || (c->rate_at && took < c->req.server->limits.body_stall_ms))
		return 0;
	if (c->rate_at && came * 1000 < took * c->body_rate)
		return 1;
	c->rate_at = now;
	c->rate_got = c->body_got;
	return 0;
}

static void sweep_busy(struct http_conn *c, uint64_t now)
{
	if (has_hung_up(c)) {
		conn_cut(c, 0);
	} else if (conn_waiting(c) > 0 || splice_is_stuck(c)) {
		if (send_stalled(c, now))
			conn_cut(c, 1);
	} else if (!c->body_done && !c->paused && !c->raw &&
		   (c->discard || c->how != HTTP_BODY_NONE)) {
		if (too_long(c, now, c->req.server->limits.body_stall_ms))
			reply_error(c, 408, "the body stopped coming");
		else if (is_trickle(c, now))
			reply_error(c, 408, "the body comes too slowly");
		else
			return;
		conn_schedule(c);
	} else {
		c->stamp = c->rate_at = 0; /* the handler's turn */
	}
}

void conn_check_timeout(struct http_conn *c, uint64_t now)
{
	const struct http_limits *l = &c->req.server->limits;
	int leaving = c->req.server->draining;

	if (c->handshake) {
		if (too_long(c, now, leaving ? l->fresh_ms : l->head_ms))
			conn_cut(c, 0);
		return;
	}
	switch (c->state) {
	case CONN_IDLE:
		if (c->served && !leaving)
			c->stamp = 0;
		else if (too_long(c, now,
				  leaving    ? l->fresh_ms
				  : c->asked ? l->idle_ms
					     : l->head_ms))
			conn_cut(c, 0);
		break;
	case CONN_HEAD:
		if (now - c->req.began_ms >= l->head_ms) {
			c->req.server->bad_requests++;
			reply_error(c, 408, "the head of the request did not come to an end");
			conn_schedule(c);
		}
		break;
	case CONN_BUSY:
		sweep_busy(c, now);
		break;
	case CONN_WS:
		if (conn_waiting(c) > 0 && send_stalled(c, now))
			conn_cut(c, 1);
		else
			ws_tick(c, now);
		break;
	case CONN_LINGER:
		if (too_long(c, now, LINGER_MS))
			conn_cut(c, 0);
		break;
	case CONN_DEAD:
		break;
	}
}
