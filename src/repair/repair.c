/* repair.c - see repair.h.
 *
 *   original ──► trial: which examples fail? ──► one of three or more is held out
 *        ┌───────────────────────────────────────────┘
 *        ▼ shown only
 *   search boxes, side by side ──► edits, each with its rank ──► trial: shown, then held out ──► the best
 *
 * The Python search generates its edits itself (it has a parser and traces executed lines); the
 * JavaScript search gets those of mutate.h; for compiled languages there is no search, and the most
 * promising edits are tested, one box each.
 *
 * Often more than one edit passes. Correct edits behave the same with other inputs, and each of the
 * others behaves differently; so the repair waits a little for more of them, and the best is the
 * one that most others agree with, then the one of the lowest rank. If they do not all agree, or
 * overfit_check.h finds another one, the examples do not determine the right one, and the result is
 * plausible. */
#include "repair/repair.h"
#include "repair/overfit_check.h"
#include "repair/edit.h"
#include "repair/repair_programs.h"
#include "repair/repair_task.h"
#include "repair/candidate_search.h"
#include "repair/candidate_test.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

enum {
	/* clang-format off */
	BOXES_MOST = 8,
	REPAIR_MS = 75000,   /* of everything, */
	BUILD_MS = 120000,   /* and for its compilation */
	WAIT_MS = 6000,	     /* time for other edits after the first that passes, if it cannot be verified, */
	WAIT_TRIED = 320,    /* or until this many more edits were tried; */
	COMPLETE_MS = 20000, /* wait for all candidates, if it can be verified */
	PASSED_MOST = 16,    /* maximum number of compared edits */
	TICK_MS = 100,
	GIVEN_MOST = 2000,  /* candidates for a search, */
	BUILT_MOST = 50,   /* and for the compilation of each */
	LIES_MOST = 8,	  /* later messages are ignored */
	OVERFIT_LEAST = 2,  /* minimum of examples: one alone proves too little */
	QUEUE_MOST = 256, /* edits that wait for their test; further ones are dropped */
	HELD_NONE = CANDIDATE_TEST_EXAMPLES,
	/* clang-format on */
};

struct candidate {
	struct candidate *next; /* by rank */
	unsigned rank;
	struct edit edit;
	char acts[SEARCH_MSG_ACTS + 1];
};

struct attempt { /* tests candidates, or the original program, one box after another */
	struct repair *repair;
	struct candidate_test candidate_test;
	struct candidate *candidate; /* NULL: the program */
	int busy, answered, lost;
	uint64_t passed;
};

struct repair {
	/* clang-format off */
	struct candidate_box candidate_box;
	struct repair_owner *owner;
	json_t *artifact, *examples, *shown, *shown_first; /* shown_first: those, then the held-out one */
	const char *source;			   /* the artifact's */
	size_t source_len;
	unsigned boxes, held; /* held: index, or HELD_NONE */
	int unseen;	      /* given by the caller: the last example, not part of the artifact */
	struct candidate_search_spec wanted;
	struct candidate_search searches[BOXES_MOST];
	struct mutations given;
	struct attempt attempts[BOXES_MOST];
	unsigned nattempts; /* that may be busy at once */
	struct candidate *queue;
	struct candidate *passed_all; /* newest first */
	const struct candidate *best; /* of those, after the search has ended */
	unsigned nqueue;
	unsigned nfound, npassed, nskipped, nlies, ndropped, nlost;
	unsigned first_tried; /* number of tried edits when the first one had passed */
	unsigned built; /* candidates that were compiled and tried */
	struct overfit_check overfit; /* the overfit check of the best edit, if all edits agree */
	int doubting, pinned;
	char doubted[OVERFIT_CHECK_REASON];
	int over;
	uint64_t began_ms, first_ms; /* first_ms: one passed everything */
	struct timer turn, tick;
	char why[160];
	/* clang-format on */
};

/* ---- the end ---- */

