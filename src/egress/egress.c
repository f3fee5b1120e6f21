/* egress.c - see egress.h. */
#include "egress/egress.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "egress/approval.h"
#include "egress/injection.h"
#include "egress/proxy.h"
#include "egress/spent.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum {
	AGAIN_MS = 100,
	ACCEPTS_A_TURN = 16,
	HELD_SECONDS = 2,
	TEXT = 300,
	TOTALS_MS = 1000,
	RATE_TICK_MS = 50
};

struct egress_link {
	struct egress_link *next;
	struct egress *egress;
	struct watch watch;
	int fd;
};

struct egress_frame {
	struct egress_frame *next;
	size_t len, tail_len;
	char bytes[]; /* the frame, then its tail */
};

static void *egress_must(void *p)
{
	if (!p)
		abort();
	return p;
}

/* ---- frames for the server ---- */

static void drop_frame(struct egress *x)
{
	struct egress_frame *r = x->first;

	x->first = r->next;
	if (!x->first)
		x->last = NULL;
	x->nframes--;
	free(r);
}

/* To the newest server. Frames wait while its socket is full. */
static void send_frames(struct egress *x)
{
	struct egress_link *l = x->links;
	struct err e;

	while (l && x->first) {
		struct egress_frame *r = x->first;

		if (sock_send(l->fd, (const struct frame *)r->bytes, r->len, r->bytes + r->len,
			      r->tail_len, NULL, 0, &e) < 0)
			break; /* full, or closed: the end of file is read soon */
		drop_frame(x);
	}
	if (l)
		watch_want(&l->watch, LOOP_READ | (x->first ? LOOP_WRITE : 0));
}

void egress_send(struct egress *x, const void *body, size_t len, const char *tail, size_t tail_len)
{
	struct egress_frame *r = egress_must(calloc(1, sizeof(*r) + len + tail_len));

	r->len = len;
	r->tail_len = tail_len;
	memcpy(r->bytes, body, len);
	memcpy(r->bytes + len, tail, tail_len);
	if (x->last)
		x->last->next = r;
	else
		x->first = r;
	x->last = r;
	if (++x->nframes > EGRESS_FRAMES) {
		drop_frame(x);
		x->lost++;
	}
	send_frames(x);
}

static size_t add_text(char *out, size_t at, const char *text, size_t most)
{
	size_t n = strnlen(text ? text : "", most);

	memcpy(out + at, text ? text : "", n);
	out[at + n] = 0;
	return at + n + 1;
}

void egress_report(struct egress_endpoint *w, const struct proxy_end *end)
{
	struct wire_egress_report body = { .head = sock_head(WIRE_EGRESS_REPORT, 0),
					   .began_ns = end->began_ns,
					   .bytes_in = end->bytes_in,
					   .bytes_out = end->bytes_out,
					   .total_in = w->bytes_in,
					   .total_out = w->bytes_out,
					   .ms = (uint32_t)(loop_now_ms() - end->began_ms),
					   .port = end->port };
	char tail[RULE_HOST + RULE_TEXT + 32 + 2 * TEXT + 8];
	size_t n;

	memcpy(body.id, w->id, sizeof(body.id));
	n = add_text(tail, 0, end->host, RULE_HOST - 1);
	n = add_text(tail, n, end->rule, RULE_TEXT - 1);
	n = add_text(tail, n, judge_verdict_name(end->verdict), 32);
	n = add_text(tail, n, end->why, TEXT);
	n = add_text(tail, n, end->hint, TEXT);
	w->reported_in = w->bytes_in;
	w->reported_out = w->bytes_out;
	egress_send(w->egress, &body, sizeof(body), tail, n);
}

/* ---- totals of bytes ---- */

static struct egress_endpoint **egress_find(struct egress *x, const char *id)
{
	struct egress_endpoint **at = &x->ways;

	while (*at && strncmp((*at)->id, id, WIRE_ID) != 0)
		at = &(*at)->next;
	return at;
}

