/* files.c - see files.h. Requests that need one request to the worker and one answer. */
#include "v1box/files.h"
#include "v1box/file_request.h"
#include "base/base64.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGE = 1000, PAGE_MAX = 10000, CURSOR = 6000, DEPTH_MAX = 64 };
enum { PAGE_BYTES = 2 << 20 }; /* bytes of names per page: a page with long names ends earlier */

const struct field boxfiles_path_query[] = {
	FILE_REQUEST_PATH_FIELD(1, "in the box; relative ones are below /home/user"),
	{ 0 },
};
const struct field boxfiles_delete_query[] = {
	FILE_REQUEST_PATH_FIELD(1, "what to remove"),
	{ "recursive", FIELD_BOOL, 0, 0, 0, "delete a folder with its content", NULL },
	{ 0 },
};
const struct field boxfiles_list_query[] = {
	FILE_REQUEST_PATH_FIELD(0, "the folder; /home/user"),
	{ "after", FIELD_TEXT, 0, 0, CURSOR, "`next` of the previous page", NULL },
	{ "limit", FIELD_INT, 0, 1, PAGE_MAX, "number of items per page (default 1000)", NULL },
	{ "depth", FIELD_INT, 0, 1, DEPTH_MAX, "levels of folders (default 1)", NULL },
	{ 0 },
};
const struct field boxfiles_mkdir_fields[] = {
	FILE_REQUEST_PATH_FIELD(1, "the folder; those above it are made, too"),
	{ "mode", FIELD_ANY, 0, 0, 0, "mode: \"0755\", or an integer", NULL },
	{ 0 },
};
const struct field boxfiles_move_fields[] = {
	{ "from", FIELD_TEXT, 1, 0, FILE_REQUEST_PATH, "source path", NULL },
	{ "to", FIELD_TEXT, 1, 0, FILE_REQUEST_PATH, "destination path; parent folders are created",
	  NULL },
	{ "replace", FIELD_BOOL, 0, 0, 0, "replace an existing destination", NULL },
	{ 0 },
};
const struct field boxfiles_chmod_fields[] = {
	FILE_REQUEST_PATH_FIELD(1, "what"),
	{ "mode", FIELD_ANY, 1, 0, 0, "mode: \"0644\", or an integer", NULL },
	{ 0 },
};

/* ---- one entry ---- */

static void files_show(struct file_request *d, int status, const struct wire_entry *e,
		       const char *tail, size_t n)
{
	struct file_request_entry parts;

	if (file_request_split(e, tail, n, &parts))
		file_request_json(d, status, file_request_entry_json(e, &parts, NULL));
	else
		file_request_error(d, 502, "box_lies", "the box's answer makes no sense", d->path,
				   NULL);
}

static void stat_ready(struct file_client *k)
{
	struct file_request *d = loop_owner(k, struct file_request, file_client);

	file_request_look(d, d->path);
}

static void stat_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
		       size_t n)
{
	files_show(loop_owner(k, struct file_request, file_client), 200, e, tail, n);
}

static void files_failed(struct file_client *k, const struct err *e)
{
	file_request_fail(loop_owner(k, struct file_request, file_client), e);
}

void boxfiles_stat(struct call *c)
{
	static const struct file_client_events on = { .ready = stat_ready,
						      .entry = stat_entry,
						      .failed = files_failed };
	struct file_request *d = call_alloc(c, sizeof(*d));

	*d = (struct file_request){ .path = file_request_path(c, call_query(c, "path")) };
	if (d->path)
		file_request_open(d, c, &on);
}

/* ---- a folder ---- */

struct files_listing {
	struct file_request file_req;
	struct wire_list ask;
	struct buf after; /* a path below the folder, after a NUL */
	struct buf last;  /* the same for the last item */
	json_t *items;
	size_t bytes;
};

/* A name may have any bytes, and the cursor must be valid in a JSON string and in a query: base64
 * with the alphabet that needs no encoding in either. */
