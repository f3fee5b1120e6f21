/* execution_unit.c - see execution_unit.h. */
#include "execute/execution_unit.h"
#include "execute/execute.h"
#include "execute/result_phase.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

enum {
	FLOOD = 32 << 20, /* maximum output of one program */
	RUN_MS = 30000,
};

/* ---- from an artifact to an item ---- */

static json_t *env_of(const struct execution_unit *u, const struct artifact_packages *needs)
{
	json_t *env = json_object();

	if (u->env)
		json_object_update(env, (json_t *)u->env);
	if (json_is_object(json_object_get(u->artifact, "env")))
		json_object_update(env, json_object_get(u->artifact, "env"));
	artifact_packages_env(needs, env);
	return env;
}

static int has_stdout_check(const json_t *artifact)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(artifact, "checks"), i, one)
	{
		if (!strncmp(doc_text(one, "kind"), "stdout_", 7))
			return 1;
	}
	return 0;
}

static size_t output_wanted(const struct execution_unit *u)
{
	const json_t *example = json_array_get(json_object_get(u->artifact, "examples"), u->n);
	size_t n = u->kind == UNIT_EXAMPLE
			   ? json_string_length(json_object_get(example, "expected"))
			   : 0;

	/* Checks get the complete output, up to the limit in docs/pipeline.md. */
	if (u->kind == UNIT_MAIN && has_stdout_check(u->artifact))
		return ITEM_OUTPUT_MAX;
	n = n + 4096 > PHASE_HEAD ? n + 4096 : PHASE_HEAD;
	return n < ITEM_OUTPUT_MAX ? n : ITEM_OUTPUT_MAX;
}

static json_t *item_doc(const struct execution_unit *u, const struct artifact_packages *needs)
{
	uint64_t run_ms = artifact_limit(u->artifact, "run_ms", RUN_MS),
		 mem = artifact_limit(u->artifact, "memory", 0);
	json_t *doc = json_pack("{s:s, s:O, s:s, s:o, s:{s:I}, s:I}", "language",
				doc_text(u->artifact, "language"), "files",
				json_object_get(u->artifact, "files"), "entry",
				doc_text(u->artifact, "entry"), "env", env_of(u, needs), "timeouts",
				"run_ms", (json_int_t)(run_ms < 3600000 ? run_ms : 3600000),
				"max_output", (json_int_t)output_wanted(u));

	if (mem)
		json_object_set_new(doc, "limits", json_pack("{s:I}", "mem", (json_int_t)mem));
	return doc;
}

static void set_input(json_t *doc, const json_t *input)
{
	/* A program that reads more input finds end of file and does not wait. */
	json_object_set_new(doc, "stdin",
			    json_string(json_is_string(input) ? json_string_value(input) : ""));
}

/* A test without a command is run as a program. Its functions are called by a harness. */
static const char python_tests[] =
	"import importlib.util, os, sys, traceback\n"
	"path = '%s'\n"
	"sys.path[:0] = [os.getcwd(), os.path.dirname(os.path.abspath(path))]\n"
	"spec = importlib.util.spec_from_file_location('tests', path)\n"
	"tests = importlib.util.module_from_spec(spec)\n"
	"spec.loader.exec_module(tests)\n"
	"failed = ran = 0\n"
	"for name, test in list(vars(tests).items()):\n"
	"    if not name.startswith('test') or not callable(test):\n"
	"        continue\n"
	"    ran += 1\n"
	"    try:\n"
	"        test()\n"
	"    except BaseException:\n"
	"        failed += 1\n"
	"        print('FAILED', name, file=sys.stderr)\n"
	"        traceback.print_exc()\n"
	"print(ran - failed, 'of', ran, 'tests passed')\n"
	"sys.exit(1 if failed or not ran else 0)\n";

