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
#include "fleet/box_network.h"
#include "store/network.h"
#include "wire/sock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	AGAIN_MS = 500,
	TRIES = 5,
	SAVE_MS = 1000,
	EVENT_MS = 6000, /* a refusal is an event: one in this time, after a burst of EVENTS */
	EVENTS = 10,
};

int egress_client_asked(const struct box *b)
{
	return box_network_reaches(b->row.network);
}

static int way_has_own(const struct box *b)
{
	return egress_client_asked(b) || box_link_some(b->row.network);
}

int egress_client_wanted(const struct box *b)
{
	return b->registries || way_has_own(b);
}

/* ---- totals of bytes ---- */

static void egress_client_load(struct box *b)
{
	struct store_network_usage u;
	struct err e;

	if (b->is_known || b->way.loaded ||
	    store_network_usage_get(b->fleet->store, b->row.id, &u, &e) < 0)
		return;
	b->way.loaded = 1;
	if (b->way.bytes_in < u.bytes_in)
		b->way.bytes_in = u.bytes_in;
	if (b->way.bytes_out < u.bytes_out)
		b->way.bytes_out = u.bytes_out;
	if (b->way.dns_queries < u.dns_queries)
		b->way.dns_queries = u.dns_queries;
}

static void egress_client_save(struct timer *t)
{
	struct egress_client *g = loop_owner(t, struct egress_client, save);
	struct fleet *f = g->fleet;
	struct err e;

	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b)) {
		struct store_network_usage u = { .bytes_in = b->way.bytes_in,
						 .bytes_out = b->way.bytes_out,
						 .dns_queries = b->way.dns_queries };

		if (!b->way.unsaved)
			continue;
		if (store_network_usage_put(f->store, b->row.id, &u, &e) < 0) {
			log_warn("cannot store the network usage of a box", LOG_S("box", b->row.id),
				 LOG_E(&e));
			timer_set(t, SAVE_MS);
			return;
		}
		b->way.unsaved = 0;
	}
}

/* Totals of the box; they never decrease. */
static void egress_client_raise(struct box *b, uint64_t bytes_in, uint64_t bytes_out,
				uint64_t dns_queries)
{
	struct egress_client *g = &b->fleet->egress_client;

	if (b->way.bytes_in >= bytes_in && b->way.bytes_out >= bytes_out &&
	    b->way.dns_queries >= dns_queries)
		return;
	if (b->way.dns_queries < dns_queries)
		b->way.dns_queries = dns_queries;
	if (b->way.bytes_in < bytes_in)
		b->way.bytes_in = bytes_in;
	if (b->way.bytes_out < bytes_out)
		b->way.bytes_out = bytes_out;
	b->way.unsaved = 1;
	if (!timer_pending(&g->save))
		timer_set(&g->save, SAVE_MS);
}

/* The same, of a report: the difference was transferred while this server runs. */
static void egress_client_count(struct box *b, uint64_t bytes_in, uint64_t bytes_out,
				uint64_t dns_queries)
{
	struct fleet_figures *f = &b->fleet->figures;

	if (bytes_in > b->way.bytes_in)
		f->network_in += bytes_in - b->way.bytes_in;
	if (bytes_out > b->way.bytes_out)
		f->network_out += bytes_out - b->way.bytes_out;
	egress_client_raise(b, bytes_in, bytes_out, dns_queries);
}

static int way_is_answered(const struct egress_client *g, uint32_t ref)
{
	return (int32_t)(g->answered - ref) >= 0;
}

/* Egress has not applied the last change of this box yet. */
static int way_is_changing(const struct box *b)
{
	const struct egress_client *g = &b->fleet->egress_client;

	return !b->way.ended &&
	       (b->way.ask.line || b->way.capturing || !way_is_answered(g, b->way.ref) ||
		!way_is_answered(g, b->way.capture_ref));
}

