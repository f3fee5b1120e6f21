/* webhooks.h - subscriptions of teams to events, and the deliveries that wait or have failed.
 *
 * A subscription has the number up to which all events have arrived or are queued. Events are queued in the
 * same transaction that changes this number: none is missing or queued twice after a crash. A delivery
 * that has arrived is deleted. Of the waiting deliveries of a box only the oldest has a time; the
 * others follow it (STORE_DELIVERY_LATER). */
#pragma once
#include "store/store.h"
#include <stddef.h>

enum { STORE_ERROR = 240, STORE_URL = 2048 };
#define STORE_DELIVERY_LATER INT64_MAX

struct store_webhook {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char name[STORE_NAME + 1];   /* unique in the team */
	char format[STORE_WORD + 1]; /* "atoll" or "e2b" */
	char *url;
	char *events; /* JSON array of patterns */
	void *sealed; /* the encrypted secret */
	size_t sealed_n;
	int enabled;
	int64_t created_ns;
	int64_t seq;   /* of the last event that was queued or skipped */
	uint64_t lost; /* events that were deleted before they could be queued */
	uint64_t delivered;
	int64_t delivered_ns;        /* 0: never */
	char error[STORE_ERROR + 1]; /* of the last attempt; "": it succeeded */
};
void store_webhook_fini(struct store_webhook *x); /* fine on a zeroed one */
struct store_webhooks {
	struct store_webhook *v;
	unsigned n;
	int more;
};
void store_webhooks_fini(struct store_webhooks *l);

/* ERR_CONFLICT: the team has one of this name; ERR_LIMIT: it has `most` of them. */
must_check int store_webhook_add(struct store *s, const struct store_webhook *x, unsigned most,
				 struct err *e);
/* By id or name. */
must_check int store_webhook_find(struct store *s, const char *team, const char *which,
				  struct store_webhook *out, struct err *e);
/* By name. team NULL: the enabled ones of all teams. */
must_check int store_webhook_list(struct store *s, const char *team, struct store_webhooks *out,
				  struct err *e);
/* Changes name, url, events, sealed, enabled and seq. */
must_check int store_webhook_change(struct store *s, const struct store_webhook *x, struct err *e);
must_check int store_webhook_remove(struct store *s, const char *team, const char *id,
				    struct err *e);

struct store_delivery {
	int64_t seq; /* of the event */
	char box[ID_MAX + 1];
	char type[STORE_WORD + 1];
	char *body;
	unsigned attempts;
	int64_t queued_ns, next_ns;
	int status; /* of the last answer; 0: none */
	char error[STORE_ERROR + 1];
};
struct store_deliveries {
	struct store_delivery *v;
	unsigned n;
	int more;
};
void store_deliveries_fini(struct store_deliveries *l);

/* Queues n deliveries and sets the number of the last event; lost is added. 1: queued; 0: another
 * process has queued events since `before`, and nothing was changed. */
must_check int store_delivery_queue(struct store *s, const char *webhook, int64_t before,
				    int64_t seq, uint64_t lost, const struct store_delivery *v,
				    unsigned n, struct err *e);
/* n events have arrived without being queued, all up to seq among them. 1, or 0 as above. */
must_check int store_webhook_arrived(struct store *s, const char *webhook, int64_t before,
				     int64_t seq, uint64_t n, int64_t now_ns, struct err *e);
must_check int store_delivery_due(struct store *s, const char *webhook, int64_t now_ns,
				  unsigned limit, struct store_deliveries *out, struct err *e);
/* When the next one is due; INT64_MAX: none. */
must_check int store_delivery_next(struct store *s, const char *webhook, int64_t *out_ns,
				   struct err *e);
/* It has arrived: deletes it; the next one of its box is due. */
must_check int store_delivery_done(struct store *s, const char *webhook,
				   const struct store_delivery *d, int64_t now_ns, struct err *e);
/* Stores attempts, next_ns, status and error of a failed attempt. */
must_check int store_delivery_retry(struct store *s, const char *webhook,
				    const struct store_delivery *d, struct err *e);
/* It will not be tried again: moves it to the failed ones, of which the newest `most` are kept. The
 * next one of its box is due. */
must_check int store_delivery_fail(struct store *s, const char *webhook,
				   const struct store_delivery *d, int64_t now_ns, unsigned most,
				   struct err *e);
/* Deliveries that wait for an attempt after after_ns are due now. */
must_check int store_delivery_wake(struct store *s, const char *webhook, int64_t now_ns,
				   int64_t after_ns, struct err *e);
/* Failed ones, by number; seq 0: all. They are queued again. */
must_check int store_delivery_replay(struct store *s, const char *webhook, int64_t seq,
				     int64_t now_ns, unsigned *out_n, struct err *e);
/* By number, after `after`. */
must_check int store_delivery_list(struct store *s, const char *webhook, int failed, int64_t after,
				   unsigned limit, struct store_deliveries *out, struct err *e);
must_check int store_delivery_count(struct store *s, const char *webhook, uint64_t *out_waiting,
				    uint64_t *out_failed, struct err *e);
