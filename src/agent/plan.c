/* plan.c - see plan.h.
 *
 * Every task of the library explains some words of a text and leaves others unexplained. The one that
 * explains most is the plan, if it explains nearly all, if all that it needs is there, and if no other
 * explains as much; else we say what is missing. A wrong program is worse than none. */
#include "agent/plan.h"
#include "agent/examples.h"
#include "agent/library.h"
#include "agent/slots.h"
#include "agent/series.h"
#include "agent/tongue.h"
#include "base/buf.h"
#include "base/own.h"
#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NEAREST = 3, UNKNOWN_TOLD = 6 };

static const double CLAIM = 0.75;  /* of what is said, by weight, must be explained */
static const double APART = 0.04;  /* two tasks closer than this are one question */
static const double STRANGE = 2.5; /* the weight of a word that no task knows */
static const double VALUE = 2.0;   /* of a number, a file, a text that no slot takes */
static const double TURN = 4.0;    /* of one that makes it another task */
static const double THING = 0.4;   /* of one that says what everybody knows */
static const double ASSUMED = 0.3,
		    MISSING = 0.5; /* what a slot costs that the text does not fill */
static const double NEEDED = 1.6;  /* a needed word counts that much more */

/* Families of words that weigh something else than their rareness says. */
struct manner {
	const char *words;
	char stems[160][WORD_STEM];
	unsigned n;
};

/* What is wanted of us, and nothing about what it is to do. */
static struct manner prose = {
	.words =
		"a an the of in to for from with by is are be and or on at as it its that this these those "
		"which if then into using use given give write create make build implement code program "
		"programme script function method tool app small simple short please can could should would "
		"you i we me my your need want like new run show print output return display tell say what "
		"how do does find get compute calculate determine perform also some so will when whose where "
		"user help let s t language quick quickly just there their them us here but must have has had "
		"was were been being while via per about such check whether result implementation generate example demo"
};
/* What a thing is, mostly said anyway. */
static struct manner things = {
	.words = "list array numbers number integer string text word element item value "
		 "sequence line tuple two data input specified certain all"
};
/* Left out, it is another task. */
static struct manner turns = {
	.words =
		"first last second third even odd negative positive non not no without except largest "
		"smallest maximum minimum max min longest shortest greatest least sum product difference count "
		"frequency nth kth consecutive adjacent prime sorted unique distinct common reverse only "
		"between cube square root digits bits binary next previous nearest middle right left "
		"inverse neighbors lambda regex recursion matrix dictionary nested three length height"
};

static int is_of(struct manner *m, const char *stem)
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

struct look {
	const json_t *task;
	struct shown shown;
	struct words words;
	unsigned char *spoken; /* per word: speaks of the language only */
	unsigned char *prose;  /* per word: says nothing about the task */
	double *strange;       /* per word: how much it weighs where it is not explained */
	unsigned *row;         /* indices of the words that are no marks */
	unsigned nrow;
	const struct lang *lang; /* NULL: nobody said */
	int unknown;             /* somebody did, and there is none of that name */
	json_t *examples;
	char callee[64]; /* what the examples call; "": nothing */
	const char *call;
};

static void *zeroed(size_t n, size_t size)
{
	void *p = calloc(n ? n : 1, size);

	if (!p)
		abort();
	return p;
}

static json_t *all_examples(const json_t *task, const struct shown *shown)
{
	json_t *out = json_array();

	if (json_is_array(json_object_get(task, "examples")))
		json_array_extend(out, json_object_get(task, "examples"));
	json_array_extend(out, shown->examples);
	return out;
}

static void find_callee(struct look *k)
{
	size_t i, n;
	json_t *one;

	json_array_foreach(k->examples, i, one)
	{
		const char *call = doc_text(one, "call");

		n = shown_callee(call);
		if (n && n < sizeof(k->callee)) {
			memcpy(k->callee, call, n);
			k->callee[n] = 0;
			k->call = call;
			return;
		}
	}
}

static double weight(const struct look *k, unsigned i)
{
	unsigned id = k->words.all[i].id, spread = id ? library_spread(id) : 0;

	return spread ? 1.0 + 2.0 / spread : STRANGE;
}

