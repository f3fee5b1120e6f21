/* watchers.c - filesystem.Filesystem: the changes in a folder, as a stream or by polling.
 *
 *   WatchDir          a worker that watches, as long as the client reads the stream
 *   CreateWatcher     the same, kept between calls; meanwhile the server does not read from it, and
 *                     an overflow of the kernel's queue is reported
 *   GetWatcherEvents  SYNC: all events until now
 *
 * A watcher ends with its box, and with this server process: its client gets not_found then. */
#include "base/id.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "e2b/entry.h"
#include "e2b/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHERS_MOST = 1024, WATCHERS_A_BOX = 32 };

/* ---- what both need ---- */

struct wish { /* what to watch, and how to report it */
	const char *path;
	uint16_t flags; /* WIRE_WATCH_* */
	struct entry_shape shape;
	json_t *entry; /* received before the event that it belongs to */
};

static int wish_read(struct wish *w, struct call *c, const json_t *ask)
{
	int root;

	*w = (struct wish){ .flags = WIRE_WATCH_PLAIN, .shape.brief = files_is_old(c) };
	if (connect_user(c, &root) < 0 || !(w->path = files_rpc_path(c, ask, "path", root)))
		return -1;
	if (json_is_true(json_object_get(ask, "recursive")))
		w->flags |= WIRE_WATCH_DEEP;
	if (json_is_true(json_object_get(ask, "includeEntry")))
		w->flags |= WIRE_WATCH_ENTRY;
	if (!json_is_true(json_object_get(ask, "allowNetworkMounts")))
		w->flags |= WIRE_WATCH_LOCAL;
	w->shape.below = w->path;
	return 0;
}

static void wish_ask(const struct wish *w, struct file_client *k)
{
	struct frame f = { .flags = w->flags };

	file_client_ask(k, WIRE_WATCH, &f, sizeof(f), w->path, strlen(w->path));
}

static void wish_entry(struct wish *w, const struct wire_entry *e, const char *tail, size_t n)
{
	json_decref(w->entry);
	w->entry = entry_json(&w->shape, e, tail, n);
}

static void wish_fini(struct wish *w)
{
	json_decref(w->entry);
	w->entry = NULL;
}

static void watchers_refuse(struct call *c, const struct wish *w, const struct err *e)
{
	if (e->sys == ENOENT)
		connect_fail(c, CONNECT_NOT_FOUND, "path %s not found", w->path);
	else if (e->sys == ENOTDIR)
		connect_fail(c, CONNECT_INVALID, "path %s not a directory", w->path);
	else if (e->sys == EREMOTE)
		connect_fail(c, CONNECT_INVALID, "cannot watch path on network filesystem: %s",
			     w->path);
	else
		files_rpc_fail(c, e);
}

/* {name, type, entry?}; NULL: a type that E2B's clients do not know. */
static json_t *event_json(struct wish *w, const struct frame *f, size_t len)
{
	static const char *const types[] = {
		[WIRE_EVENT_CREATE] = "EVENT_TYPE_CREATE",
		[WIRE_EVENT_WRITE] = "EVENT_TYPE_WRITE",
		[WIRE_EVENT_REMOVE] = "EVENT_TYPE_REMOVE",
		[WIRE_EVENT_RENAME] = "EVENT_TYPE_RENAME",
		[WIRE_EVENT_CHMOD] = "EVENT_TYPE_CHMOD",
		[WIRE_EVENT_GONE] = "EVENT_TYPE_REMOVE",
	};
	const struct wire_event *ev = (const struct wire_event *)f;
	const char *name =
		(const char *)f + sizeof(*ev); /* followed by a NUL: client/frame_conn.c */
	json_t *doc, *entry = steal(&w->entry);

	(void)len;
	if (ev->kind >= ARRAY_LEN(types) || !types[ev->kind]) {
		json_decref(entry);
		return NULL;
	}
	doc = json_pack("{s:o, s:s}", "name", json_text(*name ? name : "."), "type",
			types[ev->kind]);
	if (entry && ev->kind != WIRE_EVENT_REMOVE && ev->kind != WIRE_EVENT_RENAME)
		json_object_set(doc, "entry", entry);
	json_decref(entry);
	return doc;
}

