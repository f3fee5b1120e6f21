/* file_request.c - see file_request.h. */
#include "v1box/file_request.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "fleet/box.h"
#include "fleet/box_secrets.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PATIENCE_MS = 60000 };

/* Removes "//", "/./" and a slash at the end. ".." stays: its meaning depends on the links before
 * it, which only the box can resolve. */
static void file_tidy(char *path)
{
	char *to = path;

	for (const char *at = path; *at;) {
		size_t n;

		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (n && !(n == 1 && *at == '.')) {
			*to++ = '/';
			memmove(to, at, n);
			to += n;
		}
		at += n;
	}
	if (to == path)
		*to++ = '/';
	*to = 0;
}

static int file_is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (!path[n] || path[n] == '/');
}

/* Values of variables and secrets are withheld from viewers. They are also in the environment of processes
 * and in the files of secrets. ".." could lead there through a link, such as /dev/fd. */
static int file_is_withheld(const struct call *c, const char *path)
{
	static const char *const folders[] = { "/proc", "/dev", BOX_SECRETS_FOLDER };

	if (c->who.role >= ROLE_EDITOR)
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(folders); i++)
		if (file_is_below(path, folders[i]))
			return 1;
	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (!at[3] || at[3] == '/')
			return 1;
	return 0;
}

static void file_withhold(struct call *c, const char *path)
{
	call_error(c, 403, "denied", "a viewer cannot read this path", path,
		   "below /proc, /dev and " BOX_SECRETS_FOLDER
		   " are values that a viewer does not see; use a key with the role editor");
}

const char *file_request_tree(struct call *c, const char *given)
{
	const char *path = file_request_path(c, given);

	if (!path || c->who.role >= ROLE_EDITOR ||
	    (strcmp(path, "/") != 0 && !file_is_below(BOX_SECRETS_FOLDER, path)))
		return path;
	file_withhold(c, path);
	return NULL;
}

const char *file_request_path(struct call *c, const char *given)
{
	size_t n = given ? strlen(given) : 0, home = strlen(BOX_HOME "/");
	char *full;

	if (n == 0) {
		call_error(c, 400, "invalid", "path: is empty", NULL,
			   "a path in the box; relative ones are below " BOX_HOME);
		return NULL;
	}
	if (*given == '/')
		home = 0;
	if (n + home > FILE_REQUEST_PATH) {
		call_error(c, 400, "invalid", "path: is too long", NULL, "at most 4095 bytes");
		return NULL;
	}
	full = call_alloc(c, home + n + 1);
	memcpy(full, BOX_HOME "/", home);
	memcpy(full + home, given, n + 1);
	file_tidy(full);
	if (!file_is_withheld(c, full))
		return full;
	file_withhold(c, full);
	return NULL;
}

/* ---- the worker ---- */

static void file_dropped(struct call *c)
{
	file_request_close(c->state);
}

/* A program in the box can stop the worker, which then never answers. A client that may have
 * disconnected cannot be distinguished from one that waits unless something is sent to it, so the
 * request needs an end. */
static void out_of_patience(struct timer *t)
{
	struct file_request *d = loop_owner(t, struct file_request, patience);
	struct http_req *r = d->call->req;

	if (!d->gone)
		file_request_error(
			d, 504, "box_stalls", "the box's file worker does not work", d->path,
			"a program in the box may have stopped it, or its CPU time is short");
	else if (http_waiting(r) == 0)
		http_abort(r);
	else
		timer_set(&d->patience, PATIENCE_MS);
}

static void peer_ended(struct http_req *r)
{
	struct call *c = r->user;
	struct file_request *d = c->state;

	if (!d->open)
		return;
	d->gone = 1;
	timer_set(&d->patience, PATIENCE_MS);
}

void file_request_stalls(struct file_request *d, int stalls)
{
	if (stalls)
		timer_set(&d->patience, PATIENCE_MS);
	else if (!d->gone)
		timer_clear(&d->patience);
}

int file_request_open(struct file_request *d, struct call *c, const struct file_client_events *on)
{
	struct box *b = call_box(c, 0);

	if (b)
		file_request_open_in(d, c, b, 0, on);
	return b != NULL;
}

void file_request_open_in(struct file_request *d, struct call *c, struct box *b, uint16_t flags,
			  const struct file_client_events *on)
{
	d->call = c;
	d->open = 1;
	c->state = d;
	c->drop = file_dropped;
	c->req->on_eof = peer_ended;
	timer_init(&d->patience, c->api->loop, out_of_patience);
	file_client_open(&d->file_client, &b->line, flags, on);
}

