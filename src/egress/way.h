/* way.h - the egress endpoint of one box. For the files of this folder only.
 * Owns: its listener, its connections, its budget. */
#pragma once
#include "egress/egress.h"
#include "egress/net_policy.h"

struct proxy;

struct egress_endpoint {
	struct egress_endpoint *next;
	struct egress *egress;
	char id[WIRE_ID];
	struct watch listener;
	int fd;             /* -1: none (tests) */
	struct timer again; /* after the host ran out of descriptors */
	struct net_policy policy;
	struct bufferevent_rate_limit_group *rate; /* policy.bandwidth; NULL: no limit */
	struct injection *injection; /* NULL: the box has no placeholder */
	char (*links)[EGRESS_LINK_NAME + 1]; /* names of linked boxes */
	unsigned nlinks;
	struct proxy *proxies;
	unsigned nproxies;
	uint64_t bytes_in, bytes_out;
	uint64_t reported_in, reported_out; /* last sent to a server */
	struct egress_used *used;           /* what survives this process; NULL: nothing (tests) */
	uint64_t tokens;                    /* allowed connections now, in thousandths */
	uint64_t filled_ms;                 /* time of their last update */
};
