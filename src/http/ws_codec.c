/* ws_codec.c - cuts input into frames and messages, and builds frames for output. */
#include "http/ws_codec.h"

#include <endian.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <wslay/wslay.h>

enum { KEEP_MAX = 64 << 10 }; /* memory of a message that is kept for the next one */

static ssize_t ws_codec_feed(uint8_t *out, size_t n, int flags, void *arg)
{
	struct ws_codec *m = arg;
	size_t got = m->owner->take(m->user, out, n);

	(void)flags;
	return got > 0 ? (ssize_t)got : -1;
}

void ws_codec_init(struct ws_codec *m, int is_client, size_t message_max,
		   const struct ws_codec_owner *owner, void *user)
{
	struct wslay_frame_callbacks callbacks = { .recv_callback = ws_codec_feed };

	*m = (struct ws_codec){
		.owner = owner,
		.user = user,
		.is_client = is_client,
		.message_max = message_max,
		.close_code = 1006,
	};
	if (wslay_frame_context_init(&m->frames, &callbacks, m) != 0)
		abort();
}

void ws_codec_fini(struct ws_codec *m)
{
	if (m->frames)
		wslay_frame_context_free(m->frames);
	m->frames = NULL;
	buf_fini(&m->message);
}

/* ---- out ---- */

static size_t frame_head(uint8_t out[14], int opcode, size_t n, int masked)
{
	size_t at = 2;

	out[0] = (uint8_t)(0x80 | opcode);
	out[1] = masked ? 0x80 : 0;
	if (n < 126) {
		out[1] |= (uint8_t)n;
	} else if (n < 1 << 16) {
		uint16_t be = htobe16((uint16_t)n);

		out[1] |= 126;
		memcpy(out + 2, &be, 2);
		at = 4;
	} else {
		uint64_t be = htobe64(n);

		out[1] |= 127;
		memcpy(out + 2, &be, 8);
		at = 10;
	}
	return at;
}

static void send_masked(struct ws_codec *m, uint8_t *head, size_t head_len, const struct iovec *iov,
			unsigned n)
{
	struct buf all = { 0 };
	struct iovec out;
	uint8_t key[4];
	size_t at = 0;

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		abort();
	buf_add(&all, head, head_len);
	buf_add(&all, key, sizeof(key));
	for (unsigned i = 0; i < n; i++)
		buf_add(&all, iov[i].iov_base, iov[i].iov_len);
	for (size_t i = head_len + 4; i < all.len; i++, at++)
		all.p[i] ^= (char)key[at % 4];
	out = (struct iovec){ all.p, all.len };
	m->owner->put(m->user, &out, 1);
	buf_fini(&all);
}

void ws_codec_send(struct ws_codec *m, int opcode, const struct iovec *iov, unsigned n)
{
	enum { PIECES = 15 };
	struct iovec all[PIECES + 1];
	uint8_t head[14];
	size_t total = 0;

	if (m->close_sent)
		return;
	for (unsigned i = 0; i < n; i++)
		total += iov[i].iov_len;
	all[0] = (struct iovec){ head, frame_head(head, opcode, total, m->is_client) };
	if (m->is_client) {
		send_masked(m, head, all[0].iov_len, iov, n);
		return;
	}
	for (unsigned at = 0, used = 1; at < n || used; used = 0) {
		for (; at < n && used <= PIECES; at++)
			all[used++] = iov[at];
		if (used)
			m->owner->put(m->user, all, used);
	}
}

void ws_codec_close(struct ws_codec *m, uint16_t code, const char *reason)
{
	uint16_t be = htobe16(code);
	size_t n = reason ? strlen(reason) : 0;
	struct iovec iov[2] = { { &be, 2 }, { (void *)reason, n < 123 ? n : 123 } };

	ws_codec_send(m, WS_CLOSE, iov, code ? 2 : 0);
	m->close_sent = 1;
}

/* ---- in ---- */

int ws_codec_over(const struct ws_codec *m)
{
	return m->close_got && m->close_sent;
}

/* The peer violated the protocol. It gets a close frame with the code, and nothing more is read
 * from it. */
static int ws_codec_fail(struct ws_codec *m, uint16_t code)
{
	ws_codec_close(m, code, NULL);
	m->close_got = 1;
	m->close_code = code;
	return 0;
}