/* The slot of a box in the array of the supervisor: what earlier processes have counted. */
static struct egress_used *used_find(struct egress *x, const char *id)
{
	struct egress_used *all = x->conf.used, *vacant = NULL;

	for (unsigned i = 0; all && i < EGRESS_WAYS; i++) {
		if (strncmp(all[i].id, id, WIRE_ID) == 0)
			return &all[i];
		if (!vacant && !all[i].id[0])
			vacant = &all[i];
	}
	/* Slots of boxes that ended while no egress process ran. */
	for (unsigned i = 0; all && !vacant && i < EGRESS_WAYS; i++)
		if (!*egress_find(x, all[i].id))
			vacant = &all[i];
	if (vacant)
		*vacant = (struct egress_used){ 0 };
	return vacant;
}

static void used_attach(struct egress_endpoint *w, const struct wire_egress_open *ask)
{
	w->bytes_in = ask->used_in;
	w->bytes_out = ask->used_out;
	w->dns_queries = ask->used_dns;
	w->used = used_find(w->egress, w->id);
	if (!w->used)
		return;
	if (w->bytes_in < w->used->bytes_in)
		w->bytes_in = w->used->bytes_in;
	if (w->bytes_out < w->used->bytes_out)
		w->bytes_out = w->used->bytes_out;
	if (w->dns_queries < w->used->dns_queries)
		w->dns_queries = w->used->dns_queries;
	w->used->bytes_in = w->bytes_in;
	w->used->bytes_out = w->bytes_out;
	w->used->dns_queries = w->dns_queries;
	memcpy(w->used->id, w->id, sizeof(w->id));
	w->reported_in = ask->used_in;
	w->reported_out = ask->used_out;
	w->reported_dns = ask->used_dns;
	timer_set(&w->egress->totals, 0); /* the server may know less */
	spent_changed(w);
}

void egress_count(struct egress_endpoint *w, int into_box, size_t n)
{
	*(into_box ? &w->bytes_in : &w->bytes_out) += n;
	if (w->used) {
		w->used->bytes_in = w->bytes_in;
		w->used->bytes_out = w->bytes_out;
	}
}

void egress_count_query(struct egress_endpoint *w)
{
	w->dns_queries++;
	if (w->used)
		w->used->dns_queries = w->dns_queries;
	if (!timer_pending(&w->egress->totals))
		timer_set(&w->egress->totals, EGRESS_TOTALS_MS);
}

static int egress_send_total(struct egress_link *l, struct egress_endpoint *w)
{
	struct wire_egress_list total = { .head = sock_head(WIRE_EGRESS_LIST, 0),
					  .bytes_in = w->bytes_in,
					  .bytes_out = w->bytes_out,
					  .dns_queries = w->dns_queries };
	struct err e;

	total.head.flags = w->link >= 0 ? WIRE_EGRESS_CAPTURED : 0;
	memcpy(total.id, w->id, sizeof(total.id));
	if (sock_send(l->fd, &total, sizeof(total), NULL, 0, NULL, 0, &e) < 0)
		return -1;
	w->reported_in = w->bytes_in;
	w->reported_out = w->bytes_out;
	w->reported_dns = w->dns_queries;
	return 0;
}

/* A long transfer is visible while it lasts: its report comes at its end. */
static void egress_send_totals(struct timer *t)
{
	struct egress *x = loop_owner(t, struct egress, totals);

	for (struct egress_endpoint *w = x->ways; w && x->links; w = w->next)
		if ((w->bytes_in != w->reported_in || w->bytes_out != w->reported_out ||
		     w->dns_queries != w->reported_dns) &&
		    egress_send_total(x->links, w) < 0)
			break; /* its socket is full: a second later */
	if (x->nproxies)
		timer_set(t, EGRESS_TOTALS_MS);
}

/* ---- ways ---- */

static int has_room(const struct egress_endpoint *w)
{
	const struct egress *x = w->egress;

	return w->nproxies < x->conf.limits.connections &&
	       x->nproxies < x->conf.limits.all_connections;
}

