/* init_conn.h - one connection to one box's init, on the loop, and those who listen on it.
 * Owns: the connection. Listeners belong to their makers, who remove them before they are freed.
 * What comes from the box is checked here: offsets that were not asked for end the line. */
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
	void (*exited)(struct init_call *x, const struct wire_exit *end); /* the last one */
	void (*refused)(struct init_call *x, const struct err *e);        /* ERROR with its ref */
	void (*answer)(struct init_call *x, const struct frame *f, size_t len,
		       int *fd);           /* others */
	void (*lost)(struct init_call *x); /* the line is no more, and x no longer on it */
};

/* Somebody who waits for frames with one ref. */
struct init_call {
	struct init_conn *line; /* NULL: not on one */
	struct init_call *next;
	uint32_t ref;
	const struct init_call_ops *on;
	uint64_t next_byte[WIRE_STREAMS],
		granted[WIRE_STREAMS]; /* offsets: expected next, promised */
};

struct init_conn {
	struct frame_conn post;
	char box[WIRE_ID];
	struct init_call *listeners;
	struct init_call *lister; /* asked for EXECS */
	uint32_t next_ref;
	void (*on_gone)(struct init_conn *l, const struct err *why); /* after every lost() */
	void *user;
};

must_check int init_conn_open(struct init_conn *l, struct loop *loop, int take_fd, const char *box,
			      struct err *e);
void init_conn_close(struct init_conn *l);     /* tells nobody; listeners are taken off */
void init_conn_box_ended(struct init_conn *l); /* its box has ended: every lost(), no on_gone() */
int init_conn_is_open(const struct init_conn *l);

void init_conn_add_call(struct init_conn *l, struct init_call *x, uint32_t ref,
			const struct init_call_ops *on);
void init_conn_remove_call(struct init_call *x); /* fine on one that is on no line */
uint32_t init_conn_new_ref(struct init_conn *l);

/* START with x as its listener; x->ref is the exec's. cmd->credit is granted for each stream. */
must_check int init_conn_start(struct init_conn *l, struct init_call *x, uint32_t ref,
			       const struct init_call_ops *on, const struct box_command *cmd,
			       struct err *e);
/* READ of the first n streams from these offsets and up to those; 0: only the EXIT. */
void init_conn_attach(struct init_conn *l, struct init_call *x, uint32_t ref,
		      const struct init_call_ops *on, unsigned n, const uint64_t *from,
		      const uint64_t *until);
void init_conn_credit(struct init_call *x, unsigned stream, uint64_t until);
void init_conn_detach(struct init_call *x); /* no more output to here; EXIT still comes */
void init_conn_signal(struct init_conn *l, uint32_t ref, int signo);
void init_conn_resize(struct init_conn *l, uint32_t ref, uint16_t rows, uint16_t cols);
void init_conn_stdin(struct init_conn *l, uint32_t ref, const void *bytes,
		     size_t n); /* n 0: its end */
void init_conn_channel(struct init_conn *l, uint32_t ref, const void *bytes,
		       size_t n); /* the same */
/* A file below the home, before anything is started; x is told what went wrong (refused), else
 * nothing: START may follow at once. */
void init_conn_put_early(struct init_conn *l, uint32_t ref, const char *path, const void *bytes,
			 size_t n);
void init_conn_kill_on_close(struct init_conn *l); /* the box ends with this line */
/* A frame without a body; answers come to x->on->answer or refused. */
void init_conn_request(struct init_conn *l, struct init_call *x, const struct init_call_ops *on,
		       uint8_t type, uint16_t flags);
/* The same for CONNECT and LISTEN. */
void init_conn_request_port(struct init_conn *l, struct init_call *x,
			    const struct init_call_ops *on, uint8_t type, uint16_t port);
