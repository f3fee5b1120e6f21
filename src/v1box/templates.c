/* templates.c - see templates.h: templates and their tags. */
#include "v1box/templates.h"
#include "template/build.h"
#include "template/templates.h"
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

const struct field v1_templates_patch_fields[] = {
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "another name", NULL },
	{ "public", FIELD_BOOL, 0, 0, 0, "every team may use it", NULL },
	{ "description", FIELD_TEXT, 0, 0, 4000, "for people", NULL },
	{ "pool", FIELD_INT, 0, 0, 64, "boxes of it that are kept waiting", NULL },
	{ "aliases", FIELD_TEXTS, 0, 0, 16, "further names; replaces all", NULL },
	{ 0 },
};
const struct field v1_templates_tag_fields[] = {
	{ "build", FIELD_TEXT, 0, 0, STORE_BUILD_ID, "id of a ready build", NULL },
	{ "tag", FIELD_TEXT, 0, 0, STORE_TAG, "or another tag of the template (default: default)",
	  NULL },
	{ 0 },
};

/* Of one that comes with the server and is not built: what its build would lack. */
static void v1_templates_add_missing(const struct call *c, json_t *doc)
{
	const struct shipped_template *t =
		json_is_true(json_object_get(doc, "shipped"))
			? shipped_template_find(json_string_value(json_object_get(doc, "name")))
			: NULL;

	if (t)
		json_object_set_new(doc, "missing",
				    shipped_template_missing(t,
							     &c->api->fleet.conf.packages.install));
}

