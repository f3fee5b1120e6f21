/* snapshot_source.c - see snapshot_source.h. */
#include "v1box/snapshot_source.h"
#include "base/cleanup.h"
#include "fleet/definition.h"
#include "store/copies.h"

#include <stdio.h>
#include <string.h>

/* ---- definitions ---- */

json_t *snapshot_source_definition(const struct store_snapshot *x)
{
	return json_pack("{s:{s:s, s:s, s:s, s:s, s:s, s:s, s:s}, s:I}", "snapshot", "id", x->id,
			 "team", x->team, "name", x->name, "tag", x->tag, "box", x->box, "template",
			 x->template, "tier", x->tier, "snapshot_created_ns",
			 (json_int_t)x->created_ns);
}

/* 0: it is missing, or too long. */
static int snapshot_source_text(const json_t *doc, const char *key, char *out, size_t room)
{
	const char *text = json_string_value(json_object_get(doc, key));

	return text && (size_t)snprintf(out, room, "%s", text) < room;
}

int snapshot_source_definition_read(const json_t *doc, struct store_snapshot *out, struct err *e)
{
	const json_t *x = json_object_get(doc, "snapshot");

	*out = (struct store_snapshot){ .created_ns = json_integer_value(
						json_object_get(doc, "snapshot_created_ns")) };
	if (snapshot_source_text(x, "id", out->id, sizeof(out->id)) && id_valid(out->id) &&
	    snapshot_source_text(x, "team", out->team, sizeof(out->team)) && out->team[0] &&
	    snapshot_source_text(x, "name", out->name, sizeof(out->name)) &&
	    snapshot_source_text(x, "tag", out->tag, sizeof(out->tag)) &&
	    snapshot_source_text(x, "box", out->box, sizeof(out->box)) &&
	    snapshot_source_text(x, "template", out->template, sizeof(out->template)) &&
	    snapshot_source_text(x, "tier", out->tier, sizeof(out->tier)))
		return 0;
	return err_set(e, ERR_INVALID, "a copy whose first line does not describe a snapshot");
}

/* ---- copies ---- */

/* Of a box with on_loss restart: what the snapshot of it is known by. */
static int snapshot_source_of_box(const json_t *doc, const struct store_copy *copy,
				  struct store_snapshot *out, struct err *e)
{
	struct box_definition d = { 0 };
	int rc = box_definition_read(doc, &d, e);

	*out = (struct store_snapshot){ .created_ns = copy->created_ns };
	snprintf(out->id, sizeof(out->id), "%s", copy->id);
	snprintf(out->team, sizeof(out->team), "%s", copy->team);
	snprintf(out->box, sizeof(out->box), "%s", copy->box);
	snprintf(out->template, sizeof(out->template), "%s", d.want.row.template);
	if (rc == 0)
		snprintf(out->tier, sizeof(out->tier), "%s", isolation_tier(&d.want.row));
	box_definition_fini(&d);
	return rc;
}

static int snapshot_source_copy(struct api *a, const char *team, const char *id,
				struct store_snapshot *out, struct err *e)
{
	struct store_copy copy;
	json_t *doc;
	int rc;

	if (store_copy_get(a->store, id, &copy, e) < 0)
		return -1;
	doc = json_loads(copy.definition, 0, NULL);
	if (strcmp(copy.team, team) != 0)
		rc = err_set(e, ERR_NOT_FOUND, "there is no snapshot '%.80s'", id);
	else if (copy.box[0])
		rc = snapshot_source_of_box(doc, &copy, out, e);
	else
		rc = snapshot_source_definition_read(doc, out, e);
	if (rc == 0)
		out->bytes = copy.bytes;
	json_decref(doc);
	store_copy_fini(&copy);
	return rc;
}

int snapshot_source_find(struct api *a, const char *team, const char *text,
			 struct store_snapshot *out, struct err *e)
{
	char id[ID_MAX + 1];
	struct err ignored;

	if (snapshots_find(a, team, text, out, e) == 0)
		return 0;
	/* E2B names a snapshot "ID:default". */
	snprintf(id, sizeof(id), "%.*s", (int)strcspn(text, ":"), text);
	if (e->kind == ERR_NOT_FOUND && id_valid(id) &&
	    snapshot_source_copy(a, team, id, out, &ignored) == 0)
		return 0;
	return -1;
}

int snapshot_source_fill(struct api *a, struct box *b, const char *id, snapshot_done *done,
			 void *ctx, struct snapshot **out, struct err *e)
{
	struct store_snapshot own;
	struct store_copy copy;
	int rc;

	if (store_snapshot_get(a->store, b->row.team, id, &own, e) == 0)
		return snapshot_fill(&a->fleet, b, id, done, ctx, out, e);
	if (e->kind != ERR_NOT_FOUND || store_copy_get(a->store, id, &copy, e) < 0)
		return -1;
	rc = snapshot_fill_copy(&a->fleet, b, id, copy.sha256, done, ctx, out, e);
	store_copy_fini(&copy);
	return rc;
}
