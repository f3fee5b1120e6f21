/* stream.c - see stream.h.
 *
 *   own descriptor ── stream_pull ──► channel_send          as long as the peer has granted bytes
 *   stream_take ──► own descriptor                          what it does not take now ──► buffer
 *
 * The peer sends at most PACKET_WINDOW bytes more than were taken from the buffer, so they fit. */
#include "mux/stream.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/copy_file.h"
#include "mux/deliver.h"
#include "mux/descriptor.h"
#include "mux/listener.h"

enum { WORDS = PACKET_STREAMS / 64 };
enum { WHOLE_FRAME = PACKET_BODY + PACKET_COST, SOME_BYTES = 16384, RESERVED = 32 };
enum { FRAMES_LEFT_MAX = 4096 }; /* more than a socket holds */
enum { GRANT_AT = PACKET_WINDOW / 4 };

static LAZY struct stream streams[PACKET_STREAMS];
static uint64_t due[WORDS];

struct stream *stream_at(unsigned number)
{
	return &streams[number];
}

void stream_due(unsigned number)
{
	due[number / 64] |= 1ull << number % 64;
}

/* ---- what is waited for ---- */

static int stream_wants_input(unsigned number)
{
	const struct packet_stream *t = &channel_state.streams[number];
	const struct stream *s = &streams[number];

	if (s->eof || s->copies || channel_blocked())
		return 0;
	if (t->kind == PACKET_LISTENER)
		return packet_free_numbers(&channel_state) > RESERVED;
	return packet_sends(&channel_state, t->kind) &&
	       t->credit >= (t->kind == PACKET_SEQPACKET ? WHOLE_FRAME : SOME_BYTES);
}

/* A pipe that this end writes to. */
static int stream_is_sink(unsigned number)
{
	unsigned kind = channel_state.streams[number].kind;

	return (kind == PACKET_PIPE_READ || kind == PACKET_PIPE_WRITE) &&
	       !packet_sends(&channel_state, kind);
}

/* A connection whose one direction has ended: it may be closed, too. */
static int stream_is_half(unsigned number)
{
	return channel_state.streams[number].kind == PACKET_STREAM && streams[number].eof;
}

/* Of a pipe to write to, and of a connection that sends no more, also the end of the reader is waited
 * for. */
void stream_arm(unsigned number)
{
	struct stream *s = &streams[number];
	int is_written = stream_is_sink(number) || stream_is_half(number);

	if (s->src.fd >= 0)
		loop_want(&s->src, (stream_wants_input(number) ? EPOLLIN : 0) |
					   (s->from < s->to ? EPOLLOUT : 0) |
					   (is_written ? EPOLLERR : 0));
}

/* ---- own descriptor to channel ---- */

static void stream_close_fds(const int *fds, unsigned n)
{
	unsigned i;

	for (i = 0; i < n; i++)
		sys_close(fds[i]);
}

/* Makes streams of the descriptors of a frame. -1: one of them is of a kind that cannot be attached. */
static int stream_attach(const int *fds, unsigned n, struct packet_fd *out)
{
	int kinds[PACKET_FDS];
	unsigned i;

	for (i = 0; i < n; i++) {
		int is_pipe;

		kinds[i] = descriptor_kind(fds[i]);
		is_pipe = kinds[i] == PACKET_PIPE_READ || kinds[i] == PACKET_PIPE_WRITE;
		if (!kinds[i] || kinds[i] == PACKET_MEMFD || channel_state.is_mux != is_pipe)
			return -1;
	}
	for (i = 0; i < n; i++) {
		if (kinds[i] == PACKET_PIPE_READ || kinds[i] == PACKET_PIPE_WRITE)
			sys_fcntl(fds[i], F_SETFL,
				  O_NONBLOCK |
					  (kinds[i] == PACKET_PIPE_READ ? O_RDONLY : O_WRONLY));
		out[i] = (struct packet_fd){
			.stream = (uint16_t)stream_add((enum packet_kind)kinds[i], fds[i], 0),
			.kind = (uint8_t)kinds[i],
		};
	}
	return 0;
}

static void stream_send_frame(unsigned number, const struct packet_fd *fds, unsigned nfds,
			      uint32_t bytes)
{
	unsigned i;

	channel_state.streams[number].credit -= packet_cost(PACKET_FRAME, bytes);
	channel_send(PACKET_FRAME, number, fds, nfds, bytes);
	for (i = 0; i < nfds; i++)
		stream_due(fds[i].stream);
}

