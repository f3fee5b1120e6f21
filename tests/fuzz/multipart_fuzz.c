/* multipart_fuzz.c - a content type, a line break, a form. The parts are the same for pieces of any
 * size. Content is only inside of a part and never contains the delimiter; a head has a limited length. */
#include "fuzz.h"
#include "http/multipart.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct form_result {
	struct buf text; /* "[name|filename]content;" for each part */
	size_t content;  /* start of the content of the open part in text; 0: no part is open */
	int bad, ended;
};

static int form_fits(const struct multipart *m, const char *p, size_t n)
{
	return n < m->length - 2 || memcmp(p, m->delimiter + 2, m->length - 2) != 0;
}

static void form_check_content(const struct multipart *m, const char *p, size_t n)
{
	assert(form_fits(m, p, n)); /* the line end before it was the head's */
	for (size_t i = 0; i + 1 < n; i++)
		assert(p[i] != '\r' || p[i + 1] != '\n' || form_fits(m, p + i + 2, n - i - 2));
}

static void form_note(struct form_result *r, const struct multipart *m, enum multipart_event what,
		      struct multipart_view bytes)
{
	const char *name = multipart_name(m), *filename = multipart_filename(m);

	assert(m->head.len <= MULTIPART_HEAD);
	switch (what) {
	case MULTIPART_PART:
		assert(!r->content);
		buf_printf(&r->text, "[%s|%s]", name ? name : "-", filename ? filename : "-");
		r->content = r->text.len;
		break;
	case MULTIPART_DATA:
		assert(r->content && bytes.n);
		buf_add(&r->text, bytes.p, bytes.n);
		break;
	case MULTIPART_PART_END:
		assert(r->content);
		form_check_content(m, r->text.p + r->content, r->text.len - r->content);
		buf_putc(&r->text, ';');
		r->content = 0;
		break;
	default:
		break;
	}
}

static struct form_result form_read(const char *type, const char *form, size_t n, size_t piece)
{
	struct form_result r = { 0 };
	struct multipart m;
	struct err e;

	if (multipart_init(&m, type, &e) < 0) {
		assert(e.kind == ERR_INVALID && e.msg[0]);
		r.bad = 1;
		return r;
	}
	for (size_t at = 0; at < n && !r.bad; at += piece) {
		size_t len = n - at < piece ? n - at : piece;
		char *copy = malloc(
			len); /* exact size: the sanitizer then reports a read after the end */
		struct multipart_view in = { copy, len }, bytes = { 0 };
		enum multipart_event what;

		if (!copy)
			abort();
		memcpy(copy, form + at, len);
		while (!r.bad && (what = multipart_next(&m, &in, &bytes, &e)) != MULTIPART_MORE) {
			r.bad = what == MULTIPART_BAD;
			assert(!r.bad || (e.kind == ERR_INVALID && e.msg[0]));
			form_note(&r, &m, what, bytes);
		}
		assert(r.bad || in.n == 0);
		free(copy);
	}
	r.ended = multipart_ended(&m);
	assert(!r.ended || !r.content);
	multipart_fini(&m);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const size_t pieces[] = { 1, 3, 17 };
	const uint8_t *line = memchr(bytes, '\n', len);
	struct form_result whole;
	char type[300];
	size_t n;

	if (!line || (size_t)(line - bytes) >= sizeof(type))
		return 0;
	memcpy(type, bytes, (size_t)(line - bytes));
	type[line - bytes] = 0;
	n = len - (size_t)(line + 1 - bytes);
	whole = form_read(type, (const char *)line + 1, n, n ? n : 1);
	for (unsigned i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		struct form_result r = form_read(type, (const char *)line + 1, n, pieces[i]);

		assert(r.bad == whole.bad && r.ended == whole.ended);
		assert(r.text.len == whole.text.len);
		assert(!r.text.len || !memcmp(r.text.p, whole.text.p, r.text.len));
		buf_fini(&r.text);
	}
	buf_fini(&whole.text);
	return 0;
}
