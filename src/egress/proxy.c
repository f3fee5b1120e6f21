/* proxy.c - see proxy.h.
 *
 * Back-pressure: a side is read only while less than PROXY_HIGH bytes of it wait here. (Not with
 * libevent's high watermark: a callback that leaves a full buffer as it is would be called again
 * and again.) */
#include "egress/proxy.h"
#include "egress/approval.h"
#include "egress/spent.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/cleanup.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

enum { LEAVE_MS = 2000 };

/* ---- the end ---- */

const char *proxy_hint(const struct proxy *p)
{
	int asked = p->judged.verdict == VERDICT_ASK && p->end.verdict == VERDICT_DENIED;

	return asked || p->end.verdict == p->judged.verdict ? p->judged.hint : "";
}

/* If this process dies, the kernel closes its sockets: on, the box sees a reset and not the regular
 * end of a connection. */
static void proxy_reset_on_death(struct proxy *p, int on)
{
	struct linger l = { .l_onoff = on };

	setsockopt(bufferevent_getfd(p->near), SOL_SOCKET, SO_LINGER, &l, sizeof(l));
}

static void proxy_tell(struct proxy *p)
{
	if (p->told++)
		return;
	p->end.host = p->host;
	p->end.port = p->port;
	p->end.rule = p->judged.rule;
	p->end.why = p->why;
	p->end.hint = proxy_hint(p);
	egress_report(p->way, &p->end);
}

static void proxy_destroy(struct proxy *p)
{
	struct egress_endpoint *w = p->way;

	approval_leave(p);
	proxy_tell(p);
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	w->nproxies--;
	w->egress->nproxies--;
	resolver_cancel(p->names);
	if (p->near)
		bufferevent_free(p->near);
	if (p->far)
		bufferevent_free(p->far);
	timer_fini(&p->clock);
	message_fini(&p->ask);
	message_fini(&p->answer);
	free(p);
	proxy_gone(w);
}

static void proxy_verdict(struct proxy *p, enum verdict v, const char *why)
{
	if (p->end.verdict != VERDICT_OK)
		return; /* the first error is the cause of the others */
	p->end.verdict = v;
	snprintf(p->why, sizeof(p->why), "%s", why);
}

void proxy_cut(struct proxy *p, enum verdict v, const char *why)
{
	proxy_verdict(p, v, why);
	proxy_reset_on_death(p, 1);
	proxy_destroy(p);
}

void proxy_free(struct proxy *p)
{
	proxy_cut(p, VERDICT_CUT, "the egress of the box was closed");
}

/* Reported before the box sees the end: its program may exit then. */
static void proxy_close_near(struct proxy *p)
{
	proxy_tell(p);
	if (p->tls)
		intercept_close_near(p);
	shutdown(bufferevent_getfd(p->near), SHUT_WR);
	timer_set(&p->clock, LEAVE_MS);
}

static void proxy_leave_far(struct proxy *p)
{
	approval_leave(p);
	resolver_cancel(p->names);
	p->names = NULL;
	p->link = 0;
	if (p->far)
		bufferevent_free(p->far);
	p->far = NULL;
}

/* After the last bytes are sent, waits until the box closes, so that they arrive. */
void proxy_leave(struct proxy *p)
{
	p->stage = PROXY_LEAVING;
	proxy_reset_on_death(p, 0);
	proxy_leave_far(p);
	evbuffer_drain(proxy_in(p->near), evbuffer_get_length(proxy_in(p->near)));
	bufferevent_enable(p->near, EV_READ | EV_WRITE);
	if (evbuffer_get_length(proxy_out(p->near)) == 0)
		proxy_close_near(p);
	else
		timer_set(&p->clock, p->way->egress->conf.limits.idle_ms);
}

