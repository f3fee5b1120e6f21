/* plan.c - see plan.h. template_match.c finds the task; here it becomes a document. */
#include "plan/plan.h"
#include "plan/task_examples.h"
#include "plan/template_match.h"
#include "plan/library.h"
#include "plan/multi_step.h"
#include "plan/slot_fill.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_TOLD = 6 };

static const double APART =
	0.04; /* if the scores of two tasks are closer than this, the user must choose */

/* ---- a plan, member by member ---- */

static void plan_ask(json_t *plan, const char *name, const char *question, const char *type)
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

static void plan_check(json_t *plan, const char *kind, const char *arg)
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
			need_package(plan, manager, json_string_value(name), "the task names it");
}

static void plan_carry(json_t *plan, const json_t *task, const char *name, json_t *take_otherwise)
{
	json_t *v = json_object_get(task, name);

	json_object_set_new(plan, name, v ? json_deep_copy(v) : json_incref(take_otherwise));
	json_decref(take_otherwise);
}

/* Members of every plan. */
static json_t *plan_begin(const struct task_text *k, const struct lang *l, const char *source)
{
	json_t *plan = json_object(), *text = json_object_get(k->task, "task");

	json_object_set_new(plan, "schema", json_string(AGENT_PLAN));
	json_object_set_new(plan, "language", json_string(l->name));
	json_object_set_new(plan, "task", text ? json_incref(text) : json_string(""));
	json_object_set_new(plan, "template", json_null());
	json_object_set_new(plan, "slots", json_object());
	json_object_set_new(plan, "steps", json_array());
	json_object_set_new(plan, "packages", json_array());
	plan_carry(plan, k->task, "files", json_object());
	json_object_set_new(plan, "entry", json_string(l->file));
	plan_carry(plan, k->task, "stdin", json_string(""));
	json_object_set_new(plan, "examples", json_deep_copy(k->examples));
	plan_carry(plan, k->task, "tests", json_array());
	json_object_set_new(plan, "checks", json_array());
	plan_carry(plan, k->task, "limits", json_object());
	plan_carry(plan, k->task, "network", json_false());
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

/* Two digits: more would suggest a precision that does not exist. */
static void set_confidence(json_t *plan, double v)
{
	json_object_set_new(plan, "confidence", json_real((double)(int)(v * 100 + 0.5) / 100));
}

/* ---- a plan by the library ---- */

static void fill_slot(json_t *plan, const struct template_match *f, const struct library_slot *s,
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
		plan_ask(plan, s->name, s->question ? s->question : s->name,
			 slot_type_name(s->type));
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

/* Files of the task take precedence over those of the library. */
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

/* Words for effects outside of the box, or on things that the box does not have: no check can
 * observe them. */
static int is_outside(const struct word *w)
{
	static const char *const outside[] = { "download", "downloads", "downloading", "upload",
					       "uploads",  "uploading", "deploy",      "publish",
					       "scrape",   "website",   "online" };

	for (unsigned i = 0; i < ARRAY_LEN(outside); i++)
		if (word_is(w, outside[i]))
			return 1;
	return 0;
}

/* Requirements of the text that the check of the task cannot test: words that the task does not
 * explain, and effects outside of the box. A program with such words is not verified by that
 * check. */
static json_t *not_shown(const struct task_text *k, const struct template_match *f)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < k->words.n && json_array_size(out) < UNKNOWN_TOLD; i++) {
		const struct word *w = &k->words.all[i];
		int outside = w->kind == WORD_PLAIN && is_outside(w);
		json_t *text;

		if (w->kind == WORD_MARK || k->spoken[i] ||
		    (!outside && (f->seen[i] || !task_text_matters(k, i))))
			continue;
		text = json_stringn(w->p, w->n < 40 ? w->n : 40);
		json_array_append_new(out,
				      json_sprintf("the task says '%s', and %s",
						   text ? json_string_value(text) : "?",
						   outside ? "nothing outside of its box was seen"
							   : "nothing of that was checked"));
		json_decref(text);
	}
	return out;
}

static json_t *by_library(const struct task_text *k, const struct template_match *f,
			  double confidence)
{
	const struct library_task *t = f->task;
	json_t *plan = plan_begin(k, f->program->lang, "library"), *template;

	template = json_sprintf("%s@%u", t->id, t->version);
	json_object_set_new(plan, "template", template);
	json_object_set_new(plan, "not_shown", not_shown(k, f));
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
	plan_check(plan, "exit", "0");
	if (t->output && !*k->callee)
		plan_check(plan, "stdout_regex", t->output);
	set_confidence(plan, confidence);
	return plan;
}

/* ---- no plan ---- */

static void say_group(struct buf *out, const struct phrases *any)
{
	for (unsigned i = 0; i < any->n && i < 4; i++)
		buf_printf(out, "%s%s", i ? " or " : "", any->all[i].text);
}

static json_t *what_is_missing(const struct task_text *k, const struct template_match *f)
{
	json_t *out = json_array();
	auto_buf struct buf line = { 0 };

	for (unsigned i = 0; i < f->task->nneeds; i++) {
		if (task_text_has_any(k, &f->task->needs[i], NULL, 0))
			continue;
		buf_cut(&line, 0);
		buf_puts(&line, "the word ");
		say_group(&line, &f->task->needs[i]);
		json_array_append_new(out, json_stringn(buf_str(&line), line.len));
	}
	for (unsigned i = 0; i < f->task->never.n; i++)
		if (task_text_has(k, &f->task->never.all[i], NULL, 0))
			json_array_append_new(
				out, json_sprintf("it would have to be without the word %s",
						  f->task->never.all[i].text));
	if (!f->program)
		json_array_append_new(out, json_sprintf("a program in %s",
							k->lang ? k->lang->title : "it"));
	else if (!template_match_has_program(k, f))
		json_array_append_new(out,
				      json_string(*k->callee ? "a form of it as such a function"
							     : "a program that reads its input"));
	return out;
}

