/* store_checkpoints_test.c - rows of checkpoints: states, trees, quota, and which files are needed. */
#include "store/checkpoints.h"
#include "store/process_images.h"
#include "store_rows.h"

#include <stdlib.h>

#define BOX "aaaaaaaaaaaa"

static struct store_checkpoint row(const char *id, const char *parent, int64_t created_ns)
{
	struct store_checkpoint x = { .team = "default",
				      .box = BOX,
				      .generation = 1,
				      .reason = "manual",
				      .template = "base",
				      .created_ns = created_ns };

	snprintf(x.id, sizeof(x.id), "%s", id);
	snprintf(x.parent, sizeof(x.parent), "%s", parent);
	return x;
}

/* Writes a ready checkpoint over its parent. */
static int take(struct store *s, struct store_checkpoint *x, const struct store_checkpoint *parent,
		uint64_t bytes)
{
	struct err e;

	x->nchain = 0;
	memcpy(x->chain[x->nchain++], x->id, sizeof(x->id));
	for (unsigned i = 0; parent && i < parent->nchain; i++)
		memcpy(x->chain[x->nchain++], parent->chain[i], ID_MAX + 1);
	x->bytes = bytes;
	return store_checkpoint_insert(s, x, &e) == 0 && store_checkpoint_finish(s, x, &e) == 0
		       ? 0
		       : -1;
}

static int add_box(struct store *s, struct err *e)
{
	struct store_box b = rows_box();

	memcpy(b.team, "default", sizeof("default"));
	return store_box_insert(s, &b, e);
}

static unsigned garbage(struct store *s, const char *first)
{
	struct store_ids ids = { 0 };
	struct err e;
	unsigned n;

	if (store_checkpoint_forget(s, &e) < 0 || store_checkpoint_garbage(s, &ids, &e) < 0)
		return 99;
	n = ids.n;
	if (n && first && strcmp(ids.v[0], first) != 0)
		n = 98;
	free(ids.v);
	return n;
}

TEST(a_checkpoint_is_found_only_when_it_is_ready)
{
	struct store_checkpoint a = row("caaaaaaaaaaa", "", 10), out;
	struct store_box b;
	uint64_t n;
	struct err e;

	STORE(s, dir);
	CHECK_OK(add_box(s, &err));
	CHECK_OK(store_checkpoint_insert(s, &a, &err));
	CHECK_ERR(store_checkpoint_get(s, "default", a.id, &out, &err), ERR_NOT_FOUND);
	CHECK(store_checkpoint_count(s, BOX, &n, &e) == 0 && n == 1);
	memcpy(a.chain[0], a.id, sizeof(a.id));
	a.nchain = 1;
	a.bytes = 7;
	CHECK_OK(store_checkpoint_finish(s, &a, &err));
	CHECK_ERR(store_checkpoint_finish(s, &a, &err), ERR_NOT_FOUND);
	CHECK_OK(store_checkpoint_get(s, "default", a.id, &out, &err));
	CHECK(out.nchain == 1 && !strcmp(out.chain[0], a.id) && out.bytes == 7);
	store_checkpoint_fini(&out);
	CHECK_ERR(store_checkpoint_get(s, "other", a.id, &out, &err), ERR_NOT_FOUND);
	CHECK(store_checkpoint_bytes(s, "default", &n, &e) == 0 && n == 7);
	CHECK_OK(store_box_get(s, BOX, &b, &err));
	CHECK_STR(b.head, a.id);
	CHECK_INT(b.generation, 1);
	store_box_fini(&b);
}

TEST(a_name_is_unique_in_its_box_until_it_is_deleted)
{
	struct store_checkpoint a = row("caaaaaaaaaaa", "", 10), b = row("cbaaaaaaaaaa", "", 11),
				out;

	STORE(s, dir);
	strcpy(a.name, "good");
	strcpy(b.name, "good");
	CHECK(take(s, &a, NULL, 1) == 0);
	CHECK_ERR(store_checkpoint_insert(s, &b, &err), ERR_CONFLICT);
	CHECK(strstr(err.msg, "named 'good'") != NULL);
	CHECK_OK(store_checkpoint_hide(s, a.id, &err));
	CHECK_ERR(store_checkpoint_hide(s, a.id, &err), ERR_NOT_FOUND);
	CHECK_ERR(store_checkpoint_named(s, BOX, "good", &out, &err), ERR_NOT_FOUND);
	CHECK(take(s, &b, NULL, 1) == 0);
	CHECK_OK(store_checkpoint_named(s, BOX, "good", &out, &err));
	CHECK_STR(out.id, b.id);
	store_checkpoint_fini(&out);
}

