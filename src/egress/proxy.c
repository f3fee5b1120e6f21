/* proxy.c - one connection of a box, from its request to its report.
 *
 *   ASKING ──head──► RESOLVING ──every address is allowed──► CONNECTING ──► PASSING ──► LEAVING
 *      │                 │                                        │            │
 *      └─── 4xx ─────────┴──────────────── 403, 502, 504 ─────────┴── cut ─────┴─► report, freed
 *
 * A name is resolved once, and the socket is connected to a checked address: a later change of the
 * name has no effect. CONNECT passes bytes in both directions; everything else is one request and
 * one response, parsed strictly and serialised again (http_message.h).
 *
 * Back-pressure: a side is read only while less than PASS_HIGH bytes of it wait here. (Not with
 * libevent's high watermark: a callback that leaves a full buffer as it is would be called again
 * and again.) */
#include "base/buf.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "egress/ip_class.h"
#include "egress/http_message.h"
#include "egress/way.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

enum {
	PASS_HIGH = 64 << 10,
	PASS_PIECE = 32 << 10, /* bytes of a body that are framed at once */
	LEAVE_MS = 2000,
	TRIES = 4, /* addresses */
	EARLY = 8, /* interim answers: 100, 103 */
};

enum stage { ASKING, RESOLVING, CONNECTING, PASSING, LEAVING };

struct proxy {
	struct egress_endpoint *way;
	struct proxy *next, **at;
	struct bufferevent *near, *far; /* the box, the host */
	struct timer clock;
	enum stage stage;
	struct message ask, answer;
	int has_ask, answered; /* the head of the answer was forwarded */
	int told;              /* reported */
	unsigned early;
	int near_eof, far_eof, far_broken, near_shut, far_shut;
	struct resolver_request *names;
	struct name_address to[TRIES];
	unsigned nto, tried;
	uint64_t active_ms;
	struct proxy_end end;
	char rule[RULE_TEXT], why[200];
};

const char *proxy_verdict_name(enum verdict v)
{
	static const char *const names[] = {
		[VERDICT_OK] = "ok",
		[VERDICT_DENIED] = "denied",
		[VERDICT_INTERNAL] = "internal",
		[VERDICT_BAD] = "bad",
		[VERDICT_UNRESOLVED] = "unresolved",
		[VERDICT_UNREACHABLE] = "unreachable",
		[VERDICT_TIMEOUT] = "timeout",
		[VERDICT_BUDGET] = "budget",
		[VERDICT_CUT] = "cut",
	};

	_Static_assert(ARRAY_LEN(names) == VERDICTS, "a verdict without a name");
	return names[v];
}

/* ---- the end ---- */

static void proxy_tell(struct proxy *p)
{
	if (p->told++)
		return;
	p->end.host = p->has_ask ? p->ask.host : "";
	p->end.port = p->has_ask ? p->ask.port : 0;
	p->end.rule = p->rule;
	p->end.why = p->why;
	egress_report(p->way, &p->end);
}

