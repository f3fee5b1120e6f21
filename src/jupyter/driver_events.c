/* driver_events.c - see driver_events.h. */
#include "jupyter/driver_events.h"
#include "base/cleanup.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- values ---- */

/* The length of a text up to a limit, in complete characters. */
static size_t cut_at(const char *text, size_t n, size_t most)
{
	return n <= most ? n : utf8_cut(text, most);
}

/* A quoted string; a NUL is written as \x00. */
static void put_text(struct buf *out, const char *text, size_t n)
{
	buf_putc(out, '"');
	while (n) {
		size_t some = strnlen(text, n);
		json_t *v = json_stringn(text, some);
		auto_free char *dump =
			v ? json_dumps(v, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;

		json_decref(v);
		if (!dump)
			abort(); /* it was parsed, so it is valid UTF-8 */
		buf_add(out, dump + 1, strlen(dump) - 2);
		if (some < n)
			buf_puts(out, "\\\\x00");
		some += some < n;
		text += some;
		n -= some;
	}
	buf_putc(out, '"');
}

static void put_string(struct buf *out, const json_t *v)
{
	put_text(out, json_string_value(v), json_string_length(v));
}

/* -1: too deep, or too many: `left` counts commas, colons and brackets, as the other side does. */
static int put_value(struct buf *out, const json_t *v, unsigned depth, unsigned *left)
{
	const char *key;
	json_t *x;
	size_t i;

	if (depth > TELL_DEPTH || *left < 3 || out->len > TELL_LINE)
		return -1;
	*left -= 1 + (json_is_array(v) || json_is_object(v));
	if (json_is_string(v)) {
		put_string(out, v);
	} else if (json_is_array(v)) {
		buf_putc(out, '[');
		json_array_foreach((json_t *)v, i, x)
		{
			buf_puts(out, i ? "," : "");
			if (put_value(out, x, depth + 1, left) < 0)
				return -1;
		}
		buf_putc(out, ']');
	} else if (json_is_object(v)) {
		const char *comma = "";

		buf_putc(out, '{');
		json_object_foreach((json_t *)v, key, x)
		{
			buf_puts(out, comma);
			put_text(out, key, strlen(key));
			buf_putc(out, ':');
			comma = ",";
			--*left;
			if (put_value(out, x, depth + 1, left) < 0)
				return -1;
		}
		buf_putc(out, '}');
	} else {
		auto_free char *dump = json_dumps(v, JSON_ENCODE_ANY);

		buf_puts(out, dump ? dump : "null");
	}
	return 0;
}

/* ---- the beginning and the end of a line ---- */

static void event_begin(struct buf *out, const char *ev, const char *cell)
{
	buf_printf(out, "{\"ev\":\"%s\",\"id\":\"%s\"", ev, cell);
}

static void event_end(struct buf *out)
{
	buf_puts(out, "}\n");
}

void driver_event_ready(struct buf *out, const char *language, const char *version)
{
	buf_puts(out, "{\"ev\":\"ready\",\"language\":");
	put_text(out, language, strlen(language));
	buf_puts(out, ",\"version\":");
	put_text(out, version, cut_at(version, strlen(version), 60));
	event_end(out);
}

void driver_event_end(struct buf *out, const char *cell, const char *status, int64_t count)
{
	event_begin(out, "end", cell);
	buf_printf(out, ",\"status\":\"%s\",\"count\":%" PRId64, status, count);
	event_end(out);
}

static const json_t *text_in(const json_t *content, const char *name)
{
	const json_t *v = json_object_get(content, name);

	return json_is_string(v) ? v : NULL;
}

void driver_event_input(struct buf *out, const char *cell, const json_t *content)
{
	const json_t *prompt = text_in(content, "prompt");
	const char *text = prompt ? json_string_value(prompt) : "";

	event_begin(out, "input", cell);
	buf_puts(out, ",\"prompt\":");
	put_text(out, text, cut_at(text, prompt ? json_string_length(prompt) : 0, TELL_TEXT));
	buf_printf(out, ",\"password\":%s",
		   json_is_true(json_object_get(content, "password")) ? "true" : "false");
	event_end(out);
}

/* ---- errors ---- */

/* Without the sequences that colour a terminal. */
static void driver_event_plain(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (text[i] != '\033') {
			buf_putc(out, text[i]);
			continue;
		}
		if (i + 1 >= n || text[i + 1] != '[')
			continue;
		for (i++; i + 1 < n && text[i + 1] >= 0x20 && text[i + 1] < 0x40; i++)
			;
		i += i + 1 < n && text[i + 1] >= 0x40 && text[i + 1] < 0x7f;
	}
}

static void put_plain(struct buf *out, const struct buf *text, size_t most)
{
	put_text(out, buf_str(text), cut_at(buf_str(text), text->len, most));
}

/* name and value are short lines; text is complete. */
static void put_error(struct buf *out, const char *cell, const struct buf *name,
		      const struct buf *value, const struct buf *text)
{
	event_begin(out, "error", cell);
	buf_puts(out, ",\"name\":");
	put_plain(out, name, TELL_NAME);
	buf_puts(out, ",\"value\":");
	put_plain(out, value, TELL_VALUE);
	buf_puts(out, ",\"frames\":[],\"text\":");
	put_plain(out, text, TELL_TEXT);
	event_end(out);
}

