/* download.c - see download.h.
 *
 *   GET from 0            ENTRY  -> 200, or 304     the content comes through the pipe -> end
 *   GET past the end      ENTRY  -> the requested range, empty DATA -> GET of that range
 *
 * The second sequence is for requests whose headers need the size of the file first. Length and
 * version are those of the descriptor from which the bytes are read. If the file shrinks during the
 * download, fewer bytes than announced arrive, and the connection is closed.
 *
 *   GET from 0            ENTRY of size 0, empty DATA -> GET to the end, as DATA
 *
 * A file of size 0 may be one of /proc, whose size is unknown until it was read. */
#include "v1box/download.h"
#include "v1box/files.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { TRIES = 4 };

struct download {
	struct file_request file_req;
	uint64_t from, bytes; /* requested from the worker */
	int tries;
	int streaming; /* the head of the answer was sent */
	int pipe;      /* pipe with the content; -1: none, or passed on */
	int again;     /* after the worker has finished this request: request another range */
	struct download_want want;
	int to_end;       /* size unknown: read everything, as DATA */
	struct buf first; /* the first piece of DATA; most such files have only one */
};

/* ---- the head ---- */

static const char *type_of(const char *path)
{
	static const struct {
		const char *ending, *type;
	} types[] = {
		{ "txt", "text/plain; charset=utf-8" },
		{ "log", "text/plain; charset=utf-8" },
		{ "md", "text/markdown; charset=utf-8" },
		{ "csv", "text/csv; charset=utf-8" },
		{ "html", "text/html; charset=utf-8" },
		{ "css", "text/css; charset=utf-8" },
		{ "js", "text/javascript; charset=utf-8" },
		{ "py", "text/x-python; charset=utf-8" },
		{ "sh", "text/x-shellscript; charset=utf-8" },
		{ "c", "text/x-c; charset=utf-8" },
		{ "h", "text/x-c; charset=utf-8" },
		{ "json", "application/json" },
		{ "xml", "application/xml" },
		{ "pdf", "application/pdf" },
		{ "zip", "application/zip" },
		{ "gz", "application/gzip" },
		{ "tar", "application/x-tar" },
		{ "wasm", "application/wasm" },
		{ "png", "image/png" },
		{ "jpg", "image/jpeg" },
		{ "jpeg", "image/jpeg" },
		{ "gif", "image/gif" },
		{ "webp", "image/webp" },
		{ "svg", "image/svg+xml" },
		{ "mp3", "audio/mpeg" },
		{ "wav", "audio/wav" },
		{ "mp4", "video/mp4" },
		{ "webm", "video/webm" },
	};
	const char *dot = strrchr(path, '.');

	for (unsigned i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcasecmp(dot + 1, types[i].ending))
			return types[i].type;
	return "application/octet-stream";
}

static void download_when(uint64_t ns, char out[40])
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;

	*out = 0;
	if (gmtime_r(&s, &tm))
		strftime(out, 40, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

/* An HTML file from a box must not run as a page of this origin. */
static void set_disposition(struct http_req *r, const char *kind, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	auto_buf struct buf coded = { 0 };

	for (; *name && coded.len < 3 * 255; name++) {
		unsigned char c = (unsigned char)*name;

		if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		    strchr("._-", c))
			buf_putc(&coded, (char)c);
		else
			buf_printf(&coded, "%%%02X", c);
	}
	http_set(r, "Content-Disposition", "%s; filename*=UTF-8''%s", kind, buf_str(&coded));
	http_set(r, "Content-Security-Policy", "sandbox");
}

static int is_fresh(const struct http_req *r, const char *etag, const char *modified)
{
	const char *none = http_header(r, "if-none-match"),
		   *since = http_header(r, "if-modified-since");

	return none ? file_request_etag_among(none, etag) : since && !strcmp(since, modified);
}

/* ---- ranges ---- */

enum part { PART_ALL, PART_SOME, PART_NONE };

/* Reads digits, if any; -1: too many. */
static int download_number(const char **p, uint64_t *out)
{
	const char *at = *p;

	for (*out = 0; *at >= '0' && *at <= '9'; at++) {
		if (*out > UINT64_MAX / 10 - 1)
			return -1;
		*out = *out * 10 + (uint64_t)(*at - '0');
	}
	*p = at;
	return 0;
}

