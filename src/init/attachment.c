/* attachment.c - see attachment.h.
 *
 * Order within one attachment: STARTED, ROOM, then OUTPUT up to the credit, then EXIT. EXIT
 * waits until every byte of the attached streams has been sent, so a client that gives no more
 * credit gets no EXIT: the client decides when it has read enough. After EXIT the attachment is
 * freed.
 * Bytes of the channel wait until all bytes of stdout and stderr have been sent: they never
 * overtake. */
#include "init/attachment.h"
#include "init/conn.h"
#include "init/exec.h"
#include "initlib/loop.h"
#include "initlib/scratch.h"
#include "initlib/sys.h"

enum { FRAMES_A_TURN = 4, CHANNEL = 2, TELL_NS = 1000000, TELL_LONE_NS = 2500000 };

static LAZY struct attachment views[ATTACHMENT_MAX];

struct attachment *attachment_find(struct exec *x, const struct conn *c)
{
	struct attachment *v = x->views;

	while (v && v->conn != c)
		v = v->next;
	return v;
}

struct attachment *attachment_add(struct exec *x, struct conn *c)
{
	struct attachment *v = attachment_find(x, c);
	int i;

	for (i = 0; !v && i < ATTACHMENT_MAX; i++) {
		if (views[i].conn)
			continue;
		v = &views[i];
		*v = (struct attachment){ .conn = c, .next = x->views };
		x->views = v;
	}
	return v;
}

static void attachment_detach(struct exec *x, struct attachment *v)
{
	struct attachment **link = &x->views;

	while (*link != v)
		link = &(*link)->next;
	*link = v->next;
	v->conn = NULL;
	if (!x->over)
		exec_due(x); /* it may have been the slow one */
}

void attachment_detach_all(struct exec *x)
{
	while (x->views)
		attachment_detach(x, x->views);
}

void attachment_detach_conn(const struct conn *c)
{
	struct exec *x;
	struct attachment *v;

	for (x = exec_next(NULL); x; x = exec_next(x)) {
		v = attachment_find(x, c);
		if (v)
			attachment_detach(x, v);
	}
}

void attachment_conn_due(const struct conn *c)
{
	struct exec *x;

	for (x = exec_next(NULL); x; x = exec_next(x))
		if (attachment_find(x, c))
			exec_due(x);
}

uint64_t attachment_slowest(const struct exec *x, int stream)
{
	uint64_t least = x->out[stream].log.tip;
	const struct attachment *v;

	for (v = x->views; v; v = v->next)
		if (v->streams >> stream & 1 && v->cursor[stream] < least)
			least = v->cursor[stream];
	return least;
}

static int send_output(const struct exec *x, struct attachment *v, int stream, const char *bytes,
		       size_t n)
{
	struct wire_output out = { .head = conn_head(WIRE_OUTPUT, x->ref),
				   .stream = (uint32_t)stream,
				   .offset = v->cursor[stream] };

	if (!conn_send(v->conn, &out, sizeof(out), bytes, n, -1))
		return 0;
	v->cursor[stream] += n;
	return 1;
}

/* Something that the channel must not overtake. */
static int owes_other(const struct exec *x, const struct attachment *v)
{
	int i;

	for (i = 0; i < CHANNEL; i++)
		if (v->streams >> i & 1 && v->cursor[i] < x->out[i].log.tip)
			return 1;
	return 0;
}

/* The end of a short program overtakes the report of its start, and both are sent as one frame.
 * A shell that reads its profile takes more than a millisecond; a client that starts one waits
 * that much longer. */
void attachment_will_report(struct exec *x, struct attachment *v)
{
	v->untold = 1;
	x->tell_ns = loop_now_ns + (x->lone ? TELL_LONE_NS : TELL_NS);
}

static int attachment_tell(struct exec *x, struct attachment *v)
{
	struct wire_started s = { .head = conn_head(WIRE_STARTED, x->ref), .pid = x->group };

	if (!conn_send(v->conn, &s, sizeof(s), NULL, 0, -1))
		return 0;
	v->untold = 0;
	x->tell_ns = 0;
	return 1;
}

