/* checkpoint_merge.c - POST /v1/boxes/{box}/merge: the changes of a fork, or of a checkpoint, join those of a box.
 *
 *   checkpoint of the fork ─► checkpoint of the box (the undo) ─► a third one with both changes ─► the box goes to it
 *
 * Until the last step nothing of the box has changed. */
#include "v1box/checkpoints.h"
#include "base/cleanup.h"
#include "checkpoint/combine.h"
#include "checkpoint/rollback.h"
#include "v1box/boxes.h"
#include "v1box/file_request.h"

#include <stdio.h>
#include <string.h>

enum { MERGE_LISTED = 1000 }; /* conflicts in an answer */

static const struct field merge_conflict_values[] = {
	FIELD_VALUE("fail"), FIELD_VALUE("ours"), FIELD_VALUE("theirs"), { 0 }
};
const struct field checkpoints_merge_fields[] = {
	/* clang-format off */
	{ "from", FIELD_TEXT, 1, 0, STORE_NAME, "the other box (id or name), or a checkpoint (id)", NULL },
	{ "on_conflict", FIELD_CHOICE, 0, 0, 0, "paths that both have changed: fail (default; nothing is changed), ours: keep those of the box, theirs: take those of the other", merge_conflict_values },
	{ 0 },
	/* clang-format on */
};

struct merging {
	struct call *call;
	struct checkpoint_job *job;
	struct combine *combine;
	struct rollback *rollback;
	struct store_checkpoint theirs, ours;
	enum checkpoint_conflicts how;
	char box[ID_MAX + 1];
	json_t *sum; /* of the answer */
};

static void merging_fini(struct merging *m)
{
	m->call->drop = NULL;
	store_checkpoint_fini(&m->theirs);
	store_checkpoint_fini(&m->ours);
	json_decref(m->sum);
}

static void merging_left(struct call *c)
{
	struct merging *m = c->state;

	checkpoint_leave(m->job);
	combine_leave(m->combine);
	rollback_leave(m->rollback);
	merging_fini(m);
}

static void merging_fail(struct merging *m, const struct err *e)
{
	merging_fini(m);
	call_fail(m->call, e);
}

static void merging_copy(struct store_checkpoint *out, const struct store_checkpoint *x)
{
	*out = *x;
	out->spec = x->spec ? strdup(x->spec) : NULL;
}

/* The box, as it is after the merge. */
static struct box *merging_box(struct merging *m, struct err *e)
{
	struct box *b = fleet_find(&m->call->api->fleet, m->box);

	if (!b)
		err_set(e, ERR_NOT_FOUND, "box %s has ended", m->box);
	return b;
}

/* ---- answer ---- */

static json_t *merging_conflicts(const struct checkpoint_plan *p)
{
	json_t *list = json_array();

	for (size_t i = 0; i < p->nconflicts && i < MERGE_LISTED; i++) {
		auto_buf struct buf full = { 0 };
		json_t *one = json_object();

		buf_printf(&full, "/%s", p->conflicts[i]);
		file_request_set_text(one, "path", buf_str(&full));
		json_array_append_new(list, one);
	}
	return list;
}

static void merging_answer(struct merging *m, struct box *b)
{
	struct call *c = m->call;
	json_t *doc = box_json(b);

	json_object_set_new(doc, "safety", json_string(m->ours.id));
	json_object_set(doc, "merge", m->sum);
	merging_fini(m);
	call_audit(c, "box.merge", b->row.id, "ok");
	call_json(c, 200, doc);
}

static void merging_refuse(struct merging *m, const struct checkpoint_plan *p)
{
	struct call *c = m->call;
	auto_buf struct buf why = { 0 };
	json_t *doc;

	buf_printf(&why, "%zu, the first is /%s", p->nconflicts, p->conflicts[0]);
	doc = call_error_json(c, "conflict",
			      "both boxes have changed the same paths; nothing was merged",
			      buf_str(&why),
			      "add \"on_conflict\": \"ours\" or \"on_conflict\": \"theirs\"");
	json_object_set_new(doc, "conflicts", merging_conflicts(p));
	merging_fini(m);
	call_account(c, "conflict");
	call_json(c, 409, doc);
}

/* ---- the steps, the last one first ---- */

static void merging_replaced(void *ctx, struct box *b, const char *safety, const struct err *e)
{
	struct merging *m = ctx;

	(void)safety;
	m->rollback = NULL;
	if (e)
		merging_fail(m, e);
	else
		merging_answer(m, b);
}

