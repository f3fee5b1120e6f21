/* batch.c - see batch.h.
 *
 *   body, as it arrives -> batch_add() -> ...       batch/batch.c runs it
 *   ID.out, from an offset on ------------------->   the answer
 *
 * Both happen at the same time, and neither waits for the other: results that the client does not
 * read stay in the file. So a client can disconnect and fetch the rest later: GET
 * .../results?after=N. */
#include "v1run/batch.h"
#include "api/charges.h"
#include "api/event_stream.h"
#include "api/fields.h"
#include "api/isolation.h"
#include "api/page.h"
#include "api/quota.h"
#include "record/record.h"
#include "batch/batch.h"
#include "http/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 64 * 1024, PING_MS = 15000, ATTACHED_PING_MS = 1000 };

#define OPTION_FIELDS                                                                                \
	{ "language", FIELD_NAME, 0, 0, 32, "language of items without a language", NULL },          \
		{ "timeout_ms",                                                                      \
		  FIELD_INT,                                                                         \
		  0,                                                                                 \
		  1,                                                                                 \
		  3600000,                                                                           \
		  "time limit of items without a limit (default 30 s)",                              \
		  NULL },                                                                            \
		{ "max_output",                                                                      \
		  FIELD_INT,                                                                         \
		  0,                                                                                 \
		  0,                                                                                 \
		  ITEM_OUTPUT_MAX,                                                                   \
		  "maximum number of bytes returned of each stream (default 16 KiB)",                \
		  NULL },                                                                            \
		{ "jobs", FIELD_INT, 0, 1, 10000, "maximum number of simultaneous programs", NULL }, \
		{ "record", FIELD_BOOL, 0,                                                           \
		  0,        0,          "store a run record for each program (GET /v1/runs)",        \
		  NULL },                                                                            \
	{                                                                                            \
		"detach", FIELD_BOOL, 0, 0, 0, "false: end the batch when this connection closes",   \
			NULL                                                                         \
	}

const struct field batch_query[] = { OPTION_FIELDS, ISOLATION_QUERY, { 0 } };
const struct field batch_body_fields[] = {
	OPTION_FIELDS,
	ISOLATION_FIELDS,
	{ "items", FIELD_ANY, 1, 0, 0, "the list of items", NULL },
	{ 0 },
};
const struct field batch_list_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field batch_results_query[] = {
	{ "after", FIELD_INT, 0, 0, UINT32_MAX - 2, "results after this number (default 0)", NULL },
	{ "follow", FIELD_BOOL, 0, 0, 0, "false: return existing results only, do not wait", NULL },
	{ 0 },
};
const struct field batch_delete_query[] = {
	{ "forget", FIELD_BOOL, 0, 0, 0, "also delete the files and the row of the batch", NULL },
	{ 0 },
};

struct batch_reader {
	struct batch_watch watch;
	struct call *call;
	struct event_stream event_stream;
	struct timer ping;
	struct buf text; /* SSE: the beginning of a line */
	int sends;       /* the client is still sending the body */
	int attached;
	int begun, full, once;
};

/* ---- results ---- */

/* The server has written this line, so parsing cannot fail. */
static int64_t number_of(const char *line)
{
	const char *n = strstr(line, "\"n\":");

	return n ? strtoll(n + 4, NULL, 10) : 0;
}

static void send_lines(struct batch_reader *r)
{
	auto_buf struct buf out = { 0 };
	char *at = r->text.p, *end = r->text.p + r->text.len, *nl;

	while (at < end && (nl = memchr(at, '\n', (size_t)(end - at)))) {
		*nl = 0;
		buf_printf(&out, "id: %lld\ndata: ", (long long)number_of(at));
		buf_add(&out, at, (size_t)(nl - at));
		buf_puts(&out, "\n\n");
		at = nl + 1;
	}
	memmove(r->text.p, at, (size_t)(end - at));
	buf_cut(&r->text, (size_t)(end - at));
	if (out.len)
		r->full = http_write(r->call->req, out.p, out.len);
}