/* The form of the refusal depends on the first bytes of the box, which have not arrived yet. */
static void proxy_refuse_later(struct proxy *p, int status, enum verdict v, const char *why)
{
	p->late = status;
	if (p->judged.verdict != v)
		p->judged.hint[0] = 0;
	p->judged.verdict = v;
	snprintf(p->judged.why, sizeof(p->judged.why), "%s", why);
	proxy_leave_far(p);
	p->stage = PROXY_ASKING;
	timer_set(&p->clock, PROXY_REFUSED_MS);
}

void proxy_refuse(struct proxy *p, int status, enum verdict v, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	va_list ap;
	int is;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	proxy_verdict(p, v, buf_str(&text));
	is = p->protocol->refuse(p, status, buf_str(&text));
	if (is < 0)
		proxy_cut(p, v, buf_str(&text));
	else if (is > 0)
		proxy_refuse_later(p, status, v, buf_str(&text));
	else
		proxy_leave(p);
}

void proxy_refuse_judged(struct proxy *p)
{
	const struct judgement *j = &p->judged;

	proxy_refuse(p, p->late ? p->late : 403, j->verdict, "%s", j->why);
}

/* ---- bytes ---- */

void proxy_count(struct proxy *p, int into_box, size_t n)
{
	p->active_ms = loop_now_ms();
	*(into_box ? &p->end.bytes_in : &p->end.bytes_out) += n;
	egress_count(p->way, into_box, n);
	spent_count(p->way, p->budgets, into_box, n);
}

size_t proxy_room(struct bufferevent *to)
{
	size_t waits = evbuffer_get_length(proxy_out(to));

	return waits < PROXY_HIGH ? PROXY_HIGH - waits : 0;
}

static void proxy_pass_plain(struct proxy *p, struct bufferevent *from, struct bufferevent *to)
{
	size_t n = evbuffer_get_length(proxy_in(from)), most = proxy_room(to);

	n = n < most ? n : most;
	evbuffer_remove_buffer(proxy_in(from), proxy_out(to), n);
	if (n)
		proxy_count(p, to == p->near, n);
}

static void proxy_shut_when_sent(struct bufferevent *from, int eof, struct bufferevent *to,
				 int *shut)
{
	if (!eof || *shut || evbuffer_get_length(proxy_in(from)) ||
	    evbuffer_get_length(proxy_out(to)))
		return;
	shutdown(bufferevent_getfd(to), SHUT_WR);
	*shut = 1;
}

int proxy_pass_in(struct proxy *p)
{
	p->answered |= evbuffer_get_length(proxy_in(p->far)) > 0;
	proxy_pass_plain(p, p->far, p->near);
	proxy_shut_when_sent(p->far, p->far_eof, p->near, &p->near_shut);
	if (!p->near_shut || !p->near_eof || evbuffer_get_length(proxy_in(p->near)))
		return 1;
	proxy_destroy(p);
	return 0;
}

int proxy_pass_tunnel(struct proxy *p)
{
	proxy_pass_plain(p, p->near, p->far);
	proxy_pass_plain(p, p->far, p->near);
	proxy_shut_when_sent(p->near, p->near_eof, p->far, &p->far_shut);
	proxy_shut_when_sent(p->far, p->far_eof, p->near, &p->near_shut);
	if (!p->near_shut || !p->far_shut)
		return 1;
	proxy_reset_on_death(p, 0); /* or the last bytes would be dropped */
	proxy_destroy(p);
	return 0;
}

static void proxy_want_read(struct bufferevent *b, int want)
{
	if (want && evbuffer_get_length(proxy_in(b)) < PROXY_HIGH)
		bufferevent_enable(b, EV_READ);
	else
		bufferevent_disable(b, EV_READ);
}

static int proxy_can_refuse(const struct proxy *p)
{
	return !p->tunnel && p->protocol->can_refuse(p);
}

/* libevent reads 4 KiB at once: reads more of what is there. An end or an error is left to libevent.
 * Not with a limit of bandwidth, which libevent enforces, nor within TLS. */
