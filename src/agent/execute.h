/* execute.h - an artifact, run: packages, the program, its examples and checks, each in a fresh box.
 * Owns: its boxes (on a leash: whatever becomes of us, they end) and what they said so far. */
#pragma once
#include "agent/agent.h"
#include "fleet/fleet.h"

struct execution;
struct execution_owner {
	void (*said)(struct execution_owner *o, const char *phase, unsigned stream, const char *bytes,
		     size_t n);                                       /* NULL, or: output as it comes */
	void (*done)(struct execution_owner *o, json_t *take_result); /* once, never from within */
};

/* Always comes to done(); what cannot be run has a result that says so. */
struct execution *execution_start(struct fleet *f, const char *team, const json_t *artifact,
				  struct execution_owner *o);
void execution_cancel(struct execution *x); /* done is not called */
