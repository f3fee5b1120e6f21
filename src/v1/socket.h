/* socket.h - WS /v1/socket: many streams over one connection.
 * Owns: the connection's channels. A channel is opened by a message, has a number that the client
 * chose, and ends by message or with the connection; what it showed lives on.
 *
 * docs/socket.md has the messages. Text frames are JSON and about channels; binary frames are
 * bytes of one channel:
 *
 *   to the client     channel u32 | stream u8 | offset u64 | bytes       (big endian)
 *   from the client   channel u32 | 0 u8 | bytes                          stdin */
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
	/* msg: the client's "open". -1: refused, e says why. */
	int (*open)(struct channel *c, const json_t *msg, struct err *e);
	/* A message about it; NULL: takes none. */
	int (*message)(struct channel *c, const char *op, const json_t *msg, struct err *e);
	void (*bytes)(struct channel *c, const char *bytes, size_t n);
	void (*request)(struct channel *c,
			int full);        /* the connection is full; or has room again */
	void (*close)(struct channel *c); /* lets go of everything */
};
extern const struct channel_kind channel_exec, channel_pty, channel_events, channel_watch,
	channel_stats;

/* For the kinds. */
struct api *channel_api(const struct channel *c);
const struct principal *channel_who(const struct channel *c);
/* The box msg names, of the caller's team. */
struct box *channel_box(const struct channel *c, const json_t *msg, struct err *e);
/* {"op": op, "ch": number, ...take_rest}; take_rest may be NULL. */
void channel_say(struct channel *c, const char *op, json_t *take_rest);
int channel_bytes(struct channel *c, unsigned stream, uint64_t offset, const char *bytes, size_t n);
/* Its last word; c is no more. e NULL: "closed". */
void channel_end(struct channel *c, const struct err *e);

void socket_open(struct call *c);
