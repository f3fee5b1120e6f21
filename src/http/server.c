/* server.c - listeners, the list of connections, and the sweep that enforces their time limits. */
#include "http/conn.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
	ACCEPTS_PER_WAKE = 64,
	REFUSING_MAX = 64, /* at the same time; above it connections are closed without an answer */
	SWEEP_MS = 1000,
};

static const struct http_limits defaults = {
	.head_bytes = 32 << 10,
	.headers = 100,
	.connections = 10240,
	.per_address = 5120,
	.head_ms = 10000,
	.idle_ms = 75000,
	.fresh_ms = 2000,
	.body_stall_ms = 30000,
	.send_stall_ms = 120000,
	.out_high = 256 << 10,
	.ws_ping_ms = 20000,
	.ws_silence_ms = 60000,
};

struct http_listener {
	struct watch watch;
	struct http_server *server;
	struct ssl_ctx_st *tls;
	struct http_listener *next;
};

/* ---- time ---- */

/* The date of RFC 9110, in English for every locale. */
const char *server_date(struct http_server *s)
{
	static const char days[] = "SunMonTueWedThuFriSat",
			  months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct http_core *core = s->core;
	time_t now = time(NULL);
	struct tm t;

	if (now != core->date_at) {
		core->date_at = now;
		gmtime_r(&now, &t);
		snprintf(core->date, sizeof(core->date), "%.3s, %02d %.3s %d %02d:%02d:%02d GMT",
			 days + t.tm_wday * 3, t.tm_mday, months + t.tm_mon * 3, t.tm_year + 1900,
			 t.tm_hour, t.tm_min, t.tm_sec);
	}
	return core->date;
}

/* Short enough for the shortest limit: tests set limits of milliseconds. */
static uint64_t sweep_ms(const struct http_limits *l)
{
	uint64_t least = SWEEP_MS * 4;
	const uint32_t all[] = { l->head_ms,       l->idle_ms,    l->body_stall_ms,
				 l->send_stall_ms, l->ws_ping_ms, l->ws_silence_ms };

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		least = all[i] < least ? all[i] : least;
	return least / 4 + 1;
}

static void server_sweep(struct timer *t)
{
	struct http_core *core = loop_owner(t, struct http_core, sweep);
	struct http_server *s = core->server;
	uint64_t now = loop_now_ms();

	loop_work_begin(s->loop, NULL);
	/* Nothing is freed here: run_kicked() acts on the flags that are set. */
	for (struct http_conn *c = s->conns; c; c = c->next)
		conn_check_timeout(c, now);
	for (struct http_listener *l = s->listeners; l; l = l->next)
		watch_want(&l->watch,
			   LOOP_READ); /* a listener that had run out of descriptors tries again */
	timer_set(t, sweep_ms(&s->limits));
	loop_work_end(s->loop);
}

static struct http_conn *kicks_take(struct kicks *k)
{
	struct http_conn *c = k->first;

	k->first = c->next_kicked;
	if (!k->first)
		k->end = &k->first;
	c->kicked = 0;
	return c;
}

/* Runs the connections that are on the list now; of the late ones, as many as time allows. */
static void run_kicked(struct timer *t)
{
	struct kicks *k = loop_owner(t, struct kicks, timer);
	struct loop *l = k->core->server->loop;
	int is_late = k == &k->core->kicks[1], more = k->first != NULL;
	struct http_conn *last = more ? loop_owner(k->end, struct http_conn, next_kicked) : NULL;
	uint64_t began = now_ns();

	l->now_ns = began;
	while (more) {
		struct http_conn *c = kicks_take(k);

		more = c != last;
		if (!is_late && loop_budget_exceeded(l, conn_budget(c))) {
			conn_schedule(c);
			continue;
		}
		loop_work_begin(l, conn_budget(c));
		conn_advance(c);
		loop_work_end(l);
		more = more && !(is_late && l->now_ns - began >= LOOP_SLICE_NS);
	}
	if (k->first)
		timer_set(t, 0);
}

static void kicks_init(struct http_core *core, struct loop *l)
{
	for (unsigned i = 0; i < ARRAY_LEN(core->kicks); i++) {
		struct kicks *k = &core->kicks[i];

		k->core = core;
		k->end = &k->first;
		(i ? timer_init_late : timer_init)(&k->timer, l, run_kicked);
	}
}

/* ---- listening ---- */

