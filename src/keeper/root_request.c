/* root_request.c - roots: lists of layers; root_table.h stores them.
 *
 * Whether a root is in use is decided here, on the loop: a box has it in its record as soon as it
 * is requested, and a deleted root is not in the table when another request is handled. */
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"
#include "keeper/layer_store.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int root_check(const struct keeper *k, const struct wire_create *w, struct err *e)
{
	if (!w->root[0])
		return 0;
	if (!layer_tree_id_ok(w->root))
		return err_set(e, ERR_INVALID, "a root's id has 64 hexadecimal digits");
	if (strnlen(w->template, sizeof(w->template)) == sizeof(w->template) || !w->template[0])
		return err_set(e, ERR_INVALID, "a template's name has 1 to %zu bytes",
			       sizeof(w->template) - 1);
	if (!root_table_find(&k->roots, w->root))
		return err_set(e, ERR_NOT_FOUND, "there is no root %.12s", w->root);
	return layer_possible(k, e);
}

static const char *root_box_with(struct keeper *k, const char *id)
{
	for (struct keeper_box *b = keeper_box_after(&k->boxes, ""); b;
	     b = keeper_box_after(&k->boxes, b->meta.about.id))
		if (strcmp(b->meta.root, id) == 0 && !b->of_root_pool && !b->of_warm_pool)
			return b->meta.about.id;
	return NULL;
}

static int root_make(struct keeper *k, struct client *c, const struct wire_root_make *w,
		     struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_ROOT };
	struct root *r = &o.root;

	if (w->head.flags & ~(WIRE_ROOT_MERGE | WIRE_ROOT_BASE))
		return err_set(e, ERR_INVALID, "ROOT_MAKE has no flag %#x", w->head.flags);
	if (w->nlayers > WIRE_ROOT_LAYERS)
		return err_set(e, ERR_INVALID, "%u layers: a root may have %d", w->nlayers,
			       WIRE_ROOT_LAYERS);
	r->merged = !!(w->head.flags & WIRE_ROOT_MERGE);
	r->base = !!(w->head.flags & WIRE_ROOT_BASE);
	for (; r->nlayers < w->nlayers; r->nlayers++) {
		const char *id = w->layer[r->nlayers];

		if (!layer_tree_id_ok(id))
			return err_set(e, ERR_INVALID, "a layer's id has 64 hexadecimal digits");
		/* Overlayfs refuses to mount a folder twice. The upper one decides. */
		for (uint32_t i = 0; i < r->nlayers; i++)
			if (strcmp(r->layer[i], id) == 0)
				return err_set(e, ERR_INVALID, "layer %.12s twice in one root", id);
		memcpy(r->layer[r->nlayers], id, TREE_ID + 1);
	}
	root_set_id(r);
	return layer_order(k, c, &w->head, &o, -1, WIRE_ROOT, e);
}

static int root_drop(struct keeper *k, struct client *c, const struct wire_root *w, struct err *e)
{
	const char *box = root_box_with(k, w->id);
	const struct root *r = root_table_find(&k->roots, w->id);
	struct frame done = sock_head(WIRE_DONE, w->head.ref);
	char merged[WIRE_LAYER_ID];
	int was_merged;

	if (!r)
		return err_set(e, ERR_NOT_FOUND, "there is no root %.12s", w->id);
	if (box)
		return err_set(e, ERR_CONFLICT, "root %.12s is used by box %s", w->id, box);
	if (layer_makes_root(k, w->id))
		return err_set(e, ERR_CONFLICT, "root %.12s is being made or checked", w->id);
	if (layer_may_order(k, e) < 0)
		return -1;
	if (unlinkat(k->host.roots_dir, w->id, 0) < 0)
		return err_sys(e, "root %.12s", w->id);
	was_merged = r->merged;
	root_pool_close(k, w->id);
	root_table_remove(&k->roots, w->id);
	root_merged_name(w->id, merged);
	if (was_merged)
		return layer_order_removal(k, c, &w->head, merged, e);
	client_send(k, c->number, &done, sizeof(done), -1);
	return 0;
}

static int root_do_check(struct keeper *k, struct client *c, const struct wire_root *w,
			 struct err *e)
{
	struct layer_store_request o = { .what = LAYER_STORE_ROOT_CHECK };
	const struct root *r = root_table_find(&k->roots, w->id);

	if (!r)
		return err_set(e, ERR_NOT_FOUND, "there is no root %.12s", w->id);
	o.root = *r;
	return layer_order(k, c, &w->head, &o, -1, WIRE_ROOT, e);
}

void root_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_root *w = (const struct wire_root *)f;
	struct err e;
	int done;

	if (layer_possible(k, &e) < 0)
		done = -1;
	else if (f->type == WIRE_ROOT_MAKE)
		done = root_make(k, c, (const struct wire_root_make *)f, &e);
	else if (!layer_tree_id_ok(w->id))
		done = err_set(&e, ERR_INVALID, "a root's id has 64 hexadecimal digits");
	else
		done = f->type == WIRE_ROOT_DROP ? root_drop(k, c, w, &e)
						 : root_do_check(k, c, w, &e);
	if (done < 0)
		client_error(k, c->number, f->ref, &e);
}