/* Consumes the descriptors. 0, or -1: the connection must be closed. */
static int stream_forward(unsigned number, uint32_t bytes, const int *take_fds, unsigned nfds)
{
	struct packet_fd fds[PACKET_FDS];
	int what = channel_role->frame(number, channel_room(), bytes, take_fds, nfds);

	if (what > 0 && nfds == 1 && descriptor_kind(take_fds[0]) == PACKET_MEMFD &&
	    channel_state.is_mux)
		return copy_file_start(number, channel_room(), bytes, take_fds[0]);
	if (what > 0 && nfds && packet_free_numbers(&channel_state) < nfds) {
		what = channel_role->refuse(number, channel_room(), &bytes);
		stream_close_fds(take_fds, nfds);
		nfds = 0;
	}
	if (what <= 0 || (nfds && stream_attach(take_fds, nfds, fds) < 0)) {
		stream_close_fds(take_fds, nfds);
		return what ? -1 : 0;
	}
	stream_send_frame(number, fds, nfds, bytes);
	return 0;
}

static void stream_pull_frame(unsigned number)
{
	struct stream *s = &streams[number];
	struct {
		struct cmsghdr head;
		int fds[PACKET_FDS];
	} ride;
	struct iovec iov = { channel_room(), PACKET_BODY };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ride,
			    .msg_controllen = sizeof(ride) };
	unsigned nfds = 0;
	long n;

	if (channel_role->before && !channel_role->before(number))
		return;
	n = sys_recvmsg(s->src.fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	/* The kernel returns ECONNRESET once if the peer has left frames unread; frames that the peer
	 * has sent follow. */
	if (n == -EAGAIN || n == -EINTR || n == -ECONNRESET)
		return;
	if (n > 0 && m.msg_controllen >= sizeof(ride.head) && ride.head.cmsg_level == SOL_SOCKET &&
	    ride.head.cmsg_type == SCM_RIGHTS)
		nfds = (unsigned)((ride.head.cmsg_len - sizeof(ride.head)) / sizeof(int));
	if (n > 0 && !(m.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) &&
	    stream_forward(number, (uint32_t)n, ride.fds, nfds) == 0)
		return;
	if (n > 0 && m.msg_flags & (MSG_CTRUNC | MSG_TRUNC))
		stream_close_fds(ride.fds, nfds);
	s->eof = 1;
}

static void stream_pull_bytes(unsigned number)
{
	struct packet_stream *t = &channel_state.streams[number];
	struct stream *s = &streams[number];
	size_t most = t->credit < PACKET_BODY ? t->credit : PACKET_BODY;
	long n = t->kind == PACKET_STREAM ? sys_recv(s->src.fd, channel_room(), most)
					  : sys_read(s->src.fd, channel_room(), most);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		s->eof = 1;
		if (t->kind == PACKET_STREAM)
			s->owes |= STREAM_SHUTDOWN;
		if (n < 0)
			s->broken = 1; /* the connection was reset */
		return;
	}
	t->credit -= (uint32_t)n;
	channel_send(PACKET_DATA, number, NULL, 0, (uint32_t)n);
}

static void stream_pull(unsigned number)
{
	unsigned kind = channel_state.streams[number].kind;

	if (streams[number].owes & STREAM_OPEN) /* it is sent at the end of this turn */
		return;
	if (kind == PACKET_SEQPACKET)
		stream_pull_frame(number);
	else if (kind == PACKET_LISTENER)
		listener_accept(number);
	else
		stream_pull_bytes(number);
}

