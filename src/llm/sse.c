/* sse.c - see sse.h. */
#include "llm/sse.h"

#include <stdio.h>
#include <string.h>

static int sse_dispatch(struct sse *s, struct err *e)
{
	int rc = 0;

	if (s->has_data) {
		/* Each line of data is followed by LF, except the last one. */
		buf_cut(&s->data, s->data.len - 1);
		rc = s->event(s->ctx, s->name, buf_str(&s->data), s->data.len, e);
	}
	buf_cut(&s->data, 0);
	s->has_data = 0;
	s->name[0] = 0;
	return rc;
}

static void sse_field(struct sse *s, const char *line, size_t n)
{
	const char *colon = memchr(line, ':', n);
	size_t name = colon ? (size_t)(colon - line) : n;
	const char *value = colon ? colon + 1 : line + n;

	if (value < line + n && *value == ' ')
		value++;
	n -= (size_t)(value - line);
	if (name == 5 && memcmp(line, "event", 5) == 0) {
		snprintf(s->name, sizeof(s->name), "%.*s", (int)(n < SSE_NAME ? n : SSE_NAME - 1),
			 value);
	} else if (name == 4 && memcmp(line, "data", 4) == 0) {
		buf_add(&s->data, value, n);
		buf_putc(&s->data, '\n');
		s->has_data = 1;
	} /* id, retry, comments, unknown fields */
}

static int end_line(struct sse *s, struct err *e)
{
	size_t most = s->most ? s->most : SSE_MOST;
	int rc = 0;

	if (s->lines && s->line.len)
		rc = s->event(s->ctx, "", buf_str(&s->line), s->line.len, e);
	else if (!s->lines && !s->line.len)
		rc = sse_dispatch(s, e);
	else if (s->data.len + s->line.len > most)
		return err_set(e, ERR_LIMIT, "an event of more than %zu bytes", most);
	else
		sse_field(s, buf_str(&s->line), s->line.len);
	buf_cut(&s->line, 0);
	return rc;
}

static int sse_add(struct sse *s, const char *bytes, size_t n, struct err *e)
{
	size_t most = s->most ? s->most : SSE_MOST;

	/* A byte order mark before the first line is skipped and not counted. */
	if (s->line.len + n > most + (s->begun ? 0 : 3))
		return err_set(e, ERR_LIMIT, "a line of more than %zu bytes", most);
	buf_add(&s->line, bytes, n);
	if (!s->begun && s->line.len >= 3) {
		s->begun = 1;
		if (memcmp(s->line.p, "\xef\xbb\xbf", 3) == 0) {
			memmove(s->line.p, s->line.p + 3, s->line.len - 3);
			buf_cut(&s->line, s->line.len - 3);
		}
	}
	if (s->line.len > most)
		return err_set(e, ERR_LIMIT, "a line of more than %zu bytes", most);
	return 0;
}

int sse_feed(struct sse *s, const char *bytes, size_t n, struct err *e)
{
	const char *at = bytes, *end = bytes + n;

	while (at < end) {
		const char *stop = at;

		if (s->after_cr && *at == '\n') {
			s->after_cr = 0;
			at++;
			continue;
		}
		s->after_cr = 0;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		if (stop > at && sse_add(s, at, (size_t)(stop - at), e) < 0)
			return -1;
		if (stop == end)
			return 0;
		s->after_cr = *stop == '\r';
		s->begun = 1;
		if (end_line(s, e) < 0)
			return -1;
		at = stop + 1;
	}
	return 0;
}

int sse_end(struct sse *s, struct err *e)
{
	return s->lines && s->line.len ? end_line(s, e) : 0;
}

void sse_fini(struct sse *s)
{
	buf_fini(&s->line);
	buf_fini(&s->data);
}
