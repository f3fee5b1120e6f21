/* isolation.c - see isolation.h. */
#include "api/isolation.h"

/* NULL: not given. */
static json_t *isolation_member(struct call *c, const char *name)
{
	const char *text = call_query(c, name);

	if (json_object_get(c->body, name))
		return json_incref(json_object_get(c->body, name));
	return text ? json_string(text) : NULL;
}

int isolation_of_call(struct call *c, struct choose_request *out, struct err *e)
{
	json_t *isolation = isolation_member(c, "isolation"), *trust = isolation_member(c, "trust");
	int rc;

	*out = (struct choose_request){ 0 };
	rc = isolation_read(isolation, trust, out, e);
	json_decref(isolation);
	json_decref(trust);
	return rc;
}

int isolation_check_call(struct call *c, int modules, struct choose_request *out)
{
	struct isolation_ask ask = { .team = c->who.team, .key = c->who.id };
	struct isolation_choice tier;
	char text[CHOOSE_TEXT];
	struct err e;

	if (isolation_of_call(c, out, &e) < 0) {
		call_fail(c, &e);
		return 0;
	}
	ask.request = *out;
	ask.request.modules = modules;
	if (isolation_choose(&c->api->fleet, &ask, 0, &tier, &e) < 0) {
		call_fail(c, &e);
		return 0;
	}
	choose_request_text(out, text);
	if (json_object_get(c->body, "isolation"))
		json_object_set_new(c->body, "isolation", json_string(text));
	return 1;
}
