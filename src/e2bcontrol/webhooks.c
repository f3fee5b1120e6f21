/* webhooks.c - see webhooks.h. */
#include "e2bcontrol/webhooks.h"
#include "base/cleanup.h"
#include "e2bcontrol/logs.h"
#include "record/record.h"
#include "v1ops/webhooks.h"
#include "webhook/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct field e2b_webhook_fields[] = {
	{ "name", FIELD_TEXT, 1, 1, STORE_NAME, "name of the webhook, unique in the team", NULL },
	{ "url", FIELD_TEXT, 1, 0, STORE_URL, "where events are sent to", NULL },
	{ "enabled", FIELD_BOOL, 0, 0, 0, "false: nothing is sent", NULL },
	{ "events", FIELD_TEXTS, 1, 0, WEBHOOK_EVENTS, "types of events", NULL },
	{ "signatureSecret", FIELD_TEXT, 1, 0, WEBHOOK_SECRET, "key of the signatures", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field e2b_webhook_change_fields[] = {
	{ "name", FIELD_TEXT, 0, 1, STORE_NAME, "name of the webhook, unique in the team", NULL },
	{ "url", FIELD_TEXT, 0, 0, STORE_URL, "where events are sent to", NULL },
	{ "enabled", FIELD_BOOL, 0, 0, 0, "false: nothing is sent", NULL },
	{ "events", FIELD_TEXTS, 0, 0, WEBHOOK_EVENTS, "types of events", NULL },
	{ "signatureSecret", FIELD_TEXT, 0, 0, WEBHOOK_SECRET, "key of the signatures", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

json_t *e2b_webhook_event(void *ctx, const struct store_event *ev)
{
	return logs_lifecycle_json(ctx, ev);
}

static json_t *e2b_webhook_json(const struct store_webhook *x)
{
	json_t *events = json_loads(x->events, 0, NULL);

	return json_pack("{s:s, s:s, s:s, s:o, s:b, s:s, s:o}", "id", x->id, "teamId", x->team,
			 "name", x->name, "createdAt", json_time((uint64_t)x->created_ns),
			 "enabled", x->enabled, "url", x->url, "events",
			 events ? events : json_array());
}

static int e2b_webhook_check_events(const json_t *events, struct err *e)
{
	json_t *one;
	size_t i;

	json_array_foreach((json_t *)events, i, one) if (
		!logs_is_lifecycle(json_string_value(
			one))) return err_set(e, ERR_INVALID,
					      "events[%zu]: '%.60s' is not an event, like sandbox.lifecycle.created",
					      i, json_string_value(one));
	return 0;
}

/* Fields that the body has. */
static int e2b_webhook_read(struct call *c, struct store_webhook *x, struct err *e)
{
	const char *name = call_text(c, "name", NULL), *url = call_text(c, "url", NULL);
	const json_t *events = call_get(c, "events");

	if (name)
		snprintf(x->name, sizeof(x->name), "%s", name);
	if (url) {
		free(x->url);
		x->url = strdup(url);
	}
	if (events) {
		free(x->events);
		x->events = json_dumps(events, JSON_COMPACT);
	}
	x->enabled = call_flag(c, "enabled", x->enabled);
	return e2b_webhook_check_events(events, e);
}

void e2b_webhooks_create(struct call *c)
{
	struct store_webhook x = { .enabled = 1, .format = "e2b" };
	struct err e;

	if (e2b_webhook_read(c, &x, &e) < 0 ||
	    v1_webhooks_add(c, &x, call_text(c, "signatureSecret", ""), &e) < 0)
		call_fail(c, &e);
	else
		call_shared(c, "webhook", x.id, 201, e2b_webhook_json(&x));
	store_webhook_fini(&x);
}

void e2b_webhooks_list(struct call *c)
{
	struct store_webhooks rows = { 0 };
	json_t *items = json_array();
	struct err e;

	if (store_webhook_list(c->api->store, c->who.team, &rows, &e) < 0) {
		json_decref(items);
		call_fail(c, &e);
		return;
	}
	for (unsigned i = 0; i < rows.n; i++)
		if (strcmp(rows.v[i].format, "e2b") == 0)
			json_array_append_new(items, e2b_webhook_json(&rows.v[i]));
	store_webhooks_fini(&rows);
	call_json(c, 200, items);
}

void e2b_webhooks_show(struct call *c)
{
	struct store_webhook x = { 0 };

	if (v1_webhooks_find(c, &x))
		call_json(c, 200, e2b_webhook_json(&x));
	store_webhook_fini(&x);
}

void e2b_webhooks_change(struct call *c)
{
	struct store_webhook x = { 0 };
	int was_enabled;
	struct err e;

	if (!v1_webhooks_find(c, &x))
		return;
	was_enabled = x.enabled;
	if (e2b_webhook_read(c, &x, &e) < 0 ||
	    v1_webhooks_store(c, &x, call_text(c, "signatureSecret", NULL), was_enabled, &e) < 0)
		call_fail(c, &e);
	else
		call_shared(c, "webhook", x.id, 200, e2b_webhook_json(&x));
	store_webhook_fini(&x);
}

void e2b_webhooks_delete(struct call *c)
{
	struct store_webhook x = { 0 };
	struct err e;

	if (!v1_webhooks_find(c, &x))
		return;
	if (v1_webhooks_remove(c, &x, &e) < 0)
		call_fail(c, &e);
	else
		call_shared(c, "webhook", x.id, 200, NULL);
	store_webhook_fini(&x);
}
