/* stream.c - see stream.h. */
#include "init/stream.h"
#include "init/conn.h"
#include "init/exec.h"
#include "init/hold.h"
#include "initlib/scratch.h"
#include "initlib/sys.h"
#include "init/attachment.h"

enum { CHANNEL = 2 };
enum { CUT_MOST = 1 << 20 }; /* the largest pipe a user can request: its content is read */

static void stream_ready(struct event_source *src, uint32_t events);

void exec_pump_init(struct stream *s, struct exec *x, int index, uint64_t log_bytes)
{
	*s = (struct stream){ .src = { .fd = -1, .ready = stream_ready }, .exec = x };
	s->index = (uint8_t)index;
	log_init(&s->log, log_bytes);
}

void stream_open(struct stream *s, int take_fd, int tty)
{
	s->src.fd = take_fd;
	s->tty = (uint8_t)tty;
}

void exec_pump_fini(struct stream *s)
{
	loop_close(&s->src);
	log_fini(&s->log);
}

/* Bytes that fit before an attached reader would lose one. Without readers: no limit. */
static uint64_t stream_room(const struct stream *s)
{
	uint64_t unread = s->log.tip - attachment_slowest(s->exec, s->index);

	uint64_t most = log_room_for(&s->log);

	return unread < most ? most - unread : 0;
}

static int others_wait(const struct stream *s)
{
	const struct stream *all = s->exec->out;

	return s->index == CHANNEL && ((all[0].src.fd >= 0 && !stream_room(&all[0])) ||
				       (all[1].src.fd >= 0 && !stream_room(&all[1])));
}

/* A terminal that is hung up may be empty, and is then not readable; it can always be written to. */
void stream_resume(struct stream *s)
{
	uint32_t what = EPOLLIN | (s->hung_up ? EPOLLOUT : 0);

	loop_want(&s->src, stream_room(s) && !others_wait(s) && !hold_active() ? what : 0);
}

int stream_empty(struct stream *s)
{
	long n = 0;

	while (s->src.fd >= 0 && (n = sys_read(s->src.fd, scratch, STREAM_CHUNK)) > 0) {
		scratch_used((size_t)n);
		log_append(&s->log, scratch, (size_t)n);
	}
	return n == 0 || n == -EAGAIN || n == -EINTR ? 0 : (int)n;
}

static void stream_shut(struct stream *s)
{
	/* The other direction has no reader either; and while that descriptor is open, epoll
	 * would continue to report this one. */
	if (s->index == CHANNEL)
		stdin_buf_fini(&s->exec->channel_in);
	loop_close(&s->src);
}

static void at_end(struct stream *s)
{
	stream_shut(s);
	exec_check(s->exec);
}

/* One read, of at most so many bytes. 1: more may follow; 0: no bytes now, or no room; -1: the
 * end. */
static int stream_take(struct stream *s, uint64_t most)
{
	uint64_t want = stream_room(s) < most ? stream_room(s) : most;
	long n;

	if (!want) {
		stream_resume(s);
		return 0;
	}
	n = sys_read(s->src.fd, scratch, want < STREAM_CHUNK ? want : STREAM_CHUNK);
	if (n == -EINTR || (n == -EAGAIN && !s->hung_up))
		return 0;
	if (n <= 0) /* a terminal returns EIO after its last user has closed it */
		return -1;
	/* The waiting reader first. The log is for readers that attach later. */
	scratch_used((size_t)n);
	attachment_offer(s->exec, s->index, scratch, (size_t)n);
	log_append(&s->log, scratch, (size_t)n);
	log_trim(&s->log, attachment_slowest(s->exec, s->index));
	if (log_crowded())
		exec_cut_logs();
	return 1;
}

/* Reads all that was in it at the call. 0: readers must catch up first. */
static int stream_drain(struct stream *s)
{
	uint64_t until = s->log.tip + CUT_MOST;
	int more = 1;

	while (s->src.fd >= 0 && more > 0 && s->log.tip < until)
		more = stream_take(s, STREAM_CHUNK);
	if (more < 0 || (more > 0 && s->hung_up && s->src.fd >= 0))
		at_end(s);
	return s->src.fd < 0 || more > 0 || stream_room(s);
}

/* Bytes that wait in it now; -1: it is at its end. */
static int stream_waiting(const struct stream *s)
{
	int n = 0;
	char byte;
	long peeked;

	if (sys_ioctl(s->src.fd, FIONREAD, &n) >= 0 && n > 0)
		return n;
	peeked = sys_peek(s->src.fd, &byte, 1);
	return peeked > 0 || peeked == -EAGAIN || peeked == -EINTR ? 0 : -1;
}

/* Reads at most the present content of the channel before the others are drained: bytes that
 * arrive meanwhile may be newer than a line that is not drained. */
static void channel_ready(struct stream *s)
{
	int n = stream_waiting(s);

	if (!n)
		return;
	/* The log may be full without an end of the pipe: then the pipe is not known to be
	 * empty. */
	if (!stream_drain(&s->exec->out[0]) || !stream_drain(&s->exec->out[1]))
		stream_resume(s);
	else if (n < 0 || stream_take(s, (uint64_t)n) < 0)
		at_end(s);
}

static void stream_ready(struct event_source *src, uint32_t events)
{
	struct stream *s = source_owner(src, struct stream, src);

	if (hold_active()) /* it has begun in this turn */
		return;
	if (s->index == CHANNEL) {
		channel_ready(s);
		return;
	}
	if (s->hung_up) {
		stream_drain(s);
		return;
	}
	/* A pipe that is hung up and not readable stays empty: that saves the read. */
	if ((!s->tty && (events & (EPOLLIN | EPOLLHUP)) == EPOLLHUP) ||
	    stream_take(s, STREAM_CHUNK) < 0)
		at_end(s);
}

void stream_hang_up(struct stream *s)
{
	if (s->src.fd < 0)
		return;
	s->hung_up = 1;
	stream_drain(s);
}

int stream_cut(struct stream *s)
{
	uint64_t until = s->log.tip + CUT_MOST;
	int more = 1;

	while (more > 0 && s->log.tip < until)
		more = stream_take(s, STREAM_CHUNK);
	if (!more && !stream_room(s))
		return 0;
	if (more >= 0)
		exec_was_cut(s->exec, s->index);
	stream_shut(s);
	return 1;
}
