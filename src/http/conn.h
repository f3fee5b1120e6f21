/* conn.h - one accepted connection. For the files of this folder only.
 * Owns: the socket, its buffers, the request in progress and that request's memory.
 *
 *   state            IDLE --first byte--> HEAD --whole head, or not HTTP--> BUSY
 *                    IDLE --too many connections: 503---------------------> BUSY
 *                    BUSY --reply sent, body read--> IDLE
 *                    BUSY --101--> WS
 *                    BUSY, WS --last reply sent--> LINGER
 *                    all --peer has closed, connection is cut--> DEAD
 *
 *   reply            NONE --http_reply()--> DONE              (of the present request)
 *                    NONE --http_stream()--> STREAM --http_end()--> DONE
 *                    DONE --next request--> NONE
 *
 * conn_set_state() and conn_set_reply() hold both tables, and assert each transition.
 *
 * Only conn_advance() ends a request, calls the handler's functions and frees the connection. All
 * other functions (replies, writes, events, timeouts) change the reply, set flags and schedule
 * conn_advance(). So no http_...() function calls back into the handler that called it, and no
 * object is freed while a caller still uses it. */
#pragma once
#include "http/arena.h"
#include "http/http.h"
#include "http/share.h"

#include <llhttp.h>
#include <sys/uio.h>

struct bufferevent;
struct evbuffer;

enum conn_state {
	CONN_IDLE,
	CONN_HEAD,
	CONN_BUSY,
	CONN_WS,
	CONN_LINGER, /* waits until the peer has read the last reply */
	CONN_DEAD,
};
enum conn_reply { REPLY_NONE, REPLY_STREAM, REPLY_DONE };
enum { CONN_STATES = CONN_DEAD + 1, REPLY_STATES = REPLY_DONE + 1 };

enum {
	BODY_DRAIN = 64 << 10,  /* an unwanted body up to this size is read and dropped */
	LINGER_MS = 2000,       /* for the peer to read the last reply before the close */
	IN_HIGH = 64 << 10,     /* bytes read ahead */
	OUT_SINGLE = 128 << 10, /* written in one wake-up */
	STEPS_PER_WAKE = 64,    /* then other connections get their turn */
	STEPS_PER_LOOK = 4,     /* steps between two reads of the clock: a turn also ends by time */
};

struct span { /* a header, as offsets into the head, whose memory may still move */
	uint32_t name, name_end, value, value_end;
};

struct http_conn {
	/* clang-format off */
	struct http_req req;
	struct http_conn *next, **link; /* in server->conns */
	struct http_conn *next_kicked;
	struct share *share; /* of its address; NULL: the connection is being closed, or is a tunnel */
	struct http_link *served; /* NULL: it was accepted from a listener */
	struct ring in_server, in_share; /* while no request is in progress */
	struct loop_budget *budget; /* of its last request's client; NULL: that of the address */
	void (*then)(struct http_req *r); /* http_charge(), http_continue(): the next step of the handler */
	struct bufferevent *bev;
	struct ws *ws;
	struct splice *splice; /* the body is in a pipe; NULL: there is none */
	int fd;
	enum conn_state state;
	enum conn_reply reply;
	enum http_body how; /* how the handler reads the body */

	unsigned tls : 1;
	unsigned handshake : 1; /* of TLS, under way */
	unsigned running : 1;   /* inside conn_advance() */
	unsigned kicked : 1;
	unsigned reading : 1;
	unsigned armed : 1; /* libevent writes the waiting bytes when it can */
	unsigned eof : 1;   /* the peer sends no more */
	unsigned eof_told : 1;
	unsigned cut : 1;     /* broken or aborted: no more bytes are sent */
	unsigned reset : 1;   /* and the peer must be notified */
	unsigned refused : 1; /* one too many */
	unsigned evicted : 1; /* closed to make room */
	unsigned asked : 1;   /* at least once */
	unsigned detached : 1; /* socket and TLS session have another owner */
	/* of the request */
	unsigned handled : 1; /* a handler has seen the request: on_over is due */
	unsigned head_done : 1;
	unsigned body_done : 1; /* its last byte has been read */
	unsigned end_told : 1;  /* on_body_end() */
	unsigned paused : 1;
	unsigned stopped : 1;  /* the parser was paused, and may continue without another byte */
	unsigned discard : 1;  /* read and drop the body, for the next request */
	unsigned expect : 1;   /* waits for our 100 */
	unsigned full : 1;     /* http_write() returned full: on_drain() is due */
	unsigned chunked : 1;  /* the reply */
	unsigned bodyless : 1; /* HEAD, 204, 304: a body is discarded */
	unsigned http10 : 1;
	unsigned raw : 1; /* after http_switch(): the connection no longer carries HTTP */
	int body_error; /* the status that ends it */

