/* multipart.h - a form that is sent as a stream of parts (RFC 7578), parsed as it arrives.
 * Owns: the head of the part that is being read, MULTIPART_HEAD bytes at most. Content is never
 *       stored: the caller gets views of the input.
 *
 * 	while ((what = multipart_next(&m, &in, &bytes, &e)) != MULTIPART_MORE)
 * 		... */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include <stddef.h>

enum { MULTIPART_HEAD = 16384, MULTIPART_BOUNDARY = 70 /* RFC 2046 */ };

struct multipart_view {
	const char *p;
	size_t n;
};

enum multipart_event {
	MULTIPART_MORE, /* all of it was taken */
	MULTIPART_PART, /* a part starts: multipart_name(), multipart_filename() */
	MULTIPART_DATA, /* a piece of its content; valid until the next call */
	MULTIPART_PART_END,
	MULTIPART_BAD, /* e says why */
};

struct multipart {
	char delimiter[4 + MULTIPART_BOUNDARY + 1]; /* CR LF - - boundary */
	size_t length, matched;
	size_t lent; /* of those matched, bytes that were part of the line end before */
	int state;
	struct buf head;
	char tail[4]; /* bytes after a delimiter, so far */
	size_t ntail;
	char *name, *filename;
};

/* content_type: the header's value, "multipart/form-data; boundary=...". */
must_check int multipart_init(struct multipart *m, const char *content_type, struct err *e);
void multipart_fini(struct multipart *m); /* fine on a zeroed one */
enum multipart_event multipart_next(struct multipart *m, struct multipart_view *in,
				    struct multipart_view *out, struct err *e);
int multipart_ended(const struct multipart *m); /* the last delimiter was seen */
/* Of the part that started last; NULL: it has none. */
const char *multipart_name(const struct multipart *m);
const char *multipart_filename(const struct multipart *m);
