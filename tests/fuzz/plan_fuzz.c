/* plan_fuzz.c - any text as a task: words, a plan, and a program where the plan has one. */
#include "plan/code.h"
#include "plan/task_examples.h"
#include "plan/plan.h"
#include "plan/words.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static void read_words(const char *text, size_t len)
{
	struct task_examples s;
	struct words w;

	task_examples_read(&s, text, len);
	assert(s.len == len && json_array_size(s.examples) <= TASK_EXAMPLES_MOST);
	words_read(&w, s.rest, s.len);
	for (unsigned i = 0; i < w.n; i++)
		assert(w.all[i].p >= w.text && w.all[i].p + w.all[i].n <= w.text + len);
	words_fini(&w);
	task_examples_fini(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	json_t *text, *task, *plan, *artifact;
	struct err e;

	if (len > AGENT_TASK_BYTES)
		return 0;
	read_words((const char *)bytes, len);
	text = json_stringn((const char *)bytes, len);
	if (!text) /* not UTF-8: the API rejects it earlier */
		return 0;
	task = json_pack("{s:o}", "task", text);
	/* The same bytes as an answer, too. */
	json_object_set_new(task, "answers",
			    json_pack("{s:O, s:O}", "numbers", text, "text", text));
	plan = plan_make(task);
	artifact = code_make(plan, &e);
	if (artifact) {
		const char *entry = json_string_value(json_object_get(artifact, "entry"));

		assert(json_is_string(json_object_get(json_object_get(artifact, "files"), entry)));
	}
	json_decref(artifact);
	json_decref(plan);
	json_decref(task);
	return 0;
}
