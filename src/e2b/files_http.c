/* files_http.c - /files: the content of files, in and out of a box.
 *
 *   body -> [gunzip] -> [multipart] -> the pipe of a PUT -> attributes, end -> DONE -> the next part
 *
 * Nothing is collected: while the pipe is full the server does not read from the connection. A
 * plain body goes into the pipe by splice(). A file gets its name when all of it has arrived;
 * when the client disconnects, the worker ends, and the incomplete file is removed. */
#include "v1box/download.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "e2b/file_auth.h"
#include "e2b/entry.h"
#include "e2b/files.h"
#include "e2b/gunzip.h"
#include "http/multipart.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PLAIN = 32768, PARTS_MOST = 10000, NAMES_MOST = 1 << 20 };
enum { META_KEY = 246, META_MOST = 4096, META_PREFIX = 9 /* "user.e2b." */ };

/* ---- out ---- */

void files_http_get(struct call *c)
{
	struct download_want want = {
		.box = e2b_find_box(c), .worker = FILES_WORKER, .shown = 1, .fail = files_rest_fail
	};
	const char *path = call_query(c, "path");
	int root;

	if (!file_auth_user(c, &root) || !(want.path = file_auth_path(c, path ? path : "", root)))
		return;
	http_set(c->req, "Vary", "Accept-Encoding");
	download_begin(c, &want);
}

/* ---- in ---- */

struct files_upload {
	struct file_request file_req; /* its path: of the file that is being written */
	const char *path;             /* ?path=, resolved; NULL: each part has its own */
	int root, parts;
	struct buf meta;  /* attributes, in the format of META */
	struct buf names; /* paths written so far, each with its NUL */
	json_t *written;  /* the answer */
	unsigned n;
	/* the body, on its way */
	struct gunzip *gunzip;
	struct multipart form;
	struct buf in; /* received bytes that were not parsed yet */
	size_t in_at;
	char *plain;                /* gunzip: PLAIN bytes */
	struct multipart_view left; /* bytes being parsed: unpacked, but not split into parts yet */
	int ended;                  /* all of the body is in `in` */
	/* the file under way */
	int pipe; /* -1: none */
	struct watch room;
	struct buf spill; /* bytes that did not fit into the pipe */
	size_t spill_at;
	enum { WAITING, OPEN, SKIPPING, CLOSING, BETWEEN } phase;
};

static void files_dropped(struct call *c)
{
	struct files_upload *u = c->state;

	watch_stop(&u->room);
	own_close_fd(&u->pipe);
	file_request_close(&u->file_req);
	gunzip_free(u->gunzip);
	multipart_fini(&u->form);
	json_decref(u->written);
	buf_fini(&u->meta);
	buf_fini(&u->names);
	buf_fini(&u->in);
	buf_fini(&u->spill);
	free(u->plain);
	u->gunzip = NULL;
	u->written = NULL;
	u->plain = NULL;
}

static void files_refuse(struct files_upload *u, int status, const char *why)
{
	watch_stop(&u->room);
	own_close_fd(&u->pipe);
	file_request_close(&u->file_req);
	e2b_error(u->file_req.call, status, "%s", why);
}

/* ---- one file ---- */

static void take_room(struct watch *w, unsigned what);

static int was_written(const struct files_upload *u, const char *path)
{
	for (size_t at = 0; at < u->names.len; at += strlen(u->names.p + at) + 1)
		if (!strcmp(u->names.p + at, path))
			return 1;
	return 0;
}

/* Starts a PUT and opens the pipe for its content. -1: rejected, and the error was sent. */
static int begin_file(struct files_upload *u, const char *path)
{
	struct wire_put put = { .flags = WIRE_PUT_FOLLOW | (u->root ? 0 : WIRE_PUT_USER) };
	struct err e;
	int pipe;

	if (was_written(u, path)) {
		char why[600];

		snprintf(why, sizeof(why),
			 "you cannot upload multiple files to the same path '%.400s' in one upload "
			 "request, only the first specified file was uploaded",
			 path);
		files_refuse(u, 400, why);
		return -1;
	}
	if (u->n == PARTS_MOST || u->names.len + strlen(path) > NAMES_MOST) {
		files_refuse(u, 400, "too many files in one request");
		return -1;
	}
	u->file_req.path = path;
	buf_add(&u->names, path, strlen(path) + 1);
	u->n++;
	if (file_client_ask_pipe(&u->file_req.file_client, WIRE_PUT, &put, sizeof(put), path, &pipe,
				 &e) < 0) {
		files_rest_fail(&u->file_req, &e);
		return -1;
	}
	u->pipe = pipe;
	u->phase = OPEN;
	return 0;
}