/* "bytes=A-B", "bytes=A-", "bytes=-N". Anything else counts as no range. */
static enum part parse_range(const char *text, uint64_t size, uint64_t *from, uint64_t *bytes)
{
	uint64_t first, last = UINT64_MAX;
	const char *at = text + 6, *mark;

	if (strncmp(text, "bytes=", 6) != 0)
		return PART_ALL;
	mark = at;
	if (download_number(&at, &first) < 0 || *at != '-')
		return PART_ALL;
	if (at == mark) { /* the last N bytes */
		mark = ++at;
		if (download_number(&at, &last) < 0 || at == mark || *at)
			return PART_ALL;
		if (last == 0 || size == 0)
			return PART_NONE;
		*bytes = last < size ? last : size;
		*from = size - *bytes;
		return PART_SOME;
	}
	mark = ++at;
	if (download_number(&at, &last) < 0 || *at)
		return PART_ALL;
	if (at == mark)
		last = UINT64_MAX;
	if (last < first)
		return PART_ALL;
	if (first >= size)
		return PART_NONE;
	*from = first;
	*bytes = (last < size ? last + 1 : size) - first;
	return PART_SOME;
}

static enum part part_of(const struct http_req *r, const struct wire_entry *e, const char *etag,
			 const char *modified, uint64_t *from, uint64_t *bytes)
{
	const char *range = http_header(r, "range"), *only = http_header(r, "if-range");

	*from = 0;
	*bytes = e->size;
	if (!range || !strcmp(r->method, "HEAD") ||
	    (only && strcmp(only, etag) != 0 && strcmp(only, modified) != 0))
		return PART_ALL;
	return parse_range(range, e->size, from, bytes);
}

/* ---- answers of the worker ---- */

static void download_ask(struct download *d, uint64_t from, uint64_t bytes)
{
	struct wire_get get = { .from = from, .bytes = bytes };
	struct err e;

	d->from = from;
	d->bytes = bytes;
	if (d->to_end)
		get.head.flags = WIRE_GET_END;
	if (from == UINT64_MAX || d->to_end)
		file_client_ask(&d->file_req.file_client, WIRE_GET, &get, sizeof(get),
				d->file_req.path, strlen(d->file_req.path));
	else if (file_client_ask_pipe(&d->file_req.file_client, WIRE_GET, &get, sizeof(get),
				      d->file_req.path, &d->pipe, &e) < 0)
		file_request_fail(&d->file_req, &e);
}

static int is_head(const struct download *d)
{
	return !strcmp(d->file_req.call->req->method, "HEAD");
}

static void download_ready(struct file_client *k)
{
	struct download *d = loop_owner(k, struct download, file_req.file_client);
	int look_first = is_head(d) || http_header(d->file_req.call->req, "range");

	download_ask(d, look_first ? UINT64_MAX : 0, 0);
}

static void set_head(struct download *d)
{
	set_disposition(d->file_req.call->req, d->want.shown ? "inline" : "attachment",
			d->file_req.path);
}

static void download_do_begin(struct download *d, const struct wire_entry *e, enum part part,
			      uint64_t from, uint64_t bytes)
{
	struct http_req *r = d->file_req.call->req;

	if (part == PART_SOME)
		http_set(r, "Content-Range", "bytes %llu-%llu/%llu", (unsigned long long)from,
			 (unsigned long long)(from + bytes - 1), (unsigned long long)e->size);
	set_head(d);
	http_stream(r, part == PART_SOME ? 206 : 200, type_of(d->file_req.path), bytes);
	d->streaming = 1;
	if (!is_head(d)) {
		http_stream_pipe(r, steal_fd(&d->pipe));
		return;
	}
	file_request_close(&d->file_req);
	http_end(r);
}

