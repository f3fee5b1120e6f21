/* deliver.c - see deliver.h. */
#include "mux/deliver.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/copy_file.h"
#include "mux/stream.h"

struct waiting { /* before each frame in a buffer; its descriptors follow */
	uint32_t bytes, nfds;
};
_Static_assert(sizeof(struct waiting) + PACKET_FDS * sizeof(int) <= PACKET_COST,
	       "a frame needs more memory than it costs");

static void deliver_close(const int *fds, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		sys_close(fds[i]);
}

/* Room for n bytes at the end of the buffer. */
static char *deliver_room(struct stream *s, uint32_t n)
{
	char *at;

	if (!s->buffer)
		s->buffer = sys_map(STREAM_BUFFER);
	if (!s->buffer)
		channel_fault(PACKET_NO_MEMORY);
	if (STREAM_BUFFER - s->to < n) {
		memmove(s->buffer, s->buffer + s->from, s->to - s->from);
		s->to -= s->from;
		s->from = 0;
	}
	at = s->buffer + s->to;
	s->to += n;
	return at;
}

static long deliver_send(int fd, const char *frame, uint32_t bytes, const int *fds, unsigned nfds)
{
	struct {
		struct cmsghdr head;
		int fds[PACKET_FDS];
	} ride = { .head = { sizeof(struct cmsghdr) + nfds * sizeof(int), SOL_SOCKET,
			     SCM_RIGHTS } };
	struct iovec iov = { (void *)frame, bytes };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		memcpy(ride.fds, fds, nfds * sizeof(int));
		m.msg_control = &ride;
		m.msg_controllen = (ride.head.cmsg_len + 7) & ~7ul;
	}
	return sys_sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int deliver_later(long err)
{
	return err == -EAGAIN || err == -ENOBUFS || err == -ENOMEM || err == -EINTR;
}

void deliver_break(unsigned number)
{
	stream_at(number)->broken = 1;
	deliver_drop(number);
}

void deliver_frame(unsigned number, const char *frame, uint32_t bytes, const int *take_fds,
		   unsigned nfds)
{
	struct waiting w = { bytes, nfds };
	struct stream *s = stream_at(number);
	long err = -EAGAIN;
	char *at;

	if (s->gone || s->broken) {
		s->taken += (int32_t)packet_cost(PACKET_FRAME, bytes);
		deliver_close(take_fds, nfds);
		return;
	}
	if (s->from == s->to)
		err = deliver_send(s->src.fd, frame, bytes, take_fds, nfds);
	if (!deliver_later(err)) {
		s->taken += (int32_t)packet_cost(PACKET_FRAME, bytes);
		deliver_close(take_fds, nfds);
		if (err < 0)
			deliver_break(number);
		return;
	}
	at = deliver_room(s, (uint32_t)(sizeof(w) + nfds * sizeof(int)) + bytes);
	memcpy(at, &w, sizeof(w));
	memcpy(at + sizeof(w), take_fds, nfds * sizeof(int));
	memcpy(at + sizeof(w) + nfds * sizeof(int), frame, bytes);
	stream_arm(number);
}

/* The first frame of the buffer; its size there. */
static uint32_t deliver_first(const struct stream *s, struct waiting *w, int fds[PACKET_FDS])
{
	memcpy(w, s->buffer + s->from, sizeof(*w));
	memcpy(fds, s->buffer + s->from + sizeof(*w), w->nfds * sizeof(int));
	return (uint32_t)(sizeof(*w) + w->nfds * sizeof(int)) + w->bytes;
}

static void deliver_frames(unsigned number)
{
	struct stream *s = stream_at(number);
	int fds[PACKET_FDS];
	struct waiting w;

	while (s->from < s->to) {
		uint32_t size = deliver_first(s, &w, fds);
		long err = deliver_send(s->src.fd, s->buffer + s->from + size - w.bytes, w.bytes,
					fds, w.nfds);

		if (deliver_later(err))
			return;
		if (err < 0) {
			deliver_break(number);
			return;
		}
		deliver_close(fds, w.nfds);
		s->from += size;
		s->taken += (int32_t)packet_cost(PACKET_FRAME, w.bytes);
	}
	s->from = s->to = 0;
}

/* Bytes that the descriptor has taken; -1: it never takes any. */
static long deliver_write(unsigned number, const char *bytes, uint32_t n)
{
	const struct stream *s = stream_at(number);
	uint32_t done = 0;

	while (done < n) {
		long w = channel_state.streams[number].kind == PACKET_STREAM
				 ? sys_send(s->src.fd, bytes + done, n - done)
				 : sys_write(s->src.fd, bytes + done, n - done);

		if (w < 0 && deliver_later(w))
			break;
		if (w <= 0)
			return -1;
		done += (uint32_t)w;
	}
	return done;
}

void deliver_bytes(unsigned number, const char *bytes, uint32_t n)
{
	struct stream *s = stream_at(number);
	long done = 0;

	if (s->gone || s->broken) {
		s->taken += (int32_t)n;
		return;
	}
	if (channel_state.streams[number].kind == PACKET_MEMFD) {
		copy_file_append(number, bytes, n);
		return;
	}
	if (s->from == s->to)
		done = deliver_write(number, bytes, n);
	if (done < 0) {
		s->taken += (int32_t)n;
		deliver_break(number);
		return;
	}
	s->taken += (int32_t)done;
	if ((uint32_t)done < n)
		memcpy(deliver_room(s, n - (uint32_t)done), bytes + done, n - (uint32_t)done);
	stream_arm(number);
}

void deliver_buffer(unsigned number)
{
	struct stream *s = stream_at(number);
	long done;

	if (channel_state.streams[number].kind == PACKET_SEQPACKET) {
		deliver_frames(number);
		return;
	}
	done = deliver_write(number, s->buffer + s->from, s->to - s->from);
	if (done < 0) {
		deliver_break(number);
		return;
	}
	s->from += (uint32_t)done;
	s->taken += (int32_t)done;
	if (s->from == s->to)
		s->from = s->to = 0;
}

void deliver_drop(unsigned number)
{
	struct stream *s = stream_at(number);
	int fds[PACKET_FDS];
	struct waiting w;

	if (channel_state.streams[number].kind == PACKET_SEQPACKET)
		while (s->from < s->to) {
			s->from += deliver_first(s, &w, fds);
			s->taken += (int32_t)packet_cost(PACKET_FRAME, w.bytes);
			deliver_close(fds, w.nfds);
		}
	else
		s->taken += (int32_t)(s->to - s->from);
	s->from = s->to = 0;
	sys_unmap(s->buffer, STREAM_BUFFER);
	s->buffer = NULL;
}
