/* tunnel_gateway.c - the nodes of a gateway: their connections are accepted, their control messages
 * handled. See tunnel.h. */
#include "cluster/role.h"
#include "cluster/tunnel_internal.h"
#include "base/cleanup.h"
#include "base/log.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

const char *tunnel_state_name(enum tunnel_state s)
{
	return s == TUNNEL_UP ? "up" : "unreachable";
}

/* ---- nodes ---- */

/* The position of the first node whose number is not lower. */
static unsigned tunnels_position(const struct tunnels *t, uint32_t number)
{
	unsigned low = 0, high = t->count;

	while (low < high) {
		unsigned mid = low + (high - low) / 2;

		if (t->peers[mid]->node.number < number)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct tunnel_peer *tunnels_peer(struct tunnels *t, uint32_t number)
{
	unsigned at = tunnels_position(t, number);

	return at < t->count && t->peers[at]->node.number == number && !t->peers[at]->removed
		       ? t->peers[at]
		       : NULL;
}

struct tunnel_node *tunnels_find(struct tunnels *t, uint32_t number)
{
	struct tunnel_peer *p = tunnels_peer(t, number);

	return p && !p->expected ? &p->node : NULL;
}

struct tunnel_node *tunnels_next(struct tunnels *t, const struct tunnel_node *after)
{
	unsigned at = after ? tunnels_position(t, after->number + 1) : 0;

	while (at < t->count && (t->peers[at]->removed || t->peers[at]->expected))
		at++;
	return at < t->count ? &t->peers[at]->node : NULL;
}

void tunnel_set_state(struct tunnel_peer *p, enum tunnel_state state, uint64_t at_ms)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	p->node.state = state;
	p->node.since_ms = at_ms;
	p->node.since_unix_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 -
				(int64_t)(loop_now_ms() - at_ms);
}

static struct tunnel_peer *tunnels_add(struct tunnels *t, uint32_t number)
{
	struct tunnel_peer *p = tunnels_peer(t, number);
	unsigned at = tunnels_position(t, number);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (t->count == t->room) {
		t->room = t->room ? t->room * 2 : 16;
		t->peers = reallocarray(t->peers, t->room, sizeof(t->peers[0]));
	}
	if (!p || !t->peers)
		abort();
	memmove(t->peers + at + 1, t->peers + at, (t->count - at) * sizeof(t->peers[0]));
	t->peers[at] = p;
	t->count++;
	p->tunnels = t;
	p->node.number = number;
	p->asks_end = &p->asks;
	p->lines.most = CONTROL_LINE_NODE;
	snprintf(p->node.name, sizeof(p->node.name), "?");
	tunnel_set_state(p, TUNNEL_UNREACHABLE, loop_now_ms());
	return p;
}

struct tunnel_peer *tunnels_expect(struct tunnels *t, uint32_t number)
{
	struct tunnel_peer *p;

	if (loop_now_ms() >= t->settled_ms || t->count >= TUNNEL_EXPECTED || number == 0 ||
	    number > CLUSTER_NUMBER_MAX)
		return NULL;
	p = tunnels_add(t, number);
	p->expected = 1;
	return p;
}

static void tunnel_free(struct tunnel_peer *p)
{
	tunnel_close_links(p);
	upstream_close(&p->control);
	buf_fini(&p->lines.line);
	control_figures_fini(&p->node.figures);
	free(p);
}

/* ---- new connections ---- */

/* A copy of the state folder of a node has its number and its certificate. The one that is connected stays: a connection of a
 * machine that ended is closed after TUNNEL_SILENCE_MS. */
static int tunnels_is_copy(const struct tunnel_peer *p, const char *machine)
{
	return p && p->open && *machine && p->machine[0] && strcmp(p->machine, machine) != 0;
}

int tunnels_check(struct tunnels *t, uint32_t number, const char *machine, int control,
		  struct err *e)
{
	const struct tunnel_peer *p = tunnels_peer(t, number);

	if (tunnels_is_copy(p, machine))
		return err_set(e, ERR_CONFLICT,
			       "another machine (%.50s) is connected as node %" PRIu32
			       ": two machines have copies of one state folder; remove one of "
			       "them, and join as another node",
			       p->node.peer, number);
	if (control)
		return 0;
	if (!p || !p->hello)
		return err_set(e, ERR_CONFLICT,
			       "node %" PRIu32 " has no control connection to this gateway",
			       number);
	if (p->node.idle + p->node.busy >= TUNNEL_LINKS)
		return err_set(e, ERR_LIMIT,
			       "node %" PRIu32 " has %d connections to this gateway, the maximum",
			       number, TUNNEL_LINKS);
	return 0;
}

/* A request may wait an hour for its answer: only TCP can tell that the machine of the node is gone.
 * Not TCP_USER_TIMEOUT: it also ends a connection whose reader pauses. */
static void tunnels_watch_peer(int fd)
{
	static const struct {
		int level, option, value;
	} options[] = { { SOL_SOCKET, SO_KEEPALIVE, 1 },
			{ IPPROTO_TCP, TCP_KEEPIDLE, TUNNEL_PROBE_S },
			{ IPPROTO_TCP, TCP_KEEPINTVL, TUNNEL_PROBE_S },
			{ IPPROTO_TCP, TCP_KEEPCNT, 2 } };

	for (unsigned i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].option, &options[i].value,
				 sizeof(options[i].value));
}

