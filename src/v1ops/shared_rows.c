/* shared_rows.c - see shared_rows.h. */
#include "v1ops/shared_rows.h"
#include "api/directory_wait.h"
#include "base/base64.h"
#include "base/cleanup.h"
#include "base/hex.h"
#include "base/log.h"
#include "fleet/box_secrets.h"
#include "secret/vault.h"
#include "store/shared_rows.h"
#include "webhook/runner.h"

#include <stdlib.h>
#include <string.h>

/* A secret that no box uses stays so long: a box that needs it may be on its way. */
#define SHARED_PRUNE_NS (INT64_C(600) * 1000000000)

static const struct field shared_fields[] = {
	{ "rows", FIELD_ANY, 1, 0, 0, "rows that have changed", NULL },
	{ "keep", FIELD_ANY, 0, 0, 0, "all rows that there are", NULL },
	{ 0 },
};

void shared_row_came(struct api *a, const char *kind, const char *id)
{
	const char *slash = strchr(id, '/');
	char team[STORE_NAME + 1];

	if (strcmp(kind, "network") == 0) {
		egress_client_change_team(&a->fleet, id);
	} else if (strcmp(kind, "webhook") == 0) {
		webhook_runner_changed(a->webhooks);
	} else if (strcmp(kind, "secret") == 0 && slash) {
		snprintf(team, sizeof(team), "%.*s", (int)(slash - id), id);
		box_secrets_changed(&a->fleet, team, slash + 1);
	}
}

static const char *shared_text(const json_t *row, const char *name)
{
	const char *text = json_string_value(json_object_get(row, name));

	return text ? text : "";
}

static int shared_value(const json_t *row, struct buf *out, struct err *e)
{
	const json_t *value = json_object_get(row, "value");

	buf_space(out, VAULT_VALUE + 4);
	if (!json_is_string(value) ||
	    base64_decode(out, json_string_value(value), json_string_length(value)) < 0)
		return err_set(e, ERR_INVALID, "value is not base64");
	return 0;
}

/* The row may belong to a team of which no request has come to this node yet. */
static int shared_need_team(struct api *a, const char *team, struct err *e)
{
	struct store_team t;

	if (store_team_get(a->store, team, &t, e) == 0)
		return 0;
	return e->kind == ERR_NOT_FOUND ? store_team_mirror(a->store, team, "", fleet_now_ns(), e)
					: -1;
}

/* 1: this node has just this version. */
static int shared_has_secret(struct api *a, const json_t *row)
{
	struct store_secret x = { 0 };
	struct err e;
	int has = store_secret_find(a->store, shared_text(row, "team"), shared_text(row, "name"),
				    &x, &e) == 0 &&
		  (json_int_t)x.version == json_integer_value(json_object_get(row, "version")) &&
		  x.updated_ns == json_integer_value(json_object_get(row, "updated_ns"));

	store_secret_fini(&x);
	return has;
}

/* Encrypted with the key of this machine. */
static int shared_seal(struct api *a, const char *kind, const char *id, json_t *row, struct err *e)
{
	struct vault *vault = a->fleet.vault;
	auto_secret struct buf value = { 0 };
	auto_buf struct buf sealed = { 0 };
	auto_free char *text = NULL;
	int rc;

	if (shared_value(row, &value, e) < 0)
		return -1;
	rc = strcmp(kind, "secret") == 0
		     ? vault_seal_secret(vault, shared_text(row, "team"), shared_text(row, "name"),
					 value.p, value.len, &sealed, e)
		     : vault_seal(vault, id, value.p, value.len, &sealed, e);
	if (rc < 0)
		return -1;
	text = malloc(2 * sealed.len + 1);
	if (!text)
		abort();
	hex_encode(text, (const uint8_t *)sealed.p, sealed.len);
	json_object_set_new(row, "sealed", json_string(text));
	json_object_set_new(row, "key", json_string(vault->id));
	json_object_del(row, "value");
	return 0;
}

static int shared_put(struct api *a, const char *kind, const char *id, json_t *row, struct err *e)
{
	auto_free char *text = NULL;
	int is_sealed = json_object_get(row, "value") != NULL;

	if (shared_need_team(a, shared_text(row, "team"), e) < 0 ||
	    (is_sealed && shared_seal(a, kind, id, row, e) < 0))
		return -1;
	if (strcmp(kind, "webhook") == 0 && !json_is_true(json_object_get(row, "enabled")) &&
	    !json_integer_value(json_object_get(row, "enabled")) &&
	    webhook_runner_settle(a->webhooks, id, e) < 0)
		return -1;
	text = json_dumps(row, JSON_COMPACT);
	return store_shared_put(a->store, kind, id, text, e);
}

static int shared_take(struct api *a, const char *kind, const char *id, json_t *row, struct err *e)
{
	int is_same =
		strcmp(kind, "secret") == 0 && json_is_object(row) && shared_has_secret(a, row);

	if (!json_is_object(row)) {
		if (store_shared_drop(a->store, kind, id, e) < 0)
			return -1;
	} else if ((!is_same && shared_put(a, kind, id, row, e) < 0) ||
		   store_shared_mark(a->store, kind, id, fleet_now_ns(), e) < 0) {
		return -1;
	}
	if (!is_same)
		shared_row_came(a, kind, id);
	return 0;
}

