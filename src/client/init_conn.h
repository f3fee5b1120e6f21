/* init_conn.h - one connection to one box's init, on the loop, and those who listen on it.
 * Owns: the connection. Listeners belong to their makers, who remove them before they are freed.
 * What comes from the box is checked here: offsets that were not asked for end the line. */
#pragma once
#include "client/box_handle.h"
#include "client/frame_conn.h"

struct line;
struct listener;

struct listen_events { /* all may be NULL */
	void (*started)(struct listener *x, int pid);
	void (*reading)(struct listener *x, unsigned stream, uint64_t from, uint64_t tip);
	void (*output)(struct listener *x, unsigned stream, uint64_t offset, const char *bytes,
		       size_t n);
	void (*room)(struct listener *x, uint64_t until);
	void (*channel_room)(struct listener *x, uint64_t until);
	void (*exited)(struct listener *x, const struct wire_exit *end); /* the last one */
	void (*refused)(struct listener *x, const struct err *e);        /* ERROR with its ref */
	void (*answer)(struct listener *x, const struct frame *f, size_t len, int *fd); /* others */
	void (*lost)(struct listener *x); /* the line is no more, and x no longer on it */
};

/* Somebody who waits for frames with one ref. */
struct listener {
	struct line *line; /* NULL: not on one */
	struct listener *next;
	uint32_t ref;
	const struct listen_events *on;
	uint64_t next_byte[WIRE_STREAMS], granted[WIRE_STREAMS]; /* offsets: expected next, promised */
};

struct line {
	struct post post;
	char box[WIRE_ID];
	struct listener *listeners;
	struct listener *lister; /* asked for EXECS */
	uint32_t next_ref;
	void (*on_gone)(struct line *l, const struct err *why); /* after every lost() */
	void *user;
};

must_check int line_open(struct line *l, struct loop *loop, int take_fd, const char *box,
			 struct err *e);
void line_close(struct line *l); /* tells nobody; listeners are taken off */
void line_end(struct line *l);   /* its box has ended: every lost(), no on_gone() */
int line_is_open(const struct line *l);

void line_listen(struct line *l, struct listener *x, uint32_t ref, const struct listen_events *on);
void line_unlisten(struct listener *x); /* fine on one that is on no line */
uint32_t line_new_ref(struct line *l);

/* START with x as its listener; x->ref is the exec's. cmd->credit is granted for each stream. */
must_check int line_start(struct line *l, struct listener *x, uint32_t ref,
			  const struct listen_events *on, const struct box_command *cmd,
			  struct err *e);
/* READ of the first n streams from these offsets and up to those; 0: only the EXIT. */
void line_read(struct line *l, struct listener *x, uint32_t ref, const struct listen_events *on,
	       unsigned n, const uint64_t *from, const uint64_t *until);
void line_credit(struct listener *x, unsigned stream, uint64_t until);
void line_leave(struct listener *x); /* no more output to here; EXIT still comes */
void line_signal(struct line *l, uint32_t ref, int signo);
void line_resize(struct line *l, uint32_t ref, uint16_t rows, uint16_t cols);
void line_stdin(struct line *l, uint32_t ref, const void *bytes, size_t n); /* n 0: its end */
void line_channel(struct line *l, uint32_t ref, const void *bytes, size_t n); /* the same */
/* A file below the home, before anything is started; x is told what went wrong (refused), else
 * nothing: START may follow at once. */
void line_lay(struct line *l, uint32_t ref, const char *path, const void *bytes, size_t n);
void line_leash(struct line *l); /* the box ends with this line */
/* A frame without a body; answers come to x->on->answer or refused. */
void line_ask(struct line *l, struct listener *x, const struct listen_events *on, uint8_t type,
	      uint16_t flags);
/* The same for CONNECT and LISTEN. */
void line_ask_port(struct line *l, struct listener *x, const struct listen_events *on, uint8_t type,
		   uint16_t port);
