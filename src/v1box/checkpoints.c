/* checkpoints.c - see checkpoints.h; checkpoint_fork.c creates boxes from checkpoints. */
#include "v1box/checkpoints.h"
#include "base/cleanup.h"
#include "checkpoint/files.h"
#include "checkpoint/memory.h"
#include "checkpoint/rollback.h"
#include "record/record.h"
#include "store/snapshots.h"
#include "v1box/boxes.h"

#include <stdio.h>
#include <string.h>

static const struct field wait_values[] = { FIELD_VALUE("ready"), FIELD_VALUE("durable"), { 0 } };

const struct field checkpoints_unsupported_values[] = { FIELD_VALUE("fail"), { 0 } };
const struct field checkpoints_create_fields[] = {
	/* clang-format off */
	{ "name", FIELD_NAME, 0, 0, STORE_NAME, "name of the checkpoint, unique in its box", NULL },
	{ "note", FIELD_TEXT, 0, 0, STORE_NOTE, "a text for people", NULL },
	{ "pin", FIELD_BOOL, 0, 0, 0, "keep it until it is deleted, also after the box has ended", NULL },
	{ "memory", FIELD_BOOL, 0, 0, 0, "also the running programs", NULL },
	{ "portable", FIELD_BOOL, 0, 0, 0, "with memory: the file of the image has the mapped files of /usr, too, so that the programs continue on a host with others", NULL },
	{ "on_unsupported", FIELD_CHOICE, 0, 0, 0, "with memory, if a program cannot be captured: fail (default)", checkpoints_unsupported_values },
	{ "wait", FIELD_CHOICE, 0, 0, 0, "answer when it survives a kill of every process (ready, default) or a power failure (durable)", wait_values },
	{ 0 },
	/* clang-format on */
};

const struct field checkpoints_list_query[] = {
	{ "tree", FIELD_BOOL, 0, 0, 0, "true: all checkpoints as trees, each with its `children`",
	  NULL },
	{ "limit", FIELD_INT, 0, 1, STORE_PAGE_MAX, "number of items per page (default 100)",
	  NULL },
	{ "after", FIELD_TEXT, 0, 0, STORE_CURSOR_TEXT, "`next` of the previous page", NULL },
	{ 0 },
};

const struct field checkpoints_patch_fields[] = {
	{ "name", FIELD_TEXT, 0, 0, STORE_NAME, "new name; empty: none", NULL },
	{ "note", FIELD_TEXT, 0, 0, STORE_NOTE, "new note", NULL },
	{ "pin", FIELD_BOOL, 0, 0, 0, "true: it never expires", NULL },
	{ 0 },
};

const struct field checkpoints_rollback_fields[] = {
	/* clang-format off */
	{ "to", FIELD_TEXT, 0, 0, STORE_NAME, "the checkpoint: id, or name (default: the last one of the box)", NULL },
	{ "save", FIELD_BOOL, 0, 0, 0, "take a checkpoint of the present files first (default true)", NULL },
	{ "memory", FIELD_BOOL, 0, 0, 0, "also the programs of the checkpoint: they continue where it was taken", NULL },
	{ 0 },
	/* clang-format on */
};

const struct field checkpoints_promote_fields[] = {
	{ "from", FIELD_TEXT, 1, 0, STORE_NAME, "the fork: id or name of a box", NULL },
	{ 0 },
};

void checkpoints_fail(struct call *c, const struct err *e)
{
	static const char mark[] = "not_capturable: ";

	if (strncmp(e->msg, mark, strlen(mark)) != 0)
		call_fail(c, e);
	else
		call_error(c, 409, "not_capturable", e->msg + strlen(mark), NULL,
			   "end that program, or leave \"memory\" out: files only");
}

/* ---- JSON ---- */

static json_t *checkpoint_text(const char *text)
{
	return *text ? json_string(text) : json_null();
}

json_t *checkpoint_json(const struct store_checkpoint *x)
{
	json_t *doc = json_pack("{s:s, s:s, s:o, s:s, s:o, s:i, s:s, s:s}", "id", x->id, "box",
				x->box, "name", checkpoint_text(x->name), "note", x->note, "parent",
				checkpoint_text(x->parent), "generation", (int)x->generation,
				"reason", x->reason, "author", x->author);

	json_object_set_new(doc, "created", json_time((uint64_t)x->created_ns));
	json_object_set_new(doc, "expires",
			    x->expires_ns ? json_time((uint64_t)x->expires_ns) : json_null());
	json_object_set_new(doc, "files",
			    json_pack("{s:I, s:I, s:I, s:i}", "changed", (json_int_t)x->files,
				      "deleted", (json_int_t)x->deleted, "bytes",
				      (json_int_t)x->bytes, "depth", (int)x->nchain));
	json_object_set_new(doc, "memory", json_null());
	json_object_set_new(doc, "frozen_us", json_integer((json_int_t)x->frozen_us));
	json_object_set_new(doc, "took_us", json_integer((json_int_t)x->took_us));
	json_object_set_new(doc, "durable", json_boolean(x->durable));
	if (x->tracked)
		json_object_set_new(doc, "tracked", json_true());
	json_object_set_new(doc, "pinned", json_boolean(x->pinned));
	json_object_set_new(doc, "same_as", checkpoint_text(x->same_as));
	json_object_set_new(doc, "template", json_string(x->template));
	return doc;
}

