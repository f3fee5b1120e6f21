/* proxy_http.c - the HTTP proxy that a box has on its loopback.
 *
 * CONNECT passes bytes in both directions; everything else is one request and one response, parsed
 * strictly and serialised again (http_message.h). */
#include "egress/injection.h"
#include "egress/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	HTTP_PIECE = 32 << 10, /* bytes of a body that are framed at once */
	HTTP_EARLY = 8,        /* interim answers: 100, 103 */
};

static const char *http_reason(int status)
{
	return status == 400   ? "Bad Request"
	       : status == 403 ? "Forbidden"
	       : status == 408 ? "Request Timeout"
	       : status == 431 ? "Request Header Fields Too Large"
	       : status == 502 ? "Bad Gateway"
			       : "Gateway Timeout";
}

/* As errors of the API have it. */
static const char *http_code(enum verdict v)
{
	switch (v) {
	case VERDICT_DENIED:
	case VERDICT_INTERNAL:
		return "denied";
	case VERDICT_BAD:
		return "invalid";
	case VERDICT_BUDGET:
		return "limit";
	default:
		return judge_verdict_name(v);
	}
}

static void http_add_json(struct evbuffer *out, const char *text)
{
	evbuffer_add(out, "\"", 1);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			evbuffer_add_printf(out, "\\%c", c);
		else
			evbuffer_add_printf(out, "%c", c < 32 || c > 126 ? '?' : c);
	}
	evbuffer_add(out, "\"", 1);
}

static int http_refuse(struct proxy *p, int status, const char *text)
{
	struct evbuffer *out = proxy_out(p->near), *body = evbuffer_new();
	const char *hint = proxy_hint(p);
	char where[RULE_HOST + 8] = "";

	if (!body)
		abort();
	if (p->host[0])
		snprintf(where, sizeof(where), "%s:%u", p->host, p->port);
	evbuffer_add_printf(
		body, "{\"error\": {\"code\": \"%s\", \"message\": ", http_code(p->end.verdict));
	http_add_json(body, text);
	evbuffer_add_printf(body, ", \"why\": \"%s\", \"hints\": [", where);
	if (*hint)
		http_add_json(body, hint);
	evbuffer_add_printf(body, "], \"doc\": \"/docs/egress.md\"}}\n");
	evbuffer_add_printf(out,
			    "HTTP/1.1 %d %s\r\ncontent-type: application/json\r\n"
			    "content-length: %zu\r\nconnection: close\r\n\r\n",
			    status, http_reason(status), evbuffer_get_length(body));
	if (!p->ask.method || strcmp(p->ask.method, "HEAD") != 0)
		evbuffer_add_buffer(out, body);
	evbuffer_free(body);
	return 0;
}

/* ---- the request ---- */

/* The head of the request, with values in place of placeholders. -1: it is too large. */
static int http_write_request(struct proxy *p, struct evbuffer *out)
{
	const struct injection *x = p->way->injection;
	struct evbuffer *head;
	size_t n;
	int done;

	if (!injection_fits(x, p->ask.host, p->ask.port, p->tls)) {
		message_write_request(&p->ask, out);
		return 0;
	}
	head = evbuffer_new();
	if (!head)
		abort();
	message_write_request(&p->ask, head);
	n = evbuffer_get_length(head);
	done = injection_write(x, p->ask.host, p->ask.port, p->tls,
			       (const char *)evbuffer_pullup(head, -1), n, out);
	evbuffer_free(head);
	return done;
}

static int http_fits(struct proxy *p)
{
	struct evbuffer *out;
	int fits;

	if (p->ask.connect || !injection_fits(p->way->injection, p->ask.host, p->ask.port, p->tls))
		return 1;
	out = evbuffer_new();
	if (!out)
		abort();
	fits = http_write_request(p, out) == 0;
	evbuffer_free(out);
	return fits;
}

/* The rules are checked with the request that follows: its method and path are visible then. */
static void http_intercept(struct proxy *p)
{
	char host[RULE_HOST];
	uint16_t port = p->ask.port;

	memcpy(host, p->ask.host, sizeof(host));
	message_fini(&p->ask);
	p->ask = (struct message){ 0 };
	evbuffer_add_printf(proxy_out(p->near), "HTTP/1.1 200 Connection established\r\n\r\n");
	intercept_begin(p, host, port);
}

static void http_ask(struct proxy *p)
{
	size_t len = evbuffer_get_length(proxy_in(p->near)), n;
	size_t most = len < MESSAGE_HEAD ? len : MESSAGE_HEAD;
	const char *bytes = (const char *)evbuffer_pullup(proxy_in(p->near), (ev_ssize_t)most);
	const char *why;
	int status;

	if (bytes && bytes[0] == SOCKS_VERSION && !p->opened) {
		p->protocol = &proxy_socks;
		p->protocol->ask(p);
		return;
	}
	n = bytes ? message_head_end(bytes, most) : 0;
	if (!n && len >= MESSAGE_HEAD) {
		proxy_refuse(p, 431, VERDICT_BAD, "the head of the request is larger than %d bytes",
			     MESSAGE_HEAD);
		return;
	}
	if (!n)
		return;
	status = p->opened
			 ? message_origin_request(&p->ask, p->host, p->port, p->tls, bytes, n, &why)
			 : message_request(&p->ask, bytes, n, &why);
	if (status) {
		proxy_refuse(p, status, VERDICT_BAD, "%s", why);
		return;
	}
	evbuffer_drain(proxy_in(p->near), n);
	if (p->ask.connect && intercept_wants(p, p->ask.host, p->ask.port)) {
		http_intercept(p);
		return;
	}
	if (!http_fits(p)) {
		proxy_refuse(p, 431, VERDICT_BAD,
			     "the head of the request is larger than %d bytes with its secrets",
			     INJECTION_HEAD);
		return;
	}
	proxy_to(p, p->ask.host, p->ask.port, p->ask.method, p->ask.connect ? NULL : p->ask.path);
}