static int is_control(int opcode)
{
	return opcode >= WS_CLOSE;
}

static int begin_frame(struct ws_codec *m, const struct wslay_frame_iocb *f)
{
	if (f->rsv || f->mask == m->is_client || f->opcode > WS_PONG ||
	    (f->opcode > WS_BINARY && f->opcode < WS_CLOSE))
		return ws_codec_fail(m, 1002);
	m->left = f->payload_length;
	m->in_frame = 1;
	if (is_control(f->opcode)) {
		m->control_len = 0;
		return 1;
	}
	/* Only a started message can be continued, and no other may start before its end. */
	if ((f->opcode == 0) != (m->opcode != 0))
		return ws_codec_fail(m, 1002);
	if (f->opcode) {
		m->opcode = f->opcode;
		m->utf8 = (struct utf8_check){ 0 };
	}
	if (f->payload_length > m->message_max - m->message.len)
		return ws_codec_fail(m, 1009);
	return 1;
}

static int is_close_code(unsigned code)
{
	return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
	       (code >= 3000 && code <= 4999);
}

static int got_close(struct ws_codec *m)
{
	struct utf8_check u = { 0 };
	unsigned code = m->control_len >= 2 ? (unsigned)m->control[0] << 8 | m->control[1] : 0;

	if (m->control_len == 1 || (code && !is_close_code(code)) || (m->control_len >= 2 && !code))
		return ws_codec_fail(m, 1002);
	if (m->control_len > 2 &&
	    (!utf8_check_add(&u, m->control + 2, m->control_len - 2) || u.need))
		return ws_codec_fail(m, 1007);
	m->close_got = 1;
	m->close_code = code ? (uint16_t)code : 1005;
	ws_codec_close(m, (uint16_t)code, NULL);
	return 0;
}

static int end_control(struct ws_codec *m, int opcode)
{
	struct iovec same = { m->control, m->control_len };

	if (opcode == WS_CLOSE)
		return got_close(m);
	if (opcode == WS_PING)
		ws_codec_send(m, WS_PONG, &same, 1);
	return 1;
}

static int end_message(struct ws_codec *m)
{
	int opcode = m->opcode;

	if (opcode == WS_TEXT && m->utf8.need)
		return ws_codec_fail(m, 1007);
	m->opcode = 0;
	m->owner->on_message(m->user, opcode, buf_str(&m->message), m->message.len);
	if (m->message.room > KEEP_MAX)
		buf_fini(&m->message);
	else
		buf_cut(&m->message, 0);
	return 1;
}

int ws_codec_read(struct ws_codec *m)
{
	struct wslay_frame_iocb f = { 0 };
	ssize_t n;

	if (m->close_got)
		return 0;
	n = wslay_frame_recv(m->frames, &f);
	if (n == WSLAY_ERR_WANT_READ)
		return 0;
	if (n < 0) /* a fragmented control frame, or a length that is not in its shortest form */
		return ws_codec_fail(m, 1002);
	if (!m->in_frame && !begin_frame(m, &f))
		return 0;
	if (is_control(f.opcode)) {
		memcpy(m->control + m->control_len, f.data, f.data_length);
		m->control_len += (unsigned)f.data_length;
	} else {
		if (m->opcode == WS_TEXT && !utf8_check_add(&m->utf8, f.data, f.data_length))
			return ws_codec_fail(m, 1007);
		buf_add(&m->message, f.data, f.data_length);
	}
	m->left -= f.data_length;
	if (m->left > 0)
		return 1;
	m->in_frame = 0;
	if (is_control(f.opcode))
		return end_control(m, f.opcode);
	return f.fin ? end_message(m) : 1;
}

/* ---- the handshake ---- */

void ws_accept_key(const char *key, char out[29])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	struct buf text = { 0 };

	buf_printf(&text, "%s258EAFA5-E914-47DA-95CA-C5AB0DC85B11", key);
	if (!EVP_Digest(text.p, text.len, digest, NULL, EVP_sha1(), NULL))
		abort();
	EVP_EncodeBlock((unsigned char *)out, digest, 20);
	buf_fini(&text);
}
