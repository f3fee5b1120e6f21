/* multi_step.c - see multi_step.h. */
#include "plan/multi_step.h"
#include "plan/literal.h"
#include "plan/words.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>

/* ---- one text, several tasks ---- */

/* The number of words that separate steps here; 0: none. "if a, then b" is one task. */
static unsigned begins_step(const struct words *w, unsigned i)
{
	if (word_is(&w->all[i], "afterwards") || word_is(&w->all[i], "finally"))
		return 1;
	if (word_is(&w->all[i], "after") && i + 1 < w->n && word_is(&w->all[i + 1], "that"))
		return 2;
	if (!word_is(&w->all[i], "then"))
		return 0;
	for (unsigned k = 0; k < i; k++)
		if (word_is(&w->all[k], "if") || word_is(&w->all[k], "when"))
			return 0;
	return 1;
}

/* Separators between steps belong to none: ", and", ";". */
static unsigned without_end(const struct words *w, unsigned from, unsigned to)
{
	while (to > from && (w->all[to - 1].kind == WORD_MARK || word_is(&w->all[to - 1], "and")))
		to--;
	return to;
}

static void add_part(json_t *out, const struct words *w, const char *text, unsigned from,
		     unsigned to, size_t end)
{
	unsigned last = without_end(w, from, to);
	size_t at;

	while (from < last && w->all[from].kind == WORD_MARK && !strchr("[({", *w->all[from].p))
		from++;
	if (last <= from)
		return;
	at = w->all[from].at;
	if (last < w->n)
		end = w->all[last].at;
	json_array_append_new(out, json_stringn(text + at, end - at));
}

static json_t *multi_step_split(const char *text, size_t len)
{
	auto_words struct words w = { 0 };
	json_t *out = json_array();
	unsigned from = 0;

	words_read(&w, text, len);
	for (unsigned i = 0; i < w.n; i++) {
		unsigned n = begins_step(&w, i);

		if (!n)
			continue;
		add_part(out, &w, text, from, i, len);
		from = i + n;
		i += n - 1;
	}
	add_part(out, &w, text, from, w.n, len);
	return out;
}

/* Does it refer to the output of an earlier step? */
static int leans_back(const char *text)
{
	static const char *const back[] = { "it",      "its",    "them", "result",
					    "results", "output", "those" };
	auto_words struct words w = { 0 };

	words_read(&w, text, strlen(text));
	for (unsigned i = 0; i < w.n; i++)
		for (unsigned k = 0; k < ARRAY_LEN(back); k++)
			if (word_is(&w.all[i], back[k]))
				return 1;
	return 0;
}

/* ---- a plan of several ---- */

/* Understood, without questions and without defaults: a default could be data of another step. */
static int is_settled(const json_t *plan)
{
	return !json_object_get(plan, "not_understood") &&
	       !json_array_size(json_object_get(plan, "inputs_needed")) &&
	       !json_array_size(json_object_get(plan, "assumptions")) &&
	       !strcmp(doc_text(plan, "source"), "library");
}

static void add_step(json_t *plan, const json_t *step, const struct lang *l)
{
	json_t *steps = json_object_get(plan, "steps");
	unsigned n = (unsigned)json_array_size(steps) + 1;
	const char *ending = strrchr(l->file, '.');
	json_t *one = json_pack("{s:i, s:s, s:s, s:O}", "id", (int)n, "goal",
				doc_text(step, "task"), "template", doc_text(step, "template"),
				"slots", json_object_get(step, "slots"));

	json_object_set_new(one, "file", json_sprintf("step%u%s", n, ending ? ending : ""));
	json_array_append_new(steps, one);
	json_array_extend(json_object_get(plan, "packages"), json_object_get(step, "packages"));
	if (n > 1) /* the plan started as a copy of the first step */
		json_array_extend(json_object_get(plan, "not_shown"),
				  json_object_get(step, "not_shown"));
	json_object_update_missing(json_object_get(plan, "files"), json_object_get(step, "files"));
	if (json_is_true(json_object_get(step, "network")))
		json_object_set_new(plan, "network", json_true());
	if (json_number_value(json_object_get(step, "confidence")) <
	    json_number_value(json_object_get(plan, "confidence")))
		json_object_set(plan, "confidence", json_object_get(step, "confidence"));
}

static json_t *first_plan(const json_t *step, const json_t *task, const struct lang *l)
{
	json_t *plan = json_deep_copy(step);

	json_object_set(plan, "task", json_object_get(task, "task"));
	json_object_set_new(plan, "template", json_null());
	json_object_set_new(plan, "slots", json_object());
	json_object_set_new(plan, "steps", json_array());
	json_object_set_new(plan, "packages", json_array());
	json_object_set_new(plan, "entry", json_string(l->file));
	json_object_set_new(plan, "checks", json_pack("[{s:s, s:s}]", "kind", "exit", "arg", "0"));
	return plan;
}

static json_t *plan_part(const json_t *task, const char *text, const struct lang *l,
			 json_t *(*one)(const json_t *task))
{
	json_t *part = json_deep_copy(task), *plan;

	json_object_set_new(part, "task", json_string(text));
	json_object_set_new(part, "language", json_string(l->name));
	plan = one(part);
	json_decref(part);
	return plan;
}

json_t *multi_step_make(const json_t *task, const char *language,
			json_t *(*one)(const json_t *task))
{
	const json_t *text = json_object_get(task, "task");
	const struct lang *l = lang_named(language);
	json_t *parts = multi_step_split(json_string_value(text), json_string_length(text)),
	       *plan = NULL, *part;
	size_t i, n = json_array_size(parts);

	json_array_foreach(parts, i, part)
	{
		json_t *step;

		if (n < 2 || n > MULTI_STEP_MOST || (i && leans_back(json_string_value(part))))
			break;
		step = plan_part(task, json_string_value(part), l, one);
		if (is_settled(step)) {
			plan = plan ? plan : first_plan(step, task, l);
			add_step(plan, step, l);
		}
		json_decref(step);
		if (!plan || json_array_size(json_object_get(plan, "steps")) != i + 1)
			break;
	}
	json_decref(parts);
	if (plan && json_array_size(json_object_get(plan, "steps")) == n)
		return plan;
	json_decref(plan);
	return NULL;
}

/* ---- the program that runs them ---- */

static const struct {
	const char *lang, *before, *behind;
} runners[] = {
	{ "python", "import subprocess\nimport sys\n\nfor program in ",
	  ":\n    status = subprocess.call([sys.executable, program])\n    if status:\n        sys.exit(status)\n" },
	{ "node", "const { spawnSync } = require(\"child_process\");\n\nfor (const program of ",
	  ") {\n  const ended = spawnSync(process.execPath, [program], { stdio: \"inherit\" });\n"
	  "  if (ended.status !== 0) process.exit(ended.status ?? 1);\n}\n" },
	{ "bash", "programs=",
	  "\nfor program in \"${programs[@]}\"; do\n    bash \"$program\" || exit\ndone\n" },
};

char *multi_step_runner(const char *language, const json_t *files, struct err *e)
{
	auto_buf struct buf out = { 0 };

	for (unsigned i = 0; i < ARRAY_LEN(runners); i++) {
		if (strcmp(runners[i].lang, language) != 0)
			continue;
		buf_puts(&out, runners[i].before);
		if (literal_add(&out, lang_named(language), files, 0, LITERAL_WHOLE, e) < 0)
			return NULL;
		buf_puts(&out, runners[i].behind);
		return buf_steal(&out);
	}
	err_set(e, ERR_NOT_FOUND, "nothing is known to run several programs of %.40s", language);
	return NULL;
}
