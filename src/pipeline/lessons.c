/* lessons.c - see lessons.h. */
#include "pipeline/lessons.h"
#include "plan/words.h"
#include "base/buf.h"
#include "base/cleanup.h"

#include <string.h>

enum {
	LESSONS = 3,
	FOUND = 16,        /* lessons that are examined */
	SHARED_LEAST = 2,  /* words that two similar tasks must share, */
	SUBJECT_MOST = 64, /* of so many */
};

/* Words that occur in any task and do not describe it. */
static const char *const generic[] = { "repair", "fix",    "make",     "write",   "program",
				       "code",   "script", "function", "python",  "please",
				       "should", "test",   "tests",    "example", "examples",
				       "pass",   "passes", "error",    "broken",  "correct",
				       "wrong",  "work",   "works",    "run",     "runs",
				       "this",   "that",   "with",     "from",    "return",
				       "print",  "output", "input",    "file",    "javascript" };

static int is_generic(const struct word *w)
{
	for (unsigned i = 0; i < ARRAY_LEN(generic); i++)
		if (word_is(w, generic[i]))
			return 1;
	return w->n < 4;
}

/* The stems of the words that describe a task, each once. */
static unsigned subject_of(const struct words *w, const char *out[SUBJECT_MOST])
{
	unsigned n = 0;

	for (unsigned i = 0; i < w->n && n < SUBJECT_MOST; i++) {
		unsigned k = 0;

		if (w->all[i].kind != WORD_PLAIN || is_generic(&w->all[i]))
			continue;
		while (k < n && strcmp(out[k], w->all[i].stem) != 0)
			k++;
		if (k == n)
			out[n++] = w->all[i].stem;
	}
	return n;
}

/* Are two tasks similar? Half of the words of the first must be in the other. A task without
 * describing words ("fix it") is similar to none. */
static int is_like(const char *task, const char *other)
{
	auto_words struct words a = { 0 }, b = { 0 };
	const char *of_a[SUBJECT_MOST], *of_b[SUBJECT_MOST];
	unsigned na, nb, shared = 0;

	words_read(&a, task, strlen(task));
	words_read(&b, other, strlen(other));
	na = subject_of(&a, of_a);
	nb = subject_of(&b, of_b);
	for (unsigned i = 0; i < na; i++)
		for (unsigned k = 0; k < nb; k++)
			shared += !strcmp(of_a[i], of_b[k]);
	return shared >= SHARED_LEAST && 2 * shared >= na;
}

static int is_off(const struct pipeline *p)
{
	struct store_policy policy;
	struct err e;

	return p->all->conf.forgetful || json_is_false(json_object_get(p->task, "remember")) ||
	       store_policy_get(p->all->fleet->store, p->row.team, &policy, &e) < 0 ||
	       policy.forgetful;
}

void lessons_add(struct pipeline *p)
{
	const json_t *last = json_array_get(p->before, json_array_size(p->before) - 1);
	const char *because = doc_text(p->artifact, "changed_because");
	struct err e;

	if (!last || !*because || is_off(p))
		return;
	(void)!store_lesson_add(p->all->fleet->store, p->row.team, p->row.id,
				doc_text(p->task, "task"), doc_text(last, "category"), because,
				&e); /* on failure the lesson is not stored */
}

json_t *lessons_like(const struct pipeline *p, const char *category)
{
	auto_buf struct buf text = { 0 };
	struct store_lessons found;
	json_t *all = json_array();
	struct err e;

	buf_printf(&text, "%s %s", category, doc_text(p->task, "task"));
	if (is_off(p) || store_lesson_find(p->all->fleet->store, p->row.team, buf_str(&text), FOUND,
					   &found, &e) < 0)
		return all;
	for (unsigned i = 0; i < found.n && json_array_size(all) < LESSONS; i++)
		if ((!*category || !strcmp(found.v[i].category, category)) &&
		    is_like(doc_text(p->task, "task"), found.v[i].task))
			json_array_append_new(all,
					      json_pack("{s:s, s:s, s:s}", "task", found.v[i].task,
							"category", found.v[i].category, "fix",
							found.v[i].fix));
	store_lessons_fini(&found);
	return all;
}

json_t *lessons_with(const struct pipeline *p, json_t *take_doc, const char *category)
{
	json_t *found = lessons_like(p, category);

	if (json_array_size(found))
		json_object_set(take_doc, "lessons", found);
	json_decref(found);
	return take_doc;
}