TEST(the_layers_of_a_deleted_checkpoint_stay_while_they_are_needed)
{
	struct store_checkpoint a = row("caaaaaaaaaaa", "", 10), b = row("cbaaaaaaaaaa", a.id, 11),
				c = row("ccaaaaaaaaaa", b.id, 12), out;

	STORE(s, dir);
	CHECK_OK(add_box(s, &err));
	CHECK(take(s, &a, NULL, 1) == 0 && take(s, &b, &a, 2) == 0 && take(s, &c, &b, 4) == 0);
	CHECK_INT(garbage(s, NULL), 0);
	CHECK_OK(store_checkpoint_hide(s, b.id, &err)); /* c has its layer */
	CHECK_INT(garbage(s, NULL), 0);
	CHECK_OK(store_checkpoint_get(s, "default", c.id, &out, &err));
	CHECK_STR(out.parent, a.id);
	store_checkpoint_fini(&out);
	CHECK_OK(store_checkpoint_hide(s, c.id, &err)); /* the box continues from it */
	CHECK_INT(garbage(s, NULL), 0);
	CHECK_OK(store_checkpoint_any(s, c.id, &out, &err));
	store_checkpoint_fini(&out);
	CHECK_OK(store_box_bury(s, BOX, "exit", 99, &err));
	CHECK_INT(garbage(s, b.id), 2);
	CHECK_OK(store_checkpoint_dropped(s, b.id, &err));
	CHECK_OK(store_checkpoint_dropped(s, c.id, &err));
	CHECK_INT(garbage(s, NULL), 0);
	CHECK_ERR(store_checkpoint_any(s, c.id, &out, &err), ERR_NOT_FOUND);
}

TEST(the_files_of_a_checkpoint_that_was_never_finished_are_garbage)
{
	struct store_checkpoint a = row("caaaaaaaaaaa", "", 10);
	struct store_ids ids;

	STORE(s, dir);
	CHECK_OK(store_checkpoint_insert(s, &a, &err));
	CHECK_INT(garbage(s, NULL), 0);
	CHECK_OK(store_checkpoint_writing(s, &ids, &err));
	CHECK(ids.n == 1 && !strcmp(ids.v[0], a.id));
	free(ids.v);
	CHECK_OK(store_checkpoint_fail(s, a.id, &err));
	CHECK_INT(garbage(s, a.id), 1);
	CHECK_OK(store_checkpoint_dropped(s, a.id, &err));
	CHECK_INT(garbage(s, NULL), 0);
}

TEST(checkpoints_of_an_ended_box_expire_except_named_and_pinned_ones)
{
	struct store_checkpoint a = row("caaaaaaaaaaa", "", 10), b = row("cbaaaaaaaaaa", a.id, 11),
				c = row("ccaaaaaaaaaa", b.id, 12);
	struct store_checkpoints old;

	STORE(s, dir);
	strcpy(a.name, "n");
	b.pinned = 1;
	CHECK(take(s, &a, NULL, 1) == 0 && take(s, &b, &a, 1) == 0 && take(s, &c, &b, 1) == 0);
	CHECK_OK(store_checkpoint_box_ended(s, BOX, 50, &err));
	CHECK_OK(store_checkpoint_expired(s, 49, &old, &err));
	CHECK_INT(old.n, 0);
	store_checkpoints_fini(&old);
	CHECK_OK(store_checkpoint_expired(s, 50, &old, &err));
	CHECK(old.n == 1 && !strcmp(old.v[0].id, c.id));
	store_checkpoints_fini(&old);
}

