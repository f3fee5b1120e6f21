/* way.h - the egress endpoint of one box. For the files of this folder only.
 * Owns: its listener, its connections, its budget. */
#pragma once
#include "egress/egress.h"

struct proxy;

struct egress_endpoint {
	struct egress_endpoint *next;
	struct egress *egress;
	char id[WIRE_ID];
	struct watch listener;
	int fd;             /* -1: none (tests) */
	struct timer again; /* after the host ran out of descriptors */
	struct allow_rule *rules;
	unsigned nrules;
	struct proxy *proxies;
	unsigned nproxies;
	uint64_t bytes_in, bytes_out;
	uint64_t tokens;    /* allowed connections now, in thousandths */
	uint64_t filled_ms; /* time of their last update */
};

enum verdict {
	VERDICT_OK,
	VERDICT_DENIED,   /* no rule fits */
	VERDICT_INTERNAL, /* a rule matches, but the address is not public */
	VERDICT_BAD,      /* not a request to a proxy */
	VERDICT_UNRESOLVED,
	VERDICT_UNREACHABLE,
	VERDICT_TIMEOUT,
	VERDICT_BUDGET,
	VERDICT_CUT, /* a peer closed before the end */
	VERDICTS,
};
const char *proxy_verdict_name(enum verdict v);

/* A connection of the box; frees itself after its report. */
void proxy_new(struct egress_endpoint *w, int take_fd);
void proxy_free(struct proxy *p);           /* reports it as cut */
void proxy_gone(struct egress_endpoint *w); /* from proxy.c: another connection is possible */

struct proxy_end { /* what is reported */
	const char *host, *rule, *why;
	uint16_t port;
	enum verdict verdict;
	uint64_t began_ns, began_ms, bytes_in, bytes_out;
};
void egress_report(struct egress_endpoint *w, const struct proxy_end *end);
