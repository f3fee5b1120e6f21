/* exec_input.c - input of an exec: its stdin and the bytes for its channel, which wait here for
 * window. */
#include "fleet/exec_internal.h"

#include <string.h>

enum { STDIN_PIECE = 32 * 1024, RECENT_MS = 1000 };

/* ---- input ---- */

/* Calls one waiter after the other while there is space: a waiter may fill it again, and wait
 * again. */
void exec_input_low(struct exec *r, int closed)
{
	while (r->input_waiters && (closed || r->input.len - r->input_taken <= EXEC_INPUT)) {
		struct exec_input_wait *w = r->input_waiters;

		r->input_waiters = w->next;
		w->run = NULL;
		w->low(w, closed);
	}
}

void exec_push_input(struct exec *r)
{
	size_t waiting = r->input.len - r->input_taken;

	if (r->input_unknown)
		return;
	while (waiting && r->room > r->sent && r->init_call.line) {
		uint64_t room = r->room - r->sent;
		size_t n = waiting < STDIN_PIECE ? waiting : STDIN_PIECE;

		n = room < n ? (size_t)room : n;
		init_conn_stdin(&r->box->line, r->ref, r->input.p + r->input_taken, n);
		r->input_taken += n;
		r->sent += n;
		waiting -= n;
		r->box->fleet->figures.stdin_bytes += n;
	}
	if (waiting)
		return;
	buf_cut(&r->input, 0);
	r->input_taken = 0;
	if (r->input_end == 1 && r->init_call.line) {
		init_conn_stdin(&r->box->line, r->ref, NULL, 0);
		r->input_end = 2; /* end of input was sent */
		r->stdin_open = 0;
	}
	exec_input_low(r, 0);
}

int exec_stdin(struct exec *r, const void *bytes, size_t n)
{
	if (!r->stdin_open || r->input_end || r->over)
		return 0;
	if (r->input_taken > EXEC_INPUT) { /* occasionally move the rest to the start of
					    * the buffer */
		memmove(r->input.p, r->input.p + r->input_taken, r->input.len - r->input_taken);
		buf_cut(&r->input, r->input.len - r->input_taken);
		r->input_taken = 0;
	}
	buf_add(&r->input, bytes, n);
	exec_push_input(r);
	return r->input.len - r->input_taken > EXEC_INPUT;
}

void exec_input_close(struct exec *r)
{
	if (!r->stdin_open || r->input_end)
		return;
	r->input_end = 1;
	exec_push_input(r);
}

void exec_input_await(struct exec *r, struct exec_input_wait *w)
{
	w->run = r;
	w->next = r->input_waiters;
	r->input_waiters = w;
}

void exec_input_cancel(struct exec_input_wait *w)
{
	struct exec_input_wait **at;

	if (!w->run)
		return;
	for (at = &w->run->input_waiters; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->run = NULL;
}

void exec_input_check(struct exec *r)
{
	int sure = r->box->fleet->alone && r->input_sure;

	if (sure || r->over || r->input_unknown || r->input.len > r->input_taken ||
	    r->words.len > r->words_taken)
		return;
	r->input_sure = r->box->fleet->alone;
	exec_input_count(r);
}

void exec_input_count(struct exec *r)
{
	/* A report that was requested before may lack bytes that have been sent since. */
	if (!r->input_unknown)
		r->count_from = r->box->tallies + 1;
	r->input_unknown = 1;
	box_request_counters(r->box);
}

void exec_input_refresh(struct exec *r)
{
	if (!r->input_counted_ms || loop_now_ms() - r->input_counted_ms > RECENT_MS)
		exec_input_check(r);
}

uint64_t exec_input_delivered(const struct exec *r)
{
	size_t queued = r->box->line.post.queued; /* with frames of other execs: at least as many */

	return r->sent > queued ? r->sent - queued : 0;
}

void exec_input_doubt(struct exec *r)
{
	r->input_sure = 0;
	r->input_counted_ms = 0;
}

uint64_t exec_input_has(const struct exec *r)
{
	return r->sent + r->input.len - r->input_taken;
}

/* ---- the channel ---- */

void exec_push_channel(struct exec *r)
{
	while (r->words_taken < r->words.len && r->words_room > r->words_sent &&
	       r->init_call.line && !r->input_unknown) {
		size_t n = r->words.len - r->words_taken;
		uint64_t room = r->words_room - r->words_sent;

		n = n < STDIN_PIECE ? n : STDIN_PIECE;
		n = room < n ? (size_t)room : n;
		init_conn_channel(&r->box->line, r->ref, r->words.p + r->words_taken, n);
		r->words_taken += n;
		r->words_sent += n;
	}
	if (r->words_taken == r->words.len) {
		buf_cut(&r->words, 0);
		r->words_taken = 0;
	}
}

uint64_t exec_channel_send(struct exec *r, const void *bytes, size_t n)
{
	if (r->over)
		return exec_on_output(r);
	exec_input_check(r); /* another server may have sent bytes, too */
	buf_add(&r->words, bytes, n);
	exec_push_channel(r);
	return exec_on_output(r);
}

uint64_t exec_on_output(const struct exec *r)
{
	return r->words_sent + r->words.len - r->words_taken;
}

/* ---- after a restart ---- */

void exec_on_counters(struct exec *r, const struct wire_exec *about)
{
	if (!r->input_unknown || r->box->tallies < r->count_from)
		return;
	r->input_unknown = 0;
	r->input_counted_ms = loop_now_ms();
	r->pid = about->group;
	r->stdin_open = about->stdin_open;
	r->sent = about->stdin_bytes;
	r->room = about->stdin_room;
	r->words_sent = about->channel_bytes;
	r->words_room = about->channel_room;
	if (r->on_told)
		r->on_told(r);
	exec_push_channel(r);
	exec_push_input(r);
}
