/* events.h - the events of boxes, in order, for clients that were not connected at that time.
 * The newest STORE_EVENTS are kept; older ones are removed in batches. */
#pragma once
#include "store/store.h"

enum { STORE_EVENTS = 100000 };

struct store_event {
	int64_t seq; /* given by the store, ascending, never twice */
	int64_t at_ns;
	char team[STORE_NAME + 1];
	char box[ID_MAX + 1];
	char type[STORE_WORD + 1]; /* "box.created" */
	char *data;                /* JSON; NULL is {} */
};
struct store_events {
	struct store_event *v;
	unsigned n;
	int more; /* next page: after = seq of the last one */
};
void store_events_fini(struct store_events *l);

/* Sets ev->seq. */
must_check int store_event_add(struct store *s, struct store_event *ev, struct err *e);
/* Oldest first, those after `after`; team and box NULL: any. */
must_check int store_event_list(struct store *s, int64_t after, const char *team, const char *box,
				unsigned limit, struct store_events *out, struct err *e);
struct store_event_filter {     /* zero: everything, newest first */
	const char *team, *box; /* NULL: any */
	int64_t since_ns;       /* then or later */
	int64_t until_ns;       /* then or before; 0: whenever */
	int64_t behind;         /* seq of the last one of the page before; 0: from the start */
	int oldest_first;
	unsigned limit; /* 0: STORE_PAGE */
};
must_check int store_event_find(struct store *s, const struct store_event_filter *f,
				struct store_events *out, struct err *e);
/* The oldest and the newest number; 0 and 0: none. A client that requests events after less than
 * first-1 has missed some. */
must_check int store_event_range(struct store *s, int64_t *out_first, int64_t *out_last,
				 struct err *e);
