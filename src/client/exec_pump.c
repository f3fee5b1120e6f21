/* exec_pump.c - see exec_pump.h.
 *
 *   stdin ---> STDIN, below ROOM --->  init  ---> OUTPUT, below CREDIT ---> sinks ---> 1 and 2
 *
 * One poll loop. A slow reader of stdout stops the program through its credit, never this loop:
 * every OUTPUT fits into the window of its sink, because no more was granted. So the socket is
 * always read, and a blocked stdout does not delay stderr, a signal or the exit.
 *
 * stdout is shared with other processes, so it must not be made non-blocking. If a write could
 * block, this calls poll() first and writes at most PIPE_BUF bytes, which a ready pipe accepts
 * completely. */
#include "client/exec_pump.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#define SECOND_NS UINT64_C(1000000000)

enum { CTRL_C = 3, TWICE_S = 2, STDIN_CHUNK = 32 * 1024 };

void exec_pump_init(struct exec_pump *s, struct box_handle *b)
{
	*s = (struct exec_pump){ .box = b, .in = 0, .signals = -1 };
	for (int i = 0; i < 2; i++) {
		struct stat st;

		s->out[i].fd = i + 1;
		s->out[i].bounded = fstat(i + 1, &st) < 0 || !S_ISREG(st.st_mode);
	}
}

void exec_pump_fini(struct exec_pump *s)
{
	for (int i = 0; i < 2; i++)
		free(s->out[i].held);
}

/* From now on the exec has STREAM_STOP_MS to exit. The first reason is kept. */
static int pump_stop(struct exec_pump *s, int signo, enum stream_end end, struct err *e)
{
	if (s->exited)
		return 0;
	if (s->end == STREAM_EXITED) {
		s->end = end;
		s->deadline_ns = now_ns() + STREAM_STOP_MS * UINT64_C(1000000);
	}
	return boxh_signal(s->box, s->ref, signo, e);
}

/* Writes as much as possible without waiting; returns how much, -1 on a failed write. */
static ssize_t write_some(const struct output_sink *o, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		struct pollfd p = { .fd = o->fd, .events = POLLOUT };
		size_t most = o->bounded && n - done > PIPE_BUF ? PIPE_BUF : n - done;
		ssize_t w;

		if (o->bounded && poll(&p, 1, 0) == 0)
			break;
		w = write(o->fd, bytes + done, most);
		if (w < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (w < 0)
			return -1;
		done += (size_t)w;
	}
	return (ssize_t)done;
}

static void keep_some(struct output_sink *o, const char *bytes, size_t n)
{
	size_t room = o->keep && o->keep->len < o->keep_max ? o->keep_max - o->keep->len : 0;
	size_t take = n < room ? n : room;

	if (take)
		buf_add(o->keep, bytes, take);
	o->dropped += n - take;
}

static void pump_hold(struct output_sink *o, const char *bytes, size_t n)
{
	if (!o->held) {
		o->held = malloc(STREAM_WINDOW);
		if (!o->held)
			abort();
	}
	if (o->start + o->len + n > STREAM_WINDOW) {
		memmove(o->held, o->held + o->start, o->len);
		o->start = 0;
	}
	memcpy(o->held + o->start + o->len, bytes, n);
	o->len += n;
}

/* A closed reader is no failure: a program in a pipeline ends by SIGPIPE without a message. */
static int lost_reader(struct exec_pump *s, int i, struct err *e)
{
	if (errno != EPIPE && errno != EIO && errno != EBADF && errno != ECONNRESET)
		return err_sys(e, "write to std%s", i ? "err" : "out");
	s->out[i].fd = -1;
	s->out[i].len = 0;
	if (s->terminal)
		return pump_stop(s, SIGHUP, STREAM_HUNG_UP, e);
	return pump_stop(s, SIGPIPE, STREAM_UNREAD, e);
}

/* Grants half a window at a time, so that an acknowledgement is rare and never late. */
static int pump_grant(struct exec_pump *s, int i, struct err *e)
{
	struct output_sink *o = &s->out[i];

	if (s->exited || o->passed + STREAM_WINDOW - o->granted < STREAM_WINDOW / 2)
		return 0;
	o->granted = o->passed + STREAM_WINDOW;
	return boxh_credit(s->box, s->ref, (uint32_t)i, o->granted, e);
}

