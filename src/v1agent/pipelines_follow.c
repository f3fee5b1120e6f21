/* pipelines_follow.c - see pipelines_follow.h. */
#include "v1agent/pipelines_follow.h"
#include "document/document.h"
#include "pipeline/pipeline.h"
#include "api/event_stream.h"
#include "v1agent/pipelines.h"

#include <string.h>

enum { LOOK_MS = 300, PING_MS = 15000 };

struct follow_reader {
	struct pipeline_watch watch;
	struct call *call;
	struct event_stream event_stream;
	struct timer look;
	uint32_t after;
	uint64_t wrote_ms;
	int streams, once, until_asked, full;
};

static void follow_stop(struct follow_reader *r)
{
	pipeline_unwatch(&r->watch);
	timer_fini(&r->look);
	r->call->drop = NULL;
	r->call->state = NULL;
	r->call->req->on_drain = NULL;
}

static void follow_left(struct call *c)
{
	follow_stop(c->state);
}

/* 1: the stream has ended. */
static int write_events(struct follow_reader *r, const struct store_docs *rows)
{
	int over = 0;

	for (unsigned i = 0; i < rows->n && !r->full; i++) {
		json_t *event = json_loads(rows->v[i].json, 0, NULL);
		const char *type = doc_text(event, "type");

		over |= !strcmp(type, "run_finished") ||
			(r->until_asked && !strcmp(type, "waiting_input"));
		r->after = rows->v[i].seq;
		r->wrote_ms = loop_now_ms();
		if (event)
			r->full = event_stream_event_at(&r->event_stream, r->after, event);
	}
	return over;
}

static void send_events(struct follow_reader *r)
{
	int more = 1, over = 0;
	struct err e;

	while (more && !over && !r->full) {
		struct store_docs rows;

		if (store_pipeline_events(r->call->api->store, r->watch.id, r->after, 0, &rows,
					  &e) < 0) {
			http_abort(r->call->req); /* the client reconnects and continues at its
						   * position */
			return;
		}
		over = write_events(r, &rows);
		more = rows.more;
		store_docs_fini(&rows);
	}
	if (over || (r->once && !more && !r->full)) {
		event_stream_end(&r->event_stream);
		follow_stop(r);
	}
}

static json_t *question_report(struct api *a, const struct store_pipeline *row)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:[], s:I, s:o?, s:o}", "schema", AGENT_REPORT,
			 "run_id", row->id, "outcome", "needs_input", "why", "it asks something",
			 "evidence", "attempts", (json_int_t)row->attempts, "question",
			 pipelines_doc(a, row->id, "question", 0), "usage",
			 pipelines_usage_json(row));
}

/* Sends the report, or the question of the pipeline; 0: neither exists yet. */
static int send_report(struct call *c, const char *id)
{
	struct store_pipeline row;
	struct err e;

	if (store_pipeline_get(c->api->store, id, &row, &e) < 0) {
		call_fail(c, &e);
		return 1;
	}
	if (row.state == STORE_PIPELINE_FINISHED) {
		json_t *doc = pipelines_doc(c->api, id, "report", 0);

		call_json(c, 200, doc ? doc : pipelines_row_json(c->api, &row));
		return 1;
	}
	if (row.state == STORE_PIPELINE_WAITING) {
		call_json(c, 200, question_report(c->api, &row));
		return 1;
	}
	if (!c->api->http.draining)
		return 0;
	http_set(c->req, "Retry-After", "1"); /* the next server will have it */
	call_json(c, 202, pipelines_accepted(id, "running"));
	return 1;
}

static void look_again(struct follow_reader *r)
{
	struct call *c = r->call;
	char id[ID_MAX + 1];

	if (r->streams) {
		if (!r->full)
			send_events(r);
		return;
	}
	memcpy(id, r->watch.id, sizeof(id));
	c->drop = NULL;
	if (send_report(c, id))
		follow_stop(r);
	else
		c->drop = follow_left;
}

static void follow_news(struct pipeline_watch *w)
{
	look_again(loop_owner(w, struct follow_reader, watch));
}

/* Another server may drive the pipeline, and does not notify this one. */
static void look_due(struct timer *t)
{
	struct follow_reader *r = loop_owner(t, struct follow_reader, look);

	timer_set(t, LOOK_MS);
	if (r->streams && !r->full && loop_now_ms() - r->wrote_ms >= PING_MS) {
		r->full = event_stream_event(&r->event_stream, json_pack("{s:s}", "type", "ping"));
		r->wrote_ms = loop_now_ms();
	}
	look_again(r);
}

static void has_room(struct http_req *q)
{
	struct call *c = q->user;
	struct follow_reader *r = c->state;

	if (!r)
		return;
	r->full = 0;
	look_again(r);
}

static struct follow_reader *read_along(struct call *c, const char *id)
{
	struct follow_reader *r = call_alloc(c, sizeof(*r));

	*r = (struct follow_reader){ .watch.news = follow_news,
				     .call = c,
				     .wrote_ms = loop_now_ms() };
	timer_init(&r->look, c->api->loop, look_due);
	timer_set(&r->look, LOOK_MS);
	pipeline_watch(c->api->pipelines, id, &r->watch);
	c->state = r;
	c->drop = follow_left;
	return r;
}

void follow_stream(struct call *c, const char *id, uint32_t after, int until_asked, int once)
{
	struct follow_reader *r = read_along(c, id);

	r->streams = 1;
	r->after = after;
	r->until_asked = until_asked;
	r->once = once;
	c->endless = 1;
	c->req->on_drain = has_room;
	event_stream_begin(&r->event_stream, c->req,
			   event_stream_wanted(c) == EVENT_STREAM_SSE ? EVENT_STREAM_SSE
								      : EVENT_STREAM_NDJSON);
	send_events(r);
}

void follow_wait(struct call *c, const char *id)
{
	if (!send_report(c, id))
		read_along(c, id);
}