static void merging_combined(void *ctx, const struct combine_result *r, const struct err *e)
{
	struct merging *m = ctx;
	struct call *c = m->call;
	struct box *b;
	struct err own;

	m->combine = NULL;
	if (e) {
		merging_fail(m, e);
		return;
	}
	if (r->plan->nconflicts && m->how == MERGE_FAILS) {
		merging_refuse(m, r->plan);
		return;
	}
	b = merging_box(m, &own);
	m->sum = json_pack("{s:s, s:s, s:s?, s:I, s:I, s:I, s:o}", "ancestor", r->ancestor, "from",
			   m->theirs.id, "checkpoint", r->row ? r->row->id : NULL, "changed",
			   (json_int_t)r->plan->changed, "deleted", (json_int_t)r->plan->deleted,
			   "resolved", (json_int_t)r->plan->nconflicts, "conflicts",
			   merging_conflicts(r->plan));
	if (b && !r->row)
		merging_answer(m, b);
	else if (!b || rollback_start(c->api->checkpoints, b, r->row, 0, "box.merged", c->who.id,
				      merging_replaced, m, &m->rollback, &own) < 0)
		merging_fail(m, &own);
}

static void merging_has_ours(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct merging *m = ctx;
	struct call *c = m->call;
	struct box *b;
	struct err own;

	m->job = NULL;
	if (e) {
		merging_fail(m, e);
		return;
	}
	merging_copy(&m->ours, row);
	b = merging_box(m, &own);
	if (!b || combine_start(c->api->checkpoints, b, &m->ours, &m->theirs, m->how, c->who.id,
				merging_combined, m, &m->combine, &own) < 0)
		merging_fail(m, &own);
}

static void merging_take_ours(struct merging *m, const struct store_checkpoint *theirs)
{
	struct call *c = m->call;
	struct checkpoint_want want = { .reason = CHECKPOINT_SAFETY, .author = c->who.id };
	struct box *b;
	struct err e;

	merging_copy(&m->theirs, theirs);
	b = merging_box(m, &e);
	if (b && !checkpoints_fits(c, b, &m->theirs)) {
		merging_fini(m);
		return;
	}
	if (!b ||
	    checkpoint_take(c->api->checkpoints, b, &want, merging_has_ours, m, &m->job, &e) < 0)
		merging_fail(m, &e);
}

static void merging_has_theirs(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct merging *m = ctx;

	m->job = NULL;
	if (e)
		merging_fail(m, e);
	else
		merging_take_ours(m, row);
}

static int merging_possible(struct call *c, const struct box *b, const struct box *other)
{
	if (other == b)
		call_error(c, 409, "conflict", "from: a box cannot be merged with itself",
			   b->row.id, "name a fork of it: POST /v1/boxes/{box}/fork creates one");
	else if (b->state != BOX_RUNNING && b->state != BOX_STOPPED)
		call_error(c, 409, "conflict", "the box is not running", box_state_name(b->state),
			   "resume it first: POST /v1/boxes/{box}/resume");
	else
		return 1;
	return 0;
}

void checkpoints_merge(struct call *c)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_MERGED, .author = c->who.id };
	const char *from = call_text(c, "from", ""), *how = call_text(c, "on_conflict", "fail");
	struct merging *m = call_alloc(c, sizeof(*m));
	struct box *b = call_box(c, 0), *other;
	struct store_checkpoint x;
	struct err e;

	if (!b)
		return;
	other = fleet_named(&c->api->fleet, c->who.team, from);
	if (other && c->who.box[0] && strcmp(c->who.box, other->row.id) != 0)
		other = NULL;
	if (!merging_possible(c, b, other) || (!other && !checkpoints_find(c, b, from, &x)))
		return;
	*m = (struct merging){ .call = c,
			       .how = !strcmp(how, "ours")     ? MERGE_OURS
				      : !strcmp(how, "theirs") ? MERGE_THEIRS
							       : MERGE_FAILS };
	memcpy(m->box, b->row.id, sizeof(m->box));
	c->state = m;
	c->drop = merging_left;
	if (!other) {
		merging_take_ours(m, &x);
		store_checkpoint_fini(&x);
	} else if (checkpoint_take(c->api->checkpoints, other, &want, merging_has_theirs, m,
				   &m->job, &e) < 0) {
		merging_fail(m, &e);
	}
}
