/* keys.c - see keys.h. An owner lists and creates keys of the own team; an operator (an owner of
 * team "default") those of any team. For other callers the key of another team does not
 * exist: 404. */
#include "v1/keys.h"
#include "api/auth.h"
#include "api/page.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "fleet/box.h"

#include <stdio.h>
#include <string.h>

enum { KEYS_MAX = STORE_PAGE_MAX }; /* of one team */

#define KEY_MS_MAX (INT64_C(1) << 43) /* some centuries */

static const struct field role_values[] = {
	FIELD_VALUE("viewer"), FIELD_VALUE("editor"), FIELD_VALUE("owner"), { 0 }
};
const struct field keys_create_fields[] = {
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name of the key, unique in the team", NULL },
	{ "role", FIELD_CHOICE, 0, 0, 0, "role of the key (default viewer)", role_values },
	{ "box", FIELD_NAME, 0, 0, STORE_NAME, "the key is valid for this box only", NULL },
	{ "expires_ms", FIELD_INT, 0, 1, KEY_MS_MAX, "lifetime of the key (default: unlimited)",
	  NULL },
	{ "team", FIELD_NAME, 0, 0, STORE_NAME,
	  "the team (default: the caller's); only operators may name another team", NULL },
	{ "isolation", FIELD_TEXT, 0, 0, STORE_WORD,
	  "minimum isolation tier of boxes that the key creates; process: the key may use that tier",
	  NULL },
	{ 0 },
};
const struct field keys_list_query[] = {
	{ "team", FIELD_TEXT, 0, 0, STORE_NAME,
	  "the team (default: the caller's); only operators may name another team", NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};
const struct field keys_one_query[] = {
	{ "team", FIELD_TEXT, 0, 0, STORE_NAME,
	  "the team (default: the caller's); only operators may name another team", NULL },
	{ 0 },
};

static json_t *keys_moment(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

json_t *keys_json(const struct store_key *k)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:o, s:o, s:o, s:s}", "id", k->id,
			 "name", k->name, "team", k->team, "role", store_role_name(k->role), "box",
			 k->box, "shown", k->shown, "revoked", k->revoked, "created",
			 keys_moment(k->created_ns), "used", keys_moment(k->used_ns), "expires",
			 keys_moment(k->expires_ns), "isolation", k->isolation);
}

/* The team of the request; NULL: the caller may not use it, and that was answered. */
static const char *team_meant(struct call *c, const char *asked)
{
	if (!asked || !strcmp(asked, c->who.team))
		return c->who.team;
	if (principal_is_operator(&c->who))
		return asked;
	call_error(c, 403, "denied", "keys of another team", NULL,
		   "owners of team default manage those");
	return NULL;
}

/* ---- create ---- */

/* The key of the caller: its minimum applies to the keys that it creates. Empty for another principal: the
 * socket, or a token. */
static int keys_caller(struct call *c, struct store_key *out, struct err *e)
{
	*out = (struct store_key){ 0 };
	if (store_key_get(c->api->store, c->who.id, out, e) == 0)
		return 0;
	*out = (struct store_key){ 0 };
	return e->kind == ERR_NOT_FOUND ? 0 : -1;
}

/* found: the id of the box that the request names, as a gateway has found it; NULL: boxes are on this machine. */
static int read_key(struct call *c, struct store_key *k, const char *found, struct err *e)
{
	const char *role = call_text(c, "role", "viewer"), *box = call_text(c, "box", "");
	int64_t expires = call_int(c, "expires_ms", 0);
	const struct box *b;

	k->created_ns = fleet_now_ns();
	k->expires_ns = expires ? k->created_ns + expires * 1000000 : 0;
	snprintf(k->name, sizeof(k->name), "%s", call_text(c, "name", ""));
	if (store_role_parse(role, &k->role) < 0)
		return err_set(e, ERR_INVALID, "role: '%.20s' is not viewer, editor or owner",
			       role);
	snprintf(k->isolation, sizeof(k->isolation), "%s", call_text(c, "isolation", ""));
	if (!*box)
		return 0;
	if (found && *found) {
		snprintf(k->box, sizeof(k->box), "%s", found);
		return 0;
	}
	b = found ? NULL : fleet_named(&c->api->fleet, k->team, box);
	if (!b)
		return err_set(e, ERR_NOT_FOUND, "box: there is no '%.64s'", box);
	snprintf(k->box, sizeof(k->box), "%s", b->row.id);
	return 0;
}

static int has_room(struct call *c, const char *team, struct err *e)
{
	struct store_keys keys = { 0 };
	int full;

	if (store_key_list(c->api->store, team, NULL, KEYS_MAX, &keys, e) < 0)
		return -1;
	full = keys.n >= KEYS_MAX;
	store_keys_fini(&keys);
	return full ? err_set(e, ERR_CONFLICT, "team '%.64s' has %d keys, which is the most", team,
			      KEYS_MAX)
		    : 0;
}

