/* http_message.c - see http_message.h. */
#include "egress/http_message.h"
#include "base/cleanup.h"

#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Hop-by-hop headers, and headers that are set here. */
static const char *const hops[] = {
	"connection",
	"proxy-connection",
	"keep-alive",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	"proxy-authenticate",
	"proxy-authorization",
	"http2-settings",
	"content-length",
	"host",
	"expect",
};

/* ---- callbacks of llhttp: the head is contiguous in memory, so spans are pointers ---- */

static struct message *message_of(llhttp_t *p)
{
	return p->data;
}

static int saw_target(llhttp_t *p, const char *at, size_t n)
{
	struct message *m = message_of(p);

	m->target = at;
	m->length = n; /* until the head is done */
	return 0;
}

static int saw_name(llhttp_t *p, const char *at, size_t n)
{
	struct message *m = message_of(p);

	if (m->head_done) /* a trailer: dropped */
		return 0;
	if (m->nheaders == MESSAGE_HEADERS)
		return HPE_USER;
	if (!m->headers[m->nheaders].name)
		m->headers[m->nheaders].name = at;
	m->spans[m->nheaders * 2] = at + n;
	return 0;
}

static int saw_value(llhttp_t *p, const char *at, size_t n)
{
	struct message *m = message_of(p);

	if (m->head_done)
		return 0;
	if (m->nheaders == MESSAGE_HEADERS || !m->headers[m->nheaders].name) {
		/* The rest of the previous header. */
		if (m->nheaders == 0)
			return HPE_USER;
		m->spans[m->nheaders * 2 - 1] = at + n;
		return 0;
	}
	if (n == 0) /* llhttp has advanced to the next line; only this one may be cut */
		at = m->spans[m->nheaders * 2] + 1;
	m->headers[m->nheaders].value = at;
	m->spans[m->nheaders++ * 2 + 1] = at + n;
	return 0;
}

static int saw_head_end(llhttp_t *p)
{
	struct message *m = message_of(p);

	m->head_done = 1;
	m->http10 = p->http_minor == 0;
	if (p->method != HTTP_CONNECT || p->type == HTTP_RESPONSE)
		p->upgrade = 0;
	return m->no_body;
}

static int saw_body(llhttp_t *p, const char *at, size_t n)
{
	struct message *m = message_of(p);

	if (!m->out || n == 0)
		return 0;
	if (m->chunk_out)
		evbuffer_add_printf(m->out, "%zx\r\n", n);
	evbuffer_add(m->out, at, n);
	if (m->chunk_out)
		evbuffer_add(m->out, "\r\n", 2);
	return 0;
}

static int saw_end(llhttp_t *p)
{
	message_of(p)->done = 1;
	return HPE_PAUSED; /* the rest does not belong to this message */
}

static const llhttp_settings_t settings = {
	.on_url = saw_target,
	.on_header_field = saw_name,
	.on_header_value = saw_value,
	.on_headers_complete = saw_head_end,
	.on_body = saw_body,
	.on_message_complete = saw_end,
};

/* ---- the head ---- */

size_t message_head_end(const char *bytes, size_t n)
{
	const char *end = memmem(bytes, n, "\r\n\r\n", 4);

	return end ? (size_t)(end + 4 - bytes) : 0;
}

/* Lines end in CRLF, are not folded, and contain no NUL. */
static int lines_are_plain(const char *head, size_t len)
{
	const char *end = head + len;

	if (memchr(head, 0, len))
		return 0;
	for (const char *p = head; p < end; p++) {
		if (*p == '\r' && (p + 1 == end || p[1] != '\n'))
			return 0;
		if (*p == '\n' && (p == head || p[-1] != '\r'))
			return 0;
		if (*p == '\n' && p + 1 < end && (p[1] == ' ' || p[1] == '\t'))
			return 0;
	}
	return 1;
}

static const char *message_cut(const char *from, const char *end)
{
	while (end > from && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	while (from < end && (*from == ' ' || *from == '\t'))
		from++;
	*(char *)end = 0; /* our own copy */
	return from;
}

static void cut_headers(struct message *m)
{
	for (unsigned i = 0; i < m->nheaders; i++) {
		struct message_header *h = &m->headers[i];

		for (char *p = (char *)h->name; p < m->spans[i * 2]; p++)
			if (*p >= 'A' && *p <= 'Z')
				*p |= 0x20;
		h->name = message_cut(h->name, m->spans[i * 2]);
		h->value = message_cut(h->value, m->spans[i * 2 + 1]);
	}
}

static const char *message_find(const struct message *m, const char *name, unsigned *count)
{
	const char *value = NULL;

	*count = 0;
	for (unsigned i = 0; i < m->nheaders; i++)
		if (strcmp(m->headers[i].name, name) == 0 && (*count)++ == 0)
			value = m->headers[i].value;
	return value;
}

static int names_it(const char *list, const char *name)
{
	size_t n = strlen(name);

	while (*list) {
		list += strspn(list, ", \t");
		if (strncasecmp(list, name, n) == 0 && (!list[n] || strchr(", \t", list[n])))
			return 1;
		list += strcspn(list, ",");
	}
	return 0;
}

static int is_hop(const struct message *m, const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(hops); i++)
		if (strcmp(hops[i], name) == 0)
			return 1;
	for (unsigned i = 0; i < m->nheaders; i++)
		if (strcmp(m->headers[i].name, "connection") == 0 &&
		    names_it(m->headers[i].value, name))
			return 1;
	return 0;
}

