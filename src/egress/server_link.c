/* server_link.c - the connections of egress to servers: their requests, reports and totals for them.
 * Frames for a server are queued while its socket is full. */
#include "base/cleanup.h"
#include "egress/approval.h"
#include "egress/proxy.h"
#include "wire/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { HELD_SECONDS = 2, TEXT = 300 };

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
void egress_send_totals(struct timer *t)
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

static void egress_decide(struct egress *x, const struct wire_egress_decide *f)
{
	struct egress_endpoint *w = memchr(f->id, 0, WIRE_ID) ? *egress_find(x, f->id) : NULL;

	if (w)
		approval_decide(w, f->request, (int)f->allow);
}

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

void egress_servers_fini(struct egress *x)
{
	while (x->links)
		link_gone(x->links);
	while (x->first)
		drop_frame(x);
}
