/* http.h - an HTTP/1.1 server on the loop: requests in, replies and streams out.
 * Owns:         the listening descriptors it was given, accepted connections, their parsers and
 *               buffers, the request in progress.
 * Does not own: what a request means.
 *
 *   bytes -> llhttp (strict) -> struct http_req -> on_head() picks what happens -> body -> reply
 *
 * One request at a time per connection: a pipelined request is parsed only after the reply to
 * the previous one has been sent. Every size and number that a client can choose has a limit in
 * struct http_limits. A reply is one of: http_reply() once; http_stream() and any number of
 * http_write(), http_end(), or http_stream_pipe(); http_ws(). When the reply has ended, or the
 * peer has left, the server calls req->on_over once and frees req. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "loop/loop.h"
#include <stddef.h>
#include <stdint.h>

struct http_conn;
struct http_server;
struct ssl_ctx_st;
struct ssl_st;

struct http_limits {          /* 0: the default in parentheses */
	uint32_t head_bytes;  /* request line and headers together (32 KiB) */
	uint32_t headers;     /* (100) */
	uint32_t connections; /* (10000 and some) above it the longest idle connection is closed;
			       * none idle: 503 */
	uint32_t per_address; /* of these (half of them) */
	uint32_t head_ms;  /* from the first byte of a request to the end of its head, and from the
				* beginning of a connection to its first byte (10 s) */
	uint32_t idle_ms;  /* between requests (75 s) */
	uint32_t fresh_ms; /* while draining, for a client that has connected and sent nothing
			    * yet (2 s) */
	uint32_t
		body_stall_ms; /* without a byte of body; also how often http_body_rate() is checked (30 s) */
	uint32_t send_stall_ms; /* without the peer reading a byte of the waiting ones (120 s) */
	uint32_t out_high; /* bytes waiting for the peer before http_write() returns 1 (256 KiB) */
	uint32_t ws_ping_ms;    /* (20 s) */
	uint32_t ws_silence_ms; /* (60 s) */
};

struct http_header {
	const char *name, *value; /* name in lower case; value without spaces around it */
};

enum http_body { HTTP_BODY_NONE, HTTP_BODY_WHOLE, HTTP_BODY_STREAM };

struct http_req {
	struct http_conn *conn;
	struct http_server *server;
	const char *method; /* "GET" */
	const char *target; /* as sent: "/v1/boxes?limit=3" */
	const char *path;   /* the part before '?', not decoded; always begins with '/' */
	const char *query;  /* the part after it, or "" */
	const struct http_header *headers;
	unsigned nheaders;
	int keep_alive;
	int upgrade; /* a request for a WebSocket, with valid headers */
	int tunnel;  /* a request with "Upgrade: tcp", for bytes without a protocol of this layer */
	int unix_peer; /* came over a unix socket; then peer_uid is the uid of the client */
	uint32_t peer_uid;
	int trusted_peer;   /* came over a tunnel, see http_serve_link() */
	char peer[64];      /* "127.0.0.1:51234", "unix:1000" */
	const char *always; /* header lines of every reply; http_unset() forgets them, too */
	uint64_t began_ms;  /* loop_now_ms() at the first byte of its head */
	uint64_t length;    /* of the body as announced; UINT64_MAX: chunked */

	struct buf body; /* HTTP_BODY_WHOLE: the complete body, when on_body_end() is called */

	/* The handler's. */
	void *user;
	int status; /* the status of the reply, for the log; 0: none yet */
	uint64_t bytes_out;
	/* HTTP_BODY_STREAM: pieces as they arrive. http_pause() stops reading. */
	void (*on_body)(struct http_req *r, const char *bytes, size_t n);
	void (*on_body_end)(struct http_req *r);
	/* http_body_pipe(): full 1: the pipe is full (or has no reader); 0: it accepts bytes
	 * again. */
	void (*on_full)(struct http_req *r, int full);
	void (*on_drain)(
		struct http_req *r); /* after http_write() returned full: there is room again */
	/* The peer sends no more: it has disconnected, or has sent its whole request and still reads.
	 * The server cannot distinguish the two before it writes. NULL: continue; a peer that
	 * left is noticed at the next write or within minutes. */
	void (*on_eof)(struct http_req *r);
	void (*on_over)(
		struct http_req
			*r); /* replied and sent, or the peer has disconnected: free everything */
};

