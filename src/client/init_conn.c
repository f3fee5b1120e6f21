/* init_conn.c - see init_conn.h. */
#include "client/init_conn.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "client/command.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

enum { LAY_PIECE = 48 * 1024 };

/* ---- calls ---- */

void init_conn_add_call(struct init_conn *l, struct init_call *x, uint32_t ref,
			const struct init_call_ops *on)
{
	*x = (struct init_call){ .line = l, .next = l->listeners, .ref = ref, .on = on };
	l->listeners = x;
}

void init_conn_remove_call(struct init_call *x)
{
	struct init_call **at;

	if (!x->line)
		return;
	for (at = &x->line->listeners; *at != x; at = &(*at)->next)
		;
	*at = x->next;
	if (x->line->lister == x)
		x->line->lister = NULL;
	x->line = NULL;
	x->next = NULL;
}

static struct init_call *conn_find(const struct init_conn *l, uint32_t ref)
{
	struct init_call *x = l->listeners;

	while (x && x->ref != ref)
		x = x->next;
	return x;
}

uint32_t init_conn_new_ref(struct init_conn *l)
{
	while (conn_find(l, l->next_ref))
		l->next_ref++;
	return l->next_ref++;
}

static void tell_lost(struct init_conn *l)
{
	while (l->listeners) {
		struct init_call *x = l->listeners;

		init_conn_remove_call(x);
		if (x->on->lost)
			x->on->lost(x);
	}
}

static void conn_lose(struct init_conn *l, const struct err *why)
{
	tell_lost(l);
	l->on_gone(l, why);
}

/* ---- receive ---- */

/* Frames of a box are untrusted: accepts only bytes that were requested, each once, in order. */
static int conn_output(struct init_call *x, const struct wire_output *f, size_t n)
{
	unsigned s = f->stream;

	if (s >= WIRE_STREAMS || f->offset < x->next_byte[s] || f->offset > x->granted[s] ||
	    n > x->granted[s] - f->offset)
		return -1;
	x->next_byte[s] = f->offset + n;
	if (x->on->output)
		x->on->output(x, s, f->offset, (const char *)(f + 1), n);
	return 0;
}

static int conn_reading(struct init_call *x, const struct wire_attached *f)
{
	if (f->stream == WIRE_NO_STREAM)
		return 0;
	if (f->stream >= WIRE_STREAMS || f->from > f->tip)
		return -1;
	x->next_byte[f->stream] = f->from;
	if (x->on->reading)
		x->on->reading(x, f->stream, f->from, f->tip);
	return 0;
}

static void conn_exited(struct init_call *x, const struct frame *f)
{
	struct wire_exit end;

	memcpy(&end, f, sizeof(end));
	end.step[sizeof(end.step) - 1] = 0;
	init_conn_remove_call(x);
	if (x->on->exited)
		x->on->exited(x, &end);
}

static void told_room(struct init_call *x, const struct wire_stdin_window *f)
{
	if (f->head.flags & WIRE_STDIN_CHANNEL && x->on->channel_room)
		x->on->channel_room(x, f->until);
	if (!(f->head.flags & WIRE_STDIN_CHANNEL) && x->on->room)
		x->on->room(x, f->until);
}

static void conn_refused(struct init_call *x, const struct frame *f)
{
	struct err e;

	wire_error_read((const struct wire_error *)f, &e);
	if (x->on->refused)
		x->on->refused(x, &e);
}

static int conn_hear(struct init_call *x, const struct frame *f, size_t len, int *fd)
{
	switch (f->type) {
	case WIRE_OUTPUT:
		return conn_output(x, (const struct wire_output *)f,
				   len - sizeof(struct wire_output));
	case WIRE_ATTACHED:
		return conn_reading(x, (const struct wire_attached *)f);
	case WIRE_STARTED:
		if (x->on->started)
			x->on->started(x, ((const struct wire_started *)f)->pid);
		return 0;
	case WIRE_STDIN_WINDOW:
		told_room(x, (const struct wire_stdin_window *)f);
		return 0;
	case WIRE_EXIT:
		conn_exited(x, f);
		return 0;
	case WIRE_ERROR:
		conn_refused(x, f);
		return 0;
	default:
		if (x->on->answer)
			x->on->answer(x, f, len, fd);
		return 0;
	}
}

static void on_frame(struct frame_conn *p, const struct frame *f, size_t len, int *fd)
{
	struct init_conn *l = loop_owner(p, struct init_conn, post);
	/* An EXEC frame has the ref of its exec, not of the request. */
	struct init_call *x = f->type == WIRE_EXEC ? l->lister : conn_find(l, f->ref);
	struct err e;

	if (!x || conn_hear(x, f, len, fd) == 0)
		return;
	err_set(&e, ERR_INVALID, "box %s: unexpected output", l->box);
	frame_conn_fini(&l->post);
	conn_lose(l, &e);
}

static void on_gone(struct frame_conn *p, const struct err *why)
{
	conn_lose(loop_owner(p, struct init_conn, post), why);
}

/* ---- open, close ---- */

int init_conn_open(struct init_conn *l, struct loop *loop, int take_fd, const char *box,
		   struct err *e)
{
	*l = (struct init_conn){ .on_gone = l->on_gone, .user = l->user };
	snprintf(l->box, sizeof(l->box), "%s", box);
	frame_conn_init(&l->post, loop, take_fd);
	l->post.on_frame = on_frame;
	l->post.on_gone = on_gone;
	/* Each client chooses the refs of the execs that it starts, so they are random. */
	return id_random(&l->next_ref, sizeof(l->next_ref), e);
}

int init_conn_is_open(const struct init_conn *l)
{
	return l->post.fd >= 0;
}