static void http_connected(struct proxy *p)
{
	size_t before = evbuffer_get_length(proxy_out(p->far));

	if (p->ask.connect) {
		evbuffer_add_printf(proxy_out(p->near),
				    "HTTP/1.1 200 Connection established\r\n\r\n");
		message_fini(&p->ask);
		p->ask = (struct message){ 0 };
		p->protocol = &proxy_tunnel;
		return;
	}
	if (p->ask.continues)
		evbuffer_add_printf(proxy_out(p->near), "HTTP/1.1 100 Continue\r\n\r\n");
	(void)!http_write_request(p, proxy_out(p->far)); /* http_ask() has tried it */
	proxy_count(p, 0, evbuffer_get_length(proxy_out(p->far)) - before);
}

/* 0, or -1: it does not match its head. */
static int http_pass_body(struct proxy *p, struct message *m, struct bufferevent *from,
			  struct bufferevent *to, const char **why)
{
	while (!m->done && evbuffer_get_length(proxy_in(from)) && proxy_room(to)) {
		size_t n = evbuffer_get_contiguous_space(proxy_in(from));
		long used;

		n = n < HTTP_PIECE ? n : HTTP_PIECE;
		used = message_body(m, (const char *)evbuffer_pullup(proxy_in(from), (ev_ssize_t)n),
				    n, proxy_out(to), why);
		if (used < 0)
			return -1;
		evbuffer_drain(proxy_in(from), (size_t)used);
		proxy_count(p, to == p->near, (size_t)used);
		if (used == 0)
			break;
	}
	return 0;
}

/* ---- the answer ---- */

static void http_bad_answer(struct proxy *p, const char *why)
{
	if (p->answered)
		proxy_cut(p, VERDICT_BAD, why);
	else
		proxy_refuse(p, 502, VERDICT_BAD, "%s did not answer with HTTP: %s", p->host, why);
}

/* 1: continue with the body, or with another head; 0: wait, or ended. */
static int http_take_answer(struct proxy *p)
{
	size_t len = evbuffer_get_length(proxy_in(p->far)), n;
	size_t most = len < MESSAGE_HEAD ? len : MESSAGE_HEAD;
	const char *bytes = (const char *)evbuffer_pullup(proxy_in(p->far), (ev_ssize_t)most);
	const char *why;

	n = bytes ? message_head_end(bytes, most) : 0;
	if (!n && len >= MESSAGE_HEAD) {
		http_bad_answer(p, "its head is larger than allowed");
		return 0;
	}
	if (!n)
		return 0;
	p->answer.no_body = strcmp(p->ask.method, "HEAD") == 0;
	if (message_response(&p->answer, bytes, n, &why) != 0) {
		http_bad_answer(p, why);
		return 0;
	}
	evbuffer_drain(proxy_in(p->far), n);
	proxy_count(p, 1, n);
	if (p->answer.status >= 200) {
		message_write_response(&p->answer, proxy_out(p->near), p->ask.http10);
		p->answered = 1;
		return 1;
	}
	message_fini(&p->answer);
	if (++p->early <= HTTP_EARLY)
		return 1;
	http_bad_answer(p, "it does not come to the point");
	return 0;
}

/* 0: p has ended. */
static int http_pass_answer(struct proxy *p)
{
	const char *why = "";

	while (!p->answered)
		if (!http_take_answer(p)) {
			if (p->stage != PROXY_PASSING || !p->far_eof)
				return p->stage == PROXY_PASSING;
			http_bad_answer(p, "it closed the connection");
			return 0;
		}
	if (http_pass_body(p, &p->answer, p->far, p->near, &why) < 0) {
		proxy_cut(p, VERDICT_BAD, why);
		return 0;
	}
	if (!p->answer.done && p->far_eof && evbuffer_get_length(proxy_in(p->far)) == 0 &&
	    (p->far_broken || message_end(&p->answer) < 0)) {
		proxy_cut(p, VERDICT_CUT, "the host closed the connection before the end");
		return 0;
	}
	if (!p->answer.done)
		return 1;
	proxy_leave(p);
	return 0;
}

static int http_pass_request(struct proxy *p)
{
	const char *why = "";

	if (http_pass_body(p, &p->ask, p->near, p->far, &why) < 0) {
		proxy_cut(p, VERDICT_BAD, why);
		return 0;
	}
	if (!p->ask.done && p->near_eof && evbuffer_get_length(proxy_in(p->near)) == 0) {
		proxy_cut(p, VERDICT_CUT, "the box closed the connection in its request");
		return 0;
	}
	return 1;
}

static int http_pass(struct proxy *p)
{
	return http_pass_request(p) && http_pass_answer(p);
}

static int http_can_refuse(const struct proxy *p)
{
	return !p->answered;
}

/* Bytes after a request are ignored; a disconnect of the box is noticed when writing. */
static int http_reads_near(const struct proxy *p)
{
	return !p->ask.done;
}

const struct proxy_protocol proxy_http = {
	.ask = http_ask,
	.refuse = http_refuse,
	.connected = http_connected,
	.pass = http_pass,
	.can_refuse = http_can_refuse,
	.reads_near = http_reads_near,
};
