/* start_files.c - see start_files.h. */
#include "pipeline/start_files.h"
#include "checkpoint/checkpoints.h"
#include "pipeline/pipeline_internal.h"
#include "record/changes.h"

#include <stdio.h>
#include <string.h>

static const char *start_files_box(const struct pipeline *p)
{
	return doc_text(p->task, "box");
}

static void start_files_forget(struct start_files *s)
{
	json_decref(s->env);
	s->env = NULL;
	s->checkpoint[0] = s->why[0] = 0;
}

int start_files_read(struct store *s, const char *team, const char *checkpoint,
		     struct batch_files *out, json_t **out_env, struct err *e)
{
	struct box_spec spec = { 0 };
	struct store_checkpoint row = { 0 };
	json_t *doc;
	int rc = 0;

	if (store_checkpoint_get(s, team, checkpoint, &row, e) < 0)
		return -1;
	doc = checkpoint_read_spec(&row);
	checkpoint_fill_spec(&row, doc, &spec);
	if (spec.root[0]) {
		rc = err_set(e, ERR_CONFLICT,
			     "its files lie over the template '%.64s', and programs of pipelines "
			     "run in boxes of base",
			     row.template);
	} else {
		*out = (struct batch_files){ .nlayers = spec.nlayers, .nchain = spec.nchain };
		memcpy(out->layers, spec.layers, sizeof(out->layers));
		for (unsigned i = 0; i < spec.nchain; i++)
			memcpy(out->chain[i], spec.chain[i], sizeof(spec.chain[i]));
		*out_env = json_incref(json_object_get(doc, "env"));
	}
	json_decref(doc);
	store_checkpoint_fini(&row);
	return rc;
}

static void start_files_fail(struct pipeline *p, const struct err *e)
{
	start_files_forget(&p->files);
	snprintf(p->files.why, sizeof(p->files.why), "%s", e->msg);
}

/* Some tiers have no layers of checkpoints. */
static int start_files_fit(struct pipeline *p, struct err *e)
{
	struct isolation_ask ask = { .team = p->row.team,
				     .key = p->row.who,
				     .request = isolation_stored(p->task) };
	struct isolation_choice tier;

	ask.request.needs |= BATCH_FILES_NEEDS;
	return isolation_choose(p->all->fleet, &ask, 0, &tier, e);
}

static void start_files_use(struct pipeline *p, const char *checkpoint)
{
	struct batch_files files;
	struct err e;

	start_files_forget(&p->files);
	if (start_files_read(p->all->fleet->store, p->row.team, checkpoint, &files, &p->files.env,
			     &e) < 0 ||
	    start_files_fit(p, &e) < 0)
		start_files_fail(p, &e);
	else
		snprintf(p->files.checkpoint, sizeof(p->files.checkpoint), "%s", checkpoint);
}

void start_files_of_result(struct pipeline *p, const json_t *result)
{
	const char *checkpoint = doc_text(json_object_get(result, "from"), "checkpoint");

	if (!p->files.checkpoint[0] && *checkpoint)
		start_files_use(p, checkpoint);
}

static void start_files_taken(void *ctx, const struct store_checkpoint *row, const struct err *e)
{
	struct pipeline *p = ctx;

	p->files.job = NULL;
	if (e)
		start_files_fail(p, e);
	else
		start_files_use(p, row->id);
	p->files.then(p);
}

static int start_files_begin(struct pipeline *p, struct err *e)
{
	struct checkpoint_want want = { .reason = CHECKPOINT_FORK,
					.author = p->row.who,
					.unless_same = 1 };
	struct box *b = fleet_named(p->all->fleet, p->row.team, start_files_box(p));

	if (!b)
		return err_set(e, ERR_NOT_FOUND, "there is no such box, or it has ended");
	if (!isolation_has_checkpoints(&b->row))
		return err_set(e, ERR_CONFLICT,
			       "the files of boxes of the tier %s cannot be copied while they run",
			       isolation_tier(&b->row));
	return checkpoint_take(p->all->conf.checkpoints, b, &want, start_files_taken, p,
			       &p->files.job, e);
}

void start_files_take(struct pipeline *p, void (*then)(struct pipeline *p))
{
	struct err e;

	p->files.then = then;
	if (!*start_files_box(p)) {
		then(p);
	} else if (start_files_begin(p, &e) < 0) {
		start_files_fail(p, &e);
		then(p);
	}
}

json_t *start_files_json(const struct pipeline *p)
{
	const struct start_files *s = &p->files;
	json_t *doc;

	if (!*start_files_box(p))
		return NULL;
	doc = json_pack("{s:s, s:s?}", "box", start_files_box(p), "checkpoint",
			s->checkpoint[0] ? s->checkpoint : NULL);
	if (s->why[0])
		json_object_set_new(doc, "why", json_text(s->why));
	return doc;
}

void start_files_fini(struct pipeline *p)
{
	checkpoint_leave(p->files.job);
	p->files.job = NULL;
	start_files_forget(&p->files);
}