static const char *trouble_of(const struct frame *f)
{
	uint32_t kind = ((const struct wire_event *)f)->kind;

	return kind == WIRE_EVENT_OVERFLOW
		       ? "watcher error: there were too many events, some are lost"
	       : kind == WIRE_EVENT_LIMIT ? "watcher error: there are too many folders to watch"
					  : NULL;
}

static int is_gone(const struct frame *f)
{
	return ((const struct wire_event *)f)->kind == WIRE_EVENT_GONE;
}

/* ---- WatchDir ---- */

struct watchers_watching {
	struct file_request file_req;
	struct wish wish;
	struct connect_stream out;
	struct timer deadline;
	int begun;
};

static void stop_watching(struct watchers_watching *w)
{
	timer_fini(&w->deadline);
	file_request_close(&w->file_req);
	wish_fini(&w->wish);
}

static void watch_dropped(struct call *c)
{
	struct watchers_watching *w = c->state;

	stop_watching(w);
	connect_drop(&w->out);
}

static void too_late(struct timer *t)
{
	struct watchers_watching *w = loop_owner(t, struct watchers_watching, deadline);

	stop_watching(w);
	connect_end_error(&w->out, CONNECT_DEADLINE, "the time limit of the stream has expired");
}

static void watch_ready(struct file_client *k)
{
	wish_ask(&loop_owner(k, struct watchers_watching, file_req.file_client)->wish, k);
}

static void watch_done(struct file_client *k, uint16_t flags)
{
	struct watchers_watching *w = loop_owner(k, struct watchers_watching, file_req.file_client);
	struct call *c = w->file_req.call;
	uint64_t ms = connect_timeout_ms(c);

	(void)flags;
	if (w->begun)
		return;
	w->begun = 1;
	connect_open(&w->out, c, "{\"keepalive\":{}}");
	connect_send_text(&w->out, "{\"start\":{}}", 12);
	if (ms)
		timer_set(&w->deadline, ms);
}

static void watch_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
			size_t n)
{
	wish_entry(&loop_owner(k, struct watchers_watching, file_req.file_client)->wish, e, tail,
		   n);
}

static void watch_other(struct file_client *k, const struct frame *f, size_t len)
{
	struct watchers_watching *w = loop_owner(k, struct watchers_watching, file_req.file_client);
	json_t *event;

	if (f->type != WIRE_EVENT || !w->begun)
		return;
	if (trouble_of(f)) {
		stop_watching(w);
		connect_end_error(&w->out, CONNECT_INTERNAL, "%s", trouble_of(f));
		return;
	}
	event = event_json(&w->wish, f, len);
	if (event && connect_send(&w->out, json_pack("{s:o}", "filesystem", event)))
		file_client_pause(k, 1);
	if (is_gone(f)) {
		stop_watching(w);
		connect_end(&w->out);
	}
}

/* After the start, only the end of the box, or a process in it, ends the worker. */
static void watch_failed(struct file_client *k, const struct err *e)
{
	struct watchers_watching *w = loop_owner(k, struct watchers_watching, file_req.file_client);

	stop_watching(w);
	if (w->begun)
		connect_cut(&w->out);
	else
		watchers_refuse(w->file_req.call, &w->wish, e);
}

static void watch_drained(struct http_req *r)
{
	struct call *c = r->user;
	struct watchers_watching *w = c->state;

	if (w->file_req.open)
		file_client_pause(&w->file_req.file_client, 0);
}

static void watchers_left(struct http_req *r)
{
	http_abort(r);
}

static void watch_asked(struct call *c, json_t *ask)
{
	static const struct file_client_events on = { .ready = watch_ready,
						      .entry = watch_entry,
						      .other = watch_other,
						      .done = watch_done,
						      .failed = watch_failed };
	struct watchers_watching *w = call_alloc(c, sizeof(*w));

	*w = (struct watchers_watching){ 0 };
	if (wish_read(&w->wish, c, ask) < 0)
		return;
	timer_init(&w->deadline, c->api->loop, too_late);
	w->file_req.path = w->wish.path;
	file_request_open_in(&w->file_req, c, e2b_find_box(c), FILES_WORKER, &on);
	c->endless = 1;
	c->drop = watch_dropped;
	c->req->on_drain = watch_drained;
	c->req->on_eof = watchers_left;
}

