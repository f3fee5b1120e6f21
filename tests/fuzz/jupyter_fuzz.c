/* jupyter_fuzz.c - any message from a kernel: one without a valid signature is dropped; one with it
 * becomes lines that the server accepts.
 * The first byte chooses what the rest is: a spec, frames as they are, a header, or the content of a type. */
#include "base/cleanup.h"
#include "notebook/driver_protocol.h"
#include "fuzz.h"
#include "jupyter/cell.h"
#include "jupyter/spec.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const char *const types[] = { "stream",         "display_data", "update_display_data",
				     "execute_result", "error",        "execute_reply",
				     "input_request",  "status",       "execute_input" };

static void a_spec(const char *text, size_t n)
{
	struct kernel_spec s;
	struct err e;

	if (spec_parse(&s, text, n, &e) < 0) {
		assert(e.kind == ERR_INVALID);
		return;
	}
	assert(json_array_size(s.argv) && json_array_size(s.argv) <= SPEC_WORDS);
	spec_fini(&s);
}

/* Cut at every 0xff. */
static void bare_frames(const char *bytes, size_t n)
{
	struct msg_frame frames[JUPYTER_MSG_FRAMES];
	struct jupyter_msg m;
	struct err e;
	unsigned all = 0;

	while (all < JUPYTER_MSG_FRAMES) {
		const char *end = n ? memchr(bytes, 0xff, n) : NULL;
		size_t some = end ? (size_t)(end - bytes) : n;

		frames[all++] = (struct msg_frame){ bytes, some };
		if (!end)
			break;
		bytes += some + 1;
		n -= some + 1;
	}
	assert(jupyter_msg_parse(&m, frames, all, KEY, &e) < 0);
}

static void check_lines(struct buf *channel)
{
	const char *at = buf_str(channel);
	size_t n = channel->len;
	struct driver_msg t = { 0 };

	while (n) {
		struct driver_msg_event ev;
		struct err e;
		int rc = driver_msg_take(&t, &at, &n, &ev, &e);

		assert(rc >= 0);
		if (rc)
			json_decref(ev.doc);
	}
	assert(!t.line.len);
	driver_msg_fini(&t);
}

static void signed_message(const char *header, size_t header_n, const char *content,
			   size_t content_n)
{
	char signature[JUPYTER_MSG_SIGNATURE + 1];
	struct msg_frame frames[] = { { JUPYTER_MSG_DELIMITER, strlen(JUPYTER_MSG_DELIMITER) },
				      { signature, JUPYTER_MSG_SIGNATURE },
				      { header, header_n },
				      { "{\"msg_id\":\"r\"}", 14 },
				      { "{}", 2 },
				      { content, content_n } };
	struct kernel_cell c = { 0 };
	struct said said = { 0 };
	struct jupyter_msg m;
	struct err e;

	jupyter_msg_sign(signature, KEY, frames + 2);
	if (jupyter_msg_parse(&m, frames, ARRAY_LEN(frames), KEY, &e) < 0) {
		assert(e.kind == ERR_INVALID);
		return;
	}
	cell_begin(&c, "1", "r");
	if (!strcmp(m.type, "stream"))
		cell_stream(&m, &said);
	else
		kernel_cell_on_message(&c, &m, &said);
	c.seen |= CELL_REPLIED;
	cell_finish(&c, 1, &said);
	check_lines(&said.channel);
	said_fini(&said);
	jupyter_msg_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	const char *rest = (const char *)bytes + 1;
	char header[80];

	if (!len)
		return 0;
	snprintf(header, sizeof(header), "{\"msg_id\":\"k\",\"msg_type\":\"%s\"}",
		 types[bytes[0] % ARRAY_LEN(types)]);
	switch (bytes[0]) {
	case 's':
		a_spec(rest, len - 1);
		break;
	case 'f':
		bare_frames(rest, len - 1);
		break;
	case 'h':
		signed_message(rest, len - 1, "{}", 2);
		break;
	default:
		signed_message(header, strlen(header), rest, len - 1);
	}
	return 0;
}
