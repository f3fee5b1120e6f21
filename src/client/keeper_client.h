/* keeper_client.h - the keeper, asked without waiting.
 * Owns: the connection and the questions that are under way.
 * Every question may be asked again, so a keeper that dies is a delay: the questions wait for the
 * next connection, which the owner brings with office_connect(). */
#pragma once
#include "client/frame_conn.h"

struct office;
/* The answer: f (of type `want`) and its descriptor, to be taken by setting *fd to -1; or e. */
typedef void office_done(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e);

struct office_ask;

struct office {
	struct loop *loop;
	struct post post;
	uint32_t next_ref;
	struct office_ask *asks; /* oldest first */
	struct office_ask **last;
	unsigned waiting;
	void (*on_lost)(struct office *o); /* there is no keeper now; bring a connection */
};

void office_init(struct office *o, struct loop *l, void (*on_lost)(struct office *));
void office_connect(struct office *o, int take_fd); /* asks everything again that has no answer */
int office_connected(const struct office *o);
void office_fini(struct office *o);

/* ask: a frame whose ref is filled in. done is called exactly once, never from within this call;
 * office_forget() makes it never be called, and an fd that arrives is closed. */
struct office_ask *office_ask(struct office *o, const void *ask, size_t len, uint8_t want,
			      office_done *done, void *ctx);
void office_forget(struct office *o, struct office_ask *a);
/* The same for the many questions that are a box's id. */
struct office_ask *office_ask_box(struct office *o, uint8_t type, uint16_t flags, const char *id,
				  uint8_t want, office_done *done, void *ctx);
