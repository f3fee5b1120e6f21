/* socket_events.c - channels of events of all boxes, which come from the directory. */
#include "gateway/socket_internal.h"

#include <stdlib.h>
#include <string.h>

static struct socket_events *socket_events_of(struct gateway_follow *f)
{
	return loop_owner(f, struct socket_events, follow);
}

static int socket_event(struct gateway_follow *f, json_t *take_item, const char *next)
{
	struct socket_events *x = socket_events_of(f);

	(void)next; /* it is in the item */
	return socket_say(x->socket, x->number, "event", take_item);
}

static void socket_events_begun(struct gateway_follow *f, const char *next)
{
	struct socket_events *x = socket_events_of(f);

	socket_say(x->socket, x->number, "opened", json_pack("{s:s}", "after", next));
}

void socket_events_free(struct socket_events *x)
{
	struct socket_events **at = &x->socket->events;

	while (*at != x)
		at = &(*at)->next;
	*at = x->next;
	follow_end(&x->follow);
	free(x);
}

/* 1: the channel has its place. */
int socket_events_open(struct gateway_socket *s, uint32_t number, const json_t *msg)
{
	const json_t *after = json_object_get(msg, "after");
	struct socket_events *x;

	if (!s->gateway->engines) {
		socket_complain(s, number, "unavailable", "events of all boxes need the database");
		return 0;
	}
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	*x = (struct socket_events){ .next = s->events,
				     .socket = s,
				     .number = number,
				     .follow = { .event = socket_event,
						 .begun = socket_events_begun,
						 .engines = s->gateway->engines } };
	snprintf(x->follow.team, sizeof(x->follow.team), "%s", s->who.team);
	s->events = x;
	if (follow_begin(&x->follow, s->gateway->api->loop,
			 json_is_integer(after) && json_integer_value(after) == 0
				 ? "0"
				 : json_string_value(after)) == 0 &&
	    (!after || json_is_string(after) || json_integer_value(after) == 0))
		return 1;
	socket_events_free(x);
	socket_complain(s, number, "invalid", "after: 0, or `next` of an event, unchanged");
	return 0;
}

/* The only message of such a channel is close. */
void socket_events_message(struct gateway_socket *s, struct socket_channel *c, const char *op)
{
	struct socket_events *x = s->events;

	if (strcmp(op, "close") != 0) {
		socket_complain(s, c->number, "invalid", "a channel of events is closed only");
		return;
	}
	while (x && x->number != c->number)
		x = x->next;
	if (x)
		socket_events_free(x);
	c->is_open = 0;
	socket_say(s, c->number, "closed", json_object());
}

void socket_events_continue(struct gateway_socket *s)
{
	for (struct socket_events *x = s->events; x; x = x->next)
		follow_continue(&x->follow);
}
