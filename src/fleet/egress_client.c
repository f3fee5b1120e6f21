/* egress_client.c - see egress_client.h. */
#include "fleet/egress_client.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "fleet/box.h"
#include "fleet/box_link.h"
#include "fleet/box_secrets.h"
#include "secret/vault.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { AGAIN_MS = 500, TRIES = 5 };

int egress_client_asked(const struct box *b)
{
	json_t *all = b->row.network ? json_loads(b->row.network, 0, NULL) : NULL, *line;
	int asked = 0;
	size_t i;

	json_array_foreach(all, i, line)
		asked |= !box_link_is(json_string_value(line));
	json_decref(all);
	return asked;
}

int egress_client_wanted(const struct box *b)
{
	return (b->row.network && strcmp(b->row.network, "[]") != 0) || b->registries;
}

/* ---- frames of egress ---- */

static json_t *text_at(const char **at, const char *end)
{
	const char *nul = *at < end ? memchr(*at, 0, (size_t)(end - *at)) : NULL;
	json_t *text;

	if (!nul)
		return json_string("");
	text = json_stringn(*at, (size_t)(nul - *at));
	*at = nul + 1;
	return text ? text : json_string("?"); /* not UTF-8, which a valid host always is */
}

static void take_report(struct egress_client *g, const struct wire_egress_report *f, size_t len)
{
	const char *at = (const char *)(f + 1), *end = (const char *)f + len;
	char id[WIRE_ID];
	struct box *b;
	json_t *doc;

	snprintf(id, sizeof(id), "%.*s", WIRE_ID - 1, f->id);
	b = fleet_find(g->fleet, id);
	if (!b) /* the box has ended in the meantime */
		return;
	doc = json_object();
	json_object_set_new(doc, "host", text_at(&at, end));
	json_object_set_new(doc, "port", json_integer(f->port));
	json_object_set_new(doc, "rule", text_at(&at, end));
	json_object_set_new(doc, "verdict", text_at(&at, end));
	json_object_set_new(doc, "why", text_at(&at, end));
	json_object_set_new(doc, "bytes_in", json_integer((json_int_t)f->bytes_in));
	json_object_set_new(doc, "bytes_out", json_integer((json_int_t)f->bytes_out));
	json_object_set_new(doc, "ms", json_integer(f->ms));
	json_object_set_new(doc, "began", json_time(f->began_ns));
	json_object_set_new(doc, "began_ns", json_integer((json_int_t)f->began_ns));
	if (!b->way.records)
		b->way.records = json_array();
	json_array_append_new(b->way.records, doc);
	if (json_array_size(b->way.records) > EGRESS_CLIENT_RECORDS)
		json_array_remove(b->way.records, 0);
	b->way.bytes_in = f->total_in;
	b->way.bytes_out = f->total_out;
	b->way.connections++;
	b->way.refused += strcmp(json_string_value(json_object_get(doc, "verdict")), "ok") != 0;
	box_touch(b);
}

static void take_held(struct egress_client *g, const struct wire_egress_list *f)
{
	char id[WIRE_ID];
	struct box *b;

	snprintf(id, sizeof(id), "%.*s", WIRE_ID - 1, f->id);
	if (g->told) {
		b = fleet_find(g->fleet, id);
		if (b) {
			b->way.bytes_in = f->bytes_in;
			b->way.bytes_out = f->bytes_out;
		}
		return;
	}
	json_object_set_new(g->held, id,
			    json_pack("[I, I]", (json_int_t)f->bytes_in, (json_int_t)f->bytes_out));
}

static void all_held(struct egress_client *g)
{
	struct fleet *f = g->fleet;

	g->told = 1;
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		egress_client_open(b);
	egress_client_sweep(g);
}

static void egress_refused(struct egress_client *g, const struct wire_error *f)
{
	struct fleet *fl = g->fleet;
	struct err e;

	wire_error_read(f, &e);
	if (e.kind == ERR_CONFLICT) /* another server has opened one for this box */
		return;
	log_warn("egress rejected an endpoint", LOG_E(&e));
	for (struct box *b = fleet_next(fl, NULL); b; b = fleet_next(fl, b))
		if (b->way.open && b->way.ref == f->head.ref) {
			b->way.open = 0;
			snprintf(b->way.why, sizeof(b->way.why), "%.100s", e.msg);
		}
}