int tunnels_connected(struct tunnels *t, uint32_t number, const char *machine, const char *peer,
		      int control, struct upstream_link take_link, struct err *e)
{
	struct tunnel_peer *p;

	if (tunnels_check(t, number, machine, control, e) < 0) {
		t->figures.rejected++;
		upstream_link_close(&take_link);
		return -1;
	}
	p = tunnels_add(t, number);
	t->figures.accepted++;
	if (control) {
		tunnel_open_control(p, peer, take_link);
		snprintf(p->machine, sizeof(p->machine), "%s", machine);
	} else {
		tunnels_watch_peer(take_link.fd);
		tunnel_add_link(p, take_link);
	}
	return 0;
}

/* ---- orders of the owner ---- */

void tunnels_greet(struct tunnels *t, uint32_t number, uint64_t epoch, const struct json_t *owned)
{
	struct tunnel_peer *p = tunnels_peer(t, number);
	auto_buf struct buf line = { 0 };

	if (!p || !p->hello)
		return;
	p->node.epoch = epoch;
	p->node.greeted = 1;
	control_put_gateway_hello(&line, t->number, t->version, epoch, owned);
	tunnel_send(p, &line);
}

void tunnels_close(struct tunnels *t, uint32_t number, const char *why)
{
	struct tunnel_peer *p = tunnels_peer(t, number);

	if (p && p->open) {
		log_info("closing the tunnel of a node", LOG_U("node", number), LOG_S("why", why));
		tunnel_close_control(p, why);
	}
}

void tunnels_close_all(struct tunnels *t, const char *why)
{
	for (unsigned i = 0; i < t->count; i++)
		tunnels_close(t, t->peers[i]->node.number, why);
}

void tunnels_leave(struct tunnels *t)
{
	t->leaving = 1;
	tunnels_close_all(t, "this server stops");
}

void tunnels_rows_kept(struct tunnels *t, uint32_t number, uint64_t last)
{
	struct tunnel_peer *p = tunnels_peer(t, number);

	if (!p || !p->open)
		return;
	if (p->rows_ahead)
		p->rows_ahead--;
	p->rows_kept = last > p->rows_kept ? last : p->rows_kept;
	tunnel_send_kept(p);
}

int tunnels_order(struct tunnels *t, uint32_t number, const struct json_t *order, struct err *e)
{
	struct tunnel_peer *p = tunnels_peer(t, number);
	auto_buf struct buf line = { 0 };

	if (!p || !p->hello || p->full)
		return err_set(e, ERR_NOT_FOUND, "node %" PRIu32 " is unreachable", number);
	control_put_order(&line, order);
	tunnel_send(p, &line);
	return 0;
}

/* Its memory is freed by the next tick: a hook may call this. */
void tunnels_forget(struct tunnels *t, uint32_t number)
{
	struct tunnel_peer *p = tunnels_peer(t, number);

	if (!p)
		return;
	tunnel_close_control(p, "the node was removed");
	tunnel_close_links(p);
	tunnel_refuse_all(p);
	p->removed = 1;
}

