/* socket_internal.h - the WebSocket of a client at a gateway, for socket*.c only.
 * Owns: the connections to nodes to the nodes of its boxes, its channels, the events that it follows. */
#pragma once
#include "gateway/follow.h"
#include "gateway/gateway_call.h"
#include "http/ws_codec.h"

enum {
	SOCKET_CHANNELS = 256,
	SOCKET_MESSAGE = 256 * 1024,
	SOCKET_ANSWER = 4 << 20,
	SOCKET_WAITING = 64
};

struct socket_channel {
	uint32_t number;
	unsigned node; /* SOCKET_HERE: events of all boxes, from the directory */
	int is_open;   /* the node has not closed it */
};
enum { SOCKET_HERE = PLACE_NUMBERS };

struct socket_events { /* a channel of events of all boxes */
	struct socket_events *next;
	struct gateway_socket *socket;
	struct gateway_follow follow;
	uint32_t number;
};

struct socket_node {
	struct socket_node *next;
	struct gateway_socket *socket;
	unsigned node;
	struct tunnel_ask ask;
	struct upstream up;
	struct ws_codec codec;
	struct buf in; /* bytes of the node, from in_at on */
	size_t in_at;
	char accept[29];    /* the answer to our key */
	struct buf waiting; /* messages until the node has accepted: opcode, length, bytes */
	unsigned nwaiting;
	int has_link, is_ready;
	struct timer end; /* it is freed outside of its own callbacks */
	char why[160];
};

struct socket_find { /* an open that names a box by its name */
	struct socket_find *next;
	struct gateway_socket *socket;
	struct fanout fanout;
	uint32_t number;
	char *text, *path;
	size_t len;
};

struct gateway_socket {
	struct gateway *gateway;
	struct principal who;
	char identity[IDENTITY_TEXT];
	struct ws *ws;
	struct socket_node *nodes;
	struct socket_find *finds;
	struct socket_events *events;
	struct socket_channel channels[SOCKET_CHANNELS];
	unsigned nchannels;
	struct timer still; /* checks whether the key is still valid */
};

/* 1: the client is slow. */
int socket_say(struct gateway_socket *s, int64_t number, const char *op, json_t *take_doc);
void socket_complain(struct gateway_socket *s, int64_t number, const char *code, const char *what);
struct socket_channel *socket_channel(struct gateway_socket *s, uint32_t number); /* or NULL */

/* socket_node.c: a message of the client to this node; the node is connected first. */
void socket_pass(struct gateway_socket *s, unsigned node, int opcode, const char *bytes,
		 size_t len);
void socket_pause_nodes(struct gateway_socket *s, int paused);
void socket_node_free(struct socket_node *n);

/* socket_events.c: 0: the channel was refused. */
int socket_events_open(struct gateway_socket *s, uint32_t number, const json_t *msg);
void socket_events_message(struct gateway_socket *s, struct socket_channel *c, const char *op);
void socket_events_continue(struct gateway_socket *s); /* the client has read */
void socket_events_free(struct socket_events *x);