/* 0: no more results at the moment. */
static int send_piece(struct batch_reader *r)
{
	static char piece[PIECE];
	struct err e;
	int n = batch_read(&r->watch, piece, sizeof(piece), &e);

	if (n < 0) {
		http_abort(r->call->req); /* the client reconnects and continues at its position */
		return 0;
	}
	r->watch.at += (uint64_t)n;
	if (n && r->event_stream.kind == EVENT_STREAM_SSE) {
		buf_add(&r->text, piece, (size_t)n);
		send_lines(r);
	} else if (n) {
		r->full = http_write(r->call->req, piece, (size_t)n);
	}
	return n > 0;
}

static void batch_stop(struct batch_reader *r)
{
	batch_unwatch(&r->watch);
	timer_fini(&r->ping);
	buf_fini(&r->text);
	r->call->drop = NULL;
	r->call->state = NULL;
	r->call->req->on_drain = NULL;
	r->call->req->on_body = NULL;
	r->call->req->on_body_end = NULL;
}

static json_t *batch_add_cost(struct api *a, json_t *doc)
{
	const char *id = json_string_value(json_object_get(doc, "id"));

	json_object_set_new(doc, "cost", charges_total_json(a, id ? id : ""));
	return doc;
}

static void send_end(struct batch_reader *r)
{
	json_t *doc = json_pack("{s:s}", "type", "end");

	json_object_update_new(doc, batch_json(r->watch.batch));
	batch_add_cost(r->call->api, doc);
	event_stream_event(&r->event_stream, doc);
}

static void send_more(struct batch_reader *r)
{
	const struct batch *b = r->watch.batch;

	if (!r->begun)
		return;
	while (!r->full && send_piece(r))
		;
	if (r->full || r->watch.at < batch_results(b))
		return;
	if (batch_is_complete(b))
		send_end(r);
	else if (!r->once)
		return;
	event_stream_end(&r->event_stream);
	batch_stop(r);
}

static void batch_news(struct batch_watch *w)
{
	struct batch_reader *r = loop_owner(w, struct batch_reader, watch);

	if (!r->full)
		send_more(r);
}

static void has_room(struct http_req *q)
{
	struct call *c = q->user;
	struct batch_reader *r = c->state;

	if (!r)
		return;
	r->full = 0;
	send_more(r);
}

/* A client that has closed its side may still be reading; only a write shows whether it is
 * connected. Pings detect a client that has disappeared, and do so early if the batch is to end
 * with its client. */
static void set_ping(struct batch_reader *r)
{
	timer_set(&r->ping, r->attached ? ATTACHED_PING_MS : PING_MS);
}

static void ping_due(struct timer *t)
{
	struct batch_reader *r = loop_owner(t, struct batch_reader, ping);

	if (r->begun && !r->full && !r->text.len)
		r->full = event_stream_event(&r->event_stream, json_pack("{s:s}", "type", "ping"));
	set_ping(r);
}

static void batch_begin(struct batch_reader *r)
{
	struct call *c = r->call;

	if (r->begun)
		return;
	r->begun = 1;
	event_stream_begin(&r->event_stream, c->req,
			   event_stream_wanted(c) == EVENT_STREAM_SSE ? EVENT_STREAM_SSE
								      : EVENT_STREAM_NDJSON);
	event_stream_event(&r->event_stream, json_pack("{s:s, s:s}", "type", "batch", "id",
						       batch_row(r->watch.batch)->id));
	set_ping(r);
}

/* The client has disconnected, or the server is about to exit. */
static void batch_left(struct call *c)
{
	struct batch_reader *r = c->state;
	struct batch *b = r->watch.batch;

	if (r->attached && !batch_is_complete(b))
		batch_cancel(b);
	else if (r->sends)
		batch_received(b, 0);
	batch_stop(r);
}

