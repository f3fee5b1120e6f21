/* approval.h - connections that wait until a person approves their destination.
 * Owns: nothing: connections to the same destination of a box share the number of a request, and the
 *       request ends with the last of them.
 *
 *   proxy ── approval_wait() ──► EGRESS_REQUEST ──► server ── EGRESS_DECIDE, or other rules ──► proxy */
#pragma once
#include "egress/proxy.h"

enum { APPROVAL_REQUESTS = 16 }; /* of one box at the same time */

/* -1: too many requests of the box wait. */
must_check int approval_wait(struct proxy *p);
void approval_leave(struct proxy *p); /* it waits no longer */
/* All connections of the request continue, or are refused. */
void approval_decide(struct egress_endpoint *w, uint64_t request, int allow);
void approval_announce(const struct egress_endpoint *w); /* to a new server */
