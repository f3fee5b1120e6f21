/* oneshot.c - see oneshot.h. A run request (v1run/run_request.h) whose record is sent as an
 * execution. */
#include "e2b/oneshot.h"
#include "v1run/run_request.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "e2b/interpreter.h"

#include <string.h>
#include <time.h>

static void add_line(struct buf *out, json_t *take_line)
{
	auto_free char *text = json_dumps(take_line, JSON_COMPACT | JSON_ENSURE_ASCII);

	json_decref(take_line);
	if (!text)
		abort();
	buf_puts(out, text);
	buf_putc(out, '\n');
}

static void add_stream(struct buf *out, const json_t *record, const char *name)
{
	json_t *text = json_object_get(record, name);

	if (json_string_length(text))
		add_line(out, json_pack("{s:s, s:O, s:O}", "type", name, "text", text, "timestamp",
					json_object_get(record, "started")));
}

static const char *text_in(const json_t *doc, const char *name)
{
	return json_string_value(json_object_get(doc, name));
}

static void oneshot_over(struct call *c, json_t *take_record)
{
	const char *cause = text_in(take_record, "cause");
	auto_buf struct buf out = { 0 };

	add_line(&out,
		 json_pack("{s:s, s:i}", "type", "number_of_executions", "execution_count", 1));
	add_stream(&out, take_record, "stdout");
	add_stream(&out, take_record, "stderr");
	if (json_integer_value(json_object_get(take_record, "status")) != 0)
		add_line(&out, exec_events_error(cause ? cause : "exit",
						 text_in(take_record, "summary")));
	add_line(&out, json_pack("{s:s}", "type", "end_of_execution"));
	json_decref(take_record);
	http_reply(c->req, 200, "application/x-ndjson", out.p, out.len);
}

void oneshot_exec(struct call *c, const char *language)
{
	static const struct run_callbacks surface = { .over = oneshot_over };
	json_t *env = call_get(c, "env_vars"),
	       *body = json_pack("{s:s, s:O, s:O*}", "language", language, "code",
				 call_get(c, "code"), "env", env);

	run_request_in(c, e2b_find_box(c),
		       &(struct run_request_spec){ .body = body, .surface = &surface });
	json_decref(body);
}
