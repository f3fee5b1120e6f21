/* init_conn.h - one connection to init of a box, on the loop, and the calls on it.
 * Owns: the connection. Calls belong to their callers, which remove them before they are freed.
 * Frames of the box are checked here: offsets that were not requested end the connection. */
#pragma once
#include "client/box_handle.h"
#include "client/frame_conn.h"

struct init_conn;
struct init_call;

struct init_call_ops { /* all may be NULL */
	void (*started)(struct init_call *x, int pid);
	void (*reading)(struct init_call *x, unsigned stream, uint64_t from, uint64_t tip);
	void (*output)(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
		       size_t n);
	void (*room)(struct init_call *x, uint64_t until);
	void (*channel_room)(struct init_call *x, uint64_t until);
	void (*exited)(struct init_call *x, const struct wire_exit *end); /* called last */
	void (*refused)(struct init_call *x, const struct err *e);        /* ERROR with its ref */
	void (*answer)(struct init_call *x, const struct frame *f, size_t len,
		       int *fd);           /* other frames */
	void (*lost)(struct init_call *x); /* the connection has ended, and x is detached from it */
};

/* Receives the frames with one ref. */
struct init_call {
	struct init_conn *line; /* NULL: detached */
	struct init_call *next;
	uint32_t ref;
	const struct init_call_ops *on;
	uint64_t next_byte[WIRE_STREAMS],
		granted[WIRE_STREAMS]; /* offsets: expected next, granted */
};

struct init_conn {
	struct frame_conn post;
	char box[WIRE_ID];
	struct init_call *listeners;
	struct init_call *lister; /* the call that has requested EXECS */
	uint32_t next_ref;
	void (*on_gone)(struct init_conn *l, const struct err *why); /* after every lost() */
	void *user;
};

must_check int init_conn_open(struct init_conn *l, struct loop *loop, int take_fd, const char *box,
			      struct err *e);
void init_conn_close(struct init_conn *l);     /* calls no callback; detaches all calls */
void init_conn_box_ended(struct init_conn *l); /* the box has ended: calls every lost(), not
					        * on_gone() */
int init_conn_is_open(const struct init_conn *l);

void init_conn_add_call(struct init_conn *l, struct init_call *x, uint32_t ref,
			const struct init_call_ops *on);
void init_conn_remove_call(struct init_call *x); /* fine if detached */
uint32_t init_conn_new_ref(struct init_conn *l);

/* START; x receives the frames of the exec, x->ref is its ref. cmd->credit is granted for each
 * stream. */
must_check int init_conn_start(struct init_conn *l, struct init_call *x, uint32_t ref,
			       const struct init_call_ops *on, const struct box_command *cmd,
			       struct err *e);
/* READ of the first n streams from these offsets up to those; n 0: only the EXIT. */
void init_conn_attach(struct init_conn *l, struct init_call *x, uint32_t ref,
		      const struct init_call_ops *on, unsigned n, const uint64_t *from,
		      const uint64_t *until);
void init_conn_credit(struct init_call *x, unsigned stream, uint64_t until);
void init_conn_detach(struct init_call *x); /* stops output to x; EXIT still arrives */
void init_conn_signal(struct init_conn *l, uint32_t ref, int signo);
void init_conn_resize(struct init_conn *l, uint32_t ref, uint16_t rows, uint16_t cols);
void init_conn_stdin(struct init_conn *l, uint32_t ref, const void *bytes,
		     size_t n); /* n 0: end of stdin */
void init_conn_channel(struct init_conn *l, uint32_t ref, const void *bytes,
		       size_t n); /* the same */
/* Writes a file below the home before the first exec. Only an error is reported (refused), so START
 * may follow immediately. */
void init_conn_put_early(struct init_conn *l, uint32_t ref, const char *path, const void *bytes,
			 size_t n);
/* LEASE: without another one, all processes of the box stop after ms. */
void init_conn_lease(struct init_conn *l, uint32_t ms);
void init_conn_kill_on_close(struct init_conn *l); /* the box ends when this connection is closed */
/* A frame without a body; x->on->answer or refused gets the answer. */
void init_conn_request(struct init_conn *l, struct init_call *x, const struct init_call_ops *on,
		       uint8_t type, uint16_t flags);
/* The same for CONNECT and LISTEN. */
void init_conn_request_port(struct init_conn *l, struct init_call *x,
			    const struct init_call_ops *on, uint8_t type, uint16_t port);