static void way_wants(struct egress_endpoint *w)
{
	unsigned want = has_room(w) && !timer_pending(&w->again) ? LOOP_READ : 0;

	for (unsigned i = 0; i < WAY_DNS; i++)
		if (w->sockets[i].fd >= 0)
			watch_want(&w->sockets[i].watch, want);
}

int way_take_token(uint64_t *tokens, uint64_t *filled_ms, uint64_t rate)
{
	uint64_t now = loop_now_ms();

	*tokens += (now - *filled_ms) * rate;
	*filled_ms = now;
	if (*tokens > rate * 2000)
		*tokens = rate * 2000;
	if (*tokens < 1000)
		return 0;
	*tokens -= 1000;
	return 1;
}

/* Each connection causes work here and in the server, and a box can open thousands. 1: another one
 * is allowed now. */
static int take_token(struct egress_endpoint *w)
{
	return way_take_token(&w->tokens, &w->filled_ms, w->egress->conf.limits.rate);
}

static void way_ready(struct watch *l, unsigned what)
{
	struct way_listener *from = loop_owner(l, struct way_listener, watch);
	struct egress_endpoint *w = from->way;

	(void)what;
	if (from == &w->sockets[WAY_DNS]) {
		dns_read(w);
		return;
	}
	for (unsigned i = 0; i < ACCEPTS_A_TURN && has_room(w); i++) {
		int fd;

		if (!take_token(w)) {
			timer_set(&w->again, AGAIN_MS);
			break;
		}
		fd = accept4(from->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			if (from == &w->sockets[WAY_PROXY])
				proxy_new(w, fd, &proxy_http);
			else
				capture_accept(w, fd);
			continue;
		}
		w->tokens += 1000;
		/* Without free descriptors the listener would stay readable and wake the loop all
		 * the time. */
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			timer_set(&w->again, AGAIN_MS);
		break;
	}
	way_wants(w);
}

static void way_again(struct timer *t)
{
	way_wants(loop_owner(t, struct egress_endpoint, again));
}

void proxy_gone(struct egress_endpoint *w)
{
	struct egress *x = w->egress;

	/* The first free slot after the limit: others may be waiting. */
	if (x->nproxies + 1 == x->conf.limits.all_connections)
		for (struct egress_endpoint *o = x->ways; o; o = o->next)
			way_wants(o);
	way_wants(w);
}

static void way_close_socket(struct way_listener *l)
{
	if (l->fd < 0)
		return;
	watch_stop(&l->watch);
	own_close_fd(&l->fd);
}

static void way_free(struct egress_endpoint *w)
{
	/* First, otherwise the end of a connection would accept another one. */
	for (unsigned i = 0; i < WAY_SOCKETS; i++)
		way_close_socket(&w->sockets[i]);
	own_close_fd(&w->link);
	while (w->proxies)
		proxy_free(w->proxies);
	name_table_fini(&w->names);
	timer_fini(&w->again);
	injection_free(w->injection);
	if (w->rate)
		bufferevent_rate_limit_group_free(w->rate);
	net_policy_fini(&w->policy);
	free(w->links);
	free(w);
}

/* ---- secrets ---- */

struct egress_early {
	struct egress_early *next;
	char id[WIRE_ID];
	struct injection *injection;
};

/* Removes and returns what waits for this box, or NULL. */
static struct injection *egress_take_early(struct egress *x, const char *id)
{
	for (struct egress_early **at = &x->early, *one; (one = *at); at = &one->next) {
		struct injection *found = one->injection;

		if (strncmp(one->id, id, WIRE_ID) != 0)
			continue;
		*at = one->next;
		x->early_count--;
		free(one);
		return found;
	}
	return NULL;
}

