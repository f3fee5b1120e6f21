/* files.c - see files.h. */
#include "e2b/files.h"
#include "base/cleanup.h"
#include "e2b/entry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *files_rpc_path(struct call *c, const json_t *ask, const char *field, int root)
{
	const json_t *given = json_object_get(ask, field);
	auto_buf struct buf path = { 0 };
	struct err e;
	const struct box *b = fleet_find(&c->api->fleet, c->held);
	char *kept;

	if (given && !json_is_string(given) && !json_is_null(given)) {
		connect_fail(c, CONNECT_INVALID, "%s: must be a string", field);
		return NULL;
	}
	if (json_is_string(given) &&
	    strlen(json_string_value(given)) != json_string_length(given)) {
		connect_fail(c, CONNECT_INVALID, "%s: has a NUL in it", field);
		return NULL;
	}
	if (entry_path(json_is_string(given) ? json_string_value(given) : "", e2b_home(b, root),
		       e2b_workdir(b, root), &path, &e) < 0) {
		connect_fail(c, CONNECT_INVALID, "%s: %s", field, e.msg);
		return NULL;
	}
	kept = call_alloc(c, path.len + 1);
	memcpy(kept, path.p, path.len + 1);
	return kept;
}

int files_is_old(const struct call *c)
{
	const char *agent = http_header(c->req, "user-agent");

	return agent && !strcmp(agent, "connect-python");
}

/* ---- long answers ---- */

/* The head is sent with the first item; after that no error status can be sent. */
static void array_begin(struct files_array *a)
{
	if (!a->begun) {
		http_stream(a->req, 200, "application/json", UINT64_MAX);
		http_write(a->req, "{\"", 2);
		http_write(a->req, a->key, strlen(a->key));
		http_write(a->req, "\":[", 3);
	} else {
		http_write(a->req, ",", 1);
	}
	a->begun = 1;
}

int files_array_add(struct files_array *a, json_t *take_item)
{
	auto_free char *text = json_dumps(take_item, JSON_COMPACT);

	json_decref(take_item);
	if (!text)
		abort(); /* JSON that the server builds is always valid */
	array_begin(a);
	return http_write(a->req, text, strlen(text));
}

void files_array_end(struct files_array *a)
{
	if (!a->begun)
		array_begin(a);
	http_write(a->req, "]}", 2);
	http_end(a->req);
}

/* ---- what went wrong ---- */

static const struct files_refusal {
	int sys;
	enum connect_code code;
	int status;
} refusals[] = {
	{ ENOENT, CONNECT_NOT_FOUND, 404 },
	{ ENOTDIR, CONNECT_INVALID, 400 },
	{ EISDIR, CONNECT_INVALID, 400 },
	{ EEXIST, CONNECT_EXISTS, 409 },
	{ EINVAL, CONNECT_INVALID, 400 },
	{ ENAMETOOLONG, CONNECT_INVALID, 400 },
	{ EREMOTE, CONNECT_INVALID, 400 },
	{ ELOOP, CONNECT_PRECONDITION, 400 },
	{ ENOTEMPTY, CONNECT_PRECONDITION, 400 },
	{ EXDEV, CONNECT_PRECONDITION, 400 },
	{ EBUSY, CONNECT_PRECONDITION, 400 },
	{ ETXTBSY, CONNECT_PRECONDITION, 400 },
	{ EACCES, CONNECT_DENIED, 403 },
	{ EPERM, CONNECT_DENIED, 403 },
	{ EROFS, CONNECT_DENIED, 403 },
	{ ENOSPC, CONNECT_INTERNAL, 507 },
	{ EDQUOT, CONNECT_INTERNAL, 507 },
	{ ENFILE, CONNECT_EXHAUSTED, 429 },
	{ EAGAIN, CONNECT_EXHAUSTED, 429 },
	{ ENOMEM, CONNECT_EXHAUSTED, 429 },
	/* No errno: the worker has exited and could not send one. */
	{ 0, CONNECT_UNAVAILABLE, 502 },
};

static const struct files_refusal *refusal_of(const struct err *e)
{
	static const struct files_refusal other = { 0, CONNECT_INTERNAL, 500 };
	static const struct files_refusal limit = { 0, CONNECT_EXHAUSTED, 429 };

	if (!e->sys && e->kind == ERR_LIMIT)
		return &limit;
	for (unsigned i = 0; i < ARRAY_LEN(refusals); i++)
		if (refusals[i].sys == e->sys)
			return &refusals[i];
	return &other;
}

void files_rpc_fail(struct call *c, const struct err *e)
{
	connect_fail(c, refusal_of(e)->code, "%s", e->msg);
}

void files_rpc_file_req_fail(struct file_request *d, const struct err *e)
{
	file_request_close(d);
	files_rpc_fail(d->call, e);
}

void files_rest_fail(struct file_request *d, const struct err *e)
{
	const struct files_refusal *r = refusal_of(e);

	file_request_close(d);
	if (r->status == 404)
		e2b_error(d->call, 404, "path '%s' does not exist", d->path);
	else if (e->sys == EISDIR)
		e2b_error(d->call, 400, "path '%s' is a directory", d->path);
	else if (r->status == 507)
		e2b_error(d->call, 507, "not enough disk space available");
	else if (!e->sys && r->status == 502)
		e2b_no_box(d->call, 502, d->call->who.box, 0, "The sandbox was not found");
	else
		e2b_error(d->call, r->status, "%s", e->msg);
}