static void plain_of(struct buf *out, const json_t *v)
{
	if (v)
		driver_event_plain(out, json_string_value(v), json_string_length(v));
}

void driver_event_error(struct buf *out, const char *cell, const json_t *content)
{
	auto_buf struct buf name = { 0 }, value = { 0 }, text = { 0 };
	const json_t *lines = json_object_get(content, "traceback"), *line;
	size_t i;

	plain_of(&name, text_in(content, "ename"));
	plain_of(&value, text_in(content, "evalue"));
	json_array_foreach((json_t *)lines, i, line)
	{
		if (!json_is_string(line) || text.len > TELL_TEXT)
			continue;
		buf_puts(&text, text.len ? "\n" : "");
		plain_of(&text, line);
	}
	if (!text.len)
		buf_printf(&text, "%s: %s", buf_str(&name), buf_str(&value));
	if (!name.len)
		buf_puts(&name, "Error");
	put_error(out, cell, &name, &value, &text);
}

void driver_event_trouble(struct buf *out, const char *cell, const char *name, const char *value)
{
	auto_buf struct buf is = { 0 }, says = { 0 }, text = { 0 };

	buf_puts(&is, name);
	buf_puts(&says, value);
	buf_printf(&text, "%s: %s", name, value);
	put_error(out, cell, &is, &says, &text);
}

/* ---- results ---- */

static int is_json_kind(const char *kind)
{
	size_t n = strlen(kind);

	return !strcmp(kind, "application/json") || (n > 5 && !strcmp(kind + n - 5, "+json"));
}

/* Images are base64, which some kernels split into lines. */
static int is_base64_kind(const char *kind)
{
	return (!strncmp(kind, "image/", 6) && strcmp(kind, "image/svg+xml") != 0) ||
	       !strcmp(kind, "application/pdf");
}

static void put_base64(struct buf *out, const json_t *v)
{
	auto_buf struct buf whole = { 0 };
	const char *text = json_string_value(v), *event_end = text + json_string_length(v);

	while (text < event_end) {
		size_t n = strcspn(text, " \r\n\t"); /* up to a NUL, if there is one */

		buf_add(&whole, text, n);
		text += n + 1;
	}
	put_text(out, buf_str(&whole), whole.len);
}

/* 1: a part is left out; *skip: all of it. */
static int put_entry(struct buf *out, const char *kind, const json_t *v, unsigned *left, int *skip)
{
	size_t n = json_string_length(v);

	*skip = 0;
	if (json_is_string(v) && n <= TELL_LINE) {
		size_t whole = n;

		if (!strcmp(kind, "text/plain"))
			n = cut_at(json_string_value(v), n, TELL_TEXT);
		if (is_base64_kind(kind))
			put_base64(out, v);
		else
			put_text(out, json_string_value(v), n);
		return n < whole;
	}
	*skip = !is_json_kind(kind) || json_is_string(v) || put_value(out, v, 0, left) < 0;
	return *skip;
}

/* The names of a list, in quotes. */
static void note_cut(struct buf *cut, const char *kind)
{
	buf_puts(cut, cut->len ? "," : "");
	put_text(cut, kind, strlen(kind));
}

static unsigned put_data(struct buf *out, const json_t *data, struct buf *cut)
{
	unsigned left = TELL_MARKS, n = 0, seen = 0;
	const char *kind;
	json_t *v;

	json_object_foreach((json_t *)data, kind, v)
	{
		auto_buf struct buf entry = { 0 };
		int skip, missing;

		if (strlen(kind) > 128 || seen++ == TELL_KINDS)
			break;
		buf_puts(&entry, n ? "," : "");
		put_text(&entry, kind, strlen(kind));
		buf_putc(&entry, ':');
		missing = put_entry(&entry, kind, v, &left, &skip);
		if (missing || out->len + entry.len > TELL_LINE)
			note_cut(cut, kind);
		if (skip || out->len + entry.len > TELL_LINE)
			continue;
		buf_add(out, entry.p, entry.len);
		n++;
	}
	return n;
}

static void put_extra(struct buf *out, const json_t *content, int is_update)
{
	const json_t *id = text_in(json_object_get(content, "transient"), "display_id");

	buf_puts(out, ",\"extra\":{");
	if (id && json_string_length(id) <= 1024) {
		buf_puts(out, "\"display_id\":");
		put_string(out, id);
		buf_printf(out, ",\"update\":%s", is_update ? "true" : "false");
	}
	buf_putc(out, '}');
}

int driver_event_result(struct buf *out, const char *cell, int is_main, int is_update,
			const json_t *content)
{
	auto_buf struct buf line = { 0 }, cut = { 0 };
	unsigned n;

	event_begin(&line, "result", cell);
	buf_printf(&line, ",\"main\":%s,\"data\":{", is_main ? "true" : "false");
	n = put_data(&line, json_object_get(content, "data"), &cut);
	buf_putc(&line, '}');
	if (!n && !cut.len)
		return -1;
	put_extra(&line, content, is_update);
	if (cut.len)
		buf_printf(&line, ",\"truncated\":[%s]", buf_str(&cut));
	event_end(&line);
	buf_add(out, line.p, line.len);
	return 0;
}