static void cursor_text(const struct buf *raw, struct buf *out)
{
	base64_encode(out, raw->p, raw->len);
	for (char *p = out->p; *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	while (out->len && out->p[out->len - 1] == '=')
		buf_cut(out, out->len - 1);
}

static int cursor_parse(const char *text, struct buf *out)
{
	auto_buf struct buf plain = { 0 };

	for (; *text; text++)
		buf_putc(&plain, *text == '-' ? '+' : *text == '_' ? '/' : *text);
	while (plain.len % 4)
		buf_putc(&plain, '=');
	if (base64_decode(out, plain.p, plain.len) < 0 || memchr(out->p, 0, out->len))
		return -1;
	return out->len && out->len <= FILE_REQUEST_PATH ? 0 : -1;
}

static void list_ready(struct file_client *k)
{
	struct files_listing *l = loop_owner(k, struct files_listing, file_req.file_client);
	auto_buf struct buf tail = { 0 };

	buf_add(&tail, l->file_req.path, strlen(l->file_req.path) + 1);
	buf_add(&tail, buf_str(&l->after), l->after.len);
	file_client_ask(k, WIRE_LIST, &l->ask, sizeof(l->ask), tail.p, tail.len);
}

static void list_done(struct file_client *k, uint16_t flags)
{
	struct files_listing *l = loop_owner(k, struct files_listing, file_req.file_client);
	auto_buf struct buf next = { 0 };

	if (flags & WIRE_DONE_TRUNCATED && l->last.len)
		cursor_text(&l->last, &next);
	file_request_close(&l->file_req);
	call_json(l->file_req.call, 200,
		  json_pack("{s:O, s:s?, s:b}", "items", l->items, "next", next.len ? next.p : NULL,
			    "skipped", (flags & WIRE_DONE_SKIPPED) != 0));
}

static void list_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
		       size_t n)
{
	struct files_listing *l = loop_owner(k, struct files_listing, file_req.file_client);
	struct file_request_entry parts;

	if (json_array_size(l->items) == l->ask.max || !file_request_split(e, tail, n, &parts)) {
		file_request_error(&l->file_req, 502, "box_lies", "the box's answer makes no sense",
				   l->file_req.path, NULL);
		return;
	}
	json_array_append_new(l->items, file_request_entry_json(e, &parts, l->file_req.path));
	buf_cut(&l->last, 0);
	buf_puts(&l->last, parts.name);
	l->bytes += n;
	if (l->bytes > PAGE_BYTES)
		list_done(k, WIRE_DONE_TRUNCATED);
}

static void list_dropped(struct call *c)
{
	struct files_listing *l = c->state;

	file_request_close(&l->file_req);
	json_decref(l->items);
	buf_fini(&l->after);
	buf_fini(&l->last);
}

void boxfiles_list(struct call *c)
{
	static const struct file_client_events on = {
		.ready = list_ready, .entry = list_entry, .done = list_done, .failed = files_failed
	};
	struct files_listing *l = call_alloc(c, sizeof(*l));
	const char *after = call_query(c, "after"), *path = call_query(c, "path");

	*l = (struct files_listing){ .file_req.path =
					     file_request_path(c, path ? path : BOX_HOME) };
	if (!l->file_req.path)
		return;
	l->ask.max = (uint32_t)call_query_int(c, "limit", PAGE);
	l->ask.depth = (uint32_t)call_query_int(c, "depth", 1);
	if (after && cursor_parse(after, &l->after) < 0) {
		buf_fini(&l->after);
		call_error(c, 400, "invalid", "?after= is not the `next` of a page", after, NULL);
		return;
	}
	if (!file_request_open(&l->file_req, c, &on)) {
		buf_fini(&l->after);
		return;
	}
	l->items = json_array();
	c->drop = list_dropped;
}

/* ---- changes: the answer shows the entry after the change ---- */

struct files_change {
	struct file_request file_req;
	uint8_t type;
	uint16_t flags;
	struct wire_put put;   /* MKDIR, CHMOD */
	const char *from, *at; /* MOVE and COPY have both; the answer shows the entry at `at`, or
			        * nothing */
	int status, there;     /* there: MKDIR found an existing entry */
	uint16_t done;         /* flags of DONE */
};

static void files_change_ready(struct file_client *k)
{
	struct files_change *x = loop_owner(k, struct files_change, file_req.file_client);
	auto_buf struct buf tail = { 0 };

	if (x->from)
		buf_add(&tail, x->from, strlen(x->from) + (x->at != NULL));
	if (x->at)
		buf_puts(&tail, x->at);
	if (x->type == WIRE_MKDIR || x->type == WIRE_CHMOD)
		file_client_ask(k, x->type, &x->put, sizeof(x->put), tail.p, tail.len);
	else
		file_request_ask(&x->file_req, x->type, x->flags, tail.p, tail.len);
}

