/* run_request_internal.h - for the files of run_request.h only: the state of one run request, how
 * it gets from step to step (run_request_step.c), and how it ends (run_request.c).
 * Owns: nothing; run_request_free() releases what the run request owns. */
#pragma once
#include "v1run/artifacts.h"
#include "v1run/hermetic.h"
#include "api/event_stream.h"
#include "v1run/run_request.h"
#include "v1run/run_request_files.h"
#include "v1box/packages.h"
#include "buildcache/compile_reuse.h"
#include "fleet/box_secrets.h"
#include "fleet/exec_reader.h"

struct run_request {
	struct api *api;
	struct call *call; /* NULL: the client has disconnected */
	struct principal who;
	struct trace_context trace; /* of the call */
	char box[ID_MAX + 1];
	int own_box; /* the box was created for this request */
	const struct run_callbacks *surface;
	const int *kill_on_close; /* of the call */
	json_t *body;             /* the request; texts below point into it */
	json_t *request; /* the request that is stored for a replay; NULL: no replay possible */
	json_t *inputs;  /* hashes of a request that is too large for that; else NULL */
	char replay_of[ID_MAX + 1];
	struct exec_before before; /* of the call */
	char run_id[ID_MAX + 1];   /* of the last step; "": a new one */
	struct run_request_plan plan;
	unsigned at; /* index of the present step */

	struct run_request_files files;
	struct artifacts artifacts; /* of a box of its own, if requested */
	json_t *record;             /* of the last program, while artifacts are read */
	struct package_job packages;
	int installing; /* packages are being installed; the box does not exist yet */
	struct box_wait made;
	struct exec_reader reader;
	int tapped;
	struct exec_wait wait;
	enum event_stream_kind kind;
	struct event_stream event_stream;
	int streaming;
	struct buf out[2];
	struct redact
		redact; /* values of secrets of the box, as they were when its program started */
	uint64_t dropped[2];
	json_t *warnings; /* of a compiler that succeeded, or NULL */
	struct buf
		said; /* output of this step for diag.h: the beginning for a compiler, the end for a
		       * program */

	struct hermetic_memo memo;
	struct compile_reuse reuse;
	int looked; /* the compile cache was searched */
	int cached;
	unsigned holds; /* number of holds of the box when it was first used */
	struct buf words
		[2]; /* complete output of the compiler, which the compile cache stores with the
		      * result */
};

/* Starts the next step; w may have ended and been freed when this returns. */
void run_request_next(struct run_request *w);
/* The output of r is no longer read; when r has ended, the run request continues. */
void run_request_await(struct run_request *w, struct exec *r);
/* reuse.done */
void run_request_looked(struct compile_reuse *x, int found);

/* Ends the part of the client; the run request may continue. NULL: the client has disconnected
 * before. */
struct call *run_request_release(struct run_request *w);
/* Each of these ends and frees w. */
void run_request_free(struct run_request *w);
void run_request_fail(struct run_request *w, const struct err *e);
void run_request_answer(struct run_request *w, json_t *record); /* the last program has ended */

/* The name of the template that is a version of a language: "node-18", "python-3-11". */
enum { RUN_REQUEST_TEMPLATE = LANG_NAME + LANG_VERSION + 2 };
void run_request_version_name(const struct lang *l, const char *pin,
			      char out[RUN_REQUEST_TEMPLATE]);