static void egress_says(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	struct egress_client *g = loop_owner(p, struct egress_client, post);

	(void)fd;
	if (f->type == WIRE_EGRESS_REPORT)
		take_report(g, (const struct wire_egress_report *)f, len);
	else if (f->type == WIRE_EGRESS_LIST)
		take_held(g, (const struct wire_egress_list *)f);
	else if (f->type == WIRE_DONE && !g->told)
		all_held(g);
	else if (f->type == WIRE_EGRESS_LINK)
		box_link_open(g, (const struct wire_egress_link *)f, len);
	else if (f->type == WIRE_ERROR)
		egress_refused(g, (const struct wire_error *)f);
}

/* Egress has died with all its endpoints: they are opened again in the next one. */
static void egress_left(struct frame_conn *p, const struct err *why)
{
	struct egress_client *g = loop_owner(p, struct egress_client, post);
	struct fleet *f = g->fleet;

	(void)why;
	log_warn("egress has disconnected");
	g->told = g->unsure = 0;
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		b->way.open = 0;
	timer_set(&g->again, AGAIN_MS / 10);
}

static void ask_again(struct timer *t)
{
	struct egress_client *g = loop_owner(t, struct egress_client, again);

	if (!g->need || (g->post.fd >= 0 && !g->unsure))
		return;
	/* On a new connection egress first sends the list of its endpoints. */
	frame_conn_fini(&g->post);
	g->told = g->unsure = 0;
	g->need(g);
}

/* ---- start, end ---- */

void egress_client_init(struct egress_client *g, struct fleet *f)
{
	*g = (struct egress_client){ .fleet = f, .post.fd = -1 };
	timer_init(&g->again, f->loop, ask_again);
}

void egress_client_begin(struct egress_client *g)
{
	if (g->need)
		g->need(g);
}

void egress_client_connect(struct egress_client *g, int take_fd)
{
	frame_conn_fini(&g->post);
	json_decref(g->held);
	g->held = json_object();
	g->told = 0;
	frame_conn_init(&g->post, g->fleet->loop, take_fd);
	g->post.on_frame = egress_says;
	g->post.on_gone = egress_left;
}

static void send_close(struct egress_client *g, const char *id)
{
	struct wire_id f = { .head = sock_head(WIRE_EGRESS_CLOSE, 0) };

	snprintf(f.id, sizeof(f.id), "%s", id);
	frame_conn_send(&g->post, &f, sizeof(f), NULL, 0, -1);
}

void egress_client_sweep(struct egress_client *g)
{
	const char *id;
	json_t *figures;
	void *next;

	/* Another server may have created a box that this one does not know yet. */
	if (!g->told || !g->fleet->ready || !g->fleet->alone)
		return;
	/* Boxes that are still being restored stay in the list. */
	json_object_foreach_safe(g->held, next, id, figures)
	{
		if (fleet_find(g->fleet, id))
			continue;
		send_close(g, id);
		json_object_del(g->held, id);
	}
}

void egress_client_fini(struct egress_client *g)
{
	frame_conn_fini(&g->post);
	timer_fini(&g->again);
	json_decref(g->held);
	g->held = NULL;
}

/* ---- endpoints ---- */

static void hosts_text(const struct box *b, struct buf *out)
{
	json_t *all = b->row.network ? json_loads(b->row.network, 0, NULL) : NULL, *host;
	size_t i;

	json_array_foreach(all, i, host)
		buf_printf(out, "%s%s", out->len ? "\n" : "", json_string_value(host));
	json_decref(all);
	for (const char *const *r = b->registries ? b->fleet->conf.registries : NULL; r && *r; r++)
		buf_printf(out, "%s%s", out->len ? "\n" : "", *r);
}

/* Before the endpoint is opened, so that its first connection finds them. */
static void send_secrets(struct box *b)
{
	struct egress_client *g = &b->fleet->egress_client;
	struct wire_id f = { .head = sock_head(WIRE_EGRESS_SECRETS, ++g->refs) };
	auto_secret struct buf parts = { 0 };

	if (!box_secrets_any(b) || g->post.fd < 0)
		return;
	snprintf(f.id, sizeof(f.id), "%s", b->row.id);
	box_secrets_for_egress(b, &parts);
	frame_conn_send(&g->post, &f, sizeof(f), parts.p, parts.len, -1);
}

static void egress_listens(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct box *b = loop_owner(x, struct box, way.ask);
	struct egress_client *g = &b->fleet->egress_client;
	struct wire_egress_open ask = { .head = sock_head(WIRE_EGRESS_OPEN, ++g->refs),
					.used_in = b->way.bytes_in,
					.used_out = b->way.bytes_out };
	auto_buf struct buf hosts = { 0 };

	(void)len;
	init_conn_remove_call(x);
	if (f->type != WIRE_FD || *fd < 0 || !g->told)
		return; /* egress is not connected: this is done again when it is */
	snprintf(ask.id, sizeof(ask.id), "%s", b->row.id);
	hosts_text(b, &hosts);
	send_secrets(b);
	b->way.open =
		frame_conn_send(&g->post, &ask, sizeof(ask), hosts.p, hosts.len, steal_fd(fd)) == 0;
	b->way.ref = g->refs;
	b->way.tries = 0;
	b->way.why[0] = 0;
}