void filesystem_watch(struct call *c)
{
	connect_ask(c, 1, watch_asked);
}

/* ---- watchers that stay ---- */

enum watcher_state { ARMING, IDLE, TELLING };

struct watchers_watcher {
	struct watchers_watcher *next;
	struct watchers *all;
	struct file_client file_client;
	enum watcher_state state;
	char id[ID_MAX + 2], box[ID_MAX + 1];
	struct wish wish;
	char *path;
	struct call *call; /* the waiting call; NULL: none, or it has disconnected */
	struct files_array events;
	const char *trouble; /* the error for the next call, which is the last one */
};

struct watchers {
	struct watchers_watcher *first;
	unsigned n;
};

struct watchers *watchers_new(void)
{
	struct watchers *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	return w;
}

static void watcher_free(struct watchers_watcher *w)
{
	struct watchers_watcher **at = &w->all->first;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->all->n--;
	file_client_close(&w->file_client);
	wish_fini(&w->wish);
	free(w->path);
	free(w);
}

/* The call was answered, or is about to be. */
static struct call *watchers_release(struct watchers_watcher *w)
{
	struct call *c = w->call;

	w->call = NULL;
	if (c) {
		c->state = NULL;
		c->drop = NULL;
	}
	return c;
}

void watchers_free(struct watchers *w)
{
	while (w && w->first) {
		watchers_release(w->first);
		watcher_free(w->first);
	}
	free(w);
}

static struct watchers_watcher *watchers_find(struct watchers *all, const char *box, const char *id)
{
	for (struct watchers_watcher *w = all->first; w; w = w->next)
		if (!strcmp(w->box, box) && !strcmp(w->id, id))
			return w;
	return NULL;
}

/* Frees the watchers of boxes that no longer exist. The server does not read from an idle one,
 * so it has not noticed. */
static void forget_dead(struct watchers *all, struct api *a)
{
	struct watchers_watcher *next;

	for (struct watchers_watcher *w = all->first; w; w = next) {
		next = w->next;
		if (w->state == IDLE && !fleet_find(&a->fleet, w->box))
			watcher_free(w);
	}
}

static unsigned watchers_count(const struct watchers *all, const char *box)
{
	unsigned n = 0;

	for (const struct watchers_watcher *w = all->first; w; w = w->next)
		n += !strcmp(w->box, box);
	return n;
}

static void watchers_rest(struct watchers_watcher *w)
{
	w->state = IDLE;
	file_client_pause(&w->file_client, 1);
}

static void kept_ready(struct file_client *k)
{
	wish_ask(&loop_owner(k, struct watchers_watcher, file_client)->wish, k);
}

static void kept_done(struct file_client *k, uint16_t flags)
{
	struct watchers_watcher *w = loop_owner(k, struct watchers_watcher, file_client);
	enum watcher_state was = w->state;
	struct call *c = watchers_release(w);

	(void)flags;
	watchers_rest(w);
	if (!c)
		return;
	if (was == ARMING)
		connect_reply(c, json_pack("{s:s}", "watcherId", w->id));
	else
		files_array_end(&w->events);
}

static void kept_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
		       size_t n)
{
	wish_entry(&loop_owner(k, struct watchers_watcher, file_client)->wish, e, tail, n);
}

static void kept_other(struct file_client *k, const struct frame *f, size_t len)
{
	struct watchers_watcher *w = loop_owner(k, struct watchers_watcher, file_client);
	json_t *event;

	if (f->type != WIRE_EVENT)
		return;
	if (trouble_of(f))
		w->trouble = trouble_of(f);
	event = event_json(&w->wish, f, len);
	if (!event)
		return;
	if (!w->call)
		json_decref(event);
	else if (files_array_add(&w->events, event))
		file_client_pause(k, 1);
}

/* The watched folder or the box no longer exists. Events from before that are still returned. */
static void kept_failed(struct file_client *k, const struct err *e)
{
	struct watchers_watcher *w = loop_owner(k, struct watchers_watcher, file_client);
	enum watcher_state was = w->state;
	struct call *c = watchers_release(w);

	if (c && was == ARMING)
		watchers_refuse(c, &w->wish, e);
	else if (c && w->events.begun)
		files_array_end(&w->events);
	else if (c)
		connect_fail(c, CONNECT_NOT_FOUND, "watcher with id %s ended", w->id);
	watcher_free(w);
}

