/* answer_fuzz.c - the HTTP answer of a server, in any pieces. The first byte selects whether the
 * request was HEAD and the size of the pieces. A parsed answer can be written as an answer again, and
 * its body has the announced length. */
#include "fuzz.h"
#include "http/response.h"

#include <assert.h>
#include <string.h>

struct seen {
	unsigned heads;
	uint64_t length, got;
};

static int head(void *user, const struct http_answer *a)
{
	struct seen *s = user;

	assert(++s->heads == 1);
	assert(a->status == 101 || (a->status >= 200 && a->status <= 999));
	for (unsigned i = 0; i < a->nheaders; i++) {
		const char *name = a->headers[i].name;

		assert(name[0] && !name[strcspn(name, ": \t\r\n")]);
		assert(!strpbrk(a->headers[i].value, "\r\n"));
	}
	s->length = a->length;
	return 0;
}

static int body(void *user, const char *bytes, size_t n)
{
	struct seen *s = user;

	(void)bytes;
	assert(s->heads == 1);
	s->got += n;
	assert(s->length == UINT64_MAX || s->got <= s->length);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct http_answer out;
	struct seen s = { 0 };
	struct response a;
	size_t piece, at = 1;
	ssize_t used = 0;

	if (size < 1)
		return 0;
	response_init(&a, &out);
	a.head_only = data[0] & 1;
	a.on_head = head;
	a.on_body = body;
	a.user = &s;
	piece = (data[0] >> 1) + 1;
	for (; at < size && used >= 0 && !a.done; at += (size_t)used) {
		size_t n = size - at < piece ? size - at : piece;

		used = response_feed(&a, (const char *)data + at, n);
		assert(used < 0 ? a.why != NULL : (size_t)used <= n);
		assert(used == (ssize_t)n || used < 0 || a.done);
	}
	if (used >= 0 && !a.done && response_end(&a) == 0)
		assert(s.heads == 1);
	if (a.done && s.length != UINT64_MAX && !a.head_only && out.status != 204 &&
	    out.status != 304 && out.status != 101)
		assert(s.got == s.length);
	response_fini(&a);
	http_answer_fini(&out);
	return 0;
}
