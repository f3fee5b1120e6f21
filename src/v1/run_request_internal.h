/* run_request_internal.h - one flow, for the files of flow.h: its state, how it goes from step to step (flow_step.c),
 * and how it ends (flow.c).
 * Owns: nothing; flow_free() ends what the flow owns. */
#pragma once
#include "v1/artifacts.h"
#include "api/event_stream.h"
#include "v1/run_request.h"
#include "v1/run_request_files.h"
#include "v1/packages.h"
#include "buildcache/compile_reuse.h"
#include "fleet/exec_reader.h"

struct flow {
	struct api *api;
	struct call *call; /* NULL: the client has left */
	struct who who;
	char box[ID_LEN + 1];
	int own_box; /* made for us */
	const struct flow_door *door;
	const int *leash; /* the call's */
	json_t *body; /* the request; texts below point into it */
	json_t *request; /* what another go would need; NULL: there cannot be one */
	char replay_of[ID_LEN + 1];
	struct flow_plan plan;
	unsigned at; /* of its steps */

	struct flow_files files;
	struct artifacts artifacts; /* of a box of its own, if they were asked for */
	json_t *record;             /* of its last program, while they are read */
	struct package_job packages;
	int installing; /* they are not there yet, and neither is the box */
	struct box_wait made;
	struct exec_reader tap;
	int tapped;
	struct exec_wait wait;
	enum feed_kind kind;
	struct feed feed;
	int streaming;
	struct buf out[2];
	uint64_t dropped[2];
	json_t *warnings; /* of a compiler that made a program all the same, or NULL */
	struct buf said; /* by this step, for diag.h: what a compiler begins with, a program ends with */

	struct compile_reuse reuse;
	int looked; /* for what the compiler would make */
	int compiled_before;
	unsigned holds; /* of the box, when it was first used */
	struct buf words[2]; /* of the compiler, all of them: what is kept must be able to say them again */
};

/* Starts the step that is next; w may be over, and no more, when this comes back. */
void flow_next(struct flow *w);
/* Nobody reads what r says any more; when it is over, the flow goes on. */
void flow_await(struct flow *w, struct exec *r);
/* reuse.done */
void flow_looked(struct compile_reuse *x, int found);

/* The client's part is over, ours may not be. NULL: it has left before. */
struct call *flow_let_go(struct flow *w);
/* Each of these is the last thing that happens to w. */
void flow_free(struct flow *w);
void flow_fail(struct flow *w, const struct err *e);
void flow_answer(struct flow *w, json_t *record); /* its last program is over */
