/* hold.h - init during a capture of the programs, and execs that are continued by another init.
 * Owns: which connection holds the box. During a hold init starts nothing, reads no output and passes no input on;
 * frames of other connections wait in their sockets. A hold ends with its connection, and after HOLD_MS. */
#pragma once
#include "initlib/loop.h"
#include "wire/wire.h"

struct conn;

/* Read in every turn of an idle init: in line, so that no page of code is needed for it. */
extern struct hold {
	const struct conn *by; /* NULL: no connection holds the box */
	uint64_t until_ns;
} hold;

static inline int hold_active(void)
{
	return hold.by != 0;
}

static inline int hold_is_by(const struct conn *c)
{
	return hold.by == c;
}

static inline int hold_excludes(const struct conn *c) /* no frame of it is read now */
{
	return hold.by && hold.by != c;
}

int hold_begin(const struct conn *c); /* -1: another connection holds the box */
void hold_end(void);
static inline void hold_drop(const struct conn *c) /* ends its hold, if it has one */
{
	if (hold.by && hold.by == c)
		hold_end();
}
/* Sends the state of each exec that has not ended. -errno: none, or only some, were sent. */
int hold_export(struct conn *c);
/* NULL: these values can be the state of an exec. */
const char *hold_check_import(const struct wire_exec_state *s, unsigned nfds);
/* Makes an exec of it, whose leader does not exist yet. fds are the caller's. -errno: it was not made. */
int hold_import(const struct wire_exec_state *s, const int *fds);

/* The loop's. */
static inline void hold_turn(void)
{
	if (hold.by && loop_now_ns >= hold.until_ns)
		hold_end();
}

static inline int hold_timeout_ms(void)
{
	if (!hold.by)
		return -1;
	return loop_now_ns >= hold.until_ns ? 0
					    : (int)((hold.until_ns - loop_now_ns) / 1000000 + 1);
}
