/* webhooks.h - /events/webhooks: webhooks in E2B's format. */
#pragma once
#include "api/api.h"

extern const struct field e2b_webhook_fields[], e2b_webhook_change_fields[];

void e2b_webhooks_list(struct call *c);
void e2b_webhooks_create(struct call *c);
void e2b_webhooks_show(struct call *c);
void e2b_webhooks_change(struct call *c);
void e2b_webhooks_delete(struct call *c);
/* An event as E2B sends it; NULL: E2B has none. ctx is the api. */
json_t *e2b_webhook_event(void *ctx, const struct store_event *ev);
