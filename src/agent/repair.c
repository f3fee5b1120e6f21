/* repair.c - see repair.h.
 *
 *   original ──► trial: which examples fail? ──► one of three or more is held out
 *        ┌───────────────────────────────────────────┘
 *        ▼ shown only
 *   search boxes, side by side ──► edits, each with its rank ──► trial: shown, then held out ──► the best
 *
 * A box that searches has the program in it, so what it says is hearsay: an edit of the source that we
 * have, and nothing counts before a trial in another box has said so. The best is the one of the lowest
 * rank; for a box that might still find a lower one we wait a little, and not for ever. */
#include "agent/repair.h"
#include "agent/edit.h"
#include "agent/hearsay.h"
#include "agent/programs.h"
#include "agent/trial.h"
#include "base/buf.h"
#include "base/own.h"

#include <stdio.h>
#include <string.h>

enum {
	BOXES_MOST = 8,
	SEARCH_MS = 30000,   /* of one box */
	REPAIR_MS = 45000,   /* of everything */
	WAIT_MS = 500,	     /* for a lower rank, once there is one that passes */
	TICK_MS = 100,
	CANDIDATES = 3000,
	LIMIT_MS = 500,	  /* of a candidate, in a search box */
	LIES_MOST = 8,	  /* then nobody listens any more */
	QUEUE_MOST = 256, /* that wait for their trial; what comes then is dropped */
	SOURCE_MOST = 256 * 1024,
	HELD_NONE = TRIAL_EXAMPLES,
};

struct candidate {
	struct candidate *next; /* by rank */
	unsigned rank;
	struct edit edit;
};

struct search { /* one box that looks for edits */
	struct repair *repair;
	struct job job;
	int flying, mute; /* mute: it said what no search says */
	unsigned at;	  /* ranks before this one are tried */
	unsigned tried;
	struct buf line;
};

struct repair {
	struct fleet *fleet;
	struct repair_owner *owner;
	json_t *artifact, *examples, *shown_first; /* shown_first: those, then the held-out one */
	const char *source;			   /* the artifact's */
	size_t source_len;
	unsigned boxes, held; /* held: index, or HELD_NONE */
	struct search searches[BOXES_MOST];
	struct trial trial;
	enum { ASKED_NOTHING, ASKED_BEFORE, ASKED_CANDIDATE } asked;
	struct candidate *trying, *queue, *best;
	unsigned nqueue, candidates;
	unsigned nfound, npassed, nskipped, nlies;
	int answered, lost, over;
	uint64_t passed;
	uint64_t began_ms, best_ms;
	struct timer turn, tick;
	char why[160];
};

/* ---- what is to be done ---- */

static const char *source_of(const json_t *artifact, size_t *len)
{
	const json_t *text = json_object_get(json_object_get(artifact, "files"),
					     doc_text(artifact, "entry"));

	*len = json_string_length(text);
	return json_string_value(text);
}

/* All in one list: {call, expected}, {input, expected}, {command, path, content}. */
static json_t *examples_of(const json_t *artifact)
{
	const json_t *tests = json_object_get(artifact, "tests");
	json_t *all = json_array();

	json_array_extend(all, json_object_get(artifact, "examples"));
	for (size_t i = 0; i < json_array_size(tests); i++) {
		json_t *test = json_copy(json_array_get(tests, i));

		if (!*doc_text(test, "command") &&
		    !strcmp(doc_text(artifact, "language"), "python"))
			json_object_set_new(test, "command",
					    json_sprintf("python3 '%s'", doc_text(test, "path")));
		json_array_append_new(all, test);
	}
	return all;
}

int repair_possible(const json_t *artifact)
{
	const char *language = doc_text(artifact, "language");
	json_t *examples = examples_of(artifact);
	size_t n = 0;
	const char *source = source_of(artifact, &n);
	int fine = source && n && n <= SOURCE_MOST && strlen(source) == n &&
		   program_search(language) && trial_possible(language, examples);

	json_decref(examples);
	return fine;
}

/* ---- the end ---- */

static void free_candidate(struct candidate *c)
{
	if (c)
		edit_fini(&c->edit);
	free(c);
}

static void end_search(struct search *s)
{
	if (s->flying)
		job_fini(&s->job);
	s->flying = 0;
	buf_fini(&s->line);
}

