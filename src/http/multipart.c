/* multipart.c - see multipart.h.
 *
 *   PREAMBLE --delimiter--> BEHIND --CRLF--> HEAD --empty line--> CONTENT --delimiter--> BEHIND
 *                             '-- "--" --> EPILOGUE
 *
 * The delimiter begins with CR and has no other CR. So bytes that only looked like its beginning
 * are content, and the search continues with the first byte that did not match. */
#include "http/multipart.h"
#include "base/cleanup.h"
#include "base/hex.h"

#include <string.h>
#include <strings.h>

enum { PREAMBLE, BEHIND, HEAD, CONTENT, EPILOGUE };

/* ---- parameters of a header ---- */

static const char *skip_space(const char *s)
{
	return s + strspn(s, " \t");
}

/* Reads a token or a quoted string at *at and moves *at past it. */
static void take_value(const char **at, struct buf *out)
{
	const char *p = *at;

	if (*p != '"') {
		size_t n = strcspn(p, "; \t");

		buf_add(out, p, n);
		*at = p + n;
		return;
	}
	for (p++; *p && *p != '"'; p++) {
		/* Only \" and \\ are treated as escapes: some clients send "C:\new" unescaped. */
		if (*p == '\\' && (p[1] == '"' || p[1] == '\\'))
			p++;
		buf_putc(out, *p);
	}
	*at = *p ? p + 1 : p;
}

/* The value of a parameter of a header ("form-data; name=\"x\""), to be freed; NULL: not there. */
static char *multipart_parameter(const char *header, const char *name)
{
	const char *at = strchr(header, ';');
	size_t n = strlen(name);

	while (at) {
		auto_buf struct buf value = { 0 };
		const char *key = skip_space(at + 1), *end = key + strcspn(key, "=; \t");

		at = skip_space(end);
		if (*at == '=') {
			at = skip_space(at + 1);
			take_value(&at, &value);
			if ((size_t)(end - key) == n && !strncasecmp(key, name, n)) {
				buf_puts(&value, "");
				return value.p ? buf_steal(&value) : strdup("");
			}
		}
		at = strchr(at, ';');
	}
	return NULL;
}

/* RFC 8187: UTF-8''a%20b */
static char *multipart_extended(char *take_value)
{
	const char *p = take_value && !strncasecmp(take_value, "utf-8'", 6)
				? strchr(take_value + 6, '\'')
				: NULL;
	auto_buf struct buf out = { 0 };
	auto_free char *value = take_value;

	if (!p)
		return NULL;
	for (p++; *p; p++) {
		int high = *p == '%' ? hex_digit(p[1]) : -1, low = high >= 0 ? hex_digit(p[2]) : -1;

		buf_putc(&out, low >= 0 ? (char)(high << 4 | low) : *p);
		p += low >= 0 ? 2 : 0;
	}
	(void)value;
	return out.p && !memchr(out.p, 0, out.len) ? buf_steal(&out) : NULL;
}

/* ---- the form ---- */

int multipart_init(struct multipart *m, const char *content_type, struct err *e)
{
	auto_free char *boundary = multipart_parameter(content_type, "boundary");
	size_t n = boundary ? strlen(boundary) : 0;

	*m = (struct multipart){ .state = PREAMBLE,
				 .matched = 2,
				 .lent = 2 }; /* as if a line had ended just before */
	if (n == 0)
		return err_set(e, ERR_INVALID, "the content type has no boundary");
	if (n > MULTIPART_BOUNDARY)
		return err_set(e, ERR_INVALID, "the boundary is longer than %d bytes",
			       MULTIPART_BOUNDARY);
	if (strpbrk(boundary, "\r\n"))
		return err_set(e, ERR_INVALID, "the boundary has a line end in it");
	memcpy(m->delimiter, "\r\n--", 4);
	memcpy(m->delimiter + 4, boundary, n + 1);
	m->length = 4 + n;
	return 0;
}

static void forget_part(struct multipart *m)
{
	free(m->name);
	free(m->filename);
	m->name = m->filename = NULL;
	buf_cut(&m->head, 0);
}

void multipart_fini(struct multipart *m)
{
	forget_part(m);
	buf_fini(&m->head);
}

int multipart_ended(const struct multipart *m)
{
	return m->state == EPILOGUE;
}

const char *multipart_name(const struct multipart *m)
{
	return m->name;
}

const char *multipart_filename(const struct multipart *m)
{
	return m->filename;
}

static void multipart_take(struct multipart_view *in, size_t n)
{
	in->p += n;
	in->n -= n;
}