static void free_candidates(struct candidate *c)
{
	while (c) {
		struct candidate *next = c->next;

		edit_fini(&c->edit);
		free(c);
		c = next;
	}
}

void repair_cancel(struct repair *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < BOXES_MOST; i++)
		candidate_search_stop(&r->searches[i]);
	for (unsigned i = 0; i < BOXES_MOST; i++) {
		candidate_test_fini(&r->attempts[i].candidate_test);
		free_candidates(r->attempts[i].candidate);
	}
	overfit_check_fini(&r->overfit);
	free_candidates(r->queue);
	free_candidates(r->passed_all);
	mutations_fini(&r->given);
	timer_fini(&r->turn);
	timer_fini(&r->tick);
	json_decref(r->artifact);
	json_decref(r->examples);
	json_decref(r->shown);
	json_decref(r->shown_first);
	free(r);
}

/* The number of passed edits with the same behaviour, including itself. */
static unsigned agree_with(const struct repair *r, const struct candidate *c)
{
	unsigned n = 0;

	for (const struct candidate *o = r->passed_all; o; o = o->next)
		n += !search_msg_differ(c->acts, o->acts);
	return n;
}

static const struct candidate *best_of(const struct repair *r)
{
	const struct candidate *best = NULL;
	unsigned most = 0;

	for (const struct candidate *c = r->passed_all; c; c = c->next) {
		unsigned n = agree_with(r, c);

		if (!best || n > most || (n == most && c->rank < best->rank)) {
			best = c;
			most = n;
		}
	}
	return best;
}

static const char *label_of(const struct repair *r)
{
	if (!r->best)
		return "none";
	return r->held != HELD_NONE && r->pinned ? "verified" : "plausible";
}

static unsigned tried_so_far(const struct repair *r)
{
	unsigned tried = r->built;

	for (unsigned i = 0; i < r->boxes; i++)
		tried += r->searches[i].tried;
	return tried;
}

/* The largest number of candidates that a search reported. */
static unsigned candidates_of(const struct repair *r)
{
	unsigned most = r->given.n;

	for (unsigned i = 0; i < r->boxes; i++)
		most = r->searches[i].candidates > most ? r->searches[i].candidates : most;
	return most;
}

static int is_searched(const struct repair *r)
{
	return program_search(doc_text(r->artifact, "language")) != NULL;
}

/* Was every candidate tried and none lost? Only then no other edit passes. */
static int is_complete(const struct repair *r)
{
	if (r->given.cut || r->ndropped || r->nlies || r->queue || r->nlost)
		return 0;
	for (unsigned i = 0; is_searched(r) && i < r->boxes; i++)
		if (!r->searches[i].complete || r->searches[i].mute)
			return 0;
	return is_searched(r) || r->built == r->given.n;
}

static json_t *found_json(const struct repair *r)
{
	json_t *found = json_pack("{s:s, s:i, s:i, s:i, s:i, s:b, s:I}", "label", label_of(r),
				  "candidates", (int)candidates_of(r), "passed", (int)r->npassed,
				  "skipped", (int)r->nskipped, "lies", (int)r->nlies,
				  "held_out_passed", r->best && r->held != HELD_NONE, "ms",
				  (json_int_t)(loop_now_ms() - r->began_ms));
	auto_buf struct buf diff = { 0 };

	json_object_set_new(found, "tried", json_integer(tried_so_far(r)));
	if (!r->best) {
		json_object_set_new(found, "why", json_string(r->why));
		return found;
	}
	edit_show(&r->best->edit, r->source, r->source_len, &diff);
	json_object_set_new(found, "complete", json_boolean(is_complete(r)));
	if (!r->pinned)
		json_object_set_new(found, "doubt", json_string(r->doubted));
	json_object_set_new(found, "rule", json_string(r->best->edit.rule));
	json_object_set_new(found, "rank", json_integer(r->best->rank));
	json_object_set_new(found, "agree", json_integer(agree_with(r, r->best)));
	json_object_set_new(found, "line", json_integer(edit_line(&r->best->edit, r->source)));
	json_object_set_new(found, "diff", json_string(buf_str(&diff)));
	return found;
}

