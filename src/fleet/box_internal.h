/* box_internal.h - shared by the files of a box only.
 *   box.c          states, waiters, the table      box_end.c       cause and final counters
 *   box_create.c   CREATE until it is claimed      box_pause.c     stopped, paused, resumed
 *   box_timers.c   timeouts                        box_restore.c   boxes of another server
 *   box_replace.c  another box at the keeper */
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

/* box_restore.c */
void box_restored(struct box *b);      /* one box less to wait for before the server accepts
				        * requests */
void box_restore_execs(struct box *b); /* its running execs that this server does not know yet */
void box_request_open(struct box *b);
void box_open_again(struct box *b);