int checkpoints_find(struct call *c, const struct box *b, const char *text,
		     struct store_checkpoint *out)
{
	struct err e;
	int found = (id_valid(text) &&
		     store_checkpoint_get(c->api->store, c->who.team, text, out, &e) == 0) ||
		    (b && store_checkpoint_named(c->api->store, b->row.id, text, out, &e) == 0);

	if (found && c->who.box[0] && strcmp(c->who.box, out->box) != 0) {
		store_checkpoint_fini(out);
		found = 0;
	}
	if (!found)
		call_error(c, 404, "not_found", "there is no such checkpoint", text,
			   "list them: GET /v1/boxes/{box}/checkpoints");
	return found;
}

/* ---- take ---- */

struct checkpoint_call {
	struct call *call;
	struct checkpoint_job *job;
	struct rollback *rollback;
	const char *action;   /* for the audit: a rollback, or a promotion */
	char box[ID_MAX + 1]; /* of a promotion: that gets the files */
};

static void checkpoints_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct call *c = ((struct checkpoint_call *)ctx)->call;
	json_t *doc;

	c->drop = NULL;
	if (e) {
		checkpoints_fail(c, e);
		return;
	}
	call_audit(c, "checkpoint.create", row->id, "ok");
	http_set(c->req, "Location", "/v1/checkpoints/%s", row->id);
	doc = checkpoint_json(row);
	json_object_set_new(doc, "memory", checkpoint_memory_json(c->api->checkpoints, row->id));
	call_json(c, 201, doc);
}

static void checkpoints_left(struct call *c)
{
	struct checkpoint_call *x = c->state;

	checkpoint_leave(x->job);
	rollback_leave(x->rollback);
}

