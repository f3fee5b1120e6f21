/* socket_room.c - the channel type "room": one client of a room (v1/room.h). */
#include "v1/room.h"
#include "v1/socket.h"
#include "base/cleanup.h"
#include "fleet/box.h"
#include "store/events.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum { ROOM_MORE = 0x80 }; /* in the kind of a frame of the client: more parts follow */

struct room_channel {
	struct channel base;
	struct room_peer peer;
	struct fleet_subscriber subscriber;
	char box[ID_MAX + 1];
	struct buf parts; /* of an update that is larger than one message */
	int too_long;     /* the rest of it is dropped */
};

/* Rooms of all boxes; a server process has one loop and one list. */
static struct rooms *room_channel_rooms(const struct room_channel *x)
{
	struct api *a = channel_api(&x->base);

	if (!a->rooms)
		a->rooms = calloc(1, sizeof(*a->rooms));
	if (!a->rooms)
		abort();
	return a->rooms;
}

/* ---- to the client ---- */

static int room_channel_frame(struct room_peer *p, enum room_frame kind, uint64_t number,
			      const void *bytes, size_t n)
{
	struct room_channel *x = loop_owner(p, struct room_channel, peer);

	return channel_bytes(&x->base, kind, number, bytes, n);
}

static void room_channel_note(struct room_peer *p, enum room_note note, uint64_t number)
{
	static const struct {
		const char *op, *field;
	} notes[] = {
		[ROOM_NOTE_BEGIN] = { "begin", "epoch" },  [ROOM_NOTE_EPOCH] = { "epoch", "epoch" },
		[ROOM_NOTE_SYNCED] = { "synced", "seq" },  [ROOM_NOTE_ACK] = { "ack", "seq" },
		[ROOM_NOTE_COMPACT] = { "compact", NULL }, [ROOM_NOTE_WRITER] = { "writer", NULL },
		[ROOM_NOTE_READER] = { "reader", NULL },   [ROOM_NOTE_SAVE] = { "save", NULL },
		[ROOM_NOTE_LEFT] = { "left", "peer" },
	};
	struct room_channel *x = loop_owner(p, struct room_channel, peer);
	const char *field = notes[note].field;
	json_t *rest = NULL;

	if (field && !strcmp(field, "epoch"))
		rest = json_pack("{s:s}", field, p->room->epoch);
	else if (field)
		rest = json_pack("{s:I}", field, (json_int_t)number);
	channel_say(&x->base, notes[note].op, rest);
}

static void room_channel_box_event(struct fleet_subscriber *subscriber,
				   const struct store_event *ev, const json_t *data)
{
	struct room_channel *x = loop_owner(subscriber, struct room_channel, subscriber);
	struct err e;

	(void)data;
	if (strcmp(ev->type, "box.ended") != 0 || strcmp(ev->box, x->box) != 0)
		return;
	err_set(&e, ERR_NOT_FOUND, "box %s has ended", x->box);
	channel_end(&x->base, &e);
}

/* ---- from the client ---- */

static int room_channel_open(struct channel *c, const json_t *msg, struct err *e)
{
	static const struct room_events on = { room_channel_frame, room_channel_note };
	struct room_channel *x = (struct room_channel *)c;
	const char *path = json_string_value(json_object_get(msg, "path"));
	const char *epoch = json_string_value(json_object_get(msg, "epoch"));
	const char *client = json_string_value(json_object_get(msg, "client"));
	struct room_peer *p = &x->peer, *earlier;
	struct box *b = channel_box(c, msg, e);

	path = path ? path : "";
	if (!b || room_path_check(path, e) < 0)
		return -1;
	if ((epoch && !id_valid(epoch)) || (client && !id_valid(client)))
		return err_set(e, ERR_INVALID,
			       "epoch, client: '%.20s' is not %d or %d of a-z and 2-7",
			       epoch && !id_valid(epoch) ? epoch : client, ID_LEN, ID_MAX);
	p->on = &on;
	p->may_write = channel_who(c)->role >= ROLE_EDITOR;
	snprintf(p->epoch, sizeof(p->epoch), "%s", epoch ? epoch : "");
	snprintf(p->client, sizeof(p->client), "%s", client ? client : "");
	snprintf(x->box, sizeof(x->box), "%s", b->row.id);
	earlier = room_earlier(room_channel_rooms(x), p, channel_who(c)->team, x->box, path);
	if (earlier && loop_owner(earlier, struct room_channel, peer)->base.socket != c->socket)
		channel_end(&loop_owner(earlier, struct room_channel, peer)->base, NULL);
	if (room_join(room_channel_rooms(x), p, channel_who(c)->team, x->box, path, e) < 0)
		return -1;
	x->subscriber.on_event = room_channel_box_event;
	fleet_subscribe(&channel_api(c)->fleet, &x->subscriber);
	channel_say(c, "opened",
		    json_pack("{s:I, s:s, s:b, s:I}", "peer", (json_int_t)p->id, "epoch",
			      p->room->started || p->room->starter == p ? p->room->epoch : "",
			      "begin", p->room->starter == p, "head", (json_int_t)p->room->head));
	room_resume(p);
	return 0;
}