/* What a peer has sent before its end is read at once: the next connection may ask about it. */
static void stream_ready(struct event_source *src, uint32_t events)
{
	struct stream *s = source_owner(src, struct stream, src);
	unsigned number = (unsigned)(s - streams);
	int most = FRAMES_LEFT_MAX;

	if (stream_is_sink(number) && events & EPOLLERR)
		deliver_break(number);
	else if (s->from < s->to && events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
		deliver_buffer(number);
	if (src->armed & EPOLLIN && events & (EPOLLIN | EPOLLERR | EPOLLHUP))
		do
			if (stream_wants_input(number))
				stream_pull(number);
		while (events & EPOLLHUP && most-- && !s->owes && stream_wants_input(number));
	if (stream_is_half(number) && events & (EPOLLERR | EPOLLHUP))
		s->broken = 1; /* closed, not only shut down: no program reads from it */
	stream_arm(number);
	stream_due(number);
}

/* ---- life ---- */

void stream_start(unsigned number, int take_fd, uint8_t owes)
{
	streams[number] =
		(struct stream){ .src = { .fd = take_fd, .ready = stream_ready }, .owes = owes };
	stream_arm(number);
}

unsigned stream_add(enum packet_kind kind, int take_fd, uint8_t owes)
{
	unsigned number = packet_free_number(&channel_state);

	if (!number)
		return 0;
	packet_open(&channel_state, number, kind);
	stream_start(number, take_fd, owes);
	return number;
}

/* A client whose socket is closed with an unread frame gets ECONNRESET before the frames that it was
 * sent. */
static void stream_read_rest(int fd)
{
	char some[64];

	sys_shutdown(fd, SHUT_READ);
	while (sys_recv(fd, some, sizeof(some)) > 0)
		;
}

void stream_finish(unsigned number)
{
	struct stream *s = &streams[number];

	if (s->gone)
		return;
	s->gone = 1;
	s->eof = 1;
	if (s->src.fd >= 0) {
		if (channel_state.streams[number].kind == PACKET_SEQPACKET)
			stream_read_rest(s->src.fd);
		loop_want(&s->src, 0);
		loop_close(&s->src);
	}
	deliver_drop(number);
	s->owes = (uint8_t)((s->owes & STREAM_OPEN) | STREAM_CLOSE);
	stream_due(number);
}

/* Ends directions and the stream itself as soon as there is no reason to keep them. */
static void stream_settle(unsigned number)
{
	const struct packet_stream *t = &channel_state.streams[number];
	struct stream *s = &streams[number];
	int empty = s->from == s->to || s->broken;

	if (!t->kind || s->gone)
		return;
	if (t->ended && empty && !s->shut && t->kind == PACKET_STREAM) {
		s->shut = 1;
		sys_shutdown(s->src.fd, SHUT_WRITE);
	}
	if (t->peer_closed && empty)
		stream_finish(number);
	else if (t->kind == PACKET_SEQPACKET && s->eof && !t->peer_closed)
		stream_finish(number);
	else if (t->kind == PACKET_STREAM && s->eof && (s->broken || s->shut))
		stream_finish(number);
	else if ((t->kind == PACKET_PIPE_READ || t->kind == PACKET_PIPE_WRITE) &&
		 (packet_sends(&channel_state, t->kind) ? s->eof : s->broken))
		stream_finish(number);
}

/* Sends what this stream owes, in the order in which it may be sent. 0: the channel is blocked. */
static int stream_send_owed(unsigned number)
{
	struct packet_stream *t = &channel_state.streams[number];
	struct stream *s = &streams[number];

	if (channel_blocked())
		return 0;
	if (s->owes & STREAM_OPEN) {
		struct packet_fd fd = { .stream = (uint16_t)number, .kind = t->kind };

		s->owes &= (uint8_t)~STREAM_OPEN;
		channel_send(PACKET_OPEN, number, &fd, 1, 0);
	}
	if (s->copies && !channel_blocked())
		copy_file_continue(number);
	if (!s->gone && !t->ended && s->taken >= GRANT_AT && !channel_blocked()) {
		uint64_t n = (uint64_t)s->taken;

		s->taken = 0;
		t->window += (uint32_t)n;
		memcpy(channel_room(), &n, sizeof(n));
		channel_send(PACKET_GRANT, number, NULL, 0, sizeof(n));
	}
	if (s->owes & STREAM_SHUTDOWN && !channel_blocked()) {
		s->owes &= (uint8_t)~STREAM_SHUTDOWN;
		channel_send(PACKET_SHUTDOWN, number, NULL, 0, 0);
	}
	if (s->owes & STREAM_CLOSE && !channel_blocked()) {
		s->owes = 0;
		channel_send(PACKET_CLOSE, number, NULL, 0, 0);
		packet_close(&channel_state, number);
	}
	return !channel_blocked();
}

/* One pass over the streams that may have something to send. */
static void stream_flush_once(void)
{
	unsigned i;

	for (i = 0; i < WORDS; i++) {
		uint64_t rest = due[i];

		for (due[i] = 0; rest; rest &= rest - 1) {
			unsigned number = i * 64 + (unsigned)__builtin_ctzll(rest);

			stream_settle(number);
			if (!channel_state.streams[number].kind)
				continue;
			if (channel_role->begin && !channel_blocked())
				channel_role->begin();
			if (!stream_send_owed(number))
				stream_due(number);
			stream_arm(number);
		}
	}
}

void stream_flush(void)
{
	unsigned i;

	stream_flush_once();
	for (i = 0; i < WORDS && !channel_blocked();)
		if (due[i++]) {
			stream_flush_once();
			i = 0;
		}
}

void stream_resume_all(void)
{
	unsigned i;

	for (i = 1; i < PACKET_STREAMS; i++)
		if (channel_state.streams[i].kind)
			stream_arm(i);
}

void stream_end_all(void)
{
	unsigned i;

	for (i = 1; i < PACKET_STREAMS; i++) {
		struct packet_stream *t = &channel_state.streams[i];

		if (!t->kind)
			continue;
		t->ended = t->peer_closed = 1;
		streams[i].eof = 1;
		stream_settle(i);
		stream_arm(i);
	}
}

int stream_waiting(void)
{
	unsigned i;

	for (i = 1; i < PACKET_STREAMS; i++)
		if (channel_state.streams[i].kind && !streams[i].gone &&
		    streams[i].from < streams[i].to)
			return 1;
	return 0;
}

void stream_answer(unsigned number, const void *frame, uint32_t bytes, int take_fd)
{
	struct stream *s = &streams[number];

	if (s->to - s->from + bytes + PACKET_COST > STREAM_ANSWERS) {
		sys_close(take_fd);
		stream_finish(number); /* a client that requests and does not read */
		return;
	}
	s->taken -= (int32_t)packet_cost(PACKET_FRAME, bytes); /* it is not the peer's */
	deliver_frame(number, frame, bytes, &take_fd, take_fd >= 0);
}

/* ---- channel to own descriptor ---- */

/* Streams that came with a packet for a stream which is already closed here. */
static void stream_refuse_fds(const struct packet_head *h, const struct packet_fd *fds)
{
	unsigned i;

	for (i = 0; i < h->nfds; i++)
		if (fds[i].kind != PACKET_MEMFD) {
			stream_start(fds[i].stream, -1, 0);
			stream_finish(fds[i].stream);
		}
}

/* The ends that are passed on with the frame. A descriptor that cannot be made is left out; the reader
 * of the frame notices that. */
static unsigned stream_make_fds(const struct packet_head *h, const struct packet_fd *fds,
				int theirs[PACKET_FDS])
{
	unsigned i, n = 0;

	for (i = 0; i < h->nfds; i++) {
		unsigned number = fds[i].stream;
		int ours = -1, err;

		if (fds[i].kind == PACKET_MEMFD) {
			err = copy_file_take(number, &theirs[n]);
		} else if (fds[i].kind == PACKET_LISTENER) {
			stream_start(number, -1, 0);
			err = listener_make(number, &theirs[n]);
		} else {
			err = descriptor_pair(fds[i].kind, &ours, &theirs[n]);
			stream_start(number, err < 0 ? -1 : ours, 0);
		}
		if (err < 0)
			stream_finish(number);
		else
			n++;
	}
	return n;
}

static void stream_opened(const struct packet_head *h, const struct packet_fd *fds)
{
	if (fds[0].kind == PACKET_MEMFD) {
		stream_start(h->stream, -1, 0);
		copy_file_open(h->stream);
		return;
	}
	stream_start(h->stream, channel_role->connect(h->stream), 0);
	if (streams[h->stream].src.fd < 0)
		stream_finish(h->stream);
}

void stream_take(const struct packet_head *h, const struct packet_fd *fds, const char *body)
{
	enum packet_fault why = packet_take(&channel_state, h, fds, body);
	int theirs[PACKET_FDS];

	if (why)
		channel_fault(why);
	if (h->type == PACKET_HELLO || h->type == PACKET_RESUME) {
		channel_role->greeted(body);
		return;
	}
	if (h->type == PACKET_OPEN)
		stream_opened(h, fds);
	else if (h->type == PACKET_ACCEPT && !streams[h->stream].gone)
		stream_start(fds[0].stream, listener_connect(h->stream), 0);
	else if (h->nfds && streams[h->stream].gone)
		stream_refuse_fds(h, fds);
	else if (h->type == PACKET_FRAME)
		deliver_frame(h->stream, body, h->bytes, theirs, stream_make_fds(h, fds, theirs));
	else if (h->type == PACKET_DATA)
		deliver_bytes(h->stream, body, h->bytes);
	if (h->type == PACKET_ACCEPT && streams[fds[0].stream].src.fd < 0)
		stream_finish(fds[0].stream);
	if (h->type == PACKET_CLOSE)
		stream_settle(h->stream); /* the next packet may need what it has closed */
	stream_due(h->stream);
}
