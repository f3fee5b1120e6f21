/* copies_objects.c - /cluster/objects: snapshots on their way between this node and the object store (copy_file.h), with
 * URLs that a gateway has signed. An object is used only if length and SHA-256 are those that its writer has reported. */
#include "v1box/copies_internal.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "cluster/object_client.h"
#include "v1box/copy_file.h"

#include <stdlib.h>
#include <string.h>

enum { COPIES_URL = 4096 };

const struct field copies_put_object_fields[] = {
	{ "snapshot", FIELD_TEXT, 1, 0, ID_MAX, "of the caller's team", NULL },
	{ "url", FIELD_TEXT, 1, 0, COPIES_URL, "signed for PUT", NULL },
	{ 0 },
};
const struct field copies_get_object_fields[] = {
	{ "snapshot", FIELD_TEXT, 1, 0, ID_MAX, "that the object contains", NULL },
	{ "url", FIELD_TEXT, 1, 0, COPIES_URL, "signed for GET", NULL },
	{ "sha256", FIELD_TEXT, 1, 0, COPY_DIGITS, "of the object", NULL },
	{ "bytes", FIELD_INT, 1, 1, INT64_MAX, "of the object", NULL },
	{ 0 },
};
const struct field copies_delete_object_fields[] = {
	{ "url", FIELD_TEXT, 1, 0, COPIES_URL, "signed for DELETE", NULL },
	{ 0 },
};

struct copies_object {
	struct object_request request;
	struct call *call;
	struct copy_source source;
	struct copy_receiver receiver;
	int has_receiver;
	char sha256[COPY_DIGITS + 1];
};

static void copies_object_end(struct call *c)
{
	struct copies_object *x = c->state;

	object_request_cancel(&x->request);
	copy_source_close(&x->source);
	if (x->has_receiver)
		copy_receiver_close(&x->receiver);
}

/* 502: the gateway uses another way. */
static void copies_object_fail(struct copies_object *x, const char *why)
{
	call_error(x->call, 502, "object_store", why, NULL, NULL);
}

/* NULL: an answer was sent. */
static struct copies_object *copies_object_new(struct call *c)
{
	struct copies_object *x;

	if (!c->api->objects) {
		call_error(c, 501, "not_supported", "this node has no object store", NULL,
			   "set cluster.objects");
		return NULL;
	}
	x = call_alloc(c, sizeof(*x));
	*x = (struct copies_object){ .call = c, .source.fd = -1, .receiver.fd = -1 };
	c->state = x;
	c->drop = copies_object_end;
	return x;
}

static void copies_object_begin(struct copies_object *x, const char *method)
{
	struct err e;

	if (object_client_begin(x->call->api->objects, &x->request, method,
				call_text(x->call, "url", ""), &e) < 0)
		call_fail(x->call, &e);
}

/* ---- to the store ---- */

static ssize_t copies_object_read(struct object_request *r, char *piece, size_t room)
{
	return copy_source_read(&loop_owner(r, struct copies_object, request)->source, piece, room);
}

static void copies_object_stored(struct object_request *r, const char *why)
{
	struct copies_object *x = loop_owner(r, struct copies_object, request);

	if (why) {
		copies_object_fail(x, why);
		return;
	}
	copy_source_sha256(&x->source, x->sha256);
	call_json(x->call, 200,
		  json_pack("{s:s, s:I}", "sha256", x->sha256, "bytes",
			    (json_int_t)x->source.length));
}

void copies_put_object(struct call *c)
{
	struct copies_object *x = copies_object_new(c);
	struct err e;

	if (!x)
		return;
	if (copy_source_open(&x->source, c->api, c->who.team, call_text(c, "snapshot", ""), &e) <
	    0) {
		call_fail(c, &e);
		return;
	}
	x->request.length = x->source.length;
	x->request.read = copies_object_read;
	x->request.done = copies_object_stored;
	copies_object_begin(x, "PUT");
}

/* ---- from the store ---- */

static int copies_object_add(struct object_request *r, const char *bytes, size_t n)
{
	struct copies_object *x = loop_owner(r, struct copies_object, request);

	copy_receiver_add(&x->receiver, bytes, n);
	return x->receiver.trouble.kind != ERR_NONE;
}

static void copies_object_came(struct object_request *r, const char *why)
{
	struct copies_object *x = loop_owner(r, struct copies_object, request);
	struct err e;

	if (why && r->is_other)
		call_error(x->call, 422, "damaged", why, NULL, NULL);
	else if (why && x->receiver.trouble.kind != ERR_SYS)
		copies_object_fail(x, why);
	else if (copy_receiver_keep(&x->receiver, x->sha256, &e) == 0)
		call_empty(x->call, 201);
	else if (e.kind == ERR_INVALID)
		call_error(x->call, 422, "damaged", e.msg, NULL, NULL);
	else
		call_fail(x->call, &e);
}

void copies_get_object(struct call *c)
{
	const char *id = call_text(c, "snapshot", ""), *sha256 = call_text(c, "sha256", "");
	struct copies_object *x = copies_object_new(c);
	struct err e;

	if (!x)
		return;
	if (!id_valid(id) || strlen(sha256) != COPY_DIGITS) {
		call_error(c, 400, "invalid", "not a snapshot and its SHA-256", id, NULL);
		return;
	}
	memcpy(x->sha256, sha256, COPY_DIGITS + 1);
	x->request.length = (uint64_t)call_int(c, "bytes", 0);
	if (copy_receiver_begin(&x->receiver, c->api, id, x->request.length, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	x->has_receiver = 1;
	x->request.body = copies_object_add;
	x->request.done = copies_object_came;
	copies_object_begin(x, "GET");
}

/* ---- deleted ---- */

static void copies_object_deleted(struct object_request *r, const char *why)
{
	struct copies_object *x = loop_owner(r, struct copies_object, request);

	if (why)
		copies_object_fail(x, why);
	else
		call_empty(x->call, 204);
}

void copies_delete_object(struct call *c)
{
	struct copies_object *x = copies_object_new(c);

	if (!x)
		return;
	x->request.done = copies_object_deleted;
	copies_object_begin(x, "DELETE");
}