/* NULL, or the error in the framing of its body. */
static const char *take_framing(struct message *m)
{
	unsigned lengths, encodings;
	const char *encoding = message_find(m, "transfer-encoding", &encodings);

	message_find(m, "content-length", &lengths);
	if (encodings > 1 || (encodings && (lengths || m->http10)))
		return "Transfer-Encoding is not acceptable here";
	if (encodings && strcasecmp(encoding, "chunked") != 0)
		return "the only Transfer-Encoding known here is chunked";
	if (lengths > 1)
		return "more than one Content-Length";
	m->length = lengths ? m->parser.content_length : 0;
	if (encodings)
		m->framing = MESSAGE_CHUNKED;
	else if (lengths)
		m->framing = MESSAGE_LENGTH;
	else
		m->framing = m->parser.type == HTTP_RESPONSE && !m->done ? MESSAGE_TO_THE_END
									 : MESSAGE_EMPTY;
	return NULL;
}

static const char *read_head(struct message *m, llhttp_type_t type, const char *head, size_t n)
{
	llhttp_errno_t err;

	if (!lines_are_plain(head, n))
		return "every line of a head ends in CRLF, and none is folded";
	m->head = malloc(n + 1);
	if (!m->head)
		abort();
	memcpy(m->head, head, n);
	m->head[n] = 0;
	m->head_len = n;
	llhttp_init(&m->parser, type, &settings);
	m->parser.data = m;
	err = llhttp_execute(&m->parser, m->head, n);
	if (err == HPE_USER)
		return "too many headers";
	if (err == HPE_PAUSED)
		llhttp_resume(&m->parser);
	else if (err != HPE_OK && err != HPE_PAUSED_UPGRADE)
		return "it cannot be parsed";
	if (!m->head_done || m->parser.http_major != 1 || m->parser.http_minor > 1)
		return "only HTTP/1.1 and HTTP/1.0 are spoken here";
	for (unsigned i = 0; i < m->nheaders; i++)
		if (m->headers[i].name == m->spans[i * 2])
			return "a header has no name";
	return NULL;
}

static void mark_hops(struct message *m)
{
	for (unsigned i = 0; i < m->nheaders; i++)
		m->headers[i].drop = is_hop(m, m->headers[i].name);
}

/* "GET http://host/path HTTP/1.1": one space each, plain bytes. */
static int request_line_is_plain(const struct message *m, size_t target_len)
{
	size_t n = strlen(m->method);
	const char *end = m->target + target_len;

	if (strncmp(m->head, m->method, n) != 0 || m->head[n] != ' ' ||
	    m->target != m->head + n + 1)
		return 0;
	for (const char *p = m->target; p < end; p++)
		if (*p <= ' ' || *p > '~' || *p == '#')
			return 0;
	return strncmp(end, " HTTP/1.", 8) == 0;
}

/* The target of the request. */
static const char *take_target(struct message *m)
{
	const char *host, *why;
	size_t n;

	if (m->origin) {
		m->path = m->target;
		return *m->target == '/' ? NULL : "the target of this request is a path";
	}
	if (m->connect) {
		if (net_authority_parse(m->target, strlen(m->target), m->host, &m->port, &why) < 0)
			return why;
		return m->port ? NULL : "CONNECT takes host:port";
	}
	if (strncasecmp(m->target, "https://", 8) == 0)
		return "for https the proxy is asked with CONNECT";
	if (strncasecmp(m->target, "http://", 7) != 0)
		return "this is a proxy: it takes CONNECT host:port and http://host/path";
	host = m->target + 7;
	n = strcspn(host, "/?");
	if (net_authority_parse(host, n, m->host, &m->port, &why) < 0)
		return why;
	if (!m->port)
		m->port = 80;
	m->path = host + n;
	return NULL;
}

/* Host must equal the target: the server could use it. */
static const char *check_host(const struct message *m)
{
	char host[RULE_HOST];
	unsigned count;
	uint16_t port;
	const char *value = message_find(m, "host", &count), *why;

	if (count > 1 || (count == 0 && !m->http10))
		return "exactly one Host header is needed";
	if (count == 0 || !*value)
		return NULL;
	if (net_authority_parse(value, strlen(value), host, &port, &why) < 0 ||
	    strcmp(host, m->host) != 0)
		return "Host and target name different hosts";
	if (port && port != m->port)
		return "Host and target name different ports";
	return NULL;
}

