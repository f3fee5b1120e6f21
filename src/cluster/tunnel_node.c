/* tunnel_node.c - see tunnel_node.h. */
#include "cluster/tunnel_node.h"
#include "cluster/tunnel.h"
#include "cluster/tunnel_dial.h"
#include "base/log.h"
#include "http/http.h"
#include "http/upstream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	CLIENT_TICK_MS = 50,
	CLIENT_HEALTHY_MS = 2000, /* a control connection that lasted so long is opened again ... */
	CLIENT_RETURN_MS = 10,    /* ... after this time */
	CLIENT_SENT = 32,         /* heartbeats whose time of sending is remembered */
	CLIENT_UNACKED_MS =
		5000, /* a gateway machine whose kernel confirms no byte for this long is
				   * gone */
};

struct client_gateway;

struct client_dial {
	struct tunnel_dial dial;
	struct client_gateway *gateway;
	struct client_dial *next, **link;
	int control;
};

struct client_link { /* a request connection */
	struct http_link link;
	struct client_gateway *gateway;
	struct client_link *next, **prev;
	int busy;
};

struct client_gateway {
	struct tunnel_client *client;
	unsigned index;
	uint32_t number; /* 0: not known */
	/* connecting */
	unsigned wanted; /* connections that were requested and have not come */
	uint64_t wanted_ms, retry_ms;
	uint64_t retry_at; /* 0: no connection is to be requested */
	unsigned links_wanted;
	struct client_dial *dials;
	int dialling_control;
	/* the control connection */
	struct upstream control;
	struct control_lines lines;
	unsigned open : 1, greeted : 1, full : 1;
	uint64_t seq, heartbeat_at, opened_ms;
	uint64_t sent_ms[CLIENT_SENT];
	uint64_t lists; /* a hash of the lists that were sent last; 0: none */
	/* request connections */
	struct client_link *links;
	unsigned nlinks;
};

struct tunnel_client {
	struct loop *loop;
	struct http_server *server;
	struct tunnel_client_hooks hooks;
	uint32_t number;
	char name[CONTROL_NAME], version[CONTROL_VERSION];
	struct ssl_ctx_st *tls;
	uint64_t epoch;
	struct timer tick;
	int stopped;
	struct tunnel_client_figures figures; /* those that only grow */
	unsigned ngateways;
	struct client_gateway gateways[];
};

/* ---- connecting ---- */

static void client_request(struct client_gateway *g)
{
	g->wanted++;
	g->wanted_ms = loop_now_ms();
	g->client->hooks.connect(g->client->hooks.user, g->index);
}

static void client_retry_later(struct client_gateway *g)
{
	g->retry_at = loop_now_ms() + g->retry_ms;
	g->retry_ms =
		g->retry_ms * 2 < TUNNEL_RETRY_MOST_MS ? g->retry_ms * 2 : TUNNEL_RETRY_MOST_MS;
}

static void client_failed(struct client_gateway *g, int control, const char *why)
{
	g->client->figures.failures++;
	log_warn("no connection to a gateway", LOG_U("gateway", g->index), LOG_S("why", why),
		 LOG_U("retry_ms", g->retry_ms));
	/* A request connection that failed is requested again by the gateway. */
	if (control)
		client_retry_later(g);
}

void tunnel_client_failed(struct tunnel_client *c, unsigned gateway, const char *why)
{
	struct client_gateway *g = &c->gateways[gateway];

	if (gateway >= c->ngateways || c->stopped)
		return;
	if (g->wanted)
		g->wanted--;
	if (g->links_wanted)
		g->links_wanted--;
	client_failed(g, !g->open && !g->dialling_control, why);
}

/* ---- request connections ---- */

static void client_link_changed(struct http_link *link, enum http_link_state now)
{
	struct client_link *l = loop_owner(link, struct client_link, link);

	l->busy = now == HTTP_LINK_BUSY;
	if (now != HTTP_LINK_CLOSED)
		return;
	*l->prev = l->next;
	if (l->next)
		l->next->prev = l->prev;
	l->gateway->nlinks--;
	free(l);
}

static void client_serve(struct client_gateway *g, const struct upstream_link *take_link)
{
	struct client_link *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	l->gateway = g;
	l->link.changed = client_link_changed;
	l->next = g->links;
	l->prev = &g->links;
	if (l->next)
		l->next->prev = &l->next;
	g->links = l;
	g->nlinks++;
	http_serve_link(g->client->server, &l->link, take_link->fd, take_link->tls, NULL, 0);
}