/* Content up to a possible delimiter. 1: out has some. m->matched == m->length afterwards: the
 * delimiter is complete. */
static int multipart_scan(struct multipart *m, struct multipart_view *in,
			  struct multipart_view *out)
{
	if (m->matched == 0) {
		const char *cr = memchr(in->p, '\r', in->n);
		size_t n = cr ? (size_t)(cr - in->p) : in->n;

		if (n) {
			*out = (struct multipart_view){ in->p, n };
			multipart_take(in, n);
			return 1;
		}
	}
	while (in->n && m->matched < m->length && *in->p == m->delimiter[m->matched]) {
		m->matched++;
		multipart_take(in, 1);
	}
	if (in->n == 0 || m->matched == m->length)
		return 0;
	*out = (struct multipart_view){ m->delimiter + m->lent, m->matched - m->lent };
	m->matched = m->lent = 0;
	return out->n > 0;
}

/* The rest of the line after a delimiter: "--", or spaces and the line's end. */
static int multipart_behind(struct multipart *m, struct multipart_view *in, struct err *e)
{
	while (in->n) {
		char c = *in->p;

		multipart_take(in, 1);
		if (m->ntail == 0 && (c == ' ' || c == '\t'))
			continue;
		m->tail[m->ntail++] = c;
		if (m->ntail == 1 && (c == '-' || c == '\r'))
			continue;
		if (m->ntail == 2 && m->tail[0] == '-' && c == '-') {
			m->state = EPILOGUE;
			return 0;
		}
		if (m->ntail == 2 && m->tail[0] == '\r' && c == '\n') {
			m->state = HEAD;
			return 0;
		}
		return err_set(e, ERR_INVALID, "the form's boundary is followed by something else");
	}
	return 0;
}

static void read_disposition(struct multipart *m, const char *value)
{
	free(m->name);
	free(m->filename);
	m->name = multipart_parameter(value, "name");
	m->filename = multipart_parameter(value, "filename");
	if (!m->filename)
		m->filename = multipart_extended(multipart_parameter(value, "filename*"));
}

static void read_head(struct multipart *m)
{
	static const char key[] = "content-disposition:";
	char *line = m->head.p, *end;

	for (; (end = strstr(line, "\r\n")); line = end + 2) {
		*end = 0;
		if (!strncasecmp(line, key, strlen(key)))
			read_disposition(m, line + strlen(key));
	}
}

static int is_head_whole(const struct buf *h)
{
	return (h->len == 2 && !memcmp(h->p, "\r\n", 2)) ||
	       (h->len >= 4 && !memcmp(h->p + h->len - 4, "\r\n\r\n", 4));
}

/* 1: it is whole. */
static int gather_head(struct multipart *m, struct multipart_view *in, struct err *e)
{
	while (in->n) {
		char c = *in->p;

		multipart_take(in, 1);
		if (!c)
			return err_set(e, ERR_INVALID, "the head of a part has a NUL in it");
		if (m->head.len >= MULTIPART_HEAD)
			return err_set(e, ERR_INVALID, "the head of a part is longer than %d bytes",
				       MULTIPART_HEAD);
		buf_putc(&m->head, c);
		if (c == '\n' && is_head_whole(&m->head)) {
			read_head(m);
			return 1;
		}
	}
	return 0;
}

static void begin_content(struct multipart *m)
{
	m->state = CONTENT;
	m->matched = m->lent =
		2; /* an empty part: the delimiter may follow at once, because the CR LF belongs to the head */
}

enum multipart_event multipart_next(struct multipart *m, struct multipart_view *in,
				    struct multipart_view *out, struct err *e)
{
	while (in->n) {
		int was = m->state, rc;

		switch (was) {
		case PREAMBLE:
		case CONTENT:
			rc = multipart_scan(m, in, out);
			if (rc && was == CONTENT)
				return MULTIPART_DATA;
			if (m->matched < m->length)
				break;
			m->matched = m->lent = m->ntail = 0;
			m->state = BEHIND;
			forget_part(m);
			if (was == CONTENT)
				return MULTIPART_PART_END;
			break;
		case BEHIND:
			if (multipart_behind(m, in, e) < 0)
				return MULTIPART_BAD;
			break;
		case HEAD:
			rc = gather_head(m, in, e);
			if (rc < 0)
				return MULTIPART_BAD;
			if (rc) {
				begin_content(m);
				return MULTIPART_PART;
			}
			break;
		default: /* bytes after the form are ignored */
			multipart_take(in, in->n);
		}
	}
	return MULTIPART_MORE;
}
