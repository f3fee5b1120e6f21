/* guest.c - see guest.h.
 *
 *   stream 1        init's descriptor 3, the first connection
 *   other streams   a pair of sockets; init receives one end through its descriptor 4
 *
 * The stub ends when the channel ends, or when init has ended and all that init has sent is in the
 * channel. */
#include "mux/guest.h"
#include "base/err.h"
#include "initlib/loop.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/guest_init.h"
#include "mux/stream.h"
#include "wire/wire.h"

enum { BAD_START = 70 };

static const struct guest *guest;
static struct guest_init init;
static int init_over, init_status;
static uint32_t generation;

static void guest_say_hello(void)
{
	struct packet_hello m = { .version = PACKET_VERSION,
				  .generation = generation,
				  .features = guest_init_features(guest) };

	memcpy(channel_room(), &m, sizeof(m));
	channel_send(PACKET_HELLO, 0, NULL, 0, sizeof(m));
}

static _Noreturn void guest_over(int status)
{
	guest->over(status);
	sys_exit(status);
}

/* ---- the role ---- */

static _Noreturn void guest_fault(enum packet_fault why)
{
	guest_over(PACKET_EXIT + (int)why);
}

static void guest_ended(void)
{
	guest_over(init_over ? init_status : 0);
}

static void guest_greeted(const void *body)
{
	struct packet_resume m;

	memcpy(&m, body, sizeof(m));
	generation = m.generation;
	if (guest->resume)
		guest->resume(&m);
	guest_say_hello(); /* nothing was sent since the first HELLO: the channel is not blocked */
}

static int guest_frame(unsigned number, char *frame, uint32_t bytes, const int *fds, unsigned nfds)
{
	(void)number;
	(void)frame;
	(void)bytes;
	(void)fds;
	(void)nfds;
	return 1;
}

static int guest_connect(unsigned number)
{
	return number == PACKET_FIRST ? guest_init_first(&init) : guest_init_connect(&init);
}

/* The answer to a request for a descriptor becomes an error. */
static int guest_refuse(unsigned number, char *frame, uint32_t *bytes)
{
	struct wire_error e = { .head = { .version = WIRE_VERSION, .type = WIRE_ERROR },
				.kind = ERR_LIMIT };
	struct text t = { .to = e.msg, .room = sizeof(e.msg) };

	(void)number;
	if (*bytes < sizeof(e.head))
		return 0;
	e.head.ref = ((const struct frame *)(const void *)frame)->ref;
	text_add(&t, "all 256 streams of this box are in use");
	memcpy(frame, &e, sizeof(e));
	*bytes = sizeof(e);
	return 1;
}

static const struct channel_role guest_role = {
	.fault = guest_fault,
	.ended = guest_ended,
	.greeted = guest_greeted,
	.frame = guest_frame,
	.connect = guest_connect,
	.refuse = guest_refuse,
};

/* ---- the loop ---- */

static void guest_reap(struct event_source *s, uint32_t events)
{
	struct signalfd_siginfo info;
	int status;
	long pid;

	(void)events;
	sys_read(s->fd, &info, sizeof(info));
	while ((pid = sys_wait4(-1, &status, WNOHANG, NULL)) > 0)
		if (pid == init.pid) {
			init_over = 1;
			init_status = status & 0x7f ? 128 + (status & 0x7f) : status >> 8 & 0xff;
		}
}

/* Frames that init has sent and the channel has not. */
static int guest_draining(void)
{
	unsigned i;

	for (i = 1; i < PACKET_STREAMS; i += 2)
		if (channel_state.streams[i].kind == PACKET_SEQPACKET && !stream_at(i)->gone)
			return 1;
	return channel_blocked();
}

_Noreturn void guest_run(const struct guest *how)
{
	static struct event_source children;

	guest = how;
	if (guest_init_start(&init, how) < 0)
		guest_over(BAD_START);
	loop_init();
	children.ready = guest_reap;
	children.fd = (int)sys_signalfd(1ull << (SIGCHLD - 1), O_CLOEXEC | O_NONBLOCK);
	if (children.fd < 0)
		guest_over(BAD_START);
	loop_want(&children, EPOLLIN);
	channel_init(how->channel, &guest_role, 0);
	guest_say_hello();
	for (;;) {
		stream_flush();
		if (init_over && !guest_draining())
			guest_over(init_status);
		loop_turn(-1);
	}
}

static _Noreturn void guest_exit(int status)
{
	sys_exit(status);
}

_Noreturn void guest_main(int argc, char **argv)
{
	static struct guest how;

	if (argc < 5)
		sys_exit(BAD_START);
	sys_sigmask(~0ull); /* a pipe whose reader has closed it is no reason to end the box */
	how = (struct guest){ .channel = 0,
			      .init_path = argv[2],
			      .init_exe = -1,
			      .user = argv[3],
			      .root = argv[4],
			      .upper = -1,
			      .boot = -1,
			      .isolate = 1,
			      .over = guest_exit };
	if (argc > 5)
		how.upper =
			(int)sys_openat(AT_FDCWD, argv[5], O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	guest_run(&how);
}
