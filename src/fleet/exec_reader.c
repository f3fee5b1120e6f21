/* exec_reader.c - see exec_reader.h. */
#include "fleet/exec_reader.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPEN_TRIES = 10, OPEN_PAUSE_MS = 100 };

void exec_reader_init(struct exec_reader *t, struct fleet *f, const struct exec_reader_events *on)
{
	*t = (struct exec_reader){ .fleet = f,
				   .on = on,
				   .own.post.fd = -1,
				   .streams = 2,
				   .until = { UINT64_MAX, UINT64_MAX, UINT64_MAX } };
}

/* ---- flow control ---- */

static uint64_t window_end(const struct exec_reader *t, uint64_t from, unsigned stream)
{
	uint64_t end =
		from > UINT64_MAX - EXEC_READER_WINDOW ? UINT64_MAX : from + EXEC_READER_WINDOW;

	return end < t->until[stream] ? end : t->until[stream];
}

/* Grants half a window at a time, so that a credit is rare and never late. */
static void exec_reader_grant(struct exec_reader *t, struct init_call *call, unsigned stream)
{
	uint64_t next = call->next_byte[stream], until = call->granted[stream];

	/* After dropped bytes, nothing is granted yet. */
	if (!t->stopped && (until < next || until - next < EXEC_READER_WINDOW / 2))
		init_conn_credit(call, stream, window_end(t, next, stream));
}

static struct init_call *reader_call(struct exec_reader *t)
{
	if (t->has_own)
		return &t->init_call;
	return t->run && t->run->reader == t ? &t->run->init_call : NULL;
}

void exec_reader_output(struct exec_reader *t, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	struct init_call *call = reader_call(t);

	if (offset < t->from[stream]) { /* written before the requested offset */
		size_t skip = t->from[stream] - offset < n ? (size_t)(t->from[stream] - offset) : n;

		bytes += skip;
		offset += skip;
		n -= skip;
	}
	if (n)
		t->on->output(t, stream, offset, bytes, n);
	/* on->output() may have closed this reader and detached it from the connection. */
	if (!t->ended && call)
		exec_reader_grant(t, call, stream);
}

void exec_reader_stop(struct exec_reader *t, int stopped)
{
	struct init_call *call = reader_call(t);

	t->stopped = stopped;
	for (unsigned s = 0; s < t->streams && call && call->line && !stopped; s++)
		exec_reader_grant(t, call, s);
}

/* ---- the end ---- */

void exec_reader_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	if (t->ended)
		return;
	t->ended = 1;
	t->run = NULL;
	t->on->over(t, record, e);
}

static void hang_up(struct exec_reader *t)
{
	struct box *b = fleet_find(t->fleet, t->box);

	if (!t->has_own)
		return;
	init_conn_close(&t->own);
	t->has_own = 0;
	if (b)
		b->readers--;
}

static void no_longer_early(struct exec_reader *t)
{
	struct exec_reader **at;

	if (!t->early)
		return;
	for (at = &t->early->early; *at != t; at = &(*at)->next_early)
		;
	*at = t->next_early;
	t->early = NULL;
}

void exec_reader_close(struct exec_reader *t)
{
	t->ended = 1;
	no_longer_early(t);
	if (t->run && t->run->reader == t) {
		t->run->reader = NULL;
		init_conn_detach(&t->run->init_call);
	}
	t->run = NULL;
	timer_fini(&t->again);
	exec_wait_cancel(&t->wait);
	if (t->opening)
		keeper_client_cancel(&t->fleet->keeper, t->opening);
	t->opening = NULL;
	hang_up(t);
}

static void reader_recorded(struct exec_wait *w, json_t *record)
{
	exec_reader_over(loop_owner(w, struct exec_reader, wait), record, NULL);
}

/* All output was read, or none is available: only the record is left. */
static void reader_conclude(struct exec_reader *t)
{
	struct box *b = fleet_find(t->fleet, t->box);
	struct exec *r = b ? exec_lookup(b, t->run_id) : NULL;
	struct store_run row = { 0 };
	json_t *record;
	struct err e;

	hang_up(t);
	if (r) {
		t->wait.done = reader_recorded;
		exec_await(r, &t->wait);
		return;
	}
	run_writer_flush(&t->fleet->run_writer);
	if (store_run_get(t->fleet->store, t->run_id, &row, &e) < 0) {
		exec_reader_over(t, NULL, &e);
		return;
	}
	record = exec_row_json(&row);
	store_run_fini(&row);
	exec_reader_over(t, record, NULL);
	json_decref(record);
}

/* ---- a connection of its own ---- */

static void reader_reading(struct init_call *x, unsigned stream, uint64_t from, uint64_t tip)
{
	struct exec_reader *t = loop_owner(x, struct exec_reader, init_call);

	if (t->from[stream] == EXEC_READER_NOW)
		t->from[stream] = from;
	if (t->on->reading)
		t->on->reading(t, stream, from < t->from[stream] ? t->from[stream] : from, tip);
	if (!t->ended)
		exec_reader_grant(t, x, stream);
}

static void reader_output(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
			  size_t n)
{
	exec_reader_output(loop_owner(x, struct exec_reader, init_call), stream, offset, bytes, n);
}

static void reader_exited(struct init_call *x, const struct wire_exit *end)
{
	(void)end;
	reader_conclude(loop_owner(x, struct exec_reader, init_call));
}