struct http_server {
	/* clang-format off */
	struct loop *loop;
	struct http_limits limits; /* set between http_server_init() and http_listen() */
	/* The head is complete. Must reply, or request the body (http_want_body()) and set
	 * on_body_end. */
	void (*on_head)(struct http_req *r);
	void *user;
	const char *always; /* "Name: value\r\n" lines of every reply, up to 256 bytes; NULL: none */
	/* figures, for metrics */
	uint64_t evicted; /* connections closed to make room */
	uint64_t accepted, requests, bad_requests, bytes_in, bytes_out;
	unsigned open;
	/* the rest is http's */
	struct http_listener *listeners;
	struct http_conn *conns;
	struct http_core *core;
	int draining;
	/* clang-format on */
};
/* None of the functions below calls a function of the handler before it returns. */
void http_server_init(struct http_server *s,
		      struct loop *l); /* also: SIGPIPE is ignored from now on */
/* take_fd: bound and listening, TCP or unix. tls: NULL, or a context for it (borrowed). */
must_check int http_listen(struct http_server *s, int take_fd, struct ssl_ctx_st *tls,
			   struct err *e);
/* New connections of the listeners with TLS use this context from now on. */
void http_set_tls(struct http_server *s, struct ssl_ctx_st *tls);
/* A connection that is established already and whose peer sends requests: a tunnel to a gateway. The
 * owner keeps the struct until HTTP_LINK_CLOSED. Requests have trusted_peer. The connection counts
 * for no limit and may be idle without limit; http_drain() closes it. */
enum http_link_state { HTTP_LINK_BUSY, HTTP_LINK_IDLE, HTTP_LINK_CLOSED };
struct http_link {
	/* From the loop. HTTP_LINK_CLOSED is the last call; NULL: not needed. */
	void (*changed)(struct http_link *l, enum http_link_state now);
	struct http_conn *conn; /* http's; NULL: closed */
};
/* take_tls: NULL: plain; or its TLS session, after the handshake, in either role. early: bytes that
 * were read from it already. */
void http_serve_link(struct http_server *s, struct http_link *l, int take_fd,
		     struct ssl_st *take_tls, const void *early, size_t n);
void http_link_cut(
	struct http_link *l); /* closed at the next turn of the loop; allowed on a closed one */
/* Accepts no new connections; idle ones close now, the others after their reply. */
void http_drain(struct http_server *s);
int http_drained(const struct http_server *s);
void http_server_fini(struct http_server *s);

/* ---- a request without a connection ----
 * Made by the server itself. Its handler must not send bytes and not wait for a body; the texts stay
 * valid until http_internal_free(), which calls on_over. */
struct http_req *http_internal_new(struct http_server *s, const char *method, const char *path);
void http_internal_free(struct http_req *r);

/* ---- asking a request ---- */
/* 1: the client of a unix socket had this group, as its own or as a further one, when it connected. */
int http_peer_in_group(const struct http_req *r, uint32_t gid);
const char *http_header(const struct http_req *r, const char *lower_name); /* NULL: not there */
/* The decoded value of a query parameter, in memory of the request; NULL: not present. For a
 * value that decodes to bytes with NUL, or is not valid percent-encoding, http_query_check()
 * returns -1. */
const char *http_query(struct http_req *r, const char *name);
must_check int http_query_check(struct http_req *r, const char *const *allowed,
				struct err *e); /* allowed NULL: any name */
/* HTTP_BODY_WHOLE up to max (413 beyond it, before a byte is read where the length is known), or
 * HTTP_BODY_STREAM (max: 0 no limit). Without a call the body is drained if small, else the
 * connection closes after the reply. */
void http_want_body(struct http_req *r, enum http_body how, uint64_t max);
/* HTTP_BODY_STREAM, but into this pipe in place of on_body(), with splice() where possible. The
 * pipe is closed before on_body_end() is called, and when a reply is made before that. */
void http_body_pipe(struct http_req *r, int take_fd, uint64_t max);
/* While the body is read, it must arrive at this many bytes per second or more: else 408.
 * HTTP_BODY_WHOLE has HTTP_BODY_RATE without this call. */