static int test_doc(const struct execution_unit *u, json_t *doc)
{
	const json_t *test = json_array_get(json_object_get(u->artifact, "tests"), u->n);
	json_t *files = json_copy(json_object_get(doc, "files"));
	const char *path = doc_text(test, "path"), *text = doc_text(test, "content"),
		   *command = doc_text(test, "command");

	json_object_set_new(files, path, json_string(text));
	json_object_set_new(doc, "files", files);
	set_input(doc, NULL);
	if (*command) {
		json_object_del(doc, "language");
		json_object_del(doc, "entry");
		json_object_set_new(doc, "command", json_string(command));
		return 0;
	}
	json_object_set_new(doc, "entry", json_string(path));
	if (strstr(path, ".py") && strstr(text, "def test") && !strstr(text, "__main__") &&
	    !strpbrk(path, "'\\\n")) {
		if (strstr(text, "unittest"))
			json_object_set_new(
				files, "atoll_tests.py",
				json_sprintf("import unittest\nunittest.main(module=None, argv=["
					     "'tests', '%s'])\n",
					     path));
		else
			json_object_set_new(files, "atoll_tests.py",
					    json_sprintf(python_tests, path));
		json_object_set_new(doc, "entry", json_string("atoll_tests.py"));
	}
	return 0;
}

static int example_doc(struct execution_unit *u, json_t *doc, struct err *e)
{
	const json_t *example = json_array_get(json_object_get(u->artifact, "examples"), u->n);
	const char *call = doc_text(example, "call"), *entry;
	char random[ID_MAX + 1];
	json_t *files;

	if (!*call) {
		set_input(doc, json_object_get(example, "input"));
		return 0;
	}
	if (id_new(random, e) < 0)
		return -1;
	snprintf(u->mark, sizeof(u->mark), "atoll:%s:", random);
	if (harness_call(u->artifact, call, u->mark, &files, &entry, e) < 0)
		return -1;
	json_object_set_new(doc, "files", files);
	json_object_set_new(doc, "entry", json_string(entry));
	set_input(doc, json_object_get(u->artifact, "stdin"));
	return 0;
}

static int wanted_exit(const json_t *checks)
{
	const json_t *one;
	size_t i;

	json_array_foreach(checks, i, one)
	{
		const json_t *arg = json_object_get(one, "arg");

		if (!strcmp(doc_text(one, "kind"), "exit"))
			return json_is_string(arg) ? atoi(json_string_value(arg))
						   : (int)json_integer_value(arg);
	}
	return 0;
}

/* The nth check that runs as a command after the program. */
static const char *behind_kind(const json_t *checks, size_t nth, const json_t **out_arg)
{
	const json_t *one;
	size_t i;

	json_array_foreach(checks, i, one)
	{
		const char *kind = doc_text(one, "kind");

		if (strcmp(kind, "command") != 0 && strcmp(kind, "file_exists") != 0)
			continue;
		if (nth-- == 0) {
			*out_arg = json_object_get(one, "arg");
			return kind;
		}
	}
	return NULL;
}

static void set_behind(struct execution_unit *u)
{
	json_t *keep = u->behind ? u->behind : (u->behind = json_array());
	const json_t *arg;
	const char *kind;

	for (size_t i = 0; i < ITEM_BEHIND &&
			   (kind = behind_kind(json_object_get(u->artifact, "checks"), i, &arg));
	     i++) {
		const char *text = json_string_value(arg) ? json_string_value(arg) : "false";

		if (!strcmp(kind, "file_exists")) { /* quoted for the shell */
			auto_buf struct buf command = { 0 };

			buf_puts(&command, "test -e '");
			for (const char *c = text; *c; c++)
				buf_puts(&command, *c == '\'' ? "'\\''" : (char[]){ *c, 0 });
			buf_putc(&command, '\'');
			json_array_append_new(keep, json_string(buf_str(&command)));
			text = json_string_value(json_array_get(keep, json_array_size(keep) - 1));
		}
		u->job.item.behind[u->job.item.nbehind++] = text;
	}
}

int execution_unit_make(struct execution_unit *u, const struct artifact_packages *needs,
			const struct fleet_conf *conf, struct err *e)
{
	struct batch_item_defaults d = { .limits = conf->limits, .most = conf->most };
	json_t *doc = item_doc(u, needs);
	struct batch_item *item = &u->job.item;
	int made = u->kind == UNIT_MAIN ? (set_input(doc, json_object_get(u->artifact, "stdin")), 0)
		   : u->kind == UNIT_EXAMPLE ? example_doc(u, doc, e)
					     : test_doc(u, doc);

	if (made < 0) {
		json_decref(doc);
		return -1;
	}
	if (batch_item_make(item, doc, &d, e) < 0)
		return -1;
	item->tail = PHASE_TAIL;
	item->flood = FLOOD;
	artifact_packages_put(needs, item);
	if (u->kind == UNIT_MAIN) {
		item->want_code = wanted_exit(json_object_get(u->artifact, "checks"));
		set_behind(u);
	}
	return 0;
}

