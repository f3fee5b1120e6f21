/* tunnel_control.c - the control connection of one node, on a gateway. See tunnel.h. */
#include "cluster/tunnel_internal.h"
#include "base/log.h"

#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

/* ---- sending ---- */

void tunnel_send(struct tunnel_peer *p, const struct buf *lines)
{
	if (!p->open)
		return;
	if (upstream_body(&p->control, lines->p, lines->len) && !p->full) {
		p->full = 1;
		p->full_ms = loop_now_ms();
	}
}

void tunnel_send_kept(struct tunnel_peer *p)
{
	auto_buf struct buf line = { 0 };

	if (!p->rows_kept || p->full || !p->open)
		return;
	control_put_rows_kept(&line, p->rows_kept);
	p->rows_kept = 0;
	tunnel_send(p, &line);
}

static void tunnel_drained(struct upstream *u)
{
	struct tunnel_peer *p = loop_owner(u, struct tunnel_peer, control);

	p->full = 0;
	tunnel_send_kept(p);
	tunnel_ask_for_links(p);
}

/* ---- the end ---- */

void tunnel_close_control(struct tunnel_peer *p, const char *why)
{
	int greeted = p->hello;

	if (!p->open)
		return;
	upstream_close(&p->control);
	buf_fini(&p->lines.line);
	p->open = p->hello = p->full = 0;
	p->node.greeted = 0;
	p->rows_kept = 0;
	p->rows_ahead = p->opening = 0;
	if (p->node.state == TUNNEL_UP && !p->tunnels->leaving)
		tunnel_set_state(p, TUNNEL_UNREACHABLE, loop_now_ms());
	if (greeted && p->tunnels->hooks.down)
		p->tunnels->hooks.down(p->tunnels->hooks.user, &p->node, why);
}

void tunnel_reject(struct tunnel_peer *p, const char *why)
{
	p->tunnels->figures.closed_for_error++;
	log_warn("tunnel of a node closed", LOG_U("node", p->node.number), LOG_S("why", why));
	tunnel_close_control(p, why);
}

static void tunnel_ended(struct upstream *u, const char *why)
{
	struct tunnel_peer *p = loop_owner(u, struct tunnel_peer, control);
	int broke = why != NULL;

	why = p->lines.line.len ? "the connection ended within a message"
	      : why             ? why
				: "the node closed the connection";
	log_info("tunnel of a node ended", LOG_U("node", p->node.number), LOG_S("why", why));
	tunnel_close_control(p, why);
	/* Where its machine or the link has failed, heartbeats end first. */
	p->ended = loop_now_ms() - p->node.heartbeat_ms < TUNNEL_UNACKED_MS;
	if (broke) /* the other connections lead the same way: a request on one would wait without end */
		tunnel_close_links(p);
}

/* ---- messages ---- */

static int tunnel_got_hello(struct tunnel_peer *p, const struct control_message *m, struct err *e)
{
	struct tunnels *t = p->tunnels;

	if (p->hello)
		return err_set(e, ERR_INVALID, "a second hello");
	if (m->number != p->node.number)
		return err_set(e, ERR_DENIED,
			       "the hello has the number %" PRIu32 ", the certificate %" PRIu32,
			       m->number, p->node.number);
	if (control_check_version(t->version, m->version, e) < 0)
		return -1;
	p->hello = 1;
	memcpy(p->node.name, m->name, sizeof(p->node.name));
	memcpy(p->node.version, m->version, sizeof(p->node.version));
	p->ended = 0; /* not before: callers wait for the hello of a new connection, too */
	tunnel_set_state(p, TUNNEL_UP, loop_now_ms());
	p->node.heartbeat_ms = loop_now_ms();
	log_info("node connected", LOG_U("node", p->node.number), LOG_S("name", p->node.name),
		 LOG_S("version", p->node.version), LOG_S("peer", p->node.peer));
	tunnel_ask_for_links(p);
	if (t->hooks.up)
		t->hooks.up(t->hooks.user, &p->node, m->epoch);
	else
		tunnels_greet(t, p->node.number, m->epoch, NULL);
	return 0;
}

/* Lists that are not in a heartbeat are unchanged. */
static void tunnel_keep_figures(struct control_figures *now, struct control_message *m)
{
	struct control_figures next = m->figures;

	if (!m->has_templates) {
		next.templates = now->templates;
		next.ntemplates = now->ntemplates;
		now->templates = NULL;
	}
	if (!m->has_labels) {
		next.labels = now->labels;
		next.nlabels = now->nlabels;
		now->labels = NULL;
	}
	control_figures_fini(now);
	*now = next;
	memset(&m->figures, 0, sizeof(m->figures));
}

/* 0: TCP has sent earlier lines to the node again, and none has arrived since. Where only packets to the node are dropped, its
 * heartbeats still come until it closes the connection; each acknowledgement that cannot arrive would postpone rule 4. */
static int tunnel_arrives(const struct tunnel_peer *p)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);

	return getsockopt(p->control.link.fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0 ||
	       !info.tcpi_retransmits;
}

