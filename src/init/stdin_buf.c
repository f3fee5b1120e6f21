/* stdin_buf.c - see stdin_buf.h. */
#include "init/stdin_buf.h"
#include "init/exec.h"
#include "init/hold.h"
#include "initlib/sys.h"
#include "initlib/str.h"
#include <asm/termbits.h>

enum { RING = STDIN_BUF_ROOM + 4096 }; /* a ^D needs no room of the client's */
enum { USUAL_EOF = 4 };

static void stdin_buf_ready(struct event_source *s, uint32_t events);

void stdin_buf_init(struct stdin_buf *f, struct exec *x, int take_fd, enum event_stream_kind kind)
{
	*f = (struct stdin_buf){ .src = { .fd = take_fd, .ready = stdin_buf_ready },
				 .exec = x,
				 .kind = (uint8_t)kind };
	f->room = take_fd < 0 ? 0 : STDIN_BUF_ROOM;
}

void stdin_buf_fini(struct stdin_buf *f)
{
	/* A socket or terminal has a second descriptor: closing this one would not remove it
	 * from the epoll. */
	loop_want(&f->src, 0);
	if (f->kind == STDIN_BUF_SOCKET && f->src.fd >= 0)
		sys_shutdown(f->src.fd, SHUT_WRITE);
	loop_close(&f->src);
	sys_unmap(f->ring, RING);
	f->ring = NULL;
	f->len = 0;
}

/* Reported in halves, so that a slow program does not cause a frame for every byte it reads. */
static void renew_room(struct stdin_buf *f)
{
	uint64_t until =
		f->accepted + STDIN_BUF_ROOM - (f->len < STDIN_BUF_ROOM ? f->len : STDIN_BUF_ROOM);

	if (until >= f->room + STDIN_BUF_ROOM / 2) {
		f->room = until;
		exec_due(f->exec);
	}
}

/* How many of n bytes the program's side accepts now; all of them if no process will ever read
 * them. */
static size_t hand_over(struct stdin_buf *f, const char *bytes, size_t n)
{
	long w = f->src.fd < 0 ? -EPIPE : hold_active() ? -EAGAIN : sys_write(f->src.fd, bytes, n);

	if (w >= 0) {
		f->consumed += (uint64_t)w;
		return (size_t)w;
	}
	if (w == -EAGAIN || w == -EINTR)
		return 0;
	stdin_buf_fini(f); /* the program closed its stdin, which is not an error */
	return n;
}

static void stdin_store(struct stdin_buf *f, const char *bytes, size_t n)
{
	if (!f->ring)
		f->ring = sys_map(RING);
	if (!f->ring || n > RING - f->len)
		return; /* no memory left in the box for its own input */
	for (; n; n--, f->len++)
		f->ring[(f->head + f->len) % RING] = *bytes++;
	stdin_buf_resume(f);
}

void stdin_buf_resume(struct stdin_buf *f)
{
	loop_want(&f->src, f->len && !hold_active() ? EPOLLOUT : 0);
}

size_t stdin_buf_read(const struct stdin_buf *f, uint32_t from, char *to, size_t room)
{
	size_t n = 0;

	for (; n < room && from + n < f->len; n++)
		to[n] = f->ring[(f->head + from + n) % RING];
	return n;
}

void stdin_buf_restore(struct stdin_buf *f, const char *bytes, size_t n)
{
	stdin_store(f, bytes, n);
}

static void stdin_put(struct stdin_buf *f, const char *bytes, size_t n)
{
	size_t done = f->len ? 0 : hand_over(f, bytes, n);

	if (done < n)
		stdin_store(f, bytes + done, n - done);
}

/* The signal that this byte means for the terminal; 0: none. */
static int stdin_signal_of(const struct termios *t, char byte)
{
	unsigned char c = (unsigned char)byte;

	if (!(t->c_lflag & ISIG) || !c)
		return 0;
	return c == t->c_cc[VINTR]   ? SIGINT
	       : c == t->c_cc[VQUIT] ? SIGQUIT
	       : c == t->c_cc[VSUSP] ? SIGTSTP
				     : 0;
}

/* As stdin_put(), for a kernel whose terminals send no signals: init does. */
static void stdin_put_signals(struct stdin_buf *f, const char *bytes, size_t n)
{
	struct termios t;
	size_t i, from = 0;

	if (sys_ioctl(f->src.fd, TCGETS, &t) < 0)
		t.c_lflag = 0;
	for (i = 0; i < n; i++) {
		int signo = stdin_signal_of(&t, bytes[i]);

		if (!signo)
			continue;
		if (i > from)
			stdin_put(f, bytes + from, i - from);
		from = i + 1;
		f->consumed++;
		exec_signal_foreground(f->exec, signo);
	}
	if (n > from)
		stdin_put(f, bytes + from, n - from);
}

int stdin_buf_push(struct stdin_buf *f, const char *bytes, size_t n)
{
	if (f->accepted + n > f->room)
		return -1;
	f->accepted += n;
	if (!f->ending && f->kind == STDIN_BUF_TTY && exec_terminals_are_silent())
		stdin_put_signals(f, bytes, n);
	else if (!f->ending)
		stdin_put(f, bytes, n);
	renew_room(f);
	return 0;
}

void event_stream_end(struct stdin_buf *f)
{
	if (f->kind == STDIN_BUF_TTY && f->src.fd >= 0) {
		struct termios t;
		char eof = USUAL_EOF;

		if (sys_ioctl(f->src.fd, TCGETS, &t) >= 0)
			eof = (char)t.c_cc[VEOF];
		stdin_put(f, &eof, 1);
		return;
	}
	f->ending = 1;
	if (!f->len)
		stdin_buf_fini(f);
}

static void stdin_buf_ready(struct event_source *s, uint32_t events)
{
	struct stdin_buf *f = source_owner(s, struct stdin_buf, src);
	uint32_t straight = RING - f->head;
	size_t done;

	(void)events;
	if (!f->len)
		return;
	done = hand_over(f, f->ring + f->head, f->len < straight ? f->len : straight);
	if (f->src.fd >= 0) {
		f->head = (uint32_t)((f->head + done) % RING);
		f->len -= (uint32_t)done;
		if (!f->len && f->ending)
			stdin_buf_fini(f);
		else if (!f->len)
			loop_want(&f->src, 0);
	}
	renew_room(f);
}
