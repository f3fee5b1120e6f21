/* repair.h - test-guided search: programs that differ from a failing one in one place, likeliest first.
 * Owns: its parallel boxes and the candidates.
 *
 * Of three or more examples one is held out: an edit that passes all shown examples and the
 * held-out one is `verified`, unless there is a doubt: another edit that passes as well and behaves
 * differently with other inputs (overfit_check.h). An edit that passes less is `plausible` (with
 * two examples both are shown), and so is one without this check. Only the entry file is
 * changed. */
#pragma once
#include "batch/item.h"
#include "document/document.h"
#include "fleet/fleet.h"

struct repair;
struct repair_owner {
	/* artifact: sealed, a child of the one given; NULL: none was found. found: {label: "verified",
	 * "plausible" or "none", candidates, tried, passed: how many pass everything, skipped: how many
	 * failed only the held-out one, lies: how often a box was wrong, held_out_passed, ms} and {rule,
	 * line, diff, rank, agree: how many of passed do the same, doubt: what speaks against it} or {why}.
	 * The artifact has `repair: {pinned: nothing does, held_out: there was one}`. Once, never from within. */
	void (*done)(struct repair_owner *o, json_t *take_artifact, json_t *take_found);
	const char *key, *pipeline;      /* charged for its programs; NULL: none of them */
	struct choose_request isolation; /* of its boxes */
	/* NULL: its boxes start without files. Called for each box. */
	int (*files)(struct repair_owner *o, struct batch_files *out, struct err *e);
	const json_t *env; /* variables, besides those of the artifact; NULL: none */
};

int repair_knows(const char *language); /* a search program exists for this language */
int repair_possible(
	const json_t *artifact); /* the language is known, there are examples or tests */
/* unseen: an example that is not in the artifact and not shown to the search, or NULL: then one of
 * the artifact is held out, if it has three. */
struct repair *repair_start(struct fleet *f, const char *team, const json_t *artifact,
			    const json_t *unseen, unsigned boxes, struct repair_owner *o);
void repair_cancel(struct repair *r);