static void proxy_fill(struct proxy *p, struct bufferevent *b)
{
	struct evbuffer *in = proxy_in(b);
	size_t have = evbuffer_get_length(in);
	struct evbuffer_iovec part;
	ssize_t n;

	if (p->tls || p->way->rate || have == 0 || have >= PROXY_HIGH)
		return;
	evbuffer_unfreeze(in, 0);
	if (evbuffer_reserve_space(in, (ev_ssize_t)(PROXY_HIGH - have), &part, 1) == 1) {
		if (part.iov_len > PROXY_HIGH - have)
			part.iov_len = PROXY_HIGH - have;
		n = recv(bufferevent_getfd(b), part.iov_base, part.iov_len, MSG_DONTWAIT);
		part.iov_len = n > 0 ? (size_t)n : 0;
		evbuffer_commit_space(in, &part, 1);
	}
	evbuffer_freeze(in, 0);
}

static void proxy_pass(struct proxy *p)
{
	struct judgement spent;

	proxy_fill(p, p->far);
	if (p->tunnel)
		proxy_fill(p, p->near);
	if (judge_budget(p->way, &spent) != VERDICT_OK ||
	    spent_judge(p->way, p->budgets, 0, &spent) != VERDICT_OK) {
		if (proxy_can_refuse(p))
			proxy_refuse(p, 403, spent.verdict, "%s", spent.why);
		else
			proxy_cut(p, spent.verdict, spent.why);
		return;
	}
	if (p->tunnel ? !proxy_pass_tunnel(p) : !p->protocol->pass(p))
		return;
	proxy_want_read(p->near, !p->near_eof && (p->tunnel || p->protocol->reads_near(p)));
	proxy_want_read(p->far, !p->far_eof);
}

/* ---- to the host ---- */

static void proxy_far_readable(struct bufferevent *b, void *ctx);
static void proxy_far_event(struct bufferevent *b, short what, void *ctx);

static void proxy_try_next(struct proxy *p)
{
	while (p->tried < p->nto) {
		const struct name_address *a = &p->to[p->tried++];

		if (p->far)
			bufferevent_free(p->far);
		p->far = p->tls ? intercept_far(p)
				: bufferevent_socket_new(p->way->egress->loop->base, -1,
							 BEV_OPT_CLOSE_ON_FREE |
								 BEV_OPT_DEFER_CALLBACKS);
		if (!p->far)
			abort();
		bufferevent_setcb(p->far, proxy_far_readable, proxy_far_readable, proxy_far_event,
				  p);
		bufferevent_setwatermark(p->far, EV_WRITE, PROXY_HIGH / 2, 0);
		if (bufferevent_socket_connect(p->far, (const struct sockaddr *)&a->to,
					       (int)a->len) == 0)
			return; /* an immediate failure is reported as an event, too */
	}
	proxy_refuse(p, 502, VERDICT_UNREACHABLE, "%s:%u cannot be reached", p->host, p->port);
}