int egress_secrets(struct egress *x, const char *id, const char *parts, size_t n, struct err *e)
{
	struct egress_endpoint *w = *egress_find(x, id);
	struct injection *fresh;
	struct egress_early *one;

	if (injection_parse(&fresh, parts, n, e) < 0)
		return -1;
	if (w) {
		injection_free(w->injection);
		w->injection = fresh;
		return 0;
	}
	injection_free(egress_take_early(x, id));
	if (!fresh)
		return 0;
	if (x->early_count == EGRESS_WAYS) {
		injection_free(fresh);
		return err_set(e, ERR_LIMIT, "the limit of %d boxes with egress is reached",
			       EGRESS_WAYS);
	}
	one = egress_must(calloc(1, sizeof(*one)));
	one->injection = fresh;
	snprintf(one->id, sizeof(one->id), "%s", id);
	one->next = x->early;
	x->early = one;
	x->early_count++;
	return 0;
}

/* ---- rules ---- */

/* Reads the lines "link NAME ID"; the server knows the box with that id. */
static int way_set_links(struct egress_endpoint *w, const char *text, size_t n, struct err *e)
{
	w->nlinks = 0;
	while (n) {
		const char *end = memchr(text, '\n', n), *name = text + 5;
		size_t len = end ? (size_t)(end - text) : n;

		if (len > 5 && !memcmp(text, "link ", 5)) {
			const char *space = memchr(name, ' ', len - 5);
			size_t name_len = space ? (size_t)(space - name) : len - 5;

			if (!name_len || name_len > EGRESS_LINK_NAME || w->nlinks == EGRESS_LINKS)
				return err_set(e, ERR_LIMIT, "more than %d links", EGRESS_LINKS);
			if (!w->links)
				w->links = egress_must(calloc(EGRESS_LINKS, sizeof(*w->links)));
			memset(w->links[w->nlinks], 0, sizeof(*w->links));
			memcpy(w->links[w->nlinks++], name, name_len);
		}
		text += len + !!end;
		n -= len + !!end;
	}
	return 0;
}

/* bytes per second in each direction, of all connections of the box together */
static void way_set_bandwidth(struct egress_endpoint *w)
{
	uint64_t rate = w->policy.bandwidth;
	struct timeval tick = { .tv_usec = RATE_TICK_MS * 1000 };
	size_t part = (size_t)(rate * RATE_TICK_MS / 1000), burst = part * 2;
	struct ev_token_bucket_cfg *cfg =
		rate ? ev_token_bucket_cfg_new(part, burst, part, burst, &tick) : NULL;

	if (cfg && w->rate)
		bufferevent_rate_limit_group_set_cfg(w->rate, cfg);
	else if (cfg) {
		w->rate = bufferevent_rate_limit_group_new(w->egress->loop->base, cfg);
		for (struct proxy *p = w->proxies; p && w->rate; p = p->next)
			bufferevent_add_to_rate_limit_group(p->near, w->rate);
	} else if (w->rate) {
		for (struct proxy *p = w->proxies; p; p = p->next)
			bufferevent_remove_from_rate_limit_group(p->near);
		bufferevent_rate_limit_group_free(w->rate);
		w->rate = NULL;
	}
	if (cfg)
		ev_token_bucket_cfg_free(cfg);
}

static int way_set_rules(struct egress_endpoint *w, const char *rules, size_t n, struct err *e)
{
	struct net_policy next;

	if (net_policy_parse(&next, rules, n, e) < 0)
		return -1;
	if (way_set_links(w, rules, n, e) < 0) {
		net_policy_fini(&next);
		return -1;
	}
	net_policy_fini(&w->policy);
	w->policy = next;
	way_set_bandwidth(w);
	spent_changed(w);
	return 0;
}

/* A descriptor is accepted only if it is a socket of the expected kind. */
static int check_socket(int fd, int want, struct err *e)
{
	int domain = 0, listens = 0, type = 0;
	socklen_t n = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
	    (domain != AF_INET && domain != AF_INET6) || type != want ||
	    listens != (want == SOCK_STREAM))
		return err_set(e, ERR_INVALID, "the descriptor is not a %s socket",
			       want == SOCK_STREAM ? "listening" : "datagram");
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "make the listening socket non-blocking");
	return 0;
}