/* Ends the waits that have nothing to wait for. */
static void way_end_waits(struct egress_client *g)
{
	struct egress_client_wait *w, *due = NULL, **at = &g->waits, **last = &due;

	while ((w = *at)) {
		struct box *b = fleet_find(g->fleet, w->box);

		if (b && way_is_changing(b)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = NULL;
		*last = w;
		last = &w->next;
	}
	while ((w = due)) {
		due = w->next;
		w->applied(w);
	}
}

static void way_settled(struct box *b)
{
	struct egress_client *g = &b->fleet->egress_client;
	void (*settled)(struct box * b) = b->way.settled;

	b->way.settled = NULL;
	if (settled)
		settled(b);
	way_end_waits(g);
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

static struct box *egress_client_box(struct egress_client *g, const char *from)
{
	char id[WIRE_ID];

	snprintf(id, sizeof(id), "%.*s", WIRE_ID - 1, from);
	return fleet_find(g->fleet, id); /* NULL: the box has ended in the meantime */
}

static void egress_client_add_record(struct box *b, json_t *take_doc)
{
	json_object_set_new(take_doc, "seq", json_integer((json_int_t)++b->way.connections));
	if (!b->way.records)
		b->way.records = json_array();
	json_array_append_new(b->way.records, take_doc);
	if (json_array_size(b->way.records) > EGRESS_CLIENT_RECORDS)
		json_array_remove(b->way.records, 0);
}

static int egress_client_is_refusal(const char *verdict)
{
	static const char *const all[] = { "denied", "internal", "bad", "budget" };

	for (unsigned i = 0; i < ARRAY_LEN(all); i++)
		if (!strcmp(verdict, all[i]))
			return 1;
	return 0;
}

/* A program may try again and again: events are bounded, the log and the counters have all. */
static void egress_client_tell_refusal(struct box *b, const json_t *doc)
{
	static const char *const shown[] = { "host", "port", "verdict", "why", "hint" };
	uint64_t now = loop_now_ms();
	json_t *data;

	if (b->way.event_ms > now + (uint64_t)EVENT_MS * (EVENTS - 1)) {
		b->way.events_left_out++;
		return;
	}
	b->way.event_ms = (b->way.event_ms > now ? b->way.event_ms : now) + EVENT_MS;
	data = json_object();
	for (unsigned i = 0; i < ARRAY_LEN(shown); i++)
		json_object_set(data, shown[i], json_object_get(doc, shown[i]));
	json_object_set_new(data, "left_out", json_integer((json_int_t)b->way.events_left_out));
	b->way.events_left_out = 0;
	fleet_emit(b->fleet, b->row.team, b->row.id, "network.refused", data);
}

static void take_report(struct egress_client *g, const struct wire_egress_report *f, size_t len)
{
	const char *at = (const char *)(f + 1), *end = (const char *)f + len, *verdict;
	struct box *b = egress_client_box(g, f->id);
	json_t *doc;

	if (!b)
		return;
	doc = json_object();
	json_object_set_new(doc, "host", text_at(&at, end));
	json_object_set_new(doc, "port", json_integer(f->port));
	json_object_set_new(doc, "rule", text_at(&at, end));
	json_object_set_new(doc, "verdict", text_at(&at, end));
	json_object_set_new(doc, "why", text_at(&at, end));
	json_object_set_new(doc, "hint", text_at(&at, end));
	json_object_set_new(doc, "bytes_in", json_integer((json_int_t)f->bytes_in));
	json_object_set_new(doc, "bytes_out", json_integer((json_int_t)f->bytes_out));
	json_object_set_new(doc, "ms", json_integer(f->ms));
	json_object_set_new(doc, "began", json_time(f->began_ns));
	json_object_set_new(doc, "began_ns", json_integer((json_int_t)f->began_ns));
	egress_client_add_record(b, json_incref(doc));
	egress_client_count(b, f->total_in, f->total_out, 0);
	verdict = json_string_value(json_object_get(doc, "verdict"));
	b->way.refused += strcmp(verdict, "ok") != 0;
	b->fleet->figures.network_refused += (uint64_t)egress_client_is_refusal(verdict);
	if (egress_client_is_refusal(verdict))
		egress_client_tell_refusal(b, doc);
	json_decref(doc);
	box_touch(b);
}

/* ---- requests for an approval ---- */

json_t *egress_client_requests(const struct box *b)
{
	return b->way.requests ? json_deep_copy(b->way.requests) : json_array();
}

static json_t *egress_client_find_request(const struct box *b, const char *id, size_t *out_at)
{
	json_t *one;
	size_t i;

	json_array_foreach(b->way.requests, i,
			   one) if (!strcmp(json_string_value(json_object_get(one, "id")), id))
	{
		*out_at = i;
		return one;
	}
	return NULL;
}

json_t *egress_client_request(const struct box *b, const char *id)
{
	size_t at;

	return egress_client_find_request(b, id, &at);
}

int egress_client_decide(struct box *b, const char *id, int allow, struct err *e)
{
	struct wire_egress_decide f = { .head = sock_head(WIRE_EGRESS_DECIDE, 0),
					.request = strtoull(id, NULL, 10),
					.allow = (uint32_t)allow };
	size_t at;

	snprintf(f.id, sizeof(f.id), "%s", b->row.id);
	if (frame_conn_send(&b->fleet->egress_client.post, &f, sizeof(f), NULL, 0, -1) < 0)
		return err_set(e, ERR_NOT_FOUND, "egress has ended, and the connection with it");
	if (egress_client_find_request(b, id, &at))
		json_array_remove(b->way.requests, at);
	return 0;
}

static void egress_client_add_request(struct box *b, const struct wire_egress_request *f,
				      json_t *take_host, const char *id)
{
	json_t *doc = json_pack("{s:s, s:o, s:I, s:o, s:o}", "id", id, "host", take_host, "port",
				(json_int_t)f->port, "began", json_time(f->began_ns), "expires",
				json_time(f->expires_ns));

	if (!b->way.requests)
		b->way.requests = json_array();
	if (json_array_size(b->way.requests) >= EGRESS_CLIENT_REQUESTS) { /* egress has the limit */
		json_decref(doc);
		return;
	}
	json_array_append(b->way.requests, doc);
	fleet_emit(b->fleet, b->row.team, b->row.id, "network.request", doc);
}

static void take_request(struct egress_client *g, const struct wire_egress_request *f, size_t len)
{
	const char *at = (const char *)(f + 1), *end = (const char *)f + len;
	struct box *b = egress_client_box(g, f->id);
	char id[24];
	size_t place;
	int known;

	if (!b)
		return;
	snprintf(id, sizeof(id), "%llu", (unsigned long long)f->request);
	known = egress_client_find_request(b, id, &place) != NULL;
	if (f->ended && known)
		json_array_remove(b->way.requests, place);
	else if (!f->ended && !known)
		egress_client_add_request(b, f, text_at(&at, end), id);
}

/* Egress has ended, and the kernel has reset the connections that waited in it. */
static void egress_client_lose_requests(struct box *b)
{
	json_t *one;
	size_t i;

	json_array_foreach(b->way.requests, i, one)
	{
		egress_client_add_record(
			b,
			json_pack("{s:O, s:O, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:O, s:I}", "host",
				  json_object_get(one, "host"), "port",
				  json_object_get(one, "port"), "rule", "", "verdict", "cut", "why",
				  "egress ended while the connection waited for an approval",
				  "hint", "", "bytes_in", 0, "bytes_out", 0, "ms", 0, "began",
				  json_object_get(one, "began"), "began_ns",
				  (json_int_t)fleet_now_ns()));
		b->way.refused++;
	}
	if (b->way.requests)
		json_array_clear(b->way.requests);
}

static void take_held(struct egress_client *g, const struct wire_egress_list *f)
{
	char id[WIRE_ID];

	snprintf(id, sizeof(id), "%.*s", WIRE_ID - 1, f->id);
	json_object_set_new(
		g->held, id,
		json_pack("[I, I, b, I]", (json_int_t)f->bytes_in, (json_int_t)f->bytes_out,
			  !!(f->head.flags & WIRE_EGRESS_CAPTURED), (json_int_t)f->dns_queries));
}

static void take_usage(struct egress_client *g, const struct wire_egress_list *f)
{
	struct box *b = egress_client_box(g, f->id);

	if (b)
		egress_client_count(b, f->bytes_in, f->bytes_out, f->dns_queries);
}

static void all_held(struct egress_client *g)
{
	struct fleet *f = g->fleet;

	g->told = 1;
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		egress_client_open(b);
	egress_client_sweep(g);
}

static void way_opaque(struct box *b, const struct err *e)
{
	b->way.transparent = 0;
	snprintf(b->way.opaque_why, sizeof(b->way.opaque_why), "%.110s", e->msg);
}

static void egress_refused(struct egress_client *g, const struct wire_error *f)
{
	struct fleet *fl = g->fleet;
	struct err e;

	wire_error_read(f, &e);
	if (e.kind == ERR_CONFLICT) /* another server has opened one for this box */
		return;
	log_warn("egress rejected an endpoint", LOG_E(&e));
	for (struct box *b = fleet_next(fl, NULL); b; b = fleet_next(fl, b)) {
		if (b->way.open && b->way.ref == f->head.ref) {
			b->way.open = 0;
			snprintf(b->way.why, sizeof(b->way.why), "%.100s", e.msg);
		}
		if (b->way.transparent && b->way.capture_ref == f->head.ref)
			way_opaque(b, &e);
	}
}

static void egress_says(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	struct egress_client *g = loop_owner(p, struct egress_client, post);

	(void)fd;
	if (f->type == WIRE_EGRESS_REPORT)
		take_report(g, (const struct wire_egress_report *)f, len);
	else if (f->type == WIRE_EGRESS_LIST && !g->told)
		take_held(g, (const struct wire_egress_list *)f);
	else if (f->type == WIRE_EGRESS_LIST)
		take_usage(g, (const struct wire_egress_list *)f);
	else if (f->type == WIRE_EGRESS_REQUEST)
		take_request(g, (const struct wire_egress_request *)f, len);
	else if (f->type == WIRE_DONE && !g->told)
		all_held(g);
	else if (f->type == WIRE_EGRESS_LINK)
		box_link_open(g, (const struct wire_egress_link *)f, len);
	else if (f->type == WIRE_ERROR)
		egress_refused(g, (const struct wire_error *)f);
	if (f->ref && (f->type == WIRE_DONE || f->type == WIRE_ERROR)) {
		g->answered = f->ref;
		way_end_waits(g);
	}
}

/* Egress has died with all its endpoints: they are opened again in the next one. */
static void egress_left(struct frame_conn *p, const struct err *why)
{
	struct egress_client *g = loop_owner(p, struct egress_client, post);
	struct fleet *f = g->fleet;

	(void)why;
	log_warn("egress has disconnected");
	g->told = g->unsure = 0;
	g->answered = g->refs; /* there will be no more answers */
	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b)) {
		b->way.open = b->way.transparent = 0;
		egress_client_lose_requests(b);
		way_settled(b);
	}
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
	timer_init(&g->save, f->loop, egress_client_save);
}

