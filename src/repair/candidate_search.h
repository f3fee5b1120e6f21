/* candidate_search.h - one box that looks for edits of a program with which its examples pass.
 * Owns:         its box (on a leash), and the line that it is in the middle of.
 * Does not own: what is searched for; an edit that was found is the owner's.
 *
 * The box has the program in it, so what it says is hearsay: an edit of the source that we have, and
 * nothing counts before a trial in another box has said so. */
#pragma once
#include "repair/search_protocol.h"
#include "repair/mutate.h"
#include "repair/candidate_box.h"

struct search;
struct search_for { /* the same for all boxes of a repair */
	const struct stall *stall;
	const json_t *shown; /* examples */
	const char *source;
	size_t source_len;
	const struct mutations *given; /* edits to try; none: the box thinks of some itself */
	unsigned shards;
	/* take_edit: NULL where it is the rank's of those given. */
	void (*found)(struct search *s, unsigned rank, const char *acts, struct edit *take_edit);
	void (*lied)(struct search *s);  /* it said what no search says, and is not heard any more */
	void (*heard)(struct search *s); /* something; later is early enough to look */
	void (*ended)(struct search *s, const char *why); /* "": it has tried everything */
};

struct search {
	const struct search_for *what; /* NULL: it never began */
	struct batch_job job;
	int flying, mute, over, complete; /* complete: it has tried every candidate that there is */
	unsigned at; /* ranks before this one are tried */
	unsigned tried, candidates;
	struct buf line;
};

must_check int search_start(struct search *s, const struct search_for *what, unsigned shard,
			    struct err *e);
void search_stop(struct search *s); /* at any time, and again: nobody is told */

/* What a search program is started with, here and for doubt.h: the examples' files, the question. */
json_t *search_item(const struct stall *s, const json_t *examples, uint32_t ms, json_t *take_ask);
json_t *search_edit(const struct edit *x); /* as a question has it */