static void way_serve(struct egress_endpoint *w, enum way_socket which, int take_fd)
{
	struct way_listener *l = &w->sockets[which];

	way_close_socket(l);
	l->way = w;
	l->fd = take_fd;
	watch_init(&l->watch, w->egress->loop, take_fd, way_ready);
}

int egress_open(struct egress *x, const struct wire_egress_open *ask, const char *rules, size_t n,
		int take_fd, struct err *e)
{
	auto_fd int fd = take_fd;
	struct egress_endpoint *w;

	if (!memchr(ask->id, 0, WIRE_ID) || !ask->id[0])
		return err_set(e, ERR_INVALID, "the endpoint names no box");
	if (x->nways == EGRESS_WAYS)
		return err_set(e, ERR_LIMIT, "the limit of %d boxes with egress is reached",
			       EGRESS_WAYS);
	if (*egress_find(x, ask->id))
		return err_set(e, ERR_CONFLICT, "box %.16s already has egress", ask->id);
	if (fd >= 0 && check_socket(fd, SOCK_STREAM, e) < 0)
		return -1;
	w = egress_must(calloc(1, sizeof(*w)));
	w->egress = x;
	w->link = -1;
	for (unsigned i = 0; i < WAY_SOCKETS; i++)
		w->sockets[i].fd = -1;
	memcpy(w->id, ask->id, sizeof(w->id));
	w->filled_ms = loop_now_ms();
	w->tokens = UINT64_C(2000) * x->conf.limits.rate;
	timer_init(&w->again, x->loop, way_again);
	if (way_set_rules(w, rules, n, e) < 0) {
		way_free(w);
		return -1;
	}
	used_attach(w, ask);
	if (fd >= 0)
		way_serve(w, WAY_PROXY, steal_fd(&fd));
	w->injection = egress_take_early(x, ask->id);
	w->next = x->ways;
	x->ways = w;
	x->nways++;
	way_wants(w);
	return 0;
}

/* In the order of WIRE_CAPTURE: TCP, UDP, the link, TCP for IPv6. */
enum { CAPTURED_TCP, CAPTURED_UDP, CAPTURED_LINK, CAPTURED_TCP6, CAPTURED };

static int capture_check_sockets(int v[CAPTURED], unsigned n, struct err *e)
{
	if (n < CAPTURED_TCP6)
		return err_set(e, ERR_INVALID, "%u descriptors for captured connections", n);
	if (check_socket(v[CAPTURED_TCP], SOCK_STREAM, e) < 0 ||
	    check_socket(v[CAPTURED_UDP], SOCK_DGRAM, e) < 0)
		return -1;
	return v[CAPTURED_TCP6] < 0 ? 0 : check_socket(v[CAPTURED_TCP6], SOCK_STREAM, e);
}

