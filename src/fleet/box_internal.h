/* box_internal.h - what the files of a berth have in common; nobody else includes this.
 *   berth.c        states, who waits, the table    berth_end.c       why, and the last figures
 *   berth_make.c   CREATE until it is claimed      berth_still.c     kept, paused, and going again
 *   berth_clock.c  what is due next                berth_restore.c   begun by another front */
#pragma once
#include "fleet/box.h"

/* berth.c */
struct berth *berth_new(struct fleet *f);
void berth_become(struct berth *b, enum berth_state next); /* one of those that may follow */
void berth_wait_for(struct berth *b, struct berth_wait **list, struct berth_wait *w);
void berth_tell(struct berth_wait **list, struct berth *b, const struct err *e); /* all, who then wait no more */
void berth_enter(struct berth *b); /* into the table, by its id */
void berth_leave(struct berth *b); /* that, or those that are being made */

/* berth_make.c */
void berth_take_box(struct berth *b, const struct wire_box *box);
must_check int berth_open_line(struct berth *b, int take_fd, struct err *e);
void berth_claim(struct berth *b); /* from here on the box outlives us */
int berth_is_marked(const struct store_box *row, const char *word); /* in its metadata */

/* berth_clock.c */
int berth_is_stored(const struct berth *b); /* kept or paused */
void berth_set_clock(struct berth *b);
void berth_clock_due(struct timer *t);
void berth_reread(struct berth *b); /* its row */

/* berth_end.c */
void berth_take_cause(struct berth *b, const char *name);
void berth_finish(struct berth *b, const struct wire_counted *figures); /* and frees it; figures may be NULL */
void berth_line_gone(struct init_conn *l, const struct err *why);
void berth_end_if_done(struct berth *b); /* one made for a run that is over */

/* berth_still.c */
struct keeper_call *berth_ask_freeze(struct berth *b, uint16_t flags,
				    void (*done)(void *, const struct frame *, size_t, int *,
						 const struct err *));
int berth_is_lost(const struct err *e); /* says that there is no such box */
void berth_going(struct berth *b);	/* it runs again, all of it or soon its files alone */

/* berth_restore.c */
void berth_restored(struct berth *b); /* one less to wait for before we serve */
void berth_restore_runs(struct berth *b); /* those that run, and that we do not know of */
void berth_ask_to_open(struct berth *b);
void berth_open_again(struct berth *b);