void repair_cancel(struct repair *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < BOXES_MOST; i++)
		end_search(&r->searches[i]);
	trial_fini(&r->trial);
	while (r->queue) {
		struct candidate *c = r->queue;

		r->queue = c->next;
		free_candidate(c);
	}
	free_candidate(r->trying);
	free_candidate(r->best);
	timer_fini(&r->turn);
	timer_fini(&r->tick);
	json_decref(r->artifact);
	json_decref(r->examples);
	json_decref(r->shown_first);
	free(r);
}

static const char *label_of(const struct repair *r)
{
	size_t n = json_array_size(r->examples);

	if (!r->best)
		return "none";
	return r->held != HELD_NONE && n >= 3 ? "verified" : "plausible";
}

static json_t *found_json(const struct repair *r)
{
	json_t *found = json_pack("{s:s, s:i, s:i, s:i, s:i, s:b, s:I}", "label", label_of(r),
				  "candidates", (int)r->candidates, "passed", (int)r->npassed,
				  "skipped", (int)r->nskipped, "lies", (int)r->nlies,
				  "held_out_passed", r->best && r->held != HELD_NONE, "ms",
				  (json_int_t)(loop_now_ms() - r->began_ms));
	unsigned tried = 0;
	auto_buf struct buf diff = { 0 };

	for (unsigned i = 0; i < r->boxes; i++)
		tried += r->searches[i].tried;
	json_object_set_new(found, "tried", json_integer(tried));
	if (!r->best) {
		json_object_set_new(found, "why", json_string(r->why));
		return found;
	}
	edit_show(&r->best->edit, r->source, r->source_len, &diff);
	json_object_set_new(found, "rule", json_string(r->best->edit.rule));
	json_object_set_new(found, "rank", json_integer(r->best->rank));
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
	artifact_seal(child);
	return child;
}

static void finish(struct repair *r)
{
	struct repair_owner *o = r->owner;
	json_t *artifact = r->best ? artifact_of(r) : NULL, *found = found_json(r);

	repair_cancel(r);
	o->done(o, artifact, found);
}

/* ---- what boxes say ---- */