static double strangeness(const struct look *k, unsigned i)
{
	const struct word *w = &k->words.all[i];

	if (w->kind == WORD_NUMBER && w->whole && (w->integer == 0 || w->integer == 1) && i &&
	    (word_is(w - 1, "from") || word_is(w - 1, "between")))
		return THING; /* where counting begins */
	if (w->kind != WORD_PLAIN)
		return VALUE;
	return k->prose[i]               ? 0
	       : is_of(&turns, w->stem)  ? TURN
	       : is_of(&things, w->stem) ? THING
					 : weight(k, i);
}

static void look_at(struct look *k, const json_t *task, const char *text, size_t len)
{
	*k = (struct look){ .task = task };
	shown_read(&k->shown, text, len);
	words_read(&k->words, k->shown.rest, k->shown.len);
	k->spoken = zeroed(k->words.n, 1);
	k->prose = zeroed(k->words.n, 1);
	k->strange = zeroed(k->words.n, sizeof(*k->strange));
	k->row = zeroed(k->words.n, sizeof(*k->row));
	library_count(); /* the vocabulary is the library's */
	for (unsigned i = 0; i < k->words.n; i++) {
		k->words.all[i].id = library_word(&k->words.all[i]);
		k->prose[i] =
			k->words.all[i].kind == WORD_PLAIN && is_of(&prose, k->words.all[i].stem);
		k->strange[i] = strangeness(k, i);
		if (k->words.all[i].kind != WORD_MARK)
			k->row[k->nrow++] = i;
	}
	k->lang = tongue_of(&k->words, k->spoken);
	if (*doc_text(task, "language")) {
		char name[LANG_NAME + 1];

		lang_pin(doc_text(task, "language"), name);
		k->lang = lang_named(name);
		k->unknown = !k->lang;
	}
	k->examples = all_examples(task, &k->shown);
	find_callee(k);
}

static void look_away(struct look *k)
{
	shown_fini(&k->shown);
	words_fini(&k->words);
	free(k->spoken);
	free(k->prose);
	free(k->strange);
	free(k->row);
	json_decref(k->examples);
}

/* ---- how well a task explains it ---- */

struct fit {
	const struct library_task *task;
	const struct library_program *program;
	json_t *slots; /* that the text fills */
	unsigned groups, never;
	double explained, strange, score;
	unsigned char *seen; /* per word */
};

/* Marks every place of the phrase as seen; how often it is there. */
static unsigned see(const struct look *k, const struct phrase *p, unsigned char *seen, int how)
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

static unsigned see_any(const struct look *k, const struct phrases *all, unsigned char *seen,
			int how)
{
	unsigned times = 0;

	for (unsigned i = 0; i < all->n; i++)
		times += see(k, &all->all[i], seen, how);
	return times;
}

enum { SEEN = 1, SEEN_NEEDED = 2 };

/* Of two tasks that explain as much the one is meant that has to guess less. */
static double guesses(const struct fit *f, const json_t *answers)
{
	double sum = 0;

	for (unsigned i = 0; i < f->task->nslots; i++) {
		const struct library_slot *s = &f->task->slots[i];

		if (!json_object_get(f->slots, s->name) && !json_object_get(answers, s->name))
			sum += s->otherwise ? ASSUMED : MISSING;
	}
	return sum;
}

static int complete(const struct fit *f)
{
	return f->groups == f->task->nneeds && !f->never;
}

