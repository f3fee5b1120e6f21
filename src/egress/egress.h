/* egress.h - the process through which boxes reach registries, and nothing else.
 * Owns:         the listening sockets in the boxes' networks, the connections on them, the reports.
 * Does not own: the boxes, nor which client may request what (the server). The supervisor sends the rules of the
 *               operator, and egress checks each connection against them: a compromised server
 *               reaches no other host.
 *
 *   box ── 127.0.0.1:3128 ──► way ──► proxy ──► a host that a rule of the box and one of the operator fit
 *
 * Neither boxes nor hosts are trusted. */
#pragma once
#include "base/err.h"
#include "egress/resolver.h"
#include "egress/net_policy.h"
#include "loop/loop.h"
#include "wire/wire.h"

enum { EGRESS_PORT = 3128, EGRESS_FRAMES = 2048, EGRESS_WAYS = 16384, EGRESS_TOTALS_MS = 1000 };
enum { EGRESS_LINKS = 16, EGRESS_LINK_NAME = 63 }; /* linked boxes of a box; bytes of a name */

struct egress_limits {                /* 0: the default, in parentheses */
	uint64_t bytes_in, bytes_out; /* bytes of a box in total (no limit) */
	uint64_t dns_queries; /* names that a box asks for or connects to, in total (no limit) */
	uint32_t connections; /* connections of a box: more wait in the kernel (64) */
	uint32_t all_connections; /* connections of all boxes (2048) */
	uint32_t rate;            /* new connections per second, burst twice as many (100) */
	uint32_t head_ms;         /* for a whole request (10 s) */
	uint32_t connect_ms;      /* to resolve and connect (20 s) */
	uint32_t idle_ms;         /* without a byte in both directions (120 s) */
	uint32_t ask_ms;          /* for an approval (60 s) */
};

/* What a box has used of its budget. The supervisor owns the array and keeps it while egress
 * processes come and go, so that a killed process loses no byte of it. */
struct egress_spent { /* of a budget for destinations: spent.h */
	uint64_t key;
	uint64_t bytes_in, bytes_out, connections;
};
struct egress_used {
	char id[WIRE_ID]; /* "": free */
	uint64_t bytes_in, bytes_out, dns_queries;
	struct egress_spent spent[NET_BUDGETS];
};

struct egress_conf {                  /* borrowed for the life of the egress */
	const struct net_rule *rules; /* the operator's */
	unsigned nrules;
	const struct net_rule *deny;
	unsigned ndeny;
	struct egress_used *used; /* EGRESS_WAYS of them, shared; NULL: none */
	const char *const *dns;   /* servers, NULL-terminated; none: the host's */
	struct egress_limits limits;
	const char *
		certificates; /* PEM: which hosts are trusted when their TLS is opened; NULL: none */
};

struct egress_endpoint;
struct egress_link;
struct egress_frame;

struct egress {
	struct loop *loop;
	struct egress_conf conf;
	struct resolver names;
	struct ssl_ctx_st *trust;   /* TLS to hosts: injection.h */
	struct egress_early *early; /* secrets of boxes that have no endpoint yet */
	unsigned early_count;
	struct egress_endpoint *ways;
	unsigned nways, nproxies;
	struct egress_link *links;         /* to servers, the newest first */
	struct egress_frame *first, *last; /* for a server */
	unsigned nframes;
	uint64_t lost;       /* frames that were not sent */
	struct timer totals; /* runs while there are connections */
	uint64_t requests;   /* number of the last request for an approval */
	uint32_t asked;      /* reference of the last request to a server */
};

must_check int egress_init(struct egress *x, struct loop *l, const struct egress_conf *conf,
			   struct err *e);
/* A server: it gets the list of boxes with an endpoint, then its frames are served. */
void egress_add_server(struct egress *x, int take_fd);
/* rules: lines of net_policy.h. ERR_CONFLICT: the box has one. */
must_check int egress_open(struct egress *x, const struct wire_egress_open *ask, const char *rules,
			   size_t n, int take_fd, struct err *e);
/* Serves the captured connections of an open endpoint; take_fd: see WIRE_CAPTURE. Replaces those of
 * an earlier call. ERR_NOT_FOUND: not open. */
must_check int egress_capture(struct egress *x, const char *id, int take_fd, struct err *e);
/* Changes the rules of an open endpoint. Connections that are no longer permitted are cut, and
 * waiting ones that now are permitted continue. ERR_NOT_FOUND: not open. */
must_check int egress_change(struct egress *x, const char *id, const char *rules, size_t n,
			     struct err *e);
/* Replaces the secrets that are written into requests of the box: the tail of EGRESS_SECRETS. Without an
 * endpoint, they are kept for it. */
must_check int egress_secrets(struct egress *x, const char *id, const char *parts, size_t n,
			      struct err *e);
void egress_close(struct egress *x, const char *id); /* allowed without one */
void egress_fini(struct egress *x);

/* The whole process, until the supervisor closes `supervisor`: EGRESS_CONNECT + fd on it adds a
 * server. walls() is called when no more files must be opened. Returns the exit status. */
int egress_main(const struct egress_conf *conf, int supervisor,
		int (*walls)(void *ctx, struct err *e), void *ctx);
