/* candidate_test.c - see candidate_test.h. */
#include "repair/candidate_test.h"
#include "execute/harness.h"
#include "repair/repair_programs.h"
#include "base/id.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

enum {
	RUN_MS = 10000, /* of one example, unless the artifact has a lower limit */
	COMMAND_MS = 60000,
	SAID = 4096,
};

/* ---- kinds of examples ---- */

static int is_call(const json_t *example)
{
	return json_is_string(json_object_get(example, "call"));
}

static int is_command(const json_t *example)
{
	return json_is_string(json_object_get(example, "command"));
}

static int is_one(const json_t *x)
{
	return is_command(x) || ((is_call(x) || json_is_string(json_object_get(x, "input"))) &&
				 json_is_string(json_object_get(x, "expected")));
}

int candidate_test_possible(const char *language, const json_t *examples)
{
	size_t n = json_array_size(examples);

	for (size_t i = 0; i < n; i++) {
		const json_t *x = json_array_get(examples, i);

		if (!is_one(x) ||
		    (is_call(x) && !program_judge(language) && !harness_can(language)))
			return 0;
	}
	return n > 0 && n <= CANDIDATE_TEST_EXAMPLES;
}

/* ---- items ---- */

static uint32_t run_ms_of(const json_t *artifact, uint32_t usual)
{
	uint64_t own = artifact_limit(artifact, "run_ms", usual);

	return own < usual ? (uint32_t)own : usual;
}

static void set_source(json_t *item, const struct candidate_test *t)
{
	json_object_set_new(json_object_get(item, "files"),
			    doc_text(t->candidate_box->artifact, "entry"), json_string(t->source));
}

static json_t *call_item(struct candidate_test *t)
{
	const char *language = doc_text(t->candidate_box->artifact, "language");
	json_t *item = candidate_box_item(t->candidate_box, COMMAND_MS), *calls = json_array(),
	       *expected = json_array(), *ask;
	auto_free char *text = NULL;

	for (size_t i = 0; i < json_array_size(t->examples); i++) {
		const json_t *x = json_array_get(t->examples, i);

		if (!(t->calls >> i & 1))
			continue;
		json_array_append(calls, json_object_get(x, "call"));
		json_array_append(expected, json_object_get(x, "expected"));
	}
	ask = json_pack("{s:s, s:s, s:o, s:o, s:s}", "source", t->source, "name",
			doc_text(t->candidate_box->artifact, "entry"), "calls", calls, "expected",
			expected, "word", t->word);
	text = json_dumps(ask, JSON_COMPACT);
	json_decref(ask);
	json_object_set_new(item, "language", json_string(language));
	json_object_set_new(item, "code", json_string(program_judge(language)));
	json_object_set_new(item, "entry", json_string(".judge"));
	json_object_set_new(item, "stdin", json_string(text ? text : ""));
	return item;
}

/* Without a judge: the call is added to the program and prints its result after a random word,
 * which is compared here. */
static json_t *harness_item(const struct candidate_test *t, const json_t *example)
{
	json_t *item = candidate_box_item(t->candidate_box,
					  run_ms_of(t->candidate_box->artifact, RUN_MS)),
	       *files = NULL,
	       *artifact = json_pack("{s:O, s:O, s:O}", "language",
				     json_object_get(t->candidate_box->artifact, "language"),
				     "entry", json_object_get(t->candidate_box->artifact, "entry"),
				     "files", json_object_get(item, "files"));
	const char *entry = NULL;
	struct err e;

	set_source(item, t);
	if (harness_call(artifact, doc_text(example, "call"), t->word, &files, &entry, &e) == 0) {
		json_object_set_new(item, "files", files);
		json_object_set(item, "language",
				json_object_get(t->candidate_box->artifact, "language"));
		json_object_set_new(item, "entry", json_string(entry));
	}
	json_decref(artifact);
	return item; /* without a language nothing passes */
}

static int is_answered(const struct candidate_test *t, const json_t *example)
{
	size_t n;
	const char *got = harness_answer(t->job.out[0].p, t->job.out[0].len, t->word, &n);

	return got && harness_same(got, n, doc_text(example, "expected"));
}

static json_t *input_item(const struct candidate_test *t, const json_t *example)
{
	json_t *item =
		candidate_box_item(t->candidate_box, run_ms_of(t->candidate_box->artifact, RUN_MS));

	set_source(item, t);
	json_object_set(item, "language", json_object_get(t->candidate_box->artifact, "language"));
	json_object_set(item, "entry", json_object_get(t->candidate_box->artifact, "entry"));
	json_object_set(item, "stdin", json_object_get(example, "input"));
	json_object_set(item, "expected", json_object_get(example, "expected"));
	return item;
}

