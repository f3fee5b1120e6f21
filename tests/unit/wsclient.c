/* wsclient.c - see wsclient.h. */
#include "wsclient.h"
#include "http/response.h"
#include "http/client_conn.h"
#include "http/tls.h"
#include "http/ws_codec.h"
#include "base/id.h"
#include "base/cleanup.h"

#include <openssl/evp.h>
#include <string.h>

struct wsclient {
	struct client_conn_url url;
	struct client_conn client_conn;
	struct ssl_ctx_st *tls;
	struct ws_codec msg;
	struct wsclient_events on;
	void *user;
	struct buf early; /* frames that arrived with the handshake */
	size_t early_at;
	int at_end, failed;
	struct err why; /* of failed */
};

/* ---- between the conversation and the connection ---- */

static size_t wsclient_do_take(void *user, void *out, size_t n)
{
	struct wsclient *w = user;
	size_t left = w->early.len - w->early_at;
	ssize_t got;

	if (left) {
		n = n < left ? n : left;
		memcpy(out, w->early.p + w->early_at, n);
		w->early_at += n;
		return n;
	}
	if (w->at_end || w->failed)
		return 0;
	got = client_conn_read_now(&w->client_conn, out, n, &w->why);
	w->at_end = got == 0;
	w->failed |= got == -1;
	return got > 0 ? (size_t)got : 0;
}

static void wsclient_put(void *user, const struct iovec *iov, unsigned n)
{
	struct wsclient *w = user;

	for (unsigned i = 0; i < n && !w->failed; i++)
		w->failed = client_conn_write(&w->client_conn, iov[i].iov_base, iov[i].iov_len,
					      &w->why) < 0;
}

static void wsclient_message(void *user, int opcode, const char *bytes, size_t n)
{
	struct wsclient *w = user;

	if (opcode == WS_TEXT && w->on.on_text)
		w->on.on_text(w->user, bytes, n);
	else if (opcode == WS_BINARY && w->on.on_binary)
		w->on.on_binary(w->user, bytes, n);
}

static const struct ws_codec_owner owner = { .take = wsclient_do_take,
					     .put = wsclient_put,
					     .on_message = wsclient_message };

/* ---- the handshake ---- */

static int wsclient_ask(struct wsclient *w, const char *target, const struct http_header *headers,
			unsigned nheaders, const char *protocol, char key[25], struct err *e)
{
	auto_buf struct buf head = { 0 };
	unsigned char nonce[16];

	if (id_random(nonce, sizeof(nonce), e) < 0)
		return -1;
	EVP_EncodeBlock((unsigned char *)key, nonce, sizeof(nonce));
	buf_printf(&head,
		   "GET %s%s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
		   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
		   w->url.prefix, target, w->url.header, key);
	if (protocol)
		buf_printf(&head, "Sec-WebSocket-Protocol: %s\r\n", protocol);
	for (unsigned i = 0; i < nheaders; i++) {
		if (strpbrk(headers[i].value, "\r\n") || strpbrk(headers[i].name, "\r\n"))
			return err_set(e, ERR_INVALID, "header %.40s: a line break",
				       headers[i].name);
		buf_printf(&head, "%s: %s\r\n", headers[i].name, headers[i].value);
	}
	buf_puts(&head, "\r\n");
	return client_conn_write(&w->client_conn, head.p, head.len, e);
}

/* Reads the answer, with its body if it is an error. Bytes after a 101 are the first frame. */
static int wsclient_hear(struct wsclient *w, struct response *a, struct err *e)
{
	char bytes[4096];

	while (!a->done) {
		ssize_t n = client_conn_read(&w->client_conn, bytes, sizeof(bytes), e), used;

		if (n < 0)
			return -1;
		if (n == 0 && response_end(a) == 0)
			return 0;
		used = n > 0 ? response_feed(a, bytes, (size_t)n) : -1;
		if (used < 0)
			return err_set(e, ERR_SYS, "%.120s: %.80s", w->url.header,
				       a->why ? a->why : "this is not HTTP");
		if (a->done)
			buf_add(&w->early, bytes + used, (size_t)(n - used));
	}
	return 0;
}

