/* box_internal.h - shared by the files of a box only.
 *   box.c          states, waiters, the table      box_end.c       cause and final counters
 *   box_create.c   CREATE until it is claimed      box_pause.c     stopped, paused, resumed
 *   box_timers.c   timeouts                        box_restore.c   boxes of another server
 *   box_replace.c  another box at the keeper       box_disk.c      paused to the disk */
#pragma once
#include "fleet/box.h"

/* box.c */
struct box *box_new(struct fleet *f);
/* Must be a state that may follow the present one. */
void box_set_state(struct box *b, enum box_state next);
void box_wait_for(struct box *b, struct box_wait **list, struct box_wait *w);
void box_notify(struct box_wait **list, struct box *b,
		const struct err *e); /* calls all waiters and empties the list */
void box_enter(struct box *b);        /* adds it to the table, by its id */
void box_leave(struct box *b);        /* removes it from the table or from the list of boxes being
				       * created */

/* box_create.c */
void box_take_box(struct box *b, const struct wire_box *box);
must_check int box_open_conn(struct box *b, int take_fd, struct err *e);
void box_claim(struct box *b); /* from here on the box does not end with this connection */

/* What CREATE needs beyond the row, from row.made. ERR_CONFLICT: the box is older than this record. */
must_check int box_read_made(const struct store_box *row, struct box_spec *out, struct err *e);
void box_run_start(struct box *b); /* the start command of its template */
/* Fills CREATE in; isolation_choose() has chosen the tier. */
void box_fill_create(const struct box_spec *want, const struct isolation_choice *tier,
		     struct wire_create *out);

/* box_replace.c */
void box_replace_cancel(struct box *b);
/* Everything that this server has at the old init ends: programs, calls, connections to ports. */
void box_replace_leave(struct box *b);
/* The same, but its programs are not ended. */
void box_leave_init(struct box *b);
/* Ends a box of the keeper that was replaced by `b`; before_us: what was charged before it. */
void box_replace_end_old(struct fleet *f, const struct box *b, const char *keeper,
			 uint64_t before_us);
/* box_disk.c: the row of a pause is still being written to the disk, and the box has ended, or is freed. */
void box_store_ended(struct box *b);
void box_store_free(struct box *b);

/* What CREATE needs for a box with the files of this checkpoint in place of `b`. alone: no other box has its volumes. */
must_check int box_replace_spec(const struct box *b, const struct store_checkpoint *to, int alone,
				struct box_spec *out, struct err *e);

/* box_timers.c */
int box_is_stored(const struct box *b); /* stopped or paused */
void box_set_clock(struct box *b);
void box_clock_due(struct timer *t);
void box_reread(struct box *b); /* reads its row again */

/* box_end.c */
void box_take_cause(struct box *b, const char *name);
void box_finish(
	struct box *b,
	const struct wire_counters *figures); /* ends it and frees it; figures may be NULL */
void box_conn_lost(struct init_conn *l, const struct err *why);
void box_end_if_done(struct box *b); /* if it was created for a run that has ended */

/* box_pause.c */
struct keeper_call *box_request_freeze(struct box *b, uint16_t flags,
				       void (*done)(void *, const struct frame *, size_t, int *,
						    const struct err *));
int box_is_lost(const struct err *e);  /* 1: e means that the box does not exist */
void box_start_pending(struct box *b); /* continues after the thaw: resumes everything, or its files
				        * only */

void box_set_going(struct box *b); /* its row: running, its lifetime starts again */
void box_store_for(struct box *b, enum store_box_state as); /* its row: stored from now on */
void box_pause_rise(struct box *b); /* a resume was requested while it was being paused */

/* box_disk.c */
must_check int box_disk_resume(struct box *b, struct err *e);
void box_disk_lost(struct box *b,
		   const struct err *e); /* its new box has ended before it was complete */
/* After a restart: it is on the disk. */
void box_disk_restored(struct box *b);
/* Its init has answered, so that it is claimed: the image is no longer needed. */
void box_disk_reached(struct box *b);

/* box_restore.c */
void box_restored(struct box *b);      /* one box less to wait for before the server accepts
				        * requests */
void box_restore_execs(struct box *b); /* its running execs that this server does not know yet */
void box_request_open(struct box *b);
void box_open_again(struct box *b);
