/* settle.h - a list that is read from the directory contains what the requests before it have changed.
 * Owns: which nodes have had requests of a team a moment ago.
 *
 * Rows of nodes reach the directory some 50 ms after a change. Before a gateway reads a list, it asks the nodes to which
 * it has sent requests of the team within SETTLE_RECENT_MS, and waits until the directory has their rows. */
#pragma once
#include "api/directory_wait.h"
#include "gateway/fanout.h"
#include "store/store.h"

enum {
	SETTLE_RECENT_MS = 5000,
	SETTLE_LATE_MS =
		300,       /* for a node to answer; then the list is read without its last rows */
	SETTLE_NODES = 32, /* are asked at most */
	SETTLE_SLOTS = 2048,
};

struct gateway;

struct settle_slot {
	uint32_t node, ms; /* loop_now_ms() of its last request, the low bits; node 0: empty */
	char team[STORE_NAME + 1];
};

struct settle_slot *settle_slots_new(void); /* for free() */
/* A request of this team was sent to this node. */
void settle_note(struct gateway *g, const char *team, unsigned node);

struct settle {                         /* memory of the caller, zeroed but for done */
	void (*done)(struct settle *s); /* called once, from the loop, unless settle_end() */
	struct gateway *gateway;
	struct fanout fanout;
	struct directory_wait own; /* rows of this gateway */
	struct timer late;
	unsigned v[SETTLE_NODES], n;
	int is_waiting; /* for own */
	int is_active, nodes_done;
};
/* team NULL: of all teams. 1: the directory has all. 0: done() follows. */
int settle_begin(struct settle *s, struct gateway *g, const char *team);
void settle_end(struct settle *s); /* fine on a zeroed or finished one */