static json_t *command_item(const struct candidate_test *t, const json_t *example)
{
	json_t *item = candidate_box_item(t->candidate_box,
					  run_ms_of(t->candidate_box->artifact, COMMAND_MS));

	set_source(item, t);
	if (*doc_text(example, "path"))
		json_object_set(json_object_get(item, "files"), doc_text(example, "path"),
				json_object_get(example, "content"));
	json_object_set(item, "command", json_object_get(example, "command"));
	return item;
}

/* ---- one box after another ---- */

static void test_run_step(struct candidate_test *t);

static void test_run_finish(struct candidate_test *t, int lost)
{
	free(steal(&t->source));
	t->done(t, t->passed, lost);
}

/* "word 101": a bit per call, in their order. */
static void note_calls(struct candidate_test *t)
{
	size_t n = strlen(t->word);
	const char *said = buf_str(&t->job.out[0]);

	if (strncmp(said, t->word, n) != 0 || said[n] != ' ')
		return;
	said += n + 1;
	for (unsigned i = 0; i < CANDIDATE_TEST_EXAMPLES && *said; i++)
		if (t->calls >> i & 1)
			t->passed |= (uint64_t)(*said++ == '1') << i;
}

static void job_done(struct batch_job *j, const struct batch_job_end *end)
{
	struct candidate_test *t = loop_owner(j, struct candidate_test, job);
	int lost = end->verdict == VERDICT_ERROR && end->why == CAUSE_HOST;
	uint64_t mine = 1ull << (t->next - 1), asked = t->calls & mine ? t->calls : mine;
	const json_t *x = json_array_get(t->examples, t->next - 1);

	if (end->verdict == VERDICT_PASSED && t->calls & mine)
		note_calls(t);
	else if (end->verdict == VERDICT_PASSED && (!is_call(x) || is_answered(t, x)))
		t->passed |= mine;
	t->flying = 0;
	candidate_box_ended(t->candidate_box, j, end);
	batch_job_fini(j);
	if (lost || (t->hurried && asked & ~t->passed))
		test_run_finish(t, lost);
	else
		test_run_step(t);
}

static int test_run_fly(struct candidate_test *t, json_t *take_item)
{
	struct err e;

	t->job = (struct batch_job){ .done = job_done, .fleet = t->candidate_box->fleet };
	t->flying = candidate_box_start(t->candidate_box, &t->job, take_item, SAID, &e) == 0;
	return t->flying ? 0 : -1;
}

/* The next example without a result. One that cannot be run does not pass. */
static void test_run_step(struct candidate_test *t)
{
	size_t n = json_array_size(t->examples);

	while (t->next < n) {
		const json_t *x = json_array_get(t->examples, t->next++);
		uint64_t mine = 1ull << (t->next - 1);
		json_t *item;

		if (t->calls & mine && t->calls & (mine - 1))
			continue; /* its call is in the box of the first one */
		if (t->calls & mine)
			item = call_item(t);
		else if (is_call(x))
			item = harness_item(t, x);
		else
			item = is_command(x) ? command_item(t, x) : input_item(t, x);
		if (test_run_fly(t, item) == 0 || t->hurried)
			break;
	}
	if (t->flying)
		return;
	test_run_finish(t, 0);
}

void candidate_test_start(struct candidate_test *t, const struct candidate_box *candidate_box,
			  const json_t *examples, char *take_source)
{
	size_t n = json_array_size(examples);
	struct err e;

	t->candidate_box = candidate_box;
	t->examples = examples;
	t->source = take_source;
	t->next = 0;
	t->passed = t->calls = 0;
	for (size_t i = 0; program_judge(doc_text(candidate_box->artifact, "language")) && i < n &&
			   i < CANDIDATE_TEST_EXAMPLES;
	     i++)
		t->calls |= (uint64_t)is_call(json_array_get(examples, i)) << i;
	if (id_new(t->word, &e) < 0)
		test_run_finish(t, 1); /* without an unguessable word no result can be trusted */
	else
		test_run_step(t);
}

void candidate_test_check(struct candidate_test *t, uint64_t now_ms)
{
	if (t->flying)
		batch_job_check(&t->job, now_ms);
}

void candidate_test_fini(struct candidate_test *t)
{
	if (t->flying)
		batch_job_fini(&t->job);
	t->flying = 0;
	free(steal(&t->source));
}
