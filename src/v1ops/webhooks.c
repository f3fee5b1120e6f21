/* webhooks.c - see webhooks.h. The secret of a webhook is in no answer, except the one that was
 * generated, in the answer that creates it. */
#include "v1ops/webhooks.h"
#include "api/auth.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "record/record.h"
#include "secret/vault.h"
#include "webhook/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_HELP "types of events, with * for any text: box.*, exec.ended (default: all)"

const struct field v1_webhooks_create_fields[] = {
	/* clang-format off */
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name of the webhook, unique in the team", NULL },
	{ "url", FIELD_TEXT, 1, 0, STORE_URL, "where events are sent to, http or https", NULL },
	{ "events", FIELD_TEXTS, 0, 0, WEBHOOK_EVENTS, EVENTS_HELP, NULL },
	{ "secret", FIELD_TEXT, 0, 0, WEBHOOK_SECRET, "key of the signatures, 8 to 256 bytes (default: a generated one, which only this answer contains)", NULL },
	{ "enabled", FIELD_BOOL, 0, 0, 0, "false: nothing is sent (default true)", NULL },
	{ 0 },
	/* clang-format on */
};
const struct field v1_webhooks_change_fields[] = {
	/* clang-format off */
	{ "url", FIELD_TEXT, 0, 0, STORE_URL, "where events are sent to, http or https", NULL },
	{ "events", FIELD_TEXTS, 0, 0, WEBHOOK_EVENTS, EVENTS_HELP, NULL },
	{ "secret", FIELD_TEXT, 0, 0, WEBHOOK_SECRET, "key of the signatures, 8 to 256 bytes", NULL },
	{ "enabled", FIELD_BOOL, 0, 0, 0, "false: nothing is sent; events until it is enabled again are skipped", NULL },
	{ 0 },
	/* clang-format on */
};
const struct field v1_webhooks_failed_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_INT, 0, 0, INT64_MAX, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field v1_webhooks_replay_fields[] = {
	{ "seq", FIELD_INT, 0, 1, INT64_MAX, "number of the event (default: all failed ones)",
	  NULL },
	{ 0 },
};

