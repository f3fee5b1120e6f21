/* search.c - GET .../files/search: finds files by name, by content, or both. Hits are sent as they
 * are found; the search ends when the client disconnects. The head of the answer is sent with the
 * first hit, so that a search that cannot start is an error and not an empty list. */
#include "v1box/file_request.h"
#include "api/event_stream.h"
#include "v1box/files.h"

#include <limits.h>
#include <string.h>

enum { HITS = 1000, HITS_MAX = 10000, LINE_MAX_SHOWN = 400 };
enum { DOCUMENT_BYTES = 4 << 20 }; /* of paths and lines in an answer without a stream */

const struct field boxfiles_search_query[] = {
	FILE_REQUEST_PATH_FIELD(0, "the folder to search; /home/user"),
	{ "name", FIELD_TEXT, 0, 0, 255, "a glob (*, ?, [a-z]), or a part of the name", NULL },
	{ "content", FIELD_TEXT, 0, 0, 1023, "literal text that a line must contain", NULL },
	{ "limit", FIELD_INT, 0, 1, HITS_MAX, "maximum number of hits (default 1000)", NULL },
	{ "ignore_case", FIELD_BOOL, 0, 0, 0, "ignore upper and lower case (ASCII)", NULL },
	{ 0 },
};

struct search {
	struct file_request file_req;
	struct event_stream event_stream;
	enum event_stream_kind kind; /* EVENT_STREAM_NONE: one document */
	int begun;
	uint32_t max, count;
	json_t *items;
	size_t bytes;
};

static void search_ready(struct file_client *k)
{
	struct search *s = loop_owner(k, struct search, file_req.file_client);
	const char *name = call_query(s->file_req.call, "name"),
		   *content = call_query(s->file_req.call, "content");
	struct wire_search ask = { .max = s->max };
	auto_buf struct buf tail = { 0 };

	if (call_query_flag(s->file_req.call, "ignore_case"))
		ask.head.flags = WIRE_SEARCH_FOLD;
	buf_add(&tail, s->file_req.path, strlen(s->file_req.path) + 1);
	buf_add(&tail, name ? name : "", (name ? strlen(name) : 0) + 1);
	buf_puts(&tail, content ? content : "");
	file_client_ask(k, WIRE_SEARCH, &ask, sizeof(ask), tail.p, tail.len);
}

static void search_begin(struct search *s)
{
	if (s->kind != EVENT_STREAM_NONE && !s->begun)
		event_stream_begin(&s->event_stream, s->file_req.call->req, s->kind);
	s->begun = 1;
}

static void search_done(struct file_client *k, uint16_t flags)
{
	struct search *s = loop_owner(k, struct search, file_req.file_client);
	int truncated = (flags & WIRE_DONE_TRUNCATED) != 0,
	    skipped = (flags & WIRE_DONE_SKIPPED) != 0;

	if (s->kind == EVENT_STREAM_NONE) {
		file_request_json(&s->file_req, 200,
				  json_pack("{s:O, s:b, s:b}", "items", s->items, "truncated",
					    truncated, "skipped", skipped));
		return;
	}
	search_begin(s);
	file_request_close(&s->file_req);
	event_stream_event(&s->event_stream, json_pack("{s:s, s:I, s:b, s:b}", "type", "done",
						       "hits", (json_int_t)s->count, "truncated",
						       truncated, "skipped", skipped));
	event_stream_end(&s->event_stream);
}

static json_t *hit_json(const struct search *s, const struct wire_hit *h, const char *path,
			const char *line)
{
	auto_buf struct buf full = { 0 };
	json_t *doc = json_object();

	buf_puts(&full, s->file_req.path);
	if (full.len && full.p[full.len - 1] != '/')
		buf_putc(&full, '/');
	buf_puts(&full, path);
	file_request_set_text(doc, "path", buf_str(&full));
	json_object_set_new(doc, "file_type", json_string(file_request_type(h->mode)));
	json_object_set_new(doc, "size", json_integer((json_int_t)h->size));
	if (h->line) {
		json_object_set_new(doc, "line", json_integer(h->line));
		file_request_set_text(doc, "text", line);
		json_object_set_new(doc, "at", json_integer(h->at));
		json_object_set_new(doc, "cut", json_boolean(h->cut));
	}
	return doc;
}