enum { HTTP_BODY_RATE = 1024 };
void http_body_rate(struct http_req *r, uint32_t bytes_per_s);
void http_pause(struct http_req *r);
void http_resume(struct http_req *r);
int http_secure(
	const struct http_req *r); /* the client uses TLS; a gateway reports it for its client */
/* The client of the request is known: the work of the request, and of the connection until the
 * next request changes it, is charged to b (NULL: to the client's address). Calls then(): at
 * once, or after the work of other clients if b is exceeded. */
void http_charge(struct http_req *r, struct loop_budget *b, void (*then)(struct http_req *r));
/* Calls then() from the loop, in the connection's turn; never after on_over(). */
void http_continue(struct http_req *r, void (*then)(struct http_req *r));
/* Memory that lives as long as the request. */
void *http_alloc(struct http_req *r, size_t n);
char *http_strdup(struct http_req *r, const char *s, size_t n);

/* ---- replying ---- */
void http_set(struct http_req *r, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4))); /* a header of the reply */
void http_reply(struct http_req *r, int status, const char *type, const void *body, size_t n);
/* Length known: Content-Length and exactly that many bytes; UINT64_MAX: chunked. */
void http_stream(struct http_req *r, int status, const char *type, uint64_t length);
/* Always accepts everything. 1: more than out_high bytes wait for the peer, stop until
 * on_drain(). */
int http_write(struct http_req *r, const void *bytes, size_t n);
/* In place of http_write() and http_end(): reads the announced number of bytes from this pipe,
 * then ends the reply. A pipe that ends early cuts the connection. */
void http_stream_pipe(struct http_req *r, int take_fd);
size_t http_waiting(const struct http_req *r); /* bytes that the peer has not taken */
void http_end(struct http_req *r);
/* 1: the peer will send nothing more. It may still read; only the handler knows whether that
 * matters. */
int http_peer_ended(const struct http_req *r);
/* The stream cannot be completed: cuts the connection, so that the client does not take it for
 * complete. */
void http_abort(struct http_req *r);
void http_unset(struct http_req *r); /* forgets all that http_set() has set */
/* Answers 101 to a request with r->upgrade or r->tunnel whose handler relays it to another server: from here
 * on bytes are passed on as they arrive, by on_body() and http_write(), until on_body_end() and
 * http_end(). */
void http_switch(struct http_req *r);

/* Takes a TLS connection out of the server: in place of a reply, by the handler of a request without
 * body. The request ends with on_over(). */
struct upstream_link;
must_check int http_detach(struct http_req *r, struct upstream_link *out, struct err *e);
struct ssl_st *http_tls(const struct http_req *r); /* its TLS session; NULL: plain */

/* ---- WebSocket ---- */
struct ws;
struct ws_events {
	void (*on_text)(struct ws *w, const char *text, size_t n); /* valid UTF-8 */
	void (*on_binary)(struct ws *w, const void *bytes, size_t n);
	void (*on_drain)(struct ws *w);
	void (*on_close)(struct ws *w); /* w is freed after this */
};
/* Takes the request over: 101, then events. protocol: the chosen one, or NULL. message_max:
 * bytes of one message with all its fragments; above it the server closes with 1009. Sends a
 * ping every 20 s, closes after 60 s without a message. */
struct ws *http_ws(struct http_req *r, const char *protocol, size_t message_max,
		   const struct ws_events *on,
		   void *user); /* NULL: !r->upgrade, or replied already */
/* The first protocol offered by the peer that is in `ours` (ends with NULL), or NULL. */
const char *http_ws_protocol(const struct http_req *r, const char *const *ours);
void *ws_user(const struct ws *w);
int ws_text(struct ws *w, const char *text, size_t n);    /* 1: full, wait for on_drain */
int ws_binary(struct ws *w, const void *bytes, size_t n); /* the same */
/* Several pieces as one binary message, without copying them together first. */
struct iovec;
int ws_binaryv(struct ws *w, const struct iovec *iov, unsigned n);
size_t ws_waiting(const struct ws *w);
void ws_pause(struct ws *w); /* no more messages until ws_resume(): the peer's writes will block */
void ws_resume(struct ws *w);
void ws_close(struct ws *w, uint16_t code, const char *reason); /* on_close() follows */