static json_t *webhook_moment(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

/* A URL may contain a token: viewers do not see it. */
static json_t *webhook_json(struct call *c, const struct store_webhook *x)
{
	json_t *events = x->events ? json_loads(x->events, 0, NULL) : NULL, *doc;
	uint64_t waiting = 0, failed = 0;
	struct err e;

	(void)!store_delivery_count(c->api->store, x->id, &waiting, &failed, &e);
	doc = json_pack("{s:s, s:s, s:o, s:s, s:b, s:o, s:I, s:I, s:I, s:o, s:I, s:s}", "id", x->id,
			"name", x->name, "events", events ? events : json_array(), "format",
			x->format, "enabled", x->enabled, "created", webhook_moment(x->created_ns),
			"waiting", (json_int_t)waiting, "failed", (json_int_t)failed, "delivered",
			(json_int_t)x->delivered, "delivered_at", webhook_moment(x->delivered_ns),
			"lost", (json_int_t)x->lost, "error", x->error);
	if (c->who.role >= ROLE_EDITOR)
		json_object_set_new(doc, "url", json_string(x->url));
	return doc;
}

int v1_webhooks_find(struct call *c, struct store_webhook *out)
{
	const char *which = call_param(c, 0);
	struct err e;

	if (store_webhook_find(c->api->store, c->who.team, which, out, &e) == 0)
		return 1;
	if (e.kind == ERR_NOT_FOUND)
		call_error(c, 404, "not_found", "there is no such webhook", which,
			   "list them: GET /v1/webhooks");
	else
		call_fail(c, &e);
	return 0;
}

/* ---- changes ---- */

static int webhook_seal(struct call *c, struct store_webhook *x, const char *secret, struct err *e)
{
	struct buf sealed = { 0 };

	if (webhook_check_secret(secret, e) < 0)
		return -1;
	if (vault_seal(c->api->fleet.vault, x->id, secret, strlen(secret), &sealed, e) < 0) {
		buf_fini(&sealed);
		return -1;
	}
	free(x->sealed);
	x->sealed_n = sealed.len;
	x->sealed = buf_steal(&sealed);
	return 0;
}

static int webhook_check_events(const char *events, struct err *e)
{
	json_t *list = json_loads(events, 0, NULL), *one;
	size_t i;
	int rc = json_array_size(list) ? 0
				       : err_set(e, ERR_INVALID, "events: at least one is needed");

	json_array_foreach(list, i, one)
	{
		if (rc == 0 && webhook_check_pattern(json_string_value(one), e) < 0)
			rc = err_in(e, "events[%zu]", i);
	}
	json_decref(list);
	return rc;
}

/* Events until now are not sent. */
static int webhook_from_now(struct call *c, struct store_webhook *x, struct err *e)
{
	int64_t first;

	return store_event_range(c->api->store, &first, &x->seq, e);
}

int v1_webhooks_add(struct call *c, struct store_webhook *x, const char *secret, struct err *e)
{
	x->created_ns = fleet_now_ns();
	snprintf(x->team, sizeof(x->team), "%s", c->who.team);
	if (webhook_check_url(x->url, e) < 0 || webhook_check_events(x->events, e) < 0 ||
	    id_new(x->id, e) < 0 || webhook_seal(c, x, secret, e) < 0 ||
	    webhook_from_now(c, x, e) < 0 ||
	    store_webhook_add(c->api->store, x, WEBHOOKS_TEAM, e) < 0)
		return -1;
	webhook_runner_changed(c->api->webhooks);
	return 0;
}

int v1_webhooks_store(struct call *c, struct store_webhook *x, const char *secret, int was_enabled,
		      struct err *e)
{
	if (webhook_check_url(x->url, e) < 0 || webhook_check_events(x->events, e) < 0 ||
	    (secret && webhook_seal(c, x, secret, e) < 0) ||
	    (x->enabled && !was_enabled && webhook_from_now(c, x, e) < 0) ||
	    (!x->enabled && was_enabled && webhook_runner_settle(c->api->webhooks, x->id, e) < 0) ||
	    store_webhook_change(c->api->store, x, e) < 0)
		return -1;
	webhook_runner_changed(c->api->webhooks);
	return 0;
}

int v1_webhooks_remove(struct call *c, const struct store_webhook *x, struct err *e)
{
	if (store_webhook_remove(c->api->store, x->team, x->id, e) < 0)
		return -1;
	webhook_runner_changed(c->api->webhooks);
	call_audit(c, "webhook.delete", x->id, "ok");
	return 0;
}

static void webhook_set_text(char **at, const char *text)
{
	if (!text)
		return;
	free(*at);
	*at = strdup(text);
	if (!*at)
		abort();
}

static void webhook_read_events(struct call *c, struct store_webhook *x)
{
	const json_t *events = call_get(c, "events");

	if (!events && x->events)
		return;
	free(x->events);
	x->events = events ? json_dumps(events, JSON_COMPACT) : strdup("[\"*\"]");
}

static int webhook_generate(char out[64], struct err *e)
{
	uint8_t bytes[24];

	if (id_random(bytes, sizeof(bytes), e) < 0)
		return -1;
	snprintf(out, 64, "whsec_");
	hex_encode(out + 6, bytes, sizeof(bytes));
	return 0;
}

/* The secret is not stored in an audit row. */
void v1_webhooks_create(struct call *c)
{
	const char *secret = call_text(c, "secret", NULL);
	struct store_webhook x = { .enabled = call_flag(c, "enabled", 1), .format = "atoll" };
	char generated[64] = "";
	json_t *doc;
	struct err e;

	snprintf(x.name, sizeof(x.name), "%s", call_text(c, "name", ""));
	webhook_set_text(&x.url, call_text(c, "url", ""));
	webhook_read_events(c, &x);
	if ((!secret && webhook_generate(generated, &e) < 0) ||
	    v1_webhooks_add(c, &x, secret ? secret : generated, &e) < 0) {
		call_audit(c, "webhook.create", x.name, err_kind_name(e.kind));
		call_fail(c, &e);
	} else {
		call_audit(c, "webhook.create", x.id, "ok");
		doc = webhook_json(c, &x);
		if (!secret)
			json_object_set_new(doc, "secret", json_string(generated));
		http_set(c->req, "Cache-Control", "no-store");
		http_set(c->req, "Location", "/v1/webhooks/%s", x.id);
		call_shared(c, "webhook", x.id, 201, doc);
	}
	explicit_bzero(generated, sizeof(generated));
	store_webhook_fini(&x);
}

void v1_webhooks_change(struct call *c)
{
	struct store_webhook x = { 0 };
	int was_enabled;
	struct err e;

	if (!v1_webhooks_find(c, &x))
		return;
	was_enabled = x.enabled;
	x.enabled = call_flag(c, "enabled", x.enabled);
	webhook_set_text(&x.url, call_text(c, "url", NULL));
	webhook_read_events(c, &x);
	if (v1_webhooks_store(c, &x, call_text(c, "secret", NULL), was_enabled, &e) < 0)
		call_fail(c, &e);
	else
		call_shared(c, "webhook", x.id, 200, webhook_json(c, &x));
	store_webhook_fini(&x);
}

void v1_webhooks_delete(struct call *c)
{
	struct store_webhook x = { 0 };
	struct err e;

	if (!v1_webhooks_find(c, &x))
		return;
	if (v1_webhooks_remove(c, &x, &e) < 0)
		call_fail(c, &e);
	else
		call_shared(c, "webhook", x.id, 204, NULL);
	store_webhook_fini(&x);
}

/* ---- reading: in a cluster each machine delivers the events of its own boxes ---- */

static json_int_t webhook_count(const json_t *doc, const char *name)
{
	return json_integer_value(json_object_get(doc, name));
}

static void webhook_merge(json_t *doc, const json_t *other)
{
	static const char *const counts[] = { "waiting", "failed", "delivered", "lost" };
	const char *error = json_string_value(json_object_get(other, "error")),
		   *at = json_string_value(json_object_get(other, "delivered_at")),
		   *last = json_string_value(json_object_get(doc, "delivered_at"));

	for (unsigned i = 0; i < ARRAY_LEN(counts); i++)
		json_object_set_new(doc, counts[i],
				    json_integer(webhook_count(doc, counts[i]) +
						 webhook_count(other, counts[i])));
	if (error && *error)
		json_object_set_new(doc, "error", json_string(error));
	if (at && (!last || strcmp(at, last) > 0))
		json_object_set_new(doc, "delivered_at", json_string(at));
}

static void webhook_merge_list(json_t *doc, const json_t *other)
{
	json_t *one, *more;
	size_t i, k;

	json_array_foreach(json_object_get(doc, "items"), i, one) json_array_foreach(
		json_object_get(other, "items"), k,
		more) if (json_equal(json_object_get(one, "id"), json_object_get(more, "id")))
		webhook_merge(one, more);
}

static int64_t webhook_next(const json_t *doc)
{
	const char *next = json_string_value(json_object_get(doc, "next"));

	return next ? strtoll(next, NULL, 10) : INT64_MAX;
}

/* Each machine has sent all after the position of the request, up to its own `next`. */
static void webhook_merge_failed(json_t *doc, const json_t *other)
{
	json_t *items = json_object_get(doc, "items");
	int64_t mine = webhook_next(doc), more = webhook_next(other),
		last = mine < more ? mine : more;

	json_array_extend(items, json_object_get(other, "items"));
	for (size_t i = json_array_size(items); last < INT64_MAX && i-- > 0;)
		if (webhook_count(json_array_get(items, i), "seq") > last)
			json_array_remove(items, i);
	if (last < mine)
		json_object_set(doc, "next", json_object_get(other, "next"));
}

static void webhook_merge_replayed(json_t *doc, const json_t *other)
{
	json_object_set_new(
		doc, "replayed",
		json_integer(webhook_count(doc, "replayed") + webhook_count(other, "replayed")));
}

void v1_webhooks_list(struct call *c)
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
		json_array_append_new(items, webhook_json(c, &rows.v[i]));
	store_webhooks_fini(&rows);
	call_merged(c, 200, json_pack("{s:o, s:n}", "items", items, "next"), webhook_merge_list);
}

