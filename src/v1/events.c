/* events.c - see events.h.
 *
 *   behind   reads the store, a page at a time, as fast as the client reads
 *     │ no more rows                ▲ the client has not read all events sent to it
 *     ▼                             │
 *   live     the fleet passes each event on as soon as it has a number
 *
 * Both happen on one thread, and an event is in the store before any subscriber receives it. So no
 * event is missing or repeated between the two, and a slow client only costs the memory of its
 * connection. During a reload another server adds events, too, which this fleet does not report: a
 * number that does not follow the last one makes the stream read the store again, and so does a
 * timer. */
#include "v1/events.h"
#include "api/event_stream.h"
#include "record/record.h"
#include "fleet/box.h"
#include "store/events.h"
#include "v1box/sockets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PING_MS = 15000, /* to detect a client that has disappeared without closing
			  * its connection */
	LOOK_MS = 500,   /* while another server may add events */
	PORTS_MS =
		1000, /* a stream of one box reads its sockets, for port.opened and port.closed */
};

static const struct field order_values[] = { FIELD_VALUE("oldest"), FIELD_VALUE("newest"), { 0 } };

/* clang-format off */
#define EVENT_FIELDS                                                                               \
	{ "after", FIELD_INT, 0, 0, INT64_MAX,                                                     \
	  "events after this number; 0: all stored events. Default for a stream: from now on", NULL },  \
	{ "follow", FIELD_BOOL, 0, 0, 0, "continue with new events as they happen", NULL },                            \
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)", NULL }, \
	{ "order", FIELD_CHOICE, 0, 0, 0,                                                          \
	  "newest: the newest events first; then after is `next` of the previous page (default oldest)", order_values }
/* clang-format on */

const struct field events_query[] = {
	EVENT_FIELDS,
	{ "box", FIELD_TEXT, 0, 0, STORE_NAME, "only events of this box", NULL },
	{ 0 },
};
const struct field events_box_query[] = { EVENT_FIELDS, { 0 } };

struct following {
	struct fleet_subscriber subscriber;
	struct call *call;
	struct event_stream event_stream;
	struct timer look;
	char box[ID_MAX + 1]; /* "": all boxes of the team */
	int64_t after;        /* number of the last event that was sent */
	int64_t known;        /* all events up to this number were sent, or are not for
			       * this stream */
	int behind;
	uint64_t wrote_ms;
	struct sockets sockets; /* of the box, while it runs */
	struct timer ports;
};

static json_t *event_json(const struct store_event *ev, const json_t *data)
{
	json_t *own = data       ? json_incref((json_t *)data)
		      : ev->data ? json_loads(ev->data, 0, NULL)
				 : NULL;

	return json_pack("{s:I, s:o, s:s, s:s, s:o}", "seq", (json_int_t)ev->seq, "at",
			 json_time((uint64_t)ev->at_ns), "box", ev->box, "type", ev->type, "data",
			 own ? own : json_object());
}

/* ---- a stream ---- */

static void write_event(struct following *f, const struct store_event *ev, const json_t *data)
{
	/* An event that could not be stored has no number, and a client cannot resume at it. */
	f->behind |= event_stream_event_at(&f->event_stream, ev->seq, event_json(ev, data));
	f->wrote_ms = loop_now_ms();
	if (ev->seq)
		f->after = ev->seq;
}

/* Sends events from the store until all are sent, or until the client should read first. */
static void catch_up(struct following *f)
{
	struct call *c = f->call;
	const char *box = f->box[0] ? f->box : NULL;
	int more = 1;
	int64_t first;
	struct err e;

	f->behind = 0;
	if (store_event_range(c->api->store, &first, &f->known, &e) < 0)
		more = -1;
	while (more > 0 && !f->behind) {
		struct store_events rows = { 0 };

		if (store_event_list(c->api->store, f->after, c->who.team, box, 0, &rows, &e) < 0) {
			more = -1;
			break;
		}
		for (unsigned i = 0; i < rows.n; i++)
			write_event(f, &rows.v[i], NULL);
		more = rows.more;
		store_events_fini(&rows);
	}
	if (more < 0)
		http_abort(c->req); /* the client reconnects and continues at its position */
}

static void events_on_event(struct fleet_subscriber *x, const struct store_event *ev,
			    const json_t *data)
{
	struct following *f = loop_owner(x, struct following, subscriber);

	if (f->behind)
		return;
	if (ev->seq && ev->seq != f->known + 1) { /* another server has added events */
		catch_up(f);
		return;
	}
	f->known += ev->seq != 0;
	if (!strcmp(ev->team, f->call->who.team) && (!f->box[0] || !strcmp(ev->box, f->box)) &&
	    (!ev->seq || ev->seq > f->after))
		write_event(f, ev, data);
}

static void look_due(struct timer *t)
{
	struct following *f = loop_owner(t, struct following, look);

	if (!f->behind)
		catch_up(f);
	if (!f->behind && loop_now_ms() - f->wrote_ms >= PING_MS - LOOK_MS) {
		f->behind |=
			event_stream_event(&f->event_stream, json_pack("{s:s}", "type", "ping"));
		f->wrote_ms = loop_now_ms();
	}
	timer_set(t, f->call->api->fleet.alone ? PING_MS : LOOK_MS);
}

/* ---- ports of one box ---- */

