/* volumes.c - see volumes.h.
 *
 *   create:  row, then the keeper creates the disk; a server that dies in between leaves a row whose
 *            disk is missing, which every use reports and DELETE removes
 *   delete:  the keeper deletes the disk, then the row; a row in between has no disk, either */
#include "v1box/volumes.h"
#include "api/fields.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "store/volumes.h"

#include <stdio.h>
#include <string.h>

const struct field volumes_create_fields[] = {
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name of the volume, unique in the team", NULL },
	{ "bytes", FIELD_INT, 0, 16 << 20, INT64_C(1) << 44, "size in bytes (default 1 GiB)",
	  NULL },
	{ 0 },
};
const struct field volumes_list_query[] = {
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_NAME, "`next` of the previous page", NULL },
	{ 0 },
};

static const struct field mount_fields[] = {
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name of the volume", NULL },
	{ "path", FIELD_TEXT, 1, 0, WIRE_PATH - 1, "mount point in the box", NULL },
	{ "read_only", FIELD_BOOL, 0, 0, 0,
	  "mount read-only; any number of boxes may do so at the same time", NULL },
	{ 0 },
};

static json_t *volume_json(const struct store_volume *v)
{
	json_t *doc = json_pack("{s:s, s:s, s:I, s:I}", "id", v->id, "name", v->name, "bytes",
				(json_int_t)v->quota_bytes, "readers", (json_int_t)v->readers);

	json_object_set_new(doc, "writer", v->writer[0] ? json_string(v->writer) : json_null());
	json_object_set_new(doc, "created", json_time((uint64_t)v->created_ns));
	return doc;
}

/* ---- in a box ---- */

static int want_one(struct call *c, const json_t *one, struct box_spec *out, struct err *e)
{
	struct wire_mount *m = &out->mounts[out->nmounts];
	struct store_volume v;

	if (!json_is_object(one))
		return err_set(e, ERR_INVALID,
			       "volumes: must hold objects {name, path, read_only}");
	if (fields_check(one, mount_fields, "volumes", e) < 0)
		return -1;
	if (store_volume_find(c->api->store, c->who.team,
			      json_string_value(json_object_get(one, "name")), &v, e) < 0)
		return err_in(e, "volumes");
	snprintf(m->id, sizeof(m->id), "%s", v.id);
	snprintf(m->path, sizeof(m->path), "%s", json_string_value(json_object_get(one, "path")));
	m->flags = json_is_true(json_object_get(one, "read_only")) ? WIRE_MOUNT_RO : 0;
	out->nmounts++;
	return 0;
}

int volumes_want(struct call *c, const json_t *list, struct box_spec *out, struct err *e)
{
	const json_t *one;
	size_t i;

	if (list && !json_is_array(list))
		return err_set(e, ERR_INVALID, "volumes: must be an array");
	if (json_array_size(list) > WIRE_MOUNTS)
		return err_set(e, ERR_INVALID, "volumes: %zu are too many, at most %d",
			       json_array_size(list), WIRE_MOUNTS);
	json_array_foreach(list, i, one) if (want_one(c, one, out, e) < 0) return -1;
	return 0;
}

/* ---- create, delete ---- */

struct doing {
	struct call *call; /* NULL: the client has disconnected; the work continues */
	struct api *api;
	struct principal who;
	struct store_volume volume;
	volumes_made *answer;
};

static void client_left(struct call *c)
{
	((struct doing *)c->state)->call = NULL;
}

static void volumes_ask(struct call *c, uint8_t type, const struct store_volume *v,
			volumes_made *answer, keeper_done *done)
{
	struct wire_volume f = { .head.type = type, .bytes = v->quota_bytes };
	struct doing *d = calloc(1, sizeof(*d));

	if (!d)
		abort();
	*d = (struct doing){
		.call = c, .api = c->api, .who = c->who, .volume = *v, .answer = answer
	};
	snprintf(f.id, sizeof(f.id), "%s", v->id);
	c->state = d;
	c->drop = client_left;
	keeper_client_request(&c->api->fleet.keeper, &f, sizeof(f), WIRE_DONE, done, d);
}