void egress_client_begin(struct egress_client *g)
{
	if (g->need)
		g->need(g);
}

void egress_client_connect(struct egress_client *g, int take_fd)
{
	frame_conn_fini(&g->post);
	g->generation++;
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
	timer_fini(&g->save);
	json_decref(g->held);
	g->held = NULL;
}

/* ---- endpoints ---- */

/* A box that installs packages for all teams is not restricted by the rules of one. */
static void egress_client_rules(const struct box *b, struct buf *out)
{
	auto_free char *team = NULL;
	struct err e;

	box_network_text(b->row.network, "", out);
	for (const char *const *r = b->registries ? b->fleet->conf.registries : NULL; r && *r; r++)
		buf_printf(out, "%s%s", out->len ? "\n" : "", *r);
	if (b->is_installer)
		return;
	if (store_network_rules_get(b->fleet->store, b->row.team, &team, &e) < 0) {
		log_error("cannot read the network rules of a team; nothing is permitted",
			  LOG_S("team", b->row.team), LOG_E(&e));
		buf_printf(out, "%steam only", out->len ? "\n" : "");
	}
	box_network_text(team, "team ", out);
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

static void way_captured(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct box *b = ctx;
	struct egress_client *g = &b->fleet->egress_client;
	struct wire_id ask = { .head = sock_head(WIRE_EGRESS_CAPTURE, 0) };

	(void)len;
	b->way.capturing = NULL;
	b->way.capture_ref = b->way.ref; /* until there is a capture, nothing more is awaited */
	if (!f) {
		way_opaque(b, e);
	} else if (b->way.open) { /* else egress has disconnected: this is done again */
		snprintf(ask.id, sizeof(ask.id), "%s", b->row.id);
		b->way.capture_ref = ask.head.ref = ++g->refs;
		b->way.transparent = 1;
		b->way.opaque_why[0] = 0;
		frame_conn_send(&g->post, &ask, sizeof(ask), NULL, 0, steal_fd(fd));
	}
	way_settled(b);
}

static void way_capture(struct box *b)
{
	if (!b->way.capturing)
		b->way.capturing =
			keeper_client_request_box(&b->fleet->keeper, WIRE_CAPTURE, 0,
						  box_keeper_id(b), WIRE_FD, way_captured, b);
}

static void egress_listens(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	struct box *b = loop_owner(x, struct box, way.ask);
	struct egress_client *g = &b->fleet->egress_client;
	struct wire_egress_open ask = { .head = sock_head(WIRE_EGRESS_OPEN, ++g->refs),
					.used_in = b->way.bytes_in,
					.used_out = b->way.bytes_out,
					.used_dns = b->way.dns_queries };
	auto_buf struct buf hosts = { 0 };

	(void)len;
	init_conn_remove_call(x);
	if (f->type != WIRE_FD || *fd < 0 || !g->told) {
		way_settled(b); /* egress is not connected: this is done again when it is */
		return;
	}
	snprintf(ask.id, sizeof(ask.id), "%s", b->row.id);
	egress_client_rules(b, &hosts);
	send_secrets(b);
	b->way.open =
		frame_conn_send(&g->post, &ask, sizeof(ask), hosts.p, hosts.len, steal_fd(fd)) == 0;
	b->way.ref = ask.head.ref; /* secrets have a later one */
	b->way.tries = 0;
	b->way.why[0] = 0;
	way_capture(b);
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
		way_settled(b);
		return;
	}
	snprintf(b->way.why, sizeof(b->way.why), "%.100s", e->msg);
	log_warn("a box has no egress", LOG_S("box", b->row.id), LOG_E(e));
	way_settled(b);
}

