/* packet.c - see packet.h. */
#include "mux/packet.h"

enum { FROM_GUEST = 1, FROM_MUX = 2, FROM_BOTH = 3 };
#define KIND(k) (1u << PACKET_##k)
#define BYTES (KIND(STREAM) | KIND(PIPE_READ) | KIND(PIPE_WRITE) | KIND(MEMFD))

static const struct packet_rule {
	uint8_t from;
	uint8_t kinds; /* of the stream; 0: stream 0 */
	uint8_t fds_least, fds_most;
	uint32_t least, most; /* bytes */
} rules[PACKET_TYPES] = {
	[PACKET_HELLO] = { FROM_GUEST, 0, 0, 0, sizeof(struct packet_hello),
			   sizeof(struct packet_hello) },
	[PACKET_RESUME] = { FROM_MUX, 0, 0, 0, sizeof(struct packet_resume),
			    sizeof(struct packet_resume) },
	[PACKET_OPEN] = { FROM_MUX, 0, 1, 1, 0, 0 },
	[PACKET_FRAME] = { FROM_BOTH, KIND(SEQPACKET), 0, PACKET_FDS, 1, PACKET_BODY },
	[PACKET_ACCEPT] = { FROM_GUEST, KIND(LISTENER), 1, 1, 0, 0 },
	[PACKET_DATA] = { FROM_BOTH, BYTES, 0, 0, 1, PACKET_BODY },
	[PACKET_SHUTDOWN] = { FROM_BOTH, BYTES, 0, 0, 0, 0 },
	[PACKET_CLOSE] = { FROM_BOTH, BYTES | KIND(SEQPACKET) | KIND(LISTENER), 0, 0, 0, 0 },
	[PACKET_GRANT] = { FROM_BOTH, BYTES | KIND(SEQPACKET), 0, 0, sizeof(uint64_t),
			   sizeof(uint64_t) },
};

int packet_check_head(const struct packet_head *h)
{
	const struct packet_rule *r = &rules[h->type < PACKET_TYPES ? h->type : 0];

	if (!r->from)
		return PACKET_BAD_TYPE;
	if (h->bytes < r->least || h->bytes > r->most)
		return PACKET_BAD_SIZE;
	if (h->nfds < r->fds_least || h->nfds > r->fds_most)
		return PACKET_BAD_FDS;
	return PACKET_GOOD;
}

uint32_t packet_cost(uint8_t type, uint32_t bytes)
{
	return type == PACKET_FRAME ? bytes + PACKET_COST : type == PACKET_DATA ? bytes : 0;
}

static int packet_bytes_from(unsigned kind)
{
	if (kind == PACKET_PIPE_READ || kind == PACKET_MEMFD)
		return FROM_MUX;
	return kind == PACKET_PIPE_WRITE ? FROM_GUEST : kind == PACKET_LISTENER ? 0 : FROM_BOTH;
}

int packet_sends(const struct packet_state *s, unsigned kind)
{
	return !!(packet_bytes_from(kind) & (s->is_mux ? FROM_MUX : FROM_GUEST));
}

/* ---- numbers ---- */

static unsigned packet_parity(int of_mux)
{
	return of_mux ? 1 : 0;
}

/* The number of the first connection is not used again: it has rights that others do not have. */
static unsigned packet_first(const struct packet_state *s)
{
	return s->is_mux ? PACKET_FIRST + 2 : 2;
}

unsigned packet_free_number(const struct packet_state *s)
{
	unsigned i;

	for (i = packet_first(s); i < PACKET_STREAMS; i += 2)
		if (!s->streams[i].kind)
			return i;
	return 0;
}

unsigned packet_free_numbers(const struct packet_state *s)
{
	unsigned i, n = 0;

	for (i = packet_first(s); i < PACKET_STREAMS; i += 2)
		n += !s->streams[i].kind;
	return n;
}

void packet_open(struct packet_state *s, unsigned number, enum packet_kind kind)
{
	s->streams[number] = (struct packet_stream){ .kind = (uint8_t)kind,
						     .window = PACKET_WINDOW,
						     .credit = PACKET_WINDOW };
}

static void packet_settle(struct packet_stream *t)
{
	if (t->closed && t->peer_closed)
		*t = (struct packet_stream){ 0 };
}

