/* memory.c - see memory.h. */
#include "agent/memory.h"
#include "base/buf.h"
#include "base/own.h"

enum { LESSONS = 3 };

static int is_off(const struct pipeline *p)
{
	struct store_policy policy;
	struct err e;

	return p->all->conf.forgetful || json_is_false(json_object_get(p->task, "remember")) ||
	       store_policy_get(p->all->fleet->store, p->row.team, &policy, &e) < 0 || policy.forgetful;
}

void memory_learn(struct pipeline *p)
{
	const json_t *last = json_array_get(p->before, json_array_size(p->before) - 1);
	const char *because = doc_text(p->artifact, "changed_because");
	struct err e;

	if (!last || !*because || is_off(p))
		return;
	(void)!store_lesson_add(p->all->fleet->store, p->row.team, p->row.id, doc_text(p->task, "task"),
				doc_text(last, "category"), because, &e); /* then it is not known, and that is all */
}

json_t *memory_like(const struct pipeline *p, const char *category)
{
	auto_buf struct buf text = { 0 };
	struct store_lessons found;
	json_t *all = json_array();
	struct err e;

	buf_printf(&text, "%s %s", category, doc_text(p->task, "task"));
	if (is_off(p) || store_lesson_find(p->all->fleet->store, p->row.team, buf_str(&text), LESSONS,
					   &found, &e) < 0)
		return all;
	for (unsigned i = 0; i < found.n; i++)
		json_array_append_new(all, json_pack("{s:s, s:s, s:s}", "task", found.v[i].task, "category",
						     found.v[i].category, "fix", found.v[i].fix));
	store_lessons_fini(&found);
	return all;
}

json_t *memory_with(const struct pipeline *p, json_t *take_doc, const char *category)
{
	json_t *found = memory_like(p, category);

	if (json_array_size(found))
		json_object_set(take_doc, "lessons", found);
	json_decref(found);
	return take_doc;
}
