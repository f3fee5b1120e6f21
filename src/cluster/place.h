/* place.h - chooses the node for a new box.
 * Owns:         what one gateway knows of the nodes' load, its own placements since each node's last
 *               heartbeat, and how often each template is requested.
 * Does not own: connections, time (the caller passes it), the decision of the node, which may refuse.
 *
 * Best of 3 of the template's own nodes, if one of them is below PLACE_FULL; else best of 3 of all. The own
 * nodes are the first k by a hash of template and number, so that all gateways choose the same ones without
 * asking each other, and k grows with the template's share of the requests. Looking at all nodes instead of
 * 3 would send all gateways to the same node between two heartbeats. bench/place has the figures. */
#pragma once
#include "base/err.h"
#include <stdint.h>

enum {
	PLACE_NODES = 4096,
	PLACE_NUMBERS = 32768, /* of nodes: three letters of an id */
	PLACE_TEMPLATES =
		512, /* of which requests are counted; the rarest gives way to a new one */
	PLACE_LABELS = 8,
	PLACE_LABEL = 63, /* bytes of a label */
	PLACE_ATTEMPTS = 4,
	PLACE_FULL =
		9200, /* load above which a template's own node is no longer preferred, in 1/10000 */
	PLACE_FAILURES = 3, /* failed creations within PLACE_FAILURES_MS suspend a node */
	PLACE_FAILURES_MS = 10000,
	PLACE_SUSPENDED_MS = 30000,
};

enum place_policy { PLACE_SPREAD, PLACE_PACK };

/* From a heartbeat. The node is not trusted: values outside their range count as a full node. */
struct place_figures {
	uint64_t memory;      /* bytes that its boxes may reserve together */
	uint64_t memory_free; /* of these, not reserved */
	int is_draining;
	char arch[16]; /* "x86_64" */
	char labels[PLACE_LABELS][PLACE_LABEL + 1];
	unsigned nlabels;
};

struct place_request {
	const char *template;      /* "": base */
	uint64_t memory;           /* bytes that the box reserves */
	const char *arch;          /* NULL: any */
	const char *const *labels; /* all of them are required; NULL-terminated, or NULL */
	int node;                  /* only this one, because of a volume; -1: any */
	const unsigned *tried;     /* nodes that have refused this request */
	unsigned ntried;
};

struct place;
must_check int place_new(struct place **out, enum place_policy policy, uint64_t seed,
			 struct err *e);
void place_free(struct place *p); /* allowed on NULL */

/* A node is connected, or has sent a heartbeat: its figures replace the placements counted since the last. */
must_check int place_update(struct place *p, unsigned number, const struct place_figures *f,
			    struct err *e);
void place_remove(struct place *p, unsigned number); /* it is not connected */
unsigned place_count(const struct place *p);

/* The number of a node, whose memory counts as reserved until its next heartbeat. -1: none fits; e says how
 * many nodes were left out for which reason: ERR_INVALID if no node could ever fit, else ERR_LIMIT. */
must_check int place_choose(struct place *p, const struct place_request *r, uint64_t now_ms,
			    struct err *e);
/* The node has answered that request. ok 0: it failed, for a reason other than being full. */
void place_answered(struct place *p, unsigned number, int ok, uint64_t now_ms);
int place_is_suspended(const struct place *p, unsigned number, uint64_t now_ms);