static void end_file(struct files_upload *u)
{
	watch_stop(&u->room);
	own_close_fd(&u->pipe);
	if (u->meta.len)
		file_client_more(&u->file_req.file_client, WIRE_META, u->meta.p, u->meta.len);
	file_client_data(&u->file_req.file_client, NULL, 0);
	u->phase = CLOSING;
}

/* Writes as much as the pipe accepts. A worker that has closed it will report the reason. */
static size_t files_push(struct files_upload *u, const char *bytes, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t w = write(u->pipe, bytes + done, n - done);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0 && errno == EAGAIN)
			break;
		done += w < 0 ? n - done : (size_t)w;
	}
	return done;
}

static void files_sink(struct files_upload *u, const char *bytes, size_t n)
{
	size_t done = files_push(u, bytes, n);

	if (done == n)
		return;
	buf_cut(&u->spill, 0);
	buf_add(&u->spill, bytes + done, n - done);
	u->spill_at = 0;
	watch_want(&u->room, LOOP_WRITE);
	file_request_stalls(&u->file_req, 1);
}

static int is_blocked(const struct files_upload *u)
{
	return !u->file_req.open || u->phase == WAITING || u->phase == CLOSING ||
	       u->spill_at < u->spill.len;
}

/* ---- the body ---- */

/* A part begins. -1: rejected, and the error was sent. */
static int begin_part(struct files_upload *u)
{
	const char *name = multipart_name(&u->form), *filename = multipart_filename(&u->form),
		   *path = u->path;

	if (!name || strcmp(name, "file") != 0) {
		u->phase = SKIPPING;
		return 0;
	}
	if (!path && (!filename || !*filename)) {
		files_refuse(u, 400,
			     "error getting multipart custom part file name: filename not found");
		return -1;
	}
	if (!path && !(path = file_auth_path(u->file_req.call, filename, u->root))) {
		file_request_close(&u->file_req);
		return -1;
	}
	if (begin_file(u, path) < 0)
		return -1;
	(void)!fcntl(u->pipe, F_SETFL, fcntl(u->pipe, F_GETFL) | O_NONBLOCK);
	watch_init(&u->room, u->file_req.call->api->loop, u->pipe, take_room);
	return 0;
}

/* Handles one event of the form. -1: rejected, and the error was sent; 0: it needs more input. */
static int files_cut(struct files_upload *u)
{
	struct multipart_view bytes;
	struct err e;

	switch (multipart_next(&u->form, &u->left, &bytes, &e)) {
	case MULTIPART_MORE:
		return 0;
	case MULTIPART_PART:
		return begin_part(u) < 0 ? -1 : 1;
	case MULTIPART_DATA:
		if (u->phase == OPEN)
			files_sink(u, bytes.p, bytes.n);
		return 1;
	case MULTIPART_PART_END:
		if (u->phase == OPEN)
			end_file(u);
		else
			u->phase = BETWEEN;
		return 1;
	default:
		files_refuse(u, 400, e.msg);
		return -1;
	}
}

/* Decodes some of the input. -1: rejected, and the error was sent; 0: no input is left. */
static int files_refill(struct files_upload *u)
{
	const char *in = buf_str(&u->in) + u->in_at;
	size_t n = u->in.len - u->in_at;
	struct err e;
	long got;

	if (!u->gunzip) {
		u->left = (struct multipart_view){ in, n };
		u->in_at = u->in.len;
		return n > 0;
	}
	got = gunzip_some(u->gunzip, &in, &n, u->plain, PLAIN, &e);
	u->in_at = u->in.len - n;
	if (got < 0) {
		char why[300];

		snprintf(why, sizeof(why), "error decompressing request body: %s", e.msg);
		files_refuse(u, 400, why);
		return -1;
	}
	u->left = (struct multipart_view){ u->plain, (size_t)got };
	return got > 0;
}

static void files_finish(struct files_upload *u)
{
	if (u->gunzip && !gunzip_ended(u->gunzip)) {
		files_refuse(u, 400, "error decompressing request body: unexpected EOF");
	} else if (u->parts && !multipart_ended(&u->form)) {
		files_refuse(u, 400, "error reading form: unexpected EOF");
	} else if (!u->parts && u->phase == OPEN) {
		end_file(u);
	} else {
		json_t *written = steal(&u->written);

		file_request_close(&u->file_req);
		call_json(u->file_req.call, 200, written);
	}
}