static int way_capture(struct egress_endpoint *w, int v[CAPTURED], unsigned n, struct err *e)
{
	int on = 1;

	if (capture_check_sockets(v, n, e) < 0)
		return -1;
	/* A query to any address is answered from that address. */
	if (setsockopt(v[CAPTURED_UDP], IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0)
		return err_sys(e, "captured UDP socket");
	way_serve(w, WAY_TCP, steal_fd(&v[CAPTURED_TCP]));
	way_serve(w, WAY_DNS, steal_fd(&v[CAPTURED_UDP]));
	if (v[CAPTURED_TCP6] >= 0)
		way_serve(w, WAY_TCP6, steal_fd(&v[CAPTURED_TCP6]));
	own_close_fd(&w->link);
	w->link = steal_fd(&v[CAPTURED_LINK]);
	watch_want(&w->sockets[WAY_DNS].watch, LOOP_READ);
	way_wants(w);
	return 0;
}

int egress_capture(struct egress *x, const char *id, int take_fd, struct err *e)
{
	static char buf[WIRE_MAX];
	auto_fd int from = take_fd;
	struct egress_endpoint *w = *egress_find(x, id);
	int v[CAPTURED] = { -1, -1, -1, -1 }, done;
	unsigned n = CAPTURED;

	if (!w)
		return err_set(e, ERR_NOT_FOUND, "box %.16s has no egress", id);
	/* The frame is in the socket already: a server cannot make egress wait for it. */
	if (fcntl(from, F_SETFL, O_NONBLOCK) < 0 || sock_recv(from, buf, v, &n, e) <= 0)
		return err_set(e, ERR_INVALID, "no descriptors for captured connections");
	done = way_capture(w, v, n, e);
	for (unsigned i = 0; i < CAPTURED; i++)
		own_close_fd(&v[i]);
	return done;
}

int egress_change(struct egress *x, const char *id, const char *rules, size_t n, struct err *e)
{
	struct egress_endpoint *w = *egress_find(x, id);

	if (!w)
		return err_set(e, ERR_NOT_FOUND, "box %.16s has no egress", id);
	if (way_set_rules(w, rules, n, e) < 0)
		return -1;
	for (struct proxy *p = w->proxies, *next; p; p = next) {
		next = p->next;
		proxy_judge_again(p);
	}
	return 0;
}

void egress_close(struct egress *x, const char *id)
{
	struct egress_endpoint **at = egress_find(x, id), *w = *at;

	injection_free(egress_take_early(x, id));
	if (!w)
		return;
	*at = w->next;
	x->nways--;
	if (w->used)
		w->used->id[0] = 0;
	way_free(w);
}

static void egress_decide(struct egress *x, const struct wire_egress_decide *f)
{
	struct egress_endpoint *w = memchr(f->id, 0, WIRE_ID) ? *egress_find(x, f->id) : NULL;

	if (w)
		approval_decide(w, f->request, (int)f->allow);
}

/* ---- connections to linked boxes ---- */

int egress_ask_link(struct egress_endpoint *w, const char *name, uint16_t port, uint32_t *out_ref)
{
	struct egress *x = w->egress;
	struct wire_egress_link f = { .head = sock_head(WIRE_EGRESS_LINK, ++x->asked),
				      .port = port };
	struct err e;

	memcpy(f.id, w->id, sizeof(f.id));
	*out_ref = x->asked;
	return x->links ? sock_send(x->links->fd, &f, sizeof(f), name, strlen(name), NULL, 0, &e)
			: -1;
}

static struct proxy *egress_find_linking(struct egress *x, uint32_t ref)
{
	for (struct egress_endpoint *w = x->ways; w; w = w->next)
		for (struct proxy *p = w->proxies; p; p = p->next)
			if (p->link == ref)
				return p;
	return NULL; /* it was closed in the meantime */
}

static void egress_server_linked(struct egress *x, const struct frame *f, int take_fd)
{
	struct proxy *p = f->ref ? egress_find_linking(x, f->ref) : NULL;
	const struct wire_error *why = f->type == WIRE_ERROR ? (const struct wire_error *)f : NULL;
	char text[sizeof(why->msg)];

	if (why)
		snprintf(text, sizeof(text), "%.*s", (int)sizeof(why->msg) - 1, why->msg);
	if (p)
		proxy_linked(p, take_fd, why ? text : "the server sent no connection");
	else if (take_fd >= 0)
		close(take_fd);
}

/* ---- servers ---- */

static void link_gone(struct egress_link *l)
{
	struct egress_link **at = &l->egress->links;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	watch_stop(&l->watch);
	close(l->fd);
	send_frames(l->egress);
	free(l);
}

static void egress_answer(struct egress_link *l, uint32_t ref, const struct err *failed)
{
	struct frame done = sock_head(WIRE_DONE, ref);
	struct wire_error error = { .head = sock_head(WIRE_ERROR, ref) };
	struct err e;

	if (failed) {
		error.kind = failed->kind;
		error.sys = failed->sys;
		memcpy(error.msg, failed->msg, sizeof(error.msg));
	}
	/* A server that does not read its answers is exiting. */
	(void)!(failed ? sock_send(l->fd, &error, sizeof(error), NULL, 0, NULL, 0, &e)
		       : sock_send(l->fd, &done, sizeof(done), NULL, 0, NULL, 0, &e));
}

static void egress_server_opens(struct egress_link *l, const struct frame *f, size_t len,
				int take_fd)
{
	const struct wire_egress_open *ask = (const struct wire_egress_open *)f;
	const char *rules = (const char *)(ask + 1);
	size_t n = len - sizeof(*ask);
	struct err e;
	int done;

	if (take_fd >= 0)
		done = egress_open(l->egress, ask, rules, n, take_fd, &e);
	else if (!memchr(ask->id, 0, WIRE_ID))
		done = err_set(&e, ERR_INVALID, "the endpoint names no box");
	else
		done = egress_change(l->egress, ask->id, rules, n, &e);
	egress_answer(l, f->ref, done < 0 ? &e : NULL);
}

static void egress_server_secrets(struct egress_link *l, const struct wire_id *ask, size_t len)
{
	struct err e;

	if (!memchr(ask->id, 0, WIRE_ID) || !ask->id[0])
		err_set(&e, ERR_INVALID, "the secrets name no box");
	else if (egress_secrets(l->egress, ask->id, (const char *)(ask + 1), len - sizeof(*ask),
				&e) == 0)
		return;
	egress_answer(l, ask->head.ref, &e);
}

static void egress_server_captures(struct egress_link *l, const struct wire_id *f, int take_fd)
{
	auto_fd int fd = take_fd;
	struct err e;
	int done = fd < 0 || !memchr(f->id, 0, WIRE_ID)
			   ? err_set(&e, ERR_INVALID, "captured connections without a socket")
			   : egress_capture(l->egress, f->id, steal_fd(&fd), &e);

	egress_answer(l, f->head.ref, done < 0 ? &e : NULL);
}

static void egress_server_readable(struct egress_link *l)
{
	static char buf[WIRE_MAX];
	const struct frame *f = (const struct frame *)buf;
	unsigned nfds = 1;
	auto_fd int fd = -1;
	struct err e;
	int n = sock_recv(l->fd, buf, &fd, &nfds, &e);

	if (n < 0 && e.sys == EAGAIN)
		return;
	if (n <= 0) {
		link_gone(l);
		return;
	}
	if (!nfds)
		fd = -1;
	if (f->type == WIRE_EGRESS_OPEN)
		egress_server_opens(l, f, (size_t)n, steal_fd(&fd));
	else if (f->type == WIRE_EGRESS_LINKED || f->type == WIRE_ERROR)
		egress_server_linked(l->egress, f, steal_fd(&fd));
	else if (f->type == WIRE_EGRESS_CAPTURE)
		egress_server_captures(l, (const struct wire_id *)f, steal_fd(&fd));
	else if (f->type == WIRE_EGRESS_SECRETS) {
		egress_server_secrets(l, (const struct wire_id *)f, (size_t)n);
		explicit_bzero(buf, (size_t)n);
	} else if (f->type == WIRE_EGRESS_CLOSE &&
		   memchr(((const struct wire_id *)f)->id, 0, WIRE_ID))
		egress_close(l->egress, ((const struct wire_id *)f)->id);
	else if (f->type == WIRE_EGRESS_DECIDE)
		egress_decide(l->egress, (const struct wire_egress_decide *)f);
}

static void link_ready(struct watch *w, unsigned what)
{
	struct egress_link *l = loop_owner(w, struct egress_link, watch);

	if (what == LOOP_WRITE)
		send_frames(l->egress);
	else
		egress_server_readable(l);
}

static int tell_held(struct egress_link *l)
{
	struct timeval patience = { .tv_sec = HELD_SECONDS };

	/* Waits for a new server to read the list: it has requested it, and sends nothing else
	 * before that. */
	setsockopt(l->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));

	for (struct egress_endpoint *w = l->egress->ways; w; w = w->next)
		if (egress_send_total(l, w) < 0)
			return -1;
	egress_answer(l, 0, NULL);
	return 0;
}