static int pump_drain(struct exec_pump *s, int i, struct err *e)
{
	struct output_sink *o = &s->out[i];
	ssize_t n = write_some(o, o->held + o->start, o->len);

	if (n < 0)
		return lost_reader(s, i, e);
	o->start += (size_t)n;
	o->len -= (size_t)n;
	o->passed += (size_t)n;
	return pump_grant(s, i, e);
}

static int on_output(struct exec_pump *s, const struct wire_output *f, size_t n, struct err *e)
{
	const char *bytes = (const char *)(f + 1);
	struct output_sink *o = &s->out[f->stream & 1];
	int i = (int)(f->stream & 1);

	if (f->stream > 1 || f->offset < o->next || f->offset > o->granted ||
	    n > o->granted - f->offset)
		return err_set(e, ERR_INVALID, "box %s: unexpected output", s->box->about.id);
	o->dropped += f->offset - o->next;
	o->passed += f->offset - o->next;
	o->next = f->offset + n;
	if (o->note)
		o->note(o->noted, bytes, n);
	if (o->fd < 0) {
		keep_some(o, bytes, n);
		o->passed += n;
	} else {
		ssize_t done = o->len ? 0 : write_some(o, bytes, n);

		if (done < 0)
			return lost_reader(s, i, e);
		o->passed += (size_t)done;
		if ((size_t)done < n)
			pump_hold(o, bytes + done, n - (size_t)done);
	}
	return s->end == STREAM_UNREAD ? 0 : pump_grant(s, i, e);
}

static int on_init(struct exec_pump *s, struct err *e)
{
	char buf[WIRE_MAX];
	const struct frame *f = (const struct frame *)buf;
	unsigned nfds = 0;
	int n = sock_recv(s->box->init, buf, NULL, &nfds, e);

	if (n == 0 || (n < 0 && e->sys == ECONNRESET)) {
		s->gone = 1;
		s->end = s->end == STREAM_EXITED ? STREAM_BOX_DIED : s->end;
		return 0;
	}
	if (n < 0)
		return err_in(e, "box %s", s->box->about.id);
	if (f->ref != s->ref)
		return 0;
	switch (f->type) {
	case WIRE_OUTPUT:
		return on_output(s, (const struct wire_output *)buf,
				 (size_t)n - sizeof(struct wire_output), e);
	case WIRE_STDIN_WINDOW:
		if (f->flags & WIRE_STDIN_CHANNEL)
			return 0;
		s->room = ((const struct wire_stdin_window *)buf)->until;
		return 0;
	case WIRE_EXIT:
		memcpy(&s->exit, buf, sizeof(s->exit));
		s->exit.step[sizeof(s->exit.step) - 1] = 0;
		s->exited = 1;
		return 0;
	case WIRE_ERROR:
		return wire_error_read((const struct wire_error *)buf, e);
	default:
		return 0; /* ignore frames of a later protocol version */
	}
}

static int on_interrupt(struct exec_pump *s, struct err *e)
{
	uint64_t now = now_ns(), last = s->last_int_ns;

	s->last_int_ns = now;
	if (s->twice && last && now - last < TWICE_S * SECOND_NS)
		return pump_stop(s, SIGKILL, STREAM_KILLED, e);
	return 0;
}

static int on_stdin(struct exec_pump *s, struct err *e)
{
	char bytes[STDIN_CHUNK];
	uint64_t room = s->room - s->sent;
	ssize_t n = read(s->in, bytes, room < sizeof(bytes) ? (size_t)room : sizeof(bytes));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return 0;
	if (n <= 0 && s->terminal) {
		s->in = -1;
		return pump_stop(s, SIGHUP, STREAM_HUNG_UP, e);
	}
	if (n < 0)
		return err_sys(e, "read stdin");
	if (n == 0)
		s->in = -1;
	s->sent += (uint64_t)n;
	if (s->terminal && memchr(bytes, CTRL_C, (size_t)n) && on_interrupt(s, e) < 0)
		return -1;
	return boxh_stdin(s->box, s->ref, bytes, (size_t)n, e);
}