void packet_close(struct packet_state *s, unsigned number)
{
	s->streams[number].closed = 1;
	packet_settle(&s->streams[number]);
}

/* ---- arrivals ---- */

/* May the peer open this number? */
static int packet_may_open(const struct packet_state *s, unsigned number)
{
	return number && number < PACKET_STREAMS && number % 2 == packet_parity(!s->is_mux) &&
	       !s->streams[number].kind;
}

/* A copied file: opened before, complete, and attached to one frame. */
static enum packet_fault packet_take_file(const struct packet_state *s, unsigned number)
{
	if (number >= PACKET_STREAMS || s->streams[number].kind != PACKET_MEMFD)
		return PACKET_BAD_STREAM;
	return s->streams[number].ended && !s->streams[number].peer_closed ? PACKET_GOOD
									   : PACKET_BAD_STATE;
}

static enum packet_fault packet_take_fd(struct packet_state *s, uint8_t type,
					const struct packet_fd *fd)
{
	unsigned from_guest = KIND(SEQPACKET) | KIND(STREAM) | KIND(LISTENER);
	unsigned from_mux = KIND(PIPE_READ) | KIND(PIPE_WRITE) | KIND(MEMFD);
	unsigned may = type == PACKET_ACCEPT ? KIND(STREAM)
		       : type == PACKET_OPEN ? KIND(SEQPACKET) | KIND(MEMFD)
		       : s->is_mux           ? from_guest
					     : from_mux;

	if (fd->zero || fd->kind >= PACKET_KINDS || !(may >> fd->kind & 1))
		return PACKET_BAD_FDS;
	if (type == PACKET_FRAME && fd->kind == PACKET_MEMFD)
		return packet_take_file(s, fd->stream);
	if (!packet_may_open(s, fd->stream))
		return PACKET_BAD_STREAM;
	packet_open(s, fd->stream, fd->kind);
	return PACKET_GOOD;
}

/* All or none: a stream that appears twice is in use when it appears again. */
static enum packet_fault packet_take_fds(struct packet_state *s, const struct packet_head *h,
					 const struct packet_fd *fds)
{
	unsigned i, k;

	for (i = 0; i < h->nfds; i++) {
		enum packet_fault f;

		for (k = 0; k < i; k++)
			if (fds[k].stream == fds[i].stream)
				return PACKET_BAD_FDS;
		f = packet_take_fd(s, h->type, &fds[i]);
		if (f)
			return f;
	}
	return PACKET_GOOD;
}

static enum packet_fault packet_take_hello(struct packet_state *s, const void *body)
{
	struct packet_hello m;

	__builtin_memcpy(&m, body, sizeof(m)); /* a packet can begin anywhere */
	if (m.version != PACKET_VERSION)
		return PACKET_BAD_HELLO;
	if (!m.generation) {
		if (s->greeted || s->answered)
			return PACKET_BAD_HELLO;
		s->greeted = 1;
		return PACKET_GOOD;
	}
	if (m.generation != s->generation || s->answered == m.generation)
		return PACKET_BAD_HELLO;
	s->answered = m.generation;
	return PACKET_GOOD;
}

static enum packet_fault packet_take_resume(struct packet_state *s, const void *body)
{
	struct packet_resume m;

	__builtin_memcpy(&m, body, sizeof(m));
	if (!m.generation || m.generation == s->generation)
		return PACKET_BAD_HELLO;
	s->generation = m.generation;
	return PACKET_GOOD;
}

static enum packet_fault packet_take_grant(struct packet_stream *t, const void *body)
{
	uint64_t n;

	__builtin_memcpy(&n, body, sizeof(n));
	if (!n || n > PACKET_WINDOW || n + t->credit > PACKET_WINDOW)
		return PACKET_BAD_WINDOW;
	t->credit += (uint32_t)n;
	return PACKET_GOOD;
}

static enum packet_fault packet_take_bytes(struct packet_stream *t, const struct packet_head *h,
					   int from)
{
	uint32_t cost = packet_cost(h->type, h->bytes);

	if (t->ended || !(packet_bytes_from(t->kind) & from))
		return PACKET_BAD_STATE;
	if (cost > t->window)
		return PACKET_BAD_WINDOW;
	t->window -= cost;
	return PACKET_GOOD;
}