void init_conn_close(struct init_conn *l)
{
	while (l->listeners)
		init_conn_remove_call(l->listeners);
	frame_conn_fini(&l->post);
}

void init_conn_box_ended(struct init_conn *l)
{
	frame_conn_fini(&l->post);
	tell_lost(l);
}

/* ---- send ---- */

int init_conn_start(struct init_conn *l, struct init_call *x, uint32_t ref,
		    const struct init_call_ops *on, const struct box_command *cmd, struct err *e)
{
	struct command_words c;

	if (command_make(&c, cmd, ref, e) < 0)
		return -1;
	init_conn_add_call(l, x, ref, on);
	for (unsigned s = 0; s < WIRE_STREAMS; s++)
		x->granted[s] = cmd->credit;
	frame_conn_send(&l->post, &c.start, sizeof(c.start), c.tail, c.tail_len,
			steal_fd(&c.memfd));
	command_fini(&c);
	return 0;
}

void init_conn_attach(struct init_conn *l, struct init_call *x, uint32_t ref,
		      const struct init_call_ops *on, unsigned n, const uint64_t *from,
		      const uint64_t *until)
{
	struct wire_output_window f = { .head = sock_head(WIRE_ATTACH, ref),
					.stream = WIRE_NO_STREAM };

	init_conn_add_call(l, x, ref, on);
	if (!n) {
		frame_conn_send(&l->post, &f, sizeof(f), NULL, 0, -1);
		return;
	}
	for (unsigned s = 0; s < n; s++) {
		f.stream = s;
		f.head.flags = s + 1 < n ? WIRE_ATTACH_MORE : 0;
		f.from = from[s];
		f.until = until[s];
		x->next_byte[s] = from[s]; /* until READING corrects it */
		x->granted[s] = f.until;
		frame_conn_send(&l->post, &f, sizeof(f), NULL, 0, -1);
	}
}

void init_conn_credit(struct init_call *x, unsigned stream, uint64_t until)
{
	struct wire_output_window f = { sock_head(WIRE_OUTPUT_WINDOW, x->ref), .stream = stream,
					.until = until };

	if (!x->line || until <= x->granted[stream])
		return;
	x->granted[stream] = until;
	frame_conn_send(&x->line->post, &f, sizeof(f), NULL, 0, -1);
}

static void send_head(struct init_conn *l, uint8_t type, uint32_t ref, uint16_t flags,
		      const void *tail, size_t n)
{
	struct frame f = sock_head(type, ref);

	f.flags = flags;
	frame_conn_send(&l->post, &f, sizeof(f), tail, n, -1);
}

void init_conn_detach(struct init_call *x)
{
	if (x->line)
		send_head(x->line, WIRE_DETACH, x->ref, 0, NULL, 0);
}

void init_conn_signal(struct init_conn *l, uint32_t ref, int signo)
{
	struct wire_signal f = { .head = sock_head(WIRE_SIGNAL, ref), .signo = signo };

	frame_conn_send(&l->post, &f, sizeof(f), NULL, 0, -1);
}

void init_conn_lease(struct init_conn *l, uint32_t ms)
{
	struct wire_lease f = { .head = sock_head(WIRE_LEASE, 0), .ms = ms };

	frame_conn_send(&l->post, &f, sizeof(f), NULL, 0, -1);
}

void init_conn_resize(struct init_conn *l, uint32_t ref, uint16_t rows, uint16_t cols)
{
	struct wire_resize f = { .head = sock_head(WIRE_RESIZE, ref), .rows = rows, .cols = cols };

	frame_conn_send(&l->post, &f, sizeof(f), NULL, 0, -1);
}

void init_conn_stdin(struct init_conn *l, uint32_t ref, const void *bytes, size_t n)
{
	send_head(l, WIRE_STDIN, ref, 0, bytes, n);
}

void init_conn_channel(struct init_conn *l, uint32_t ref, const void *bytes, size_t n)
{
	send_head(l, WIRE_STDIN, ref, WIRE_STDIN_CHANNEL, bytes, n);
}

void init_conn_put_early(struct init_conn *l, uint32_t ref, const char *path, const void *bytes,
			 size_t n)
{
	struct wire_put put = { .head = sock_head(WIRE_PUT_EARLY, ref) };
	size_t name = strlen(path) + 1, done = 0;
	char tail[LAY_PIECE];

	if (name > sizeof(tail) / 2)
		name = sizeof(tail) / 2; /* longer than any file name: the box will reject it */
	memcpy(tail, path, name);
	tail[name - 1] = 0;
	do {
		size_t part = n - done < sizeof(tail) - name ? n - done : sizeof(tail) - name;

		if (part)
			memcpy(tail + name, (const char *)bytes + done, part);
		frame_conn_send(&l->post, &put, sizeof(put), tail, name + part, -1);
		done += part;
		put.flags = WIRE_PUT_EARLY_MORE;
	} while (done < n);
}

void init_conn_kill_on_close(struct init_conn *l)
{
	send_head(l, WIRE_KILL_ON_CLOSE, 0, 0, NULL, 0);
}

void init_conn_request(struct init_conn *l, struct init_call *x, const struct init_call_ops *on,
		       uint8_t type, uint16_t flags)
{
	init_conn_add_call(l, x, init_conn_new_ref(l), on);
	if (type == WIRE_EXECS)
		l->lister = x;
	send_head(l, type, x->ref, flags, NULL, 0);
}

void init_conn_request_port(struct init_conn *l, struct init_call *x,
			    const struct init_call_ops *on, uint8_t type, uint16_t port)
{
	struct wire_connect f = { .port = port };

	init_conn_add_call(l, x, init_conn_new_ref(l), on);
	f.head = sock_head(type, x->ref);
	frame_conn_send(&l->post, &f, sizeof(f), NULL, 0, -1);
}
