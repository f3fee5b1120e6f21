/* control_fuzz.c - lines of a control connection. The first byte selects the side and the size of the
 * pieces. In any pieces the messages are the same as those of the whole, and a message that was
 * accepted is within all limits and can be written and read again. */
#include "cluster/control.h"
#include "fuzz.h"

#include <assert.h>
#include <jansson.h>
#include <string.h>

enum { LINE_MAX_BYTES = 512 };

struct control_result {
	struct buf seen;
	int from_node, rc;
};

static void control_check_figures(const struct control_figures *f)
{
	assert(f->seq >= 1 && f->load <= CONTROL_LOAD_FULL && f->cpus >= 1);
	assert(f->memory_free <= f->memory_total && f->boxes <= 1000000);
	assert(f->ntemplates <= CONTROL_TEMPLATES && f->nlabels <= CONTROL_LABELS);
	for (unsigned i = 1; i < f->ntemplates; i++)
		assert(f->templates[i - 1] <= f->templates[i]);
	for (unsigned i = 0; i < f->nlabels; i++)
		assert(f->labels[i][0] && memchr(f->labels[i], 0, CONTROL_LABEL));
}

static void control_check_again(const struct control_message *m)
{
	auto_buf struct buf line = { 0 };
	struct control_message again;
	struct err e;

	control_put_heartbeat(&line, &m->figures, 1);
	assert(control_parse(line.p, line.len - 1, 1, &again, &e) == 0);
	assert(again.figures.seq == m->figures.seq && again.figures.load == m->figures.load);
	assert(again.figures.ntemplates == m->figures.ntemplates);
	assert(again.figures.nlabels == m->figures.nlabels);
	control_message_fini(&again);
}

static int control_note(void *user, const char *text, size_t len, struct err *e)
{
	struct control_result *r = user;
	struct control_message m;

	assert(len <= LINE_MAX_BYTES);
	if (control_parse(text, len, r->from_node, &m, e) < 0) {
		assert(e->kind != ERR_NONE && e->msg[0]);
		return -1;
	}
	if (m.kind == CONTROL_HEARTBEAT) {
		control_check_figures(&m.figures);
		control_check_again(&m);
	}
	assert(m.kind != CONTROL_OPEN_MORE || (m.count >= 1 && m.count <= CONTROL_OPEN));
	assert(m.kind != CONTROL_ROWS_SENT || json_array_size(m.body) <= CONTROL_ROWS);
	buf_printf(&r->seen, "[%d %zu]", m.kind, len);
	control_message_fini(&m);
	return 0;
}

static struct control_result control_read_all(int from_node, const char *bytes, size_t n,
					      size_t piece)
{
	struct control_result r = { .from_node = from_node };
	struct control_lines lines = { .most = LINE_MAX_BYTES };
	struct err e = { 0 };

	for (size_t at = 0; at < n && r.rc == 0; at += piece) {
		r.rc = control_feed(&lines, bytes + at, n - at < piece ? n - at : piece,
				    control_note, &r, &e);
		assert(lines.line.len <= LINE_MAX_BYTES);
	}
	buf_fini(&lines.line);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct control_result whole, split;
	const char *text = (const char *)bytes + 1;

	if (len < 2)
		return 0;
	whole = control_read_all(bytes[0] & 1, text, len - 1, len - 1);
	split = control_read_all(bytes[0] & 1, text, len - 1, bytes[0] / 2 + 1u);
	assert(whole.rc == split.rc);
	assert(strcmp(buf_str(&whole.seen), buf_str(&split.seen)) == 0);
	buf_fini(&whole.seen);
	buf_fini(&split.seen);
	return 0;
}
