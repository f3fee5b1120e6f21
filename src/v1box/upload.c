/* upload.c - PUT .../files: writes the content of one file, completely or not at all.
 *
 *   stat -> check existing entry -> PUT, the body into its pipe -> empty DATA -> DONE -> stat
 *
 * The file gets its name when its content is complete. If the client disconnects, the worker ends
 * and removes the incomplete file. A precondition is checked twice: before the upload, so that no
 * body is sent in vain, and by the worker at the moment of the rename. */
#include "v1box/file_request.h"
#include "v1box/files.h"
#include "fleet/box.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

const struct field boxfiles_put_query[] = {
	FILE_REQUEST_PATH_FIELD(1, "in the box; folders above it are made"),
	{ "mode", FIELD_TEXT, 0, 0, 5, "octal mode (default: that of the existing file, or 0644)",
	  NULL },
	{ "new", FIELD_BOOL, 0, 0, 0, "answer 409 if the path exists", NULL },
	{ 0 },
};

enum phase { LOOKING, SENDING, SHOWING };

struct upload_upload {
	struct file_request file_req;
	enum phase phase;
	struct wire_put put;
	int existed;
};

static void upload_ready(struct file_client *k)
{
	struct upload_upload *u = loop_owner(k, struct upload_upload, file_req.file_client);

	file_request_look(&u->file_req, u->file_req.path);
}

/* ---- preconditions ---- */

static void upload_changed(struct upload_upload *u, const char *why)
{
	file_request_error(&u->file_req, 412, "changed", "it is not what you expect", why,
			   "read it again and decide anew");
}

/* e NULL: the path does not exist. 0: rejected, and the error was sent. */
static int may_go(struct upload_upload *u, const struct wire_entry *e)
{
	const struct http_req *r = u->file_req.call->req;
	const char *match = http_header(r, "if-match"), *none = http_header(r, "if-none-match");
	char etag[FILE_REQUEST_ETAG] = "";

	if (e && S_ISREG(e->mode))
		file_request_etag(e, etag);
	if (e && S_ISDIR(e->mode)) {
		file_request_error(&u->file_req, 409, "is_a_folder",
				   "there is a folder of that name", u->file_req.path,
				   "put the file into it, or remove it first");
		return 0;
	}
	if (e && call_query_flag(u->file_req.call, "new")) {
		file_request_error(&u->file_req, 409, "exists", "there is a file of that name",
				   u->file_req.path, "without ?new=1 it is replaced");
		return 0;
	}
	if ((match && (!e || !file_request_etag_among(match, etag))) ||
	    (none && e && file_request_etag_among(none, etag))) {
		upload_changed(u, e ? etag : "there is no such file");
		return 0;
	}
	if (!e && (none || call_query_flag(u->file_req.call, "new")))
		u->put.flags = WIRE_PUT_NEW;
	if (match && strcmp(match, "*") != 0)
		u->put = (struct wire_put){ .mode = u->put.mode,
					    .flags = WIRE_PUT_IF,
					    .if_mtime_ns = e->mtime_ns,
					    .if_size = e->size };
	return 1;
}

static void send_it(struct upload_upload *u)
{
	struct call *c = u->file_req.call;
	struct err e;
	int pipe;

	u->phase = SENDING;
	if (file_client_ask_pipe(&u->file_req.file_client, WIRE_PUT, &u->put, sizeof(u->put),
				 u->file_req.path, &pipe, &e) < 0)
		file_request_fail(&u->file_req, &e);
	else
		http_body_pipe(c->req, pipe, c->api->conf.upload_max);
	http_body_rate(c->req, HTTP_BODY_RATE);
}

/* ---- the worker ---- */

static void upload_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
			 size_t n)
{
	struct upload_upload *u = loop_owner(k, struct upload_upload, file_req.file_client);
	struct file_request_entry parts;
	char etag[FILE_REQUEST_ETAG];

	if (u->phase == LOOKING) {
		u->existed = 1;
		if (may_go(u, e))
			send_it(u);
		return;
	}
	if (u->phase != SHOWING)
		return;
	if (!file_request_split(e, tail, n, &parts)) {
		file_request_error(&u->file_req, 502, "box_lies", "the box's answer makes no sense",
				   u->file_req.path, NULL);
		return;
	}
	file_request_etag(e, etag);
	http_set(u->file_req.call->req, "ETag", "%s", etag);
	file_request_json(&u->file_req, u->existed ? 200 : 201,
			  file_request_entry_json(e, &parts, NULL));
}

static void upload_done(struct file_client *k, uint16_t flags)
{
	struct upload_upload *u = loop_owner(k, struct upload_upload, file_req.file_client);

	(void)flags;
	if (u->phase != SENDING)
		return;
	u->phase = SHOWING;
	file_request_look(&u->file_req, u->file_req.path);
}

static void upload_failed(struct file_client *k, const struct err *e)
{
	struct upload_upload *u = loop_owner(k, struct upload_upload, file_req.file_client);

	if (u->phase == LOOKING && e->sys == ENOENT) {
		if (may_go(u, NULL))
			send_it(u);
	} else if (e->sys == ESTALE ||
		   (e->sys == EEXIST && http_header(u->file_req.call->req, "if-none-match"))) {
		upload_changed(u, e->msg);
	} else {
		file_request_fail(&u->file_req, e);
	}
}

/* ---- the client ---- */

/* The worker does not read: it is slow, or stopped, or about to report an error. */
static void pipe_full(struct http_req *r, int full)
{
	struct call *c = r->user;
	struct upload_upload *u = c->state;

	if (u->file_req.open)
		file_request_stalls(&u->file_req, full);
}

static void body_ended(struct http_req *r)
{
	struct call *c = r->user;
	struct upload_upload *u = c->state;

	if (u->file_req.open)
		file_client_data(&u->file_req.file_client, NULL, 0);
}

/* 0: the body is larger than the disk of the box; answered before any byte is read. */
static int upload_fits(struct call *c, const struct box *b)
{
	uint64_t most = b->about.limits.disk_bytes;

	if (c->req->length == UINT64_MAX || !most || c->req->length <= most)
		return 1;
	file_request_no_space(c);
	return 0;
}

void boxfiles_put(struct call *c)
{
	static const struct file_client_events on = { .ready = upload_ready,
						      .entry = upload_entry,
						      .done = upload_done,
						      .failed = upload_failed };
	struct upload_upload *u = call_alloc(c, sizeof(*u));
	const char *text = call_query(c, "mode"), *path = call_query(c, "path");
	int mode = text ? file_request_mode(text) : 0;
	struct box *b;

	if (text && mode <= 0) {
		call_error(c, 400, "invalid", "?mode= must be octal digits, from 1 to 7777", text,
			   NULL);
		return;
	}
	if (*path && path[strlen(path) - 1] == '/') {
		call_error(c, 409, "is_a_folder",
			   "this path ends with a slash, like that of a folder", path,
			   "make one: POST .../files/mkdir");
		return;
	}
	*u = (struct upload_upload){ .file_req.path = file_request_path(c, path),
				     .put.mode = (uint32_t)mode };
	b = u->file_req.path ? call_box(c, 0) : NULL;
	if (!b || !upload_fits(c, b) || !file_request_open(&u->file_req, c, &on))
		return;
	c->req->on_full = pipe_full;
	c->req->on_body_end = body_ended;
}
