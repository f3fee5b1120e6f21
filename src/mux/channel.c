/* channel.c - see channel.h.
 * read() and write() only: the channel of a guest is a socket, a character device of a virtual machine,
 * or a descriptor of another kernel, and these two work for all of them. */
#include "mux/channel.h"
#include "initlib/loop.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/stream.h"

enum { ROOM = PACKET_HEAD + PACKET_BODY };

struct packet_state channel_state;
const struct channel_role *channel_role;

static struct event_source channel = { .fd = -1 };
static LAZY char out[ROOM] __attribute__((aligned(16)));
static uint32_t out_from, out_to; /* equal: no packet waits */
static LAZY char in[4 * ROOM] __attribute__((aligned(16)));
static uint32_t in_from, in_to; /* bytes that are not taken yet */

_Noreturn void channel_fault(enum packet_fault why)
{
	channel_role->fault(why);
	sys_exit(PACKET_EXIT + (int)why);
}

/* ---- out ---- */

static void channel_arm(void)
{
	loop_want(&channel, EPOLLIN | (out_from < out_to ? EPOLLOUT : 0));
}

int channel_blocked(void)
{
	return channel.fd < 0 || out_from < out_to;
}

char *channel_room(void)
{
	return out + PACKET_HEAD;
}

/* An error means that the other end is closed; reading finds that, too, after its last packets. */
static void channel_write(void)
{
	while (out_from < out_to) {
		long n = sys_write(channel.fd, out + out_from, out_to - out_from);

		if (n == -EINTR)
			continue;
		if (n <= 0)
			break;
		out_from += (uint32_t)n;
	}
	channel_arm();
}

void channel_send(uint8_t type, unsigned number, const struct packet_fd *fds, unsigned nfds,
		  uint32_t bytes)
{
	struct packet_head h = {
		.bytes = bytes, .stream = (uint16_t)number, .type = type, .nfds = (uint8_t)nfds
	};
	uint32_t fds_at = PACKET_HEAD - nfds * (uint32_t)sizeof(*fds);

	out_from = fds_at - (uint32_t)sizeof(h);
	out_to = PACKET_HEAD + bytes;
	memcpy(out + out_from, &h, sizeof(h));
	if (nfds)
		memcpy(out + fds_at, fds, nfds * sizeof(*fds));
	channel_write();
}

/* ---- in ---- */

/* One packet at `at`, if it is complete: its size, else 0. */
static uint32_t channel_take(const char *at, uint32_t have)
{
	struct packet_fd fds[PACKET_FDS];
	struct packet_head h;
	uint32_t size;
	int why;

	if (have < sizeof(h))
		return 0;
	memcpy(&h, at, sizeof(h));
	why = packet_check_head(&h);
	if (why)
		channel_fault((enum packet_fault)why);
	size = (uint32_t)(sizeof(h) + h.nfds * sizeof(fds[0])) + h.bytes;
	if (have < size)
		return 0;
	memcpy(fds, at + sizeof(h), h.nfds * sizeof(fds[0]));
	stream_take(&h, fds, at + size - h.bytes);
	return size;
}

/* Bytes are moved only when a whole packet might not fit after them. */
static void channel_make_room(void)
{
	if (in_from < in_to && sizeof(in) - in_from >= ROOM)
		return;
	memmove(in, in + in_from, in_to - in_from);
	in_to -= in_from;
	in_from = 0;
}

static void channel_read(void)
{
	uint32_t size;
	long n;

	channel_make_room();
	n = sys_read(channel.fd, in + in_to, sizeof(in) - in_to);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n <= 0) {
		if (in_from < in_to)
			channel_fault(PACKET_CUT);
		channel_role->ended();
		return;
	}
	in_to += (uint32_t)n;
	while (channel.fd >= 0 && (size = channel_take(in + in_from, in_to - in_from)))
		in_from += size;
}

static void channel_ready(struct event_source *s, uint32_t events)
{
	if (events & (EPOLLOUT | EPOLLERR) && out_from < out_to) {
		channel_write();
		if (out_from == out_to)
			stream_resume_all();
	}
	if (s->fd >= 0 && events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		channel_read();
}

void channel_close(void)
{
	if (channel.fd >= 0)
		loop_close(&channel);
}

void channel_init(int take_fd, const struct channel_role *role, int is_mux)
{
	channel_role = role;
	channel_state.is_mux = (uint8_t)is_mux;
	channel = (struct event_source){ .fd = take_fd, .ready = channel_ready };
	sys_fcntl(take_fd, F_SETFL, O_RDWR | O_NONBLOCK);
	channel_arm();
}
