/* tunnel_node_control.c - the control connection of a node to one gateway. See tunnel_node.h. */
#include "cluster/tunnel_node_internal.h"
#include "cluster/tunnel.h"
#include "base/log.h"

#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

void tunnel_client_close_control(struct client_gateway *g, const char *why, int is_error)
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
	tunnel_client_retry_later(g);
	/* Its server was replaced: requests wait for this node. */
	if (loop_now_ms() - g->opened_ms >= CLIENT_HEALTHY_MS)
		g->retry_at = loop_now_ms() + CLIENT_RETURN_MS;
}

void tunnel_client_put(struct client_gateway *g, const struct buf *line)
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

void tunnel_client_heartbeat(struct client_gateway *g, uint64_t now)
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
	tunnel_client_put(g, &line);
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
		tunnel_client_open_links(g, m->count);
		return 0;
	case CONTROL_ORDER:
		if (h->ordered)
			h->ordered(h->user, g->index, m->body);
		return 0;
	case CONTROL_CERTIFICATE:
		if (h->certificate)
			h->certificate(h->user, m->is_refused ? NULL : json_string_value(m->body),
				       m->is_refused ? json_string_value(m->body) : NULL);
		return 0;
	case CONTROL_RENEW:
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
		tunnel_client_close_control(g, e.msg, 1);
}

static void client_ended(struct upstream *u, const char *why)
{
	struct client_gateway *g = loop_owner(u, struct client_gateway, control);

	tunnel_client_close_control(g, why ? why : "the gateway closed the connection", 0);
}

static const struct upstream_events client_events = {
	.body = client_got_bytes,
	.drain = client_drained,
	.over = client_ended,
};

void tunnel_client_open_control(struct client_gateway *g, const struct upstream_link *take_link,
				uint32_t number)
{
	struct tunnel_client *c = g->client;
	unsigned unacked_ms = TUNNEL_UNACKED_MS;
	auto_buf struct buf line = { 0 };

	/* Heartbeats are sent all the time, so this notices a machine that vanished, and a connection on which
	 * only packets to this node are dropped: the gateway would count its heartbeats without end. */
	(void)setsockopt(take_link->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms,
			 sizeof(unacked_ms));
	g->number = number;
	g->open = 1;
	g->opened_ms = loop_now_ms();
	g->seq = g->lists = 0;
	g->lines.most = CONTROL_LINE_GATEWAY;
	upstream_init_raw(&g->control, c->loop, *take_link, &client_events);
	control_put_node_hello(&line, c->number, c->name, c->version, c->epoch);
	tunnel_client_put(g, &line);
	tunnel_client_heartbeat(g, loop_now_ms());
}