void file_request_close(struct file_request *d)
{
	if (!d->open)
		return;
	d->open = 0;
	timer_fini(&d->patience);
	file_client_close(&d->file_client);
}

void file_request_ask(struct file_request *d, uint8_t type, uint16_t flags, const void *tail,
		      size_t n)
{
	struct frame f = { .flags = flags };

	file_client_ask(&d->file_client, type, &f, sizeof(f), tail, n);
}

void file_request_look(struct file_request *d, const char *path)
{
	file_request_ask(d, WIRE_ENTRY_OF, 0, path, strlen(path));
}

/* ---- errors ---- */

static const struct file_refusal {
	int sys, status;
	const char *code, *hint;
} refusals[] = {
	{ ENOENT, 404, "not_found", "list the folder: GET .../files/list?path=" },
	{ ENOTDIR, 409, "not_a_folder", "something on the way is a file" },
	{ EISDIR, 409, "is_a_folder", "list it: GET .../files/list?path=" },
	{ EEXIST, 409, "exists", "choose another name, or say that it may be replaced" },
	{ ENOTEMPTY, 409, "not_empty", "with ?recursive=1 everything in it goes, too" },
	{ ESTALE, 412, "changed", "read it again and decide anew" },
	{ ELOOP, 409, "link_loop", "a symbolic link on the way leads to itself" },
	{ EBUSY, 409, "busy", "something is mounted there" },
	{ ETXTBSY, 409, "busy", "it is a program that runs" },
	{ EXDEV, 409, "other_disk", "copy it, then delete it" },
	{ ENXIO, 409, "not_a_file", "only files and folders have content" },
	{ ENODEV, 409, "not_a_file", "only files and folders have content" },
	{ EACCES, 403, "denied", "the box's user may not do that" },
	{ EPERM, 403, "denied", "the box's user may not do that" },
	{ EROFS, 403, "denied", "this part of the box cannot be written to" },
	{ EINVAL, 400, "invalid", NULL },
	{ ENAMETOOLONG, 400, "invalid", "a name has at most 255 bytes, a path 4095" },
	{ EFBIG, 413, "too_large", NULL },
	{ EAGAIN, 503, "overloaded", "the box may not have more processes: limits.pids" },
	{ ENOMEM, 503, "overloaded", "the box has no memory left: limits.mem" },
	{ EMFILE, 503, "overloaded", NULL },
	{ ENOSPC, 507, "no_space", "remove files, or make a box with a larger limits.disk" },
	{ EDQUOT, 507, "no_space", "remove files, or make a box with a larger limits.disk" },
	/* No errno: no worker exists that could return one. */
	{ 0, 502, "box_ended", "GET the box: is it still there?" },
};

static const struct file_refusal *refusal_of(const struct err *e)
{
	static const struct file_refusal other = { 0, 500, "error", NULL };
	static const struct file_refusal limit = { 0, 429, "limit",
						   "ask for a part of it: a folder further below" };

	if (!e->sys && e->kind == ERR_LIMIT)
		return &limit;
	for (unsigned i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].sys == e->sys)
			return &refusals[i];
	return &other;
}

void file_request_no_space(struct call *c)
{
	const struct box *b = fleet_find(&c->api->fleet, c->held);
	char why[120] = "";

	if (b)
		snprintf(why, sizeof(why), "the box may have %llu bytes in %llu files",
			 (unsigned long long)b->about.limits.disk_bytes,
			 (unsigned long long)b->about.limits.disk_files);
	call_error(c, 507, "no_space", "there is no room for it on the box's disk", why,
		   "remove files, or make a box with a larger limits.disk");
}

void file_request_json(struct file_request *d, int status, json_t *take_doc)
{
	file_request_close(d);
	call_json(d->call, status, take_doc);
}

void file_request_error(struct file_request *d, int status, const char *code, const char *message,
			const char *why, const char *hint)
{
	file_request_close(d);
	call_error(d->call, status, code, message, why, hint);
}

void file_request_fail(struct file_request *d, const struct err *e)
{
	const struct file_refusal *r = refusal_of(e);

	file_request_close(d);
	if (r->status == 507)
		file_request_no_space(d->call);
	else
		call_error(d->call, r->status, r->code, e->msg, d->path, r->hint);
}