void checkpoints_create(struct call *c)
{
	struct checkpoint_want want = { .name = call_text(c, "name", NULL),
					.note = call_text(c, "note", NULL),
					.author = c->who.id,
					.reason = CHECKPOINT_MANUAL,
					.pin = call_flag(c, "pin", 0) };
	struct checkpoint_call *x = call_alloc(c, sizeof(*x));
	struct box *b = call_box(c, 0);
	struct err e;

	if (!b)
		return;
	want.memory = call_flag(c, "memory", 0);
	want.portable = call_flag(c, "portable", 0);
	want.durable = !strcmp(call_text(c, "wait", "ready"), "durable");
	*x = (struct checkpoint_call){ .call = c };
	if (checkpoint_take(c->api->checkpoints, b, &want, checkpoints_taken, x, &x->job, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = x;
	c->drop = checkpoints_left;
}

/* ---- list, show, change, delete ---- */

/* Items in the order of their creation: a parent comes before its children. */
static json_t *checkpoints_tree(const struct store_checkpoints *all)
{
	json_t *roots = json_array(), *known = json_object();

	for (unsigned i = 0; i < all->n; i++) {
		const struct store_checkpoint *x = &all->v[i];
		json_t *doc = checkpoint_json(x),
		       *parent = *x->parent ? json_object_get(known, x->parent) : NULL;

		json_object_set_new(doc, "children", json_array());
		json_object_set(known, x->id, doc);
		json_array_append_new(parent ? json_object_get(parent, "children") : roots, doc);
	}
	json_decref(known);
	return roots;
}

static void checkpoints_list_tree(struct call *c, const char *box)
{
	struct store_checkpoints all = { 0 };
	struct err e;

	if (store_checkpoint_of_box(c->api->store, box, &all, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	call_list(c, checkpoints_tree(&all), NULL);
	store_checkpoints_fini(&all);
}

/* Of a box that has ended, its checkpoints still exist. */
static int checkpoints_box(struct call *c, char out[ID_MAX + 1])
{
	const char *text = call_param(c, 0);
	struct box *b = fleet_named(&c->api->fleet, c->who.team, text);
	struct store_box row = { 0 };
	struct err e;
	int mine;

	if (!b && store_box_gone(c->api->store, c->who.team, text, &row, &e) == 0) {
		mine = !c->who.box[0] || !strcmp(c->who.box, row.id);
		memcpy(out, row.id, ID_MAX + 1);
		store_box_fini(&row);
		if (mine)
			return 1;
	}
	b = call_box_peek(c, 0);
	if (b)
		memcpy(out, b->row.id, ID_MAX + 1);
	return b != NULL;
}

void checkpoints_list(struct call *c)
{
	const char *after = call_query(c, "after");
	struct store_checkpoint_filter f = { .team = c->who.team,
					     .limit = (unsigned)call_query_int(c, "limit", 0) };
	struct store_checkpoints rows = { 0 };
	char next[STORE_CURSOR_TEXT] = "", box[ID_MAX + 1];
	json_t *items;
	struct err e;

	if (!checkpoints_box(c, box))
		return;
	if (call_query_flag(c, "tree")) {
		checkpoints_list_tree(c, box);
		return;
	}
	f.box = box;
	if ((after && store_cursor_parse(after, &f.after, &e) < 0) ||
	    store_checkpoint_list(c->api->store, &f, &rows, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	items = json_array();
	for (unsigned i = 0; i < rows.n; i++)
		json_array_append_new(items, checkpoint_json(&rows.v[i]));
	if (rows.more) {
		struct store_cursor at = store_checkpoint_cursor(&rows.v[rows.n - 1]);

		store_cursor_text(&at, next);
	}
	store_checkpoints_fini(&rows);
	call_list(c, items, next);
}

void checkpoints_show(struct call *c)
{
	struct store_checkpoint x;

	json_t *doc;

	if (!checkpoints_find(c, NULL, call_param(c, 0), &x))
		return;
	doc = checkpoint_json(&x);
	json_object_set_new(doc, "memory", checkpoint_memory_json(c->api->checkpoints, x.id));
	call_json(c, 200, doc);
	store_checkpoint_fini(&x);
}

void checkpoints_patch(struct call *c)
{
	struct store_checkpoint x;
	struct err e;
	int rc;

	if (!checkpoints_find(c, NULL, call_param(c, 0), &x))
		return;
	snprintf(x.name, sizeof(x.name), "%s", call_text(c, "name", x.name));
	snprintf(x.note, sizeof(x.note), "%s", call_text(c, "note", x.note));
	x.pinned = call_flag(c, "pin", x.pinned);
	if (x.pinned || x.name[0])
		x.expires_ns = 0;
	rc = store_checkpoint_update(c->api->store, &x, &e);
	if (rc < 0) {
		call_fail(c, &e);
	} else {
		call_audit(c, "checkpoint.change", x.id, "ok");
		call_json(c, 200, checkpoint_json(&x));
	}
	store_checkpoint_fini(&x);
}

void checkpoints_delete(struct call *c)
{
	struct store_checkpoint x;
	struct store_snapshot of;
	struct err e;

	if (!checkpoints_find(c, NULL, call_param(c, 0), &x))
		return;
	if (store_snapshot_of(c->api->store, x.id, &of, &e) == 0)
		call_error(c, 409, "conflict", "the checkpoint has the files of a snapshot", of.id,
			   "delete the snapshot: DELETE /v1/snapshots/{snapshot}");
	else if (checkpoint_remove(c->api->checkpoints, &x, &e) < 0) {
		call_fail(c, &e);
	} else {
		call_audit(c, "checkpoint.delete", x.id, "ok");
		call_empty(c, 204);
	}
	store_checkpoint_fini(&x);
}

/* ---- rollback ---- */

static void checkpoints_rolled_back(void *ctx, struct box *b, const char *safety,
				    const struct err *e)
{
	const struct checkpoint_call *x = ctx;
	struct call *c = x->call;
	json_t *doc;

	c->drop = NULL;
	if (e) {
		call_fail(c, e);
		return;
	}
	call_audit(c, x->action, b->row.id, "ok");
	doc = box_json(b);
	json_object_set_new(doc, "safety", checkpoint_text(safety));
	call_json(c, 200, doc);
}

/* The files of a checkpoint lie over the root of its box: another root cannot be put below them. */
int checkpoints_fits(struct call *c, const struct box *b, const struct store_checkpoint *x)
{
	json_t *doc = checkpoint_read_spec(x),
	       *root = b->row.root ? json_loads(b->row.root, 0, NULL) : NULL,
	       *made = b->row.made ? json_loads(b->row.made, 0, NULL) : NULL;
	const json_t *theirs = json_object_get(doc, "root"),
		     *their_made = json_object_get(doc, "made"), *a = json_object_get(theirs, "id"),
		     *z = json_object_get(root, "id"), *m = json_object_get(their_made, "layers"),
		     *n = json_object_get(made, "layers");
	int same = (a ? json_equal(a, z) : !z) &&
		   (json_array_size(m) ? json_equal(m, n) : !json_array_size(n));

	json_decref(doc);
	json_decref(root);
	json_decref(made);
	if (!same)
		call_error(c, 409, "conflict",
			   "the checkpoint is of a box with another template or other packages",
			   x->template,
			   "create a box from it: POST /v1/boxes {\"checkpoint\": ID}");
	return same;
}

void checkpoints_rollback(struct call *c)
{
	struct box *b = call_box(c, 0);
	const char *to = call_text(c, "to", b ? b->row.head : "");
	struct checkpoint_call *x = call_alloc(c, sizeof(*x));
	struct store_checkpoint row;
	unsigned how;
	struct err e;
	int rc;

	if (!b)
		return;
	if (!*to) {
		call_error(c, 409, "conflict", "the box has no checkpoint", b->row.id,
			   "take one: POST /v1/boxes/{box}/checkpoints");
		return;
	}
	if (!checkpoints_find(c, b, to, &row))
		return;
	if (!checkpoints_fits(c, b, &row)) {
		store_checkpoint_fini(&row);
		return;
	}
	*x = (struct checkpoint_call){ .call = c, .action = "box.rollback" };
	how = (call_flag(c, "save", 1) ? ROLLBACK_SAVE : 0) |
	      (call_flag(c, "memory", 0) ? ROLLBACK_MEMORY : 0);
	rc = rollback_start(c->api->checkpoints, b, &row, how, "box.rolled_back", c->who.id,
			    checkpoints_rolled_back, x, &x->rollback, &e);
	store_checkpoint_fini(&row);
	if (rc < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = x;
	c->drop = checkpoints_left;
}

/* ---- promote ---- */

/* Whether the files of `copy` began as those of the box, directly or by forks of forks. */
static int promote_is_fork(struct call *c, const struct box *b, const struct box *copy)
{
	char origin[ID_MAX + 1];
	struct store_checkpoint x;
	struct err e;

	memcpy(origin, copy->row.origin, sizeof(origin));
	for (unsigned depth = 0; origin[0] && depth < CHECKPOINT_FILES_DEPTH; depth++) {
		if (store_checkpoint_any(c->api->store, origin, &x, &e) < 0)
			return 0;
		store_checkpoint_fini(&x);
		if (!strcmp(x.box, b->row.id))
			return 1;
		memcpy(origin, x.origin, sizeof(origin));
	}
	return 0;
}

static struct box *promote_fork(struct call *c, const struct box *b)
{
	const char *from = call_text(c, "from", "");
	struct box *copy = fleet_named(&c->api->fleet, c->who.team, from);

	if (!copy || (c->who.box[0] && strcmp(c->who.box, copy->row.id) != 0))
		call_error(c, 404, "not_found", "from: there is no such box", from,
			   "list them: GET /v1/boxes");
	else if (copy == b)
		call_error(c, 409, "conflict", "from: a box cannot take over its own files", from,
			   "name a fork of it: POST /v1/boxes/{box}/fork creates one");
	else if (b->state != BOX_RUNNING && b->state != BOX_STOPPED)
		call_error(c, 409, "conflict", "the box is not running", box_state_name(b->state),
			   "resume it first: POST /v1/boxes/{box}/resume");
	else if (!promote_is_fork(c, b, copy))
		call_error(
			c, 409, "conflict", "from: the box is no fork of this box", from,
			"to replace the files by those of any checkpoint: POST /v1/boxes/{box}/rollback");
	else
		return copy;
	return NULL;
}

static void promote_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct checkpoint_call *x = ctx;
	struct call *c = x->call;
	struct box *b = fleet_find(&c->api->fleet, x->box);
	struct err own;

	x->job = NULL;
	c->drop = NULL;
	if (e || !b) {
		err_set(&own, ERR_NOT_FOUND, "box %s has ended", x->box);
		call_fail(c, e ? e : &own);
		return;
	}
	if (!checkpoints_fits(c, b, row))
		return;
	if (rollback_start(c->api->checkpoints, b, row, ROLLBACK_SAVE, "box.promoted", c->who.id,
			   checkpoints_rolled_back, x, &x->rollback, &own) < 0)
		call_fail(c, &own);
	else
		c->drop = checkpoints_left;
}

void checkpoints_promote(struct call *c)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_PROMOTE, .author = c->who.id };
	struct checkpoint_call *x = call_alloc(c, sizeof(*x));
	struct box *b = call_box(c, 0), *copy = b ? promote_fork(c, b) : NULL;
	struct err e;

	if (!copy)
		return;
	*x = (struct checkpoint_call){ .call = c, .action = "box.promote" };
	memcpy(x->box, b->row.id, sizeof(x->box));
	if (checkpoint_take(c->api->checkpoints, copy, &want, promote_taken, x, &x->job, &e) < 0) {
		call_fail(c, &e);
		return;
	}
	c->state = x;
	c->drop = checkpoints_left;
}
