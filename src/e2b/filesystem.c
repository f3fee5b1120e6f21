/* filesystem.c - filesystem.Filesystem: one request to the worker, one answer; and a listing of
 * any length, which is written as it arrives. */
#include "base/cleanup.h"
#include "e2b/entry.h"
#include "e2b/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEPTH_MOST = 64 };

/* ---- changes: the answer has the resulting entry ---- */

struct filesystem_change {
	struct file_request file_req;
	uint8_t type; /* 0: only look */
	uint16_t flags;
	struct wire_put put;   /* MKDIR */
	const char *from, *at; /* MOVE has both; the entry at `at` is returned, or nothing */
	int there;             /* MKDIR found something */
};

static void filesystem_look(struct filesystem_change *x)
{
	file_request_ask(&x->file_req, WIRE_ENTRY_OF, WIRE_ENTRY_FULL, x->at, strlen(x->at));
}

static void filesystem_change_ready(struct file_client *k)
{
	struct filesystem_change *x = loop_owner(k, struct filesystem_change, file_req.file_client);
	auto_buf struct buf tail = { 0 };

	if (x->from)
		buf_add(&tail, x->from, strlen(x->from) + (x->at != NULL));
	if (x->at)
		buf_puts(&tail, x->at);
	if (!x->type)
		filesystem_look(x);
	else if (x->type == WIRE_MKDIR)
		file_client_ask(k, x->type, &x->put, sizeof(x->put), tail.p, tail.len);
	else
		file_request_ask(&x->file_req, x->type, x->flags, tail.p, tail.len);
}

static void filesystem_reply(struct filesystem_change *x, json_t *take_doc)
{
	file_request_close(&x->file_req);
	connect_reply(x->file_req.call, take_doc);
}

static void filesystem_change_done(struct file_client *k, uint16_t flags)
{
	struct filesystem_change *x = loop_owner(k, struct filesystem_change, file_req.file_client);

	(void)flags;
	if (x->at)
		filesystem_look(x);
	else
		filesystem_reply(x, json_object());
}

static void filesystem_change_entry(struct file_client *k, const struct wire_entry *e,
				    const char *tail, size_t n)
{
	struct filesystem_change *x = loop_owner(k, struct filesystem_change, file_req.file_client);
	struct entry_shape shape = { .brief = files_is_old(x->file_req.call) };
	uint32_t mode = S_ISLNK(e->mode) ? e->target_mode : e->mode;
	struct call *c = x->file_req.call;
	json_t *entry;

	if (x->there) {
		file_request_close(&x->file_req);
		if (S_ISDIR(mode))
			connect_fail(c, CONNECT_EXISTS, "directory already exists: %s", x->at);
		else
			connect_fail(c, CONNECT_INVALID,
				     "path already exists but it is not a directory: %s", x->at);
		return;
	}
	entry = entry_json(&shape, e, tail, n);
	if (entry) {
		filesystem_reply(x, json_pack("{s:o}", "entry", entry));
		return;
	}
	file_request_close(&x->file_req);
	connect_fail(c, CONNECT_INTERNAL, "the answer of the box is invalid");
}

static void filesystem_change_failed(struct file_client *k, const struct err *e)
{
	struct filesystem_change *x = loop_owner(k, struct filesystem_change, file_req.file_client);
	struct call *c = x->file_req.call;

	if (x->type == WIRE_MKDIR && e->sys == EEXIST && !x->there) {
		x->there = 1;
		filesystem_look(x);
	} else if (x->type == WIRE_REMOVE && e->sys == ENOENT) {
		filesystem_reply(x, json_object()); /* as was wanted */
	} else if (!x->type && (e->sys == ENOENT || e->sys == ENOTDIR)) {
		file_request_close(&x->file_req);
		connect_fail(c, CONNECT_NOT_FOUND, "file not found: %s", x->at);
	} else {
		files_rpc_file_req_fail(&x->file_req, e);
	}
}

static void filesystem_change_begin(struct call *c, const struct filesystem_change *want)
{
	static const struct file_client_events on = { .ready = filesystem_change_ready,
						      .entry = filesystem_change_entry,
						      .done = filesystem_change_done,
						      .failed = filesystem_change_failed };
	struct filesystem_change *x = call_alloc(c, sizeof(*x));

	*x = *want;
	x->file_req.path = x->from ? x->from : x->at;
	file_request_open_in(&x->file_req, c, e2b_find_box(c), FILES_WORKER, &on);
}

static void stat_asked(struct call *c, json_t *ask)
{
	struct filesystem_change x = { 0 };
	int root;

	if (connect_user(c, &root) == 0 && (x.at = files_rpc_path(c, ask, "path", root)))
		filesystem_change_begin(c, &x);
}

void filesystem_stat(struct call *c)
{
	connect_ask(c, 0, stat_asked);
}

