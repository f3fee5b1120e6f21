/* template_match.c - see template_match.h. Every library task explains some words of a text. The
 * task that explains most is chosen if it explains nearly all words, all its required words are
 * present, and no other task explains as much. A wrong program is worse than none. */
#include "plan/template_match.h"
#include "document/document.h"
#include "plan/slot_fill.h"
#include "plan/detect_language.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <stdlib.h>
#include <string.h>

static const double CLAIM = 0.77;                 /* share of the weight that must be explained */
static const double STRANGE = 2.5;                /* the weight of a word that no task has */
static const double VALUE = 2.0;                  /* of a number, a file, a string without a slot */
static const double TURN = 4.0;                   /* of a word that changes the task */
static const double THING = 0.4;                  /* of a word without information */
static const double ASSUMED = 0.3, MISSING = 0.5; /* penalty of an unfilled slot */
static const double NEEDED = 1.6;                 /* factor of a required word */

/* Stems whose weight is not given by their frequency. */
struct match_format {
	const char *words;
	char stems[160][WORD_STEM];
	unsigned n;
};

/* Requests without information about the program. */
static struct match_format prose = {
	.words =
		"a an the of in to for from with by is are be and or on at as it its that this these those "
		"which if then into using use given give write create make build implement code program "
		"programme script function method tool app small simple short please can could should would "
		"you i we me my your need want like new run show print output return display tell say what "
		"how do does find get compute calculate determine perform also some so will when whose where "
		"user help let s t language quick quickly just there their them us here but must have has had "
		"was were been being while via per about such check whether result implementation generate example demo"
};
/* Common nouns. */
static struct match_format things = {
	.words = "list array numbers number integer string text word element item value "
		 "sequence line tuple two data input specified certain all"
};
/* Words that change the task. */
static struct match_format turns = {
	.words =
		"co first last second third even odd negative positive non not no without except largest "
		"smallest maximum minimum max min longest shortest greatest least sum product difference count "
		"frequency nth kth consecutive adjacent prime sorted unique distinct common reverse only "
		"between cube square root digits bits binary next previous nearest middle right left "
		"inverse neighbors lambda regex recursion matrix dictionary nested three length height"
};

static int is_of(struct match_format *m, const char *stem)
{
	if (!m->n) {
		auto_words struct words w = { 0 };

		words_read(&w, m->words, strlen(m->words));
		for (; m->n < w.n && m->n < ARRAY_LEN(m->stems); m->n++)
			strcpy(m->stems[m->n], w.all[m->n].stem);
	}
	for (unsigned i = 0; i < m->n; i++)
		if (!strcmp(m->stems[i], stem))
			return 1;
	return 0;
}

/* ---- the text, looked at once ---- */

static void *match_zeroed(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		abort();
	return p;
}

static json_t *all_examples(const json_t *task, const struct task_examples *shown)
{
	json_t *out = json_array();

	if (json_is_array(json_object_get(task, "examples")))
		json_array_extend(out, json_object_get(task, "examples"));
	json_array_extend(out, shown->examples);
	return out;
}

static void look_at_examples(struct task_text *k)
{
	size_t i, n;
	json_t *one;

	json_array_foreach(k->examples, i, one)
	{
		const char *call = doc_text(one, "call");

		n = task_examples_callee(call);
		k->inputs |= json_object_get(one, "input") != NULL;
		if (*k->callee || !n || n >= sizeof(k->callee))
			continue;
		memcpy(k->callee, call, n);
		k->callee[n] = 0;
		k->call = call;
	}
}

static double match_weight(const struct task_text *k, unsigned i)
{
	unsigned id = k->words.all[i].id, spread = id ? library_spread(id) : 0;

	return spread ? 1.0 + 2.0 / spread : STRANGE;
}