static void client_open(struct client_gateway *g, unsigned count)
{
	unsigned have = g->nlinks + g->links_wanted;

	for (; count > 0 && have < TUNNEL_LINKS; count--, have++) {
		g->links_wanted++;
		client_request(g);
	}
}

/* ---- the control connection ---- */

static void client_close_control(struct client_gateway *g, const char *why, int is_error)
{
	const struct tunnel_client_hooks *h = &g->client->hooks;
	int greeted = g->greeted;

	if (!g->open)
		return;
	if (is_error)
		log_warn("tunnel to a gateway closed", LOG_U("gateway", g->number),
			 LOG_S("why", why));
	else
		log_info("tunnel to a gateway ended", LOG_U("gateway", g->number),
			 LOG_S("why", why));
	upstream_close(&g->control);
	buf_fini(&g->lines.line);
	g->open = g->greeted = g->full = 0;
	g->links_wanted = 0;
	if (greeted && h->closed)
		h->closed(h->user, g->index);
	if (g->client->stopped)
		return;
	client_retry_later(g);
	/* Its server was replaced: requests wait for this node. */
	if (loop_now_ms() - g->opened_ms >= CLIENT_HEALTHY_MS)
		g->retry_at = loop_now_ms() + CLIENT_RETURN_MS;
}

static void client_send(struct client_gateway *g, const struct buf *line)
{
	if (upstream_body(&g->control, line->p, line->len))
		g->full = 1;
}

static void client_drained(struct upstream *u)
{
	loop_owner(u, struct client_gateway, control)->full = 0;
}

static uint64_t client_hash_lists(const struct control_figures *f)
{
	uint64_t hash = 14695981039346656037u;

	for (unsigned i = 0; i < f->ntemplates; i++)
		hash = (hash ^ f->templates[i]) * 1099511628211u;
	for (unsigned i = 0; i < f->nlabels; i++)
		hash = (hash ^ control_hash(f->labels[i])) * 1099511628211u;
	return hash | 1;
}

static void client_heartbeat(struct client_gateway *g, uint64_t now)
{
	struct control_figures f = { 0 };
	auto_buf struct buf line = { 0 };
	uint64_t lists;

	g->heartbeat_at = now + TUNNEL_HEARTBEAT_MS;
	if (g->full) /* the gateway does not read: a heartbeat that waits would arrive too late */
		return;
	g->client->hooks.figures(g->client->hooks.user, &f);
	f.seq = ++g->seq;
	g->sent_ms[f.seq % CLIENT_SENT] = now;
	lists = client_hash_lists(&f);
	control_put_heartbeat(&line, &f, lists != g->lists);
	g->lists = lists;
	control_figures_fini(&f);
	g->client->figures.heartbeats++;
	client_send(g, &line);
}

static void client_got_hello(struct client_gateway *g, const struct control_message *m)
{
	const struct tunnel_client_hooks *h = &g->client->hooks;

	g->greeted = 1;
	g->retry_ms = TUNNEL_RETRY_MS;
	log_info("connected to a gateway", LOG_U("gateway", g->number), LOG_U("epoch", m->epoch),
		 LOG_S("version", m->version));
	if (h->greeted)
		h->greeted(h->user, g->index, g->number, m->epoch, m->body);
}

static int client_got_ack(struct client_gateway *g, uint64_t seq, struct err *e)
{
	const struct tunnel_client_hooks *h = &g->client->hooks;

	if (!g->greeted || seq == 0 || seq > g->seq)
		return err_set(e, ERR_INVALID,
			       "an acknowledgement of a heartbeat that was not sent");
	g->client->figures.acknowledged++;
	if (h->acknowledged && g->seq - seq < CLIENT_SENT)
		h->acknowledged(h->user, g->index, g->sent_ms[seq % CLIENT_SENT]);
	return 0;
}