static void proxy_connected(struct proxy *p)
{
	int on = 1;

	setsockopt(bufferevent_getfd(p->far), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	p->stage = PROXY_PASSING;
	p->active_ms = loop_now_ms();
	timer_set(&p->clock, p->way->egress->conf.limits.idle_ms);
	p->protocol->connected(p);
	bufferevent_enable(p->far, EV_READ | EV_WRITE);
	proxy_pass(p);
}

static void proxy_far_readable(struct bufferevent *b, void *ctx)
{
	struct proxy *p = ctx;

	if (b == p->far && p->stage == PROXY_PASSING)
		proxy_pass(p);
}

static void proxy_far_event(struct bufferevent *b, short what, void *ctx)
{
	struct proxy *p = ctx;

	if (b != p->far)
		return;
	if (p->stage == PROXY_CONNECTING) {
		const char *distrusts = p->tls ? intercept_distrusts(p) : NULL;

		if (what & BEV_EVENT_CONNECTED)
			proxy_connected(p);
		else if (distrusts)
			proxy_refuse(
				p, 502, VERDICT_UNREACHABLE,
				"the certificate of %s is not accepted (%s); a certificate of its "
				"issuer would be in egress.ca",
				p->host, distrusts);
		else
			proxy_try_next(p);
		return;
	}
	if (p->stage != PROXY_PASSING)
		return;
	p->far_eof = 1;
	p->far_broken = !!(what & BEV_EVENT_ERROR);
	if (what & BEV_EVENT_ERROR && (p->tunnel || p->protocol == &proxy_tunnel))
		proxy_cut(p, VERDICT_CUT, "the host closed the connection");
	else
		proxy_pass(p);
}

/* ---- to a linked box ---- */

/* A connection inside a box: it is in another network than this process. */
static int proxy_check_linked(int fd)
{
	auto_fd int own = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint64_t here = 0, there = 0;
	int type = 0;
	socklen_t n = sizeof(type), n_here = sizeof(here), n_there = sizeof(there);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
	       getsockopt(own, SOL_SOCKET, SO_NETNS_COOKIE, &here, &n_here) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &there, &n_there) == 0 && here != there;
}

static void proxy_to_link(struct proxy *p)
{
	p->stage = PROXY_CONNECTING;
	timer_set(&p->clock, p->way->egress->conf.limits.connect_ms);
	if (egress_ask_link(p->way, p->host, p->port, &p->link) < 0)
		proxy_refuse(p, 502, VERDICT_UNREACHABLE,
			     "%s:%u is in a box, and the server that knows it is starting", p->host,
			     p->port);
}

void proxy_linked(struct proxy *p, int take_fd, const char *why)
{
	auto_fd int fd = take_fd;

	p->link = 0;
	if (fd < 0 || !proxy_check_linked(fd)) {
		proxy_refuse(p, 502, VERDICT_UNREACHABLE, "%s",
			     fd < 0 ? why : "the server sent no connection of a box");
		return;
	}
	evutil_make_socket_nonblocking(fd);
	p->far = bufferevent_socket_new(p->way->egress->loop->base, steal_fd(&fd),
					BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!p->far)
		abort();
	bufferevent_setcb(p->far, proxy_far_readable, proxy_far_readable, proxy_far_event, p);
	bufferevent_setwatermark(p->far, EV_WRITE, PROXY_HIGH / 2, 0);
	proxy_connected(p);
}

static struct judge_request proxy_request(const struct proxy *p)
{
	return (struct judge_request){ .way = p->way,
				       .host = p->host,
				       .port = p->port,
				       .method = p->method,
				       .path = p->path,
				       .approved = p->approved };
}

static void proxy_resolved(void *ctx, const struct name_address *v, unsigned n, const char *why)
{
	struct proxy *p = ctx;
	struct judge_request r = proxy_request(p);

	p->names = NULL;
	if (n == 0) {
		proxy_refuse(p, 502, VERDICT_UNRESOLVED, "%s has no address: %s", p->host, why);
		return;
	}
	if (judge_addresses(&r, v, n, &p->judged) != VERDICT_OK) {
		proxy_refuse_judged(p);
		return;
	}
	p->nto = n < PROXY_ADDRESSES ? n : PROXY_ADDRESSES;
	memcpy(p->to, v, p->nto * sizeof(*v));
	p->stage = PROXY_CONNECTING;
	proxy_try_next(p);
}

static void proxy_resolve(struct proxy *p)
{
	struct egress *x = p->way->egress;

	if (judge_is_link(p->way, p->host)) {
		proxy_to_link(p);
		return;
	}
	if (!net_is_literal(p->host)) {
		struct judgement spent;

		if (judge_queries(p->way, &spent) != VERDICT_OK) {
			proxy_refuse(p, 403, spent.verdict, "%s", spent.why);
			return;
		}
		egress_count_query(p->way);
	}
	p->stage = PROXY_RESOLVING;
	timer_set(&p->clock, x->conf.limits.connect_ms);
	p->names = resolver_request(&x->names, x->loop, p->host, p->port, proxy_resolved, p);
}

