/* exec.c - see exec.h.
 *
 *   START ---> OUTPUT... ---> EXIT ---> was it plain? ---> record ---> store ---> who waits
 *                                         no: COUNTERS --^
 *
 * The kernel's evidence is asked for only when the end needs explaining: a program that exits 0
 * costs no second question. */
#include "fleet/exec_internal.h"
#include "fleet/exec_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_AGAIN = 2, ASK_PAUSE_MS = 200 };

/* ---- waiting for the end ---- */

void run_await(struct run *r, struct run_wait *w)
{
	w->run = r;
	w->next = r->waiters;
	r->waiters = w;
}

void run_wait_cancel(struct run_wait *w)
{
	struct run_wait **at;

	if (!w->run)
		return;
	for (at = &w->run->waiters; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->run = NULL;
}

/* ---- events of the line ---- */

void run_begin(struct run *r)
{
	r->begun = 1;
	while (r->early) {
		struct tap *t = r->early;

		r->early = t->next_early;
		tap_begin(t);
	}
}

static void started(struct init_call *x, int pid)
{
	struct run *r = loop_owner(x, struct run, ear);

	r->pid = pid;
	run_begin(r);
	if (r->tap && r->tap->on->started)
		r->tap->on->started(r->tap, pid);
}

static void output(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
		   size_t n)
{
	struct run *r = loop_owner(x, struct run, ear);

	berth_touch(r->berth);
	if (r->tap)
		tap_output(r->tap, stream, offset, bytes, n);
}

static void room(struct init_call *x, uint64_t until)
{
	struct run *r = loop_owner(x, struct run, ear);

	r->room = until;
	run_push_input(r);
}

static void channel_room(struct init_call *x, uint64_t until)
{
	struct run *r = loop_owner(x, struct run, ear);

	r->words_room = until;
	run_push_words(r);
}

static void ask_again(struct timer *t);

/* START was refused, or a restored run is not known there. The front that wrote its row may have died
 * before it sent START; or init has not come to read that yet, and gets a moment. */
static void refused(struct init_call *x, const struct err *e)
{
	struct run *r = loop_owner(x, struct run, ear);
	struct tap *t = r->tap;

	if (r->over)
		return;
	init_conn_remove_call(x);
	if (!r->restored) {
		r->tap = NULL;
		run_never_ran(r, e->sys, "refused");
		/* Who waits for an answer is told what was said; the record is for those who come later. */
		if (t)
			tap_over(t, NULL, e);
	} else if (r->tries++ == ASK_AGAIN) {
		run_never_ran(r, ESRCH, "never started");
	} else {
		if (!r->again.ev)
			timer_init(&r->again, r->berth->fleet->loop, ask_again);
		timer_set(&r->again, ASK_PAUSE_MS);
	}
}

const struct init_call_ops run_ear_events = {
	.started = started, .output = output, .room = room, .channel_room = channel_room,
	.exited = run_exited, .refused = refused,
	/* lost: berth_end.c asks the keeper why, and tells by run_box_gone() */
};

static void ask_again(struct timer *t)
{
	struct run *r = loop_owner(t, struct run, again);

	if (!r->over && init_conn_is_open(&r->berth->line))
		init_conn_attach(&r->berth->line, &r->ear, r->ref, &run_ear_events, 0, NULL, NULL);
	if (r->input_unknown)
		berth_tally(r->berth);
}

/* ---- those of a box ---- */

struct run *run_find(const struct berth *b, const char *id)
{
	struct run *r = b->runs;

	while (r && strcmp(r->id, id) != 0)
		r = r->next;
	return r;
}

struct run *run_by_tag(const struct berth *b, const char *tag)
{
	struct run *r = b->runs;

	while (r && strcmp(r->tag, tag) != 0)
		r = r->next;
	return r;
}

void run_signal(struct run *r, int signo)
{
	if (r->ear.line)
		init_conn_signal(r->ear.line, r->ref, signo);
}

void run_resize(struct run *r, uint16_t rows, uint16_t cols)
{
	if (r->ear.line)
		init_conn_resize(r->ear.line, r->ref, rows, cols);
}

void run_free(struct run *r)
{
	run_begin(r);
	keeper_client_cancel(&r->berth->fleet->office, r->asking);
	keeper_client_cancel(&r->berth->fleet->office, r->asking_base);
	init_conn_remove_call(&r->ear);
	timer_fini(&r->again);
	run_input_low(r, 1);
	json_decref(r->command);
	free(r->cwd);
	json_decref(r->request);
	json_decref(r->record);
	buf_fini(&r->input);
	buf_fini(&r->words);
	free(r);
}