/* ---- what its end is worth ---- */

static void judge_example(struct execution_unit *u, const struct batch_job_end *end)
{
	const json_t *example = json_array_get(json_object_get(u->artifact, "examples"), u->n);
	const char *want = doc_text(example, "expected");
	const struct batch_job *j = &u->job;
	const char *got = buf_str(&j->out[0]);
	size_t n = j->out[0].len;
	int ran = end->verdict != VERDICT_ERROR && end->verdict == VERDICT_PASSED;

	if (u->mark[0]) {
		got = harness_answer(got, n, u->mark, &n);
		u->pass = ran && got && harness_same(got, n, want);
	} else {
		u->pass = ran && j->seen[0] == n &&
			  output_compare_same(JUDGE_TRIMMED, got, n, want, strlen(want));
	}
	u->row = json_pack(
		"{s:I, s:b, s:o, s:s, s:s}", "n", (json_int_t)u->n, "pass", u->pass, "got",
		got ? execute_text(got, n < PHASE_HEAD ? n : PHASE_HEAD, "", 0, n) : json_null(),
		"expected", want, "cause",
		u->pass ? "exit"
		: ran   ? "stdout"
			: why_name(end->why));
	if (json_object_get(example, "call"))
		json_object_set(u->row, "call", json_object_get(example, "call"));
	else
		json_object_set(u->row, "input", json_object_get(example, "input"));
}

static void judge_test(struct execution_unit *u, const struct batch_job_end *end)
{
	const json_t *test = json_array_get(json_object_get(u->artifact, "tests"), u->n);

	u->pass = end->verdict == VERDICT_PASSED;
	u->row = json_pack("{s:s, s:s, s:b, s:s}", "kind", "test", "arg", doc_text(test, "path"),
			   "pass", u->pass, "detail", u->pass ? "" : why_name(end->why));
}

static void judge_behind(const struct execution_unit *u, json_t *rows)
{
	const json_t *checks = json_object_get(u->artifact, "checks"), *arg;
	const char *kind;

	for (size_t i = 0; (kind = behind_kind(checks, i, &arg)); i++) {
		const struct batch_job_post *b = i < ITEM_BEHIND ? &u->job.behind[i] : NULL;
		int pass = b && b->ran && b->status == 0;

		json_array_append_new(rows,
				      json_pack("{s:s, s:O, s:b, s:o}", "kind", kind, "arg", arg,
						"pass", pass, "detail",
						b ? execute_text(buf_str(&b->said), b->said.len, "",
								 0, b->said.len)
						  : json_string("too many commands")));
	}
}

static void judge_main(struct execution_unit *u, const struct batch_job_end *end, json_t *rows)
{
	json_t *plain = execute_checks(
		json_object_get(u->artifact, "checks"),
		end->end.exited && end->end.exit.why == WIRE_WHY_EXIT ? end->end.exit.status : -1,
		buf_str(&u->job.out[0]), u->job.out[0].len, u->job.seen[0]);

	u->pass = end->verdict == VERDICT_PASSED;
	json_array_extend(rows, plain);
	json_decref(plain);
	if (u->pass)
		judge_behind(u, rows);
}

void execution_unit_judge(struct execution_unit *u, const struct batch_job_end *end, json_t *checks)
{
	u->over = 1;
	u->ran = end->verdict == VERDICT_PASSED;
	u->phase = end->verdict == VERDICT_ERROR
			   ? phase_plain("run", why_name(end->why), 0, end->e.msg)
			   : phase_of(&u->job, end);
	if (u->kind == UNIT_EXAMPLE)
		judge_example(u, end);
	else if (u->kind == UNIT_TEST)
		judge_test(u, end);
	else
		judge_main(u, end, checks);
}

void execution_unit_refuse(struct execution_unit *u, unsigned why, const struct err *e)
{
	struct batch_job_end end = { .verdict = VERDICT_ERROR, .why = why, .e = *e };

	u->begun = u->over = 1;
	u->phase = phase_plain("run", why_name(why), 0, e->msg);
	if (u->kind == UNIT_EXAMPLE)
		judge_example(u, &end);
	else if (u->kind == UNIT_TEST)
		judge_test(u, &end);
}

void execution_unit_fini(struct execution_unit *u)
{
	json_decref(u->behind);
	json_decref(u->row);
	json_decref(u->phase);
}