static json_t *artifact_of(const struct repair *r)
{
	unsigned line = edit_line(&r->best->edit, r->source);
	auto_buf struct buf text = { 0 };
	char rule[64], because[160];
	json_t *child;

	snprintf(rule, sizeof(rule), "repair:%s line %u", r->best->edit.rule, line);
	snprintf(because, sizeof(because), "line %u changed (%s): all %zu examples pass", line,
		 r->best->edit.rule, json_array_size(r->examples));
	child = artifact_child(r->artifact, rule, because);
	edit_apply(&r->best->edit, r->source, r->source_len, &text);
	json_object_set_new(json_object_get(child, "files"), doc_text(child, "entry"),
			    json_string(buf_str(&text)));
	json_object_set_new(child, "repair",
			    json_pack("{s:b, s:b, s:b, s:s}", "pinned", r->pinned, "held_out",
				      r->held != HELD_NONE, "complete", is_complete(r), "doubt",
				      r->pinned ? "" : r->doubted));
	artifact_set_hash(child);
	return child;
}

static void repair_finish(struct repair *r)
{
	struct repair_owner *o = r->owner;
	json_t *artifact, *found;

	r->best = r->best ? r->best : best_of(r);
	artifact = r->best ? artifact_of(r) : NULL;
	found = found_json(r);
	repair_cancel(r);
	o->done(o, artifact, found);
}

/* ---- what searches say ---- */

/* By rank; of two with the same rank the first. */
static void repair_enqueue(struct repair *r, unsigned rank, const char *acts,
			   struct edit *take_edit)
{
	struct candidate **at = &r->queue, *c;

