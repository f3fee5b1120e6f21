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

static int shares_contain(const struct store_key *k, const struct box *b)
{
	return !strncmp(k->name, SHARES_PREFIX, strlen(SHARES_PREFIX)) &&
	       !strcmp(k->box, b->row.id) && !k->revoked &&
	       (!k->expires_ns || k->expires_ns > fleet_now_ns());
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
static json_t *shares_read(struct call *c, const struct box *b, struct err *e)
{
	struct store_keys keys = { 0 };
	json_t *items;

	if (store_key_list(c->api->store, b->row.team, NULL, STORE_PAGE_MAX, &keys, e) < 0)
		return NULL;
	items = json_array();
	for (unsigned i = 0; i < keys.n; i++)
		if (shares_contain(&keys.v[i], b))
			json_array_append_new(items, shares_json(&keys.v[i]));
	store_keys_fini(&keys);
	return items;
}

void shares_list(struct call *c)
{
	struct box *b = call_box_peek(c, 0);
	json_t *items;
	struct err e;

	if (!b)
		return;
	items = shares_read(c, b, &e);
	if (items)
		call_list(c, items, NULL);
	else
		call_fail(c, &e);
}

static int shares_have_room(struct call *c, const struct box *b, struct err *e)
{
	json_t *items = shares_read(c, b, e);
	size_t n = json_array_size(items);

	json_decref(items);
	if (!items)
		return -1;
	return n < SHARES_MAX ? 0
			      : err_set(e, ERR_LIMIT, "box %s has %d links, the maximum", b->row.id,
					SHARES_MAX);
}

/* No Idempotency-Key here: the stored answer would contain the key. */
void shares_create(struct call *c)
{
	struct box *b = call_box_peek(c, 0);
	struct store_key k = { .created_ns = fleet_now_ns() };
	char text[KEY_TEXT + 1], id[ID_MAX + 1], page[ID_MAX + 8];
	json_t *doc;
	struct err e;

	if (!b)
		return;
	(void)!store_role_parse(call_text(c, "role", "viewer"),
				&k.role); /* one of the field's values */
	k.expires_ns =
		k.created_ns + call_int(c, "expires_ms", SHARES_MS_DEFAULT) * INT64_C(1000000);
	snprintf(k.team, sizeof(k.team), "%s", b->row.team);
	snprintf(k.box, sizeof(k.box), "%s", b->row.id);
	keys_remove_expired(c, k.team, SHARES_PREFIX);
	if (shares_have_room(c, b, &e) < 0 || id_new(id, &e) < 0) {
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

void shares_delete(struct call *c)
{
	struct box *b = call_box_peek(c, 0);
	const char *id = call_param(c, 1);
	struct store_key k;
	struct err e;

	if (!b)
		return;
	if (store_key_named(c->api->store, b->row.team, id, &k, &e) < 0 || !shares_contain(&k, b)) {
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
