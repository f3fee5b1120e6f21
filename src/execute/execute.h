/* execute.h - an artifact, run: packages, the program, its examples and checks, in fresh boxes.
 * Owns: its boxes (on a leash: whatever becomes of us, they end) and what they said so far.
 *
 *   scan -> packages -> the program, commands behind it -> examples, tests side by side -> result
 *
 * Where examples have input and there is none besides, the first example is the program's run. */
#pragma once
#include "document/document.h"
#include "fleet/fleet.h"

struct execution;
struct execution_owner {
	void (*said)(struct execution_owner *o, const char *phase, unsigned stream,
		     const char *bytes, size_t n); /* NULL, or: output as it comes */
	void (*done)(struct execution_owner *o, json_t *take_result); /* once, never from within */
};

/* Always comes to done(); what cannot be run has a result that says so. */
struct execution *execution_start(struct fleet *f, const char *team, const json_t *artifact,
				  struct execution_owner *o);
void execution_cancel(struct execution *x); /* done is not called */

/* The checks of a program that has ended, all but commands: [{kind, arg, pass, detail}]. out: the first n of all bytes
 * of its stdout. Pure. */
json_t *execute_checks(const json_t *checks, int exit_code, const char *out, size_t n,
		       uint64_t all);
/* Bytes of a stranger as JSON text, of which the middle may be left out. */
json_t *execute_text(const char *head, size_t n, const char *tail, size_t ntail, uint64_t all);