static struct call *volumes_finished(struct doing *d)
{
	struct call *c = d->call;

	if (c) {
		c->drop = NULL;
		c->state = NULL;
	}
	return c;
}

static void volumes_do_made(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	struct doing *d = ctx;
	struct call *c = volumes_finished(d);
	struct err ignored;

	(void)f;
	(void)len;
	(void)fd;
	if (e)
		(void)!store_volume_remove(d->api->store, d->volume.id, &ignored);
	else
		api_audit(d->api, &d->who, "volume.create", d->volume.id, "ok", NULL);
	if (c && e)
		call_fail(c, e);
	if (c && !e) {
		c->audited = 1;
		d->answer(c, &d->volume);
	}
	free(d);
}

static void say_made(struct call *c, const struct store_volume *v)
{
	http_set(c->req, "Location", "/v1/volumes/%s", v->name);
	call_json(c, 201, volume_json(v));
}

void volumes_create(struct call *c)
{
	volumes_make(c, say_made);
}

void volumes_make(struct call *c, volumes_made *answer)
{
	struct store_volume v = { .quota_bytes = (uint64_t)call_int(c, "bytes", 1 << 30),
				  .created_ns = fleet_now_ns() };
	struct err e;

	snprintf(v.team, sizeof(v.team), "%s", c->who.team);
	snprintf(v.name, sizeof(v.name), "%s", call_text(c, "name", ""));
	if (id_new(v.id, &e) < 0 || store_volume_insert(c->api->store, &v, &e) < 0)
		call_fail(c, &e);
	else
		volumes_ask(c, WIRE_VOLUME_MAKE, &v, answer, volumes_do_made);
}

static void volumes_dropped(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	struct doing *d = ctx;
	struct call *c = volumes_finished(d);
	struct err own;

	(void)f;
	(void)len;
	(void)fd;
	/* A missing disk is the requested result. */
	if (!e || e->kind == ERR_NOT_FOUND)
		e = store_volume_remove(d->api->store, d->volume.id, &own) < 0 ? &own : NULL;
	if (!e)
		api_audit(d->api, &d->who, "volume.delete", d->volume.id, "ok", NULL);
	if (c && e)
		call_fail(c, e);
	if (c && !e) {
		c->audited = 1;
		call_empty(c, 204);
	}
	free(d);
}

static int volumes_find(struct call *c, struct store_volume *out)
{
	struct err e;

	if (store_volume_find(c->api->store, c->who.team, call_param(c, 0), out, &e) == 0)
		return 1;
	call_error(c, 404, "not_found", "there is no such volume", call_param(c, 0),
		   "list them: GET /v1/volumes");
	return 0;
}

void volumes_delete(struct call *c)
{
	struct store_volume v;

	if (volumes_find(c, &v))
		volumes_drop(c, &v);
}

void volumes_drop(struct call *c, const struct store_volume *v)
{
	char why[80];

	if (v->writer[0] || v->readers) {
		snprintf(why, sizeof(why), "writer: %s; readers: %u",
			 v->writer[0] ? v->writer : "none", v->readers);
		call_error(c, 409, "conflict", "a box uses this volume", why, "end the box first");
		return;
	}
	volumes_ask(c, WIRE_VOLUME_DROP, v, NULL, volumes_dropped);
}

/* ---- list, show ---- */

void volumes_show(struct call *c)
{
	struct store_volume v;

	if (volumes_find(c, &v))
		call_json(c, 200, volume_json(&v));
}

void volumes_list(struct call *c)
{
	struct store_volumes rows = { 0 };
	char next[STORE_NAME + 1] = "";
	json_t *items = json_array();
	struct err e;

	if (store_volume_list(c->api->store, c->who.team, call_query(c, "after"),
			      (unsigned)call_query_int(c, "limit", 0), &rows, &e) < 0) {
		json_decref(items);
		call_fail(c, &e);
		return;
	}
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, volume_json(&rows.v[i]));
	if (rows.more)
		snprintf(next, sizeof(next), "%s", rows.v[rows.n - 1].name);
	store_volumes_fini(&rows);
	call_list(c, items, next);
}
