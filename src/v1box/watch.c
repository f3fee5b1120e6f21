/* watch.c - GET .../files/watch: sends changes of a folder until the client disconnects. Nothing is
 * queued here: a client that does not read stops the worker; then the queue of the kernel
 * overflows, which is reported as an event. */
#include "v1box/file_request.h"
#include "api/event_stream.h"
#include "v1box/files.h"
#include "base/cleanup.h"

#include <string.h>

const struct field boxfiles_watch_query[] = {
	FILE_REQUEST_PATH_FIELD(0, "the folder; /home/user"),
	{ "recursive", FIELD_BOOL, 0, 0, 0, "include all folders below", NULL },
	{ 0 },
};

struct watch_watching {
	struct file_request file_req;
	struct event_stream event_stream;
	int begun;
};

static void watch_ready(struct file_client *k)
{
	struct watch_watching *w = loop_owner(k, struct watch_watching, file_req.file_client);

	file_request_ask(&w->file_req, WIRE_WATCH,
			 call_query_flag(w->file_req.call, "recursive") ? WIRE_WATCH_DEEP : 0,
			 w->file_req.path, strlen(w->file_req.path));
}

static void watch_say(struct watch_watching *w, json_t *take_event)
{
	if (event_stream_event(&w->event_stream, take_event))
		file_client_pause(&w->file_req.file_client, 1);
}

static void watch_finish(struct watch_watching *w, json_t *take_last)
{
	file_request_close(&w->file_req);
	event_stream_event(&w->event_stream, take_last);
	event_stream_end(&w->event_stream);
}

static void watch_done(struct file_client *k, uint16_t flags)
{
	struct watch_watching *w = loop_owner(k, struct watch_watching, file_req.file_client);
	enum event_stream_kind kind = event_stream_wanted(w->file_req.call);
	json_t *first;

	if (w->begun)
		return;
	w->begun = 1;
	event_stream_begin(&w->event_stream, w->file_req.call->req,
			   kind == EVENT_STREAM_SSE ? EVENT_STREAM_SSE : EVENT_STREAM_NDJSON);
	first = json_pack("{s:s, s:b}", "type", "watching", "skipped",
			  (flags & WIRE_DONE_SKIPPED) != 0);
	file_request_set_text(first, "path", w->file_req.path);
	watch_say(w, first);
}

static void set_below(json_t *doc, const char *key, const struct watch_watching *w,
		      const char *name)
{
	auto_buf struct buf full = { 0 };

	buf_puts(&full, w->file_req.path);
	if (full.p[full.len - 1] != '/')
		buf_putc(&full, '/');
	buf_puts(&full, name);
	file_request_set_text(doc, key, buf_str(&full));
}

static void watch_event(struct watch_watching *w, const struct wire_event *ev, const char *tail,
			size_t n)
{
	static const char *const types[] = {
		[WIRE_EVENT_CREATE] = "create", [WIRE_EVENT_WRITE] = "write",
		[WIRE_EVENT_REMOVE] = "remove", [WIRE_EVENT_RENAME] = "rename",
		[WIRE_EVENT_CHMOD] = "chmod",   [WIRE_EVENT_OVERFLOW] = "overflow",
		[WIRE_EVENT_LIMIT] = "limit",   [WIRE_EVENT_GONE] = "gone",
	};
	size_t first = strnlen(tail, n);
	json_t *doc;

	if (!w->begun || ev->kind >= ARRAY_LEN(types) || !types[ev->kind])
		return;
	doc = json_pack("{s:s}", "type", types[ev->kind]);
	if (ev->kind == WIRE_EVENT_GONE) {
		watch_finish(w, doc);
		return;
	}
	if (ev->kind == WIRE_EVENT_RENAME) {
		set_below(doc, "from", w, tail);
		set_below(doc, "path", w, first < n ? tail + first + 1 : "");
	} else if (ev->kind != WIRE_EVENT_OVERFLOW) {
		set_below(doc, "path", w, tail);
	}
	if (ev->kind != WIRE_EVENT_OVERFLOW)
		json_object_set_new(doc, "folder", json_boolean(ev->is_dir));
	watch_say(w, doc);
}

static void watch_other(struct file_client *k, const struct frame *f, size_t len)
{
	if (f->type == WIRE_EVENT)
		watch_event(loop_owner(k, struct watch_watching, file_req.file_client),
			    (const struct wire_event *)f,
			    (const char *)f + sizeof(struct wire_event),
			    len - sizeof(struct wire_event));
}

static void watch_failed(struct file_client *k, const struct err *e)
{
	struct watch_watching *w = loop_owner(k, struct watch_watching, file_req.file_client);

	if (w->begun)
		watch_finish(w, file_request_fail_json(e));
	else
		file_request_fail(&w->file_req, e);
}

static void watch_drained(struct http_req *r)
{
	struct call *c = r->user;
	struct watch_watching *w = c->state;

	if (w->file_req.open)
		file_client_pause(&w->file_req.file_client, 0);
}

/* The client has closed its side, and may still be reading; but a watch without a reader would
 * prevent the idle timeout of the box forever. */
static void watch_left(struct http_req *r)
{
	http_abort(r);
}

void boxfiles_watch(struct call *c)
{
	static const struct file_client_events on = { .ready = watch_ready,
						      .other = watch_other,
						      .done = watch_done,
						      .failed = watch_failed };
	struct watch_watching *w = call_alloc(c, sizeof(*w));
	const char *path = call_query(c, "path");

	*w = (struct watch_watching){ .file_req.path =
					      file_request_path(c, path ? path : BOX_HOME) };
	if (!w->file_req.path || !file_request_open(&w->file_req, c, &on))
		return;
	c->req->on_drain = watch_drained;
	c->req->on_eof = watch_left;
}
