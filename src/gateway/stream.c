/* stream.c - GET /v1/events as a stream: of one box from its node, of all boxes from the directory. */
#include "api/event_stream.h"
#include "base/id.h"
#include "gateway/follow.h"
#include "gateway/gateway_call.h"
#include "gateway/moved.h"

#include <stdlib.h>
#include <string.h>

enum { STREAM_PING_MS = 15000 };

struct gateway_stream {
	struct gateway_follow follow;
	struct gateway_call *call;
	struct event_stream out;
	struct timer ping;
};

static struct gateway_stream *stream_of(struct gateway_follow *f)
{
	return loop_owner(f, struct gateway_stream, follow);
}

static int stream_event(struct gateway_follow *f, json_t *take_item, const char *next)
{
	struct gateway_stream *s = stream_of(f);

	timer_set(&s->ping, STREAM_PING_MS);
	return event_stream_event_named(&s->out, next, take_item);
}

static void stream_begun(struct gateway_follow *f, const char *next)
{
	event_stream_event_named(&stream_of(f)->out, next,
				 json_pack("{s:s, s:s, s:b}", "type", "following", "after", next,
					   "missed", 0));
}

static void stream_ping(struct timer *t)
{
	struct gateway_stream *s = loop_owner(t, struct gateway_stream, ping);

	if (event_stream_event(&s->out, json_pack("{s:s}", "type", "ping")))
		s->follow.is_paused = 1;
	timer_set(t, STREAM_PING_MS);
}

static void stream_has_room(struct http_req *r)
{
	struct gateway_call *x = ((struct call *)r->user)->state;

	follow_continue(&x->stream->follow);
}

static void stream_all(struct gateway_call *x)
{
	struct http_req *r = x->call->req;
	const char *last = http_header(r, "last-event-id"), *after = http_query(r, "after");
	struct gateway_stream *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	*s = (struct gateway_stream){ .call = x,
				      .follow = { .event = stream_event,
						  .begun = stream_begun,
						  .engines = x->gateway->engines } };
	snprintf(s->follow.team, sizeof(s->follow.team), "%s", x->call->who.team);
	timer_init(&s->ping, x->call->api->loop, stream_ping);
	x->stream = s;
	if (follow_begin(&s->follow, x->call->api->loop, last ? last : after) < 0) {
		call_error(x->call, 400, "invalid", "this is not the position of an event",
			   last ? last : after,
			   "use `next` of an event or of a page, unchanged; 0 for all events");
		return;
	}
	timer_set(&s->ping, STREAM_PING_MS);
	x->call->endless = 1;
	r->on_drain = stream_has_room;
	event_stream_begin(&s->out, r,
			   event_stream_wanted(x->call) == EVENT_STREAM_SSE ? EVENT_STREAM_SSE
									    : EVENT_STREAM_NDJSON);
}

void stream_begin(struct gateway_call *x)
{
	const char *box = http_query(x->call->req, "box"),
		   *order = http_query(x->call->req, "order");
	int node = box ? gateway_moved_node(x->gateway->moved, box, strlen(box)) : -1;

	if (order && strcmp(order, "newest") == 0)
		call_error(x->call, 400, "invalid", "a stream has the oldest events first",
			   "order=newest", "leave out order or follow");
	else if (node >= 0)
		forward_begin(x, (unsigned)node);
	else if (box && target_is_plain_name(box))
		find_begin(x, "/v1/boxes", box, gateway_named);
	else if (box || x->call->who.box[0])
		gateway_named(x, -1);
	else if (x->gateway->engines)
		stream_all(x);
	else
		call_error(x->call, 503, "unavailable", "a stream of all events needs the database",
			   "this gateway has not joined a cluster",
			   "follow one box: GET /v1/boxes/ID/events");
}

void stream_end(struct gateway_call *x)
{
	struct gateway_stream *s = x->stream;

	if (!s)
		return;
	x->stream = NULL;
	follow_end(&s->follow);
	timer_fini(&s->ping);
	free(s);
}