TEST(a_merged_layer_replaces_the_end_of_every_chain_that_has_it)
{
	struct store_checkpoint a = row("caaaaaaaaaaa", "", 10), b = row("cbaaaaaaaaaa", a.id, 11),
				c = row("ccaaaaaaaaaa", b.id, 12),
				other = row("cdaaaaaaaaaa", b.id, 13), out;

	STORE(s, dir);
	CHECK(take(s, &a, NULL, 1) == 0 && take(s, &b, &a, 1) == 0 && take(s, &c, &b, 1) == 0 &&
	      take(s, &other, &b, 1) == 0);
	CHECK_ERR(store_checkpoint_merged(s, &c, 4, "cmaaaaaaaaaa", 2, &err), ERR_INVALID);
	CHECK_OK(store_checkpoint_merged(s, &c, 2, "cmaaaaaaaaaa", 2, &err));
	CHECK_OK(store_checkpoint_get(s, "default", other.id, &out, &err));
	CHECK(out.nchain == 2 && !strcmp(out.chain[1], "cmaaaaaaaaaa"));
	store_checkpoint_fini(&out);
	CHECK_OK(store_checkpoint_get(s, "default", a.id, &out, &err)); /* only one of the two */
	CHECK(out.nchain == 1 && !strcmp(out.chain[0], a.id));
	store_checkpoint_fini(&out);
	CHECK_INT(garbage(s, NULL), 0);
	CHECK_OK(store_checkpoint_hide(s, a.id, &err));
	CHECK_OK(store_checkpoint_hide(s, b.id, &err));
	CHECK_INT(garbage(s, a.id), 2); /* the merged layer contains both */
}

TEST(a_replaced_box_of_the_keeper_is_remembered_until_it_is_ended)
{
	struct store_ids ids;

	STORE(s, dir);
	CHECK_OK(store_replaced_add(s, "kaaaaaaaaaaa", &err));
	CHECK_OK(store_replaced_add(s, "kaaaaaaaaaaa", &err));
	CHECK_OK(store_replaced_list(s, &ids, &err));
	CHECK(ids.n == 1 && !strcmp(ids.v[0], "kaaaaaaaaaaa"));
	free(ids.v);
	CHECK_OK(store_replaced_remove(s, "kaaaaaaaaaaa", &err));
	CHECK_OK(store_replaced_list(s, &ids, &err));
	CHECK_INT(ids.n, 0);
	free(ids.v);
}

TEST(the_row_of_a_process_image_counts_as_bytes_and_ends_with_its_checkpoint)
{
	struct store_checkpoint a = row("caaaaaaaaaaa", "", 10);
	struct store_box b = rows_box();
	char *doc = NULL, box[ID_MAX + 1];
	struct store_checkpoints old = { 0 };
	uint64_t n;
	struct err e;

	STORE(s, dir);
	CHECK(take(s, &a, NULL, 7) == 0);
	CHECK_ERR(store_process_image_get(s, a.id, &doc, &err), ERR_NOT_FOUND);
	CHECK_OK(store_process_image_put(s, a.id, 100, "{\"runs\": []}", &err));
	CHECK_OK(store_process_image_get(s, a.id, &doc, &err));
	CHECK_STR(doc, "{\"runs\": []}");
	free(doc);
	CHECK(store_checkpoint_bytes(s, "default", &n, &e) == 0 && n == 107);
	CHECK_OK(store_process_image_drop(s, a.id, &err));
	CHECK(store_checkpoint_bytes(s, "default", &n, &e) == 0 && n == 7);
	CHECK_OK(store_process_image_put(s, a.id, 100, "{}", &err));
	/* The image of a paused box does not expire. */
	memcpy(b.team, "default", sizeof("default"));
	memcpy(b.image, a.id, sizeof(b.image));
	CHECK_OK(store_box_insert(s, &b, &err));
	CHECK_OK(store_process_image_box(s, a.id, box, &err));
	CHECK_STR(box, BOX);
	CHECK_OK(store_checkpoint_expire(s, a.id, 20, &err));
	CHECK(store_checkpoint_expired(s, 30, &old, &e) == 0 && old.n == 0);
	store_checkpoints_fini(&old);
	b.image[0] = 0;
	CHECK_OK(store_box_update(s, &b, &err));
	CHECK_ERR(store_process_image_box(s, a.id, box, &err), ERR_NOT_FOUND);
	CHECK(store_checkpoint_expired(s, 30, &old, &e) == 0 && old.n == 1);
	store_checkpoints_fini(&old);
	CHECK_OK(store_checkpoint_hide(s, a.id, &err));
	CHECK_OK(store_checkpoint_forget(s, &err));
	CHECK_ERR(store_process_image_get(s, a.id, &doc, &err), ERR_NOT_FOUND);
}