/* By rank; of two with the same the first one that came. */
static void enqueue(struct repair *r, unsigned rank, struct edit *take_edit)
{
	struct candidate **at = &r->queue, *c;

	if (r->nqueue >= QUEUE_MOST) {
		edit_fini(take_edit);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	while (*at && (*at)->rank <= rank)
		at = &(*at)->next;
	*c = (struct candidate){ .next = *at, .rank = rank, .edit = *take_edit };
	*at = c;
	r->nqueue++;
	r->nfound++;
}

static void hear(struct search *s, const char *line, size_t n)
{
	struct repair *r = s->repair;
	struct hearsay x;
	struct err e;

	if (hearsay_parse(&x, line, n, r->source, r->source_len, &e) < 0 ||
	    (x.kind == HEARSAY_FOUND && !x.has_edit)) {
		s->mute = 1;
		r->nlies++;
		return;
	}
	s->tried = x.tried ? x.tried : s->tried;
	if (x.kind == HEARSAY_CANDIDATES)
		r->candidates = x.n > r->candidates ? x.n : r->candidates;
	else if (x.kind == HEARSAY_AT)
		s->at = x.n;
	else if (x.kind == HEARSAY_FOUND)
		enqueue(r, x.n, &x.edit);
}

static void search_said(struct job *j, const char *what, unsigned stream, const char *bytes, size_t n)
{
	struct search *s = loop_owner(j, struct search, job);
	size_t from = 0;
	char *end;

	(void)what;
	if (stream != 0 || s->mute)
		return;
	buf_add(&s->line, bytes, n);
	while (!s->mute && (end = memchr(s->line.p + from, '\n', s->line.len - from))) {
		hear(s, s->line.p + from, (size_t)(end - s->line.p) - from);
		from = (size_t)(end - s->line.p) + 1;
	}
	memmove(s->line.p, s->line.p + from, s->line.len - from);
	buf_cut(&s->line, s->line.len - from);
	if (s->line.len > HEARSAY_LINE)
		s->mute = 1;
	timer_set(&s->repair->turn, 0);
}

static void search_done(struct job *j, const struct job_end *end)
{
	struct search *s = loop_owner(j, struct search, job);

	if (end->verdict == VERDICT_ERROR)
		snprintf(s->repair->why, sizeof(s->repair->why), "a search: %.120s", end->e.msg);
	end_search(s);
	timer_set(&s->repair->turn, 0);
}

/* ---- boxes that search ---- */

static json_t *ask_of(const struct repair *r, unsigned shard)
{
	json_t *shown = json_array();
	size_t n = json_array_size(r->shown_first) - (r->held != HELD_NONE);

	for (size_t i = 0; i < n; i++)
		json_array_append(shown, json_array_get(r->shown_first, i));
	return json_pack("{s:s, s:s, s:o, s:i, s:i, s:i, s:i}", "source", r->source, "name",
			 doc_text(r->artifact, "entry"), "examples", shown, "shard", (int)shard,
			 "shards", (int)r->boxes, "most", CANDIDATES, "limit_ms", LIMIT_MS);
}

static json_t *search_item(const struct repair *r, unsigned shard)
{
	const char *language = doc_text(r->artifact, "language");
	json_t *item = trial_item(r->artifact, SEARCH_MS), *ask = ask_of(r, shard),
	       *files = json_object_get(item, "files");
	auto_free char *text = json_dumps(ask, JSON_COMPACT);

	for (size_t i = 0; i < json_array_size(r->examples); i++) {
		const json_t *x = json_array_get(r->examples, i);

		if (*doc_text(x, "path") && i != r->held)
			json_object_set(files, doc_text(x, "path"), json_object_get(x, "content"));
	}
	json_decref(ask);
	json_object_set_new(item, "language", json_string(language));
	json_object_set_new(item, "code", json_string(program_search(language)));
	json_object_set_new(item, "entry", json_string(".search"));
	json_object_set_new(item, "stdin", json_string(text ? text : ""));
	return item;
}

static void start_search(struct repair *r, unsigned shard)
{
	struct search *s = &r->searches[shard];
	struct item_defaults d = { .max_output = 0, .limits = r->fleet->conf.limits };
	json_t *item = search_item(r, shard);
	auto_free char *line = json_dumps(item, JSON_COMPACT);
	struct err e;

	json_decref(item);
	s->repair = r;
	s->job = (struct job){ .done = search_done, .said = search_said, .fleet = r->fleet };
	if (!line || item_parse(&s->job.item, line, strlen(line), &d, &e) < 0) {
		snprintf(r->why, sizeof(r->why), "a search: %.120s", line ? e.msg : "too large");
		item_fini(&s->job.item);
		return;
	}
	s->flying = 1;
	job_start(&s->job, r->fleet);
}

/* ---- one thing after another ---- */

static void trial_done(struct trial *t, uint64_t passed, int lost)
{
	struct repair *r = loop_owner(t, struct repair, trial);

	r->answered = 1;
	r->passed = passed;
	r->lost = lost;
	timer_set(&r->turn, 0);
}

static uint64_t everything(const struct repair *r)
{
	return ~0ull >> (64 - json_array_size(r->examples));
}

/* Of three or more one is held out: one that fails, if another one fails as well, since it tells more. */
static void hold_out(struct repair *r, uint64_t passed)
{
	unsigned n = (unsigned)json_array_size(r->examples), failing = 0;

	for (unsigned i = 0; i < n; i++)
		failing += !(passed >> i & 1);
	r->held = HELD_NONE;
	for (unsigned i = 0; n >= 3 && i < n; i++)
		if ((passed >> i & 1) == (failing < 2))
			r->held = i;
	r->shown_first = json_array();
	for (unsigned i = 0; i < n; i++)
		if (i != r->held)
			json_array_append(r->shown_first, json_array_get(r->examples, i));
	if (r->held != HELD_NONE)
		json_array_append(r->shown_first, json_array_get(r->examples, r->held));
}

static void after_before(struct repair *r)
{
	if (r->lost) {
		snprintf(r->why, sizeof(r->why), "no box could be had");
		r->over = 1;
	} else if (r->passed == everything(r)) {
		snprintf(r->why, sizeof(r->why), "all examples pass: there is nothing to repair");
		r->over = 1;
	} else {
		hold_out(r, r->passed);
		for (unsigned i = 0; i < r->boxes; i++)
			start_search(r, i);
	}
}

static void after_candidate(struct repair *r)
{
	struct candidate *c = steal(&r->trying);
	uint64_t shown = everything(r) >> (r->held != HELD_NONE);

	if (r->passed == everything(r)) {
		r->npassed++;
		if (!r->best || c->rank < r->best->rank) {
			struct candidate *worse = r->best;

			if (!worse)
				r->best_ms = loop_now_ms();
			r->best = c;
			c = worse;
		}
	} else if ((r->passed & shown) == shown) {
		r->nskipped++;
	} else if (!r->lost && ++r->nlies == LIES_MOST) {
		snprintf(r->why, sizeof(r->why), "the search was tampered with");
		r->over = 1;
	}
	free_candidate(c);
}

static void take_answer(struct repair *r)
{
	int before = r->asked == ASKED_BEFORE;

	r->answered = 0;
	r->asked = ASKED_NOTHING;
	if (before)
		after_before(r);
	else
		after_candidate(r);
}

static void try_next(struct repair *r)
{
	struct candidate *c = r->queue;
	struct buf text = { 0 };

	r->queue = c->next;
	r->nqueue--;
	r->trying = c;
	r->asked = ASKED_CANDIDATE;
	edit_apply(&c->edit, r->source, r->source_len, &text);
	r->trial.hurried = 1;
	trial_start(&r->trial, r->fleet, r->artifact, r->shown_first, buf_steal(&text));
}

/* Could a box still find one of a lower rank than the best? */
static int may_improve(const struct repair *r)
{
	if (loop_now_ms() - r->best_ms >= WAIT_MS)
		return 0;
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].flying && r->searches[i].at < r->best->rank)
			return 1;
	return r->queue && r->queue->rank < r->best->rank;
}

