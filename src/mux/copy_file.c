/* copy_file.c - see copy_file.h. */
#include "mux/copy_file.h"
#include "initlib/str.h"
#include "initlib/sys.h"
#include "mux/stream.h"

enum { COPIES = 8, FRAME = 1024 };
enum { ADD_SEALS = 1033, SEAL_ALL = 1 | 2 | 4 | 8, ALLOW_SEALING = 2, MEMFD_CLOEXEC = 1 };

static LAZY struct copy {
	unsigned frame_stream; /* 0: a free slot */
	unsigned file_stream;
	int fd;
	uint64_t at, size;
	uint32_t bytes; /* of the frame */
	char frame[FRAME];
} copies[COPIES];

/* ---- mux ---- */

static struct copy *copy_file_of(unsigned frame_stream) /* 0: a free slot */
{
	int i;

	for (i = 0; i < COPIES; i++)
		if (copies[i].frame_stream == frame_stream)
			return &copies[i];
	return NULL;
}

static int copy_file_refused(unsigned number, const char *frame, uint32_t bytes, int fd)
{
	char copy[FRAME];

	sys_close(fd);
	memcpy(copy, frame, bytes);
	channel_role->refuse(number, copy, &bytes);
	return 0;
}

int copy_file_start(unsigned number, const char *frame, uint32_t bytes, int take_fd)
{
	struct copy *c = copy_file_of(0);
	struct stat st;
	unsigned file;

	if (bytes > FRAME || sys_fstat(take_fd, &st) < 0 || (uint64_t)st.st_size > PACKET_FILE) {
		sys_close(take_fd);
		return -1;
	}
	file = c ? stream_add(PACKET_MEMFD, -1, STREAM_OPEN) : 0;
	if (!file)
		return copy_file_refused(number, frame, bytes, take_fd);
	*c = (struct copy){ .frame_stream = number,
			    .file_stream = file,
			    .fd = take_fd,
			    .size = (uint64_t)st.st_size,
			    .bytes = bytes };
	memcpy(c->frame, frame, bytes);
	stream_at(number)->copies = 1;
	stream_at(file)->copies = 1;
	stream_due(file);
	return 0;
}

/* The content is complete: the frame follows, then nothing more on that stream. */
static void copy_file_send_frame(struct copy *c)
{
	struct packet_fd fd = { .stream = (uint16_t)c->file_stream, .kind = PACKET_MEMFD };
	unsigned number = c->frame_stream;

	memcpy(channel_room(), c->frame, c->bytes);
	channel_state.streams[number].credit -= packet_cost(PACKET_FRAME, c->bytes);
	channel_send(PACKET_FRAME, number, &fd, 1, c->bytes);
	sys_close(c->fd);
	stream_at(number)->copies = 0;
	stream_at(c->file_stream)->copies = 0;
	c->frame_stream = 0;
	stream_finish(c->file_stream);
	stream_due(number);
}

static struct copy *copy_file_with(unsigned file_stream)
{
	int i;

	for (i = 0; i < COPIES; i++)
		if (copies[i].frame_stream && copies[i].file_stream == file_stream)
			return &copies[i];
	return NULL;
}

/* One part per turn, so that other streams have theirs. */
void copy_file_continue(unsigned number)
{
	struct copy *c = copy_file_with(number);
	struct packet_stream *t = &channel_state.streams[number];
	uint64_t left;
	long n;

	if (!c)
		return; /* the stream of the frame: waits for the file */
	if (stream_at(c->frame_stream)->gone || t->peer_closed) {
		sys_close(c->fd);
		stream_at(c->frame_stream)->copies = 0;
		stream_at(number)->copies = 0;
		stream_finish(c->frame_stream);
		c->frame_stream = 0;
		stream_finish(number);
		return;
	}
	if (c->at == c->size + 1) {
		copy_file_send_frame(c);
		return;
	}
	left = c->size - c->at;
	if (left && !t->credit)
		return; /* GRANT continues */
	if (left > t->credit)
		left = t->credit;
	n = left ? sys_pread(c->fd, channel_room(), left < PACKET_BODY ? left : PACKET_BODY, c->at)
		 : 0;
	if (n > 0) {
		c->at += (uint64_t)n;
		t->credit -= (uint32_t)n;
		channel_send(PACKET_DATA, number, NULL, 0, (uint32_t)n);
	} else { /* its end, or it became shorter meanwhile */
		c->size = c->at;
		c->at++;
		channel_send(PACKET_SHUTDOWN, number, NULL, 0, 0);
	}
	stream_due(number);
}

/* ---- guest ---- */

void copy_file_open(unsigned number)
{
	struct stream *s = stream_at(number);

	/* Not a source of events: a file is always ready. */
	s->src.fd = (int)sys_memfd_create("frame", MEMFD_CLOEXEC | ALLOW_SEALING);
	s->src.armed = 0;
	if (s->src.fd < 0)
		stream_finish(number);
}

void copy_file_append(unsigned number, const char *bytes, uint32_t n)
{
	struct stream *s = stream_at(number);
	uint32_t done = 0;

	s->taken += (int32_t)n;
	while (done < n) {
		long w = sys_write(s->src.fd, bytes + done, n - done);

		if (w <= 0) {
			stream_finish(number); /* no memory: the frame arrives without it */
			return;
		}
		done += (uint32_t)w;
	}
}

int copy_file_take(unsigned number, int *out_fd)
{
	struct stream *s = stream_at(number);

	if (s->gone || s->src.fd < 0)
		return -ENOMEM;
	sys_fcntl(s->src.fd, ADD_SEALS, SEAL_ALL);
	*out_fd = (int)sys_fcntl(s->src.fd, F_DUPFD_CLOEXEC, 3);
	return *out_fd < 0 ? *out_fd : 0;
}
