/* execute.h - runs an artifact: packages, the program, its examples and checks, in new boxes.
 * Owns: its boxes (kill on close) and their output so far.
 *
 *   scan -> packages -> the program, then its commands -> examples, tests side by side -> result
 *
 * If only the examples have input, the first example is the run of the program. */
#pragma once
#include "batch/item.h"
#include "document/document.h"
#include "fleet/fleet.h"

struct execution;
struct execution_owner {
	void (*said)(struct execution_owner *o, const char *phase, unsigned stream,
		     const char *bytes, size_t n); /* NULL, or called for output as it arrives */
	void (*done)(struct execution_owner *o,
		     json_t *take_result); /* once, not from within a call */
	const char *key, *pipeline;        /* charged for its programs; NULL: none of them */
	struct choose_request isolation;   /* of its boxes */
	/* NULL: its boxes start without files. Called for each box. */
	int (*files)(struct execution_owner *o, struct batch_files *out, struct err *e);
	const json_t *env; /* variables, besides those of the artifact; NULL: none */
};

/* Always ends with done(); an artifact that cannot be run has a result with the reason. */
struct execution *execution_start(struct fleet *f, const char *team, const json_t *artifact,
				  struct execution_owner *o);
void execution_cancel(struct execution *x); /* done is not called */

/* The checks of a program that has ended, all but commands: [{kind, arg, pass, detail}]. out: the first n of all bytes
 * of its stdout. Pure. */
json_t *execute_checks(const json_t *checks, int exit_code, const char *out, size_t n,
		       uint64_t all);
/* Untrusted bytes as JSON text, possibly without the middle. */
json_t *execute_text(const char *head, size_t n, const char *tail, size_t ntail, uint64_t all);
