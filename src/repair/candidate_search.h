/* candidate_search.h - one box that searches for edits with which a program passes its examples.
 * Owns: its box (kill on close), and the incomplete output line.
 * Does not own: the question; an edit that was found belongs to the owner. The box runs the program
 * itself, so its output is not trusted: it is only an edit of the known source, and counts only
 * after a test in another box. */
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
	const struct mutations *given; /* edits to try; none: the box generates its own */
	unsigned shards;
	/* take_edit: NULL if it is one of the given edits, by rank. */
	void (*found)(struct candidate_search *s, unsigned rank, const char *acts,
		      struct edit *take_edit);
	void (*lied)(struct candidate_search
			     *s); /* it sent an invalid message and is ignored from now on */
	void (*on_progress)(struct candidate_search *s); /* progress; it may be examined later */
	void (*ended)(struct candidate_search *s, const char *why); /* "": all edits were tried */
};

struct candidate_search {
	const struct candidate_search_spec *what; /* NULL: it never began */
	struct batch_job job;
	int flying, mute, over, complete; /* complete: every candidate was tried */
	unsigned at;                      /* ranks before this one are tried */
	unsigned tried, candidates;
	struct buf line;
};

must_check int candidate_search_start(struct candidate_search *s,
				      const struct candidate_search_spec *what, unsigned shard,
				      struct err *e);
void candidate_search_stop(struct candidate_search *s); /* at any time; no callback */

/* The input of a search program, here and for overfit_check.h: files of the examples, the
 * request. */
json_t *candidate_search_item(const struct candidate_box *s, const json_t *examples, uint32_t ms,
			      json_t *take_ask);
json_t *candidate_search_edit(const struct edit *x); /* as a question has it */
