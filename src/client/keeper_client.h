/* keeper_client.h - asynchronous client of the keeper.
 * Owns: the connection and the requests in progress.
 * Requests without a descriptor may be repeated, so a keeper that dies only causes a delay: they
 * wait for the next connection, which the owner passes to keeper_client_connect(). */
#pragma once
#include "client/frame_conn.h"

struct keeper_client;
/* Receives the answer: f (of type `want`) and its descriptor, which it takes by setting *fd to -1;
 * or e. */
typedef void keeper_done(void *ctx, const struct frame *f, size_t len, int *fd,
			 const struct err *e);

struct keeper_call;

struct keeper_client {
	struct loop *loop;
	struct frame_conn post;
	uint32_t next_ref;
	struct keeper_call *asks; /* oldest first */
	struct keeper_call **last;
	unsigned waiting;
	void (*on_lost)(struct keeper_client *o); /* the keeper has disconnected; the owner must get
						   * a new connection */
	const char *refusal; /* of keeper_client_refuse(); NULL: requests wait for a keeper */
	struct timer refuse;
};

void keeper_client_init(struct keeper_client *o, struct loop *l,
			void (*on_lost)(struct keeper_client *));
void keeper_client_connect(struct keeper_client *o,
			   int take_fd); /* sends all requests without an answer again */
/* This machine has no keeper: every request fails with this reason, as "unavailable" (503). why: a constant. */
void keeper_client_refuse(struct keeper_client *o, const char *why);
int keeper_client_is_connected(const struct keeper_client *o);
void keeper_client_fini(struct keeper_client *o);

/* ask: a frame; its ref is filled in here. done is called exactly once, never from within this
 * call. After keeper_client_cancel() it is not called, and a descriptor that arrives is closed. */
struct keeper_call *keeper_client_request(struct keeper_client *o, const void *ask, size_t len,
					  uint8_t want, keeper_done *done, void *ctx);
/* The same with a descriptor. Such a request is sent once: it fails if the keeper ends before it
 * has answered. */
struct keeper_call *keeper_client_request_fd(struct keeper_client *o, const void *ask, size_t len,
					     int take_fd, uint8_t want, keeper_done *done,
					     void *ctx);
void keeper_client_cancel(struct keeper_client *o, struct keeper_call *a);
/* The same for requests whose body is the id of a box. */
struct keeper_call *keeper_client_request_box(struct keeper_client *o, uint8_t type, uint16_t flags,
					      const char *id, uint8_t want, keeper_done *done,
					      void *ctx);

/* ---- checkpoints (docs/checkpoints.md); all of them may be repeated ---- */

/* ask: the box, ids and limits; its head is filled in here. Answer: CHECKPOINTED. */
struct keeper_call *keeper_client_checkpoint(struct keeper_client *o,
					     const struct wire_checkpoint *ask, keeper_done *done,
					     void *ctx);
struct keeper_call *keeper_client_checkpoint_merge(struct keeper_client *o,
						   const struct wire_checkpoint_merge *ask,
						   keeper_done *done, void *ctx);
/* Answer: DONE with a descriptor of the file, read-only. layer/index.h reads an index. */
struct keeper_call *keeper_client_checkpoint_open(struct keeper_client *o, const char *id,
						  enum wire_checkpoint_what what, keeper_done *done,
						  void *ctx);
/* Answer: DONE when its files survive a power failure. */
struct keeper_call *keeper_client_checkpoint_sync(struct keeper_client *o, const char *id,
						  keeper_done *done, void *ctx);
/* flags: WIRE_DROP_*, or 0 for all files. Answer: DONE, also if there are none. */
struct keeper_call *keeper_client_checkpoint_drop(struct keeper_client *o, const char *id,
						  uint16_t flags, keeper_done *done, void *ctx);
/* Answer: LISTED with a struct wire_checkpoint_item each, sorted by id; empty: no more. */
struct keeper_call *keeper_client_checkpoint_list(struct keeper_client *o, const char *after,
						  keeper_done *done, void *ctx);