/* Runs until it must wait for input or for the pipe. */
static void files_pump(struct files_upload *u)
{
	struct http_req *r = u->file_req.call->req;
	int rc = 1;

	while (!is_blocked(u) && rc > 0) {
		if (u->left.n == 0 && (rc = files_refill(u)) <= 0)
			break;
		if (u->parts) {
			rc = files_cut(u);
			if (rc == 0)
				rc = 1; /* bytes of this piece; does another one follow? */
		} else {
			struct multipart_view bytes = u->left;

			u->left.n = 0;
			files_sink(u, bytes.p, bytes.n);
		}
	}
	if (rc < 0 || !u->file_req.open)
		return;
	if (is_blocked(u)) {
		http_pause(r);
		return;
	}
	buf_cut(&u->in, 0);
	u->in_at = 0;
	if (u->ended)
		files_finish(u);
	else
		http_resume(r);
}

static void take_room(struct watch *w, unsigned what)
{
	struct files_upload *u = loop_owner(w, struct files_upload, room);

	(void)what;
	u->spill_at += files_push(u, u->spill.p + u->spill_at, u->spill.len - u->spill_at);
	if (u->spill_at < u->spill.len)
		return;
	watch_want(w, 0);
	file_request_stalls(&u->file_req, 0);
	files_pump(u);
}

/* The bytes being parsed may be in the same memory, which moves when it grows. */
static void add_input(struct files_upload *u, const char *bytes, size_t n)
{
	size_t at = u->left.n && !u->gunzip ? (size_t)(u->left.p - u->in.p) : 0;

	buf_add(&u->in, bytes, n);
	if (u->left.n && !u->gunzip)
		u->left.p = u->in.p + at;
}

static void body_came(struct http_req *r, const char *bytes, size_t n)
{
	struct call *c = r->user;
	struct files_upload *u = c->state;

	if (!u->file_req.open)
		return;
	add_input(u, bytes, n);
	if (!is_blocked(u))
		files_pump(u);
	else
		http_pause(r);
}

static void body_ended(struct http_req *r)
{
	struct call *c = r->user;
	struct files_upload *u = c->state;

	if (!u->file_req.open)
		return;
	u->ended = 1;
	if (!is_blocked(u))
		files_pump(u);
}

/* A plain body was spliced and is complete. */
static void plain_ended(struct http_req *r)
{
	struct call *c = r->user;
	struct files_upload *u = c->state;

	u->ended = 1;
	if (u->file_req.open && u->phase == OPEN)
		end_file(u);
}

static void plain_full(struct http_req *r, int full)
{
	struct call *c = r->user;
	struct files_upload *u = c->state;

	if (u->file_req.open)
		file_request_stalls(&u->file_req, full);
}

/* ---- the worker ---- */

static void files_ready(struct file_client *k)
{
	struct files_upload *u = loop_owner(k, struct files_upload, file_req.file_client);
	struct call *c = u->file_req.call;

	u->phase = BETWEEN;
	if (!u->parts && begin_file(u, u->path) < 0)
		return;
	if (!u->parts && !u->gunzip && !u->in.len && !u->ended) {
		c->req->on_full = plain_full;
		c->req->on_body_end = plain_ended;
		http_body_pipe(c->req, steal_fd(&u->pipe), c->api->conf.upload_max);
		http_body_rate(c->req, HTTP_BODY_RATE);
		return;
	}
	if (!u->parts) {
		(void)!fcntl(u->pipe, F_SETFL, fcntl(u->pipe, F_GETFL) | O_NONBLOCK);
		watch_init(&u->room, c->api->loop, u->pipe, take_room);
	}
	http_want_body(c->req, HTTP_BODY_STREAM, c->api->conf.upload_max);
	http_body_rate(c->req, HTTP_BODY_RATE);
	files_pump(u);
}

static void add_written(struct files_upload *u, json_t *take_metadata)
{
	json_t *doc = json_pack("{s:o, s:o, s:s}", "path", json_text(u->file_req.path), "name",
				json_text(entry_name(u->file_req.path)), "type", "file");

	if (json_object_size(take_metadata))
		json_object_set(doc, "metadata", take_metadata);
	json_decref(take_metadata);
	json_array_append_new(u->written, doc);
	u->phase = BETWEEN;
	files_pump(u);
}

/* The file has its name. The worker reports which attributes the disk has accepted. */
static void files_done(struct file_client *k, uint16_t flags)
{
	struct files_upload *u = loop_owner(k, struct files_upload, file_req.file_client);

	(void)flags;
	if (u->phase != CLOSING)
		return;
	if (u->meta.len)
		file_request_ask(&u->file_req, WIRE_ENTRY_OF, WIRE_ENTRY_FULL, u->file_req.path,
				 strlen(u->file_req.path));
	else
		add_written(u, NULL);
}

