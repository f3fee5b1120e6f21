/* tier_service.h - examines the engines of this host.
 * Owns: a process that stays in the host's mount namespace when the keeper leaves it. For each tier
 * with a probe it forks a process with a pid namespace of its own and a time limit: an engine that
 * hangs, that leaves processes behind or that prints without end affects nothing else. */
#pragma once
#include "base/err.h"
#include "tier/tier.h"
#include <sys/types.h>

/* Called before the keeper leaves the host's mounts. Returns a socket to the process, which ends when
 * the socket is closed. Nothing is examined before the first tier_service_ask(). */
must_check int tier_service_start(const struct tier_host *h, pid_t *out_pid, struct err *e);
must_check int tier_service_ask(int service, struct err *e); /* examine all tiers */
/* One answer: a tier; *last: all have been examined. Returns -1 if the service has exited. */
must_check int tier_service_read(int service, struct wire_tier_facts *out, int *last,
				 struct err *e);

/* Examines one tier in a process of its own, within the time; probe: tier_probe(). For the service
 * and its tests. */
typedef void tier_service_probe(unsigned tier, const struct tier_host *h,
				struct wire_tier_facts *out);
void tier_service_examine(unsigned tier, const struct tier_host *h, tier_service_probe *probe,
			  unsigned timeout_ms, struct wire_tier_facts *out);