static double match_strangeness(const struct task_text *k, unsigned i)
{
	const struct word *w = &k->words.all[i];

	if (w->kind == WORD_NUMBER && w->whole && (w->integer == 0 || w->integer == 1) && i &&
	    (word_is(w - 1, "from") || word_is(w - 1, "between")))
		return THING; /* start of the count */
	if (w->kind != WORD_PLAIN)
		return VALUE;
	return k->prose[i]               ? 0
	       : is_of(&turns, w->stem)  ? TURN
	       : is_of(&things, w->stem) ? THING
					 : match_weight(k, i);
}

static void number_words(struct task_text *k)
{
	library_count(); /* the vocabulary belongs to the library */
	for (unsigned i = 0; i < k->words.n; i++) {
		struct word *w = &k->words.all[i];

		w->id = library_word(w);
		k->prose[i] = w->kind == WORD_PLAIN && is_of(&prose, w->stem);
		k->strange[i] = match_strangeness(k, i);
		if (w->kind != WORD_MARK)
			k->row[k->nrow++] = i;
	}
}

void task_text_read(struct task_text *k, const json_t *task)
{
	const json_t *text = json_object_get(task, "task");

	*k = (struct task_text){ .task = task };
	task_examples_read(&k->shown, json_is_string(text) ? json_string_value(text) : "",
			   json_string_length(text));
	words_read(&k->words, k->shown.rest, k->shown.len);
	k->spoken = match_zeroed(k->words.n, 1);
	k->prose = match_zeroed(k->words.n, 1);
	k->strange = match_zeroed(k->words.n, sizeof(*k->strange));
	k->row = match_zeroed(k->words.n, sizeof(*k->row));
	number_words(k);
	k->lang = detect_language(&k->words, k->spoken);
	if (*doc_text(task, "language")) {
		char name[LANG_NAME + 1];

		lang_pin(doc_text(task, "language"), name);
		k->lang = lang_named(name);
		k->unknown = !k->lang;
	}
	k->examples = all_examples(task, &k->shown);
	look_at_examples(k);
}

int task_text_matters(const struct task_text *k, unsigned word)
{
	return k->strange[word] > THING;
}

void task_text_fini(struct task_text *k)
{
	task_examples_fini(&k->shown);
	words_fini(&k->words);
	free(k->spoken);
	free(k->prose);
	free(k->strange);
	free(k->row);
	json_decref(k->examples);
}

/* ---- how well a task explains it ---- */

/* Marks every occurrence of the phrase as seen; returns their number. */
unsigned task_text_has(const struct task_text *k, const struct phrase *p, unsigned char *seen,
		       int how)
{
	unsigned times = 0;

	for (unsigned i = 0; i + p->n <= k->nrow; i++) {
		unsigned n = 0;

		while (n < p->n && k->words.all[k->row[i + n]].id == p->ids[n])
			n++;
		if (n < p->n)
			continue;
		times++;
		for (n = 0; seen && n < p->n; n++)
			if (seen[k->row[i + n]] < how)
				seen[k->row[i + n]] = (unsigned char)how;
	}
	return times;
}

unsigned task_text_has_any(const struct task_text *k, const struct phrases *all,
			   unsigned char *seen, int how)
{
	unsigned times = 0;

	for (unsigned i = 0; i < all->n; i++)
		times += task_text_has(k, &all->all[i], seen, how);
	return times;
}

enum { SEEN = 1, SEEN_NEEDED = 2 };

/* Of two tasks with the same score the one with fewer defaults is chosen. */
static double match_guesses(const struct template_match *f, const json_t *answers)
{
	double sum = 0;

	for (unsigned i = 0; i < f->task->nslots; i++) {
		const struct library_slot *s = &f->task->slots[i];

		if (!json_object_get(f->slots, s->name) && !json_object_get(answers, s->name))
			sum += s->otherwise ? ASSUMED : MISSING;
	}
	return sum;
}

int template_match_complete(const struct template_match *f)
{
	return f->groups == f->task->nneeds && !f->never;
}