static void line_is_lost(struct init_call *x)
{
	way_settled(loop_owner(x, struct box, way.ask));
}

static int was_held(struct egress_client *g, struct box *b)
{
	json_t *figures = json_object_get(g->held, b->row.id);

	if (!figures)
		return 0;
	egress_client_raise(b, (uint64_t)json_integer_value(json_array_get(figures, 0)),
			    (uint64_t)json_integer_value(json_array_get(figures, 1)),
			    (uint64_t)json_integer_value(json_array_get(figures, 3)));
	b->way.transparent = json_is_true(json_array_get(figures, 2));
	json_object_del(g->held, b->row.id);
	b->way.open = 1;
	send_secrets(b);
	if (!b->way.transparent)
		way_capture(b);
	return 1;
}

void egress_client_open(struct box *b)
{
	static const struct init_call_ops on = { .answer = egress_listens,
						 .refused = listens_not,
						 .lost = line_is_lost };
	struct egress_client *g = &b->fleet->egress_client;

	if (!egress_client_wanted(b) || !g->told || b->way.open || b->way.ask.line ||
	    !init_conn_is_open(&b->line))
		return;
	egress_client_load(b);
	if (was_held(g, b))
		return;
	init_conn_request_port(&b->line, &b->way.ask, &on, WIRE_LISTEN, EGRESS_CLIENT_PORT);
}

