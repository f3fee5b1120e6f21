/* shares.c - see shares.h. */
#include "v1/shares.h"
#include "api/auth.h"
#include "record/record.h"
#include "fleet/box.h"
#include "v1/keys.h"
#include "v1/ui.h"
#include "v1/ui_login.h"

#include <stdio.h>
#include <string.h>

enum {
	SHARES_MS_MIN = 60 * 1000,
	SHARES_MS_DEFAULT = 24 * 3600 * 1000,
	SHARES_MS_MAX = 7 * 24 * 3600 * 1000,
};

static const struct field role_values[] = { FIELD_VALUE("viewer"), FIELD_VALUE("editor"), { 0 } };
const struct field shares_create_fields[] = {
	{ "role", FIELD_CHOICE, 0, 0, 0,
	  "role of the sessions that the link opens (default viewer)", role_values },
	{ "expires_ms", FIELD_INT, 0, SHARES_MS_MIN, SHARES_MS_MAX,
	  "lifetime of the link (default: one day)", NULL },
	{ 0 },
};

/* Then() with the id of the box that the path names. The links of a gateway are its own keys, which all gateways know; the
 * box is on a node. */
static void shares_of_box(struct call *c, call_box_found *then)
{
	const struct box *b;

	if (c->api->box_of_cluster && !c->req->trusted_peer)
		c->api->box_of_cluster(c, call_param(c, 0), then);
	else if ((b = call_box_peek(c, 0)))
		then(c, b->row.id);
}

static int shares_contain(const struct store_key *k, const char *box)
{
	return !strncmp(k->name, SHARES_PREFIX, strlen(SHARES_PREFIX)) && !strcmp(k->box, box) &&
	       !k->revoked && (!k->expires_ns || k->expires_ns > fleet_now_ns());
}

static json_t *shares_json(const struct store_key *k)
{
	json_t *doc = keys_json(k);

	json_object_del(doc, "name");
	json_object_del(doc, "team");
	json_object_del(doc, "shown");
	json_object_del(doc, "revoked");
	json_object_del(doc, "isolation"); /* it creates no boxes */
	return doc;
}

/* The shares of a box that are not expired. */
static json_t *shares_read(struct call *c, const char *box, struct err *e)
{
	struct store_keys keys = { 0 };
	json_t *items;

	if (store_key_list(c->api->store, c->who.team, NULL, STORE_PAGE_MAX, &keys, e) < 0)
		return NULL;
	items = json_array();
	for (unsigned i = 0; i < keys.n; i++)
		if (shares_contain(&keys.v[i], box))
			json_array_append_new(items, shares_json(&keys.v[i]));
	store_keys_fini(&keys);
	return items;
}

/* box "": there is none. */
static int shares_no_box(struct call *c, const char *box)
{
	if (!*box)
		call_no_box(c, call_param(c, 0));
	return !*box;
}

static void shares_list_of(struct call *c, const char *box)
{
	json_t *items;
	struct err e;

	if (shares_no_box(c, box))
		return;
	items = shares_read(c, box, &e);
	if (items)
		call_list(c, items, NULL);
	else
		call_fail(c, &e);
}

void shares_list(struct call *c)
{
	shares_of_box(c, shares_list_of);
}

static int shares_have_room(struct call *c, const char *box, struct err *e)
{
	json_t *items = shares_read(c, box, e);
	size_t n = json_array_size(items);

	json_decref(items);
	if (!items)
		return -1;
	return n < SHARES_MAX
		       ? 0
		       : err_set(e, ERR_LIMIT, "box %s has %d links, the maximum", box, SHARES_MAX);
}

static void shares_create_for(struct call *c, const char *box)
{
	struct store_key k = { .created_ns = fleet_now_ns() };
	char text[KEY_TEXT + 1], id[ID_MAX + 1], page[ID_MAX + 8];
	json_t *doc;
	struct err e;

	if (shares_no_box(c, box))
		return;
	(void)!store_role_parse(call_text(c, "role", "viewer"),
				&k.role); /* one of the field's values */
	k.expires_ns =
		k.created_ns + call_int(c, "expires_ms", SHARES_MS_DEFAULT) * INT64_C(1000000);
	snprintf(k.team, sizeof(k.team), "%s", c->who.team);
	snprintf(k.box, sizeof(k.box), "%s", box);
	keys_remove_expired(c, k.team, SHARES_PREFIX);
	if (shares_have_room(c, box, &e) < 0 || id_new(id, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	snprintf(k.name, sizeof(k.name), SHARES_PREFIX "%s", id);
	if (keys_add(c, &k, text, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	auth_changed(c->api);
	doc = shares_json(&k);
	call_audit_more(c, "share.create", k.id, "ok", json_deep_copy(doc));
	snprintf(page, sizeof(page), "/b/%s", k.box);
	json_object_set_new(doc, "key", json_string(text));
	json_object_set_new(doc, "url", ui_is_built() ? ui_login_url(c, page, text) : json_null());
	explicit_bzero(text, sizeof(text));
	http_set(c->req, "Cache-Control", "no-store");
	call_json(c, 201, doc);
}

/* No Idempotency-Key here: the stored answer would contain the key. */
void shares_create(struct call *c)
{
	shares_of_box(c, shares_create_for);
}

static void shares_delete_of(struct call *c, const char *box)
{
	const char *id = call_param(c, 1);
	struct store_key k;
	struct err e;

	if (shares_no_box(c, box))
		return;
	if (store_key_named(c->api->store, c->who.team, id, &k, &e) < 0 ||
	    !shares_contain(&k, box)) {
		call_error(c, 404, "not_found", "this box has no such link", id,
			   "list them: GET /v1/boxes/{box}/shares");
		return;
	}
	if (store_key_remove(c->api->store, k.team, k.id, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	auth_changed(c->api);
	call_audit_more(c, "share.delete", k.id, "ok", shares_json(&k));
	call_empty(c, 204);
}

void shares_delete(struct call *c)
{
	shares_of_box(c, shares_delete_of);
}