static void search_hit(struct search *s, const struct wire_hit *h, const char *tail, size_t n)
{
	size_t path = strnlen(tail, n);
	json_t *doc;

	if (path == 0 || n - path > LINE_MAX_SHOWN + 1 || s->count == s->max) {
		struct err e;

		err_set(&e, ERR_SYS, "the answer of the box is invalid");
		s->file_req.file_client.on->failed(&s->file_req.file_client, &e);
		return;
	}
	s->count++;
	doc = hit_json(s, h, tail, path < n ? tail + path + 1 : "");
	if (s->kind == EVENT_STREAM_NONE) {
		json_array_append_new(s->items, doc);
		s->bytes += n;
		if (s->bytes > DOCUMENT_BYTES)
			search_done(&s->file_req.file_client, WIRE_DONE_TRUNCATED);
		return;
	}
	search_begin(s);
	json_object_set_new(doc, "type", json_string("hit"));
	if (event_stream_event(&s->event_stream, doc))
		file_client_pause(&s->file_req.file_client, 1);
}

static void search_other(struct file_client *k, const struct frame *f, size_t len)
{
	if (f->type == WIRE_HIT)
		search_hit(loop_owner(k, struct search, file_req.file_client),
			   (const struct wire_hit *)f, (const char *)f + sizeof(struct wire_hit),
			   len - sizeof(struct wire_hit));
}

static void search_failed(struct file_client *k, const struct err *e)
{
	struct search *s = loop_owner(k, struct search, file_req.file_client);

	if (!s->begun) {
		file_request_fail(&s->file_req, e);
		return;
	}
	file_request_close(&s->file_req);
	event_stream_event(&s->event_stream, file_request_fail_json(e));
	event_stream_end(&s->event_stream);
}

static void search_drained(struct http_req *r)
{
	struct call *c = r->user;
	struct search *s = c->state;

	if (s->file_req.open)
		file_client_pause(&s->file_req.file_client, 0);
}

static void search_left(struct http_req *r)
{
	http_abort(r);
}

static void search_dropped(struct call *c)
{
	struct search *s = c->state;

	file_request_close(&s->file_req);
	json_decref(s->items);
}

static enum event_stream_kind kind_of(const struct call *c)
{
	const char *accept = http_header(c->req, "accept");
	enum event_stream_kind kind = event_stream_wanted(c);

	if (c->args) /* the answer belongs to another surface */
		return EVENT_STREAM_NONE;
	if (kind == EVENT_STREAM_NONE && !(accept && strstr(accept, "application/json")))
		kind = EVENT_STREAM_NDJSON;
	return kind;
}

void boxfiles_search(struct call *c)
{
	static const struct file_client_events on = { .ready = search_ready,
						      .other = search_other,
						      .done = search_done,
						      .failed = search_failed };
	const char *name = call_query(c, "name"), *content = call_query(c, "content"),
		   *path = call_query(c, "path");
	struct search *s = call_alloc(c, sizeof(*s));

	if (!(name && *name) && !(content && *content)) {
		call_error(c, 400, "invalid", "there is nothing to search for", NULL,
			   "give ?name=, ?content= or both");
		return;
	}
	*s = (struct search){ .file_req.path = file_request_tree(c, path ? path : BOX_HOME),
			      .kind = kind_of(c),
			      .max = (uint32_t)call_query_int(c, "limit", HITS) };
	if (!s->file_req.path || !file_request_open(&s->file_req, c, &on))
		return;
	s->items = s->kind == EVENT_STREAM_NONE ? json_array() : NULL;
	c->drop = search_dropped;
	c->req->on_drain = search_drained;
	c->req->on_eof = search_left;
}
