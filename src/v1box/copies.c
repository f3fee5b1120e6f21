/* copies.c - see copies.h: the list, and files on their way between nodes (copy_file.h). The gateway passes the bytes on
 * without reading them. */
#include "v1box/copies_internal.h"
#include "base/cleanup.h"
#include "store/copies.h"
#include "v1box/copy_file.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

static json_t *copies_held_json(struct api *a, struct err *e)
{
	struct store_copy_items all;
	json_t *list;

	if (store_copies_held(a->store, &all, e) < 0)
		return NULL;
	list = json_array();
	for (unsigned i = 0; i < all.n; i++) {
		const struct store_copy_item *x = &all.v[i];
		const struct box *b = fleet_find(&a->fleet, x->box);

		if (x->is_spent && !b && copy_drop(a, x->id, e) == 0)
			continue;
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:b}",
						"snapshot", x->id, "box", x->box, "team", x->team,
						"name", x->name, "session", x->session, "template",
						x->template, "created_ns",
						(json_int_t)x->created_ns, "live", b != NULL));
	}
	store_copy_items_fini(&all);
	return list;
}

static json_t *copies_want_json(struct api *a, const struct store_copy_item *x)
{
	const struct box *b = fleet_find(&a->fleet, x->box);
	auto_free char *leaving = b ? box_leaving_snapshot(b) : NULL;
	json_t *doc = json_pack("{s:s, s:s, s:s, s:I}", "snapshot", x->id, "box", x->box, "team",
				x->team, "created_ns", (json_int_t)x->created_ns);

	if (b && b->is_leaving)
		json_object_set_new(doc, "leaving", json_string(leaving));
	if (b && copies_may_leave(b) && (b->is_leaving ? !*leaving : a->fleet.is_moving))
		json_object_set_new(doc, "may_leave", json_true());
	return doc;
}

static json_t *copies_wanted_json(struct api *a, struct err *e)
{
	struct store_copy_items all;
	json_t *list;

	if (store_copies_wanted(a->store, &all, e) < 0)
		return NULL;
	list = json_array();
	for (unsigned i = 0; i < all.n; i++)
		json_array_append_new(list, copies_want_json(a, &all.v[i]));
	store_copy_items_fini(&all);
	return list;
}

static json_t *copies_json(struct api *a, struct err *e)
{
	json_t *held = copies_held_json(a, e), *wanted = held ? copies_wanted_json(a, e) : NULL;

	if (wanted)
		return json_pack("{s:o, s:o}", "held", held, "wanted", wanted);
	json_decref(held);
	return NULL;
}

uint32_t copies_revision(struct api *a)
{
	uint32_t revision = 2166136261u;
	struct err e;
	json_t *doc = copies_json(a, &e);
	char *text;

	if (!json_array_size(json_object_get(doc, "held")) &&
	    !json_array_size(json_object_get(doc, "wanted"))) {
		json_decref(doc);
		return 0;
	}
	text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	if (!text)
		abort();
	for (const char *p = text; *p; p++)
		revision = (revision ^ (unsigned char)*p) * 16777619u;
	free(text);
	return revision | 1;
}

static void copies_list(struct call *c)
{
	struct err e;
	json_t *doc = c->api->fleet.restoring ? NULL : copies_json(c->api, &e);

	if (doc)
		call_json(c, 200, doc);
	else if (c->api->fleet.restoring)
		call_error(c, 503, "busy", "the boxes of this node are being restored", NULL, NULL);
	else
		call_fail(c, &e);
}

/* ---- sent ---- */

struct copies_sending {
	struct call *call;
	struct copy_source source;
};

static void copies_sent(struct call *c)
{
	copy_source_close(&((struct copies_sending *)c->state)->source);
}

static void copies_send_more(struct http_req *r)
{
	struct copies_sending *s = ((struct call *)r->user)->state;
	char piece[COPY_PIECE];

	while (s->source.fd >= 0) {
		ssize_t n = copy_source_read(&s->source, piece, sizeof(piece));

		if (n < 0) {
			http_abort(r);
			return;
		}
		if (n == 0) {
			own_close_fd(&s->source.fd);
			http_end(r);
			return;
		}
		if (http_write(r, piece, (size_t)n))
			return;
	}
}