static int is_searching(const struct repair *r)
{
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].flying)
			return 1;
	return 0;
}

static void on_turn(struct timer *timer)
{
	struct repair *r = loop_owner(timer, struct repair, turn);

	if (r->answered)
		take_answer(r);
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].mute)
			end_search(&r->searches[i]);
	if (r->over || (r->best && r->asked == ASKED_NOTHING && !may_improve(r))) {
		finish(r);
	} else if (r->asked == ASKED_NOTHING && r->queue) {
		try_next(r);
	} else if (r->asked == ASKED_NOTHING && !is_searching(r)) {
		if (!*r->why)
			snprintf(r->why, sizeof(r->why), "no change in one place makes all examples pass");
		finish(r);
	}
}

static void on_tick(struct timer *timer)
{
	struct repair *r = loop_owner(timer, struct repair, tick);
	uint64_t now = loop_now_ms();

	trial_check(&r->trial, now);
	for (unsigned i = 0; i < r->boxes; i++)
		if (r->searches[i].flying)
			job_check(&r->searches[i].job, now);
	if (now - r->began_ms > REPAIR_MS) {
		snprintf(r->why, sizeof(r->why), "not found within %d s", REPAIR_MS / 1000);
		r->over = 1;
	}
	timer_set(&r->turn, 0); /* perhaps we have waited long enough */
	timer_set(timer, TICK_MS);
}

struct repair *repair_start(struct fleet *f, const char *team, const json_t *artifact,
			    unsigned boxes, struct repair_owner *o)
{
	struct repair *r = calloc(1, sizeof(*r));

	(void)team;
	if (!r)
		abort();
	r->fleet = f;
	r->owner = o;
	r->artifact = json_deep_copy(artifact);
	r->examples = examples_of(r->artifact);
	r->source = source_of(r->artifact, &r->source_len);
	r->boxes = boxes < 1 ? 1 : boxes > BOXES_MOST ? BOXES_MOST : boxes;
	r->held = HELD_NONE;
	r->began_ms = loop_now_ms();
	timer_init(&r->turn, f->loop, on_turn);
	timer_init(&r->tick, f->loop, on_tick);
	timer_set(&r->tick, TICK_MS);
	if (!repair_possible(artifact)) {
		snprintf(r->why, sizeof(r->why), "there is no search for this language and these examples");
		r->boxes = 0;
		r->over = 1;
		timer_set(&r->turn, 0);
		return r;
	}
	r->trial.done = trial_done;
	r->asked = ASKED_BEFORE;
	trial_start(&r->trial, f, r->artifact, r->examples, strdup(r->source));
	return r;
}
