/* volume_files.c - see volume_files.h.
 *
 *   path -> a box (volume_box.h) -> its file worker -> the entry as it is now -> E2B's Stat
 *
 * One worker makes one change and returns the entry afterwards. Only the time of the last change
 * is known; it is used for all three times. New entries belong to the user unless `uid` and
 * `gid` are given; folders that are made on the way belong to root with uid=0 and to the user
 * else. */
#include "e2bcontrol/volume_files.h"
#include "v1box/file_request.h"
#include "v1box/download.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "e2bcontrol/volume_box.h"
#include "e2b/files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { USER = 1000, DEPTH_MAX = 32, ENTRIES_MAX = 10000 };

#define MAKE_FIELDS                                                                                \
	{ "uid", FIELD_INT,      0,                                                                \
	  0,     WIRE_OWNER_MAX, "uid of the owner inside the sandbox; 1000 is the user",          \
	  NULL },                                                                                  \
		{ "gid", FIELD_INT,      0,                                                        \
		  0,     WIRE_OWNER_MAX, "gid of the group (default: the same number as uid)",     \
		  NULL },                                                                          \
	{                                                                                          \
		"mode", FIELD_INT, 0, 0, 07777, "file mode, as a decimal number", NULL             \
	}
#define FORCE_FIELD                                                                                \
	{                                                                                          \
		"force", FIELD_BOOL, 0, 0, 0, "replace an existing file or folder", NULL           \
	}