static void proxy_wait(struct proxy *p)
{
	p->stage = PROXY_WAITING;
	if (approval_wait(p) < 0) {
		proxy_refuse(p, 403, VERDICT_DENIED,
			     "%s:%u needs an approval, and %d other destinations of this box wait "
			     "for one already",
			     p->host, p->port, APPROVAL_REQUESTS);
		return;
	}
	timer_set(&p->clock, p->ask_until_ms > loop_now_ms() ? p->ask_until_ms - loop_now_ms() : 0);
}

enum verdict proxy_check(struct proxy *p)
{
	struct judge_request r = proxy_request(p);

	if (!judge_is_link(p->way, p->host))
		return judge_host(&r, &p->judged);
	snprintf(p->judged.rule, sizeof(p->judged.rule), "link %s", p->host);
	return judge_budget(p->way, &p->judged);
}

static void proxy_judge(struct proxy *p)
{
	switch (proxy_check(p)) {
	case VERDICT_OK:
		p->budgets = spent_find(p->way, p->host, p->port);
		spent_connect(p->way, p->budgets);
		proxy_resolve(p);
		break;
	case VERDICT_ASK:
		if (p->stage != PROXY_WAITING)
			proxy_wait(p);
		break;
	default:
		proxy_refuse_judged(p);
	}
}

void proxy_to(struct proxy *p, const char *host, uint16_t port, const char *method,
	      const char *path)
{
	if (host != p->host)
		snprintf(p->host, sizeof(p->host), "%s", host);
	p->port = port;
	p->method = method;
	p->path = path;
	proxy_judge(p);
}

void proxy_decided(struct proxy *p, int allow)
{
	approval_leave(p);
	if (!allow) {
		proxy_refuse(p, 403, VERDICT_DENIED,
			     "%s:%u was refused when approval was asked for", p->host, p->port);
		return;
	}
	p->approved = 1;
	proxy_judge(p); /* the other rules may have changed since */
}

void proxy_judge_again(struct proxy *p)
{
	struct judge_request r = proxy_request(p);
	enum verdict v;

	if (p->stage == PROXY_ASKING || p->stage == PROXY_LEAVING || judge_is_link(p->way, p->host))
		return;
	r.connected = p->stage != PROXY_WAITING;
	v = judge_host(&r, &p->judged);
	if (p->stage == PROXY_WAITING) {
		if (v == VERDICT_ASK)
			return;
		approval_leave(p);
		proxy_judge(p);
		return;
	}
	if (v == VERDICT_OK)
		v = judge_addresses(&r, p->to, p->nto, &p->judged);
	p->budgets = spent_find(p->way, p->host, p->port);
	if (v != VERDICT_OK)
		proxy_cut(p, v == VERDICT_ASK ? VERDICT_DENIED : v,
			  "the rules have changed and no longer permit this destination");
}

/* ---- from the box ---- */

static void proxy_near_readable(struct bufferevent *b, void *ctx)
{
	struct proxy *p = ctx;

	if (p->stage == PROXY_ASKING)
		p->protocol->ask(p);
	else if (p->stage == PROXY_PASSING)
		proxy_pass(p);
	else if (p->stage == PROXY_LEAVING)
		evbuffer_drain(proxy_in(b), evbuffer_get_length(proxy_in(b)));
	else
		proxy_want_read(b, 1); /* limit for bytes after the request */
}

static void proxy_near_written(struct bufferevent *b, void *ctx)
{
	struct proxy *p = ctx;

	if (p->stage == PROXY_PASSING)
		proxy_pass(p);
	else if (p->stage == PROXY_LEAVING && evbuffer_get_length(proxy_out(b)) == 0)
		proxy_close_near(p);
}