	if (r->nqueue >= QUEUE_MOST) {
		r->ndropped++;
		edit_fini(take_edit);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	while (*at && (*at)->rank <= rank)
		at = &(*at)->next;
	*c = (struct candidate){ .next = *at, .rank = rank, .edit = *take_edit };
	snprintf(c->acts, sizeof(c->acts), "%s", acts);
	*at = c;
	r->nqueue++;
	r->nfound++;
}

/* An edit that this process generated, not the box. */
static void enqueue_given(struct repair *r, unsigned rank, const char *acts)
{
	struct edit copy = r->given.v[rank];

	copy.text = strndup(copy.text, copy.len);
	if (!copy.text)
		abort();
	repair_enqueue(r, rank, acts, &copy);
}

static struct repair *repair_of(const struct candidate_search *s)
{
	return loop_owner((struct candidate_search_spec *)s->what, struct repair, wanted);
}

static void repair_found(struct candidate_search *s, unsigned rank, const char *acts,
			 struct edit *take_edit)
{
	if (take_edit)
		repair_enqueue(repair_of(s), rank, acts, take_edit);
	else
		enqueue_given(repair_of(s), rank, acts);
}

static void repair_lied(struct candidate_search *s)
{
	repair_of(s)->nlies++;
}

static void repair_on_progress(struct candidate_search *s)
{
	timer_set(&repair_of(s)->turn, 0);
}

static void search_ended(struct candidate_search *s, const char *why)
{
	struct repair *r = repair_of(s);

	if (*why)
		snprintf(r->why, sizeof(r->why), "%s", why);
	timer_set(&r->turn, 0);
}

static void start_search(struct repair *r, unsigned shard)
{
	struct err e;

	if (candidate_search_start(&r->searches[shard], &r->wanted, shard, &e) < 0)
		snprintf(r->why, sizeof(r->why), "a search: %.120s", e.msg);
}

/* ---- one thing after another ---- */

static void candidate_test_done(struct candidate_test *t, uint64_t passed, int lost)
{
	struct attempt *a = loop_owner(t, struct attempt, candidate_test);

	a->answered = 1;
	a->passed = passed;
	a->lost = lost;
	timer_set(&a->repair->turn, 0);
}

static void begin_attempt(struct repair *r, struct attempt *a, struct candidate *take_candidate,
			  const json_t *examples)
{
	struct buf text = { 0 };

	a->repair = r;
	a->busy = 1;
	a->candidate = take_candidate;
	a->candidate_test.done = candidate_test_done;
	a->candidate_test.hurried = take_candidate != NULL;
	if (take_candidate)
		edit_apply(&take_candidate->edit, r->source, r->source_len, &text);
	else
		buf_add(&text, r->source, r->source_len);
	candidate_test_start(&a->candidate_test, &r->candidate_box, examples, buf_steal(&text));
}

static uint64_t repair_everything(const struct repair *r)
{
	return ~0ull >> (64 - json_array_size(r->examples));
}

/* Of three or more examples one is held out: a failing one, if another one fails as well, because
 * it is more significant. */
static void hold_out(struct repair *r, uint64_t passed)
{
	unsigned n = (unsigned)json_array_size(r->examples), failing = 0;

	for (unsigned i = 0; i < n; i++)
		failing += !(passed >> i & 1);
	r->held = r->unseen ? n - 1 : HELD_NONE;
	for (unsigned i = 0; !r->unseen && n >= 3 && i < n; i++)
		if ((passed >> i & 1) == (failing < 2))
			r->held = i;
	/* Failing examples come first: most candidates fail there and are finished early. */
	r->shown = json_array();
	for (unsigned good = 0; good <= 1; good++)
		for (unsigned i = 0; i < n; i++)
			if (i != r->held && (passed >> i & 1) == good)
				json_array_append(r->shown, json_array_get(r->examples, i));
	r->shown_first = json_copy(r->shown);
	if (r->held != HELD_NONE)
		json_array_append(r->shown_first, json_array_get(r->examples, r->held));
}

/* Generates edits where there is no search, and starts to test them. */
static void begin_search(struct repair *r)
{
	const char *language = repair_language(doc_text(r->artifact, "language"));
	int searched = program_search(language) != NULL;

	mutate_make(&r->given, language, r->source, r->source_len,
		    searched ? GIVEN_MOST : BUILT_MOST);
	r->wanted = (struct candidate_search_spec){ .candidate_box = &r->candidate_box,
						    .shown = r->shown,
						    .source = r->source,
						    .source_len = r->source_len,
						    .given = &r->given,
						    .shards = r->boxes,
						    .found = repair_found,
						    .lied = repair_lied,
						    .on_progress = repair_on_progress,
						    .ended = search_ended };
	for (unsigned i = 0; searched && i < r->boxes; i++)
		start_search(r, i);
	for (unsigned i = 0; !searched && i < r->given.n; i++)
		enqueue_given(r, i, "");
	r->nattempts = searched ? 1 : r->boxes;
}

static void after_before(struct repair *r, const struct attempt *a)
{
	r->over = 1;
	if (a->lost) {
		snprintf(r->why, sizeof(r->why), "no box could be had");
	} else if (a->passed == repair_everything(r) ||
		   (r->unseen &&
		    (a->passed & repair_everything(r) >> 1) == repair_everything(r) >> 1)) {
		snprintf(r->why, sizeof(r->why), "all examples pass: there is nothing to repair");
	} else {
		r->over = 0;
		hold_out(r, a->passed);
		begin_search(r);
	}
}

static void after_candidate(struct repair *r, const struct attempt *a, struct candidate *c)
{
	uint64_t shown = repair_everything(r) >> (r->held != HELD_NONE);
	const char *language = doc_text(r->artifact, "language");
	int told = program_search(language) != NULL;
	/* A search without types finds edits that do not compile: this is not counted as an
	 * invalid message. */
	int exact = told && !strcmp(program_runner(language), repair_language(language));

	r->built += !told;
	r->nlost += a->lost;
	if (a->passed == repair_everything(r)) {
		if (!r->npassed++) {
			r->first_ms = loop_now_ms();
			r->first_tried = tried_so_far(r);
		}
		c->next = r->passed_all;
		r->passed_all = steal(&c);
	} else if ((a->passed & shown) == shown) {
		r->nskipped++;
	} else if (exact && !a->lost && ++r->nlies == LIES_MOST) {
		snprintf(r->why, sizeof(r->why), "the search was tampered with");
		r->over = 1;
	}
	free_candidates(c);
}

static void take_answers(struct repair *r)
{
	for (unsigned i = 0; i < BOXES_MOST; i++) {
		struct attempt *a = &r->attempts[i];
		struct candidate *c = a->candidate;

		if (!a->answered)
			continue;
		a->answered = a->busy = 0;
		a->candidate = NULL;
		if (c)
			after_candidate(r, a, c);
		else
			after_before(r, a);
	}
}

static void try_more(struct repair *r)
{
	for (unsigned i = 0; i < r->nattempts && r->queue; i++) {
		struct candidate *c = r->queue;

		if (r->attempts[i].busy)
			continue;
		r->queue = steal(&c->next);
		r->nqueue--;
		begin_attempt(r, &r->attempts[i], c, r->shown_first);
	}
}

static int is_trying(const struct repair *r)
{
	for (unsigned i = 0; i < BOXES_MOST; i++)
		if (r->attempts[i].busy)
			return 1;
	return 0;
}

static int is_searching(const struct repair *r)
{
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].flying)
			return 1;
	return 0;
}

