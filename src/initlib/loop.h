/* loop.h - the event loop of init, in one thread.
 * Owns: the epoll descriptor and the time of this turn.
 * A source is part of the object it serves, in a table that is never freed. An event may be
 * stale: a handler earlier in the batch may have closed its source, or even opened it again. So
 * every handler must tolerate a call without a reason, and no descriptor in here ever blocks. */
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
/* Registers, changes or removes the source according to `want`. Without any events it is not
 * registered: EPOLLHUP cannot be masked, and a paused source whose peer has closed would wake
 * init without end. */
void loop_want(struct event_source *s, uint32_t want);
void loop_close(struct event_source *s); /* fine on a closed one */
void loop_turn(int timeout_ms);          /* waits, samples the time, runs the handlers */