static void copies_send(struct call *c, const char *team)
{
	struct copies_sending *s = call_alloc(c, sizeof(*s));
	struct err e;

	*s = (struct copies_sending){ .call = c };
	if (copy_source_open(&s->source, c->api, team, call_param(c, 0), &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = s;
	c->drop = copies_sent;
	c->req->on_drain = copies_send_more;
	http_stream(c->req, 200, "application/octet-stream", s->source.length);
	copies_send_more(c->req);
}

static void copies_get(struct call *c)
{
	copies_send(c, NULL);
}

static void copies_get_snapshot(struct call *c)
{
	copies_send(c, c->who.team);
}

/* ---- received ---- */

static void copies_receive_end(struct call *c)
{
	copy_receiver_close(c->state);
}

static void copies_on_body(struct http_req *r, const char *bytes, size_t n)
{
	copy_receiver_add(((struct call *)r->user)->state, bytes, n);
}

static void copies_on_body_end(struct http_req *r)
{
	struct call *c = r->user;
	struct err e;

	if (copy_receiver_keep(c->state, NULL, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 201);
}

static void copies_put(struct call *c)
{
	const char *id = call_param(c, 0);
	struct copy_receiver *x;
	struct err e;

	if (!id_valid(id)) {
		call_error(c, 400, "invalid", "not the id of a snapshot", id, NULL);
		return;
	}
	x = call_alloc(c, sizeof(*x));
	if (copy_receiver_begin(x, c->api, id, c->req->length, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = x;
	c->drop = copies_receive_end;
	c->req->on_body = copies_on_body;
	c->req->on_body_end = copies_on_body_end;
	http_want_body(c->req, HTTP_BODY_STREAM, 0);
}

static void copies_delete(struct call *c)
{
	struct err e;

	if (copy_drop(c->api, call_param(c, 0), &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
}

/* ---- the surface ---- */

static const struct api_route copies_rows[] = {
	/* clang-format off */
	{ "GET", "/cluster/copies", NEED_OWNER, copies_list, "list copies", .group = "cluster" },
	{ "GET", "/cluster/copies/{snapshot}", NEED_OWNER, copies_get, "send a copy", .group = "cluster" },
	{ "GET", "/cluster/snapshots/{snapshot}", NEED_OWNER, copies_get_snapshot, "send a snapshot", .group = "cluster" },
	{ "PUT", "/cluster/copies/{snapshot}", NEED_OWNER, copies_put, "receive a copy", .how = HTTP_BODY_STREAM },
	{ "DELETE", "/cluster/copies/{snapshot}", NEED_OWNER, copies_delete, "delete a copy", .group = "cluster" },
	{ "POST", "/cluster/objects/put", NEED_OWNER, copies_put_object, "store a snapshot in the object store", copies_put_object_fields, .group = "cluster" },
	{ "POST", "/cluster/objects/get", NEED_OWNER, copies_get_object, "read a copy from the object store", copies_get_object_fields, .group = "cluster" },
	{ "POST", "/cluster/objects/delete", NEED_OWNER, copies_delete_object, "delete an object of the object store", copies_delete_object_fields, .group = "cluster" },
	{ "POST", "/cluster/restart", NEED_OWNER, copies_restart, "start a box from its copy", copies_restart_fields, .group = "cluster" },
	{ "POST", "/cluster/leave", NEED_OWNER, copies_leave, "pack a box that moves to another node", copies_leave_fields, .group = "cluster" },
	{ "POST", "/cluster/left", NEED_OWNER, copies_left, "end a box that another node has", copies_left_fields, .group = "cluster" },
	/* clang-format on */
};
static struct api_table copies_table = { copies_rows, ARRAY_LEN(copies_rows), NULL, NULL };

/* Gateways pass no request of a client on whose path begins like this. */
static int copies_take_call(struct call *c)
{
	if (!c->req->trusted_peer || strncmp(c->req->path, "/cluster/", 9) != 0)
		return 0;
	call_serve(c, &copies_table);
	return 1;
}

const struct api_surface copies_surface = { copies_take_call, NULL, 0, NULL };