	llhttp_t parser;
	struct arena arena;
	char *head;
	uint32_t head_len, head_room;
	uint32_t target, target_end;
	struct span *spans;
	unsigned nspans, spans_room;
	char why[64]; /* it is refused */
	char *set; /* headers of the reply, as text */
	size_t set_len, set_room;
	uint64_t body_max, body_got;
	uint32_t body_tail; /* the last four bytes of a chunked body */
	uint32_t body_rate; /* bytes per second that must arrive; 0: any */
	uint64_t rate_at, rate_got; /* at the last check of the sweep: time, bytes; 0: not yet */
	unsigned empty_lines; /* in front of the request */
	uint64_t overhead; /* bytes of chunk heads and trailers since the last byte of body */
	uint64_t reply_left;

	uint64_t out_total; /* bytes ever put out */
	uint64_t taken;     /* of those, bytes that the peer had received at the last sweep */
	uint64_t stamp;     /* time at which the sweep first saw this wait; 0: not yet */
	/* clang-format on */
};

struct kicks { /* connections whose conn_advance() is due */
	struct http_core *core;
	struct timer timer;
	struct http_conn *first, **end;
};

/* The private state of the server. */
struct http_core {
	struct http_server *server;
	struct timer sweep;
	struct kicks kicks[2]; /* [1]: of clients whose budget is exceeded */
	struct arena_stock stock;
	unsigned refusing, evicting, links;
	struct shares shares;
	int64_t date_at;
	char date[40];
};

/* conn.c */
void conn_advance(struct http_conn *c);
/* The only functions that change the state and the reply. They assert that the transition is
 * allowed. */
void conn_set_state(struct http_conn *c, enum conn_state next);
void conn_set_reply(struct http_conn *c, enum conn_reply next);
int conn_state_follows(enum conn_state now, enum conn_state next); /* 1: next may follow now */
int conn_reply_follows(enum conn_reply now, enum conn_reply next);
void conn_schedule(struct http_conn *c); /* conn_advance(), soon */
struct loop_budget *conn_budget(
	const struct http_conn *c); /* the budget that its work is charged to; NULL: none */
void conn_cut(struct http_conn *c, int reset);
void conn_put(struct http_conn *c, const struct iovec *iov,
	      unsigned n); /* waits for the turn's end */
void conn_send(struct http_conn *c, const struct iovec *iov, unsigned n); /* now, if it can */
void conn_flush(struct http_conn *c);
void conn_account(struct http_conn *c, size_t n); /* went out by another way */
size_t conn_waiting(const struct http_conn *c);
struct evbuffer *conn_input(const struct http_conn *c);
void conn_free(struct http_conn *c);
void conn_close(struct http_conn *c); /* after the waiting bytes were sent */

void conn_watch(struct http_conn *c); /* the first step: libevent calls back from now on */

/* conn_open.c */
/* why: NULL, or the reason of a 503, after which the connection is closed. */
void conn_new(struct http_server *s, int take_fd, struct ssl_ctx_st *tls, const uint8_t key[16],
	      const char *why);
void conn_set_link(struct http_conn *c,
		   enum http_link_state now); /* reports to the owner; fine without one */

/* parse.c */
void parse_begin(struct http_conn *c);
int parse_head(struct http_conn *c); /* takes input; 1: call the next step */
int parse_body(struct http_conn *c); /* the same */

/* reply.c: errors that this layer answers itself. The connection closes after them. */
void reply_error(struct http_conn *c, int status, const char *why);
void reply_switch(struct http_conn *c,
		  enum conn_reply next); /* 101: from here on the connection is not HTTP */

/* splice.c */
void splice_close(struct http_conn *c);         /* fine without one */
int splice_possible(const struct http_conn *c); /* splice_read() reads the body of the request */
int splice_read(struct http_conn *c);           /* 1: call the next step */
void splice_take(struct http_conn *c, const char *bytes, size_t n); /* the same from the parser */
int splice_holds(const struct http_conn *c);    /* a part of that is not in the pipe yet */
int splice_write(struct http_conn *c);          /* of the reply; 1: call the next step */
int splice_is_stuck(const struct http_conn *c); /* the peer takes nothing */

/* sweep.c */
void conn_check_timeout(struct http_conn *c, uint64_t now);

/* server.c */
const char *server_date(struct http_server *s);
void server_start(struct http_server *s); /* fills limits, starts the sweep; fine if it has */

/* ws.c */
int ws_go(struct http_conn *c);
void ws_over(struct http_conn *c);
void ws_tick(struct http_conn *c, uint64_t now);
