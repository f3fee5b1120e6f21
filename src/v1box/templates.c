/* templates.c - see templates.h. */
#include "v1box/templates.h"
#include "template/templates.h"

void v1_templates_list(struct call *c)
{
	json_t *all;
	struct err e;

	if (template_list_json(c->api->store, c->who.team, c->api->started_ns, &all, &e) < 0)
		call_fail(c, &e);
	else
		call_list(c, all, "");
}

void v1_templates_show(struct call *c)
{
	struct template_found f;
	struct err e;

	if (template_find(c->api->store, c->who.team, call_param(c, 0), &f, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_json(c, 200, template_json(c->api->store, &f, c->api->started_ns));
	template_found_fini(&f);
}
