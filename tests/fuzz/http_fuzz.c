/* http_fuzz.c - any bytes, in any pieces, to a server that answers everything it understands.
 * The first byte selects the size of the pieces. Each request that was started ends exactly once, and
 * nothing of it is left after the peer has disconnected. */
#include "http/conn.h"
#include "fuzz.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct loop loop;
static struct http_server server;
static unsigned heads, overs, opened, closed;

static void over(struct http_req *r)
{
	(void)r;
	overs++;
}

static void check(struct http_req *r)
{
	static const char *const allowed[] = { "a", "b", NULL };
	struct err e;

	assert(r->path[0] == '/' && r->method && r->target && r->query);
	assert(!strpbrk(r->path, "?# \r\n\t"));
	for (unsigned i = 0; i < r->nheaders; i++) {
		const char *name = r->headers[i].name, *value = r->headers[i].value;
		size_t n = strlen(value);

		assert(name[0] && !strpbrk(name, "ABCXYZ: \r\n\t") && !strpbrk(value, "\r\n"));
		assert(!n || (!strchr(" \t", value[0]) && !strchr(" \t", value[n - 1])));
	}
	if (http_query_check(r, allowed, &e) < 0)
		assert(e.msg[0]);
	if (http_query(r, "a"))
		http_header(r, "host");
}

static void echo(struct http_req *r)
{
	assert(r->length == UINT64_MAX || r->length == r->body.len);
	http_reply(r, 200, "text/plain", r->body.p, r->body.len);
}

static void piece(struct http_req *r, const char *bytes, size_t n)
{
	r->user = (void *)((size_t)r->user + n);
	assert(n > 0 && bytes);
	if (n % 2) {
		http_pause(r);
		http_resume(r);
	}
}

static void end(struct http_req *r)
{
	assert(r->length == UINT64_MAX || r->length == (size_t)r->user);
	http_stream(r, 200, "text/plain", (size_t)r->user);
	for (size_t i = 0; i < (size_t)r->user; i++)
		http_write(r, "x", 1);
	http_end(r);
}

static void text(struct ws *w, const char *bytes, size_t n)
{
	ws_text(w, bytes, n);
}

static void binary(struct ws *w, const void *bytes, size_t n)
{
	ws_binary(w, bytes, n);
}

static void ws_closed(struct ws *w)
{
	(void)w;
	closed++;
}

static void on_head(struct http_req *r)
{
	static const struct ws_events events = { text, binary, NULL, ws_closed };

	heads++;
	r->on_over = over;
	check(r);
	if (r->upgrade) {
		opened++;
		assert(http_ws(r, NULL, 1000, &events, NULL));
	} else if (r->path[1] == 'w') {
		r->on_body_end = echo;
		http_want_body(r, HTTP_BODY_WHOLE, 1000);
	} else if (r->path[1] == 's') {
		r->on_body = piece;
		r->on_body_end = end;
		http_want_body(r, HTTP_BODY_STREAM, 0);
	} else if (r->path[1] == 'a') {
		http_stream(r, 200, NULL, 10);
		http_abort(r);
	} else {
		http_reply(r, 200, NULL, "ok", 2);
	}
}

static void turn(int fd)
{
	static char sink[65536];

	event_base_loop(loop.base, EVLOOP_NONBLOCK);
	while (recv(fd, sink, sizeof(sink), MSG_DONTWAIT) > 0)
		;
}

/* A new server for each input, so that memory that one input leaks is reported for that input. */
static void begin(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr nowhere = { .sa_family = AF_UNIX };
	struct err e;

	/* Bound to an address that the kernel chooses; no client connects to it. */
	if (loop_init(&loop, &e) < 0 || bind(fd, &nowhere, sizeof(sa_family_t)) < 0 ||
	    listen(fd, 1) < 0)
		abort();
	http_server_init(&server, &loop);
	server.on_head = on_head;
	if (http_listen(&server, fd, NULL, &e) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	size_t step = len ? bytes[0] + 1u : 1;
	int pair[2];

	begin();
	heads = overs = opened = closed = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		abort();
	conn_new(&server, pair[0], NULL, (const uint8_t[16]){ 0 }, NULL);
	for (size_t at = 1; at < len; at += step) {
		size_t n = len - at < step ? len - at : step;

		if (send(pair[1], bytes + at, n, MSG_NOSIGNAL) < 0)
			break;
		turn(pair[1]);
	}
	turn(pair[1]);
	close(pair[1]);
	for (unsigned i = 0; i < 1000 && server.open; i++)
		event_base_loop(loop.base, EVLOOP_NONBLOCK);
	assert(server.open == 0);
	assert(heads == overs && opened == closed);
	http_server_fini(&server);
	loop_fini(&loop);
	return 0;
}
