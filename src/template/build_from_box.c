/* build_from_box.c - FROM a box: its root, its packages, and what was written in it. Its programs end,
 * so that its files do not change meanwhile; the box itself stays. See build_internal.h. */
#include "template/build_internal.h"
#include "base/cleanup.h"
#include "fleet/box.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

/* The state that the template of the box had at its end; NULL: e. */
static json_t *from_box_template(struct build *b, const struct box *box, struct err *e)
{
	json_t *root = box->row.root ? json_loads(box->row.root, 0, NULL) : NULL, *progress, *state;
	const char *id = build_text(root, "build");
	struct store_build row = { 0 };
	char name[12];

	if (!*id) {
		json_decref(root);
		return build_stage_new(b, 1);
	}
	if (store_build_get(b->all->fleet->store, id, &row, e) < 0) {
		json_decref(root);
		err_set(e, ERR_CONFLICT, "the template of box %s was deleted", box->row.id);
		return NULL;
	}
	progress = json_loads(row.progress, 0, NULL);
	snprintf(name, sizeof(name), "%d",
		 (int)json_integer_value(json_object_get(progress, "stage")));
	state = json_deep_copy(json_object_get(json_object_get(progress, "stages"), name));
	if (!state)
		err_set(e, ERR_CONFLICT, "the build of the template of box %s has no layers",
			box->row.id);
	json_decref(progress);
	json_decref(root);
	store_build_fini(&row);
	return state;
}

static void from_box_layered(struct build *b, const char *layer, uint64_t files)
{
	(void)files;
	build_add_layer(json_object_get(build_stage(b), "layers"), layer);
	if (build_save(b) == 0)
		build_continue(b);
}

void build_from_box(struct build *b, const char *id_or_name)
{
	struct box *box = fleet_named(b->all->fleet, b->row.team, id_or_name);
	json_t *state;
	struct err e;

	if (!box || (box->state != BOX_RUNNING && box->state != BOX_STOPPED)) {
		build_fail(b, "FROM box:%.64s: there is no running box of that name", id_or_name);
		return;
	}
	if (box->row.origin[0]) {
		build_fail(b,
			   "FROM box:%s: the box began with checkpoint %s, whose layers are not "
			   "part of a template; start a box of the template and copy the files",
			   box->row.id, box->row.origin);
		return;
	}
	state = from_box_template(b, box, &e);
	if (!state) {
		build_fail_err(b, &e);
		return;
	}
	if (!box->is_known)
		build_log(b, "warn",
			  "packages that the box was created with are left out: the "
			  "server was restarted since");
	for (unsigned i = box->nlayers; i-- > 0;)
		build_add_layer(json_object_get(state, "layers"), box->layers[i]);
	build_log(b, "info", "FROM box:%s: its programs end", box->row.id);
	build_stage_set(b, state);
	build_make_layer_of(b, box_keeper_id(box), from_box_layered);
}
