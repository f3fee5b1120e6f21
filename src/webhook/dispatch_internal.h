/* dispatch_internal.h - what the files of the dispatcher share; see dispatch.h.
 * dispatch.c: subscriptions and life. dispatch_queue.c: from events to deliveries. dispatch_send.c: attempts. */
#pragma once
#include "webhook/direct.h"
#include "webhook/dispatch.h"

#define STORE_AGAIN_NS (INT64_C(5) * 1000000000) /* after a failure of the store */
#define DIRECT_NS (INT64_C(1) * 1000000000) /* a receiver that takes longer is not a working one */

struct dispatch_webhook {
	struct store_webhook row;
	json_t *events;
	struct buf secret; /* empty: not decrypted yet */
	struct direct direct;
	int64_t seen; /* all events up to this number were looked at; row.seq is the stored one */
	uint64_t waiting;           /* deliveries */
	unsigned sending, failures; /* attempts; failures of the receiver in a row */
	int is_quick;               /* it answered within DIRECT_QUICK_MS */
	int64_t pause_ns;           /* no attempt before */
};

struct dispatch_attempt {
	struct outbound_request request;
	struct dispatch *all;
	char webhook[ID_MAX + 1]; /* "": free */
	struct store_delivery delivery;
};

struct dispatch {
	struct dispatch_conf conf;
	struct dispatch_webhook *v;
	unsigned n, turn;
	int stale; /* the subscriptions must be read again */
	struct dispatch_attempt attempts[DISPATCH_ALL];
};

int64_t dispatch_now(const struct dispatch *x);
struct dispatch_webhook *dispatch_find(struct dispatch *x, const char *id);

/* Queues new events of all webhooks. -1: the store failed. */
int dispatch_queue(struct dispatch *x);
/* Moves all that has not arrived to the store, which repeats it: attempts in progress continue. */
must_check int dispatch_spill(struct dispatch *x, struct dispatch_webhook *w, struct err *e);

/* Starts attempts. Returns when the next one of this webhook is due. */
int64_t dispatch_send(struct dispatch *x, struct dispatch_webhook *w);
void dispatch_release(struct dispatch_attempt *a);