int keys_add(struct call *c, struct store_key *k, char out_text[KEY_TEXT + 1], struct err *e)
{
	struct store_key mine;

	if (keys_caller(c, &mine, e) < 0 ||
	    isolation_check_key(c->api->store, k, mine.isolation, principal_is_operator(&c->who),
				e) < 0)
		return -1;
	if (has_room(c, k->team, e) < 0 || store_key_make(out_text, k, e) < 0)
		return -1;
	return store_key_add(c->api->store, k, e);
}

void keys_remove_expired(struct call *c, const char *team, const char *prefix)
{
	struct store_keys keys = { 0 };
	int64_t now = fleet_now_ns();
	struct err e;

	if (store_key_list(c->api->store, team, NULL, STORE_PAGE_MAX, &keys, &e) < 0)
		return;
	for (unsigned i = 0; i < keys.n; i++) {
		const struct store_key *k = &keys.v[i];

		if (!strncmp(k->name, prefix, strlen(prefix)) && k->expires_ns &&
		    k->expires_ns <= now)
			(void)!store_key_remove(c->api->store, team, k->id, &e);
	}
	store_keys_fini(&keys);
}

void keys_made(struct call *c, const struct store_key *k, json_t *take_doc, char text[KEY_TEXT + 1])
{
	auth_changed(c->api);
	call_audit_more(c, "key.create", k->id, "ok", json_deep_copy(take_doc));
	json_object_set_new(take_doc, "key", json_string(text));
	explicit_bzero(text, KEY_TEXT + 1);
	http_set(c->req, "Cache-Control", "no-store");
	call_json(c, 201, take_doc);
}

/* No Idempotency-Key here: the stored answer would contain the key. */
static void keys_create_for(struct call *c, const char *found)
{
	const char *team = team_meant(c, call_text(c, "team", NULL));
	char text[KEY_TEXT + 1];
	struct store_key k = { 0 };
	struct err e;

	if (!team)
		return;
	snprintf(k.team, sizeof(k.team), "%s", team);
	if (read_key(c, &k, found, &e) < 0 || keys_add(c, &k, text, &e) < 0) {
		call_audit(c, "key.create", k.name, err_kind_name(e.kind));
		call_fail(c, &e);
		return;
	}
	http_set(c->req, "Location", "/v1/keys/%s", k.id);
	keys_made(c, &k, keys_json(&k), text);
}

/* A gateway finds the box on its nodes; of another team than the caller's only by its id there. */
void keys_create(struct call *c)
{
	const char *box = call_text(c, "box", "");

	if (*box && c->api->box_of_cluster)
		c->api->box_of_cluster(c, box, keys_create_for);
	else
		keys_create_for(c, NULL);
}

/* ---- list, show ---- */

void keys_list(struct call *c)
{
	const char *team = team_meant(c, call_query(c, "team"));
	struct store_keys keys = { 0 };
	struct page page;
	json_t *items;
	struct err e;

	if (!team)
		return;
	if (page_read(&page, c, &e) < 0 ||
	    store_key_list(c->api->store, team, page.after, page.limit, &keys, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < keys.n; i++)
		json_array_append_new(items, keys_json(&keys.v[i]));
	if (keys.more)
		page_ends(&page, keys.v[keys.n - 1].created_ns, keys.v[keys.n - 1].id);
	store_keys_fini(&keys);
	call_list(c, items, page.next);
}

/* Finds a key by id or name; 0: answered. An operator can use an id without the team. */
static int keys_find(struct call *c, struct store_key *out)
{
	const char *name = call_param(c, 0), *team = team_meant(c, call_query(c, "team"));
	struct err e;

	if (!team)
		return 0;
	if (store_key_named(c->api->store, team, name, out, &e) == 0 ||
	    (principal_is_operator(&c->who) && id_valid(name) &&
	     store_key_get(c->api->store, name, out, &e) == 0))
		return 1;
	if (e.kind == ERR_SYS)
		call_fail(c, &e);
	else
		call_error(c, 404, "not_found", "there is no such key", name,
			   "list them: GET /v1/keys");
	return 0;
}

void keys_show(struct call *c)
{
	struct store_key k;

	if (keys_find(c, &k))
		call_json(c, 200, keys_json(&k));
}

/* ---- revoke ---- */

void keys_delete(struct call *c)
{
	struct store_key k;
	struct err e;

	if (!keys_find(c, &k))
		return;
	if (store_key_remove(c->api->store, k.team, k.id, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_audit_more(c, "key.delete", k.id, "ok", keys_json(&k));
	if (auth_changed(c->api))
		call_empty(c, 204);
	else
		call_error(c, 503, "unavailable",
			   "this gateway no longer accepts the key, but other gateways may",
			   "the database of the cluster does not answer",
			   "they receive the change as soon as it answers; atoll cluster check");
}