static void listens_not(struct init_call *x, const struct err *e)
{
	struct box *b = loop_owner(x, struct box, way.ask);
	struct egress_client *g = &b->fleet->egress_client;

	init_conn_remove_call(x);
	/* Probably another server was faster: then egress has the endpoint. Else a program of the
	 * box uses the port. */
	if (e->sys == EADDRINUSE && b->way.tries++ < TRIES) {
		g->unsure = 1;
		timer_set(&g->again, AGAIN_MS);
		return;
	}
	snprintf(b->way.why, sizeof(b->way.why), "%.100s", e->msg);
	log_warn("a box has no egress", LOG_S("box", b->row.id), LOG_E(e));
}

static void line_is_lost(struct init_call *x)
{
	(void)x;
}

static int was_held(struct egress_client *g, struct box *b)
{
	json_t *figures = json_object_get(g->held, b->row.id);

	if (!figures)
		return 0;
	b->way.bytes_in = (uint64_t)json_integer_value(json_array_get(figures, 0));
	b->way.bytes_out = (uint64_t)json_integer_value(json_array_get(figures, 1));
	json_object_del(g->held, b->row.id);
	b->way.open = 1;
	send_secrets(b);
	return 1;
}

void egress_client_open(struct box *b)
{
	static const struct init_call_ops on = { .answer = egress_listens,
						 .refused = listens_not,
						 .lost = line_is_lost };
	struct egress_client *g = &b->fleet->egress_client;

	if (!egress_client_wanted(b) || !g->told || b->way.open || b->way.ask.line ||
	    !init_conn_is_open(&b->line) || was_held(g, b))
		return;
	init_conn_request_port(&b->line, &b->way.ask, &on, WIRE_LISTEN, EGRESS_CLIENT_PORT);
}

/* An existing endpoint keeps its listening socket. */
void egress_client_change(struct box *b)
{
	struct egress_client *g = &b->fleet->egress_client;
	struct wire_egress_open ask = { .head = sock_head(WIRE_EGRESS_OPEN, 0) };
	auto_buf struct buf hosts = { 0 };

	if (!b->way.open) {
		egress_client_open(b);
		return;
	}
	if (!egress_client_wanted(b)) {
		send_close(g, b->row.id);
		b->way.open = 0;
		return;
	}
	b->way.ref = ask.head.ref = ++g->refs;
	snprintf(ask.id, sizeof(ask.id), "%s", b->row.id);
	hosts_text(b, &hosts);
	send_secrets(b);
	if (frame_conn_send(&g->post, &ask, sizeof(ask), hosts.p, hosts.len, -1) < 0)
		b->way.open = 0;
}

void egress_client_close(struct box *b)
{
	if (egress_client_wanted(b) && b->fleet->egress_client.post.fd >= 0)
		send_close(&b->fleet->egress_client, b->row.id);
	b->way.open = 0;
}

void egress_client_drop(struct box *b)
{
	json_decref(b->way.records);
	b->way.records = NULL;
}

json_t *egress_client_json(const struct box *b)
{
	json_t *registries = json_array();

	for (const char *const *r = b->registries ? b->fleet->conf.registries : NULL; r && *r; r++)
		json_array_append_new(registries, json_string(*r));
	return json_pack("{s:o, s:o, s:o, s:b, s:o, s:I, s:I, s:I, s:I, s:o}", "allow",
			 box_link_others_json(b->row.network), "links",
			 box_link_json(b->row.network), "registries", registries, "open", b->way.open, "why",
			 b->way.why[0] ? json_string(b->way.why) : json_null(), "bytes_in",
			 (json_int_t)b->way.bytes_in, "bytes_out", (json_int_t)b->way.bytes_out,
			 "connections", (json_int_t)b->way.connections, "refused",
			 (json_int_t)b->way.refused, "recent",
			 b->way.records ? json_deep_copy(b->way.records) : json_array());
}

json_t *egress_client_since(const struct box *b, int64_t since_ns)
{
	json_t *all = json_array(), *one;
	size_t i;

	json_array_foreach(b->way.records, i,
			   one) if (json_integer_value(json_object_get(one, "began_ns")) >=
				    since_ns) json_array_append_new(all, json_deep_copy(one));
	return all;
}