static int pump_resize(struct exec_pump *s, struct err *e)
{
	struct winsize w;

	if (!s->terminal || ioctl(s->in, TIOCGWINSZ, &w) < 0)
		return 0;
	return boxh_resize(s->box, s->ref, w.ws_row, w.ws_col, e);
}

static int on_signal(struct exec_pump *s, struct err *e)
{
	struct signalfd_siginfo si;
	int signo;

	if (read(s->signals, &si, sizeof(si)) != sizeof(si))
		return 0;
	signo = (int)si.ssi_signo;
	if (s->exited || s->gone) { /* only buffered output is left to write */
		if (signo == SIGINT || signo == SIGTERM || signo == SIGHUP || signo == SIGQUIT)
			s->out[0].len = s->out[1].len = 0;
		return 0;
	}
	if (signo == SIGWINCH)
		return pump_resize(s, e);
	if (signo == SIGHUP && s->terminal)
		return pump_stop(s, SIGHUP, STREAM_HUNG_UP, e);
	if (signo == SIGINT && on_interrupt(s, e) < 0)
		return -1;
	return boxh_signal(s->box, s->ref, signo, e);
}

enum { P_INIT, P_SIGNALS, P_IN, P_OUT, P_ERR, P_COUNT };

/* The events to wait for depend only on the state of the pump. */
static void pump_wants(const struct exec_pump *s, struct pollfd p[P_COUNT])
{
	int takes_in = s->in >= 0 && !s->exited && !s->gone && s->room > s->sent;

	p[P_INIT] =
		(struct pollfd){ .fd = s->exited || s->gone ? -1 : s->box->init, .events = POLLIN };
	p[P_SIGNALS] = (struct pollfd){ .fd = s->signals, .events = POLLIN };
	p[P_IN] = (struct pollfd){ .fd = takes_in ? s->in : -1, .events = POLLIN };
	for (int i = 0; i < 2; i++)
		p[P_OUT + i] = (struct pollfd){ .fd = s->out[i].len ? s->out[i].fd : -1,
						.events = POLLOUT };
}

static int pump_turn(struct exec_pump *s, int timeout_ms, struct err *e)
{
	struct pollfd p[P_COUNT];

	pump_wants(s, p);
	if (poll(p, P_COUNT, timeout_ms) < 0)
		return errno == EINTR ? 0 : err_sys(e, "poll");
	if ((p[P_SIGNALS].revents && on_signal(s, e) < 0) ||
	    (p[P_OUT].revents && pump_drain(s, 0, e) < 0) ||
	    (p[P_ERR].revents && pump_drain(s, 1, e) < 0) ||
	    (p[P_INIT].revents && on_init(s, e) < 0) || (p[P_IN].revents && on_stdin(s, e) < 0))
		return -1;
	return 0;
}

static int pump_has_ended(const struct exec_pump *s)
{
	int flushed = !s->out[0].len && !s->out[1].len;

	return (s->exited || s->gone) && flushed;
}

int exec_pump_run(struct exec_pump *s, const struct box_command *cmd, struct err *e)
{
	struct box_command with = *cmd;

	with.credit = STREAM_WINDOW;
	with.flags |= s->in >= 0 ? WIRE_START_STDIN : 0;
	s->out[0].granted = s->out[1].granted = STREAM_WINDOW;
	if (boxh_start(s->box, &with, &s->ref, e) < 0) {
		s->gone = e->sys == EPIPE;
		s->end = STREAM_BOX_DIED;
		return s->gone ? 0 : -1;
	}
	while (!pump_has_ended(s)) {
		uint64_t now = now_ns();
		int timeout_ms = -1;

		if (s->deadline_ns) {
			if (now >= s->deadline_ns)
				break;
			timeout_ms = (int)((s->deadline_ns - now) / 1000000) + 1;
		}
		if (pump_turn(s, timeout_ms, e) < 0) {
			if (e->sys != EPIPE)
				return -1;
			/* Init has closed the connection, but frames that it sent before can still
			 * be read, perhaps EXIT. */
			s->in = -1;
		}
	}
	return 0;
}
