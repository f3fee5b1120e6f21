/* lease_internal.h - shared by node_lease.c and gateway_lease.c. */
#pragma once
#include "cluster/lease.h"

#ifdef LEASE_MUTANTS
#define LEASE_HAS(rule) (!(lease_without & (rule)))
#else
#define LEASE_HAS(rule) 1
#endif
