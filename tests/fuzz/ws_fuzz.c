/* ws_fuzz.c - any bytes as WebSocket frames, in any pieces, to a server or a client. The first byte
 * selects which of them and the size of the pieces. A delivered message is within its limit and, if
 * text, UTF-8; after a close nothing is delivered and nothing sent. */
#include "http/ws_codec.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

enum { MESSAGE_MAX = 300 };

struct feed {
	const uint8_t *p;
	size_t left, room; /* room: of this piece */
	unsigned closes;
	struct ws_codec *m;
};

static size_t take(void *user, void *out, size_t n)
{
	struct feed *f = user;

	n = n < f->room ? n : f->room;
	memcpy(out, f->p, n);
	f->p += n;
	f->left -= n;
	f->room -= n;
	return n;
}

static void put(void *user, const struct iovec *iov, unsigned n)
{
	struct feed *f = user;
	const uint8_t *head = iov[0].iov_base;

	assert(n > 0 && iov[0].iov_len >= 2);
	assert(f->closes == 0);
	f->closes += (head[0] & 15) == WS_CLOSE;
}

static void message(void *user, int opcode, const char *bytes, size_t n)
{
	struct feed *f = user;
	struct utf8_check u = { 0 };

	assert(n <= MESSAGE_MAX && bytes[n] == 0);
	assert(opcode == WS_TEXT || opcode == WS_BINARY);
	assert(opcode == WS_BINARY || (utf8_check_add(&u, bytes, n) && !u.need));
	assert(!f->m->close_got);
	ws_codec_send(f->m, opcode, &(struct iovec){ (void *)bytes, n }, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct ws_codec_owner owner = { take, put, message };
	struct feed f = { .p = bytes + 1, .left = len ? len - 1 : 0 };
	size_t step = len ? bytes[0] / 2 + 1u : 1;
	struct ws_codec m;

	if (len == 0)
		return 0;
	f.m = &m;
	ws_codec_init(&m, bytes[0] & 1, MESSAGE_MAX, &owner, &f);
	while (f.left && !ws_codec_over(&m)) {
		f.room = f.left < step ? f.left : step;
		while (ws_codec_read(&m))
			assert(m.message.len <= MESSAGE_MAX);
		if (f.room) /* it stopped listening, and that is only after a close */
			break;
	}
	assert(!m.close_got || f.closes == 1);
	assert(f.room == 0 || m.close_got);
	ws_codec_fini(&m);
	return 0;
}