/* Packets of stream 0 and OPEN: those that need no open stream. */
static enum packet_fault packet_take_alone(struct packet_state *s, const struct packet_head *h,
					   const struct packet_fd *fds, const void *body)
{
	if (h->type == PACKET_OPEN) {
		if (fds[0].stream != h->stream)
			return PACKET_BAD_STREAM;
		return packet_take_fds(s, h, fds);
	}
	if (h->stream)
		return PACKET_BAD_STREAM;
	return h->type == PACKET_HELLO ? packet_take_hello(s, body) : packet_take_resume(s, body);
}

static enum packet_fault packet_take_on(struct packet_state *s, const struct packet_head *h,
					const struct packet_fd *fds, const void *body)
{
	int from = s->is_mux ? FROM_GUEST : FROM_MUX;
	struct packet_stream *t;

	if (!h->stream || h->stream >= PACKET_STREAMS)
		return PACKET_BAD_STREAM;
	t = &s->streams[h->stream];
	if (!t->kind || t->peer_closed || !(rules[h->type].kinds >> t->kind & 1))
		return PACKET_BAD_STATE;
	switch (h->type) {
	case PACKET_FRAME:
	case PACKET_DATA: {
		enum packet_fault f = packet_take_bytes(t, h, from);

		return f ? f : packet_take_fds(s, h, fds);
	}
	case PACKET_ACCEPT:
		return packet_take_fds(s, h, fds);
	case PACKET_SHUTDOWN:
		if (t->ended || !(packet_bytes_from(t->kind) & from))
			return PACKET_BAD_STATE;
		t->ended = 1;
		return PACKET_GOOD;
	case PACKET_CLOSE:
		t->ended = t->peer_closed = 1;
		packet_settle(t);
		return PACKET_GOOD;
	default:
		return packet_take_grant(t, body);
	}
}

enum packet_fault packet_take(struct packet_state *s, const struct packet_head *h,
			      const struct packet_fd *fds, const void *body)
{
	int from = s->is_mux ? FROM_GUEST : FROM_MUX;
	enum packet_fault f = (enum packet_fault)packet_check_head(h);

	if (f)
		return f;
	if (!(rules[h->type].from & from))
		return PACKET_BAD_TYPE;
	/* Nothing but HELLO or RESUME comes first. */
	if (s->is_mux && h->type != PACKET_HELLO && (!s->generation || !s->answered))
		return PACKET_BAD_HELLO;
	if (!s->is_mux && h->type != PACKET_RESUME && !s->generation)
		return PACKET_BAD_EARLY;
	if (!rules[h->type].kinds)
		return packet_take_alone(s, h, fds, body);
	return packet_take_on(s, h, fds, body);
}

/* ---- reasons ---- */

const char *packet_reason(int status)
{
	static const char *const reasons[PACKET_FAULTS] = {
		[PACKET_BAD_SIZE] = "mux: the guest sent a packet of a wrong size",
		[PACKET_BAD_TYPE] = "mux: the guest sent a packet of an unknown type",
		[PACKET_BAD_FDS] = "mux: the guest sent descriptors that its packet cannot have",
		[PACKET_BAD_STREAM] = "mux: the guest used a stream number that it may not use",
		[PACKET_BAD_STATE] = "mux: the guest sent a packet on a stream that is not open",
		[PACKET_BAD_WINDOW] = "mux: the guest exceeded the window of a stream",
		[PACKET_BAD_HELLO] = "mux: the guest sent no HELLO, two, or one of another version",
		[PACKET_BAD_EARLY] = "mux: a packet before RESUME",
		[PACKET_CUT] = "mux: the channel ended inside a packet",
		[PACKET_NO_MEMORY] = "mux: no memory for bytes that a client has not read",
		[PACKET_NO_CGROUPS] = "mux: the box must have its cgroups before its engine starts",
		[PACKET_NO_ZYGOTE] =
			"mux: a warm interpreter cannot be passed on; start it by command",
		[PACKET_NO_ENGINE] = "mux: the engine could not be started",
		[PACKET_ENGINE_DIED] = "mux: the engine ended before its guest",
	};

	if (status <= PACKET_EXIT || status >= PACKET_EXIT + PACKET_FAULTS)
		return 0;
	return reasons[status - PACKET_EXIT];
}
