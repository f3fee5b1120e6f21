/* way.c - see way.h: the endpoints of boxes, their sockets, rules, secrets and totals. */
#include "egress/way.h"
#include "base/cleanup.h"
#include "egress/approval.h"
#include "egress/injection.h"
#include "egress/proxy.h"
#include "egress/spent.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { AGAIN_MS = 100, ACCEPTS_A_TURN = 16, RATE_TICK_MS = 50 };

/* ---- totals of bytes ---- */

struct egress_endpoint **egress_find(struct egress *x, const char *id)
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

/* Removes and returns what waits for this box, or NULL. */
struct injection *egress_take_early(struct egress *x, const char *id)
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

/* A descriptor is accepted only if it is a socket of the expected kind. mux listens for the programs of a guest at a unix
 * socket (docs/tiers.md). */
static int check_socket(int fd, int want, struct err *e)
{
	int domain = 0, listens = 0, type = 0;
	socklen_t n = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
	    (domain != AF_INET && domain != AF_INET6 &&
	     (domain != AF_UNIX || want != SOCK_STREAM)) ||
	    type != want || listens != (want == SOCK_STREAM))
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