void v1_webhooks_show(struct call *c)
{
	struct store_webhook x = { 0 };

	if (v1_webhooks_find(c, &x))
		call_merged(c, 200, webhook_json(c, &x), webhook_merge);
	store_webhook_fini(&x);
}

static json_t *delivery_json(const struct store_delivery *d)
{
	json_t *event = json_loads(d->body, 0, NULL);

	return json_pack("{s:I, s:s, s:s, s:I, s:o, s:I, s:s, s:o}", "seq", (json_int_t)d->seq,
			 "box", d->box, "type", d->type, "attempts", (json_int_t)d->attempts,
			 "queued", webhook_moment(d->queued_ns), "status", (json_int_t)d->status,
			 "error", d->error, "event", event ? event : json_object());
}

void v1_webhooks_failed(struct call *c)
{
	struct store_deliveries rows = { 0 };
	struct store_webhook x = { 0 };
	json_t *items = json_array();
	char next[24] = "";
	struct err e;

	if (!v1_webhooks_find(c, &x)) {
		json_decref(items);
		return;
	}
	if (store_delivery_list(c->api->store, x.id, 1, call_query_int(c, "after", 0),
				(unsigned)call_query_int(c, "limit", 0), &rows, &e) < 0) {
		json_decref(items);
		call_fail(c, &e);
	} else {
		for (unsigned i = 0; i < rows.n; i++)
			json_array_append_new(items, delivery_json(&rows.v[i]));
		if (rows.more)
			snprintf(next, sizeof(next), "%lld", (long long)rows.v[rows.n - 1].seq);
		call_merged(c, 200,
			    json_pack("{s:o, s:s?}", "items", items, "next", *next ? next : NULL),
			    webhook_merge_failed);
	}
	store_deliveries_fini(&rows);
	store_webhook_fini(&x);
}