static void events_ports_read(struct sockets *s, const struct err *e)
{
	struct following *f = loop_owner(s, struct following, sockets);

	(void)e; /* sockets.c has sent the events; without a worker, the next turn opens one */
	timer_set(&f->ports, PORTS_MS);
}

static void events_ports_due(struct timer *t)
{
	struct following *f = loop_owner(t, struct following, ports);
	struct box *b = fleet_find(&f->call->api->fleet, f->box);

	if (!b || b->state != BOX_RUNNING || !init_conn_is_open(&b->line)) {
		sockets_close(&f->sockets);
		timer_set(t, PORTS_MS);
		return;
	}
	if (!f->sockets.open)
		sockets_open(&f->sockets, b, events_ports_read);
	sockets_read(&f->sockets, 1);
}

static void has_room(struct http_req *r)
{
	struct call *c = r->user;

	catch_up(c->state);
}

static void events_stop(struct call *c)
{
	struct following *f = c->state;

	fleet_unsubscribe(&c->api->fleet, &f->subscriber);
	timer_fini(&f->look);
	timer_fini(&f->ports);
	sockets_close(&f->sockets);
}

static void events_follow(struct call *c, const char *box, int64_t after, int missed)
{
	struct following *f = call_alloc(c, sizeof(*f));
	enum event_stream_kind kind =
		event_stream_wanted(c) == EVENT_STREAM_SSE ? EVENT_STREAM_SSE : EVENT_STREAM_NDJSON;

	*f = (struct following){ .subscriber.on_event = events_on_event,
				 .call = c,
				 .after = after };
	snprintf(f->box, sizeof(f->box), "%s", box);
	timer_init(&f->look, c->api->loop, look_due);
	c->state = f;
	c->drop = events_stop;
	c->endless = 1;
	c->req->on_drain = has_room;
	fleet_subscribe(&c->api->fleet, &f->subscriber);
	event_stream_begin(&f->event_stream, c->req, kind);
	/* Sends the current position, so that a client that has received no event yet can also
	 * resume. */
	event_stream_event_at(&f->event_stream, after,
			      json_pack("{s:s, s:I, s:b}", "type", "following", "after",
					(json_int_t)after, "missed", missed));
	catch_up(f);
	timer_set(&f->look, LOOK_MS);
	timer_init(&f->ports, c->api->loop, events_ports_due);
	if (f->box[0])
		timer_set(&f->ports, 1);
}

/* ---- a page ---- */

static int events_newest_first(struct call *c)
{
	const char *order = call_query(c, "order");

	return order && !strcmp(order, "newest");
}

static void send_page(struct call *c, const char *box, int64_t after, int missed)
{
	struct store_event_filter filter = {
		.team = c->who.team,
		.box = *box ? box : NULL,
		.behind = after,
		.oldest_first = !events_newest_first(c),
		.limit = (unsigned)call_query_int(c, "limit", 0),
	};
	struct store_events rows = { 0 };
	json_t *items, *doc;
	char next[24];
	struct err e;

	if (store_event_find(c->api->store, &filter, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, event_json(&rows.v[i], NULL));
	snprintf(next, sizeof(next), "%lld", rows.n ? (long long)rows.v[rows.n - 1].seq : 0);
	doc = json_pack("{s:o, s:s?, s:b}", "items", items, "next", rows.more ? next : NULL,
			"missed", missed);
	store_events_fini(&rows);
	call_json(c, 200, doc);
}

/* ---- first event ---- */

/* An EventSource that reconnects sends its position in Last-Event-ID; its URL still has the first
 * `after`. */
static int begin_at(struct call *c, int64_t *out, int *out_given)
{
	const char *last = http_header(c->req, "last-event-id");
	char *end;

	*out_given = last || call_query(c, "after");
	*out = call_query_int(c, "after", 0);
	if (!last)
		return 1;
	if (strlen(last) <= 18 && strspn(last, "0123456789") == strlen(last) && *last) {
		*out = strtoll(last, &end, 10);
		return 1;
	}
	call_error(c, 400, "invalid", "Last-Event-ID is not the number of an event", NULL, NULL);
	return 0;
}

static void events_tell(struct call *c, const char *box)
{
	int stream = call_query_flag(c, "follow") || event_stream_wanted(c) == EVENT_STREAM_SSE,
	    given, missed;
	int64_t after, first, last;
	struct err e;

	if (!begin_at(c, &after, &given))
		return;
	if (stream && events_newest_first(c)) {
		call_error(c, 400, "invalid", "a stream has the oldest events first",
			   "order=newest", "leave out order or follow");
		return;
	}
	if (store_event_range(c->api->store, &first, &last, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	/* The oldest events are deleted: a client that stopped before them has missed some, perhaps
	 * of other boxes. */
	missed = given && after > 0 && after + 1 < first && !events_newest_first(c);
	if (!stream)
		send_page(c, box, after, missed);
	else
		events_follow(c, box, given ? after : last, missed);
}

void events_list(struct call *c)
{
	const char *box = call_query(c, "box");
	const struct box *b = box ? fleet_named(&c->api->fleet, c->who.team, box) : NULL;

	if (box && !b && !id_valid(box)) {
		call_error(c, 404, "not_found", "there is no such box", box,
			   "a deleted box is found by its id only");
		return;
	}
	events_tell(c, b ? b->row.id : box ? box : "");
}

void events_box(struct call *c)
{
	const struct box *b = call_box_peek(c, 0);

	if (b)
		events_tell(c, b->row.id);
}