void egress_add_server(struct egress *x, int take_fd)
{
	struct egress_link *l = egress_must(calloc(1, sizeof(*l)));

	l->egress = x;
	l->fd = take_fd;
	watch_init(&l->watch, x->loop, take_fd, link_ready);
	if (x->links) /* the new server gets its reports */
		watch_want(&x->links->watch, LOOP_READ);
	l->next = x->links;
	x->links = l;
	if (tell_held(l) < 0) {
		link_gone(l);
		return;
	}
	fcntl(take_fd, F_SETFL, O_NONBLOCK);
	watch_want(&l->watch, LOOP_READ);
	for (const struct egress_endpoint *w = x->ways; w; w = w->next)
		approval_announce(w);
	send_frames(x);
}

/* ---- life ---- */

static void or_default(uint32_t *n, uint32_t otherwise)
{
	if (!*n)
		*n = otherwise;
}

int egress_init(struct egress *x, struct loop *l, const struct egress_conf *conf, struct err *e)
{
	struct egress_limits *m = &x->conf.limits;

	*x = (struct egress){ .loop = l, .conf = *conf };
	timer_init(&x->totals, l, egress_send_totals);
	or_default(&m->connections, 64);
	or_default(&m->all_connections, 2048);
	or_default(&m->rate, 100);
	or_default(&m->head_ms, 10000);
	or_default(&m->connect_ms, 20000);
	or_default(&m->idle_ms, 120000);
	or_default(&m->ask_ms, 60000);
	/* Requests of a later process must have other numbers. */
	x->requests = clock_ns(CLOCK_REALTIME) / 1000;
	if (injection_trust(&x->trust, conf->certificates, e) < 0)
		return -1;
	return resolver_init(&x->names, l, conf->dns, e);
}