static int client_handle(struct client_gateway *g, const struct control_message *m, struct err *e)
{
	const struct tunnel_client_hooks *h = &g->client->hooks;

	switch (m->kind) {
	case CONTROL_HELLO:
		if (m->number != g->number)
			return err_set(e, ERR_DENIED,
				       "the hello has the number %u, the certificate %u", m->number,
				       g->number);
		if (control_check_version(g->client->version, m->version, e) < 0)
			return -1;
		client_got_hello(g, m);
		return 0;
	case CONTROL_ACK:
		return client_got_ack(g, m->seq, e);
	case CONTROL_ROWS_KEPT:
		if (h->rows_kept)
			h->rows_kept(h->user, g->index, m->seq);
		return 0;
	case CONTROL_OPEN_MORE:
		client_open(g, m->count);
		return 0;
	case CONTROL_ORDER:
		if (h->ordered)
			h->ordered(h->user, g->index, m->body);
		return 0;
	case CONTROL_HEARTBEAT:
	case CONTROL_ROWS_SENT:
		break;
	}
	return err_set(e, ERR_INVALID, "a message of a node");
}

static int client_got_line(void *user, const char *text, size_t len, struct err *e)
{
	struct client_gateway *g = user;
	struct control_message m;
	int rc;

	if (control_parse(text, len, 0, &m, e) < 0)
		return -1;
	rc = client_handle(g, &m, e);
	control_message_fini(&m);
	return rc == 0 && !g->open ? err_set(e, ERR_CONFLICT, "closed by a hook") : rc;
}

static void client_got_bytes(struct upstream *u, const char *bytes, size_t n)
{
	struct client_gateway *g = loop_owner(u, struct client_gateway, control);
	struct err e = { 0 };

	if (control_feed(&g->lines, bytes, n, client_got_line, g, &e) < 0)
		client_close_control(g, e.msg, 1);
}

static void client_ended(struct upstream *u, const char *why)
{
	struct client_gateway *g = loop_owner(u, struct client_gateway, control);

	client_close_control(g, why ? why : "the gateway closed the connection", 0);
}

static const struct upstream_events client_events = {
	.body = client_got_bytes,
	.drain = client_drained,
	.over = client_ended,
};

static void client_open_control(struct client_gateway *g, const struct upstream_link *take_link,
				uint32_t number)
{
	struct tunnel_client *c = g->client;
	unsigned unacked_ms = CLIENT_UNACKED_MS;
	auto_buf struct buf line = { 0 };

	/* Heartbeats are sent all the time, so this notices a machine that vanished. */
	(void)setsockopt(take_link->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms,
			 sizeof(unacked_ms));
	g->number = number;
	g->open = 1;
	g->opened_ms = loop_now_ms();
	g->seq = g->lists = 0;
	g->lines.most = CONTROL_LINE_GATEWAY;
	upstream_init_raw(&g->control, c->loop, *take_link, &client_events);
	control_put_node_hello(&line, c->number, c->name, c->version, c->epoch);
	client_send(g, &line);
	client_heartbeat(g, loop_now_ms());
}

/* ---- handshakes ---- */

static void client_drop_dial(struct client_dial *d)
{
	*d->link = d->next;
	if (d->next)
		d->next->link = d->link;
	if (d->control)
		d->gateway->dialling_control = 0;
	free(d);
}

static void client_dialled(struct tunnel_dial *dial, const struct upstream_link *take_link,
			   uint32_t number, const char *why)
{
	struct client_dial *d = loop_owner(dial, struct client_dial, dial);
	struct client_gateway *g = d->gateway;
	int control = d->control;

	client_drop_dial(d);
	if (!take_link)
		client_failed(g, control, why);
	else if (control)
		client_open_control(g, take_link, number);
	else
		client_serve(g, take_link);
}

void tunnel_client_connected(struct tunnel_client *c, unsigned gateway, int take_fd)
{
	struct client_gateway *g = &c->gateways[gateway];
	int control;
	struct client_dial *d;

	if (gateway >= c->ngateways || c->stopped) {
		close(take_fd);
		return;
	}
	if (g->wanted)
		g->wanted--;
	control = !g->open && !g->dialling_control;
	if (!control && !g->links_wanted) { /* its control connection ended meanwhile */
		close(take_fd);
		return;
	}
	d = calloc(1, sizeof(*d));
	if (!d)
		abort();
	c->figures.connects++;
	d->gateway = g;
	d->control = control;
	if (control)
		g->dialling_control = 1;
	else
		g->links_wanted--;
	d->next = g->dials;
	d->link = &g->dials;
	if (d->next)
		d->next->link = &d->next;
	g->dials = d;
	d->dial.done = client_dialled;
	tunnel_dial_start(&d->dial, c->loop, take_fd, c->tls, c->version, control);
}