static void proxy_near_event(struct bufferevent *b, short what, void *ctx)
{
	struct proxy *p = ctx;

	(void)b;
	if (what & BEV_EVENT_CONNECTED) /* the handshake of the box is done */
		return;
	p->near_eof = 1;
	if (p->stage == PROXY_LEAVING) {
		if (what & BEV_EVENT_ERROR || evbuffer_get_length(proxy_out(p->near)) == 0)
			proxy_destroy(p);
	} else if (p->stage == PROXY_ASKING && p->judged.verdict != VERDICT_OK) {
		proxy_refuse_judged(p);
	} else if (what & BEV_EVENT_ERROR || p->stage == PROXY_ASKING) {
		proxy_cut(
			p, VERDICT_CUT,
			p->tls ? "the box has ended TLS; its program may not trust the certificates "
				 "in SSL_CERT_FILE"
			       : "the box closed the connection");
	} else if (p->stage == PROXY_PASSING) { /* it may have half-closed after the request */
		proxy_pass(p);
	}
}

static void proxy_clock_due(struct timer *t)
{
	struct proxy *p = loop_owner(t, struct proxy, clock);
	uint64_t idle = p->way->egress->conf.limits.idle_ms, since = loop_now_ms() - p->active_ms;

	switch (p->stage) {
	case PROXY_ASKING:
		if (p->judged.verdict != VERDICT_OK)
			proxy_refuse_judged(p);
		else
			proxy_refuse(p, 408, VERDICT_TIMEOUT, "the request took too long");
		break;
	case PROXY_WAITING:
		proxy_refuse(p, 403, VERDICT_DENIED,
			     "%s:%u needs an approval, and none was given within %u s", p->host,
			     p->port, p->way->egress->conf.limits.ask_ms / 1000);
		break;
	case PROXY_RESOLVING:
	case PROXY_CONNECTING:
		proxy_refuse(p, 504, VERDICT_TIMEOUT, "%s:%u did not answer in time", p->host,
			     p->port);
		break;
	case PROXY_PASSING:
		if (since < idle)
			timer_set(t, idle - since);
		else if (proxy_can_refuse(p))
			proxy_refuse(p, 504, VERDICT_TIMEOUT, "%s did not answer in time", p->host);
		else
			proxy_cut(p, VERDICT_TIMEOUT, "no byte either way for too long");
		break;
	case PROXY_LEAVING:
		if (evbuffer_get_length(proxy_out(p->near)))
			proxy_cut(p, VERDICT_TIMEOUT, "the box does not read");
		else
			proxy_destroy(p);
	}
}

void proxy_watch_near(struct proxy *p)
{
	bufferevent_setcb(p->near, proxy_near_readable, proxy_near_written, proxy_near_event, p);
	bufferevent_setwatermark(p->near, EV_WRITE, PROXY_HIGH / 2, 0);
	if (p->way->rate)
		bufferevent_add_to_rate_limit_group(p->near, p->way->rate);
	bufferevent_enable(p->near, EV_READ | EV_WRITE);
}

struct proxy *proxy_new(struct egress_endpoint *w, int take_fd,
			const struct proxy_protocol *protocol)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->way = w;
	p->protocol = protocol;
	p->end.began_ms = p->active_ms = loop_now_ms();
	p->end.began_ns = clock_ns(CLOCK_REALTIME);
	p->next = w->proxies;
	p->at = &w->proxies;
	if (p->next)
		p->next->at = &p->next;
	w->proxies = p;
	w->nproxies++;
	w->egress->nproxies++;
	if (!timer_pending(&w->egress->totals))
		timer_set(&w->egress->totals, EGRESS_TOTALS_MS);
	timer_init(&p->clock, w->egress->loop, proxy_clock_due);
	timer_set(&p->clock, w->egress->conf.limits.head_ms);
	p->near = bufferevent_socket_new(w->egress->loop->base, take_fd,
					 BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!p->near)
		abort();
	proxy_reset_on_death(p, 1);
	proxy_watch_near(p);
	return p;
}
