/* follow.h - new events of a team, from the directory, in the order of their transactions.
 * Owns: the question in progress, the position.
 *
 * Identity values and times commit out of order, so a reader of "later than the last one" loses rows. The order is that of
 * transactions, and only rows below the oldest transaction in progress are read: nothing can appear before them later. */
#pragma once
#include "coordinator/cluster_client.h"
#include "store/store.h"

enum { FOLLOW_MS = 250, FOLLOW_POSITION = 64 };

struct gateway_follow { /* memory of the caller, zeroed */
	/* Each event, as the list of events has it, with `next`: the position after it. 1: the reader is slow;
	 * follow_continue() when it is not. */
	int (*event)(struct gateway_follow *f, json_t *take_item, const char *next);
	/* The position is known, before the first event. */
	void (*begun)(struct gateway_follow *f, const char *next);
	struct cluster_client *engines;
	struct cluster_request request;
	struct timer clock;
	char team[STORE_NAME + 1], box[ID_MAX + 1]; /* box "": all */
	char xid[24], node[12], seq[24];            /* of the last event; xid "": not known yet */
	char page[3][24]; /* the position in a list with which it begins; "": none */
	char number[24];  /* the `seq` of the event after which it begins; "": none */
	int is_begun, is_paused, is_active;
};

/* An event as in lists and streams; number: its `seq`. */
json_t *follow_item(const json_t *row, int64_t number);
/* after: NULL: from now on; "0": all that are stored; `seq` or `next` of an event, or `next` of a page of events. -1: it is not such a
 * position. The other fields are set by the caller. */
must_check int follow_begin(struct gateway_follow *f, struct loop *l, const char *after);
void follow_continue(struct gateway_follow *f);
void follow_end(struct gateway_follow *f); /* fine on a zeroed or ended one */