static int room_channel_message(struct channel *c, const char *op, const json_t *msg, struct err *e)
{
	struct room_peer *p = &((struct room_channel *)c)->peer;

	(void)msg;
	if (!strcmp(op, "save"))
		return room_save(p, e);
	if (!strcmp(op, "claim"))
		return room_claim(p, e);
	return err_set(e, ERR_INVALID, "'%.20s': save, claim, close", op);
}

static int room_channel_take(struct room_channel *x, unsigned kind, const char *bytes, size_t n,
			     struct err *e)
{
	struct rooms *rooms = room_channel_rooms(x);
	uint64_t number;

	switch (kind) {
	case ROOM_UPDATE:
		return room_update(rooms, &x->peer, bytes, n, e);
	case ROOM_PRESENCE:
		return room_presence(&x->peer, bytes, n, e);
	case ROOM_SNAPSHOT:
		if (n < sizeof(number))
			return err_set(e, ERR_INVALID,
				       "a snapshot begins with 8 bytes: the number "
				       "of its last update");
		memcpy(&number, bytes, sizeof(number));
		return room_snapshot(rooms, &x->peer, be64toh(number), bytes + sizeof(number),
				     n - sizeof(number), e);
	default:
		return err_set(e, ERR_INVALID,
			       "a frame of kind %u is not update, presence or "
			       "snapshot (0, 1, 2)",
			       kind);
	}
}

/* An update that exceeds one message arrives in parts; the last part has no ROOM_MORE. */
static void room_channel_bytes(struct channel *c, unsigned stream, const char *bytes, size_t n)
{
	struct room_channel *x = (struct room_channel *)c;
	unsigned kind = stream & ~(unsigned)ROOM_MORE;
	struct err e;
	int result = 0;

	if (!x->too_long && x->parts.len + n > ROOM_UPDATE_BYTES + sizeof(uint64_t)) {
		x->too_long = 1;
		result = err_set(&e, ERR_LIMIT, "more than %d bytes in one update",
				 ROOM_UPDATE_BYTES);
	}
	if (!x->too_long && (stream & ROOM_MORE || x->parts.len))
		buf_add(&x->parts, bytes, n);
	if (!x->too_long && !(stream & ROOM_MORE))
		result = x->parts.len ? room_channel_take(x, kind, x->parts.p, x->parts.len, &e)
				      : room_channel_take(x, kind, bytes, n, &e);
	if (!(stream & ROOM_MORE) || x->too_long)
		buf_fini(&x->parts);
	if (!(stream & ROOM_MORE))
		x->too_long = 0;
	if (result < 0)
		channel_say(c, "error",
			    call_error_json(NULL, err_kind_name(e.kind), e.msg, NULL, NULL));
}

static void room_channel_request(struct channel *c, int full)
{
	struct room_channel *x = (struct room_channel *)c;

	if (full)
		x->peer.full = 1;
	else
		room_resume(&x->peer);
}

static void room_channel_close(struct channel *c)
{
	struct room_channel *x = (struct room_channel *)c;

	fleet_unsubscribe(&channel_api(c)->fleet, &x->subscriber);
	room_leave(room_channel_rooms(x), &x->peer);
	buf_fini(&x->parts);
}

const struct channel_kind channel_room = {
	.name = "room",
	.size = sizeof(struct room_channel),
	.open = room_channel_open,
	.message = room_channel_message,
	.bytes = room_channel_bytes,
	.bytes_role = ROLE_VIEWER,
	.request = room_channel_request,
	.close = room_channel_close,
};
