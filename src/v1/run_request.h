/* run_request.h - from a request to a finished program: files in, perhaps a compiler, the program, its
 * record; told to the client as it happens or all at once.
 *
 *   [new box] -> files -> compile -> run -> record -> [box ends]
 *
 * Owns: itself. It goes on when its client leaves: what was started is finished and recorded, and a
 * box made for it alone is ended. */
#pragma once
#include "api/api.h"
#include "fleet/box.h"

/* The fields that describe a program; shared by POST .../execs and POST /v1/run. */
extern const struct field run_request_exec_fields[], run_request_fields[];

struct exec;
/* Who asked in another language than ours answers in it: one of these is called, once, unless the
 * client leaves first. Failures of our own are told by call_fail() whatever the door. */
struct run_callbacks {
	/* The last program is over; its output is in the record. */
	void (*over)(struct call *c, json_t *take_record);
	/* It runs in the background. */
	void (*running)(struct call *c, const struct exec *r);
	/* NULL, or: a program was started, and is which step. */
	void (*started)(struct call *c, const struct exec *r, const char *step);
	/* NULL, or: its output as it comes; the record has none then. 1: wait for on_drain. */
	int (*said)(struct call *c, unsigned stream, const char *bytes, size_t n);
};

struct run_request_spec { /* borrowed for the call */
	json_t *body; /* what to do, in the words of run_request_exec_fields, checked; kept by reference */
	const struct run_callbacks
		*surface;      /* NULL: the record as JSON, or as it happens if c accepts that */
	const char *replay_of; /* NULL, or the run that this one repeats */
	const int *
		leash; /* NULL, or the call's: not 0 when the client leaves, its program ends, too */
};

/* Starts one in this box. Answers c, now or later. */
void run_request_in(struct call *c, struct box *b, const struct run_request_spec *want);
/* The same in a box of its own, made as c->body asks for. */
void run_request_detach(struct call *c, const struct run_request_spec *want);

/* For the audit log: who started what, the beginning of its command. c: NULL when the client has left. */
void run_request_audit(struct api *a, struct call *c, const struct principal *who,
		       const struct exec *r, const char *step);

void run_request_exec(struct call *c, struct box *b); /* as c->body asks for */
void run_request_run(struct call *c);
