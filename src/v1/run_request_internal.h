/* run_request_internal.h - one flow, for the files of flow.h: its state, how it goes from step to step (run_step.c),
 * and how it ends (flow.c).
 * Owns: nothing; run_request_free() ends what the flow owns. */
#pragma once
#include "v1/artifacts.h"
#include "api/event_stream.h"
#include "v1/run_request.h"
#include "v1/run_request_files.h"
#include "v1/packages.h"
#include "buildcache/compile_reuse.h"
#include "fleet/exec_reader.h"

struct run_request {
	struct api *api;
	struct call *call; /* NULL: the client has left */
	struct principal who;
	char box[ID_LEN + 1];
	int own_box; /* made for us */
	const struct run_callbacks *surface;
	const int *leash; /* the call's */
	json_t *body;     /* the request; texts below point into it */
	json_t *request;  /* what another go would need; NULL: there cannot be one */
	char replay_of[ID_LEN + 1];
	struct run_request_plan plan;
	unsigned at; /* of its steps */

	struct run_request_files files;
	struct artifacts artifacts; /* of a box of its own, if they were asked for */
	json_t *record;             /* of its last program, while they are read */
	struct package_job packages;
	int installing; /* they are not there yet, and neither is the box */
	struct box_wait made;
	struct exec_reader reader;
	int tapped;
	struct exec_wait wait;
	enum event_stream_kind kind;
	struct event_stream event_stream;
	int streaming;
	struct buf out[2];
	uint64_t dropped[2];
	json_t *warnings; /* of a compiler that made a program all the same, or NULL */
	struct buf
		said; /* by this step, for diag.h: what a compiler begins with, a program ends with */

	struct compile_reuse reuse;
	int looked; /* for what the compiler would make */
	int compiled_before;
	unsigned holds; /* of the box, when it was first used */
	struct buf words
		[2]; /* of the compiler, all of them: what is kept must be able to say them again */
};

/* Starts the step that is next; w may be over, and no more, when this comes back. */
void run_request_next(struct run_request *w);
/* Nobody reads what r says any more; when it is over, the flow goes on. */
void run_request_await(struct run_request *w, struct exec *r);
/* reuse.done */
void run_request_looked(struct compile_reuse *x, int found);

/* The client's part is over, ours may not be. NULL: it has left before. */
struct call *run_request_release(struct run_request *w);
/* Each of these is the last thing that happens to w. */
void run_request_free(struct run_request *w);
void run_request_fail(struct run_request *w, const struct err *e);
void run_request_answer(struct run_request *w, json_t *record); /* its last program is over */