json_t *file_request_fail_json(const struct err *e)
{
	const struct file_refusal *r = refusal_of(e);
	json_t *doc = call_error_json(NULL, r->code, e->msg, NULL, r->hint);

	json_object_set_new(doc, "type", json_string("error"));
	return doc;
}

/* ---- entries ---- */

const char *file_request_type(uint32_t mode)
{
	return S_ISREG(mode)    ? "file"
	       : S_ISDIR(mode)  ? "folder"
	       : S_ISLNK(mode)  ? "link"
	       : S_ISFIFO(mode) ? "fifo"
	       : S_ISSOCK(mode) ? "socket"
				: "device";
}

void file_request_set_text(json_t *doc, const char *key, const char *bytes)
{
	json_t *plain = json_string(bytes);

	if (plain) {
		json_object_set_new(doc, key, plain);
	} else {
		auto_buf struct buf coded = { 0 };
		char coded_key[40];

		snprintf(coded_key, sizeof(coded_key), "%.30s_base64", key);
		base64_encode(&coded, bytes, strlen(bytes));
		json_object_set_new(doc, key, json_text(bytes));
		json_object_set_new(doc, coded_key, json_string(buf_str(&coded)));
	}
}

/* The tail is always followed by a NUL, which frame_conn.c adds. */
int file_request_split(const struct wire_entry *e, const char *tail, size_t n,
		       struct file_request_entry *out)
{
	size_t name = strnlen(tail, n);

	if (name == 0 || name > PATH_MAX || n - name > PATH_MAX + 1 || e->size > INT64_MAX)
		return 0;
	*out = (struct file_request_entry){ .name = tail };
	if (S_ISLNK(e->mode))
		out->target = name < n ? tail + name + 1 : "";
	return 1;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void set_path(json_t *doc, const char *below, const char *name)
{
	auto_buf struct buf path = { 0 };

	if (below) {
		buf_puts(&path, below);
		if (below[0] && below[strlen(below) - 1] != '/')
			buf_putc(&path, '/');
	}
	buf_puts(&path, name);
	file_request_set_text(doc, "path", buf_str(&path));
}

json_t *file_request_entry_json(const struct wire_entry *e, const struct file_request_entry *parts,
				const char *below)
{
	json_t *doc = json_object();
	char mode[8], etag[FILE_REQUEST_ETAG];

	file_request_set_text(doc, "name", last_part(parts->name));
	set_path(doc, below, parts->name);
	json_object_set_new(doc, "type", json_string(file_request_type(e->mode)));
	json_object_set_new(doc, "size", json_integer((json_int_t)e->size));
	snprintf(mode, sizeof(mode), "%04o", e->mode & 07777);
	json_object_set_new(doc, "mode", json_string(mode));
	json_object_set_new(doc, "mtime", json_time(e->mtime_ns));
	json_object_set_new(doc, "uid", json_integer(e->uid));
	json_object_set_new(doc, "gid", json_integer(e->gid));
	if (parts->target) {
		file_request_set_text(doc, "target", parts->target);
		json_object_set_new(doc, "target_type",
				    e->target_mode ? json_string(file_request_type(e->target_mode))
						   : json_null());
	}
	if (S_ISREG(e->mode)) {
		file_request_etag(e, etag);
		json_object_set_new(doc, "etag", json_string(etag));
	}
	return doc;
}

/* ---- versions ---- */

void file_request_etag(const struct wire_entry *e, char out[FILE_REQUEST_ETAG])
{
	snprintf(out, FILE_REQUEST_ETAG, "\"%llx-%llx\"", (unsigned long long)e->mtime_ns,
		 (unsigned long long)e->size);
}

/* Weak and strong ETags are compared alike: both consist of time and size only. */
int file_request_etag_among(const char *list, const char *etag)
{
	size_t n = strlen(etag);

	while (*list) {
		list += strspn(list, ", \t");
		if (*list == '*')
			return 1;
		if (!strncmp(list, "W/", 2))
			list += 2;
		if (!strncmp(list, etag, n) && (!list[n] || strchr(", \t", list[n])))
			return 1;
		list += strcspn(list, ",");
	}
	return 0;
}

int file_request_mode(const char *text)
{
	size_t n = strlen(text);
	int mode = 0;

	if (n == 0 || n > 5 || strspn(text, "01234567") != n)
		return -1;
	for (; *text; text++)
		mode = mode << 3 | (*text - '0');
	return mode <= 07777 ? mode : -1;
}