static struct batch_reader *new_reader(struct call *c)
{
	struct batch_reader *r = call_alloc(c, sizeof(*r));

	*r = (struct batch_reader){ .watch.news = batch_news, .call = c };
	timer_init(&r->ping, c->api->loop, ping_due);
	return r;
}

static void batch_attach(struct batch_reader *r)
{
	struct call *c = r->call;

	c->state = r;
	c->drop = batch_left;
	c->req->on_drain = has_room;
}

/* ---- items ---- */

/* The error is sent as an event, because the answer has started. Items that were received are not
 * run. */
static void batch_refuse(struct batch_reader *r, const struct err *e)
{
	json_t *doc = call_error_json(r->call,
				      e->sys == E2BIG    ? "too_large"
				      : e->sys == ENOSPC ? "no_space"
							 : err_kind_name(e->kind),
				      e->msg, NULL, NULL);

	batch_begin(r);
	json_object_set_new(doc, "type", json_string("error"));
	event_stream_event(&r->event_stream, doc);
	batch_cancel(r->watch.batch); /* also notifies this reader, which then ends */
}

static void bytes_came(struct http_req *q, const char *bytes, size_t n)
{
	struct call *c = q->user;
	struct batch_reader *r = c->state;
	struct err e;

	if (!r)
		return; /* rejected or cancelled; the rest of the body is ignored */
	batch_begin(r);
	if (batch_add(r->watch.batch, bytes, n, &e) < 0)
		batch_refuse(r, &e);
}

static void body_ended(struct http_req *q)
{
	struct call *c = q->user;
	struct batch_reader *r = c->state;

	if (!r)
		return;
	batch_begin(r);
	r->sends = 0;
	c->endless = 1; /* a drain may end the stream: the next server can send the results */
	batch_received(r->watch.batch, 1);
	send_more(r);
}

/* 0: rejected, and that was answered. */
static int read_options(struct call *c, struct batch_options *o)
{
	const json_t *body = c->body;
	const json_t *language = json_object_get(body, "language");

	*o = (struct batch_options){ .defaults.limits = c->api->fleet.conf.limits,
				     .defaults.most = c->api->fleet.conf.most };
	snprintf(o->defaults.language, sizeof(o->defaults.language), "%s",
		 language                    ? json_string_value(language)
		 : call_query(c, "language") ? call_query(c, "language")
					     : "");
	o->defaults.run_ms =
		(uint32_t)call_int(c, "timeout_ms", call_query_int(c, "timeout_ms", 0));
	o->defaults.max_output =
		(uint32_t)call_int(c, "max_output", call_query_int(c, "max_output", ITEM_OUTPUT));
	o->jobs = (unsigned)call_int(c, "jobs", call_query_int(c, "jobs", 0));
	o->record = call_flag(c, "record", call_query_flag(c, "record"));
	o->attached =
		!call_flag(c, "detach", call_query(c, "detach") ? call_query_flag(c, "detach") : 1);
	return isolation_check_call(c, 1, &o->isolation);
}

/* NULL: rejected, and the error was sent. */
static struct batch_reader *batch_receive(struct call *c)
{
	struct batch_reader *r = new_reader(c);
	struct batch_options o;
	struct err e;

	if (!read_options(c, &o)) {
		timer_fini(&r->ping);
		return NULL;
	}
	if (batch_new(c->api->batches, c->who.team, c->who.id, &o, &r->watch, &e) < 0) {
		timer_fini(&r->ping);
		if (e.kind == ERR_LIMIT)
			http_set(c->req, "Retry-After", "60");
		call_fail(c, &e);
		return NULL;
	}
	r->attached = o.attached;
	r->sends = 1;
	batch_attach(r);
	call_audit(c, "batch.create", batch_row(r->watch.batch)->id, "ok");
	return r;
}

/* ---- the small form: {"items": [...]} ---- */