/* Could a search still find one of a lower rank than the newest that passed? */
static int may_be_lower(const struct repair *r)
{
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].flying && r->searches[i].at < r->passed_all->rank)
			return 1;
	return r->queue && r->queue->rank < r->passed_all->rank;
}

/* Should it wait until every candidate was tried? Not if there is a doubt already. */
static int may_be_verified(const struct repair *r)
{
	return r->held != HELD_NONE && r->passed_all->acts[0] &&
	       agree_with(r, r->passed_all) == r->npassed && !r->given.cut && !r->ndropped &&
	       !r->nlies && !r->nlost;
}

static int is_enough(const struct repair *r)
{
	if (!r->npassed)
		return 0;
	if (r->built)
		return 1; /* edits of a lower rank are being tested already */
	if (r->npassed >= PASSED_MOST || (!r->queue && !is_searching(r)))
		return 1;
	if (may_be_verified(r))
		return loop_now_ms() - r->first_ms >= COMPLETE_MS;
	if (loop_now_ms() - r->first_ms >= WAIT_MS)
		return 1;
	if (!r->passed_all->acts[0]) /* there are no other edits to compare with */
		return !may_be_lower(r);
	return tried_so_far(r) - r->first_tried >= WAIT_TRIED;
}

/* ---- is it the only one? ---- */

static void overfit_done(struct overfit_check *d, const char *why)
{
	struct repair *r = loop_owner(d, struct repair, overfit);

	r->pinned = !*why;
	snprintf(r->doubted, sizeof(r->doubted), "%s", why);
	r->over = 1;
	timer_set(&r->turn, 0);
}

/* The search has ended. Either the overfit check starts now, or there is a doubt already. */
static void repair_conclude(struct repair *r)
{
	int complete = is_complete(r);

	for (unsigned i = 0; i < BOXES_MOST; i++)
		candidate_search_stop(&r->searches[i]);
	r->best = best_of(r);
	r->doubting = 1;
	if (json_array_size(r->examples) < OVERFIT_LEAST) {
		snprintf(r->doubted, sizeof(r->doubted), "there is one example only");
	} else if (agree_with(r, r->best) != r->npassed) {
		snprintf(r->doubted, sizeof(r->doubted),
			 "%u changes pass, and they do different things", r->npassed);
	} else if (!complete && tried_so_far(r) >= candidates_of(r)) {
		snprintf(r->doubted, sizeof(r->doubted),
			 "a candidate change could not be tried to its end");
	} else if (!complete) {
		snprintf(r->doubted, sizeof(r->doubted),
			 "%u of %u candidate changes were tried: another one may pass",
			 tried_so_far(r), candidates_of(r));
	} else if (!overfit_check_possible(doc_text(r->artifact, "language"))) {
		snprintf(r->doubted, sizeof(r->doubted),
			 "no other change that passes was searched for");
	} else {
		r->overfit.done = overfit_done;
		overfit_check_start(&r->overfit, &r->candidate_box, r->shown_first, &r->best->edit,
				    r->source, r->source_len);
		return;
	}
	repair_finish(r);
}