void egress_fini(struct egress *x)
{
	timer_fini(&x->totals);
	while (x->links)
		link_gone(x->links);
	while (x->ways)
		egress_close(x, x->ways->id);
	while (x->first)
		drop_frame(x);
	while (x->early)
		injection_free(egress_take_early(x, x->early->id));
	SSL_CTX_free(x->trust);
	resolver_fini(&x->names);
}

struct life {
	struct egress egress;
	struct loop loop;
	struct watch supervisor;
};

static void supervisor_says(struct watch *w, unsigned what)
{
	static char buf[WIRE_MAX];
	struct life *x = loop_owner(w, struct life, supervisor);
	unsigned nfds = 1;
	auto_fd int fd = -1;
	struct err e;
	int n = sock_recv(w->fd, buf, &fd, &nfds, &e);

	(void)what;
	if (n <= 0)
		loop_stop(&x->loop); /* without it the server would not know this process */
	else if (((const struct frame *)buf)->type == WIRE_EGRESS_CONNECT && nfds)
		egress_add_server(&x->egress, steal_fd(&fd));
}

int egress_main(const struct egress_conf *conf, int supervisor,
		int (*walls)(void *ctx, struct err *e), void *ctx)
{
	static struct life x;
	struct err e;

	signal(SIGPIPE, SIG_IGN);
	if (loop_init(&x.loop, &e) < 0 || egress_init(&x.egress, &x.loop, conf, &e) < 0 ||
	    walls(ctx, &e) < 0) {
		log_error("egress cannot start", LOG_E(&e));
		return 1;
	}
	watch_init(&x.supervisor, &x.loop, supervisor, supervisor_says);
	watch_want(&x.supervisor, LOOP_READ);
	log_info("egress serves", LOG_U("rules", conf->nrules));
	loop_run(&x.loop);
	return 0;
}