void v1_templates_list(struct call *c)
{
	json_t *all, *one;
	struct err e;
	size_t i;

	if (template_list_json(c->api->store, c->who.team, c->api->started_ns, &all, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	json_array_foreach(all, i, one) v1_templates_add_missing(c, one);
	call_list(c, all, "");
}

static int v1_templates_find(struct call *c, struct template_found *out)
{
	struct err e;

	if (template_find(c->api->store, c->who.team, call_param(c, 0), out, &e) == 0)
		return 0;
	call_fail(c, &e);
	return -1;
}

/* The same for a change: -1 was answered unless the template belongs to the caller's team. */
static int v1_templates_own(struct call *c, struct template_found *out)
{
	if (v1_templates_find(c, out) < 0)
		return -1;
	if (!out->builtin && !out->shipped && !strcmp(out->row.team, c->who.team))
		return 0;
	call_error(c, 403, "denied",
		   out->builtin || out->shipped ? "this template is part of the server"
						: "this template belongs to another team",
		   out->name, NULL);
	template_found_fini(out);
	return -1;
}

void v1_templates_show(struct call *c)
{
	struct template_found f;
	json_t *doc;

	if (v1_templates_find(c, &f) < 0)
		return;
	doc = template_json(c->api->store, &f, c->api->started_ns);
	v1_templates_add_missing(c, doc);
	call_json(c, 200, doc);
	template_found_fini(&f);
}

/* ---- changes ---- */

static int v1_templates_set_aliases(struct call *c, const struct store_template *t, struct err *e)
{
	const json_t *wanted = call_get(c, "aliases"), *one;
	struct store_aliases had = { 0 };
	struct template_reference r;
	size_t i;
	int rc = 0;

	if (!wanted)
		return 0;
	if (store_alias_list(c->api->store, t->id, &had, e) < 0)
		return -1;
	for (unsigned k = 0; rc == 0 && k < had.n; k++)
		rc = store_alias_remove(c->api->store, t->team, had.v[k], e);
	json_array_foreach(wanted, i, one)
	{
		if (rc == 0)
			rc = template_reference_parse(json_string_value(one), t->team, &r, e);
		if (rc == 0 && (r.tagged || !strcmp(r.name, TEMPLATE_BASE)))
			rc = err_set(e, ERR_INVALID, "aliases: '%.60s' cannot be an alias",
				     json_string_value(one));
		if (rc == 0)
			rc = store_alias_put(c->api->store, t->team, r.name, t->id, e);
	}
	store_aliases_fini(&had);
	return rc;
}

static int v1_templates_change(struct call *c, struct store_template *t, struct err *e)
{
	const char *name = call_text(c, "name", NULL),
		   *description = call_text(c, "description", NULL);
	struct template_reference r;

	if (name && (template_reference_parse(name, t->team, &r, e) < 0))
		return -1;
	if (name && !strcmp(r.name, TEMPLATE_BASE))
		return err_set(e, ERR_INVALID, "name: '%s' is part of the server", r.name);
	if (name)
		snprintf(t->name, sizeof(t->name), "%s", r.name);
	if (description) {
		free(t->description);
		t->description = strdup(description);
	}
	t->public = call_flag(c, "public", t->public);
	t->pool = (uint32_t)call_int(c, "pool", t->pool);
	t->updated_ns = fleet_now_ns();
	if (store_begin(c->api->store, e) < 0)
		return -1;
	if (store_template_update(c->api->store, t, e) < 0 || v1_templates_set_aliases(c, t, e) < 0)
		return store_rollback(c->api->store);
	return store_commit(c->api->store, e);
}

void v1_templates_patch(struct call *c)
{
	struct template_found f;
	struct err e;

	if (v1_templates_own(c, &f) < 0)
		return;
	if (v1_templates_change(c, &f.row, &e) < 0) {
		call_fail(c, &e);
		template_found_fini(&f);
		return;
	}
	template_prepare(c->api->builds, &f.row);
	call_json(c, 200, template_json(c->api->store, &f, c->api->started_ns));
	template_found_fini(&f);
}

void v1_templates_delete(struct call *c)
{
	struct template_found f;
	struct err e;

	if (v1_templates_own(c, &f) < 0)
		return;
	if (template_delete(c->api->builds, f.row.id, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
	template_found_fini(&f);
}

/* ---- tags ---- */

static int v1_templates_tag_name(struct call *c, char out[STORE_TAG + 1], struct err *e)
{
	struct template_reference r;
	char text[STORE_TAG + 8];

	snprintf(text, sizeof(text), "t:%s", call_param(c, 1));
	if (template_reference_parse(text, NULL, &r, e) < 0)
		return err_set(e, ERR_INVALID, "tag '%.70s': has letters, digits, - _ and dots",
			       call_param(c, 1));
	snprintf(out, STORE_TAG + 1, "%s", r.tag);
	return 0;
}

/* The build that the new tag will name. */
static int v1_templates_tagged(struct call *c, const struct store_template *t,
			       struct store_tag *tag, struct err *e)
{
	const char *build = call_text(c, "build", NULL);
	struct store_build row;
	struct store_tag from;
	int rc = 0;

	if (!build) {
		if (store_tag_get(c->api->store, t->id, call_text(c, "tag", TEMPLATE_TAG), &from,
				  e) < 0)
			return -1;
		build = from.build;
	}
	snprintf(tag->build, sizeof(tag->build), "%s", build);
	if (store_build_get(c->api->store, tag->build, &row, e) < 0)
		return -1;
	if (strcmp(row.template, t->id) != 0)
		rc = err_set(e, ERR_NOT_FOUND, "no build '%s' of this template", tag->build);
	else if (row.state != STORE_BUILD_READY)
		rc = err_set(e, ERR_CONFLICT, "build %s is not ready: its state is %s", row.id,
			     store_build_state_name(row.state));
	store_build_fini(&row);
	return rc;
}

void v1_templates_tag(struct call *c)
{
	struct store_tag tag = { .created_ns = fleet_now_ns() };
	struct template_found f;
	struct err e;

	if (v1_templates_own(c, &f) < 0)
		return;
	if (v1_templates_tag_name(c, tag.tag, &e) < 0 ||
	    v1_templates_tagged(c, &f.row, &tag, &e) < 0 ||
	    store_tag_put(c->api->store, f.row.id, &tag, &e) < 0)
		call_fail(c, &e);
	else
		call_json(c, 200, template_json(c->api->store, &f, c->api->started_ns));
	template_found_fini(&f);
}

void v1_templates_untag(struct call *c)
{
	char tag[STORE_TAG + 1];
	struct template_found f;
	struct err e;

	if (v1_templates_own(c, &f) < 0)
		return;
	if (v1_templates_tag_name(c, tag, &e) < 0 ||
	    store_tag_remove(c->api->store, f.row.id, tag, &e) < 0)
		call_fail(c, &e);
	else
		call_empty(c, 204);
	template_found_fini(&f);
}

/* ---- integrity ---- */

struct template_check {
	struct call *call;
	struct keeper_call *asking;
};

static void v1_templates_checked(void *ctx, const struct frame *f, size_t len, int *fd,
				 const struct err *e)
{
	struct template_check *x = ctx;
	struct call *c = x->call;
	const struct wire_root *r = (const struct wire_root *)f;

	(void)len;
	(void)fd;
	c->drop = NULL;
	if (f)
		call_json(c, 200,
			  json_pack("{s:b, s:I, s:I}", "intact", 1, "bytes", (json_int_t)r->bytes,
				    "files", (json_int_t)r->files));
	else if (e->kind == ERR_SYS)
		call_fail(c, e);
	else
		call_json(c, 200, json_pack("{s:b, s:s}", "intact", 0, "why", e->msg));
}

static void v1_templates_check_left(struct call *c)
{
	struct template_check *x = c->state;

	keeper_client_cancel(&c->api->fleet.keeper, x->asking);
}

void v1_templates_check(struct call *c)
{
	struct wire_root ask = { .head.type = WIRE_ROOT_CHECK };
	struct template_check *x = call_alloc(c, sizeof(*x));
	struct template_found f;
	struct err e;

	if (template_resolve(c->api->store, c->who.team, call_param(c, 0), &f, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	snprintf(ask.id, sizeof(ask.id), "%s", f.build.root);
	template_found_fini(&f);
	if (!ask.id[0]) { /* the host's /usr */
		call_json(c, 200,
			  json_pack("{s:b, s:i, s:i}", "intact", 1, "bytes", 0, "files", 0));
		return;
	}
	*x = (struct template_check){ .call = c };
	c->state = x;
	c->drop = v1_templates_check_left;
	x->asking = keeper_client_request(&c->api->fleet.keeper, &ask, sizeof(ask), WIRE_ROOT,
					  v1_templates_checked, x);
}
