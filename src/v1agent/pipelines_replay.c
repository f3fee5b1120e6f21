/* pipelines_replay.c - POST /v1/pipelines/ID/replay: runs the same artifact again and compares the
 * results. See pipelines.h. */
#include "document/document.h"
#include "execute/execute.h"
#include "pipeline/report.h"
#include "pipeline/start_files.h"
#include "v1agent/pipelines.h"

#include <stdio.h>
#include <string.h>

struct replay_again {
	struct execution_owner owner;
	struct execution *x;
	struct call *call;
	json_t *artifact, *was, *env;
	char checkpoint[ID_MAX + 1]; /* with whose files its boxes start; "": none */
};

static void again_fini(struct replay_again *g)
{
	execution_cancel(g->x);
	g->x = NULL;
	json_decref(g->artifact);
	json_decref(g->was);
	json_decref(g->env);
	g->artifact = g->was = g->env = NULL;
}

static void again_left(struct call *c)
{
	again_fini(c->state);
}

static void again_done(struct execution_owner *o, json_t *take_result)
{
	struct replay_again *g = loop_owner(o, struct replay_again, owner);
	struct call *c = g->call;
	const char *what = NULL;
	int same = report_same(g->was, take_result, &what);
	json_t *doc = json_pack("{s:O, s:O, s:b, s:s?, s:O, s:o}", "attempt",
				json_object_get(g->artifact, "attempt"), "artifact_hash",
				json_object_get(g->artifact, "hash"), "same", same, "differs", what,
				"was", g->was, "now", take_result);

	g->x = NULL;
	again_fini(g);
	c->drop = NULL;
	call_json(c, 200, doc);
}

/* The artifact of the result: the first of its attempt, or one of the others of a race. Includes
 * the held-out example, if there was one. */
static json_t *artifact_of(struct api *a, const char *id, const json_t *result)
{
	uint32_t attempt = (uint32_t)json_integer_value(json_object_get(result, "attempt"));
	json_t *first = pipelines_doc(a, id, "artifact", attempt), *plan, *found = NULL, *one;
	const json_t *held = json_object_get(result, "held_out");
	size_t i;

	json_array_foreach(json_object_get(first, "rivals"), i, one)
	{
		if (!strcmp(doc_text(one, "hash"), doc_text(result, "artifact_hash")))
			found = json_deep_copy(one);
	}
	found = found ? found : json_deep_copy(first);
	json_decref(first);
	plan = held && found ? pipelines_doc(a, id, "plan", 0) : NULL;
	one = json_array_get(json_object_get(plan, "examples"),
			     (size_t)json_integer_value(json_object_get(held, "n")));
	if (one)
		json_array_append(json_object_get(found, "examples"), one);
	json_decref(plan);
	return found;
}

static int again_files(struct execution_owner *o, struct batch_files *out, struct err *e)
{
	const struct replay_again *g = loop_owner(o, struct replay_again, owner);
	json_t *env = NULL;
	int rc = start_files_read(g->call->api->store, g->call->who.team, g->checkpoint, out, &env,
				  e);

	json_decref(env);
	return rc;
}

/* The files with which the boxes of the result started. -1: they no longer exist. */
static int again_start_files(struct replay_again *g, struct err *e)
{
	const char *checkpoint = doc_text(json_object_get(g->was, "from"), "checkpoint");
	struct batch_files files;

	if (!*checkpoint)
		return 0;
	if (start_files_read(g->call->api->store, g->call->who.team, checkpoint, &files, &g->env,
			     e) < 0)
		return -1;
	snprintf(g->checkpoint, sizeof(g->checkpoint), "%s", checkpoint);
	g->owner.files = again_files;
	g->owner.env = g->env;
	return 0;
}

void pipelines_replay(struct call *c)
{
	struct replay_again *g = call_alloc(c, sizeof(*g));
	struct store_pipeline row;
	json_t *task;
	struct err e;

	if (!pipelines_own(c, &row))
		return;
	task = pipelines_doc(c->api, row.id, "task", 0);
	*g = (struct replay_again){ .owner = { .done = again_done,
					       .key = c->who.id,
					       .isolation = isolation_stored(task) },
				    .call = c };
	json_decref(task);
	g->was = pipelines_doc(c->api, row.id, "result", (uint32_t)call_int(c, "attempt", 0));
	g->artifact = g->was ? artifact_of(c->api, row.id, g->was) : NULL;
	if (!g->artifact) {
		again_fini(g);
		call_error(c, 409, "conflict", "there is no result of such an attempt", NULL,
			   "attempts with a result: GET /v1/pipelines/ID");
		return;
	}
	if (again_start_files(g, &e) < 0) {
		again_fini(g);
		call_fail(c, &e);
		return;
	}
	c->state = g;
	c->drop = again_left;
	g->x = execution_start(&c->api->fleet, row.team, g->artifact, &g->owner);
}