/* Words of values count a little: they are what the slots are there for. */
static void weigh(const struct look *k, struct fit *f)
{
	unsigned char *used = zeroed(k->words.n, 1);

	memcpy(used, k->spoken, k->words.n); /* "in JavaScript" is nobody's value */
	f->slots = complete(f) ? slots_find(f->task, &k->words, used) : json_object();
	for (unsigned i = 0; i < k->words.n; i++) {
		const struct word *w = &k->words.all[i];
		double heavy = weight(k, i);

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

static void fit(const struct look *k, const struct library_task *t, struct fit *f)
{
	*f = (struct fit){ .task = t, .seen = zeroed(k->words.n, 1) };
	for (unsigned i = 0; i < t->nneeds; i++)
		f->groups += see_any(k, &t->needs[i], f->seen, SEEN_NEEDED) > 0;
	f->never = see_any(k, &t->never, NULL, 0);
	if (!f->groups)
		return;
	see_any(k, &t->words, f->seen, SEEN);
	see_any(k, &t->said, f->seen, SEEN);
	for (unsigned i = 0; i < t->nslots; i++)
		see_any(k, &t->slots[i].hint, f->seen, SEEN);
	weigh(k, f);
	f->score =
		f->explained - 0.5 * f->strange - guesses(f, json_object_get(k->task, "answers"));
	f->program =
		k->lang ? library_program(t, k->lang) : library_program(t, lang_named("python"));
	if (!k->lang && !f->program)
		f->program = &t->programs[0];
}

static void fit_fini(struct fit *f)
{
	json_decref(f->slots);
	free(f->seen);
}

static double coverage(const struct fit *f)
{
	return f->explained > 0 ? f->explained / (f->explained + f->strange) : 0;
}

/* Does it have what is asked for: a program in this language, a function where one is called? */
static int has_program(const struct look *k, const struct fit *f)
{
	const struct library_program *p = f->program;

	if (!p || !*k->callee)
		return p && p->text;
	return p->function && shown_takes(k->call, p->takes ? p->takes : "");
}

static int claims(const struct look *k, const struct fit *f)
{
	return complete(f) && coverage(f) >= CLAIM && has_program(k, f);
}

/* Those that claim the text first, best first; then those that come near. */
static int rank(const struct look *k, const struct fit *a, const struct fit *b)
{
	int one = claims(k, a), other = claims(k, b);
	double near_a, near_b;

	if (one != other)
		return one > other;
	if (one)
		return a->score > b->score;
	near_a = (double)a->groups / a->task->nneeds - 0.5 * !!a->never + coverage(a);
	near_b = (double)b->groups / b->task->nneeds - 0.5 * !!b->never + coverage(b);
	return near_a > near_b;
}

/* The best few, in order; returns how many there are. */
static unsigned rank_all(const struct look *k, struct fit best[NEAREST])
{
	unsigned n = 0;

	for (unsigned i = 0; i < library_count(); i++) {
		struct fit f;
		unsigned at;

		fit(k, library_at(i), &f);
		for (at = n; at > 0 && f.groups && rank(k, &f, &best[at - 1]); at--)
			;
		if (!f.groups || at == NEAREST) {
			fit_fini(&f);
			continue;
		}
		if (n == NEAREST)
			fit_fini(&best[--n]);
		memmove(&best[at + 1], &best[at], sizeof(f) * (n - at));
		best[at] = f;
		n++;
	}
	return n;
}

/* ---- a plan, member by member ---- */

static void ask(json_t *plan, const char *name, const char *question, const char *type)
{
	json_array_append_new(json_object_get(plan, "inputs_needed"),
			      json_pack("{s:s, s:s, s:s}", "name", name, "question", question,
					"type", type));
}

__attribute__((format(printf, 2, 3))) static void assume(json_t *plan, const char *fmt, ...)
{
	auto_buf struct buf text = { 0 };
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&text, fmt, ap);
	va_end(ap);
	json_array_append_new(json_object_get(plan, "assumptions"),
			      json_stringn(buf_str(&text), text.len));
}

static void check(json_t *plan, const char *kind, const char *arg)
{
	json_array_append_new(json_object_get(plan, "checks"),
			      json_pack("{s:s, s:s}", "kind", kind, "arg", arg));
}

static void need_package(json_t *plan, const char *manager, const char *name, const char *reason)
{
	json_array_append_new(json_object_get(plan, "packages"),
			      json_pack("{s:s, s:s, s:s}", "manager", manager, "name", name,
					"reason", reason));
}

static void take_packages(json_t *plan, const json_t *task)
{
	json_t *packages = json_object_get(task, "packages"), *names, *name;
	const char *manager;
	size_t i;

	json_object_foreach(packages, manager, names)
		json_array_foreach(names, i, name) if (json_is_string(name))
			need_package(plan, manager, json_string_value(name), "the task says so");
}

static void carry(json_t *plan, const json_t *task, const char *name, json_t *take_otherwise)
{
	json_t *v = json_object_get(task, name);

	json_object_set_new(plan, name, v ? json_deep_copy(v) : json_incref(take_otherwise));
	json_decref(take_otherwise);
}

/* What every plan has, whoever makes it. */
static json_t *begin(const struct look *k, const struct lang *l, const char *source)
{
	json_t *plan = json_object(), *text = json_object_get(k->task, "task");

	json_object_set_new(plan, "schema", json_string(AGENT_PLAN));
	json_object_set_new(plan, "language", json_string(l->name));
	json_object_set_new(plan, "task", text ? json_incref(text) : json_string(""));
	json_object_set_new(plan, "template", json_null());
	json_object_set_new(plan, "slots", json_object());
	json_object_set_new(plan, "steps", json_array());
	json_object_set_new(plan, "packages", json_array());
	carry(plan, k->task, "files", json_object());
	json_object_set_new(plan, "entry", json_string(l->file));
	carry(plan, k->task, "stdin", json_string(""));
	json_object_set_new(plan, "examples", json_deep_copy(k->examples));
	carry(plan, k->task, "tests", json_array());
	json_object_set_new(plan, "checks", json_array());
	carry(plan, k->task, "limits", json_object());
	carry(plan, k->task, "network", json_false());
	json_object_set_new(plan, "inputs_needed", json_array());
	json_object_set_new(plan, "assumptions", json_array());
	json_object_set_new(plan, "confidence", json_real(0));
	json_object_set_new(plan, "source", json_string(source));
	take_packages(plan, k->task);
	return plan;
}

static void add_step(json_t *plan, const char *goal)
{
	json_t *steps = json_object_get(plan, "steps");

	json_array_append_new(steps,
			      json_pack("{s:I, s:s}", "id", (json_int_t)json_array_size(steps) + 1,
					"goal", goal));
}

/* Two digits: more would promise what is not known. */
static void set_confidence(json_t *plan, double v)
{
	json_object_set_new(plan, "confidence", json_real((double)(int)(v * 100 + 0.5) / 100));
}

/* ---- a plan by the library ---- */

static void fill_slot(json_t *plan, const struct fit *f, const struct library_slot *s,
		      const json_t *answers)
{
	json_t *slots = json_object_get(plan, "slots"), *answer = json_object_get(answers, s->name);
	json_t *value = NULL;

	if (json_is_string(answer))
		value = slot_answer(s, json_string_value(answer), json_string_length(answer));
	if (!value && json_object_get(f->slots, s->name))
		value = json_incref(json_object_get(f->slots, s->name));
	if (!value && s->otherwise && !answer) {
		auto_free char *text = json_dumps(s->otherwise, JSON_ENCODE_ANY | JSON_COMPACT);

		assume(plan, "%s: %.200s, as the task does not say", s->name, text ? text : "");
		value = json_deep_copy(s->otherwise);
	}
	if (value)
		json_object_set_new(slots, s->name, value);
	else
		ask(plan, s->name, s->question ? s->question : s->name, slot_type_name(s->type));
}

static void add_program_packages(json_t *plan, const struct library_program *p)
{
	size_t i;
	json_t *one;

	json_array_foreach(p->packages, i, one)
	{
		const char *text = json_string_value(one), *name = strchr(text, ':');
		char manager[32];

		if (!name || name == text || name - text >= (ptrdiff_t)sizeof(manager))
			continue;
		memcpy(manager, text, (size_t)(name - text));
		manager[name - text] = 0;
		need_package(plan, manager, name + 1, "the program uses it");
	}
}

/* Files that the task brings are its own; ours are there for those it does not. */
static void add_files(json_t *plan, const struct library_task *t)
{
	json_t *files = json_object_get(plan, "files"), *text;
	const char *path;

	json_object_foreach(t->files, path, text) if (!json_object_get(files, path))
	{
		json_object_set(files, path, text);
		assume(plan, "%.100s: an example of ours, as the task brings none", path);
	}
}

static json_t *by_library(const struct look *k, const struct fit *f, double confidence)
{
	const struct library_task *t = f->task;
	json_t *plan = begin(k, f->program->lang, "library"), *template;

	template = json_sprintf("%s@%u", t->id, t->version);
	json_object_set_new(plan, "template", template);
	json_object_set_new(plan, "entry", json_string(f->program->file));
	add_step(plan, t->says);
	if (!k->lang)
		assume(plan, "language: %s, as the task names none", f->program->lang->name);
	for (unsigned i = 0; i < t->nslots; i++)
		fill_slot(plan, f, &t->slots[i], json_object_get(k->task, "answers"));
	if (*k->callee)
		json_object_set_new(json_object_get(plan, "slots"), "function",
				    json_string(k->callee));
	add_program_packages(plan, f->program);
	add_files(plan, t);
	if (t->network && !json_object_get(k->task, "network"))
		json_object_set_new(plan, "network", json_true());
	check(plan, "exit", "0");
	if (t->output && !*k->callee)
		check(plan, "stdout_regex", t->output);
	set_confidence(plan, confidence);
	return plan;
}

/* ---- no plan ---- */

static void say_group(struct buf *out, const struct phrases *any)
{
	for (unsigned i = 0; i < any->n && i < 4; i++)
		buf_printf(out, "%s%s", i ? " or " : "", any->all[i].text);
}

static json_t *what_is_missing(const struct look *k, const struct fit *f)
{
	json_t *out = json_array();
	auto_buf struct buf line = { 0 };

	for (unsigned i = 0; i < f->task->nneeds; i++) {
		if (see_any(k, &f->task->needs[i], NULL, 0))
			continue;
		buf_cut(&line, 0);
		buf_puts(&line, "the word ");
		say_group(&line, &f->task->needs[i]);
		json_array_append_new(out, json_stringn(buf_str(&line), line.len));
	}
	for (unsigned i = 0; i < f->task->never.n; i++)
		if (see(k, &f->task->never.all[i], NULL, 0))
			json_array_append_new(
				out, json_sprintf("it would have to be without the word %s",
						  f->task->never.all[i].text));
	if (!f->program)
		json_array_append_new(out, json_sprintf("a program in %s",
							k->lang ? k->lang->title : "it"));
	else if (!has_program(k, f))
		json_array_append_new(out,
				      json_string("a form of it as a function that can be called"));
	return out;
}

static void say_strange(const struct look *k, const struct fit *f, struct buf *why)
{
	unsigned told = 0;

	for (unsigned i = 0; i < k->words.n && told < UNKNOWN_TOLD; i++) {
		const struct word *w = &k->words.all[i];

		if (w->kind == WORD_MARK || k->spoken[i] || k->prose[i] || (f && f->seen[i]))
			continue;
		buf_printf(why, "%s%.*s", told++ ? ", " : "", (int)(w->n < 40 ? w->n : 40), w->p);
	}
	if (!told)
		buf_puts(why, "nothing that tells what is to be done");
}

static json_t *not_understood(const struct look *k, const struct fit *best, unsigned n)
{
	const struct lang *l = k->lang ? k->lang : lang_named("python");
	json_t *plan = begin(k, l, "library"), *nearest = json_array();
	auto_buf struct buf why = { 0 };

	if (k->unknown)
		buf_printf(&why, "%.40s is no language that is known here; ",
			   doc_text(k->task, "language"));
	buf_puts(&why, n && complete(&best[0]) && has_program(k, &best[0])
			       ? "the library has nothing that explains: "
			       : "the library knows no such task; not known here: ");
	say_strange(k, n ? &best[0] : NULL, &why);
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(nearest, json_pack("{s:o, s:s, s:o}", "template",
							 json_sprintf("%s@%u", best[i].task->id,
								      best[i].task->version),
							 "says", best[i].task->says, "missing",
							 what_is_missing(k, &best[i])));
	/* A cut may have split a character. */
	json_object_set_new(plan, "not_understood",
			    json_pack("{s:o, s:o}", "why",
				      json_stringn(buf_str(&why), why.len)
					      ?: json_string("words that are not known here"),
				      "nearest", nearest));
	return plan;
}

static json_t *which_one(const struct look *k, const struct fit *a, const struct fit *b)
{
	json_t *plan = by_library(k, a, coverage(a) / 2), *question;

	question = json_sprintf("Is it %s (%s), or %s (%s)?", a->task->says, a->task->id,
				b->task->says, b->task->id);
	ask(plan, "task", json_string_value(question), "choice");
	json_object_set_new(
		json_array_get(json_object_get(plan, "inputs_needed"),
			       json_array_size(json_object_get(plan, "inputs_needed")) - 1),
		"options", json_pack("[s, s]", a->task->id, b->task->id));
	json_decref(question);
	return plan;
}

/* An answer to "which one?" settles it. */
static json_t *by_answer(const struct look *k)
{
	const char *id = doc_text(json_object_get(k->task, "answers"), "task");
	const struct library_task *t = *id ? library_named(id) : NULL;
	json_t *plan = NULL;
	struct fit f;

	if (!t)
		return NULL;
	fit(k, t, &f);
	if (f.groups && has_program(k, &f))
		plan = by_library(k, &f, coverage(&f));
	fit_fini(&f);
	return plan;
}

static json_t *of_library(const struct look *k)
{
	json_t *plan = by_answer(k);
	struct fit best[NEAREST + 1];
	double margin = 1;
	unsigned n;

	if (plan)
		return plan;
	n = rank_all(k, best);
	if (n > 1 && claims(k, &best[1]))
		margin = (best[0].score - best[1].score) / (best[0].score > 0 ? best[0].score : 1);
	if (!n || !claims(k, &best[0]))
		plan = not_understood(k, best, n);
	else if (margin < APART)
		plan = which_one(k, &best[0], &best[1]);
	else
		plan = by_library(k, &best[0],
				  coverage(&best[0]) *
					  (0.6 + 0.4 * (margin < 0.5 ? 2 * margin : 1)));
	for (unsigned i = 0; i < n; i++)
		fit_fini(&best[i]);
	return plan;
}

/* ---- code that came along ---- */

static const struct lang *language_of(const char *path, const json_t *text)
{
	return lang_of(path, json_string_value(text), json_string_length(text));
}

/* The file to start with: the one that is named, or the only one, or the one of the usual name. */
static const char *entry_of(const json_t *files, const struct lang *wanted)
{
	const char *path, *found = NULL;
	json_t *text;
	unsigned n = 0;

	json_object_foreach((json_t *)files, path, text)
	{
		const struct lang *l = language_of(path, text);

		if (!l || (wanted && l != wanted))
			continue;
		if (!strcmp(path, l->file))
			return path;
		if (!n++)
			found = path;
	}
	return n == 1 ? found : NULL;
}

static json_t *as_given(const struct look *k, const struct lang *l, const char *entry)
{
	json_t *plan = begin(k, l, "given");

	json_object_set_new(plan, "entry", json_string(entry));
	add_step(plan, "run what was given");
	check(plan, "exit", "0");
	set_confidence(plan, 1);
	return plan;
}

/* NULL: there is no code in the task's files. */
static json_t *of_files(const struct look *k)
{
	const json_t *files = json_object_get(k->task, "files");
	const char *entry = doc_text(k->task, "entry");
	const struct lang *l;

	if (!*entry)
		entry = entry_of(files, k->lang);
	if (!entry || !json_is_string(json_object_get(files, entry)))
		return NULL;
	l = *doc_text(k->task, "language") ? k->lang
					   : language_of(entry, json_object_get(files, entry));
	return as_given(k, l ? l : k->lang ? k->lang : lang_named("python"), entry);
}

static json_t *of_fence(const struct look *k)
{
	const struct lang *l = *k->shown.tag ? lang_named(k->shown.tag) : NULL;
	char entry[LANG_UNIT];
	json_t *plan;

	if (!k->shown.code || (*k->shown.tag && !l))
		return NULL;
	if (!l || *doc_text(k->task, "language"))
		l = k->lang ? k->lang : lang_named("python");
	lang_file_of(l, k->shown.code, strlen(k->shown.code), entry);
	plan = as_given(k, l, entry);
	json_object_set_new(json_object_get(plan, "files"), entry, json_string(k->shown.code));
	return plan;
}

static json_t *plan_single(const json_t *task)
{
	json_t *text = json_object_get(task, "task"), *plan;
	struct look k;

	look_at(&k, task, json_is_string(text) ? json_string_value(text) : "",
		json_string_length(text));
	plan = k.unknown ? not_understood(&k, NULL, 0) : of_files(&k);
	if (!plan)
		plan = of_fence(&k);
	if (!plan)
		plan = of_library(&k);
	look_away(&k);
	return plan;
}

json_t *plan_make(const json_t *task)
{
	json_t *plan = plan_single(task), *several = NULL;

	/* Only then: "sort, then print" is one task where the library knows it. */
	if (json_object_get(plan, "not_understood") &&
	    json_is_string(json_object_get(task, "task")))
		several = series_make(task, doc_text(plan, "language"), plan_single);
	if (!several)
		return plan;
	json_decref(plan);
	return several;
}