static int tunnel_got_heartbeat(struct tunnel_peer *p, struct control_message *m, struct err *e)
{
	struct tunnels *t = p->tunnels;
	auto_buf struct buf line = { 0 };

	if (m->seq <= p->last_seq)
		return err_set(e, ERR_INVALID,
			       "heartbeat %" PRIu64 " came after heartbeat %" PRIu64, m->seq,
			       p->last_seq);
	p->last_seq = m->seq;
	tunnel_keep_figures(&p->node.figures, m);
	p->node.heartbeat_ms = loop_now_ms();
	p->node.heartbeats++;
	t->figures.heartbeats++;
	if (!p->node.greeted || p->full || !tunnel_arrives(p) ||
	    (t->hooks.may_acknowledge && !t->hooks.may_acknowledge(t->hooks.user, &p->node)))
		return 0;
	control_put_ack(&line, m->seq);
	tunnel_send(p, &line);
	p->node.acknowledged++;
	t->figures.acknowledged++;
	return 0;
}

static int tunnel_got_rows(struct tunnel_peer *p, const struct control_message *m, struct err *e)
{
	const struct tunnel_hooks *h = &p->tunnels->hooks;

	if (!h->rows)
		return err_set(e, ERR_INVALID, "rows, which this gateway does not store");
	if (!p->node.greeted)
		return err_set(e, ERR_INVALID, "rows before the hello of the gateway");
	if (++p->rows_ahead > TUNNEL_ROWS_AHEAD)
		return err_set(e, ERR_LIMIT, "more than %d messages with rows before an answer",
			       TUNNEL_ROWS_AHEAD);
	return h->rows(p->tunnels->rows_user ? p->tunnels->rows_user : h->user, &p->node, m->body,
		       m->seq, e);
}

void tunnels_set_renew(struct tunnels *t, tunnels_renew *renew, void *user)
{
	t->renew = renew;
	t->renew_user = user;
}

void tunnels_send_certificate(struct tunnels *t, uint32_t number, const char *cert, const char *why)
{
	struct tunnel_peer *p = tunnels_peer(t, number);
	auto_buf struct buf line = { 0 };

	if (!p)
		return;
	p->renewing = 0;
	control_put_certificate(&line, cert, why);
	tunnel_send(p, &line);
}

static int tunnel_got_renew(struct tunnel_peer *p, const struct control_message *m)
{
	struct tunnels *t = p->tunnels;
	auto_buf struct buf line = { 0 };

	if (t->renew && !p->renewing) {
		p->renewing = 1;
		t->renew(t->renew_user, p->node.number, json_string_value(m->body));
		return 0;
	}
	control_put_certificate(&line, NULL,
				t->renew ? "a request of this node is being answered"
					 : "this gateway signs no certificates");
	tunnel_send(p, &line);
	return 0;
}

static int tunnel_handle(struct tunnel_peer *p, struct control_message *m, struct err *e)
{
	if (m->kind == CONTROL_HELLO)
		return tunnel_got_hello(p, m, e);
	if (!p->hello)
		return err_set(e, ERR_INVALID, "the first message is not a hello");
	if (m->kind == CONTROL_HEARTBEAT)
		return tunnel_got_heartbeat(p, m, e);
	if (m->kind == CONTROL_RENEW)
		return tunnel_got_renew(p, m);
	return tunnel_got_rows(p, m, e);
}

static int tunnel_got_line(void *user, const char *text, size_t len, struct err *e)
{
	struct tunnel_peer *p = user;
	struct control_message m;
	int rc;

	if (control_parse(text, len, 1, &m, e) < 0)
		return -1;
	rc = tunnel_handle(p, &m, e);
	control_message_fini(&m);
	if (rc == 0 && !p->open)
		return err_set(e, ERR_CONFLICT, "a hook has closed the connection");
	return rc;
}

static void tunnel_got_bytes(struct upstream *u, const char *bytes, size_t n)
{
	struct tunnel_peer *p = loop_owner(u, struct tunnel_peer, control);
	struct err e = { 0 };

	if (control_feed(&p->lines, bytes, n, tunnel_got_line, p, &e) < 0 && p->open)
		tunnel_reject(p, e.msg);
}

static const struct upstream_events tunnel_events = {
	.body = tunnel_got_bytes,
	.drain = tunnel_drained,
	.over = tunnel_ended,
};

void tunnel_open_control(struct tunnel_peer *p, const char *peer, struct upstream_link take_link)
{
	unsigned unacked_ms = TUNNEL_UNACKED_MS;

	if (p->open) {
		log_warn("tunnel of a node replaced", LOG_U("node", p->node.number),
			 LOG_S("peer", p->node.peer), LOG_S("by", peer));
		tunnel_close_control(p, "the node opened another control connection");
	}
	snprintf(p->node.peer, sizeof(p->node.peer), "%s", peer);
	p->node.reconnects += p->node.heartbeats > 0;
	/* Rule 4 counts from the last acknowledgement: a node whose machine is gone must not keep this open. */
	(void)setsockopt(take_link.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms,
			 sizeof(unacked_ms));
	p->last_seq = 0;
	p->expected = 0;
	p->open = 1;
	p->opened_ms = loop_now_ms();
	upstream_init_raw(&p->control, p->tunnels->loop, take_link, &tunnel_events);
}