static int is_exhaustion(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

static int is_full(const struct http_server *s)
{
	return s->open - s->core->refusing - s->core->evicting - s->core->links >=
	       s->limits.connections;
}

/* run_kicked() acts on the flags; from now on the connection is not counted. */
static void server_evict_conn(struct http_server *s, struct http_conn *c)
{
	share_leave(c);
	c->evicted = 1;
	s->core->evicting++;
	s->evicted++;
	conn_cut(c, 0);
}

/* NULL: one more connection of this address fits, or another one was closed for it. Else the
 * reason for the 503. */
static const char *make_room(struct http_server *s, const uint8_t key[16])
{
	const struct share *own = share_find(&s->core->shares, key);
	struct http_conn *victim;

	if (own && own->open >= s->limits.per_address) {
		victim = share_victim(&s->core->shares, own);
		if (!victim)
			return "too many connections of this address are open";
		server_evict_conn(s, victim);
	}
	if (!is_full(s))
		return NULL;
	victim = share_victim(&s->core->shares, NULL);
	if (!victim)
		return "too many connections are open";
	server_evict_conn(s, victim);
	return NULL;
}

/* Peers of a unix socket have no address and are identified by uid. */
static void key_of(int fd, const struct sockaddr_storage *from, uint8_t out[16])
{
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(who);
	int is_unix = from->ss_family != AF_INET && from->ss_family != AF_INET6;

	if (is_unix)
		(void)getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	share_key(from, is_unix, who.uid, out);
}

static void can_accept(struct watch *w, unsigned what)
{
	struct http_listener *l = loop_owner(w, struct http_listener, watch);
	struct http_server *s = l->server;

	(void)what;
	for (unsigned i = 0; i < ACCEPTS_PER_WAKE; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int fd = accept4(w->fd, (struct sockaddr *)&from, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		const char *why;
		uint8_t key[16];

		if (fd < 0) {
			/* Level-triggered, the listener would wake the loop without end; the
			 * sweep tries again. */
			if (is_exhaustion(errno))
				watch_want(w, 0);
			return;
		}
		s->accepted++;
		key_of(fd, &from, key);
		why = make_room(s, key);
		if (!why || s->core->refusing < REFUSING_MAX)
			conn_new(s, fd, l->tls, key, why);
		else
			close(fd);
		if (loop_work_is_long(s->loop))
			return;
	}
}

static void fill_limits(struct http_limits *l)
{
	uint32_t *mine = (uint32_t *)l;
	const uint32_t *theirs = (const uint32_t *)&defaults;

	_Static_assert(sizeof(*l) % sizeof(*mine) == 0, "limits are numbers of one size");
	if (l->connections && !l->per_address)
		l->per_address = l->connections / 2 + 1;
	for (unsigned i = 0; i < sizeof(*l) / sizeof(*mine); i++)
		if (!mine[i])
			mine[i] = theirs[i];
}

void server_start(struct http_server *s)
{
	fill_limits(&s->limits);
	if (!timer_pending(&s->core->sweep))
		timer_set(&s->core->sweep, sweep_ms(&s->limits));
}

int http_listen(struct http_server *s, int take_fd, struct ssl_ctx_st *tls, struct err *e)
{
	auto_fd int fd = take_fd;
	struct http_listener *l;
	int yes = 0;
	socklen_t len = sizeof(yes);

	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &len) < 0)
		return err_sys(e, "listen on descriptor %d", take_fd);
	if (!yes)
		return err_set(e, ERR_INVALID, "descriptor %d is a socket that does not listen",
			       take_fd);
	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
		return err_sys(e, "make descriptor %d non-blocking", take_fd);
	l = calloc(1, sizeof(*l));
	if (!l)
		abort();
	l->server = s;
	l->tls = tls;
	l->next = s->listeners;
	s->listeners = l;
	watch_init(&l->watch, s->loop, steal_fd(&fd), can_accept);
	watch_want(&l->watch, LOOP_READ);
	server_start(s);
	return 0;
}

void http_set_tls(struct http_server *s, struct ssl_ctx_st *tls)
{
	for (struct http_listener *l = s->listeners; l; l = l->next)
		if (l->tls)
			l->tls = tls;
}

static void stop_listening(struct http_server *s)
{
	for (struct http_listener *l = s->listeners, *next; l; l = next) {
		next = l->next;
		watch_stop(&l->watch);
		close(l->watch.fd);
		free(l);
	}
	s->listeners = NULL;
}

/* ---- life ---- */

void http_server_init(struct http_server *s, struct loop *l)
{
	struct http_core *core = calloc(1, sizeof(*core));

	if (!core)
		abort();
	memset(s, 0, sizeof(*s));
	s->loop = l;
	s->core = core;
	core->server = s;
	shares_init(&core->shares);
	timer_init(&core->sweep, l, server_sweep);
	kicks_init(core, l);
	/* Writing to a peer that left must return EPIPE; libevent's writes have no flag for
	 * that. */
	signal(SIGPIPE, SIG_IGN);
}

void http_drain(struct http_server *s)
{
	s->draining = 1;
	stop_listening(s);
	for (struct http_conn *c = s->conns; c; c = c->next) {
		if (c->state == CONN_WS)
			ws_close(c->ws, 1001, "the server is leaving");
		conn_schedule(c);
	}
}

int http_drained(const struct http_server *s)
{
	return s->draining && s->open == 0;
}

void http_server_fini(struct http_server *s)
{
	struct http_core *core = s->core;

	if (!core)
		return;
	stop_listening(s);
	/* Handlers that end here schedule other connections: none of the lists may lead to one that
	 * is freed already. */
	for (struct http_conn *c = s->conns; c; c = c->next) {
		c->kicked = 0;
		c->running = c->cut = 1;
	}
	while (s->conns)
		conn_free(s->conns);
	timer_fini(&core->sweep);
	for (unsigned i = 0; i < ARRAY_LEN(core->kicks); i++)
		timer_fini(&core->kicks[i].timer);
	arena_stock_fini(&core->stock);
	free(core);
	s->core = NULL;
}
