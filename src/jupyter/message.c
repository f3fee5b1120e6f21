/* message.c - see message.h. */
#include "jupyter/message.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/sha256.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 64 };

/* ---- signatures ---- */

/* RFC 2104. A key longer than a block would have to be hashed first; keys of Atoll never are. */
static void message_pad(uint8_t out[BLOCK], const char *key, uint8_t with)
{
	size_t n = strlen(key);

	memset(out, with, BLOCK);
	for (size_t i = 0; i < n && i < BLOCK; i++)
		out[i] ^= (uint8_t)key[i];
}

static void message_hmac(uint8_t out[SHA256_BYTES], const char *key, const struct msg_frame *parts,
			 unsigned n)
{
	uint8_t block[BLOCK];
	struct sha256 s;

	sha256_init(&s);
	message_pad(block, key, 0x36);
	sha256_add(&s, block, sizeof(block));
	for (unsigned i = 0; i < n; i++)
		sha256_add(&s, parts[i].p, parts[i].n);
	sha256_end(&s, out);
	sha256_init(&s);
	message_pad(block, key, 0x5c);
	sha256_add(&s, block, sizeof(block));
	sha256_add(&s, out, SHA256_BYTES);
	sha256_end(&s, out);
}

void jupyter_msg_sign(char out[JUPYTER_MSG_SIGNATURE + 1], const char *key,
		      const struct msg_frame parts[JUPYTER_MSG_PARTS])
{
	uint8_t raw[SHA256_BYTES];

	message_hmac(raw, key, parts, JUPYTER_MSG_PARTS);
	hex_encode(out, raw, sizeof(raw));
}

/* Constant time: the duration must not reveal how much is equal. */
static int is_signed(const struct msg_frame *signature, const char *key,
		     const struct msg_frame *parts)
{
	char want[JUPYTER_MSG_SIGNATURE + 1];
	unsigned differs = 0;

	if (signature->n != JUPYTER_MSG_SIGNATURE)
		return 0;
	jupyter_msg_sign(want, key, parts);
	for (unsigned i = 0; i < JUPYTER_MSG_SIGNATURE; i++)
		differs |= (unsigned)(want[i] ^ signature->p[i]);
	return !differs;
}

/* ---- JSON ---- */

/* The value of "\uXXXX", -1: invalid. */
static int unit_at(const char *p, size_t n)
{
	int v = 0;

	if (n < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (unsigned i = 2; i < 6; i++) {
		int digit = hex_digit(p[i]);

		if (digit < 0)
			return -1;
		v = v << 4 | digit;
	}
	return v;
}

/* Writes one escape of a text to out; returns its length. */
static size_t fix_escape(struct buf *out, const char *p, size_t n)
{
	int first = unit_at(p, n), second = n > 6 ? unit_at(p + 6, n - 6) : -1;

	if (first >= 0xd800 && first < 0xdc00 && second >= 0xdc00 && second < 0xe000) {
		buf_add(out, p, 12);
		return 12;
	}
	if (first >= 0xd800 && first < 0xe000) {
		buf_puts(out, "\\ufffd");
		return 6;
	}
	buf_add(out, p, n > 1 ? 2 : 1);
	return n > 1 ? 2 : 1;
}

/* Non-JSON literals that some kernels write. */
static size_t fix_word(struct buf *out, const char *p, size_t n)
{
	static const char *const words[] = { "NaN", "-Infinity", "Infinity" };

	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		size_t len = strlen(words[i]);

		if (len <= n && !memcmp(p, words[i], len)) {
			buf_puts(out, "null");
			return len;
		}
	}
	buf_putc(out, *p);
	return 1;
}

static void message_repair(struct buf *out, const char *text, size_t n)
{
	int in_text = 0;

	for (size_t i = 0; i < n;) {
		size_t len = utf8_length(text + i, n - i);

		if (!len || (in_text && (unsigned char)text[i] < 0x20)) {
			buf_puts(out, in_text ? "\\ufffd" : " ");
			i++;
		} else if (in_text && text[i] == '\\') {
			i += fix_escape(out, text + i, n - i);
		} else if (in_text || text[i] == '"') {
			in_text ^= text[i] == '"';
			buf_add(out, text + i, len);
			i += len;
		} else {
			i += fix_word(out, text + i, n - i);
		}
	}
}