void tunnel_client_restart_dials(struct tunnel_client *c)
{
	for (unsigned i = 0; c && i < c->ngateways; i++) {
		struct client_gateway *g = &c->gateways[i];

		g->wanted = g->links_wanted = 0;
		if (!g->open && !g->dialling_control && !g->retry_at)
			g->retry_at = loop_now_ms();
	}
}

/* ---- time ---- */

static void client_tick_gateway(struct client_gateway *g, uint64_t now)
{
	if (g->wanted && now - g->wanted_ms >= TUNNEL_CONNECT_MS) {
		g->wanted = g->links_wanted = 0; /* the gateway requests links again */
		if (!g->open && !g->dialling_control && !g->retry_at)
			g->retry_at = now;
	}
	if (g->retry_at && now >= g->retry_at) {
		g->retry_at = 0;
		client_request(g);
	}
	if (g->open && now >= g->heartbeat_at)
		client_heartbeat(g, now);
}

static void client_tick(struct timer *t)
{
	struct tunnel_client *c = loop_owner(t, struct tunnel_client, tick);
	uint64_t now = loop_now_ms();

	for (unsigned i = 0; i < c->ngateways; i++)
		client_tick_gateway(&c->gateways[i], now);
	timer_set(&c->tick, CLIENT_TICK_MS);
}

/* ---- life ---- */

struct tunnel_client *tunnel_client_new(struct loop *l, struct http_server *server,
					const struct tunnel_client_conf *conf,
					const struct tunnel_client_hooks *hooks)
{
	struct tunnel_client *c =
		calloc(1, sizeof(*c) + conf->gateways * sizeof(struct client_gateway));

	if (!c)
		abort();
	c->loop = l;
	c->server = server;
	c->hooks = *hooks;
	c->number = conf->number;
	c->tls = conf->tls;
	c->ngateways = conf->gateways;
	snprintf(c->name, sizeof(c->name), "%s", conf->name);
	snprintf(c->version, sizeof(c->version), "%s", conf->version);
	timer_init(&c->tick, l, client_tick);
	timer_set(&c->tick, CLIENT_TICK_MS);
	for (unsigned i = 0; i < c->ngateways; i++) {
		c->gateways[i].client = c;
		c->gateways[i].index = i;
		c->gateways[i].retry_ms = TUNNEL_RETRY_MS;
		client_request(&c->gateways[i]);
	}
	return c;
}

void tunnel_client_set_tls(struct tunnel_client *c, struct ssl_ctx_st *tls)
{
	c->tls = tls;
}

void tunnel_client_set_epoch(struct tunnel_client *c, uint64_t epoch)
{
	c->epoch = epoch;
}

int tunnel_client_send_rows(struct tunnel_client *c, unsigned gateway, uint64_t last,
			    const struct json_t *rows)
{
	struct client_gateway *g = &c->gateways[gateway];
	auto_buf struct buf line = { 0 };

	if (gateway >= c->ngateways || !g->greeted || g->full)
		return 0;
	control_put_rows(&line, last, rows);
	if (line.len > CONTROL_LINE_NODE)
		return 0;
	client_send(g, &line);
	return 1;
}

void tunnel_client_stop(struct tunnel_client *c)
{
	if (!c)
		return;
	c->stopped = 1;
	timer_clear(&c->tick);
	for (unsigned i = 0; i < c->ngateways; i++) {
		struct client_gateway *g = &c->gateways[i];

		while (g->dials) {
			tunnel_dial_stop(&g->dials->dial);
			client_drop_dial(g->dials);
		}
		client_close_control(g, "this server stops", 0);
	}
}

void tunnel_client_free(struct tunnel_client *c)
{
	if (!c)
		return;
	tunnel_client_stop(c);
	timer_fini(&c->tick);
	free(c);
}

struct tunnel_client_figures tunnel_client_figures(const struct tunnel_client *c)
{
	struct tunnel_client_figures f = c->figures;

	f.gateways = c->ngateways;
	for (unsigned i = 0; i < c->ngateways; i++) {
		f.connected += c->gateways[i].greeted;
		f.links += c->gateways[i].nlinks;
		for (const struct client_link *l = c->gateways[i].links; l; l = l->next)
			f.busy += l->busy != 0;
	}
	return f;
}