/* ---- time ---- */

static void tunnel_tick(struct tunnel_peer *p, uint64_t now)
{
	uint64_t silence = p->tunnels->silence_ms;

	if (p->open && !p->hello && now - p->opened_ms >= silence)
		tunnel_reject(p, "no hello came in 2.5 s");
	else if (p->open && p->hello && now - p->node.heartbeat_ms >= silence) {
		/* The machine may be dead: the ends of its connections would not be noticed. */
		tunnel_reject(p, "no heartbeat came in 2.5 s");
		tunnel_set_state(p, TUNNEL_UNREACHABLE, p->node.heartbeat_ms);
		tunnel_close_links(p);
		tunnel_refuse_all(p);
	} else if (!p->open && !p->tunnels->leaving && p->node.state == TUNNEL_UNREACHABLE &&
		   now - p->node.since_ms >= silence) {
		/* After the control connection had ended by TCP: what is idle leads nowhere, or to a machine that is
		 * only cut off. A request on it would wait for an answer without end. */
		tunnel_close_links(p);
		p->removed = p->expected && !p->asks;
	} else if (p->expected && !p->asks) {
		p->removed = 1;
	} else if (p->full && now - p->full_ms >= silence) {
		tunnel_reject(p, "the node has read nothing for 2.5 s");
	}
	tunnel_tick_links(p, now);
}

static void tunnels_tick(struct timer *timer)
{
	struct tunnels *t = loop_owner(timer, struct tunnels, tick);
	uint64_t now = loop_now_ms();
	unsigned kept = 0;

	for (unsigned i = 0; i < t->count; i++)
		if (!t->peers[i]->removed)
			tunnel_tick(t->peers[i], now);
	for (unsigned i = 0; i < t->count; i++)
		if (t->peers[i]->removed)
			tunnel_free(t->peers[i]);
		else
			t->peers[kept++] = t->peers[i];
	t->count = kept;
	timer_set(&t->tick, t->tick_ms);
}

/* ---- life ---- */

struct tunnels *tunnels_new(struct loop *l, uint32_t number, const char *version,
			    const struct tunnel_hooks *hooks)
{
	struct tunnels *t = calloc(1, sizeof(*t));

	if (!t)
		abort();
	t->loop = l;
	t->number = number;
	t->tick_ms = TUNNEL_TICK_MS;
	t->silence_ms = TUNNEL_SILENCE_MS;
	t->wait_ms = TUNNEL_WAIT_MS;
	t->wait_up_ms = TUNNEL_WAIT_UP_MS;
	t->settled_ms = loop_now_ms() + TUNNEL_SETTLE_MS;
	snprintf(t->version, sizeof(t->version), "%s", version);
	if (hooks)
		t->hooks = *hooks;
	timer_init(&t->serve, l, tunnels_serve_asks);
	timer_init(&t->tick, l, tunnels_tick);
	timer_set(&t->tick, TUNNEL_TICK_MS);
	return t;
}

void tunnels_set_hooks(struct tunnels *t, const struct tunnel_hooks *hooks)
{
	__typeof__(hooks->rows) rows = t->hooks.rows;

	t->hooks = *hooks;
	if (t->rows_user)
		t->hooks.rows = rows;
}

void tunnels_set_rows(struct tunnels *t, void *user,
		      int (*rows)(void *user, struct tunnel_node *n, const struct json_t *rows,
				  uint64_t last, struct err *e))
{
	t->hooks.rows = rows;
	t->rows_user = user;
}

void tunnels_free(struct tunnels *t)
{
	if (!t)
		return;
	timer_fini(&t->tick);
	timer_fini(&t->serve);
	for (unsigned i = 0; i < t->count; i++)
		tunnel_free(t->peers[i]);
	free(t->peers);
	free(t);
}

struct tunnels_figures tunnels_figures(const struct tunnels *t)
{
	struct tunnels_figures f = t->figures;

	for (unsigned i = 0; i < t->count; i++) {
		const struct tunnel_node *n = &t->peers[i]->node;

		f.nodes += !t->peers[i]->expected;
		f.up += n->state == TUNNEL_UP;
		f.idle += n->idle;
		f.busy += n->busy;
		f.waiting += n->waiting;
	}
	return f;
}