/* Words of values count a little. */
static void match_weigh(const struct task_text *k, struct template_match *f)
{
	unsigned char *used = match_zeroed(k->words.n, 1);

	memcpy(used, k->spoken, k->words.n); /* "in JavaScript" is no value */
	f->slots = template_match_complete(f) ? slot_fill_find(f->task, &k->words, used)
					      : json_object();
	for (unsigned i = 0; i < k->words.n; i++) {
		const struct word *w = &k->words.all[i];
		double heavy = match_weight(k, i);

		if (k->spoken[i] || w->kind == WORD_MARK)
			continue;
		if (used[i])
			f->explained += 0.5, f->seen[i] |= SEEN;
		else if (f->seen[i] == SEEN_NEEDED)
			f->explained += NEEDED * heavy;
		else if (f->seen[i])
			f->explained += k->prose[i] ? 0 : heavy;
		else
			f->strange += k->strange[i];
	}
	free(used);
}

void template_match_make(const struct task_text *k, const struct library_task *t,
			 struct template_match *f)
{
	*f = (struct template_match){ .task = t, .seen = match_zeroed(k->words.n, 1) };
	for (unsigned i = 0; i < t->nneeds; i++)
		f->groups += task_text_has_any(k, &t->needs[i], f->seen, SEEN_NEEDED) > 0;
	f->never = task_text_has_any(k, &t->never, NULL, 0);
	if (!f->groups)
		return;
	task_text_has_any(k, &t->words, f->seen, SEEN);
	task_text_has_any(k, &t->said, f->seen, SEEN);
	for (unsigned i = 0; i < t->nslots; i++)
		task_text_has_any(k, &t->slots[i].hint, f->seen, SEEN);
	match_weigh(k, f);
	f->score = f->explained - 0.5 * f->strange -
		   match_guesses(f, json_object_get(k->task, "answers"));
	f->program =
		k->lang ? library_program(t, k->lang) : library_program(t, lang_named("python"));
	if (!k->lang && !f->program)
		f->program = &t->programs[0];
}

void template_match_fini(struct template_match *f)
{
	json_decref(f->slots);
	free(f->seen);
}

double template_match_coverage(const struct template_match *f)
{
	return f->explained > 0 ? f->explained / (f->explained + f->strange) : 0;
}

int template_match_has_program(const struct task_text *k, const struct template_match *f)
{
	const struct library_program *p = f->program;

	if (!p || (k->inputs && !f->task->reads))
		return 0;
	if (!*k->callee)
		return p->text != NULL;
	return p->function && task_examples_takes(k->call, p->takes ? p->takes : "");
}

int template_match_claims(const struct task_text *k, const struct template_match *f)
{
	return template_match_complete(f) && template_match_coverage(f) >= CLAIM &&
	       template_match_has_program(k, f);
}

/* First the tasks that claim the text, best first; then similar tasks. */
static int comes_first(const struct task_text *k, const struct template_match *a,
		       const struct template_match *b)
{
	int one = template_match_claims(k, a), other = template_match_claims(k, b);
	double near_a, near_b;

	if (one != other)
		return one > other;
	if (one)
		return a->score > b->score;
	near_a =
		(double)a->groups / a->task->nneeds - 0.5 * !!a->never + template_match_coverage(a);
	near_b =
		(double)b->groups / b->task->nneeds - 0.5 * !!b->never + template_match_coverage(b);
	return near_a > near_b;
}

/* The best few, in order; returns their number. */
unsigned template_match_best(const struct task_text *k,
			     struct template_match best[TEMPLATE_MATCH_NEAREST])
{
	unsigned n = 0;

	for (unsigned i = 0; i < library_count(); i++) {
		struct template_match f;
		unsigned at;

		template_match_make(k, library_at(i), &f);
		for (at = n; at > 0 && f.groups && comes_first(k, &f, &best[at - 1]); at--)
			;
		if (!f.groups || at == TEMPLATE_MATCH_NEAREST) {
			template_match_fini(&f);
			continue;
		}
		if (n == TEMPLATE_MATCH_NEAREST)
			template_match_fini(&best[--n]);
		memmove(&best[at + 1], &best[at], sizeof(f) * (n - at));
		best[at] = f;
		n++;
	}
	return n;
}
