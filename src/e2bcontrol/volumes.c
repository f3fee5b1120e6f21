/* volumes.c - see volumes.h. The token for the content of a volume is the API key of the
 * request: it permits what that key permits, expires with the key, and only its owner gets it. */
#include "e2bcontrol/volumes.h"
#include "v1box/volumes.h"
#include "base/cleanup.h"
#include "record/changes.h"
#include "e2bcontrol/volume_box.h"
#include "store/volumes.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const struct field e2b_volume_fields[] = {
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name of the volume, unique in the team", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

static json_t *volume_json(const struct store_volume *v)
{
	return json_pack("{s:s, s:s}", "volumeID", v->id, "name", v->name);
}

static const char *own_key(const struct call *c)
{
	const char *key = http_header(c->req, "x-api-key"),
		   *bearer = http_header(c->req, "authorization");

	if (!key && bearer && !strncasecmp(bearer, "Bearer ", 7))
		key = bearer + 7;
	return key ? key : "";
}

static json_t *with_token(const struct call *c, const struct store_volume *v)
{
	json_t *doc = volume_json(v);

	json_object_set_new(doc, "token", json_text(own_key(c)));
	return doc;
}

static void volumes_do_made(struct call *c, const struct store_volume *v)
{
	call_json(c, 201, with_token(c, v));
}

void e2b_volumes_create(struct call *c)
{
	if (strchr(call_text(c, "name", ""), '.')) {
		call_error(c, 400, "invalid", "name: letters, digits, '_' and '-' only", NULL,
			   NULL);
		return;
	}
	json_object_del(c->body, "bytes"); /* no field of theirs */
	volumes_make(c, volumes_do_made);
}

/* By id; also by name, for clients that know only the name. */
int e2b_volumes_find(struct call *c, struct store_volume *out)
{
	const char *name = call_param(c, 0);
	struct err e;

	if (store_volume_get(c->api->store, c->who.team, name, out, &e) == 0 ||
	    store_volume_find(c->api->store, c->who.team, name, out, &e) == 0)
		return 1;
	if (e.kind == ERR_SYS)
		call_fail(c, &e);
	else
		call_error(c, 404, "not_found", "there is no such volume", name, NULL);
	return 0;
}

void e2b_volumes_show(struct call *c)
{
	struct store_volume v;

	if (e2b_volumes_find(c, &v))
		call_json(c, 200, with_token(c, &v));
}

/* ---- end ---- */

struct dropping {
	struct box_wait wait;
	struct call *call;
};

static void stop_waiting(struct call *c)
{
	box_wait_cancel(&((struct dropping *)c->state)->wait);
}

static void has_left(struct box_wait *w, struct box *b, const struct err *e)
{
	struct call *c = loop_owner(w, struct dropping, wait)->call;
	struct store_volume v;

	(void)b;
	(void)e;
	c->drop = NULL;
	if (e2b_volumes_find(c, &v))
		volumes_drop(c, &v);
}

/* A volume whose files were just read is still mounted in the box that was made for this: that
 * box is ended. */
void e2b_volumes_delete(struct call *c)
{
	struct dropping *d = call_alloc(c, sizeof(*d));
	struct wire_mount m = { 0 };
	struct store_volume v;

	if (!e2b_volumes_find(c, &v))
		return;
	*d = (struct dropping){ .wait.done = has_left, .call = c };
	snprintf(m.id, sizeof(m.id), "%s", v.id);
	c->state = d;
	c->drop = stop_waiting;
	if (!volume_box_released(c->api, &m, 1, &d->wait))
		has_left(&d->wait, NULL, NULL);
}

void e2b_volumes_list(struct call *c)
{
	struct store_volumes rows = { 0 };
	json_t *items;
	struct err e;

	if (store_volume_list(c->api->store, c->who.team, NULL, STORE_PAGE_MAX, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, volume_json(&rows.v[i]));
	store_volumes_fini(&rows);
	call_json(c, 200, items);
}
