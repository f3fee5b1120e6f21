/* webhooks.h - /v1/webhooks: subscriptions of a team to events, their failed deliveries, a test. */
#pragma once
#include "api/api.h"
#include "store/webhooks.h"

extern const struct field v1_webhooks_create_fields[], v1_webhooks_change_fields[],
	v1_webhooks_failed_query[], v1_webhooks_replay_fields[];

void v1_webhooks_list(struct call *c);
void v1_webhooks_create(struct call *c);
void v1_webhooks_show(struct call *c);
void v1_webhooks_change(struct call *c);
void v1_webhooks_delete(struct call *c);
void v1_webhooks_test(struct call *c);
void v1_webhooks_failed(struct call *c);
void v1_webhooks_replay(struct call *c);

/* ---- for other surfaces ---- */

/* Checks name, url and events of x, encrypts the secret, and stores it with a new id. Events before
 * now are not sent. */
must_check int v1_webhooks_add(struct call *c, struct store_webhook *x, const char *secret,
			       struct err *e);
/* Stores x, which was read before; secret NULL: unchanged. was_enabled: before the change. */
must_check int v1_webhooks_store(struct call *c, struct store_webhook *x, const char *secret,
				 int was_enabled, struct err *e);
must_check int v1_webhooks_remove(struct call *c, const struct store_webhook *x, struct err *e);
/* The webhook that parameter 0 names, by id or name; 0: there is none, and 404 was sent. */
int v1_webhooks_find(struct call *c, struct store_webhook *out);
