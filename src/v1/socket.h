/* socket.h - WS /v1/socket: many streams over one connection.
 * Owns: the channels of the connection. A channel is opened by a message, has a number that the
 * client chose, and ends by message or with the connection; the exec, folder or box that it showed
 * remains.
 *
 * docs/socket.md has the messages. Text frames are JSON and about channels; binary frames are
 * bytes of one channel:
 *
 *   to the client     channel u32 | stream u8 | offset u64 | bytes       (big endian)
 *   from the client   channel u32 | stream u8 | bytes                     stream 0: stdin; in a
 *                                                                         room: the kind of frame */
#pragma once
#include "api/api.h"

struct socket;

struct channel {
	struct channel *next;
	struct socket *socket;
	uint32_t number;
	const struct channel_kind *kind;
};

struct channel_kind {
	const char *name;
	size_t size; /* of the struct that begins with a struct channel */
	/* msg: the "open" message of the client. -1: rejected, e is the reason. */
	int (*open)(struct channel *c, const json_t *msg, struct err *e);
	/* A message for this channel; NULL: the type accepts none. */
	int (*message)(struct channel *c, const char *op, const json_t *msg, struct err *e);
	void (*bytes)(struct channel *c, unsigned stream, const char *bytes, size_t n);
	enum store_role bytes_role; /* the lowest role that may send bytes */
	void (*request)(struct channel *c,
			int full);        /* the send buffer of the connection is full, or has space
					   * again */
	void (*close)(struct channel *c); /* releases everything */
};
extern const struct channel_kind channel_exec, channel_pty, channel_events, channel_watch,
	channel_stats, channel_room;

/* Functions for channel types. */
struct api *channel_api(const struct channel *c);
const struct principal *channel_who(const struct channel *c);
/* The box that msg names, in the team of the caller. */
struct box *channel_box(const struct channel *c, const json_t *msg, struct err *e);
/* {"op": op, "ch": number, ...take_rest}; take_rest may be NULL. */
void channel_say(struct channel *c, const char *op, json_t *take_rest);
int channel_bytes(struct channel *c, unsigned stream, uint64_t offset, const char *bytes, size_t n);
/* Sends the last message and frees c. e NULL: "closed". */
void channel_end(struct channel *c, const struct err *e);

void socket_open(struct call *c);
