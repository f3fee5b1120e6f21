/* tiers.c - GET /v1/tiers, POST /v1/tiers/refresh. See tiers.h. */
#include "v1/tiers.h"

const struct field tiers_refresh_fields[] = { { 0 } };

void tiers_list(struct call *c)
{
	call_list(c, isolation_tiers_json(&c->api->fleet), NULL);
}

static void tiers_left(struct call *c)
{
	c->api->tiers_call = NULL;
}

static void tiers_refreshed(struct fleet *f, int ok)
{
	struct api *a = loop_owner(f, struct api, fleet);
	struct call *c = a->tiers_call;

	a->tiers_call = NULL;
	if (!c)
		return;
	c->drop = NULL;
	if (ok)
		tiers_list(c);
	else
		call_error(c, 409, "conflict",
			   "the keeper is older than this server and knows containers only", NULL,
			   "end all boxes and restart the service");
}

void tiers_refresh(struct call *c)
{
	struct err e;

	if (!principal_is_operator(&c->who)) {
		call_error(c, 403, "denied", "only operators examine the tiers again", NULL,
			   "use a key of an owner of team default");
		return;
	}
	if (isolation_refresh(&c->api->fleet, tiers_refreshed, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->api->tiers_call = c;
	c->drop = tiers_left;
}
