/* race.c - the executor of a pipeline: candidates run in parallel, the first that passes wins and
 * is tested with the held-out example. See pipeline_internal.h.
 *
 *   [checkpoint of task.box] -> [copy -> program -> checks] of each candidate -> result */
#include "pipeline/pipeline_internal.h"
#include "base/cleanup.h"

#include <string.h>

enum { OUTPUTS = 32, OUTPUT_BYTES = 2048 };

void race_stop(struct pipeline *p)
{
	for (unsigned i = 0; i < p->nrunners; i++) {
		execution_cancel(p->runners[i].x);
		json_decref(p->runners[i].result);
		json_decref(p->runners[i].artifact);
	}
	p->nrunners = 0;
}

static void race_said(struct execution_owner *o, const char *phase, unsigned stream,
		      const char *bytes, size_t n)
{
	struct runner *r = loop_owner(o, struct runner, owner);

	if (r->held || r->p->outputs >= OUTPUTS)
		return;
	r->p->outputs++;
	pipeline_event(
		r->p, "output",
		json_pack("{s:s, s:s, s:o}", "stream", stream ? "stderr" : "stdout", "phase", phase,
			  "text",
			  execute_text(bytes, n < OUTPUT_BYTES ? n : OUTPUT_BYTES, "", 0, n)));
}

static const char *result_word(const json_t *result)
{
	const char *phase = doc_text(result, "phase");

	return json_is_true(json_object_get(result, "success")) ? "passed"
	       : !strcmp(phase, "scan")                         ? "blocked"
	       : !strcmp(phase, "install")                      ? "install failed"
	       : !strcmp(phase, "compile")                      ? "compile failed"
	       : !strcmp(phase, "check")                        ? "check failed"
								: "failed";
}

/* The first candidate that passed, else the first one. */
static void race_over(struct pipeline *p)
{
	struct runner *best = &p->runners[0];
	json_t *result;

	for (unsigned i = 0; i < p->nrunners; i++)
		if (json_is_true(json_object_get(p->runners[i].result, "success"))) {
			best = &p->runners[i];
			break;
		}
	result = json_incref(best->result);
	json_object_set_new(result, "attempt", json_integer(p->attempt));
	if (p->nrunners > 1)
		json_object_set_new(result, "raced", json_integer(p->nrunners));
	if (*doc_text(p->task, "box"))
		json_object_set_new(result, "from", start_files_json(p));
	race_stop(p);
	pipeline_store(p, "result", result, result_word(result));
}

const json_t *race_held_example(const struct pipeline *p)
{
	return p->held < 0 ? NULL
			   : json_array_get(json_object_get(p->plan, "examples"), (size_t)p->held);
}

static void begin_held(struct runner *r)
{
	json_t *alone = json_copy(r->artifact);

	json_object_set_new(alone, "examples", json_pack("[O]", race_held_example(r->p)));
	json_object_set_new(alone, "tests", json_array());
	json_object_set_new(alone, "checks", json_array());
	json_object_set_new(alone, "stdin", json_null());
	r->held = 1;
	r->x = execution_start(r->p->all->fleet, r->p->row.team, alone, &r->owner);
	json_decref(alone);
}

/* The result of the held-out example is added to the result. */
static void add_held(struct runner *r, const json_t *held)
{
	json_t *rows = json_object_get(r->result, "examples"),
	       *row = json_array_get(json_object_get(held, "examples"), 0);
	int pass = json_is_true(json_object_get(held, "success"));

	json_object_set_new(r->result, "held_out",
			    json_pack("{s:I, s:b}", "n", (json_int_t)r->p->held, "pass", pass));
	if (row) {
		json_object_set_new(row, "n", json_integer((json_int_t)json_array_size(rows)));
		json_object_set_new(row, "held_out", json_true());
		json_array_append(rows, row);
	}
	if (pass)
		return;
	json_object_set_new(r->result, "success", json_false());
	json_object_set(r->result, "phase", json_object_get(held, "phase"));
	json_object_set(r->result, "phases", json_object_get(held, "phases"));
	json_object_set(r->result, "limits_hit", json_object_get(held, "limits_hit"));
}

static void race_ran(struct execution_owner *o, json_t *take_result)
{
	struct runner *r = loop_owner(o, struct runner, owner);
	struct pipeline *p = r->p;
	unsigned open = 0;

	r->x = NULL;
	if (r->held) {
		add_held(r, take_result);
		json_decref(take_result);
	} else {
		r->result = take_result;
		if (json_is_true(json_object_get(take_result, "success")) && race_held_example(p)) {
			begin_held(r);
			return;
		}
	}
	for (unsigned i = 0; i < p->nrunners; i++)
		open += p->runners[i].x != NULL;
	if (json_is_true(json_object_get(r->result, "success")) || !open)
		race_over(p);
}

static int race_files(struct execution_owner *o, struct batch_files *out, struct err *e)
{
	const struct pipeline *p = loop_owner(o, struct runner, owner)->p;
	json_t *env = NULL;
	int rc = start_files_read(p->all->fleet->store, p->row.team, p->files.checkpoint, out, &env,
				  e);

	json_decref(env);
	return rc;
}

static void run_one(struct pipeline *p, const json_t *artifact)
{
	struct runner *r = &p->runners[p->nrunners++];

	*r = (struct runner){ .p = p,
			      .owner = { .said = p->nrunners == 1 ? race_said : NULL,
					 .done = race_ran,
					 .key = p->row.who,
					 .pipeline = p->row.id,
					 .isolation = isolation_stored(p->task),
					 .files = p->files.checkpoint[0] ? race_files : NULL,
					 .env = p->files.env },
			      .artifact = json_incref((json_t *)artifact) };
	r->x = execution_start(p->all->fleet, p->row.team, artifact, &r->owner);
}

static void race_run(struct pipeline *p)
{
	const json_t *one;
	size_t i;

	json_array_foreach(p->candidates, i, one)
	{
		if (p->nrunners < PIPELINE_RACE)
			run_one(p, one);
	}
}

void race_begin(struct pipeline *p)
{
	start_files_take(p, race_run);
}