static void files_change_done(struct file_client *k, uint16_t flags)
{
	struct files_change *x = loop_owner(k, struct files_change, file_req.file_client);

	x->done = flags;
	if (x->at) {
		file_request_look(&x->file_req, x->at);
		return;
	}
	file_request_close(&x->file_req);
	call_empty(x->file_req.call, 204);
}

static void files_change_entry(struct file_client *k, const struct wire_entry *e, const char *tail,
			       size_t n)
{
	struct files_change *x = loop_owner(k, struct files_change, file_req.file_client);

	if (x->there && !S_ISDIR(e->mode)) {
		file_request_error(&x->file_req, 409, "exists", "there is something of that name",
				   x->at, NULL);
		return;
	}
	if (x->done & WIRE_DONE_SKIPPED)
		http_set(x->file_req.call->req, "X-Skipped", "1");
	files_show(&x->file_req, x->there ? 200 : x->status, e, tail, n);
}

/* An existing folder is the requested result. */
static void files_change_failed(struct file_client *k, const struct err *e)
{
	struct files_change *x = loop_owner(k, struct files_change, file_req.file_client);

	if (x->type == WIRE_MKDIR && e->sys == EEXIST && !x->there) {
		x->there = 1;
		file_request_look(&x->file_req, x->at);
		return;
	}
	file_request_fail(&x->file_req, e);
}

static struct files_change *files_change_new(struct call *c, uint8_t type, int status)
{
	struct files_change *x = call_alloc(c, sizeof(*x));

	*x = (struct files_change){ .type = type, .status = status };
	return x;
}

static void files_change_begin(struct files_change *x, struct call *c)
{
	static const struct file_client_events on = { .ready = files_change_ready,
						      .entry = files_change_entry,
						      .done = files_change_done,
						      .failed = files_change_failed };

	x->file_req.path = x->from ? x->from : x->at;
	file_request_open(&x->file_req, c, &on);
}

void boxfiles_delete(struct call *c)
{
	struct files_change *x = files_change_new(c, WIRE_REMOVE, 204);

	x->from = file_request_path(c, call_query(c, "path"));
	x->flags = call_query_flag(c, "recursive") ? 0 : WIRE_REMOVE_ONE;
	if (x->from)
		files_change_begin(x, c);
}

/* 0: rejected, and the error was sent. */
static int read_mode(struct call *c, uint32_t *out)
{
	const json_t *v = call_get(c, "mode");
	int64_t mode = json_is_string(v)    ? file_request_mode(json_string_value(v))
		       : json_is_integer(v) ? json_integer_value(v)
					    : -1;

	if (v && (mode < 0 || mode > 07777)) {
		call_error(c, 400, "invalid", "mode: must be octal digits, or an integer to 4095",
			   NULL, "\"0644\" is 420");
		return 0;
	}
	*out = v ? (uint32_t)mode : 0;
	return 1;
}

void boxfiles_mkdir(struct call *c)
{
	struct files_change *x = files_change_new(c, WIRE_MKDIR, 201);

	x->put.flags = WIRE_PUT_NEW;
	x->at = file_request_path(c, call_text(c, "path", NULL));
	if (x->at && read_mode(c, &x->put.mode))
		files_change_begin(x, c);
}

void boxfiles_chmod(struct call *c)
{
	struct files_change *x = files_change_new(c, WIRE_CHMOD, 200);

	x->at = file_request_path(c, call_text(c, "path", NULL));
	if (x->at && read_mode(c, &x->put.mode))
		files_change_begin(x, c);
}

static void from_to(struct call *c, uint8_t type, uint16_t unless_replace, int status)
{
	struct files_change *x = files_change_new(c, type, status);

	x->from = file_request_path(c, call_text(c, "from", NULL));
	x->at = x->from ? file_request_path(c, call_text(c, "to", NULL)) : NULL;
	x->flags = call_flag(c, "replace", 0) ? 0 : unless_replace;
	if (x->at)
		files_change_begin(x, c);
}

void boxfiles_move(struct call *c)
{
	from_to(c, WIRE_MOVE, WIRE_MOVE_NEW, 200);
}

void boxfiles_copy(struct call *c)
{
	from_to(c, WIRE_COPY, WIRE_COPY_NEW, 201);
}