static void arming_dropped(struct call *c)
{
	watcher_free(c->state);
}

/* The worker continues to its DONE and is idle then. */
static void telling_dropped(struct call *c)
{
	struct watchers_watcher *w = c->state;

	w->call = NULL;
	file_client_pause(&w->file_client, 0);
}

static void telling_drained(struct http_req *r)
{
	struct call *c = r->user;
	struct watchers_watcher *w = c->state;

	if (w)
		file_client_pause(&w->file_client, 0);
}

static void create_asked(struct call *c, json_t *ask)
{
	static const struct file_client_events on = { .ready = kept_ready,
						      .entry = kept_entry,
						      .other = kept_other,
						      .done = kept_done,
						      .failed = kept_failed };
	struct watchers *all = e2b_watchers(c->api);
	struct box *b = e2b_find_box(c);
	char id[ID_MAX + 1];
	struct watchers_watcher *w;
	struct wish wish;
	struct err e;

	if (wish_read(&wish, c, ask) < 0)
		return;
	forget_dead(all, c->api);
	if (all->n >= WATCHERS_MOST || watchers_count(all, b->row.id) >= WATCHERS_A_BOX) {
		connect_fail(c, CONNECT_EXHAUSTED, "there are too many watchers; remove some");
		return;
	}
	if (id_new(id, &e) < 0) {
		connect_fail_err(c, &e);
		return;
	}
	w = calloc(1, sizeof(*w));
	if (!w || !(w->path = strdup(wish.path)))
		abort();
	snprintf(w->id, sizeof(w->id), "w%s", id);
	memcpy(w->box, b->row.id, sizeof(w->box));
	w->wish = wish;
	w->wish.path = w->wish.shape.below = w->path;
	w->call = c;
	w->all = all;
	w->next = all->first;
	all->first = w;
	all->n++;
	c->state = w;
	c->drop = arming_dropped;
	file_client_open(&w->file_client, &b->line, FILES_WORKER, &on);
}

void filesystem_watcher_new(struct call *c)
{
	connect_ask(c, 0, create_asked);
}

/* NULL: there is none, and the error was sent. */
static struct watchers_watcher *asked_for(struct call *c, const json_t *ask)
{
	const char *id = json_string_value(json_object_get(ask, "watcherId"));
	struct watchers_watcher *w =
		watchers_find(e2b_watchers(c->api), e2b_find_box(c)->row.id, id ? id : "");

	if (!w || w->state == ARMING) {
		connect_fail(c, CONNECT_NOT_FOUND, "watcher with id %.40s not found", id ? id : "");
		return NULL;
	}
	return w;
}

static void events_asked(struct call *c, json_t *ask)
{
	struct frame sync = { 0 };
	struct watchers_watcher *w = asked_for(c, ask);

	if (!w)
		return;
	if (w->trouble) {
		connect_fail(c, CONNECT_INTERNAL, "%s", w->trouble);
		return;
	}
	if (w->state == TELLING) {
		connect_fail(c, CONNECT_ABORTED, "another request reads this watcher");
		return;
	}
	w->state = TELLING;
	w->call = c;
	w->events = (struct files_array){ .req = c->req, .key = "events" };
	c->state = w;
	c->drop = telling_dropped;
	c->req->on_drain = telling_drained;
	file_client_ask(&w->file_client, WIRE_SYNC, &sync, sizeof(sync), NULL, 0);
	file_client_pause(&w->file_client, 0);
}

void filesystem_watcher_events(struct call *c)
{
	connect_ask(c, 0, events_asked);
}

static void remove_asked(struct call *c, json_t *ask)
{
	struct watchers_watcher *w = asked_for(c, ask);

	if (!w)
		return;
	if (w->call) {
		connect_fail(c, CONNECT_ABORTED, "another request reads this watcher");
		return;
	}
	watcher_free(w);
	connect_reply(c, json_object());
}

void filesystem_watcher_remove(struct call *c)
{
	connect_ask(c, 0, remove_asked);
}
