/* keeper_client.h - the keeper, asked without waiting.
 * Owns: the connection and the questions that are under way.
 * Every question may be asked again, so a keeper that dies is a delay: the questions wait for the
 * next connection, which the owner brings with keeper_client_connect(). */
#pragma once
#include "client/frame_conn.h"

struct keeper_client;
/* The answer: f (of type `want`) and its descriptor, to be taken by setting *fd to -1; or e. */
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
	void (*on_lost)(struct keeper_client *o); /* there is no keeper now; bring a connection */
};

void keeper_client_init(struct keeper_client *o, struct loop *l,
			void (*on_lost)(struct keeper_client *));
void keeper_client_connect(struct keeper_client *o,
			   int take_fd); /* asks everything again that has no answer */
int keeper_client_is_connected(const struct keeper_client *o);
void keeper_client_fini(struct keeper_client *o);

/* ask: a frame whose ref is filled in. done is called exactly once, never from within this call;
 * keeper_client_cancel() makes it never be called, and an fd that arrives is closed. */
struct keeper_call *keeper_client_request(struct keeper_client *o, const void *ask, size_t len,
					  uint8_t want, keeper_done *done, void *ctx);
void keeper_client_cancel(struct keeper_client *o, struct keeper_call *a);
/* The same for the many questions that are a box's id. */
struct keeper_call *keeper_client_request_box(struct keeper_client *o, uint8_t type, uint16_t flags,
					      const char *id, uint8_t want, keeper_done *done,
					      void *ctx);