const struct field volume_files_query[] = {
	FILE_REQUEST_PATH_FIELD(1, "in the volume"),
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field volume_files_make_query[] = {
	FILE_REQUEST_PATH_FIELD(1, "in the volume"),
	MAKE_FIELDS,
	FORCE_FIELD,
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field volume_files_list_query[] = {
	FILE_REQUEST_PATH_FIELD(1, "in the volume"),
	{ "depth", FIELD_INT, 0, 1, DEPTH_MAX, "levels of folders (default 1)", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field volume_files_patch_fields[] = {
	MAKE_FIELDS,
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

enum volume_action { STAT, LIST, MKDIR, PATCH, REMOVE, GET, PUT };

struct volume_files {
	struct file_request file_req;
	struct volume_box volume_box;
	enum volume_action action;
	const char *path; /* in the volume: "/" or "/a/b" */
	struct wire_put put;
	struct wire_chown owner;
	int set_owner,
		set_mode; /* requests still to be sent to the worker, in this order: CHOWN clears
			   * set-user-id */
	int asked,
		looking; /* request for the action was sent; request for the resulting entry was sent */
	json_t *items;
};

/* ---- paths ---- */

static int volume_climbs(const char *path)
{
	for (const char *p = path; (p = strstr(p, "..")); p += 2)
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return 1;
	return 0;
}

/* Without "//", "/./" and a slash at the end. NULL: rejected, and the error was sent. */
static const char *read_path(struct call *c)
{
	const char *given = call_query(c, "path");
	char *full = call_alloc(c, strlen(given) + 2);

	if (!*given || volume_climbs(given)) {
		call_error(c, 400, "invalid", "path: must be one in the volume, without ..", given,
			   NULL);
		return NULL;
	}
	snprintf(full, strlen(given) + 2, "/%s", given);
	return file_request_path(c, full);
}

static const char *in_box(struct call *c, const struct volume_box *d, const char *path)
{
	size_t n = strlen(d->root) + strlen(path) + 1;
	char *full = call_alloc(c, n);

	snprintf(full, n, "%s%s", d->root, strcmp(path, "/") ? path : "");
	return full;
}

/* ---- as JSON ---- */

static const char *type_name(uint32_t mode)
{
	return S_ISREG(mode)   ? "file"
	       : S_ISDIR(mode) ? "directory"
	       : S_ISLNK(mode) ? "symlink"
			       : "unknown";
}

/* below: the folder in the volume that name is relative to; NULL: name is not used, path is. */
static json_t *stat_json(const struct wire_entry *e, const struct file_request_entry *parts,
			 const char *path, const char *below)
{
	char full[FILE_REQUEST_PATH * 2];
	const char *name;
	json_t *doc;

	if (below)
		snprintf(full, sizeof(full), "%s/%s", strcmp(below, "/") ? below : "", parts->name);
	else
		snprintf(full, sizeof(full), "%s", path);
	name = strrchr(full, '/');
	doc = json_pack("{s:o, s:s, s:o, s:I, s:i, s:i, s:i, s:o, s:o, s:o}", "name",
			json_text(name && name[1] ? name + 1 : full), "type", type_name(e->mode),
			"path", json_text(full), "size", (json_int_t)(e->size & INT64_MAX), "mode",
			(int)(e->mode & 07777), "uid", (int)e->uid, "gid", (int)e->gid, "atime",
			json_time(e->mtime_ns), "mtime", json_time(e->mtime_ns), "ctime",
			json_time(e->mtime_ns));
	if (parts->target)
		json_object_set_new(doc, "target", json_text(parts->target));
	return doc;
}

/* ---- the worker ---- */

static void volume_finish(struct volume_files *x, int status, json_t *take_doc)
{
	file_request_close(&x->file_req);
	if (take_doc)
		call_json(x->file_req.call, status, take_doc);
	else
		call_empty(x->file_req.call, status);
}

static void volume_look(struct volume_files *x)
{
	x->looking = 1;
	file_request_look(&x->file_req, x->file_req.path);
}

/* Sets owner and mode where requested, then reads the entry. */
static void volume_files_next(struct volume_files *x)
{
	const char *path = x->file_req.path;

	if (x->set_owner) {
		x->set_owner = 0;
		file_client_ask(&x->file_req.file_client, WIRE_CHOWN, &x->owner, sizeof(x->owner),
				path, strlen(path));
	} else if (x->set_mode) {
		x->set_mode = 0;
		x->put =
			(struct wire_put){ .mode = x->put.mode }; /* without the flags of the PUT */
		file_client_ask(&x->file_req.file_client, WIRE_CHMOD, &x->put, sizeof(x->put), path,
				strlen(path));
	} else {
		volume_look(x);
	}
}

static void begin_put(struct volume_files *x)
{
	struct call *c = x->file_req.call;
	struct err e;
	int pipe;

	if (file_client_ask_pipe(&x->file_req.file_client, WIRE_PUT, &x->put, sizeof(x->put),
				 x->file_req.path, &pipe, &e) < 0) {
		file_request_fail(&x->file_req, &e);
		return;
	}
	http_body_pipe(c->req, pipe, c->api->conf.upload_max);
	http_body_rate(c->req, HTTP_BODY_RATE);
}

static void volume_ready(struct file_client *k)
{
	struct volume_files *x = loop_owner(k, struct volume_files, file_req.file_client);
	struct wire_list list = { .max = ENTRIES_MAX,
				  .depth = (uint32_t)call_query_int(x->file_req.call, "depth", 1) };
	const char *path = x->file_req.path;
	size_t n = strlen(path);

	x->asked = 1;
	if (x->action == STAT)
		volume_look(x);
	else if (x->action == LIST)
		file_client_ask(k, WIRE_LIST, &list, sizeof(list), path, n);
	else if (x->action == MKDIR)
		file_client_ask(k, WIRE_MKDIR, &x->put, sizeof(x->put), path, n);
	else if (x->action == PATCH)
		volume_files_next(x);
	else if (x->action == REMOVE)
		file_request_ask(&x->file_req, WIRE_REMOVE, 0, path, n);
	else
		begin_put(x);
}

static void volume_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
			 size_t n)
{
	struct volume_files *x = loop_owner(k, struct volume_files, file_req.file_client);
	struct file_request_entry parts;

	if (!file_request_split(e, tail, n, &parts)) {
		file_request_error(&x->file_req, 502, "box_lies", "the box's answer makes no sense",
				   x->path, NULL);
		return;
	}
	if (x->action == LIST && json_array_size(x->items) < ENTRIES_MAX)
		json_array_append_new(x->items, stat_json(e, &parts, NULL, x->path));
	else if (x->looking)
		volume_finish(x, x->action == MKDIR || x->action == PUT ? 201 : 200,
			      stat_json(e, &parts, x->path, NULL));
}

static void volume_done(struct file_client *k, uint16_t flags)
{
	struct volume_files *x = loop_owner(k, struct volume_files, file_req.file_client);

	(void)flags;
	if (x->looking)
		return;
	if (x->action == LIST)
		volume_finish(x, 200, json_incref(x->items));
	else if (x->action == REMOVE)
		volume_finish(x, 204, NULL);
	else
		volume_files_next(x);
}

static void volume_failed(struct file_client *k, const struct err *e)
{
	struct volume_files *x = loop_owner(k, struct volume_files, file_req.file_client);

	file_request_fail(&x->file_req, e);
}

/* ---- the client ---- */

static void volume_left(struct call *c)
{
	struct volume_files *x = c->state;

	file_request_close(&x->file_req);
	json_decref(x->items);
	x->items = NULL;
}

static void pipe_full(struct http_req *r, int full)
{
	struct volume_files *x = ((struct call *)r->user)->state;

	if (x->file_req.open)
		file_request_stalls(&x->file_req, full);
}

static void body_ended(struct http_req *r)
{
	struct volume_files *x = ((struct call *)r->user)->state;

	if (x && x->file_req.open && x->asked)
		file_client_data(&x->file_req.file_client, NULL, 0);
}

static void get_failed(struct file_request *d, const struct err *e)
{
	file_request_fail(d, e);
}

static void volume_there(struct call *c, struct volume_box *d, struct box *b)
{
	static const struct file_client_events on = { .ready = volume_ready,
						      .entry = volume_entry,
						      .done = volume_done,
						      .failed = volume_failed };
	struct volume_files *x = loop_owner(d, struct volume_files, volume_box);
	struct download_want want = {
		.path = in_box(c, d, x->path), .box = b, .worker = FILES_WORKER, .fail = get_failed
	};

	if (x->action == GET) {
		download_begin(c, &want);
		return;
	}
	x->items = x->action == LIST ? json_array() : NULL;
	x->file_req.path = want.path;
	file_request_open_in(&x->file_req, c, b, FILES_WORKER, &on);
	c->drop = volume_left;
}

/* Numbers of a query or of a body. */
static int64_t volume_number(struct call *c, enum volume_action action, const char *name,
			     int64_t otherwise)
{
	return action == PATCH ? call_int(c, name, otherwise) : call_query_int(c, name, otherwise);
}

/* The owner and the mode of the request, and which of them PUT or MKDIR does not set by itself. */
static void volume_files_want_owner(struct volume_files *x, struct call *c, uint32_t mode)
{
	int patch = x->action == PATCH;
	int64_t uid = volume_number(c, x->action, "uid", patch ? (int64_t)WIRE_CHOWN_KEEP : USER);
	int64_t gid = volume_number(c, x->action, "gid", patch ? (int64_t)WIRE_CHOWN_KEEP : uid);

	x->owner.uid = (uint32_t)uid;
	x->owner.gid = (uint32_t)gid;
	x->put.mode = (uint32_t)volume_number(c, x->action, "mode", mode);
	if (patch) {
		x->set_owner = call_get(c, "uid") || call_get(c, "gid");
		x->set_mode = !!call_get(c, "mode");
	} else {
		x->put.flags = uid ? WIRE_PUT_USER : 0;
		x->set_owner = gid != uid || (uid != 0 && uid != USER);
		x->set_mode = x->set_owner && x->put.mode & 07000;
	}
}

static void volume_begin(struct call *c, enum volume_action action, uint32_t mode)
{
	struct volume_files *x = call_alloc(c, sizeof(*x));

	*x = (struct volume_files){ .action = action, .path = read_path(c) };
	if (!x->path)
		return;
	if (!strcmp(x->path, "/") && (action == REMOVE || action == PUT)) {
		call_error(c, 400, "invalid", "path: it must not be the volume itself", NULL, NULL);
		return;
	}
	if (action == PUT || action == MKDIR || action == PATCH)
		volume_files_want_owner(x, c, mode);
	if ((action == PUT || action == MKDIR) && !call_query_flag(c, "force"))
		x->put.flags |= WIRE_PUT_NEW; /* 409 if the path exists */
	if (action == PUT) { /* the server does not read the body before a worker can take it */
		c->req->on_body_end = body_ended;
		c->req->on_full = pipe_full;
	}
	volume_box_open(c, &x->volume_box, volume_there);
}

void volume_files_stat(struct call *c)
{
	volume_begin(c, STAT, 0);
}

void volume_files_list(struct call *c)
{
	volume_begin(c, LIST, 0);
}

void volume_files_mkdir(struct call *c)
{
	volume_begin(c, MKDIR, 0755);
}

void volume_files_patch(struct call *c)
{
	volume_begin(c, PATCH, 0);
}

void volume_files_remove(struct call *c)
{
	volume_begin(c, REMOVE, 0);
}

void volume_files_get(struct call *c)
{
	volume_begin(c, GET, 0);
}

void volume_files_put(struct call *c)
{
	volume_begin(c, PUT, 0644);
}