static void proxy_destroy(struct proxy *p)
{
	struct egress_endpoint *w = p->way;

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

/* An incomplete answer must not look complete: the connection is reset, not closed. */
static void proxy_cut(struct proxy *p, enum verdict v, const char *why)
{
	struct linger now = { .l_onoff = 1 };

	proxy_verdict(p, v, why);
	setsockopt(bufferevent_getfd(p->near), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	proxy_destroy(p);
}

void proxy_free(struct proxy *p)
{
	proxy_cut(p, VERDICT_CUT, "the egress of the box was closed");
}

static struct evbuffer *in_of(struct bufferevent *b)
{
	return bufferevent_get_input(b);
}

static struct evbuffer *out_of(struct bufferevent *b)
{
	return bufferevent_get_output(b);
}

/* Reported before the box sees the end: its program may exit then. */
static void last_word_is_out(struct proxy *p)
{
	proxy_tell(p);
	shutdown(bufferevent_getfd(p->near), SHUT_WR);
	timer_set(&p->clock, LEAVE_MS);
}

/* After the last bytes are sent, waits until the box closes, so that they arrive. */
static void proxy_leave(struct proxy *p)
{
	p->stage = LEAVING;
	resolver_cancel(p->names);
	p->names = NULL;
	if (p->far)
		bufferevent_free(p->far);
	p->far = NULL;
	evbuffer_drain(in_of(p->near), evbuffer_get_length(in_of(p->near)));
	bufferevent_enable(p->near, EV_READ | EV_WRITE);
	if (evbuffer_get_length(out_of(p->near)) == 0)
		last_word_is_out(p);
	else
		timer_set(&p->clock, p->way->egress->conf.limits.idle_ms);
}

static const char *proxy_reason(int status)
{
	return status == 400   ? "Bad Request"
	       : status == 403 ? "Forbidden"
	       : status == 408 ? "Request Timeout"
	       : status == 431 ? "Request Header Fields Too Large"
	       : status == 502 ? "Bad Gateway"
			       : "Gateway Timeout";
}

/* Only before a byte of another answer was sent to the box. */
__attribute__((format(printf, 4, 5))) static void refuse(struct proxy *p, int status,
							 enum verdict v, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	va_list ap;

	buf_puts(&text, "atoll: ");
	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	proxy_verdict(p, v, buf_str(&text) + 7);
	buf_putc(&text, '\n');
	evbuffer_add_printf(out_of(p->near),
			    "HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\n"
			    "content-length: %zu\r\nconnection: close\r\n\r\n",
			    status, proxy_reason(status), text.len);
	if (!p->has_ask || strcmp(p->ask.method, "HEAD") != 0)
		evbuffer_add(out_of(p->near), text.p, text.len);
	proxy_leave(p);
}

/* ---- bytes ---- */

static int over_budget(const struct proxy *p)
{
	const struct egress_limits *m = &p->way->egress->conf.limits;

	return (m->bytes_in && p->way->bytes_in > m->bytes_in) ||
	       (m->bytes_out && p->way->bytes_out > m->bytes_out);
}

static void proxy_count(struct proxy *p, int into_box, size_t n)
{
	p->active_ms = loop_now_ms();
	*(into_box ? &p->end.bytes_in : &p->end.bytes_out) += n;
	*(into_box ? &p->way->bytes_in : &p->way->bytes_out) += n;
}

static size_t proxy_room(struct bufferevent *to)
{
	size_t waits = evbuffer_get_length(out_of(to));

	return waits < PASS_HIGH ? PASS_HIGH - waits : 0;
}

static void pass_plain(struct proxy *p, struct bufferevent *from, struct bufferevent *to)
{
	size_t n = evbuffer_get_length(in_of(from)), most = proxy_room(to);

	n = n < most ? n : most;
	evbuffer_remove_buffer(in_of(from), out_of(to), n);
	if (n)
		proxy_count(p, to == p->near, n);
}

/* 0, or -1: it does not match its head. */
static int pass_body(struct proxy *p, struct message *m, struct bufferevent *from,
		     struct bufferevent *to, const char **why)
{
	while (!m->done && evbuffer_get_length(in_of(from)) && proxy_room(to)) {
		size_t n = evbuffer_get_contiguous_space(in_of(from));
		long used;

		n = n < PASS_PIECE ? n : PASS_PIECE;
		used = message_body(m, (const char *)evbuffer_pullup(in_of(from), (ev_ssize_t)n), n,
				    out_of(to), why);
		if (used < 0)
			return -1;
		evbuffer_drain(in_of(from), (size_t)used);
		proxy_count(p, to == p->near, (size_t)used);
		if (used == 0)
			break;
	}
	return 0;
}

/* ---- the answer ---- */

static void bad_answer(struct proxy *p, const char *why)
{
	if (p->answered)
		proxy_cut(p, VERDICT_BAD, why);
	else
		refuse(p, 502, VERDICT_BAD, "%s did not answer with HTTP: %s", p->ask.host, why);
}

/* 1: continue with the body, or with another head; 0: wait, or ended. */
static int take_answer(struct proxy *p)
{
	size_t len = evbuffer_get_length(in_of(p->far)), n;
	const char *bytes = (const char *)evbuffer_pullup(
			   in_of(p->far), (ev_ssize_t)(len < MESSAGE_HEAD ? len : MESSAGE_HEAD)),
		   *why;

	n = bytes ? message_head_end(bytes, len < MESSAGE_HEAD ? len : MESSAGE_HEAD) : 0;
	if (!n && len >= MESSAGE_HEAD) {
		bad_answer(p, "its head is larger than allowed");
		return 0;
	}
	if (!n)
		return 0;
	p->answer.no_body = strcmp(p->ask.method, "HEAD") == 0;
	if (message_response(&p->answer, bytes, n, &why) != 0) {
		bad_answer(p, why);
		return 0;
	}
	evbuffer_drain(in_of(p->far), n);
	proxy_count(p, 1, n);
	if (p->answer.status >= 200) {
		message_write_response(&p->answer, out_of(p->near), p->ask.http10);
		p->answered = 1;
		return 1;
	}
	message_fini(&p->answer);
	if (++p->early <= EARLY)
		return 1;
	bad_answer(p, "it does not come to the point");
	return 0;
}

/* 0: p has ended. */
static int pass_answer(struct proxy *p)
{
	const char *why = "";

	while (!p->answered)
		if (!take_answer(p)) {
			if (p->stage != PASSING || !p->far_eof)
				return p->stage == PASSING;
			bad_answer(p, "it closed the connection");
			return 0;
		}
	if (pass_body(p, &p->answer, p->far, p->near, &why) < 0) {
		proxy_cut(p, VERDICT_BAD, why);
		return 0;
	}
	if (!p->answer.done && p->far_eof && evbuffer_get_length(in_of(p->far)) == 0 &&
	    (p->far_broken || message_end(&p->answer) < 0)) {
		proxy_cut(p, VERDICT_CUT, "the host closed the connection before the end");
		return 0;
	}
	if (!p->answer.done)
		return 1;
	proxy_leave(p);
	return 0;
}

static int pass_request(struct proxy *p)
{
	const char *why = "";

	if (pass_body(p, &p->ask, p->near, p->far, &why) < 0) {
		proxy_cut(p, VERDICT_BAD, why);
		return 0;
	}
	if (!p->ask.done && p->near_eof && evbuffer_get_length(in_of(p->near)) == 0) {
		proxy_cut(p, VERDICT_CUT, "the box closed the connection in its request");
		return 0;
	}
	return 1;
}

/* ---- both ways ---- */

static void shut_when_sent(struct bufferevent *from, int eof, struct bufferevent *to, int *shut)
{
	if (!eof || *shut || evbuffer_get_length(in_of(from)) || evbuffer_get_length(out_of(to)))
		return;
	shutdown(bufferevent_getfd(to), SHUT_WR);
	*shut = 1;
}

/* 0: p was freed. */
static int pass_tunnel(struct proxy *p)
{
	pass_plain(p, p->near, p->far);
	pass_plain(p, p->far, p->near);
	shut_when_sent(p->near, p->near_eof, p->far, &p->far_shut);
	shut_when_sent(p->far, p->far_eof, p->near, &p->near_shut);
	if (!p->near_shut || !p->far_shut)
		return 1;
	proxy_destroy(p);
	return 0;
}

static void want_read(struct bufferevent *b, int want)
{
	if (want && evbuffer_get_length(in_of(b)) < PASS_HIGH)
		bufferevent_enable(b, EV_READ);
	else
		bufferevent_disable(b, EV_READ);
}

static void proxy_pass(struct proxy *p)
{
	if (over_budget(p)) {
		if (p->ask.connect || p->answered)
			proxy_cut(p, VERDICT_BUDGET,
				  "the box has used what it may send or receive");
		else
			refuse(p, 403, VERDICT_BUDGET,
			       "this box has used what it may send or receive (egress.bytes_in, "
			       "egress.bytes_out)");
		return;
	}
	if (p->ask.connect ? !pass_tunnel(p) : !pass_request(p) || !pass_answer(p))
		return;
	/* Bytes after a request are ignored; a disconnect of the box is noticed when writing. */
	want_read(p->near, !p->near_eof && (p->ask.connect || !p->ask.done));
	want_read(p->far, !p->far_eof);
}

/* ---- to the host ---- */

static void far_said(struct bufferevent *b, void *ctx);
static void far_happened(struct bufferevent *b, short what, void *ctx);

static void try_next(struct proxy *p)
{
	while (p->tried < p->nto) {
		const struct name_address *a = &p->to[p->tried++];

		if (p->far)
			bufferevent_free(p->far);
		p->far = bufferevent_socket_new(p->way->egress->loop->base, -1,
						BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
		if (!p->far)
			abort();
		bufferevent_setcb(p->far, far_said, far_said, far_happened, p);
		bufferevent_setwatermark(p->far, EV_WRITE, PASS_HIGH / 2, 0);
		if (bufferevent_socket_connect(p->far, (const struct sockaddr *)&a->to,
					       (int)a->len) == 0)
			return; /* an immediate failure is reported as an event, too */
	}
	refuse(p, 502, VERDICT_UNREACHABLE, "%s:%u cannot be reached", p->ask.host, p->ask.port);
}

static void proxy_connected(struct proxy *p)
{
	int on = 1;

	setsockopt(bufferevent_getfd(p->far), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	p->stage = PASSING;
	p->active_ms = loop_now_ms();
	timer_set(&p->clock, p->way->egress->conf.limits.idle_ms);
	if (p->ask.connect) {
		evbuffer_add_printf(out_of(p->near), "HTTP/1.1 200 Connection established\r\n\r\n");
	} else {
		size_t before = evbuffer_get_length(out_of(p->far));

		if (p->ask.continues)
			evbuffer_add_printf(out_of(p->near), "HTTP/1.1 100 Continue\r\n\r\n");
		message_write_request(&p->ask, out_of(p->far));
		proxy_count(p, 0, evbuffer_get_length(out_of(p->far)) - before);
	}
	bufferevent_enable(p->far, EV_READ | EV_WRITE);
	proxy_pass(p);
}

static void far_said(struct bufferevent *b, void *ctx)
{
	struct proxy *p = ctx;

	if (b == p->far && p->stage == PASSING)
		proxy_pass(p);
}

static void far_happened(struct bufferevent *b, short what, void *ctx)
{
	struct proxy *p = ctx;

	if (b != p->far)
		return;
	if (p->stage == CONNECTING) {
		if (what & BEV_EVENT_CONNECTED)
			proxy_connected(p);
		else
			try_next(p);
		return;
	}
	if (p->stage != PASSING)
		return;
	p->far_eof = 1;
	p->far_broken = !!(what & BEV_EVENT_ERROR);
	if (what & BEV_EVENT_ERROR && p->ask.connect)
		proxy_cut(p, VERDICT_CUT, "the host closed the connection");
	else
		proxy_pass(p);
}

/* ---- may it? ---- */

/* Every address must be allowed: one forbidden address makes the name suspicious. */
static int check_addresses(struct proxy *p, const struct name_address *v, unsigned n, int internal)
{
	for (unsigned i = 0; i < n; i++) {
		const struct sockaddr *to = (const struct sockaddr *)&v[i].to;
		const char *why;
		enum ip_class is = ip_class_of(to, &why);

		if (is == IP_PUBLIC && ip_is_ours(to, v[i].len)) {
			is = IP_INTERNAL;
			why = "this machine's own";
		}
		if (is == IP_PUBLIC || (is == IP_INTERNAL && internal))
			continue;
		refuse(p, 403, VERDICT_INTERNAL, "%s has an address that is not out there (%s). %s",
		       p->ask.host, why,
		       is == IP_INTERNAL
			       ? "If it should be reached all the same, the operator names "
				 "it in egress.allow_internal."
			       : "Such addresses are never reached.");
		return -1;
	}
	return 0;
}

static const struct allow_rule *operators_rule(const struct proxy *p, int internal)
{
	const struct egress_conf *c = &p->way->egress->conf;

	for (unsigned i = 0; i < c->nrules; i++)
		if (c->rules[i].internal >= internal &&
		    rule_fits(&c->rules[i], p->ask.host, p->ask.port))
			return &c->rules[i];
	return NULL;
}

static void proxy_resolved(void *ctx, const struct name_address *v, unsigned n, const char *why)
{
	struct proxy *p = ctx;

	p->names = NULL;
	if (n == 0) {
		refuse(p, 502, VERDICT_UNRESOLVED, "%s has no address: %s", p->ask.host, why);
		return;
	}
	if (check_addresses(p, v, n, operators_rule(p, 1) != NULL) < 0)
		return;
	p->nto = n < TRIES ? n : TRIES;
	memcpy(p->to, v, p->nto * sizeof(*v));
	p->stage = CONNECTING;
	try_next(p);
}

static void proxy_judge(struct proxy *p)
{
	struct egress_endpoint *w = p->way;
	const struct allow_rule *r = rule_find(w->rules, w->nrules, p->ask.host, p->ask.port);

	if (!r) {
		refuse(p, 403, VERDICT_DENIED,
		       "this box may not reach %s:%u. It is made with the hosts that it may: "
		       "\"network\": {\"allow\": [\"%s:%u\"]}",
		       p->ask.host, p->ask.port, p->ask.host, p->ask.port);
		return;
	}
	rule_text(r, p->rule);
	if (!operators_rule(p, 0)) {
		refuse(p, 403, VERDICT_DENIED,
		       "the operator of this machine does not permit %s:%u; it would be in egress.allow",
		       p->ask.host, p->ask.port);
		return;
	}
	if (over_budget(p)) {
		refuse(p, 403, VERDICT_BUDGET,
		       "this box has used what it may send or receive (egress.bytes_in, "
		       "egress.bytes_out)");
		return;
	}
	p->stage = RESOLVING;
	timer_set(&p->clock, w->egress->conf.limits.connect_ms);
	p->names = resolver_request(&w->egress->names, w->egress->loop, p->ask.host, p->ask.port,
				    proxy_resolved, p);
}

/* ---- from the box ---- */

static void read_request(struct proxy *p)
{
	size_t len = evbuffer_get_length(in_of(p->near)), n;
	size_t most = len < MESSAGE_HEAD ? len : MESSAGE_HEAD;
	const char *bytes = (const char *)evbuffer_pullup(in_of(p->near), (ev_ssize_t)most), *why;
	int status;

	n = bytes ? message_head_end(bytes, most) : 0;
	if (!n && len >= MESSAGE_HEAD) {
		refuse(p, 431, VERDICT_BAD, "the head of the request is larger than %d bytes",
		       MESSAGE_HEAD);
		return;
	}
	if (!n)
		return;
	status = message_request(&p->ask, bytes, n, &why);
	if (status) {
		refuse(p, status, VERDICT_BAD, "%s", why);
		return;
	}
	p->has_ask = 1;
	evbuffer_drain(in_of(p->near), n);
	proxy_judge(p);
}

static void near_said(struct bufferevent *b, void *ctx)
{
	struct proxy *p = ctx;

	if (p->stage == ASKING)
		read_request(p);
	else if (p->stage == PASSING)
		proxy_pass(p);
	else if (p->stage == LEAVING)
		evbuffer_drain(in_of(b), evbuffer_get_length(in_of(b)));
	else
		want_read(b, 1); /* limit for bytes after the request */
}

static void near_wrote(struct bufferevent *b, void *ctx)
{
	struct proxy *p = ctx;

	if (p->stage == PASSING)
		proxy_pass(p);
	else if (p->stage == LEAVING && evbuffer_get_length(out_of(b)) == 0)
		last_word_is_out(p);
}

static void near_happened(struct bufferevent *b, short what, void *ctx)
{
	struct proxy *p = ctx;

	(void)b;
	p->near_eof = 1;
	if (p->stage == LEAVING) {
		if (what & BEV_EVENT_ERROR || evbuffer_get_length(out_of(p->near)) == 0)
			proxy_destroy(p);
	} else if (what & BEV_EVENT_ERROR || p->stage == ASKING) {
		proxy_cut(p, VERDICT_CUT, "the box closed the connection");
	} else if (p->stage == PASSING) { /* it may have half-closed after the request */
		proxy_pass(p);
	}
}

static void clock_due(struct timer *t)
{
	struct proxy *p = loop_owner(t, struct proxy, clock);
	uint64_t idle = p->way->egress->conf.limits.idle_ms, since = loop_now_ms() - p->active_ms;

	switch (p->stage) {
	case ASKING:
		refuse(p, 408, VERDICT_TIMEOUT, "the request took too long");
		break;
	case RESOLVING:
	case CONNECTING:
		refuse(p, 504, VERDICT_TIMEOUT, "%s:%u did not answer in time", p->ask.host,
		       p->ask.port);
		break;
	case PASSING:
		if (since < idle)
			timer_set(t, idle - since);
		else if (p->ask.connect || p->answered)
			proxy_cut(p, VERDICT_TIMEOUT, "no byte either way for too long");
		else
			refuse(p, 504, VERDICT_TIMEOUT, "%s did not answer in time", p->ask.host);
		break;
	case LEAVING:
		if (evbuffer_get_length(out_of(p->near)))
			proxy_cut(p, VERDICT_TIMEOUT, "the box does not read");
		else
			proxy_destroy(p);
	}
}

void proxy_new(struct egress_endpoint *w, int take_fd)
{
	struct proxy *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->way = w;
	p->end.began_ms = p->active_ms = loop_now_ms();
	p->end.began_ns = clock_ns(CLOCK_REALTIME);
	p->next = w->proxies;
	p->at = &w->proxies;
	if (p->next)
		p->next->at = &p->next;
	w->proxies = p;
	w->nproxies++;
	w->egress->nproxies++;
	timer_init(&p->clock, w->egress->loop, clock_due);
	timer_set(&p->clock, w->egress->conf.limits.head_ms);
	p->near = bufferevent_socket_new(w->egress->loop->base, take_fd,
					 BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
	if (!p->near)
		abort();
	bufferevent_setcb(p->near, near_said, near_wrote, near_happened, p);
	bufferevent_setwatermark(p->near, EV_WRITE, PASS_HIGH / 2, 0);
	bufferevent_enable(p->near, EV_READ | EV_WRITE);
}