json_t *jupyter_msg_json(const char *text, size_t n)
{
	json_t *doc = json_loadb(text, n, JSON_ALLOW_NUL, NULL);
	auto_buf struct buf better = { 0 };

	if (doc)
		return doc;
	message_repair(&better, text, n);
	return json_loadb(buf_str(&better), better.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL,
			  NULL);
}

/* ---- reading one ---- */

static const char *word_of(const json_t *header, const char *name)
{
	const json_t *v = json_object_get(header, name);

	return json_is_string(v) && json_string_length(v) <= JUPYTER_MSG_ID ? json_string_value(v)
									    : NULL;
}

static int message_fill(struct jupyter_msg *m, struct err *e)
{
	const char *parent_id;

	if (!json_is_object(m->header) || !json_is_object(m->parent) || !json_is_object(m->content))
		return err_set(e, ERR_INVALID, "a part of it is not an object");
	m->type = word_of(m->header, "msg_type");
	m->id = word_of(m->header, "msg_id");
	if (!m->type || !m->id)
		return err_set(e, ERR_INVALID, "it has no type, or no id");
	parent_id = word_of(m->parent, "msg_id");
	m->parent_id = parent_id ? parent_id : "";
	return 0;
}

int jupyter_msg_parse(struct jupyter_msg *out, const struct msg_frame *frames, unsigned n,
		      const char *key, struct err *e)
{
	struct jupyter_msg m = { 0 };
	unsigned at = 0;

	while (at < n && at <= JUPYTER_MSG_IDENTITIES &&
	       (frames[at].n != strlen(JUPYTER_MSG_DELIMITER) ||
		memcmp(frames[at].p, JUPYTER_MSG_DELIMITER, frames[at].n) != 0))
		at++;
	if (at > JUPYTER_MSG_IDENTITIES || n - at < 2 + JUPYTER_MSG_PARTS)
		return err_set(e, ERR_INVALID, "the frames of a message are missing");
	/* The signature is checked first: unsigned data is not parsed. */
	if (!is_signed(&frames[at + 1], key, frames + at + 2))
		return err_set(e, ERR_DENIED, "its signature is not that of the kernel");
	m.header = jupyter_msg_json(frames[at + 2].p, frames[at + 2].n);
	m.parent = jupyter_msg_json(frames[at + 3].p, frames[at + 3].n);
	m.content = jupyter_msg_json(frames[at + 5].p, frames[at + 5].n);
	if (message_fill(&m, e) < 0) {
		jupyter_msg_fini(&m);
		return -1;
	}
	*out = m;
	return 0;
}

void jupyter_msg_fini(struct jupyter_msg *m)
{
	json_decref(m->header);
	json_decref(m->parent);
	json_decref(m->content);
	*m = (struct jupyter_msg){ 0 };
}

/* ---- writing one ---- */

static void message_put(struct buf *out, const json_t *doc)
{
	auto_free char *text = json_dumps(doc, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (!text)
		abort();
	buf_puts(out, text);
}

static json_t *new_header(const char *type, const char *session, const char *id)
{
	char date[40];
	struct timespec now;
	struct tm utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(date + strlen(date), sizeof(date) - strlen(date), ".%06ldZ", now.tv_nsec / 1000);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "msg_id", id, "session", session,
			 "username", "atoll", "date", date, "msg_type", type, "version", "5.3");
}

void jupyter_out_write(struct jupyter_out *out, const char *key, const char *type,
		       const char *session, const char *id, const json_t *parent,
		       json_t *take_content)
{
	json_t *header = new_header(type, session, id);
	struct msg_frame parts[JUPYTER_MSG_PARTS];

	*out = (struct jupyter_out){ 0 };
	message_put(&out->part[0], header);
	if (parent)
		message_put(&out->part[1], parent);
	else
		buf_puts(&out->part[1], "{}");
	buf_puts(&out->part[2], "{}");
	message_put(&out->part[3], take_content);
	json_decref(header);
	json_decref(take_content);
	for (unsigned i = 0; i < JUPYTER_MSG_PARTS; i++)
		parts[i] = (struct msg_frame){ out->part[i].p, out->part[i].len };
	jupyter_msg_sign(out->signature, key, parts);
}

void jupyter_out_fini(struct jupyter_out *l)
{
	for (unsigned i = 0; i < JUPYTER_MSG_PARTS; i++)
		buf_fini(&l->part[i]);
}