static const char *check_request(struct message *m)
{
	const char *wrong = take_framing(m), *expect;
	unsigned count;

	if (wrong)
		return wrong;
	m->chunk_out = m->framing == MESSAGE_CHUNKED;
	if (m->connect && m->framing != MESSAGE_EMPTY)
		return "CONNECT has no body";
	expect = message_find(m, "expect", &count);
	if (count && (count > 1 || strcasecmp(expect, "100-continue") != 0))
		return "the only expectation known here is 100-continue";
	m->continues = count && !m->http10 && !m->done;
	wrong = take_target(m);
	return wrong ? wrong : check_host(m);
}

static int message_read_request(struct message *m, const char *head, size_t n, const char **why)
{
	size_t target;

	*why = read_head(m, HTTP_REQUEST, head, n);
	if (*why)
		return 400;
	target = m->length;
	m->method = llhttp_method_name(m->parser.method);
	m->connect = m->parser.method == HTTP_CONNECT;
	if (!m->target || !request_line_is_plain(m, target)) {
		*why = "the request line is not METHOD SP TARGET SP HTTP/1.1";
		return 400;
	}
	((char *)m->target)[target] = 0;
	cut_headers(m);
	*why = check_request(m);
	if (*why)
		return 400;
	mark_hops(m);
	return 0;
}

int message_request(struct message *m, const char *head, size_t n, const char **why)
{
	*m = (struct message){ 0 };
	return message_read_request(m, head, n, why);
}

int message_origin_request(struct message *m, const char *host, uint16_t port, int tls,
			   const char *head, size_t n, const char **why)
{
	*m = (struct message){ .origin = 1, .tls = tls, .port = port };
	snprintf(m->host, sizeof(m->host), "%s", host);
	return message_read_request(m, head, n, why);
}

int message_response(struct message *m, const char *head, size_t n, const char **why)
{
	*m = (struct message){ .no_body = m->no_body };
	*why = read_head(m, HTTP_RESPONSE, head, n);
	if (*why)
		return 502;
	m->status = m->parser.status_code;
	cut_headers(m);
	*why = m->status == 101 ? "it changes the protocol without a request for it"
				: take_framing(m);
	if (*why)
		return 502;
	if (m->no_body || m->done)
		m->framing = m->framing == MESSAGE_LENGTH ? MESSAGE_LENGTH : MESSAGE_EMPTY;
	mark_hops(m);
	return 0;
}

/* ---- in our own words ---- */

static void write_headers(const struct message *m, struct evbuffer *out)
{
	for (unsigned i = 0; i < m->nheaders; i++)
		if (!m->headers[i].drop)
			evbuffer_add_printf(out, "%s: %s\r\n", m->headers[i].name,
					    m->headers[i].value);
}

static void write_framing(const struct message *m, struct evbuffer *out, int chunks)
{
	if (m->framing == MESSAGE_LENGTH)
		evbuffer_add_printf(out, "content-length: %llu\r\n", (unsigned long long)m->length);
	else if (chunks)
		evbuffer_add_printf(out, "transfer-encoding: chunked\r\n");
	evbuffer_add_printf(out, "connection: close\r\n\r\n");
}

void message_write_request(const struct message *m, struct evbuffer *out)
{
	int v6 = strchr(m->host, ':') != NULL;

	evbuffer_add_printf(out, "%s %s%s HTTP/1.1\r\nhost: %s%s%s", m->method,
			    *m->path == '/' ? "" : "/", m->path, v6 ? "[" : "", m->host,
			    v6 ? "]" : "");
	if (m->port != (m->tls ? 443 : 80))
		evbuffer_add_printf(out, ":%u", m->port);
	evbuffer_add(out, "\r\n", 2);
	write_headers(m, out);
	write_framing(m, out, m->framing == MESSAGE_CHUNKED);
}

void message_write_response(struct message *m, struct evbuffer *out, int old_reader)
{
	m->chunk_out = m->framing == MESSAGE_CHUNKED && !old_reader;
	/* The reason phrase is not forwarded. */
	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\n", m->status, m->status < 400 ? "OK" : "Error");
	write_headers(m, out);
	write_framing(m, out, m->chunk_out);
}

/* ---- the body ---- */

static void write_last_chunk(struct message *m, struct evbuffer *out)
{
	if (m->done && m->chunk_out)
		evbuffer_add(out, "0\r\n\r\n", 5);
}

long message_body(struct message *m, const char *bytes, size_t n, struct evbuffer *out,
		  const char **why)
{
	llhttp_errno_t err;
	size_t used;

	if (m->done)
		return 0;
	m->out = out;
	err = llhttp_execute(&m->parser, bytes, n);
	m->out = NULL;
	used = err == HPE_OK ? n : (size_t)(llhttp_get_error_pos(&m->parser) - bytes);
	if (err != HPE_OK && err != HPE_PAUSED) {
		*why = "the body is not framed as announced";
		return -1;
	}
	write_last_chunk(m, out);
	return (long)(used < n ? used : n);
}

int message_end(struct message *m)
{
	if (!m->done && m->framing != MESSAGE_TO_THE_END)
		return -1;
	m->done = 1;
	return 0;
}

void message_fini(struct message *m)
{
	free(m->head);
	m->head = NULL;
}
