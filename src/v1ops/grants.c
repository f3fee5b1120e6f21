/* grants.c - see grants.h. */
#include "v1ops/grants.h"
#include "api/quota.h"
#include "base/cleanup.h"

#include <string.h>

static const struct field grants_fields[] = {
	{ "grants", FIELD_ANY, 1, 0, 0, "what has changed", NULL },
	{ 0 },
};

static int64_t grants_number(const json_t *one, const char *name)
{
	json_int_t n = json_integer_value(json_object_get(one, name));

	return n > 0 ? n : 0;
}

static int grants_take(struct api *a, const char *team, const json_t *one, struct err *e)
{
	const char *name = json_string_value(json_object_get(one, "resource"));
	const struct store_grant g = { .limit = (uint64_t)grants_number(one, "limit"),
				       .period = (int32_t)grants_number(one, "period"),
				       .amount = (uint64_t)grants_number(one, "amount"),
				       .version = grants_number(one, "version") };

	for (unsigned r = 0; name && r < STORE_RESOURCES; r++)
		if (strcmp(name, store_resource_name(r)) == 0)
			return quota_grant(a, team, r, &g,
					   json_is_true(json_object_get(one, "lower")), e);
	return err_set(e, ERR_INVALID, "'%.40s' is not a resource of a grant", name ? name : "");
}

static void grants_put(struct call *c)
{
	json_t *doc = json_object(), *one;
	struct err e;
	size_t i;

	json_array_foreach(call_get(c, "grants"), i, one)
	{
		if (grants_take(c->api, c->who.team, one, &e) < 0) {
			json_decref(doc);
			call_fail(c, &e);
			return;
		}
	}
	for (unsigned r = 0; r < STORE_RESOURCES; r++) {
		uint64_t used, amount;

		quota_granted(c->api, c->who.team, r, &used, &amount);
		json_object_set_new(doc, store_resource_name(r),
				    json_pack("{s:I, s:I}", "used", (json_int_t)used, "amount",
					      (json_int_t)amount));
	}
	call_json(c, 200, doc);
}

static const struct api_route grants_routes[] = {
	{ "PUT", "/cluster/quota", NEED_OWNER, grants_put, "receive parts of limits", grants_fields,
	  .group = "cluster" },
};
static struct api_table grants_table = { grants_routes, ARRAY_LEN(grants_routes), NULL, NULL };

static int grants_take_call(struct call *c)
{
	if (!c->req->trusted_peer || strcmp(c->req->path, "/cluster/quota") != 0)
		return 0;
	call_serve(c, &grants_table);
	return 1;
}

const struct api_surface grants_surface = { grants_take_call, NULL, 0, NULL };
