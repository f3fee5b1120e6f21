/* response.c - see response.h. A server is not trusted either: its head has limits, too. */
#include "http/response.h"
#include "base/cleanup.h"

#include <string.h>
#include <strings.h>

enum { HEAD_MAX = 64 << 10, RESPONSE_INTERIM = 32 };
#define TOKEN "abcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~" /* in lower case */

static struct response *response_of(llhttp_t *p)
{
	return p->data;
}

static int response_add(struct response *a, const char *at, size_t n)
{
	if (a->text.len + n > HEAD_MAX) {
		a->why = "its head is too long";
		return HPE_USER;
	}
	buf_add(&a->text, at, n);
	return 0;
}

static int saw_name(llhttp_t *p, const char *at, size_t n)
{
	struct response *a = response_of(p);

	return a->head_done ? 0 : response_add(a, at, n);
}

/* The text so far is the name; the value begins after its NUL. */
static int saw_name_end(llhttp_t *p)
{
	struct response *a = response_of(p);
	unsigned i = a->out->nheaders;

	if (a->head_done)
		return 0;
	if (i == ARRAY_LEN(a->at)) {
		a->why = "it has too many headers";
		return HPE_USER;
	}
	a->at[i].name = a->begin;
	buf_putc(&a->text, 0);
	a->at[i].value = (uint32_t)a->text.len;
	return 0;
}

static int saw_value_end(llhttp_t *p)
{
	struct response *a = response_of(p);
	unsigned i = a->out->nheaders;

	if (a->head_done)
		return 0;
	while (a->text.len > a->at[i].value && strchr(" \t", a->text.p[a->text.len - 1]))
		buf_cut(&a->text, a->text.len - 1);
	buf_putc(&a->text, 0);
	a->begin = (uint32_t)a->text.len;
	a->out->nheaders = i + 1;
	return 0;
}

/* The length of the body must be unambiguous for every reader. llhttp accepts some answers that
 * have two lengths. */
static const char *response_framing(const struct response *a, const llhttp_t *p)
{
	unsigned lengths = 0, encodings = 0;

	for (unsigned i = 0; i < a->out->nheaders; i++) {
		const struct http_header *h = &a->headers[i];

		if (!h->name[0] || h->name[strspn(h->name, TOKEN)])
			return "a header has no name";
		lengths += strcmp(h->name, "content-length") == 0;
		if (strcmp(h->name, "transfer-encoding") != 0)
			continue;
		encodings++;
		if (strcasecmp(h->value, "chunked") != 0)
			return "its Transfer-Encoding is not known here";
	}
	if (lengths + encodings > 1)
		return "it says its length twice";
	if (encodings && p->http_minor == 0)
		return "it has chunks in HTTP/1.0";
	return NULL;
}

static int saw_head_end(llhttp_t *p)
{
	struct response *a = response_of(p);
	struct http_answer *out = a->out;

	out->status = p->status_code;
	if (p->status_code < 100) {
		a->why = "its status is none";
		return -1;
	}
	if (p->status_code < 200 && p->status_code != 101 && ++a->interim > RESPONSE_INTERIM) {
		a->why = "it sends interim answers without end";
		return -1;
	}
	if (p->status_code < 200 && p->status_code != 101)
		return 1; /* an interim answer: saw_end() drops it. It has no body, even if its headers announce one */
	a->head_done = 1;
	a->keep_alive = llhttp_should_keep_alive(p);
	for (unsigned i = 0; i < out->nheaders; i++) {
		char *name = a->text.p + a->at[i].name;

		for (char *q = name; *q; q++)
			if (*q >= 'A' && *q <= 'Z')
				*q |= 0x20;
		a->headers[i] = (struct http_header){ name, a->text.p + a->at[i].value };
	}
	out->headers = a->headers;
	a->why = response_framing(a, p);
	if (a->why)
		return -1;
	out->length = p->flags & F_CONTENT_LENGTH ? p->content_length : UINT64_MAX;
	if (a->on_head && a->on_head(a->user, out)) {
		a->ended = 1;
		return -1;
	}
	/* These have no body, even if they announce a length; llhttp would wait for it. */
	return a->head_only || out->status == 204 || out->status == 304 ? 1 : 0;
}

static int saw_body(llhttp_t *p, const char *at, size_t n)
{
	struct response *a = response_of(p);

	if (a->on_body) {
		a->ended = a->on_body(a->user, at, n) != 0;
		return a->ended ? HPE_USER : 0;
	}
	if (a->out->body.len + n > a->body_max) {
		a->why = "its body is too long";
		return HPE_USER;
	}
	buf_add(&a->out->body, at, n);
	return 0;
}

static int saw_end(llhttp_t *p)
{
	struct response *a = response_of(p);

	a->done = a->head_done;
	if (!a->done) {
		a->out->nheaders = a->begin = 0;
		buf_cut(&a->text, 0);
	}
	return a->done ? HPE_PAUSED : 0;
}

static const llhttp_settings_t settings = {
	.on_header_field = saw_name,
	.on_header_field_complete = saw_name_end,
	.on_header_value = saw_name,
	.on_header_value_complete = saw_value_end,
	.on_headers_complete = saw_head_end,
	.on_body = saw_body,
	.on_message_complete = saw_end,
};

void response_init(struct response *a, struct http_answer *out)
{
	memset(out, 0, sizeof(*out));
	memset(a, 0, sizeof(*a));
	a->out = out;
	a->body_max = UINT32_MAX;
	llhttp_init(&a->parser, HTTP_RESPONSE, &settings);
	a->parser.data = a;
}

void response_fini(struct response *a)
{
	buf_fini(&a->text);
}

ssize_t response_feed(struct response *a, const char *bytes, size_t n)
{
	llhttp_errno_t err = llhttp_execute(&a->parser, bytes, n);

	if (err == HPE_OK)
		return (ssize_t)n;
	if (a->done || err == HPE_PAUSED_UPGRADE) {
		a->done = 1;
		return llhttp_get_error_pos(&a->parser) - bytes;
	}
	if (!a->why)
		a->why = llhttp_get_error_reason(&a->parser);
	return -1;
}

int response_end(struct response *a)
{
	if (!a->head_done || llhttp_finish(&a->parser) != HPE_OK) {
		/* llhttp calls saw_end(), which pauses it */
		if (a->done)
			return 0;
		a->why = a->head_done ? "it closed the connection in the middle of the answer"
				      : "it closed the connection without an answer";
		return -1;
	}
	return 0;
}