static void say_strange(const struct task_text *k, const struct template_match *f, struct buf *why)
{
	unsigned told = 0;

	for (unsigned i = 0; i < k->words.n && told < UNKNOWN_TOLD; i++) {
		const struct word *w = &k->words.all[i];

		if (w->kind == WORD_MARK || k->spoken[i] || k->prose[i] || (f && f->seen[i]))
			continue;
		buf_printf(why, "%s%.*s", told++ ? ", " : "", (int)(w->n < 40 ? w->n : 40), w->p);
	}
	if (!told)
		buf_puts(why, "no word that names what to do");
}

static json_t *not_understood(const struct task_text *k, const struct template_match *best,
			      unsigned n)
{
	const struct lang *l = k->lang ? k->lang : lang_named("python");
	json_t *plan = plan_begin(k, l, "library"), *nearest = json_array();
	auto_buf struct buf why = { 0 };

	if (k->unknown)
		buf_printf(&why, "%.40s is not a language that is known here; ",
			   doc_text(k->task, "language"));
	buf_puts(&why,
		 n && template_match_complete(&best[0]) && template_match_has_program(k, &best[0])
			 ? "the library has nothing that explains: "
			 : "the library knows no such task; not known here: ");
	say_strange(k, n ? &best[0] : NULL, &why);
	for (unsigned i = 0; i < n; i++)
		json_array_append_new(nearest, json_pack("{s:o, s:s, s:o}", "template",
							 json_sprintf("%s@%u", best[i].task->id,
								      best[i].task->version),
							 "says", best[i].task->says, "missing",
							 what_is_missing(k, &best[i])));
	/* The truncation may have split a character. */
	json_object_set_new(plan, "not_understood",
			    json_pack("{s:o, s:o}", "why",
				      json_stringn(buf_str(&why), why.len)
					      ?: json_string("words that are not known here"),
				      "nearest", nearest));
	return plan;
}

static json_t *which_one(const struct task_text *k, const struct template_match *a,
			 const struct template_match *b)
{
	json_t *plan = by_library(k, a, template_match_coverage(a) / 2), *question;

	question = json_sprintf("Is it %s (%s), or %s (%s)?", a->task->says, a->task->id,
				b->task->says, b->task->id);
	plan_ask(plan, "task", json_string_value(question), "choice");
	json_object_set_new(
		json_array_get(json_object_get(plan, "inputs_needed"),
			       json_array_size(json_object_get(plan, "inputs_needed")) - 1),
		"options", json_pack("[s, s]", a->task->id, b->task->id));
	json_decref(question);
	return plan;
}

/* The answer to "which one?" decides. */
static json_t *by_answer(const struct task_text *k)
{
	const char *id = doc_text(json_object_get(k->task, "answers"), "task");
	const struct library_task *t = *id ? library_named(id) : NULL;
	json_t *plan = NULL;
	struct template_match f;

	if (!t)
		return NULL;
	template_match_make(k, t, &f);
	if (f.groups && template_match_has_program(k, &f))
		plan = by_library(k, &f, template_match_coverage(&f));
	template_match_fini(&f);
	return plan;
}

static json_t *of_library(const struct task_text *k)
{
	json_t *plan = by_answer(k);
	struct template_match best[TEMPLATE_MATCH_NEAREST];
	double margin = 1;
	unsigned n;

	if (plan)
		return plan;
	n = template_match_best(k, best);
	if (n > 1 && template_match_claims(k, &best[1]))
		margin = (best[0].score - best[1].score) / (best[0].score > 0 ? best[0].score : 1);
	if (!n || !template_match_claims(k, &best[0]))
		plan = not_understood(k, best, n);
	else if (margin < APART)
		plan = which_one(k, &best[0], &best[1]);
	else
		plan = by_library(k, &best[0],
				  template_match_coverage(&best[0]) *
					  (0.6 + 0.4 * (margin < 0.5 ? 2 * margin : 1)));
	for (unsigned i = 0; i < n; i++)
		template_match_fini(&best[i]);
	return plan;
}

/* ---- code that came along ---- */

static const struct lang *language_of(const char *path, const json_t *text)
{
	return lang_of(path, json_string_value(text), json_string_length(text));
}

/* The entry file: the named one, or the only one, or the one with the default name. */
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

static json_t *as_given(const struct task_text *k, const struct lang *l, const char *entry)
{
	json_t *plan = plan_begin(k, l, "given");

	json_object_set_new(plan, "entry", json_string(entry));
	add_step(plan, "run what was given");
	plan_check(plan, "exit", "0");
	set_confidence(plan, 1);
	return plan;
}

/* NULL: the files of the task have no code. */
static json_t *of_files(const struct task_text *k)
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

static json_t *of_fence(const struct task_text *k)
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
	struct task_text k;
	json_t *plan;

	task_text_read(&k, task);
	plan = k.unknown ? not_understood(&k, NULL, 0) : of_files(&k);
	if (!plan)
		plan = of_fence(&k);
	if (!plan)
		plan = of_library(&k);
	task_text_fini(&k);
	return plan;
}

json_t *plan_make(const json_t *task)
{
	json_t *plan = plan_single(task), *several = NULL;

	/* Only then: "sort, then print" is one task if the library contains it. */
	if (json_object_get(plan, "not_understood") &&
	    json_is_string(json_object_get(task, "task")))
		several = multi_step_make(task, doc_text(plan, "language"), plan_single);
	if (!several)
		return plan;
	json_decref(plan);
	return several;
}
