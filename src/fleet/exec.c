/* exec.c - see exec.h.
 *
 *   START ---> OUTPUT... ---> EXIT ---> plain exit? ----> record ---> store ---> waiters
 *                                         no: COUNTERS --^
 *
 * The counters of the kernel are requested only if the end needs an explanation: a program that
 * exits with 0 costs no second request. */
#include "fleet/exec_internal.h"
#include "fleet/exec_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ASK_AGAIN = 2, ASK_PAUSE_MS = 200 };

/* ---- waiting for the end ---- */

void exec_await(struct exec *r, struct exec_wait *w)
{
	w->run = r;
	w->next = r->waiters;
	r->waiters = w;
}

void exec_wait_cancel(struct exec_wait *w)
{
	struct exec_wait **at;

	if (!w->run)
		return;
	for (at = &w->run->waiters; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->run = NULL;
}

/* ---- frames of init ---- */

void exec_begin(struct exec *r)
{
	r->begun = 1;
	while (r->early) {
		struct exec_reader *t = r->early;

		r->early = t->next_early;
		exec_reader_begin(t);
	}
}

static void exec_started(struct init_call *x, int pid)
{
	struct exec *r = loop_owner(x, struct exec, init_call);

	r->pid = pid;
	exec_begin(r);
	if (r->reader && r->reader->on->started)
		r->reader->on->started(r->reader, pid);
}

static void exec_output(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	struct exec *r = loop_owner(x, struct exec, init_call);

	box_touch(r->box);
	if (stream < 2)
		output_digest_add(&r->digest[stream], offset, bytes, n);
	if (r->reader)
		exec_reader_output(r->reader, stream, offset, bytes, n);
}

static void exec_room(struct init_call *x, uint64_t until)
{
	struct exec *r = loop_owner(x, struct exec, init_call);

	r->room = until;
	exec_push_input(r);
}

static void channel_room(struct init_call *x, uint64_t until)
{
	struct exec *r = loop_owner(x, struct exec, init_call);

	r->words_room = until;
	exec_push_channel(r);
}

static void ask_again(struct timer *t);

/* START was rejected, or init does not know a restored exec. The server that wrote its row may have
 * died before it sent START; or init has not read START yet, so the request is repeated after a
 * moment. */
static void exec_refused(struct init_call *x, const struct err *e)
{
	struct exec *r = loop_owner(x, struct exec, init_call);
	struct exec_reader *t = r->reader;

	if (r->over)
		return;
	init_conn_remove_call(x);
	if (!r->restored) {
		r->reader = NULL;
		exec_never_started(r, e->sys, "refused");
		/* A waiting request gets the error of init; the record is for later requests. */
		if (t)
			exec_reader_over(t, NULL, e);
	} else if (r->tries++ == ASK_AGAIN) {
		exec_never_started(r, ESRCH, "never started");
	} else {
		if (!r->again.ev)
			timer_init(&r->again, r->box->fleet->loop, ask_again);
		timer_set(&r->again, ASK_PAUSE_MS);
	}
}

const struct init_call_ops exec_call_ops = {
	/* clang-format off */
	.started = exec_started, .output = exec_output, .room = exec_room, .channel_room = channel_room,
	.exited = exec_exited, .refused = exec_refused,
	/* no .lost: box_end.c gets the cause from the keeper and calls exec_box_gone() */
	/* clang-format on */
};

static void ask_again(struct timer *t)
{
	struct exec *r = loop_owner(t, struct exec, again);

	if (!r->over && init_conn_is_open(&r->box->line))
		init_conn_attach(&r->box->line, &r->init_call, r->ref, &exec_call_ops, 0, NULL,
				 NULL);
	if (r->input_unknown)
		box_request_counters(r->box);
}

/* ---- execs of a box ---- */

struct exec *exec_lookup(const struct box *b, const char *id)
{
	struct exec *r = b->runs;

	while (r && strcmp(r->id, id) != 0)
		r = r->next;
	return r;
}

struct exec *exec_by_tag(const struct box *b, const char *tag)
{
	struct exec *r = b->runs;

	while (r && strcmp(r->tag, tag) != 0)
		r = r->next;
	return r;
}

void exec_attach_again(struct exec *r)
{
	const struct exec_reader *t = r->reader;
	uint64_t from[WIRE_STREAMS], until[WIRE_STREAMS];

	if (r->over)
		return;
	r->restored = 1; /* it was started: a refusal would be no answer to that */
	r->tries = 0;
	memcpy(from, r->init_call.next_byte, sizeof(from));
	memcpy(until, r->init_call.granted, sizeof(until));
	init_conn_attach(&r->box->line, &r->init_call, r->ref, &exec_call_ops, t ? t->streams : 0,
			 from, until);
}

void exec_send_signal(struct exec *r, int signo)
{
	if (r->init_call.line)
		init_conn_signal(r->init_call.line, r->ref, signo);
}

void exec_set_size(struct exec *r, uint16_t rows, uint16_t cols)
{
	if (r->init_call.line)
		init_conn_resize(r->init_call.line, r->ref, rows, cols);
}

void exec_free(struct exec *r)
{
	exec_begin(r);
	keeper_client_cancel(&r->box->fleet->keeper, r->asking);
	keeper_client_cancel(&r->box->fleet->keeper, r->asking_base);
	init_conn_remove_call(&r->init_call);
	timer_fini(&r->again);
	exec_input_low(r, 1);
	json_decref(r->command);
	free(r->cwd);
	json_decref(r->request);
	json_decref(r->inputs);
	json_decref(r->record);
	output_digest_fini(&r->digest[0]);
	output_digest_fini(&r->digest[1]);
	buf_fini(&r->input);
	buf_fini(&r->words);
	free(r);
}
