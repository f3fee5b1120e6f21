/* run_request.h - executes the program of a request: writes files, compiles if needed, runs the
 * program and stores its record; the client gets events or one answer at the end.
 *
 *   [new box] -> files -> compile -> run -> record -> [box ends]
 *
 * Owns: itself. It continues when its client disconnects: a started program is finished and
 * recorded, and a box that was created for it is deleted. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

/* The fields that describe a program; shared by POST .../execs and POST /v1/run. */
extern const struct field run_request_exec_fields[], run_request_fields[];

struct exec;
/* Callbacks for surfaces with another answer format: one of over() and running() is called, once,
 * unless the client disconnects first. Internal failures are answered with call_fail() on every
 * surface. */
struct run_callbacks {
	/* The last program has ended; its output is in the record. */
	void (*over)(struct call *c, json_t *take_record);
	/* The program runs in the background. */
	void (*running)(struct call *c, const struct exec *r);
	/* May be NULL. A program was started; step is its kind. */
	void (*started)(struct call *c, const struct exec *r, const char *step);
	/* May be NULL. Output as it arrives; the record has none then. Returns 1: wait for
	 * on_drain. */
	int (*said)(struct call *c, unsigned stream, const char *bytes, size_t n);
};

struct run_request_spec { /* borrowed for the call */
	json_t *body; /* the request with the fields of run_request_exec_fields, validated; kept by
		       * reference */
	const struct run_callbacks
		*surface;      /* NULL: answer with the record as JSON, or with events if c accepts
			        * them */
	const char *replay_of; /* NULL, or the run that this one repeats */
	const char *run_id;    /* NULL, or the id that the program itself gets */
	const int *
		kill_on_close; /* may be NULL; if it is not 0 when the client disconnects, its program is
		        * killed */
};

/* Starts a run request in this box. Answers c, now or later. */
void run_request_in(struct call *c, struct box *b, const struct run_request_spec *want);
/* The same in a new box, created with the parameters of c->body. */
void run_request_detach(struct call *c, const struct run_request_spec *want);

/* Writes to the audit log which key started which command (its beginning). c NULL: the client has
 * disconnected. */
void run_request_audit(struct api *a, struct call *c, const struct principal *who,
		       const struct exec *r, const char *step);

void run_request_exec(struct call *c, struct box *b); /* with the parameters of c->body */
void run_request_run(struct call *c);
