/* read_output.c - read_output: a part of the output of a program, while it runs and afterwards. */
#include "v1run/execs.h"
#include "base/cleanup.h"
#include "fleet/exec_reader.h"
#include "tools/tool.h"

#include <stdio.h>
#include <string.h>

enum { PART = 16 * 1024 };

struct output_reading {
	struct exec_reader reader;
	struct tool_job *job;
	unsigned stream;
	uint64_t from, tip;
	size_t most;
	struct buf bytes;
	struct timer end; /* a reader must not be closed in its own callback */
	int open;
};

static void output_drop(struct tool_job *j)
{
	struct output_reading *r = j->state;

	timer_fini(&r->end);
	if (r->open)
		exec_reader_close(&r->reader);
	buf_fini(&r->bytes);
}

static void output_finish(struct timer *t)
{
	struct output_reading *r = loop_owner(t, struct output_reading, end);
	struct tool_job *j = r->job;
	uint64_t behind = r->from + r->bytes.len;
	auto_buf struct buf text = { 0 };

	exec_reader_close(&r->reader);
	r->open = 0;
	buf_add(&text, buf_str(&r->bytes), r->bytes.len);
	if (behind < r->tip)
		buf_printf(&text, "\n[... %llu bytes follow; continue with offset=%llu ...]",
			   (unsigned long long)(r->tip - behind), (unsigned long long)behind);
	tool_done(j,
		  json_pack("{s:I, s:I, s:I, s:o}", "offset", (json_int_t)r->from, "next",
			    (json_int_t)behind, "tip", (json_int_t)r->tip, "output",
			    tool_string(j, buf_str(&r->bytes), r->bytes.len)),
		  buf_str(&text), text.len);
}

static void output_reading(struct exec_reader *t, unsigned stream, uint64_t from, uint64_t tip)
{
	struct output_reading *r = loop_owner(t, struct output_reading, reader);

	if (stream != r->stream)
		return;
	r->from = from;
	r->tip = tip;
	if (from >= tip)
		timer_set(&r->end, 0);
}

static void output_output(struct exec_reader *t, unsigned stream, uint64_t offset,
			  const char *bytes, size_t n)
{
	struct output_reading *r = loop_owner(t, struct output_reading, reader);
	size_t room = r->most - r->bytes.len;

	(void)offset;
	if (stream != r->stream)
		return;
	buf_add(&r->bytes, bytes, n < room ? n : room);
	if (r->bytes.len == r->most || r->from + r->bytes.len >= r->tip)
		timer_set(&r->end, 0);
}

static void output_over(struct exec_reader *t, json_t *record, const struct err *e)
{
	struct output_reading *r = loop_owner(t, struct output_reading, reader);

	(void)record;
	if (e && !timer_pending(&r->end)) {
		r->open = 0;
		tool_fail(r->job, err_kind_name(e->kind), e->msg, NULL, NULL);
		return;
	}
	timer_set(&r->end, 0);
}

void tool_output(struct tool_job *j)
{
	static const struct exec_reader_events on = { .reading = output_reading,
						      .output = output_output,
						      .over = output_over };
	const char *stream = tool_text(j, "stream", "stdout");
	struct box *b = tool_box(j);
	struct call *c = j->call;
	uint64_t from[2] = { 0 };
	struct output_reading *r;
	char id[ID_MAX + 1];
	uint32_t ref;

	if (!b)
		return;
	if (strcmp(stream, "stdout") && strcmp(stream, "stderr")) {
		tool_fail(j, "invalid", "stream: is neither stdout nor stderr", NULL, NULL);
		return;
	}
	snprintf(c->match.params[1], sizeof(c->match.params[1]), "%s", tool_text(j, "exec", ""));
	if (!execs_ref(c, b, id, &ref)) {
		tool_fail(j, "not_found", "there is no such exec in this box",
			  tool_text(j, "exec", ""), NULL);
		return;
	}
	if (b->readers >= EXEC_READER_READERS) {
		tool_fail(j, "limit", "too many readers in this box", NULL, NULL);
		return;
	}
	r = call_alloc(c, sizeof(*r));
	*r = (struct output_reading){ .job = j,
				      .stream = !strcmp(stream, "stderr"),
				      .most = (size_t)tool_int(j, "limit", PART),
				      .open = 1 };
	from[r->stream] = (uint64_t)tool_int(j, "offset", 0);
	timer_init(&r->end, c->api->loop, output_finish);
	j->state = r;
	j->drop = output_drop;
	exec_reader_open(&r->reader, &c->api->fleet, b->row.id, id, ref, from, &on);
}