static void make_asked(struct call *c, json_t *ask)
{
	struct filesystem_change x = { .type = WIRE_MKDIR,
				       .put = { .mode = 0755, .flags = WIRE_PUT_NEW } };
	int root;

	if (connect_user(c, &root) < 0 || !(x.at = files_rpc_path(c, ask, "path", root)))
		return;
	x.put.flags |= root ? 0 : WIRE_PUT_USER;
	filesystem_change_begin(c, &x);
}

void filesystem_make(struct call *c)
{
	connect_ask(c, 0, make_asked);
}

static void move_asked(struct call *c, json_t *ask)
{
	struct filesystem_change x = { .type = WIRE_MOVE };
	int root;

	if (connect_user(c, &root) < 0 || !(x.from = files_rpc_path(c, ask, "source", root)) ||
	    !(x.at = files_rpc_path(c, ask, "destination", root)))
		return;
	x.flags = root ? 0 : WIRE_MOVE_USER;
	filesystem_change_begin(c, &x);
}

void filesystem_move(struct call *c)
{
	connect_ask(c, 0, move_asked);
}

static void remove_asked(struct call *c, json_t *ask)
{
	struct filesystem_change x = { .type = WIRE_REMOVE };
	int root;

	if (connect_user(c, &root) == 0 && (x.from = files_rpc_path(c, ask, "path", root)))
		filesystem_change_begin(c, &x);
}

void filesystem_remove(struct call *c)
{
	connect_ask(c, 0, remove_asked);
}

/* ---- a folder ---- */

struct filesystem_listing {
	struct file_request file_req;
	struct wire_list ask;
	struct entry_shape shape;
	struct files_array entries;
};

static void list_ready(struct file_client *k)
{
	struct filesystem_listing *l =
		loop_owner(k, struct filesystem_listing, file_req.file_client);

	file_client_ask(k, WIRE_LIST, &l->ask, sizeof(l->ask), l->file_req.path,
			strlen(l->file_req.path));
}

static void list_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
		       size_t n)
{
	struct filesystem_listing *l =
		loop_owner(k, struct filesystem_listing, file_req.file_client);
	json_t *entry = entry_json(&l->shape, e, tail, n);

	if (entry && files_array_add(&l->entries, entry))
		file_client_pause(k, 1);
}

static void list_done(struct file_client *k, uint16_t flags)
{
	struct filesystem_listing *l =
		loop_owner(k, struct filesystem_listing, file_req.file_client);

	(void)flags;
	file_request_close(&l->file_req);
	files_array_end(&l->entries);
}

static void list_failed(struct file_client *k, const struct err *e)
{
	struct filesystem_listing *l =
		loop_owner(k, struct filesystem_listing, file_req.file_client);
	struct call *c = l->file_req.call;

	if (l->entries.begun) {
		file_request_close(&l->file_req);
		http_abort(c->req);
	} else if (e->sys == ENOTDIR) {
		file_request_close(&l->file_req);
		connect_fail(c, CONNECT_INVALID, "path is not a directory: %s", l->file_req.path);
	} else if (e->sys == ENOENT) {
		file_request_close(&l->file_req);
		connect_fail(c, CONNECT_NOT_FOUND, "path not found: %s", l->file_req.path);
	} else {
		files_rpc_file_req_fail(&l->file_req, e);
	}
}

static void list_drained(struct http_req *r)
{
	struct call *c = r->user;
	struct filesystem_listing *l = c->state;

	if (l->file_req.open)
		file_client_pause(&l->file_req.file_client, 0);
}

static void list_asked(struct call *c, json_t *ask)
{
	static const struct file_client_events on = {
		.ready = list_ready, .entry = list_entry, .done = list_done, .failed = list_failed
	};
	const json_t *depth = json_object_get(ask, "depth");
	struct filesystem_listing *l = call_alloc(c, sizeof(*l));
	int root;

	*l = (struct filesystem_listing){ .shape.brief = files_is_old(c),
					  .entries = { .req = c->req, .key = "entries" } };
	if (connect_user(c, &root) < 0 ||
	    !(l->file_req.path = files_rpc_path(c, ask, "path", root)))
		return;
	if (depth && !json_is_null(depth) &&
	    (!json_is_integer(depth) || json_integer_value(depth) < 0 ||
	     json_integer_value(depth) > UINT32_MAX)) {
		connect_fail(c, CONNECT_INVALID, "depth: must be a number, 0 or more");
		return;
	}
	l->ask.depth = (uint32_t)json_integer_value(depth);
	l->ask.depth = l->ask.depth > DEPTH_MOST ? DEPTH_MOST : l->ask.depth;
	l->ask.head.flags = WIRE_ENTRY_FULL;
	l->shape.below = l->file_req.path;
	c->req->on_drain = list_drained;
	file_request_open_in(&l->file_req, c, e2b_find_box(c), FILES_WORKER, &on);
}

void filesystem_list(struct call *c)
{
	connect_ask(c, 0, list_asked);
}
