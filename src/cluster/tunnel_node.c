/* tunnel_node.c - see tunnel_node.h. */
#include "cluster/tunnel_node_internal.h"
#include "cluster/tunnel.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- connecting ---- */

static void client_request(struct client_gateway *g)
{
	g->wanted++;
	g->wanted_ms = loop_now_ms();
	g->client->hooks.connect(g->client->hooks.user, g->index);
}

void tunnel_client_retry_later(struct client_gateway *g)
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
		tunnel_client_retry_later(g);
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

void tunnel_client_open_links(struct client_gateway *g, unsigned count)
{
	unsigned have = g->nlinks + g->links_wanted;

	for (; count > 0 && have < TUNNEL_LINKS; count--, have++) {
		g->links_wanted++;
		client_request(g);
	}
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
		tunnel_client_open_control(g, take_link, number);
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
	tunnel_dial_start(&d->dial, c->loop, take_fd, c->tls, c->version, c->machine, control);
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
		tunnel_client_heartbeat(g, now);
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
	snprintf(c->machine, sizeof(c->machine), "%s", conf->machine ? conf->machine : "");
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
		return -1;
	tunnel_client_put(g, &line);
	return 1;
}

void tunnel_client_close(struct tunnel_client *c, unsigned gateway, const char *why)
{
	if (gateway < c->ngateways)
		tunnel_client_close_control(&c->gateways[gateway], why, 1);
}

int tunnel_client_send_renew(struct tunnel_client *c, const char *request)
{
	auto_buf struct buf line = { 0 };

	control_put_renew(&line, request);
	for (unsigned i = 0; i < c->ngateways; i++) {
		if (!c->gateways[i].greeted || c->gateways[i].full)
			continue;
		tunnel_client_put(&c->gateways[i], &line);
		return 1;
	}
	return 0;
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
		tunnel_client_close_control(g, "this server stops", 0);
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
		f.connected += c->gateways[i].open;
		f.links += c->gateways[i].nlinks;
		for (const struct client_link *l = c->gateways[i].links; l; l = l->next)
			f.busy += l->busy != 0;
	}
	return f;
}
