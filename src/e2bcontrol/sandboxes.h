/* sandboxes.h - E2B's sandboxes: found, described, extended, ended. Creating one: create.h.
 *
 * A box is "running" or "paused"; what pauses and resumes it is in pause.h. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field sandboxes_timeout_fields[], sandboxes_refresh_fields[],
	sandboxes_connect_fields[];

/* The box that the path names, of the caller's team, running or paused; NULL: none, and the
 * error was sent. */
struct box *sandboxes_find(struct call *c);
const char *sandboxes_state(const struct box *b); /* "running", "paused" */
int sandboxes_paused(const struct box *b);
int64_t sandboxes_started(const struct box *b); /* when it was created, or last resumed */

/* Seconds of a request as a lifetime. Rejects more than this daemon allows. */
must_check int sandboxes_timeout_ms(struct call *c, const char *name, int64_t otherwise_s,
				    uint64_t *out_ms, struct err *e);
must_check int sandboxes_tokens(struct e2b_box *x, struct err *e); /* new ones, both */

void sandboxes_health(struct call *c);
void sandboxes_show(struct call *c);
void sandboxes_delete(struct call *c);
void sandboxes_timeout(struct call *c);
void sandboxes_refresh(struct call *c);
void sandboxes_connect(struct call *c);
void sandboxes_resume(struct call *c);
