/* exec_events.c - turns the output of a cell into the JSON objects that E2B's clients read. */
#include "api/event_stream.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "record/record.h"
#include "e2b/interpreter.h"
#include "notebook/cell.h"

#include <string.h>
#include <time.h>

/* ---- output ---- */

/* Returns how many of n bytes were taken: an incomplete character at the end waits, unless it is
 * the last piece. */
static size_t take_text(struct buf *out, const char *bytes, size_t n, int last)
{
	size_t at = 0;

	while (at < n) {
		int bad;
		size_t whole = utf8_complete(bytes + at, n - at, &bad);

		buf_add(out, bytes + at, whole);
		at += whole;
		if (at == n || (!bad && !last))
			break;
		buf_puts(out, UTF8_REPLACEMENT);
		at++;
	}
	return at;
}

json_t *exec_events_output(struct cell_piece *p)
{
	auto_buf struct buf text = { 0 };
	size_t taken = take_text(&text, p->bytes, p->n, p->last);

	if (!taken)
		return NULL;
	p->after[p->what == CELL_STDERR] -= p->n - taken;
	return json_pack("{s:s, s:s%, s:o}", "type", p->what == CELL_STDOUT ? "stdout" : "stderr",
			 "text", buf_str(&text), text.len, "timestamp",
			 json_time(clock_ns(CLOCK_REALTIME)));
}

/* ---- results ---- */

static const struct {
	const char *mime, *field;
} fields[] = {
	{ "text/plain", "text" },        { "text/html", "html" },
	{ "text/markdown", "markdown" }, { "image/svg+xml", "svg" },
	{ "image/png", "png" },          { "image/jpeg", "jpeg" },
	{ "application/pdf", "pdf" },    { "text/latex", "latex" },
	{ "application/json", "json" },  { "application/javascript", "javascript" },
};

static const char *field_of(const char *mime)
{
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (!strcmp(fields[i].mime, mime))
			return fields[i].field;
	return NULL;
}

/* Removes the quotes around the text of a string. */
static json_t *events_unquoted(json_t *text)
{
	const char *s = json_string_value(text);
	size_t n = json_string_length(text);

	if (n >= 2 && (s[0] == '\'' || s[0] == '"') && s[n - 1] == s[0])
		return json_stringn(s + 1, n - 2);
	return json_incref(text);
}

static json_t *result_line(const json_t *event)
{
	json_t *extra = json_object_get(event, "extra"), *more = json_object(), *v;
	json_t *line = json_pack("{s:s, s:b, s:o}", "type", "result", "is_main_result",
				 json_is_true(json_object_get(event, "main")), "extra", more);
	const char *mime, *field;

	json_object_foreach(json_object_get(event, "data"), mime, v)
	{
		field = field_of(mime);
		if (json_is_null(v))
			continue;
		if (!field)
			json_object_set(more, mime, v);
		else if (!strcmp(field, "text"))
			json_object_set_new(line, field, events_unquoted(v));
		else
			json_object_set(line, field, v);
	}
	if (json_is_object(json_object_get(extra, "data")))
		json_object_set(line, "data", json_object_get(extra, "data"));
	if (json_is_object(json_object_get(extra, "chart")))
		json_object_set(line, "chart", json_object_get(extra, "chart"));
	return line;
}

/* E2B's clients cannot update a display: they show its first state. */
static int is_update(const json_t *event)
{
	return json_is_true(json_object_get(json_object_get(event, "extra"), "update"));
}

/* ---- errors ---- */

static json_t *text_of(const json_t *event, const char *name)
{
	json_t *v = json_object_get(event, name);

	return json_is_string(v) ? json_incref(v) : json_string("");
}

static json_t *error_line(const json_t *event)
{
	return json_pack("{s:s, s:o, s:o, s:o}", "type", "error", "name", text_of(event, "name"),
			 "value", text_of(event, "value"), "traceback", text_of(event, "text"));
}

json_t *exec_events_error(const char *name, const char *value)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "type", "error", "name", name, "value",
			 value ? value : "", "traceback", "");
}

json_t *exec_events_result(const char *text, size_t n)
{
	json_t *event = json_loadb(text, n, JSON_ALLOW_NUL, NULL), *line = NULL;
	const char *type = json_string_value(json_object_get(event, "type"));

	if (type && !strcmp(type, "result") && !is_update(event))
		line = result_line(event);
	else if (type && !strcmp(type, "error"))
		line = error_line(event);
	json_decref(event);
	return line;
}
