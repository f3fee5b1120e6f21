/* box_internal.h - what the files of a berth have in common; nobody else includes this.
 *   berth.c        states, who waits, the table    box_end.c       why, and the last figures
 *   berth_make.c   CREATE until it is claimed      berth_still.c     kept, paused, and going again
 *   berth_clock.c  what is due next                box_restore.c   begun by another front */
#pragma once
#include "fleet/box.h"

/* berth.c */
struct box *box_new(struct fleet *f);
void box_set_state(struct box *b, enum box_state next); /* one of those that may follow */
void box_wait_for(struct box *b, struct box_wait **list, struct box_wait *w);
void box_notify(struct box_wait **list, struct box *b,
		const struct err *e); /* all, who then wait no more */
void box_enter(struct box *b);        /* into the table, by its id */
void box_leave(struct box *b);        /* that, or those that are being made */

/* berth_make.c */
void box_take_box(struct box *b, const struct wire_box *box);
must_check int box_open_conn(struct box *b, int take_fd, struct err *e);
void box_claim(struct box *b); /* from here on the box outlives us */
int box_is_marked(const struct store_box *row, const char *word); /* in its metadata */

/* berth_clock.c */
int box_is_stored(const struct box *b); /* kept or paused */
void box_set_clock(struct box *b);
void box_clock_due(struct timer *t);
void box_reread(struct box *b); /* its row */

/* box_end.c */
void box_take_cause(struct box *b, const char *name);
void box_finish(struct box *b,
		const struct wire_counted *figures); /* and frees it; figures may be NULL */
void box_conn_lost(struct init_conn *l, const struct err *why);
void box_end_if_done(struct box *b); /* one made for a run that is over */

/* berth_still.c */
struct keeper_call *box_request_freeze(struct box *b, uint16_t flags,
				       void (*done)(void *, const struct frame *, size_t, int *,
						    const struct err *));
int box_is_lost(const struct err *e);  /* says that there is no such box */
void box_start_pending(struct box *b); /* it runs again, all of it or soon its files alone */

/* box_restore.c */
void box_restored(struct box *b);      /* one less to wait for before we serve */
void box_restore_execs(struct box *b); /* those that run, and that we do not know of */
void box_request_open(struct box *b);
void box_open_again(struct box *b);