int egress_client_await(struct box *b, void (*settled)(struct box *b))
{
	/* A box that may reach only registries does not wait: package managers use the proxy, and
	 * init opens its socket before it starts a program. */
	if ((!b->way.ask.line && !b->way.capturing) || !way_has_own(b))
		return 0;
	b->way.settled = settled;
	return 1;
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
	b->way.ref = ask.head.ref = ++g->refs;
	snprintf(ask.id, sizeof(ask.id), "%s", b->row.id);
	egress_client_rules(b, &hosts);
	send_secrets(b);
	if (frame_conn_send(&g->post, &ask, sizeof(ask), hosts.p, hosts.len, -1) < 0) {
		b->way.open = 0;
		g->answered = g->refs;
	}
	/* CLOSE has no answer: the rules above have one. */
	if (!egress_client_wanted(b)) {
		send_close(g, b->row.id);
		b->way.open = b->way.transparent = 0;
	}
}

int egress_client_await_change(struct box *b, struct egress_client_wait *w)
{
	struct egress_client *g = &b->fleet->egress_client;

	if (!way_is_changing(b))
		return 0;
	snprintf(w->box, sizeof(w->box), "%s", b->row.id);
	w->next = g->waits;
	g->waits = w;
	return 1;
}

void egress_client_cancel_wait(struct egress_client *g, struct egress_client_wait *w)
{
	for (struct egress_client_wait **at = &g->waits; *at; at = &(*at)->next)
		if (*at == w) {
			*at = w->next;
			return;
		}
}

