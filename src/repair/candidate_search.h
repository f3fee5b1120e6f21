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

struct candidate_search;
struct candidate_search_spec { /* the same for all boxes of a repair */
	const struct candidate_box *candidate_box;
	const json_t *shown; /* examples */
	const char *source;
	size_t source_len;
	const struct mutations *given; /* edits to try; none: the box thinks of some itself */
	unsigned shards;
	/* take_edit: NULL where it is the rank's of those given. */
	void (*found)(struct candidate_search *s, unsigned rank, const char *acts,
		      struct edit *take_edit);
	void (*lied)(struct candidate_search
			     *s); /* it said what no search says, and is not heard any more */
	void (*heard)(struct candidate_search *s); /* something; later is early enough to look */
	void (*ended)(struct candidate_search *s,
		      const char *why); /* "": it has tried everything */
};

struct candidate_search {
	const struct candidate_search_spec *what; /* NULL: it never began */
	struct batch_job job;
	int flying, mute, over, complete; /* complete: it has tried every candidate that there is */
	unsigned at;                      /* ranks before this one are tried */
	unsigned tried, candidates;
	struct buf line;
};

must_check int candidate_search_start(struct candidate_search *s,
				      const struct candidate_search_spec *what, unsigned shard,
				      struct err *e);
void candidate_search_stop(struct candidate_search *s); /* at any time, and again: nobody is told */

/* What a search program is started with, here and for doubt.h: the examples' files, the question. */
json_t *candidate_search_item(const struct candidate_box *s, const json_t *examples, uint32_t ms,
			      json_t *take_ask);
json_t *candidate_search_edit(const struct edit *x); /* as a question has it */
