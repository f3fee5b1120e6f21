/* sse_fuzz.c - a stream of events in any pieces. The first byte selects lines of JSON and the size of
 * the pieces. The events are the same as those of the whole; none is larger than its limit. */
#include "llm/sse.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

enum { EVENT_MAX = 64 };

struct sse_result {
	struct buf events;
	int rc;
};

static int sse_note(void *ctx, const char *name, const char *data, size_t len, struct err *e)
{
	struct buf *events = ctx;

	(void)e;
	assert(len <= EVENT_MAX && data[len] == 0 && strlen(name) < SSE_NAME);
	buf_printf(events, "[%s|%zu|", name, len);
	buf_add(events, data, len);
	buf_putc(events, ']');
	return 0;
}

static struct sse_result sse_read(int lines, const char *bytes, size_t n, size_t piece)
{
	struct sse_result r = { 0 };
	struct sse s = { .lines = lines, .most = EVENT_MAX, .event = sse_note, .ctx = &r.events };
	struct err e = { 0 };

	for (size_t at = 0; at < n && r.rc == 0; at += piece) {
		r.rc = sse_feed(&s, bytes + at, n - at < piece ? n - at : piece, &e);
		assert(s.line.len <= EVENT_MAX + 3 && s.data.len <= EVENT_MAX + 1);
	}
	if (r.rc == 0)
		r.rc = sse_end(&s, &e);
	assert(r.rc == 0 || (r.rc == -1 && e.kind == ERR_LIMIT && e.msg[0]));
	sse_fini(&s);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct sse_result whole, split;
	const char *text = (const char *)bytes + 1;

	if (len < 2)
		return 0;
	whole = sse_read(bytes[0] & 1, text, len - 1, len - 1);
	split = sse_read(bytes[0] & 1, text, len - 1, bytes[0] / 2 + 1u);
	assert(whole.rc == split.rc && whole.events.len == split.events.len);
	assert(!whole.events.len || !memcmp(whole.events.p, split.events.p, whole.events.len));
	buf_fini(&whole.events);
	buf_fini(&split.events);
	return 0;
}
