/* channel.h - the byte channel between mux and guest stub: packets out, packets in.
 * Owns: the channel's descriptor, one packet that waits to be sent, the bytes that arrived.
 * Nothing blocks: while a packet waits, channel_blocked() is true and no stream is read. */
#pragma once
#include "mux/packet.h"

extern struct packet_state channel_state;

struct channel_role { /* what mux and guest stub do differently */
	/* Bytes of the channel are invalid. */
	void (*fault)(enum packet_fault why); /* does not return */
	void (*ended)(void);                  /* the other end has closed the channel */
	void (*greeted)(const void *body);    /* HELLO, or RESUME */
	/* Something is about to be sent for the first time. */
	void (*begin)(void);
	/* Before a frame is read from this stream. 0: not in this turn. NULL: nothing to do. */
	int (*before)(unsigned number);
	/* A frame was read from a stream. 1: forward it; 0: it is dealt with; -1: close the stream. */
	int (*frame)(unsigned number, char *frame, uint32_t bytes, const int *fds, unsigned nfds);
	/* The peer has opened this stream with OPEN: its descriptor, or -1. */
	int (*connect)(unsigned number);
	/* A frame whose descriptors get no numbers. 1: send it, without them; 0: it is dealt with. */
	int (*refuse)(unsigned number, char *frame, uint32_t *bytes);
};
extern const struct channel_role *channel_role;

_Noreturn void channel_fault(enum packet_fault why); /* calls the role's */
void channel_init(int take_fd, const struct channel_role *role, int is_mux);
int channel_blocked(void); /* a packet waits, or the channel is closed */
char *channel_room(void); /* PACKET_BODY bytes for the body of the next packet; not while blocked */
/* Sends the packet whose body is in channel_room(). Not while blocked. */
void channel_send(uint8_t type, unsigned number, const struct packet_fd *fds, unsigned nfds,
		  uint32_t bytes);
void channel_close(void);