/* A row that this node cannot have does not keep it from the others. */
static void shared_take_all(struct api *a, json_t *rows)
{
	json_t *one;
	size_t i;

	json_array_foreach(rows, i, one)
	{
		const char *kind = shared_text(one, "kind"), *id = shared_text(one, "id");
		struct err e;

		if (shared_take(a, kind, id, json_object_get(one, "row"), &e) < 0)
			log_error("a row of the cluster is not used by this node",
				  LOG_S("kind", kind), LOG_S("id", id), LOG_E(&e));
	}
}

/* By their texts, so that a node with many rows does not search a list for each of them. */
static json_t *shared_keep_set(const json_t *keep)
{
	json_t *set = json_object();
	const json_t *one;
	size_t i;

	json_array_foreach(keep, i, one) if (json_is_string(one))
		json_object_set_new_nocheck(set, json_string_value(one), json_true());
	return set;
}

static int shared_is_kept(const json_t *set, const struct store_shared_row *r)
{
	char text[STORE_SHARED_ID + 16];

	snprintf(text, sizeof(text), "%s %s", r->kind, r->id);
	return json_object_get(set, text) != NULL;
}

static int shared_remove_others(struct api *a, const json_t *keep, struct err *e)
{
	struct store_shared_rows all;
	json_t *set;
	int rc = 0;

	if (!json_is_array(keep))
		return 0;
	if (store_shared_marked(a->store, 0, &all, e) < 0)
		return -1;
	set = shared_keep_set(keep);
	for (unsigned i = 0; rc == 0 && i < all.n; i++) {
		if (shared_is_kept(set, &all.v[i]))
			continue;
		rc = store_shared_drop(a->store, all.v[i].kind, all.v[i].id, e);
		shared_row_came(a, all.v[i].kind, all.v[i].id);
	}
	json_decref(set);
	store_shared_rows_fini(&all);
	return rc;
}

static json_t *shared_secrets_json(struct api *a, struct err *e)
{
	struct store_shared_rows all;
	json_t *doc;

	if (store_shared_prune(a->store, fleet_now_ns() - SHARED_PRUNE_NS, e) < 0 ||
	    store_shared_marked(a->store, 1, &all, e) < 0)
		return NULL;
	doc = json_object();
	for (unsigned i = 0; i < all.n; i++)
		json_object_set_new(doc, all.v[i].id, json_loads(all.v[i].row, 0, NULL));
	store_shared_rows_fini(&all);
	return json_pack("{s:o}", "secrets", doc);
}

static void shared_rows_put(struct call *c)
{
	json_t *rows = call_get(c, "rows"), *doc;
	struct err e;

	if (!json_is_array(rows)) {
		call_error(c, 400, "invalid", "rows: must be an array", NULL, NULL);
		return;
	}
	shared_take_all(c->api, rows);
	doc = shared_remove_others(c->api, call_get(c, "keep"), &e) < 0
		      ? NULL
		      : shared_secrets_json(c->api, &e);
	if (doc)
		call_json(c, 200, doc);
	else
		call_fail(c, &e);
}

/* Answered when the directory of the cluster has all that this node has written until now. */
struct shared_settle {
	struct directory_wait wait;
	struct call *call;
};

static void shared_settled(struct directory_wait *w)
{
	struct call *c = loop_owner(w, struct shared_settle, wait)->call;

	c->drop = NULL;
	call_json(c, 200, json_object());
}

static void shared_settle_drop(struct call *c)
{
	directory_wait_cancel(&((struct shared_settle *)c->state)->wait);
}

static void shared_rows_settle(struct call *c)
{
	struct shared_settle *x = call_alloc(c, sizeof(*x));
	int rc;

	*x = (struct shared_settle){ .wait.done = shared_settled, .call = c };
	rc = c->api->rows ? c->api->rows_settle(c->api->rows, &x->wait) : -1;
	if (rc < 0) {
		call_error(c, 503, "unavailable", "rows of this node cannot be sent now", NULL,
			   NULL);
	} else if (rc > 0) {
		call_json(c, 200, json_object());
	} else {
		c->state = x;
		c->drop = shared_settle_drop;
	}
}

static const struct api_route shared_routes[] = {
	{ "GET", "/cluster/rows", NEED_OWNER, shared_rows_settle,
	  "wait until the directory has the rows of this node", .group = "cluster" },
	{ "PUT", "/cluster/rows", NEED_OWNER, shared_rows_put, "receive rows of teams",
	  shared_fields, .group = "cluster" },
};
static struct api_table shared_table = { shared_routes, ARRAY_LEN(shared_routes), NULL, NULL };

static int shared_take_call(struct call *c)
{
	if (!c->req->trusted_peer || strcmp(c->req->path, "/cluster/rows") != 0)
		return 0;
	call_serve(c, &shared_table);
	return 1;
}

const struct api_surface shared_rows_surface = { shared_take_call, NULL, 0, NULL };
