/* egress_fuzz.c - any bytes as a request to the proxy, and as an answer to it.
 * An accepted request is written again by the proxy: it has one head, without lines that the client
 * smuggled in, and parsed again it is the same request to the same host. The first byte selects the
 * size of the pieces of the body. */
#include "egress/http_message.h"
#include "fuzz.h"

#include <assert.h>
#include <event2/buffer.h>
#include <string.h>

static void check_written(struct evbuffer *out)
{
	size_t n = evbuffer_get_length(out);
	const char *text = (const char *)evbuffer_pullup(out, -1);

	assert(n && message_head_end(text, n) == n);
	assert(!memchr(text, 0, n));
}

static void pass_body(struct message *m, const uint8_t *bytes, size_t len, size_t step)
{
	struct evbuffer *out = evbuffer_new();
	const char *why;

	for (size_t at = 0; at < len && !m->done;) {
		size_t n = len - at < step ? len - at : step;
		long used = message_body(m, (const char *)bytes + at, n, out, &why);

		assert(used <= (long)n);
		if (used < 0 || (used == 0 && !m->done))
			break;
		at += (size_t)used;
	}
	if (m->framing == MESSAGE_LENGTH)
		assert(evbuffer_get_length(out) <= m->length);
	if (m->framing == MESSAGE_EMPTY)
		assert(evbuffer_get_length(out) == 0);
	evbuffer_free(out);
}

static void as_request(const uint8_t *bytes, size_t head, size_t len, size_t step)
{
	struct evbuffer *out = evbuffer_new();
	struct message m = { 0 }, again = { 0 };
	const char *why = NULL;

	if (message_request(&m, (const char *)bytes, head, &why) != 0) {
		assert(why && *why);
	} else {
		assert(m.host[0] && m.port);
		if (!m.connect) {
			message_write_request(&m, out);
			check_written(out);
			/* Parsed as a server does it: the target is a path, not a URL. */
			assert(message_request(&again, (const char *)evbuffer_pullup(out, -1),
					       evbuffer_get_length(out), &why) == 400);
			assert(!strncmp(why, "this is a proxy", 15));
			assert(again.framing == m.framing && again.length == m.length);
			pass_body(&m, bytes + head, len - head, step);
		}
	}
	message_fini(&m);
	message_fini(&again);
	evbuffer_free(out);
}

static void as_answer(const uint8_t *bytes, size_t head, size_t len, size_t step)
{
	struct evbuffer *out = evbuffer_new();
	struct message m = { .no_body = step % 7 == 0 };
	const char *why;

	if (message_response(&m, (const char *)bytes, head, &why) == 0) {
		message_write_response(&m, out, step % 3 == 0);
		check_written(out);
		pass_body(&m, bytes + head, len - head, step);
		(void)!message_end(&m);
	}
	message_fini(&m);
	evbuffer_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	size_t step = len ? bytes[0] + 1u : 1, head;

	if (len < 1)
		return 0;
	bytes++;
	len--;
	head = message_head_end((const char *)bytes, len < MESSAGE_HEAD ? len : MESSAGE_HEAD);
	if (!head)
		return 0;
	as_request(bytes, head, len, step);
	as_answer(bytes, head, len, step);
	return 0;
}