void attachment_offer(struct exec *x, int stream, const char *bytes, size_t n)
{
	uint64_t tip = x->out[stream].log.tip;
	struct attachment *v = x->views;

	if (!v)
		return;
	if (v->next || !(v->streams >> stream & 1) || v->cursor[stream] != tip ||
	    v->until[stream] < tip + n || !conn_idle(v->conn) ||
	    (stream == CHANNEL && owes_other(x, v)) || (v->untold && !attachment_tell(x, v)) ||
	    !send_output(x, v, stream, bytes, n))
		exec_due(x);
}

static int tell_room(struct attachment *v, const struct stdin_buf *f, int channel)
{
	struct wire_stdin_window r = { .head = conn_head(WIRE_STDIN_WINDOW, f->exec->ref),
				       .until = f->room };

	r.head.flags = channel ? WIRE_STDIN_CHANNEL : 0;
	if (v->room_told[channel] != r.until && conn_send(v->conn, &r, sizeof(r), NULL, 0, -1))
		v->room_told[channel] = r.until;
	return v->room_told[channel] == r.until;
}

static int pump_room(struct exec *x, struct attachment *v)
{
	return tell_room(v, &x->in, 0) && tell_room(v, &x->channel_in, 1);
}

/* 1: all that the credit allows was sent. */
static int pump_output(struct exec *x, struct attachment *v, int stream)
{
	const struct log *l = &x->out[stream].log;
	uint64_t end = v->until[stream] < l->tip ? v->until[stream] : l->tip;
	int frames = FRAMES_A_TURN;

	while (v->cursor[stream] < end) {
		uint64_t n;

		/* The log could not get memory: the offset shows the gap to the client. */
		if (v->cursor[stream] < l->from) {
			v->cursor[stream] = l->from;
			continue;
		}
		n = end - v->cursor[stream];
		n = n < STREAM_CHUNK ? n : STREAM_CHUNK;
		if (!frames-- || log_read(l, v->cursor[stream], scratch, n) != (long)n ||
		    !send_output(x, v, stream, scratch, n))
			return 0;
		scratch_used(n);
	}
	return 1;
}

static int is_sated(const struct exec *x, const struct attachment *v)
{
	int i;

	for (i = 0; i < WIRE_STREAMS; i++)
		if (v->streams >> i & 1 && v->cursor[i] < x->out[i].log.tip)
			return 0;
	return 1;
}

/* Is there another frame to send, or has the waiting time passed? An EXIT alone implies the
 * start. */
static int is_time_to_tell(const struct exec *x, const struct attachment *v)
{
	return !is_sated(x, v) || (x->over && x->lone) ||
	       (!x->over && (!x->tell_ns || v->room_told[0] != x->in.room ||
			     v->room_told[1] != x->channel_in.room));
}

/* 1: stopped for fairness, not because of the socket or the credit. */
static int pump_one(struct exec *x, struct attachment *v)
{
	int i;

	if (!conn_idle(v->conn) || (v->untold && is_time_to_tell(x, v) && !attachment_tell(x, v)) ||
	    !pump_room(x, v))
		return 0;
	for (i = 0; i < WIRE_STREAMS; i++) {
		if (i == CHANNEL && owes_other(x, v))
			continue;
		if (v->streams >> i & 1 && !pump_output(x, v, i))
			return conn_idle(v->conn);
	}
	if (x->over && !v->hold && is_sated(x, v) &&
	    conn_send(v->conn, &x->end, sizeof(x->end), NULL, 0, -1)) {
		if (x->last == v->conn)
			conn_end(v->conn);
		attachment_detach(x, v);
	}
	return 0;
}

int attachment_pump(struct exec *x)
{
	struct attachment *v, *next;
	int more = 0;

	for (v = x->views; v; v = next) {
		next = v->next; /* v may be freed after its EXIT */
		more |= pump_one(x, v);
	}
	return more;
}
