/* cells_oneshot.c - see cells_oneshot.h. A run request (run_request.h) whose record is returned as
 * the events of a cell. */
#include "v1run/cells_oneshot.h"
#include "api/event_stream.h"
#include "v1run/run_request.h"

#include <string.h>

static json_t *copy_of(const json_t *record, const char *key)
{
	json_t *v = json_object_get(record, key);

	return v ? json_incref(v) : json_null();
}

static int ended_well(const json_t *record)
{
	return json_integer_value(json_object_get(record, "status")) == 0;
}

/* The failure in the format of an interpreter's error, without frames. */
static json_t *error_of(const json_t *record)
{
	const char *summary = json_string_value(json_object_get(record, "summary"));

	return json_pack("{s:o, s:s, s:[], s:s}", "name", copy_of(record, "cause"), "value",
			 summary ? summary : "", "frames", "text", summary ? summary : "");
}

static json_t *end_of(const json_t *record)
{
	json_t *us = json_object_get(json_object_get(record, "timings"), "run_us"),
	       *cached = json_object_get(record, "cached");

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:O*, s:O*}", "status",
			 ended_well(record) ? "ok" : "error", "cause", copy_of(record, "cause"),
			 "code", copy_of(record, "exit_code"), "hint", copy_of(record, "hint"),
			 "exec", copy_of(record, "id"), "truncated", copy_of(record, "truncated"),
			 "duration_us", json_integer_value(us), "cached", cached, "compiled_before",
			 cached);
}

static void tell_stream(struct event_stream *f, const json_t *record, const char *name,
			const char *encoding)
{
	json_t *text = json_object_get(record, name);

	if (json_string_length(text))
		event_stream_event(
			f, json_pack("{s:s, s:i, s:O}", "type", name, "offset", 0,
				     json_object_get(record, encoding) ? "base64" : "data", text));
}

static void tell_events(struct call *c, const json_t *record, enum event_stream_kind kind)
{
	struct event_stream f;
	json_t *doc;

	event_stream_begin(&f, c->req, kind);
	event_stream_event(&f, json_pack("{s:s, s:O}", "type", "start", "language",
					 json_object_get(c->body, "language")));
	tell_stream(&f, record, "stdout", "stdout_encoding");
	tell_stream(&f, record, "stderr", "stderr_encoding");
	if (!ended_well(record)) {
		doc = error_of(record);
		json_object_set_new(doc, "type", json_string("error"));
		event_stream_event(&f, doc);
	}
	doc = end_of(record);
	json_object_set_new(doc, "type", json_string("end"));
	event_stream_event(&f, doc);
	event_stream_end(&f);
}

static void oneshot_over(struct call *c, json_t *take_record)
{
	static const char *const as_they_are[] = { "stdout", "stdout_encoding", "stderr",
						   "stderr_encoding" };
	enum event_stream_kind kind = event_stream_wanted(c);
	json_t *doc;

	if (kind != EVENT_STREAM_NONE) {
		tell_events(c, take_record, kind);
		json_decref(take_record);
		return;
	}
	doc = end_of(take_record);
	for (unsigned i = 0; i < sizeof(as_they_are) / sizeof(*as_they_are); i++) {
		json_t *v = json_object_get(take_record, as_they_are[i]);

		if (v)
			json_object_set(doc, as_they_are[i], v);
	}
	json_object_set_new(doc, "results", json_array());
	json_object_set_new(doc, "error",
			    ended_well(take_record) ? json_null() : error_of(take_record));
	json_decref(take_record);
	call_json(c, 200, doc);
}

void oneshot_run(struct call *c, struct box *b)
{
	static const struct run_callbacks surface = { .over = oneshot_over };

	run_request_in(c, b, &(struct run_request_spec){ .body = c->body, .surface = &surface });
}
