/* listener.c - see listener.h.
 * mux keeps only the address of its socket: it is closed when the process that accepts closes it. mux
 * notices that at the next connection, and looks for it before a frame LISTEN, which may request the
 * same port. */
#include "mux/listener.h"
#include "initlib/sys.h"
#include "mux/descriptor.h"
#include "mux/stream.h"

enum { LISTENERS = 16 };

static LAZY struct listener {
	unsigned number; /* 0: a free slot */
	struct descriptor_address at;
} listeners[LISTENERS];

static struct listener *listener_of(unsigned number)
{
	int i;

	for (i = 0; i < LISTENERS; i++)
		if (listeners[i].number == number)
			return &listeners[i];
	return NULL;
}

void listener_accept(unsigned number)
{
	int fd = (int)sys_accept(stream_at(number)->src.fd, SOCK_CLOEXEC);
	struct packet_fd at = { .kind = PACKET_STREAM };

	if (fd < 0)
		return;
	at.stream = (uint16_t)stream_add(PACKET_STREAM, fd, 0);
	if (at.stream)
		channel_send(PACKET_ACCEPT, number, &at, 1, 0);
	else
		sys_close(fd);
}

/* Forgets streams that have ended. */
static void listener_sweep(void)
{
	int i;

	for (i = 0; i < LISTENERS; i++)
		if (listeners[i].number &&
		    (channel_state.streams[listeners[i].number].kind != PACKET_LISTENER ||
		     stream_at(listeners[i].number)->gone))
			listeners[i].number = 0;
}

int listener_make(unsigned number, int *out_fd)
{
	struct listener *l;

	listener_sweep();
	l = listener_of(0);
	if (!l)
		return -EMFILE;
	*out_fd = descriptor_listen(&l->at);
	if (*out_fd < 0)
		return *out_fd;
	l->number = number;
	return 0;
}

int listener_connect(unsigned number)
{
	struct listener *l = listener_of(number);
	int fd = l ? descriptor_connect(&l->at) : -1;

	if (fd == -ECONNREFUSED)
		stream_finish(number);
	return fd;
}

int listener_exists(void)
{
	int i;

	listener_sweep();
	for (i = 0; i < LISTENERS; i++)
		if (listeners[i].number)
			return 1;
	return 0;
}

int listener_close_abandoned(void)
{
	int i, n = 0;

	for (i = 0; i < LISTENERS; i++)
		if (listeners[i].number && descriptor_abandoned(&listeners[i].at)) {
			stream_finish(listeners[i].number);
			n++;
		}
	return n;
}
