/* run_shares.c - see run_shares.h. */
#include "v1/run_shares.h"
#include "api/auth.h"
#include "base/hex.h"
#include "fleet/exec.h"
#include "record/record.h"
#include "store/run_shares.h"
#include "v1/ui_login.h"

#include <stdio.h>
#include <string.h>

enum {
	SHARE_MS_MIN = 60 * 1000,
	SHARE_MS_DEFAULT = 24 * 3600 * 1000,
	TOKEN_BYTES = 32,
	TOKEN_TEXT = 2 * TOKEN_BYTES,
};
#define SHARE_MS_MAX (INT64_C(30) * 24 * 3600 * 1000)

const struct field run_shares_create_fields[] = {
	{ "expires_ms", FIELD_INT, 0, SHARE_MS_MIN, SHARE_MS_MAX,
	  "lifetime of the link (default: one day)", NULL },
	{ 0 },
};

static void run_share_hash(const char *token, uint8_t out[SHA256_BYTES])
{
	static const char label[] = "atoll link of a run";
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, label, sizeof(label));
	sha256_add(&s, token, strlen(token));
	sha256_end(&s, out);
}

/* 1: the run that the path names is one of the caller's team; else 404 was answered. */
static int run_share_may(struct call *c)
{
	struct store_run row = { 0 };
	struct err e;
	int may = id_valid(call_param(c, 0)) &&
		  store_run_get(c->api->store, call_param(c, 0), &row, &e) == 0 &&
		  !strcmp(row.team, c->who.team);

	store_run_fini(&row);
	if (!may)
		call_error(c, 404, "not_found", "there is no such run", call_param(c, 0),
			   "list them: GET /v1/runs");
	return may;
}

static json_t *run_share_json(const struct store_run_share *x)
{
	return json_pack("{s:s, s:s, s:s, s:o, s:o}", "id", x->id, "run", x->run, "who", x->who,
			 "created", json_time((uint64_t)x->created_ns), "expires",
			 json_time((uint64_t)x->expires_ns));
}

static int run_share_make(struct call *c, struct store_run_share *x, char token[TOKEN_TEXT + 1],
			  struct err *e)
{
	uint8_t bytes[TOKEN_BYTES];

	if (id_new(x->id, e) < 0 || id_random(bytes, sizeof(bytes), e) < 0)
		return -1;
	hex_encode(token, bytes, sizeof(bytes));
	explicit_bzero(bytes, sizeof(bytes));
	run_share_hash(token, x->hash);
	return store_run_share_add(c->api->store, x, e);
}

/* No Idempotency-Key here: the stored answer would contain the token. */
void run_shares_create(struct call *c)
{
	struct store_run_share x = { .created_ns = fleet_now_ns() };
	char token[TOKEN_TEXT + 1], origin[UI_ORIGIN], url[UI_ORIGIN + TOKEN_TEXT + 32];
	json_t *doc;
	struct err e;

	if (!run_share_may(c))
		return;
	x.expires_ns =
		x.created_ns + call_int(c, "expires_ms", SHARE_MS_DEFAULT) * INT64_C(1000000);
	snprintf(x.run, sizeof(x.run), "%s", call_param(c, 0));
	snprintf(x.team, sizeof(x.team), "%s", c->who.team);
	snprintf(x.who, sizeof(x.who), "%s", c->who.id);
	if (run_share_make(c, &x, token, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	doc = run_share_json(&x);
	call_audit_more(c, "share.create", x.id, "ok", json_deep_copy(doc));
	snprintf(url, sizeof(url), "%s/v1/shared/runs/%s", ui_login_origin(c, origin) ? origin : "",
		 token);
	json_object_set_new(doc, "token", json_string(token));
	json_object_set_new(doc, "url", *origin ? json_string(url) : json_null());
	explicit_bzero(token, sizeof(token));
	explicit_bzero(url, sizeof(url));
	http_set(c->req, "Cache-Control", "no-store");
	call_json(c, 201, doc);
}

void run_shares_list(struct call *c)
{
	struct store_run_shares rows = { 0 };
	json_t *items;
	struct err e;

	if (!run_share_may(c))
		return;
	if (store_run_share_list(c->api->store, call_param(c, 0), fleet_now_ns(), &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, run_share_json(&rows.v[i]));
	store_run_shares_fini(&rows);
	call_list(c, items, NULL);
}

void run_shares_delete(struct call *c)
{
	struct err e;

	if (!run_share_may(c))
		return;
	if (store_run_share_remove(c->api->store, call_param(c, 0), call_param(c, 1), &e) == 0) {
		call_audit_more(c, "share.delete", call_param(c, 1), "ok",
				json_pack("{s:s}", "run", call_param(c, 0)));
		call_empty(c, 204);
	} else if (e.kind == ERR_NOT_FOUND) {
		call_error(c, 404, "not_found", "this run has no such link", call_param(c, 1),
			   "list them: GET /v1/runs/{run}/shares");
	} else {
		call_fail(c, &e);
	}
}

/* The same for a token that never existed, has ended or was withdrawn, and for a record that was removed. */
static void run_share_refuse(struct call *c)
{
	if (auth_failed(c->api, c->req))
		call_fail_throttled(c);
	else
		call_error(c, 404, "not_found", "this link does not exist or has ended", "",
			   "ask for a new one: POST /v1/runs/{run}/shares");
}

void run_shares_open(struct call *c)
{
	uint8_t hash[SHA256_BYTES];
	struct store_run_share x;
	struct store_run row = { 0 };
	struct err e;
	json_t *doc;

	run_share_hash(call_param(c, 0), hash);
	http_set(c->req, "Cache-Control", "no-store");
	http_set(c->req, "Referrer-Policy", "no-referrer");
	if (store_run_share_find(c->api->store, hash, fleet_now_ns(), &x, &e) < 0 ||
	    store_run_get(c->api->store, x.run, &row, &e) < 0 || strcmp(row.team, x.team) != 0) {
		run_share_refuse(c);
	} else {
		doc = exec_row_json(&row);
		json_object_del(doc, "inputs");
		call_json(c, 200,
			  json_pack("{s:o, s:o}", "run", doc, "expires",
				    json_time((uint64_t)x.expires_ns)));
	}
	store_run_fini(&row);
}