static void on_turn(struct timer *timer)
{
	struct repair *r = loop_owner(timer, struct repair, turn);

	if (r->doubting) {
		if (r->over && !r->pinned && !r->doubted[0])
			snprintf(r->doubted, sizeof(r->doubted),
				 "there was no time to look for others");
		if (r->over)
			repair_finish(r);
		return;
	}
	take_answers(r);
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].mute)
			candidate_search_stop(&r->searches[i]);
	if (!r->over && !is_enough(r))
		try_more(r);
	if (r->over) {
		snprintf(r->doubted, sizeof(r->doubted), "there was no time to look for others");
		repair_finish(r);
	} else if (!is_trying(r) && is_enough(r)) {
		repair_conclude(r);
	} else if (!is_trying(r) && !r->queue && !is_searching(r)) {
		if (!*r->why)
			snprintf(r->why, sizeof(r->why),
				 "no change in one place makes all examples pass");
		repair_finish(r);
	}
}

static void on_tick(struct timer *timer)
{
	struct repair *r = loop_owner(timer, struct repair, tick);
	uint64_t now = loop_now_ms();

	for (unsigned i = 0; i < BOXES_MOST; i++)
		if (r->attempts[i].busy)
			candidate_test_check(&r->attempts[i].candidate_test, now);
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].flying)
			batch_job_check(&r->searches[i].job, now);
	overfit_check(&r->overfit, now);
	if (now - r->began_ms > (r->built ? BUILD_MS : REPAIR_MS)) {
		snprintf(r->why, sizeof(r->why), "not found within %d s",
			 (r->built ? BUILD_MS : REPAIR_MS) / 1000);
		r->over = 1;
	}
	timer_set(&r->turn, 0); /* the time limit may have expired */
	timer_set(timer, TICK_MS);
}

/* It ends at its next step, with the reason. */
static void give_up(struct repair *r, const char *why)
{
	snprintf(r->why, sizeof(r->why), "%.150s", why);
	r->over = 1;
	timer_set(&r->turn, 0);
}

struct repair *repair_start(struct fleet *f, const char *team, const json_t *artifact,
			    const json_t *unseen, unsigned boxes, struct repair_owner *o)
{
	struct repair *r = calloc(1, sizeof(*r));
	struct err e;

	if (!r)
		abort();
	r->owner = o;
	r->artifact = json_deep_copy(artifact);
	r->examples = repair_examples(r->artifact);
	if (unseen && json_array_size(r->examples) < CANDIDATE_TEST_EXAMPLES) {
		json_array_append_new(r->examples, json_deep_copy(unseen));
		r->unseen = 1;
	}
	r->source = repair_source(r->artifact, &r->source_len);
	r->held = HELD_NONE;
	r->began_ms = loop_now_ms();
	timer_init(&r->turn, f->loop, on_turn);
	timer_init(&r->tick, f->loop, on_tick);
	timer_set(&r->tick, TICK_MS);
	if (!repair_possible(artifact)) {
		give_up(r, "there is no search for this language and these examples");
	} else if (candidate_box_init(&r->candidate_box, f, team, r->artifact, &e) < 0) {
		give_up(r, e.msg);
	} else {
		r->candidate_box.key = o->key;
		r->candidate_box.isolation = o->isolation;
		r->candidate_box.pipeline = o->pipeline;
		r->candidate_box.owner = o;
		r->boxes = candidate_box_boxes(&r->candidate_box,
					       boxes > BOXES_MOST ? BOXES_MOST : boxes);
		begin_attempt(r, &r->attempts[0], NULL, r->examples);
	}
	return r;
}
