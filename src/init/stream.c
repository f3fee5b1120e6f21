/* stream.c - see stream.h. */
#include "init/stream.h"
#include "init/conn.h"
#include "init/exec.h"
#include "init/scratch.h"
#include "init/sys.h"
#include "init/view.h"

enum { CUT_MOST = 1 << 20 }; /* the largest pipe a user can ask for: what was in it is theirs */

static void stream_ready(struct source *src, uint32_t events);

void stream_init(struct stream *s, struct exec *x, int index, uint64_t log_bytes)
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

void stream_fini(struct stream *s)
{
	loop_close(&s->src);
	log_fini(&s->log);
}

/* What fits before somebody attached would lose a byte. With nobody attached: always all. */
static uint64_t room(const struct stream *s)
{
	uint64_t unread = s->log.tip - view_slowest(s->exec, s->index);

	return unread < s->log.limit ? s->log.limit - unread : 0;
}

void stream_resume(struct stream *s)
{
	loop_want(&s->src, room(s) ? EPOLLIN : 0);
}

static void at_end(struct stream *s)
{
	loop_close(&s->src);
	exec_check(s->exec);
}

/* One read. 1: more may come; 0: nothing there now, or no room; -1: the end. */
static int take(struct stream *s)
{
	uint64_t want = room(s);
	long n;

	if (!want) {
		stream_resume(s);
		return 0;
	}
	n = sys_read(s->src.fd, scratch, want < STREAM_CHUNK ? want : STREAM_CHUNK);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n <= 0) /* a terminal says EIO once its last user has left */
		return -1;
	/* The reader first: it is waiting. The log is for whoever comes later. */
	scratch_used((size_t)n);
	view_offer(s->exec, s->index, scratch, (size_t)n);
	log_append(&s->log, scratch, (size_t)n);
	log_trim(&s->log, view_slowest(s->exec, s->index));
	return 1;
}

static void stream_ready(struct source *src, uint32_t events)
{
	struct stream *s = source_owner(src, struct stream, src);

	/* A pipe that is hung up and not readable is empty for good: that spares the read. */
	if ((!s->tty && (events & (EPOLLIN | EPOLLHUP)) == EPOLLHUP) || take(s) < 0)
		at_end(s);
}

int stream_cut(struct stream *s)
{
	uint64_t until = s->log.tip + CUT_MOST;
	int more = 1;

	while (more > 0 && s->log.tip < until)
		more = take(s);
	if (!more && !room(s))
		return 0;
	if (more >= 0)
		exec_was_cut(s->exec, s->index);
	loop_close(&s->src);
	return 1;
}
