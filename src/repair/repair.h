/* repair.h - test-guided search: programs that differ from a failing one in one place, likeliest first.
 * Owns: its boxes, side by side, and the candidates.
 *
 * Of three examples or more one is held out: who passes all that were shown and that one is `verified`,
 * unless there is a doubt: another one that passes as well, anywhere or at the same place, and does
 * something else with inputs that nobody gave (doubt.h). Who passes less is `plausible` (with two: both
 * shown), and so is what nobody has looked at in that way. Only the file that is begun with is changed. */
#pragma once
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
};

int repair_knows(const char *language); /* there is a search for programs of this language */
int repair_possible(
	const json_t *artifact); /* the language is known, there are examples or tests */
/* unseen: an example that the artifact does not have and no search is shown, or NULL: then one of the artifact's is
 * held out, where it has three. */
struct repair *repair_start(struct fleet *f, const char *team, const json_t *artifact,
			    const json_t *unseen, unsigned boxes, struct repair_owner *o);
void repair_cancel(struct repair *r);