static void reader_refused(struct init_call *x, const struct err *e)
{
	(void)e; /* init has forgotten the exec; its record still exists */
	init_conn_remove_call(x);
	reader_conclude(loop_owner(x, struct exec_reader, init_call));
}

static void open_line(struct exec_reader *t);

static void open_again(struct timer *timer)
{
	open_line(loop_owner(timer, struct exec_reader, again));
}

/* No connection, or it was closed. Either the box has ended, and there is nothing more to read; or
 * its init had no space for another connection, and then the output must not be reported as
 * complete. */
static void lost_line(struct exec_reader *t, const struct err *why)
{
	struct box *b = fleet_find(t->fleet, t->box);
	struct err e;

	t->has_own = 0;
	if (!b || b->state >= BOX_ENDING) {
		reader_conclude(t);
		return;
	}
	if (b->row.image[0]) /* paused on the disk: it reads on when the box is resumed */
		t->tries = 0;
	if (t->tries++ == OPEN_TRIES) {
		err_set(&e, ERR_SYS, "box %s accepts no more readers: %.100s", t->box,
			why ? why->msg : "");
		e.sys = EBUSY;
		exec_reader_over(t, NULL, &e);
		return;
	}
	if (!t->again.ev)
		timer_init(&t->again, t->fleet->loop, open_again);
	timer_set(&t->again, OPEN_PAUSE_MS);
}

static void line_gone(struct init_conn *l, const struct err *why)
{
	struct exec_reader *t = l->user;

	for (unsigned s = 0; s < t->streams; s++)
		t->from[s] = t->init_call.next_byte[s];
	if (!t->ended)
		lost_line(t, why);
}

static const struct init_call_ops reader_call_ops = {
	.reading = reader_reading,
	.output = reader_output,
	.exited = reader_exited,
	.refused = reader_refused,
};

static void reader_opened(void *ctx, const struct frame *f, size_t len, int *fd,
			  const struct err *e)
{
	struct exec_reader *t = ctx;
	struct box *b = fleet_find(t->fleet, t->box);
	uint64_t until[WIRE_STREAMS];
	struct err own;

	(void)len;
	t->opening = NULL;
	if (!f && e->sys == EAGAIN) { /* the box runs, but its init accepts no connection now */
		exec_reader_over(t, NULL, e);
		return;
	}
	if (b && b->readers >= EXEC_READER_READERS) {
		err_set(&own, ERR_LIMIT, "box %s already has %d readers, the maximum", t->box,
			EXEC_READER_READERS);
		exec_reader_over(t, NULL, &own);
		return;
	}
	t->own.on_gone = line_gone;
	t->own.user = t;
	if (!f || *fd < 0 ||
	    init_conn_open(&t->own, t->fleet->loop, steal_fd(fd), t->box, &own) < 0) {
		lost_line(t, e);
		return;
	}
	t->has_own = 1;
	if (b) {
		t->own.post.watch.budget = fleet_budget(t->fleet, b->row.team);
		b->readers++;
	}
	for (unsigned s = 0; s < t->streams; s++)
		until[s] = t->from[s] == EXEC_READER_NOW ? 0 : window_end(t, t->from[s], s);
	init_conn_attach(&t->own, &t->init_call, t->ref, &reader_call_ops, t->streams, t->from,
			 until);
}

static void open_line(struct exec_reader *t)
{
	t->opening = keeper_client_request_box(&t->fleet->keeper, WIRE_OPEN, 0,
					       fleet_keeper_id(t->fleet, t->box), WIRE_BOX,
					       reader_opened, t);
}

void exec_reader_begin(struct exec_reader *t)
{
	t->early = NULL;
	t->opening = keeper_client_request_box(&t->fleet->keeper, WIRE_OPEN, 0,
					       fleet_keeper_id(t->fleet, t->box), WIRE_BOX,
					       reader_opened, t);
}

/* START and this READ use two connections, and init might read this one first. */
static void reader_attach(struct exec_reader *t, struct fleet *f, const char *box,
			  const char *run_id, uint32_t ref, unsigned streams, const uint64_t *from,
			  const struct exec_reader_events *on)
{
	struct box *b = fleet_find(f, box);
	struct exec *r = b ? exec_lookup(b, run_id) : NULL;

	exec_reader_init(t, f, on);
	snprintf(t->box, sizeof(t->box), "%s", box);
	snprintf(t->run_id, sizeof(t->run_id), "%s", run_id);
	t->ref = ref;
	t->streams = streams;
	memcpy(t->from, from, streams * sizeof(*from));
	if (!r || r->begun) {
		exec_reader_begin(t);
		return;
	}
	t->early = r;
	t->next_early = r->early;
	r->early = t;
}

void exec_reader_open(struct exec_reader *t, struct fleet *f, const char *box, const char *run_id,
		      uint32_t ref, const uint64_t from[2], const struct exec_reader_events *on)
{
	reader_attach(t, f, box, run_id, ref, 2, from, on);
}

void exec_reader_open_channel(struct exec_reader *t, struct fleet *f, const char *box,
			      const char *run_id, uint32_t ref, const uint64_t from[WIRE_STREAMS],
			      const struct exec_reader_events *on)
{
	reader_attach(t, f, box, run_id, ref, WIRE_STREAMS, from, on);
}