void v1_webhooks_replay(struct call *c)
{
	int64_t seq = call_int(c, "seq", 0);
	struct store_webhook x = { 0 };
	unsigned n = 0;
	struct err e;

	if (!v1_webhooks_find(c, &x))
		return;
	if (store_delivery_replay(c->api->store, x.id, seq, fleet_now_ns(), &n, &e) < 0) {
		call_fail(c, &e);
	} else if (seq && !n && !c->api->merged) {
		call_error(c, 404, "not_found", "this webhook has no such failed delivery", NULL,
			   "list them: GET /v1/webhooks/{webhook}/failed");
	} else {
		webhook_runner_changed(c->api->webhooks);
		call_merged(c, 200, json_pack("{s:I}", "replayed", (json_int_t)n),
			    webhook_merge_replayed);
	}
	store_webhook_fini(&x);
}

/* ---- the test ---- */

struct webhook_trial {
	struct outbound_request request;
	struct call *call;
};

static void trial_drop(struct call *c)
{
	struct webhook_trial *t = c->state;

	outbound_cancel(&t->request);
	free(t);
	c->state = NULL;
}

static void trial_done(struct outbound_request *r, const struct outbound_answer *a,
		       const struct err *e)
{
	struct call *c = loop_owner(r, struct webhook_trial, request)->call;

	call_json(c, 200,
		  json_pack("{s:b, s:I, s:I, s:s, s:s}", "delivered",
			    a && a->status >= 200 && a->status < 300, "status",
			    (json_int_t)(a ? a->status : 0), "took_ms",
			    (json_int_t)(a ? a->took_ms : 0), "body", a ? a->body : "", "error",
			    e ? e->msg : ""));
}

static int trial_send(struct call *c, const struct store_webhook *x, struct webhook_trial *t,
		      struct err *e)
{
	struct store_event ev = { .at_ns = fleet_now_ns(), .type = "webhook.test" };
	auto_secret struct buf secret = { 0 };
	auto_buf struct buf body = { 0 };
	struct dispatch_message message;
	int rc;

	if (vault_unseal(c->api->fleet.vault, x->id, x->sealed, x->sealed_n, &secret, e) < 0)
		return err_in(e, "secret of the webhook");
	snprintf(ev.team, sizeof(ev.team), "%s", x->team);
	webhook_event_text(&body, &ev);
	dispatch_message_make(&message, buf_str(&secret), x,
			      &(struct store_delivery){ .body = body.p }, ev.at_ns);
	rc = outbound_send(c->api->outbound, &t->request, &message.m, e);
	dispatch_message_fini(&message);
	return rc;
}

void v1_webhooks_test(struct call *c)
{
	struct webhook_trial *t = calloc(1, sizeof(*t));
	struct store_webhook x = { 0 };
	struct err e;

	if (!t)
		abort();
	*t = (struct webhook_trial){ .request.done = trial_done, .call = c };
	if (!v1_webhooks_find(c, &x)) {
		free(t);
		return;
	}
	if (trial_send(c, &x, t, &e) < 0) {
		free(t);
		call_fail(c, &e);
	} else {
		c->state = t;
		c->drop = trial_drop;
	}
	store_webhook_fini(&x);
}
