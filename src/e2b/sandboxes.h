/* sandboxes.h - E2B's sandboxes: found, told about, kept alive, ended. Making one: create.h.
 *
 * A box is "running", or "paused" while it is kept. What wakes it is in one place, sandboxes_wake(). */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field sandboxes_timeout_fields[], sandboxes_refresh_fields[],
	sandboxes_connect_fields[];

/* The box that the path names, of the caller's team, running or paused; else it answers, and NULL. */
struct berth *sandboxes_find(struct call *c);
const char *sandboxes_state(const struct berth *b); /* "running", "paused" */
int sandboxes_paused(const struct berth *b);

/* Has it run again, for this long. 1: it does. 0: w is told when it does. -1: it cannot. */
struct sandboxes_how {
	uint64_t timeout_ms;
	int memory; /* with the programs it had, where they were kept */
};
must_check int sandboxes_wake(struct berth *b, const struct sandboxes_how *how, struct berth_wait *w,
			      struct err *e);

/* Seconds of a request as a lifetime. Refuses what is more than this daemon allows. */
must_check int sandboxes_timeout_ms(struct call *c, const char *name, int64_t otherwise_s,
				    uint64_t *out_ms, struct err *e);
must_check int sandboxes_token(char out[E2B_TOKEN + 1], struct err *e);

json_t *sandboxes_json(struct call *c, const struct berth *b);   /* of create, connect, fork */
json_t *sandboxes_listed(const struct berth *b);                 /* of a list */
unsigned sandboxes_cpus(const struct store_limits *l);
uint64_t sandboxes_memory(const struct store_limits *l);         /* bytes */

void sandboxes_health(struct call *c);
void sandboxes_show(struct call *c);
void sandboxes_delete(struct call *c);
void sandboxes_timeout(struct call *c);
void sandboxes_refresh(struct call *c);
void sandboxes_connect(struct call *c);
void sandboxes_resume(struct call *c);
