/* way.h - the egress endpoint of one box. For the files of this folder only.
 * Owns: its listeners, its connections, its budget, the addresses that stand for names in it. */
#pragma once
#include "egress/egress.h"
#include "egress/name_table.h"
#include "egress/net_policy.h"

struct proxy;
struct proxy_protocol;

/* The proxy of the box, and the sockets of captured connections. */
enum way_socket { WAY_PROXY, WAY_TCP, WAY_TCP6, WAY_DNS, WAY_SOCKETS };

struct way_listener {
	struct watch watch;
	struct egress_endpoint *way;
	int fd; /* -1: none */
};

struct egress_endpoint {
	struct egress_endpoint *next;
	struct egress *egress;
	char id[WIRE_ID];
	struct way_listener sockets[WAY_SOCKETS];
	int link;           /* -1, or the BPF link of captured connections: held, not used */
	struct timer again; /* after the host ran out of descriptors */
	struct net_policy policy;
	struct bufferevent_rate_limit_group *rate; /* policy.bandwidth; NULL: no limit */
	struct injection *injection;               /* NULL: the box has no placeholder */
	char (*links)[EGRESS_LINK_NAME + 1];       /* names of linked boxes */
	unsigned nlinks;
	struct proxy *proxies;
	unsigned nproxies;
	uint64_t bytes_in, bytes_out, dns_queries;
	uint64_t reported_in, reported_out, reported_dns; /* last sent to a server */
	struct egress_spent spent[NET_BUDGETS];           /* of each budget of the policy */
	struct egress_used *used;           /* what survives this process; NULL: nothing (tests) */
	uint64_t tokens;                    /* allowed connections now, in thousandths */
	uint64_t filled_ms;                 /* time of their last update */
	uint64_t dns_tokens, dns_filled_ms; /* the same for DNS queries */
	struct name_table names;
};

/* 1: one more of what has this rate per second, with a burst of twice as many, is allowed now. */
int way_take_token(uint64_t *tokens, uint64_t *filled_ms, uint64_t rate);
/* proxy_dns.c: answers the waiting queries of captured UDP. */
void dns_read(struct egress_endpoint *w);

/* ---- for the files of this folder ---- */

struct egress_early { /* secrets of a box without an endpoint */
	struct egress_early *next;
	char id[WIRE_ID];
	struct injection *injection;
};

void *egress_must(void *p); /* ends the process without memory */
/* The place of its endpoint in the list; the place of NULL: none. */
struct egress_endpoint **egress_find(struct egress *x, const char *id);
/* Removes and returns the secrets that wait for this box, or NULL. */
struct injection *egress_take_early(struct egress *x, const char *id);
/* server_link.c: totals of bytes that a server does not know yet. */
void egress_send_totals(struct timer *t);
void egress_servers_fini(struct egress *x);
