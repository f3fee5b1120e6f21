/* dispatch.h - queues events for subscriptions and delivers them.
 * Owns:         the enabled subscriptions in memory, the attempts in progress.
 * Does not own: the store, the time and the connections: the caller passes functions, so that a test
 *               can compress a day.
 *
 *   events of the store ── match ──► deliveries ── send ──► 2xx: deleted; the next one of the box follows
 *                                        ▲  │ else
 *                                        └──┴ later; after a day: failed, until it is replayed
 *
 * While a receiver works, deliveries wait in memory (direct.h), and the store has the number up to which all have
 * arrived. After a failure, or when one waits for more than a second, they move to the store.
 *
 * Deliveries of one box are sent one after the other, those of different boxes at the same time. */
#pragma once
#include "base/buf.h"
#include "outbound/outbound.h"
#include "webhook/format.h"

enum {
	DISPATCH_WEBHOOK = 4,
	DISPATCH_QUICK = 16, /* of a receiver that answers quickly */
	DISPATCH_ALL = 64,
	DISPATCH_PAGE = 200
}; /* attempts at once; events read at once */

struct vault;
struct dispatch_conf {
	struct store *store;
	struct vault *vault;
	int64_t (*now_ns)(void *ctx);
	int (*send)(void *ctx, struct outbound_request *r, const struct outbound_message *m,
		    struct err *e);
	void (*cancel)(void *ctx, struct outbound_request *r);
	/* An attempt has ended: dispatch_work() has something to do, at once or with the next events. */
	void (*finished)(void *ctx, int at_once);
	/* The event in the format of E2B; NULL: it has no such event. NULL: no webhook has this
	 * format (tests). */
	json_t *(*e2b_event)(void *ctx, const struct store_event *ev);
	void *ctx;
};

struct dispatch;
struct dispatch *dispatch_new(const struct dispatch_conf *conf);
void dispatch_free(struct dispatch *x); /* attempts in progress are repeated by the next server */
void dispatch_save(
	struct dispatch *x); /* stores what has arrived: the next server does not repeat it */
/* Moves what waits in memory to the store: the webhook will be disabled. */
must_check int dispatch_settle(struct dispatch *x, const char *webhook, struct err *e);
/* Reads the subscriptions again: they were changed. */
void dispatch_reload(struct dispatch *x);
unsigned dispatch_webhooks(const struct dispatch *x); /* enabled ones */
/* Queues new events, starts attempts that are due. Returns when to call it again, in the time of
 * now_ns(); INT64_MAX: when something happens. */
int64_t dispatch_work(struct dispatch *x);

/* The message of one attempt. The texts are those of *out and of d; out is freed with
 * dispatch_message_fini(). */
struct dispatch_message {
	struct outbound_message m;
	struct buf lines;
};
void dispatch_message_make(struct dispatch_message *out, const char *secret,
			   const struct store_webhook *w, const struct store_delivery *d,
			   int64_t now_ns);
void dispatch_message_fini(struct dispatch_message *m);