void egress_client_close(struct box *b)
{
	if (egress_client_wanted(b) && b->fleet->egress_client.post.fd >= 0)
		send_close(&b->fleet->egress_client, b->row.id);
	b->way.open = b->way.transparent = 0;
	b->way.settled = NULL; /* its waiters get the end of the box */
}

void egress_client_drop(struct box *b)
{
	keeper_client_cancel(&b->fleet->keeper, b->way.capturing);
	b->way.capturing = NULL;
	json_decref(b->way.records);
	json_decref(b->way.requests);
	b->way.records = b->way.requests = NULL;
	b->way.ended = 1;
	way_end_waits(&b->fleet->egress_client);
}

struct box *egress_client_change_team(struct fleet *f, const char *team)
{
	struct box *last = NULL;

	for (struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		if (!strcmp(b->row.team, team) && egress_client_wanted(b)) {
			egress_client_change(b);
			last = b;
		}
	return last;
}

json_t *egress_client_json(const struct box *b)
{
	json_t *doc = box_network_json(b->row.network, fleet_now_ns() / 1000000000),
	       *registries = json_array();
	auto_free char *team = NULL;
	struct err e;

	json_object_set_new(doc, "team",
			    store_network_rules_get(b->fleet->store, b->row.team, &team, &e) == 0
				    ? box_network_team_json(team)
				    : json_null());
	for (const char *const *r = b->registries ? b->fleet->conf.registries : NULL; r && *r; r++)
		json_array_append_new(registries, json_string(*r));
	json_object_set_new(doc, "registries", registries);
	json_object_set_new(doc, "open", json_boolean(b->way.open));
	json_object_set_new(doc, "why", b->way.why[0] ? json_string(b->way.why) : json_null());
	json_object_set_new(doc, "transparent", json_boolean(b->way.transparent));
	json_object_set_new(doc, "transparent_why",
			    b->way.opaque_why[0] ? json_string(b->way.opaque_why) : json_null());
	json_object_set_new(doc, "bytes_in", json_integer((json_int_t)b->way.bytes_in));
	json_object_set_new(doc, "bytes_out", json_integer((json_int_t)b->way.bytes_out));
	json_object_set_new(doc, "dns_queries", json_integer((json_int_t)b->way.dns_queries));
	json_object_set_new(doc, "connections", json_integer((json_int_t)b->way.connections));
	json_object_set_new(doc, "refused", json_integer((json_int_t)b->way.refused));
	json_object_set_new(doc, "requests", egress_client_requests(b));
	json_object_set_new(doc, "recent",
			    b->way.records ? json_deep_copy(b->way.records) : json_array());
	return doc;
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