static void download_entry(struct file_client *k, const struct wire_entry *e, const char *name,
			   size_t n)
{
	struct download *d = loop_owner(k, struct download, file_req.file_client);
	struct http_req *r = d->file_req.call->req;
	char etag[FILE_REQUEST_ETAG], modified[40];
	uint64_t from, bytes;
	enum part part;

	(void)name;
	(void)n;
	if (d->streaming || d->to_end || e->size > INT64_MAX)
		return;
	file_request_etag(e, etag);
	download_when(e->mtime_ns, modified);
	part = part_of(r, e, etag, modified, &from, &bytes);
	/* The range differs from the one that was requested from the worker before the size was
	 * known. When the pipe has no reader, the worker soon ends the first request. */
	if (part != PART_NONE && bytes && !is_head(d) &&
	    (from != d->from || (d->bytes && bytes != d->bytes))) {
		d->from = from;
		d->bytes = bytes;
		d->again = 1;
		own_close_fd(&d->pipe);
		return;
	}
	http_set(r, "ETag", "%s", etag);
	http_set(r, "Last-Modified", "%s", modified);
	http_set(r, "Accept-Ranges", "bytes");
	if (is_fresh(r, etag, modified)) {
		file_request_close(&d->file_req);
		call_empty(d->file_req.call, 304);
	} else if (part == PART_NONE) {
		http_set(r, "Content-Range", "bytes */%llu", (unsigned long long)e->size);
		file_request_error(&d->file_req, 416, "range", "the file has no such bytes",
				   d->file_req.path, NULL);
	} else if (e->size == 0 && !is_head(d)) {
		d->to_end = d->again = 1;
		d->from = d->bytes = 0;
		own_close_fd(&d->pipe);
	} else {
		download_do_begin(d, e, part, from, bytes);
	}
}

/* A piece of a file of unknown size, or its end. */
static void data_to_end(struct download *d, const char *bytes, size_t n)
{
	struct http_req *r = d->file_req.call->req;

	if (n && !d->streaming && d->first.len == 0) {
		buf_add(&d->first, bytes, n);
		return;
	}
	if (!d->streaming)
		set_head(d);
	if (!n && !d->streaming) {
		file_request_close(&d->file_req);
		http_reply(r, 200, type_of(d->file_req.path), buf_str(&d->first), d->first.len);
	} else if (!n) {
		file_request_close(&d->file_req);
		http_end(r);
	} else {
		if (!d->streaming) {
			http_stream(r, 200, type_of(d->file_req.path), UINT64_MAX);
			http_write(r, d->first.p, d->first.len);
		}
		d->streaming = 1;
		if (http_write(r, bytes, n))
			file_client_pause(&d->file_req.file_client, 1);
	}
}

static void download_drained(struct http_req *r)
{
	struct call *c = r->user;
	struct download *d = c->state;

	if (d->file_req.open)
		file_client_pause(&d->file_req.file_client, 0);
}

/* n 0: the worker has finished. */
static void download_data(struct file_client *k, const char *bytes, size_t n)
{
	struct download *d = loop_owner(k, struct download, file_req.file_client);

	if (d->to_end && !d->again) {
		data_to_end(d, bytes, n);
		return;
	}
	if (n)
		return;
	if (d->streaming) {
		file_request_close(&d->file_req); /* the whole content is in the pipe */
	} else if (d->again && ++d->tries < TRIES) {
		d->again = 0;
		download_ask(d, d->from, d->bytes);
	} else {
		file_request_error(&d->file_req, 409, "busy",
				   "the file changes faster than it can be read", d->file_req.path,
				   "ask again, without a range");
	}
}

static void download_failed(struct file_client *k, const struct err *e)
{
	struct download *d = loop_owner(k, struct download, file_req.file_client);

	if (d->streaming) {
		file_request_close(&d->file_req);
		http_abort(d->file_req.call->req);
	} else if (d->want.fail) {
		d->want.fail(&d->file_req, e);
	} else if (e->sys == EINVAL) {
		file_request_error(&d->file_req, 409, "not_a_file",
				   "this is neither file nor folder", d->file_req.path,
				   "GET .../files/stat returns its type");
	} else {
		file_request_fail(&d->file_req, e);
	}
}

static void download_dropped(struct call *c)
{
	struct download *d = c->state;

	own_close_fd(&d->pipe);
	file_request_close(&d->file_req);
	buf_fini(&d->first);
}

void download_begin(struct call *c, const struct download_want *want)
{
	static const struct file_client_events on = { .ready = download_ready,
						      .entry = download_entry,
						      .data = download_data,
						      .failed = download_failed };
	struct download *d = call_alloc(c, sizeof(*d));

	*d = (struct download){ .file_req.path = want->path, .pipe = -1, .want = *want };
	file_request_open_in(&d->file_req, c, want->box, want->worker, &on);
	c->req->on_drain = download_drained;
	c->drop = download_dropped;
}

void boxfiles_get(struct call *c)
{
	struct download_want want = { .path = file_request_path(c, call_query(c, "path")) };

	want.box = want.path ? call_box(c, 0) : NULL;
	if (want.box)
		download_begin(c, &want);
}