static void files_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
			size_t n)
{
	struct files_upload *u = loop_owner(k, struct files_upload, file_req.file_client);

	(void)e;
	if (u->phase == CLOSING)
		add_written(u, entry_metadata(tail, n));
}

static void files_failed(struct file_client *k, const struct err *e)
{
	struct files_upload *u = loop_owner(k, struct files_upload, file_req.file_client);

	watch_stop(&u->room);
	own_close_fd(&u->pipe);
	if (e->sys == EISDIR) {
		file_request_close(&u->file_req);
		e2b_error(u->file_req.call, 400, "path is a directory: %s", u->file_req.path);
	} else if (e->sys == ENOENT || e->sys == ENOTDIR) {
		file_request_close(&u->file_req);
		e2b_error(u->file_req.call, 400, "error ensuring directories: %s", e->msg);
	} else {
		files_rest_fail(&u->file_req, e);
	}
}

/* ---- the head ---- */

static int is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			return 0;
	return 1;
}

/* X-Metadata-<key>: <value>. 0, or -1: rejected, and the error was sent. */
static int read_metadata(struct call *c, struct buf *out)
{
	static const char prefix[] = "x-metadata-";
	size_t total = 0;

	for (unsigned i = 0; i < c->req->nheaders; i++) {
		const struct http_header *h = &c->req->headers[i];
		const char *key = h->name + strlen(prefix);

		if (strncmp(h->name, prefix, strlen(prefix)) != 0 || !*key)
			continue;
		total += META_PREFIX + strlen(key) + strlen(h->value);
		if (strlen(key) > META_KEY)
			e2b_error(c, 400, "invalid metadata: key is longer than %d bytes",
				  META_KEY);
		else if (!is_printable(key) || !is_printable(h->value))
			e2b_error(c, 400,
				  "invalid metadata: '%.60s' has other than printable ASCII", key);
		else if (total > META_MOST)
			e2b_error(c, 400, "invalid metadata: more than %d bytes", META_MOST);
		else {
			buf_add(out, key, strlen(key) + 1);
			buf_add(out, h->value, strlen(h->value) + 1);
			continue;
		}
		return -1;
	}
	return 0;
}

static int is_type(const char *header, const char *type)
{
	size_t n = strlen(type);

	return !strncasecmp(header, type, n) && (!header[n] || strchr("; \t", header[n]));
}

/* The content encoding of the body. -1: not supported, and the error was sent. */
static int read_kind(struct files_upload *u, struct call *c)
{
	const char *type = http_header(c->req, "content-type"),
		   *encoding = http_header(c->req, "content-encoding");
	struct err e;

	type = type ? type : "";
	if (encoding && !strcasecmp(encoding, "gzip")) {
		u->gunzip = gunzip_new();
		u->plain = malloc(PLAIN);
		if (!u->plain)
			abort();
	} else if (encoding && strcasecmp(encoding, "identity") != 0 && *encoding) {
		e2b_error(c, 400,
			  "error decompressing request body: unsupported Content-Encoding: %.40s",
			  encoding);
		return -1;
	}
	u->parts = is_type(type, "multipart/form-data");
	if (!u->parts && !is_type(type, "application/octet-stream")) {
		e2b_error(c, 400,
			  "unsupported content type: %.80s, expected multipart/form-data or "
			  "application/octet-stream",
			  type);
		return -1;
	}
	if (u->parts && multipart_init(&u->form, type, &e) < 0) {
		e2b_error(c, 400, "error parsing multipart form: %s", e.msg);
		return -1;
	}
	if (!u->parts && !u->path) {
		e2b_error(c, 400, "path query parameter is required for raw body upload");
		return -1;
	}
	return 0;
}

void files_http_post(struct call *c)
{
	static const struct file_client_events on = { .ready = files_ready,
						      .entry = files_entry,
						      .done = files_done,
						      .failed = files_failed };
	struct files_upload *u = call_alloc(c, sizeof(*u));
	const char *path = call_query(c, "path");

	*u = (struct files_upload){ .pipe = -1, .file_req.path = "" };
	if (!file_auth_user(c, &u->root))
		return;
	if (path && !(u->path = file_auth_path(c, path, u->root)))
		return;
	c->state = u;
	c->drop = files_dropped;
	if (read_kind(u, c) < 0 || read_metadata(c, &u->meta) < 0)
		return;
	u->written = json_array();
	u->file_req.path = u->path ? u->path : "";
	file_request_open_in(&u->file_req, c, e2b_find_box(c), FILES_WORKER, &on);
	c->drop = files_dropped;
	/* The server reads the body when a worker can take it; unless reading is paused already,
	 * because the box had to be resumed. */
	c->req->on_body = body_came;
	c->req->on_body_end = body_ended;
}
