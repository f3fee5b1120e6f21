/* env.c - see env.h. Programs that already run keep their variables. */
#include "v1box/env.h"
#include "v1box/boxes.h"
#include "base/cleanup.h"

const struct field env_fields[] = {
	{ "env", FIELD_MAP, 1, 0, 1000,
	  "all environment variables; variables that are not named are removed", NULL },
	{ 0 },
};

static json_t *env_json(const struct box *b)
{
	json_t *env = b->row.env ? json_loads(b->row.env, 0, NULL) : NULL;

	return json_pack("{s:o}", "env", env ? env : json_object());
}

void env_show(struct call *c)
{
	struct box *b = call_box_any(c, 0);
	json_t *doc = b ? env_json(b) : NULL;

	if (!b)
		return;
	box_withhold(c, doc);
	if (call_not_modified(c, doc))
		json_decref(doc);
	else
		call_json(c, 200, doc);
}

/* 0: the variables have changed since the client read them; answered. */
static int is_expected(struct call *c, const struct box *b)
{
	json_t *now = env_json(b);
	int same = call_if_match(c, now);

	json_decref(now);
	return same;
}

void env_set(struct call *c)
{
	struct box *b = call_box_any(c, 0);
	char *before;
	struct err e;

	if (!b || !is_expected(c, b))
		return;
	if (box_check_env(call_get(c, "env"), &e) < 0) {
		call_fail(c, &e);
		return;
	}
	before = b->row.env;
	b->row.env = json_dumps(call_get(c, "env"), JSON_COMPACT);
	if (box_changed(b, &e) < 0) {
		free(b->row.env);
		b->row.env = before;
		call_fail(c, &e);
		return;
	}
	free(before);
	call_json(c, 200, env_json(b));
}
