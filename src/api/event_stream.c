/* event_stream.c - see event_stream.h. JSON of program output is written without jansson, because
 * it is most of what the server sends. */
#include "api/event_stream.h"
#include "base/base64.h"
#include "base/utf8.h"
#include "record/record.h"

#include <stdio.h>
#include <string.h>

enum event_stream_kind event_stream_wanted(const struct call *c)
{
	const char *accept = http_header(c->req, "accept");

	if (accept && strstr(accept, "text/event-stream"))
		return EVENT_STREAM_SSE;
	if (accept &&
	    (strstr(accept, "application/x-ndjson") || strstr(accept, "application/jsonl")))
		return EVENT_STREAM_NDJSON;
	return EVENT_STREAM_NONE;
}

void event_stream_begin(struct event_stream *f, struct http_req *r, enum event_stream_kind kind)
{
	*f = (struct event_stream){ .req = r, .kind = kind };
	http_set(r, "Cache-Control", "no-store");
	http_set(r, "X-Accel-Buffering", "no");
	http_stream(r, 200,
		    kind == EVENT_STREAM_SSE ? "text/event-stream; charset=utf-8"
					     : "application/x-ndjson; charset=utf-8",
		    UINT64_MAX);
}

static void open_line(const struct event_stream *f, struct buf *line)
{
	if (f->kind == EVENT_STREAM_SSE)
		buf_puts(line, "data: ");
}

static int close_line(struct event_stream *f, struct buf *line)
{
	buf_puts(line, f->kind == EVENT_STREAM_SSE ? "\n\n" : "\n");
	return http_write(f->req, line->p, line->len);
}

int event_stream_event(struct event_stream *f, json_t *take_event)
{
	return event_stream_event_at(f, 0, take_event);
}

int event_stream_event_named(struct event_stream *f, const char *id, json_t *take_event)
{
	char *text = json_dumps(take_event, JSON_COMPACT | RECORD_DIGITS);
	auto_buf struct buf line = { 0 };

	json_decref(take_event);
	if (!text)
		abort();
	if (*id && f->kind == EVENT_STREAM_SSE)
		buf_printf(&line, "id: %s\n", id);
	open_line(f, &line);
	buf_puts(&line, text);
	free(text);
	return close_line(f, &line);
}

int event_stream_event_at(struct event_stream *f, int64_t id, json_t *take_event)
{
	char text[24] = "";

	if (id)
		snprintf(text, sizeof(text), "%lld", (long long)id);
	return event_stream_event_named(f, text, take_event);
}

/* ---- text ---- */

/* The character after the backslash; 0: the byte is not escaped, 'u': it is written as \u and its
 * number. */
static const char escapes[256] = {
	[0 ... 8] = 'u', ['\t'] = 't',      ['\n'] = 'n', [11 ... 12] = 'u',
	['\r'] = 'r',    [14 ... 31] = 'u', ['"'] = '"',  ['\\'] = '\\',
};

void event_stream_quote(struct buf *out, const char *text, size_t n)
{
	/* Bytes that are quoted per reservation of space; longest form of one byte: "\u001f". */
	enum { PIECE = 4096, LONGEST = 6 };
	static const char digits[] = "0123456789abcdef";

	buf_putc(out, '"');
	for (size_t done = 0; done < n;) {
		size_t part = n - done < PIECE ? n - done : PIECE;
		char *from = buf_space(out, part * LONGEST), *p = from;

		for (const char *end = text + done + part, *s = text + done; s < end; s++) {
			char escape = escapes[(unsigned char)*s];

			if (escape)
				*p++ = '\\';
			*p++ = escape ? escape : *s;
			if (escape == 'u') {
				memcpy(p, "00", 2);
				p[2] = digits[*s >> 4];
				p[3] = digits[*s & 15];
				p += 4;
			}
		}
		buf_grew(out, (size_t)(p - from));
		done += part;
	}
	buf_putc(out, '"');
}

static int write_piece(struct event_stream *f, const char *type, uint64_t offset, const char *bytes,
		       size_t n, int text)
{
	auto_buf struct buf line = { 0 };

	open_line(f, &line);
	buf_printf(&line, "{\"type\":\"%s\",\"offset\":%llu,", type, (unsigned long long)offset);
	if (text) {
		buf_puts(&line, "\"data\":");
		event_stream_quote(&line, bytes, n);
	} else {
		buf_puts(&line, "\"base64\":\"");
		base64_encode(&line, bytes, n);
		buf_putc(&line, '"');
	}
	buf_putc(&line, '}');
	return close_line(f, &line);
}

/* Bytes after a gap do not belong to the character before the gap. */
static int flush_one(struct event_stream *f, const char *type, unsigned s)
{
	unsigned n = f->rest[s].n;

	f->rest[s].n = 0;
	return n ? write_piece(f, type, f->rest[s].offset, f->rest[s].bytes, n, 0) : 0;
}

int event_stream_output(struct event_stream *f, const char *type, unsigned s, uint64_t offset,
			const char *bytes, size_t n)
{
	auto_buf struct buf joined = { 0 };
	size_t whole;
	int bad, full = 0;

	if (f->rest[s].n && f->rest[s].offset + f->rest[s].n != offset)
		full |= flush_one(f, type, s);
	if (f->rest[s].n) {
		buf_add(&joined, f->rest[s].bytes, f->rest[s].n);
		buf_add(&joined, bytes, n);
		offset = f->rest[s].offset;
		bytes = joined.p;
		n = joined.len;
		f->rest[s].n = 0;
	}
	whole = utf8_complete(bytes, n, &bad);
	/* Text has no NUL; escaping many of them would make the event six times as long. */
	if (bad || memchr(bytes, 0, n))
		return full | write_piece(f, type, offset, bytes, n, 0);
	if (whole < n) { /* three bytes at most */
		memcpy(f->rest[s].bytes, bytes + whole, n - whole);
		f->rest[s].n = (unsigned)(n - whole);
		f->rest[s].offset = offset + whole;
	}
	return whole ? full | write_piece(f, type, offset, bytes, whole, 1) : full;
}

void event_stream_flush(struct event_stream *f, const char *const types[2])
{
	for (unsigned s = 0; s < 2; s++)
		flush_one(f, types[s], s);
}

void event_stream_end(struct event_stream *f)
{
	http_end(f->req);
}