static int wsclient_check(const struct http_answer *a, const char *key, const char *protocol,
			  struct err *e)
{
	const char *accept = http_answer_header(a, "sec-websocket-accept");
	const char *chosen = http_answer_header(a, "sec-websocket-protocol");
	char want[29];

	ws_accept_key(key, want);
	if (!accept || strcmp(accept, want) != 0)
		return err_set(e, ERR_INVALID, "the server answered 101 to some other question");
	if (chosen && (!protocol || strcmp(chosen, protocol) != 0))
		return err_set(e, ERR_INVALID, "the server wants to speak '%.40s'", chosen);
	return 0;
}

static int wsclient_handshake(struct wsclient *w, const char *target,
			      const struct http_header *headers, unsigned nheaders,
			      const char *protocol, int *out_status, struct buf *body,
			      struct err *e)
{
	struct http_answer said;
	struct response a;
	char key[25];
	int failed;

	response_init(&a, &said);
	a.body_max = 1 << 20;
	failed = wsclient_ask(w, target, headers, nheaders, protocol, key, e) < 0 ||
		 wsclient_hear(w, &a, e) < 0;
	if (!failed) {
		*out_status = said.status;
		if (said.status == 101) {
			failed = wsclient_check(&said, key, protocol, e) < 0;
		} else {
			*body = said.body;
			said.body = (struct buf){ 0 };
		}
	}
	http_answer_fini(&said);
	response_fini(&a);
	return failed ? -1 : 0;
}

static void ws_free(struct wsclient *w)
{
	client_conn_close(&w->client_conn);
	tls_free(w->tls);
	ws_codec_fini(&w->msg);
	buf_fini(&w->early);
	free(w);
}

static int client_conn_for(struct wsclient *w, const char *base,
			   const struct http_client_options *o, struct err *e)
{
	if (client_conn_url_parse(base, &w->url, e) < 0)
		return -1;
	if (w->url.kind == CLIENT_CONN_TLS && tls_client(o ? o->ca_file : NULL, &w->tls, e) < 0)
		return -1;
	return client_conn_open(&w->client_conn, &w->url, w->tls,
				o && o->connect_ms ? o->connect_ms : 10000, e);
}

int wsclient_open(const char *base, const struct http_client_options *o, const char *target,
		  const struct http_header *headers, unsigned nheaders, const char *protocol,
		  size_t message_max, const struct wsclient_events *on, void *user,
		  struct wsclient **out_ws, int *out_status, struct buf *body, struct err *e)
{
	struct wsclient *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->client_conn.fd = -1;
	w->on = *on;
	w->user = user;
	*out_status = 0;
	if (client_conn_for(w, base, o, e) < 0 ||
	    wsclient_handshake(w, target, headers, nheaders, protocol, out_status, body, e) < 0) {
		ws_free(w);
		return -1;
	}
	if (*out_status != 101) {
		ws_free(w);
		return 1;
	}
	ws_codec_init(&w->msg, 1, message_max, &owner, w);
	*out_ws = w;
	return 0;
}

/* ---- in use ---- */

int wsclient_fd(const struct wsclient *w)
{
	return w->client_conn.fd;
}

static int send_message(struct wsclient *w, int opcode, const void *bytes, size_t n, struct err *e)
{
	ws_codec_send(&w->msg, opcode, &(struct iovec){ (void *)bytes, n }, 1);
	if (w->failed)
		*e = w->why;
	return w->failed ? -1 : 0;
}

int wsclient_text(struct wsclient *w, const char *text, size_t n, struct err *e)
{
	return send_message(w, WS_TEXT, text, n, e);
}

int wsclient_binary(struct wsclient *w, const void *bytes, size_t n, struct err *e)
{
	return send_message(w, WS_BINARY, bytes, n, e);
}

int wsclient_take(struct wsclient *w, struct err *e)
{
	while (ws_codec_read(&w->msg))
		;
	if (ws_codec_over(&w->msg) || w->at_end)
		return 0;
	if (w->failed)
		*e = w->why;
	return w->failed ? -1 : 1;
}

uint16_t wsclient_code(const struct wsclient *w)
{
	return w->msg.close_code;
}

void wsclient_close(struct wsclient *w, uint16_t code)
{
	if (!w)
		return;
	if (!w->failed && !w->at_end)
		ws_codec_close(&w->msg, code, NULL);
	ws_free(w);
}
