/* loop.h - waiting, in one thread.
 * Owns: the epoll descriptor and the time of this turn.
 * A source lives inside the object it serves, in a table that is never freed. An event may be
 * stale: a handler earlier in the batch may have closed its source, even opened it anew. So every
 * handler must bear being called for nothing, and no descriptor in here ever blocks. */
#pragma once
#include <stdint.h>

struct event_source {
	int fd; /* -1: closed */
	uint32_t armed;
	void (*ready)(struct event_source *s, uint32_t events);
};

#define source_owner(s, type, member) ((type *)((char *)(s) - __builtin_offsetof(type, member)))

extern uint64_t loop_now_ns; /* sampled once per turn */

void loop_init(void);
/* Registers, changes or forgets, whichever leads to `want`. Nothing wanted means not registered:
 * EPOLLHUP cannot be masked, and a paused source whose peer has left would wake us for ever. */
void loop_want(struct event_source *s, uint32_t want);
void loop_close(struct event_source *s); /* fine on a closed one */
void loop_turn(int timeout_ms);          /* waits, samples the time, runs the handlers */