static int batch_add_item(struct batch *b, const json_t *item, struct err *e)
{
	char *text = json_dumps(item, JSON_COMPACT | JSON_ENCODE_ANY);
	size_t n = text ? strlen(text) : 0;
	int rc;

	if (!text)
		abort();
	text[n] = '\n'; /* in place of its NUL */
	rc = batch_add(b, text, n + 1, e);
	free(text);
	return rc;
}

static void add_items(struct call *c, struct batch_reader *r)
{
	const json_t *items = json_object_get(c->body, "items");
	struct err e;

	batch_begin(r);
	for (size_t i = 0; i < json_array_size(items) && c->state; i++)
		if (batch_add_item(r->watch.batch, json_array_get(items, i), &e) < 0)
			batch_refuse(r, &e);
}

static void batch_ignore_update(struct batch_watch *w)
{
	(void)w;
}

void batch_end_by_id(struct api *a, const char *team, const char *id)
{
	struct batch_watch w = { .news = batch_ignore_update };
	struct err e;

	if (batch_watch(a->batches, team, id, 0, &w, &e) < 0)
		return;
	batch_cancel(w.batch);
	batch_unwatch(&w);
}

void batch_submit(struct call *c, const char *id)
{
	const json_t *items = json_object_get(c->body, "items");
	struct batch_watch w = { .news = batch_ignore_update };
	struct batch_options o;
	struct err e;
	int rc = 0;

	if (!json_is_array(items)) {
		call_error(c, 400, "invalid", "items: must be a list", NULL, NULL);
		return;
	}
	if (!read_options(c, &o))
		return;
	o.id = id;
	o.attached = 0;
	if (batch_new(c->api->batches, c->who.team, c->who.id, &o, &w, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit(c, "batch.create", id, "ok");
	for (size_t i = 0; i < json_array_size(items) && rc == 0; i++)
		rc = batch_add_item(w.batch, json_array_get(items, i), &e);
	if (rc < 0) {
		batch_cancel(w.batch);
		call_fail(c, &e);
	} else {
		batch_received(w.batch, 1);
		call_json(c, 202, json_pack("{s:s}", "id", id));
	}
	batch_unwatch(&w);
}

static void json_arrived(struct http_req *q)
{
	struct call *c = q->user;
	struct batch_reader *r;
	struct err e;

	c->body = fields_parse(q->body.p ? q->body.p : "", q->body.len, &e);
	if (!c->body) {
		call_fail(c, &e);
		return;
	}
	if (fields_check(c->body, batch_body_fields, "", &e) < 0 ||
	    (!json_is_array(json_object_get(c->body, "items")) &&
	     err_set(&e, ERR_INVALID, "items: must be a list") < 0)) {
		call_error(c, 400, "invalid", e.msg, NULL,
			   "or send one item per line: application/x-ndjson");
		return;
	}
	fields_prune(c->body, batch_body_fields);
	r = batch_receive(c);
	if (!r)
		return;
	add_items(c, r);
	body_ended(q);
}

void batch_post(struct call *c)
{
	const char *type = http_header(c->req, "content-type");
	uint64_t most = c->api->conf.batch_bytes;

	if (type && !strncmp(type, "application/json", 16) &&
	    (!type[16] || strchr("; ", type[16]))) {
		http_want_body(c->req, HTTP_BODY_WHOLE, c->api->conf.json_max);
		c->req->on_body_end = json_arrived;
		return;
	}
	if (most && c->req->length != UINT64_MAX && c->req->length > most) {
		call_error(c, 413, "too_large", "the batch is too large", NULL,
			   "split it; the limit is batch.max_bytes in config.toml");
		return;
	}
	if (!batch_receive(c))
		return;
	c->req->on_body = bytes_came;
	c->req->on_body_end = body_ended;
	http_want_body(c->req, HTTP_BODY_STREAM, 0);
}

/* ---- status ---- */

void batch_results_get(struct call *c)
{
	struct batch_reader *r = new_reader(c);
	int64_t after = call_query_int(c, "after", 0);
	const char *last = http_header(c->req, "last-event-id");
	struct err e;

	if (last && *last && strspn(last, "0123456789") == strlen(last) && strlen(last) < 10)
		after = strtoll(last, NULL, 10);
	if (batch_watch(c->api->batches, c->who.team, call_param(c, 0), (uint32_t)after, &r->watch,
			&e) < 0) {
		timer_fini(&r->ping);
		if (e.sys == EBUSY)
			http_set(c->req, "Retry-After", "1");
		call_fail(c, &e);
		return;
	}
	r->once = call_query(c, "follow") && !call_query_flag(c, "follow");
	batch_attach(r);
	c->endless = 1;
	batch_begin(r);
	send_more(r);
}

/* w is on the caller's stack and used only during the call. */
static int task_text_read(struct call *c, struct batch_watch *w)
{
	struct err e;

	*w = (struct batch_watch){ 0 };
	if (batch_watch(c->api->batches, c->who.team, call_param(c, 0), 0, w, &e) == 0)
		return 1;
	if (e.sys == EBUSY)
		http_set(c->req, "Retry-After", "1");
	call_fail(c, &e);
	return 0;
}

void batch_show(struct call *c)
{
	struct batch_watch w;

	if (!task_text_read(c, &w))
		return;
	call_json(c, 200, batch_add_cost(c->api, batch_json(w.batch)));
	batch_unwatch(&w);
}

void batch_delete(struct call *c)
{
	struct batch_watch w;
	json_t *doc;

	if (!task_text_read(c, &w))
		return;
	w.news = batch_ignore_update;
	batch_cancel(w.batch);
	doc = batch_add_cost(c->api, batch_json(w.batch));
	if (call_query_flag(c, "forget"))
		batch_forget(w.batch);
	batch_unwatch(&w);
	call_json(c, 200, doc);
}

void batch_list(struct call *c)
{
	struct store_batches rows = { 0 };
	struct page page;
	json_t *items;
	struct err e;

	if (page_read(&page, c, &e) < 0 ||
	    store_batch_list(c->api->store, c->who.team, page.after, page.limit, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(
			items, batch_add_cost(c->api, batches_json(c->api->batches, &rows.v[i])));
	if (rows.more)
		page_ends(&page, rows.v[rows.n - 1].created_ns, rows.v[rows.n - 1].id);
	store_batches_fini(&rows);
	call_list(c, items, page.next);
}

/* ---- quotas ---- */

static int may_run(void *ctx, const char *team, struct err *out)
{
	return quota_item(ctx, team, out);
}

static unsigned may_have(void *ctx, const char *team)
{
	return quota_boxes_left(ctx, team);
}

static void batch_used(void *ctx, const char *team, uint64_t cpu_us, uint64_t output_bytes)
{
	quota_used(ctx, team, cpu_us, output_bytes);
}

static void batch_charge_compute(void *ctx, const char *team, uint64_t cpu_us)
{
	quota_computed(ctx, team, cpu_us);
}

int batch_routes_init(struct api *a, struct err *e)
{
	struct batch_conf conf = { .state = a->conf.state,
				   .jobs = a->conf.batch_jobs,
				   .max_bytes = a->conf.batch_bytes,
				   .team_bytes = a->conf.batch_team_bytes,
				   .keep_ms = a->conf.batch_keep_ms };
	struct batch_hooks hooks = {
		.ctx = a, .may_run = may_run, .may_have = may_have, .used = batch_used
	};

	/* Pipelines use the same quotas as batches. */
	a->fleet.accounts.ctx = a;
	a->fleet.accounts.may_run = may_run;
	a->fleet.accounts.may_have = may_have;
	a->fleet.accounts.used = batch_used;
	a->fleet.accounts.computed = batch_charge_compute;
	return batches_new(&a->batches, &a->fleet, &conf, &hooks, e);
}
