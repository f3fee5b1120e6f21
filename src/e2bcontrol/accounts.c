/* accounts.c - see accounts.h. A key created here has the role editor, which is what an E2B
 * client needs. */
#include "e2bcontrol/accounts.h"
#include "api/auth.h"
#include "v1/keys.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "e2bcontrol/sandboxes.h"

#include <stdio.h>
#include <string.h>

const struct field accounts_key_fields[] = {
	{ "name", FIELD_NAME, 1, 0, STORE_NAME, "name of the key, unique in the team", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field accounts_max_query[] = {
	{ "metric", FIELD_TEXT, 1, 0, 32, "concurrent_sandboxes or sandbox_start_rate", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

/* ---- teams ---- */

/* The answer contains the key of the request itself, because its owner knows it, and no other
 * key. */
void accounts_teams(struct call *c)
{
	call_json(c, 200,
		  json_pack("[{s:s, s:s, s:s, s:b}]", "teamID", c->who.team, "name", c->who.team,
			    "apiKey", "", "isDefault", 1));
}

static int is_own(struct call *c)
{
	if (!strcmp(call_param(c, 0), c->who.team))
		return 1;
	call_error(c, 403, "denied", "figures of another team", call_param(c, 0), NULL);
	return 0;
}

static unsigned accounts_running(const struct call *c)
{
	const struct fleet *f = &c->api->fleet;
	unsigned n = 0;

	for (const struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		n += b->state == BOX_RUNNING && !strcmp(b->row.team, c->who.team);
	return n;
}

/* Of sandboxes that were started in the last minute and still run. */
static double start_rate(const struct call *c)
{
	const struct fleet *f = &c->api->fleet;
	int64_t since = fleet_now_ns() - INT64_C(60000000000);
	unsigned n = 0;

	for (const struct box *b = fleet_next(f, NULL); b; b = fleet_next(f, b))
		n += b->row.created_ns >= since && !strcmp(b->row.team, c->who.team);
	return n / 60.0;
}

static json_t *accounts_stamped(void)
{
	int64_t now = fleet_now_ns();

	return json_pack("{s:o, s:I}", "timestamp", json_time((uint64_t)now), "timestampUnix",
			 (json_int_t)(now / 1000000000));
}

/* Earlier values are not stored by team: there is one sample, the current one. */
void accounts_metrics(struct call *c)
{
	json_t *doc;

	if (!is_own(c))
		return;
	doc = accounts_stamped();
	json_object_set_new(doc, "concurrentSandboxes", json_integer(accounts_running(c)));
	json_object_set_new(doc, "sandboxStartRate", json_real(start_rate(c)));
	call_json(c, 200, json_pack("[o]", doc));
}

void accounts_metrics_max(struct call *c)
{
	const char *metric = call_query(c, "metric");
	int concurrent = !strcmp(metric, "concurrent_sandboxes");
	json_t *doc;

	if (!is_own(c))
		return;
	if (!concurrent && strcmp(metric, "sandbox_start_rate") != 0) {
		call_error(c, 400, "invalid", "metric: concurrent_sandboxes or sandbox_start_rate",
			   metric, NULL);
		return;
	}
	doc = accounts_stamped();
	json_object_set_new(doc, "value",
			    json_real(concurrent ? accounts_running(c) : start_rate(c)));
	call_json(c, 200, doc);
}

/* ---- keys ---- */

static json_t *accounts_moment(int64_t ns)
{
	return ns ? json_time((uint64_t)ns) : json_null();
}

/* Only the first characters of the key itself are stored. */
static json_t *key_json(const struct store_key *k)
{
	const char *shown = k->shown + strlen(KEY_PREFIX);

	return json_pack("{s:s, s:s, s:{s:s, s:i, s:s, s:s}, s:o, s:n, s:o}", "id", k->id, "name",
			 k->name, "mask", "prefix", KEY_PREFIX, "valueLength",
			 KEY_TEXT - (int)strlen(KEY_PREFIX), "maskedValuePrefix",
			 k->shown[0] ? shown : "", "maskedValueSuffix", "", "createdAt",
			 accounts_moment(k->created_ns), "createdBy", "lastUsed",
			 accounts_moment(k->used_ns));
}

void accounts_keys(struct call *c)
{
	struct store_keys keys = { 0 };
	json_t *items;
	struct err e;

	if (store_key_list(c->api->store, c->who.team, NULL, STORE_PAGE_MAX, &keys, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < keys.n; i++)
		if (!keys.v[i].revoked)
			json_array_append_new(items, key_json(&keys.v[i]));
	store_keys_fini(&keys);
	call_json(c, 200, items);
}

void accounts_key_new(struct call *c)
{
	struct store_key k = { .role = ROLE_EDITOR, .created_ns = fleet_now_ns() };
	char text[KEY_TEXT + 1];
	struct err e;

	snprintf(k.team, sizeof(k.team), "%s", c->who.team);
	snprintf(k.name, sizeof(k.name), "%s", call_text(c, "name", ""));
	if (keys_add(c, &k, text, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	keys_made(c, &k, key_json(&k), text);
}

void accounts_key_delete(struct call *c)
{
	struct store_key k;
	struct err e;

	if (store_key_named(c->api->store, c->who.team, call_param(c, 0), &k, &e) < 0 ||
	    store_key_remove(c->api->store, c->who.team, k.id, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	auth_changed(c->api);
	call_audit_more(c, "key.delete", k.id, "ok", key_json(&k));
	call_empty(c, 204);
}
