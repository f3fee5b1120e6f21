/* execute.c - see execute.h. */
#include "agent/execute.h"
#include "agent/harness.h"
#include "agent/needs.h"
#include "agent/phase.h"
#include "agent/scan.h"
#include "store/pipelines.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/own.h"
#include "fleet/job.h"
#include "lang/lang.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	FLOOD = 32 << 20, /* bytes that one program may say */
	BOXES = 4,        /* of one execution at once */
	BOXES_PER_CPU = 4,
	TRIES = 3, /* of a box that was lost through no fault of the program */
	TICK_MS = 1000,
	AGAIN_MS = 20,
	WAIT_MS = 500, /* for boxes that somebody else has; who lets go of one tells */
	TEAMS = 32,    /* that are compared when it is told */
	INSTALL_MS = 120000,
	RUN_MS = 30000,
	TESTS = 50,
	EXAMPLES = 200,
};

enum unit_kind { UNIT_MAIN, UNIT_EXAMPLE, UNIT_TEST };

struct unit { /* what one box has to do */
	struct job job;
	struct execution *x;
	enum unit_kind kind;
	size_t n;                    /* of examples, or tests */
	char mark[HARNESS_MARK + 1]; /* a call; "": none */
	unsigned tries;
	int begun, over, ran, pass; /* ran: to a good end, whatever it said */
	json_t *row;                /* of examples or checks */
	json_t *phase;              /* how it ended */
};

struct execution {
	struct execution *next, **at; /* in fleet->executions */
	struct fleet *fleet;
	char team[STORE_NAME + 1];
	json_t *artifact, *result;
	struct execution_owner *owner;
	struct timer go, tick, install;
	struct needs needs;
	uint64_t install_began;
	int renewed; /* layers were lost once */
	struct unit *units;
	unsigned nunits, flying;
	int waiting; /* for boxes */
	int stage;   /* 0: nothing yet, 1: packages, 2: programs, 3: over */
};

/* ---- its end ---- */

static unsigned team_flies(const struct fleet *f, const char *team)
{
	unsigned n = 0;

	for (const struct execution *x = f->executions; x; x = x->next)
		n += strcmp(x->team, team) == 0 ? x->flying : 0;
	return n;
}

/* A box is free: for the team that has fewest, and of its executions for the oldest. */
static void wake_next(const struct fleet *f)
{
	const struct execution *seen[TEAMS];
	struct execution *best = NULL;
	unsigned nseen = 0, least = 0;

	for (struct execution *x = f->executions; x && nseen < TEAMS; x = x->next) {
		unsigned i = 0, flies;

		while (i < nseen && strcmp(seen[i]->team, x->team) != 0)
			i++;
		if (!x->waiting || i < nseen)
			continue;
		seen[nseen++] = x;
		flies = team_flies(f, x->team);
		if (!best || flies < least) {
			best = x;
			least = flies;
		}
	}
	if (best)
		timer_set(&best->go, 0);
}

static void stop_units(struct execution *x)
{
	for (unsigned i = 0; i < x->nunits; i++) {
		struct unit *u = &x->units[i];

		if (u->begun && !u->over) {
			job_fini(&u->job);
			x->flying--;
		}
		u->over = 1;
	}
}

void execution_cancel(struct execution *x)
{
	unsigned had;

	if (!x)
		return;
	had = x->flying;
	*x->at = x->next;
	if (x->next)
		x->next->at = x->at;
	stop_units(x);
	while (had--)
		wake_next(x->fleet);
	for (unsigned i = 0; i < x->nunits; i++) {
		json_decref(x->units[i].row);
		json_decref(x->units[i].phase);
	}
	free(x->units);
	needs_fini(&x->needs);
	timer_fini(&x->go);
	timer_fini(&x->tick);
	timer_fini(&x->install);
	json_decref(x->artifact);
	json_decref(x->result);
	free(x);
}

/* Nothing of ours is touched behind this. */
static void finish(struct execution *x, int success, const char *phase)
{
	struct execution_owner *o = x->owner;
	json_t *result = json_incref(x->result);

	json_object_set_new(result, "success", json_boolean(success));
	json_object_set_new(result, "phase", json_string(phase));
	execution_cancel(x);
	o->done(o, result);
}

static void add_phase(struct execution *x, json_t *take_phase)
{
	json_array_append_new(json_object_get(x->result, "phases"), take_phase);
}

static void give_up(struct execution *x, const char *phase, const char *cause, const struct err *e)
{
	add_phase(x, phase_plain(phase, cause, 0, e->msg));
	finish(x, 0, phase);
}

static void note_limit(struct execution *x, unsigned why)
{
	json_t *hit = json_object_get(x->result, "limits_hit"), *one;
	const char *name = phase_limit(why);
	size_t i;

	if (!name)
		return;
	json_array_foreach(hit, i, one)
	{
		if (!strcmp(json_string_value(one), name))
			return;
	}
	json_array_append_new(hit, json_string(name));
}

/* ---- the verdict over all ---- */

static int all_pass(const json_t *rows)
{
	const json_t *one;
	size_t i;

	json_array_foreach(rows, i, one)
	{
		if (!json_is_true(json_object_get(one, "pass")))
			return 0;
	}
	return 1;
}

/* The program first; of examples and tests the first that failed is told in full. */
static void conclude(struct execution *x)
{
	json_t *checks = json_object_get(x->result, "checks"),
	       *examples = json_object_get(x->result, "examples");
	const struct unit *told = NULL;
	const char *phase = "run";
	int good = 1;

	for (unsigned i = 0; i < x->nunits; i++) {
		struct unit *u = &x->units[i];

		if (u->phase && (!told || (told->pass && !u->pass)) && u->kind != UNIT_MAIN)
			told = u;
		if (u->phase && u->kind == UNIT_MAIN)
			add_phase(x, json_incref(u->phase));
		if (u->row)
			json_array_append(u->kind == UNIT_EXAMPLE ? examples : checks, u->row);
		good &= !u->begun || u->pass;
	}
	if (told && (!told->pass || !json_array_size(json_object_get(x->result, "phases"))))
		add_phase(x, json_incref(told->phase));
	if (!good || !all_pass(checks) || !all_pass(examples)) {
		json_t *phases = json_object_get(x->result, "phases");
		const json_t *last = json_array_get(phases, json_array_size(phases) - 1);

		phase = doc_text(last, "name");
		/* It ended as it should, and was not what was wanted. */
		if (!strcmp(phase, "run") &&
		    json_integer_value(json_object_get(last, "exit_code")) == 0 &&
		    !strcmp(doc_text(last, "cause"), "exit"))
			phase = "check";
		good = 0;
	}
	finish(x, good, phase);
}

/* ---- one box ---- */

static void pump(struct execution *x);

static int is_lost_layer(const struct job_end *end)
{
	return end->verdict == VERDICT_ERROR && end->e.kind == ERR_NOT_FOUND &&
	       strstr(end->e.msg, "there is no layer");
}

static void judge_example(struct unit *u, const struct job_end *end)
{
	const json_t *example = json_array_get(json_object_get(u->x->artifact, "examples"), u->n);
	const char *want = doc_text(example, "expected");
	const struct job *j = &u->job;
	const char *got = buf_str(&j->out[0]);
	size_t n = j->out[0].len;
	int ran = end->verdict != VERDICT_ERROR && end->verdict == VERDICT_PASSED;

	if (u->mark[0]) {
		got = harness_answer(got, n, u->mark, &n);
		u->pass = ran && got && harness_same(got, n, want);
	} else {
		u->pass = ran && j->seen[0] == n &&
			  judge_same(JUDGE_TRIMMED, got, n, want, strlen(want));
	}
	u->row = json_pack("{s:I, s:b, s:o, s:s, s:s}", "n", (json_int_t)u->n, "pass", u->pass,
			   "got",
			   got ? execute_text(got, n < PHASE_HEAD ? n : PHASE_HEAD, "", 0, n)
			       : json_null(),
			   "expected", want, "cause",
			   u->pass ? "exit"
			   : ran   ? "stdout"
				   : why_name(end->why));
	if (json_object_get(example, "call"))
		json_object_set(u->row, "call", json_object_get(example, "call"));
	else
		json_object_set(u->row, "input", json_object_get(example, "input"));
}

static void judge_test(struct unit *u, const struct job_end *end)
{
	const json_t *test = json_array_get(json_object_get(u->x->artifact, "tests"), u->n);

	u->pass = end->verdict == VERDICT_PASSED;
	u->row = json_pack("{s:s, s:s, s:b, s:s}", "kind", "test", "arg", doc_text(test, "path"),
			   "pass", u->pass, "detail", u->pass ? "" : why_name(end->why));
}

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

static void judge_behind(struct unit *u)
{
	const json_t *checks = json_object_get(u->x->artifact, "checks"), *arg;
	const char *kind;

	for (size_t i = 0; (kind = behind_kind(checks, i, &arg)); i++) {
		const struct job_behind *b = i < ITEM_BEHIND ? &u->job.behind[i] : NULL;
		int pass = b && b->ran && b->status == 0;

		json_array_append_new(json_object_get(u->x->result, "checks"),
				      json_pack("{s:s, s:O, s:b, s:o}", "kind", kind, "arg", arg,
						"pass", pass, "detail",
						b ? execute_text(buf_str(&b->said), b->said.len, "",
								 0, b->said.len)
						  : json_string("too many commands")));
	}
}

static void judge_main(struct unit *u, const struct job_end *end)
{
	json_t *rows = execute_checks(
		json_object_get(u->x->artifact, "checks"),
		end->end.exited && end->end.exit.why == WIRE_WHY_EXIT ? end->end.exit.status : -1,
		buf_str(&u->job.out[0]), u->job.out[0].len);

	u->pass = end->verdict == VERDICT_PASSED;
	json_array_extend(json_object_get(u->x->result, "checks"), rows);
	json_decref(rows);
	if (u->pass)
		judge_behind(u);
}

static void unit_done(struct job *j, const struct job_end *end)
{
	struct unit *u = loop_owner(j, struct unit, job);
	struct execution *x = u->x;
	const struct fleet_accounts *a = &x->fleet->accounts;

	x->flying--;
	wake_next(x->fleet);
	if (is_lost_layer(end) && !x->renewed) {
		x->renewed = 1;
		needs_lost(&x->needs);
		job_fini(j);
		u->begun = 0;
		x->stage = 0;
		timer_set(&x->go, 0);
		return;
	}
	if (end->verdict == VERDICT_ERROR && end->why == CAUSE_HOST && ++u->tries < TRIES) {
		job_fini(j);
		u->begun = 0;
		timer_set(&x->go, AGAIN_MS);
		return;
	}
	if (a->used)
		a->used(a->ctx, x->team, end->end.exit.user_us + end->end.exit.system_us,
			j->seen[0] + j->seen[1]);
	u->ran = end->verdict == VERDICT_PASSED;
	u->phase = end->verdict == VERDICT_ERROR
			   ? phase_plain("run", why_name(end->why), 0, end->e.msg)
			   : phase_of(j, end);
	note_limit(x, end->why);
	(u->kind == UNIT_MAIN      ? judge_main
	 : u->kind == UNIT_EXAMPLE ? judge_example
				   : judge_test)(u, end);
	job_fini(j);
	u->over = 1;
	pump(x);
}

static void unit_said(struct job *j, const char *step, unsigned stream, const char *bytes, size_t n)
{
	struct unit *u = loop_owner(j, struct unit, job);

	u->x->owner->said(u->x->owner, step, stream, bytes, n);
}

/* ---- from an artifact to an item ---- */

static uint64_t limit(const struct execution *x, const char *name, uint64_t otherwise)
{
	json_int_t n =
		json_integer_value(json_object_get(json_object_get(x->artifact, "limits"), name));

	return n > 0 ? (uint64_t)n : otherwise;
}

static json_t *env_of(const struct execution *x)
{
	json_t *env = json_copy(json_object_get(x->artifact, "env"));

	if (!json_is_object(env)) {
		json_decref(env);
		env = json_object();
	}
	needs_env(&x->needs, env);
	return env;
}

static size_t output_wanted(const struct unit *u)
{
	const json_t *example = json_array_get(json_object_get(u->x->artifact, "examples"), u->n);
	size_t n = u->kind == UNIT_EXAMPLE
			   ? json_string_length(json_object_get(example, "expected"))
			   : 0;

	n = n + 4096 > PHASE_HEAD ? n + 4096 : PHASE_HEAD;
	return n < ITEM_OUTPUT_MAX ? n : ITEM_OUTPUT_MAX;
}

static json_t *item_doc(const struct unit *u)
{
	const struct execution *x = u->x;
	uint64_t run_ms = limit(x, "run_ms", RUN_MS), mem = limit(x, "memory", 0);
	json_t *doc = json_pack("{s:s, s:O, s:s, s:o, s:{s:I}, s:I}", "language",
				doc_text(x->artifact, "language"), "files",
				json_object_get(x->artifact, "files"), "entry",
				doc_text(x->artifact, "entry"), "env", env_of(x), "timeouts",
				"run_ms", (json_int_t)(run_ms < 3600000 ? run_ms : 3600000),
				"max_output", (json_int_t)output_wanted(u));

	if (mem)
		json_object_set_new(doc, "limits", json_pack("{s:I}", "mem", (json_int_t)mem));
	return doc;
}

static void set_input(json_t *doc, const json_t *input)
{
	/* A program that asks for more than there is finds the end, and does not wait. */
	json_object_set_new(doc, "stdin",
			    json_string(json_is_string(input) ? json_string_value(input) : ""));
}

/* A test without a command is run as a program. One that only has functions has somebody to call
 * them. */
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

static int test_doc(const struct unit *u, json_t *doc)
{
	const json_t *test = json_array_get(json_object_get(u->x->artifact, "tests"), u->n);
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

static int example_doc(struct unit *u, json_t *doc, struct err *e)
{
	const json_t *example = json_array_get(json_object_get(u->x->artifact, "examples"), u->n);
	const char *call = doc_text(example, "call"), *entry;
	char random[ID_LEN + 1];
	json_t *files;

	if (!*call) {
		set_input(doc, json_object_get(example, "input"));
		return 0;
	}
	if (id_new(random, e) < 0)
		return -1;
	snprintf(u->mark, sizeof(u->mark), "atoll:%s:", random);
	if (harness_call(u->x->artifact, call, u->mark, &files, &entry, e) < 0)
		return -1;
	json_object_set_new(doc, "files", files);
	json_object_set_new(doc, "entry", json_string(entry));
	set_input(doc, json_object_get(u->x->artifact, "stdin"));
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

static void set_behind(struct unit *u, json_t *keep)
{
	const json_t *arg;
	const char *kind;

	for (size_t i = 0; i < ITEM_BEHIND &&
			   (kind = behind_kind(json_object_get(u->x->artifact, "checks"), i, &arg));
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

static int make_item(struct unit *u, struct err *e)
{
	struct execution *x = u->x;
	struct item_defaults d = { .limits = x->fleet->conf.limits };
	json_t *doc = item_doc(u), *kept = json_object_get(x->artifact, "behind");
	struct item *item = &u->job.item;
	int made = u->kind == UNIT_MAIN ? (set_input(doc, json_object_get(x->artifact, "stdin")), 0)
		   : u->kind == UNIT_EXAMPLE ? example_doc(u, doc, e)
					     : test_doc(u, doc);

	if (made < 0) {
		json_decref(doc);
		return -1;
	}
	if (item_make(item, doc, &d, e) < 0)
		return -1;
	item->tail = PHASE_TAIL;
	item->flood = FLOOD;
	needs_put(&x->needs, item);
	if (u->kind == UNIT_MAIN) {
		item->want_code = wanted_exit(json_object_get(x->artifact, "checks"));
		if (!kept) {
			kept = json_array();
			json_object_set_new(x->artifact, "behind", kept); /* of our copy */
		}
		set_behind(u, kept);
	}
	return 0;
}

/* ---- the boxes ---- */

static unsigned cpus(void)
{
	static unsigned n;
	cpu_set_t set;

	if (!n)
		n = sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 2;
	return n;
}

static int may_begin(const struct execution *x)
{
	const struct fleet_accounts *a = &x->fleet->accounts;
	unsigned all = 0;

	for (const struct execution *y = x->fleet->executions; y; y = y->next)
		all += y->flying;
	return all < cpus() * BOXES_PER_CPU &&
	       (!a->may_have || team_flies(x->fleet, x->team) < a->may_have(a->ctx, x->team));
}

/* It could not even begin; the same for all of them. */
static void refuse(struct unit *u, unsigned why, const struct err *e)
{
	struct job_end end = { .verdict = VERDICT_ERROR, .why = why, .e = *e };

	u->begun = u->over = 1;
	u->phase = phase_plain("run", why_name(why), 0, e->msg);
	if (u->kind == UNIT_EXAMPLE)
		judge_example(u, &end);
	else if (u->kind == UNIT_TEST)
		judge_test(u, &end);
}

static void begin_unit(struct unit *u)
{
	struct execution *x = u->x;
	const struct fleet_accounts *a = &x->fleet->accounts;
	unsigned tries = u->tries;
	struct err e;

	u->job = (struct job){ .done = unit_done, .fleet = x->fleet };
	if (x->owner->said && u->kind == UNIT_MAIN)
		u->job.said = unit_said;
	if (make_item(u, &e) < 0) {
		refuse(u, WHY_INVALID, &e);
		job_fini(&u->job);
		return;
	}
	if (!tries && a->may_run && !a->may_run(a->ctx, x->team, &e)) {
		refuse(u, WHY_QUOTA, &e);
		job_fini(&u->job);
		return;
	}
	u->begun = 1;
	x->flying++;
	job_start(&u->job, x->fleet);
}

/* What is behind a program that failed need not be tried. */
static int is_settled(const struct execution *x)
{
	const struct unit *first = x->units;

	return first->over && !first->pass && (first->kind == UNIT_MAIN || !first->ran);
}

static void pump(struct execution *x)
{
	unsigned over = 0;

	if (x->stage != 2)
		return; /* its packages are being looked for again */
	x->waiting = 0;
	for (unsigned i = 0; i < x->nunits && x->flying < BOXES; i++) {
		struct unit *u = &x->units[i];

		if (i && (!x->units[0].over || is_settled(x)))
			break;
		if (u->begun)
			continue;
		if (!may_begin(x)) {
			x->waiting = 1;
			timer_set(&x->go, WAIT_MS);
			break;
		}
		begin_unit(u);
	}
	for (unsigned i = 0; i < x->nunits; i++)
		over += x->units[i].over;
	if (over == x->nunits || (is_settled(x) && !x->flying))
		conclude(x);
}

static int has_inputs(const json_t *examples)
{
	const json_t *one;
	size_t i;

	json_array_foreach(examples, i, one)
	{
		if (json_object_get(one, "input"))
			return 1;
	}
	return 0;
}

static void add_unit(struct execution *x, enum unit_kind kind, size_t n)
{
	x->units[x->nunits++] = (struct unit){ .x = x, .kind = kind, .n = n };
}

static void make_units(struct execution *x)
{
	const json_t *examples = json_object_get(x->artifact, "examples"),
		     *tests = json_object_get(x->artifact, "tests");
	size_t ne = json_array_size(examples), nt = json_array_size(tests);
	int alone = json_string_length(json_object_get(x->artifact, "stdin")) > 0 ||
		    !has_inputs(examples);

	ne = ne < EXAMPLES ? ne : EXAMPLES;
	nt = nt < TESTS ? nt : TESTS;
	x->units = calloc(ne + nt + 1, sizeof(*x->units));
	if (!x->units)
		abort();
	if (alone)
		add_unit(x, UNIT_MAIN, 0);
	for (size_t i = 0; i < ne; i++)
		add_unit(x, UNIT_EXAMPLE, i);
	for (size_t i = 0; i < nt; i++)
		add_unit(x, UNIT_TEST, i);
}

/* ---- packages ---- */

static void installed(struct execution *x, uint64_t ms)
{
	json_t *all = json_object_get(x->result, "installed");

	timer_clear(&x->install);
	json_array_extend(all, json_object_get(x->artifact, "packages"));
	if (ms)
		add_phase(x, phase_plain("install", "exit", ms, ""));
	x->stage = 2;
	if (!x->nunits)
		make_units(x);
	pump(x);
}

static void install_said(struct needs *n, unsigned stream, const char *bytes, size_t len)
{
	struct execution *x = loop_owner(n, struct execution, needs);

	if (x->owner->said)
		x->owner->said(x->owner, "install", stream, bytes, len);
}

static void install_done(struct needs *n, uint64_t ms, const struct packages_failure *f)
{
	struct execution *x = loop_owner(n, struct execution, needs);

	if (!f) {
		installed(x, ms ? ms : 1);
		return;
	}
	if (f->d.fault == INSTALL_TIMEOUT)
		note_limit(x, CAUSE_WALL);
	add_phase(x, phase_install(f, loop_now_ms() - x->install_began));
	finish(x, 0, "install");
}

static void install_late(struct timer *t)
{
	struct execution *x = loop_owner(t, struct execution, install);
	struct err e;

	err_set(&e, ERR_LIMIT, "the packages were not installed within %llu ms",
		(unsigned long long)limit(x, "install_ms", INSTALL_MS));
	note_limit(x, CAUSE_WALL);
	give_up(x, "install", "wall", &e);
}

static void begin(struct execution *x)
{
	struct err e;
	int there;

	x->stage = 1;
	x->install_began = loop_now_ms();
	there = needs_begin(&x->needs, x->artifact, x->team, &e);
	if (there < 0)
		give_up(x, "install", e.kind == ERR_DENIED ? "policy" : "invalid", &e);
	else if (there)
		installed(x, 0);
	else
		timer_set(&x->install, limit(x, "install_ms", INSTALL_MS));
}

/* ---- the whole ---- */

static int scan(struct execution *x)
{
	json_t *found = scan_files(doc_text(x->artifact, "language"),
				   json_object_get(x->artifact, "files"));
	struct store_policy policy = { 0 };
	struct err e;
	int blocked;

	/* A policy that cannot be read is none: then each rule decides. */
	if (x->fleet->store && store_policy_get(x->fleet->store, x->team, &policy, &e) < 0)
		policy.scan[0] = '\0';
	blocked = scan_apply(found, policy.scan) != 0;
	json_object_set_new(x->result, "scan_policy", json_string(policy.scan[0] ? policy.scan : "block"));
	json_object_set_new(x->result, "scan", found);
	return blocked;
}

static void go_on(struct timer *t)
{
	struct execution *x = loop_owner(t, struct execution, go);
	struct err e;

	if (x->stage == 2) {
		pump(x);
	} else if (x->stage == 0 && !x->renewed && scan(x)) {
		err_set(&e, ERR_DENIED, "the program was not run: %.150s",
			doc_text(json_array_get(json_object_get(x->result, "scan"), 0), "why"));
		give_up(x, "scan", "policy", &e);
	} else if (x->stage == 0) {
		begin(x);
	}
}

static void look(struct timer *t)
{
	struct execution *x = loop_owner(t, struct execution, tick);
	uint64_t now = loop_now_ms();

	timer_set(t, TICK_MS);
	for (unsigned i = 0; i < x->nunits; i++) {
		struct job *j = &x->units[i].job;
		int last = j->is_behind &&
			   now >= j->deadline_ms; /* ends at once, and perhaps all of us */

		if (!x->units[i].begun || x->units[i].over)
			continue;
		job_check(j, now);
		if (last)
			return;
	}
}

struct execution *execution_start(struct fleet *f, const char *team, const json_t *artifact,
				  struct execution_owner *o)
{
	struct execution *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->fleet = f;
	x->owner = o;
	snprintf(x->team, sizeof(x->team), "%s", team);
	x->artifact = json_deep_copy(artifact);
	x->result = json_pack("{s:s, s:s, s:b, s:s, s:[], s:[], s:[], s:[], s:[], s:[]}", "schema",
			      AGENT_RESULT, "artifact_hash", doc_text(artifact, "hash"), "success",
			      0, "phase", "run", "phases", "checks", "examples", "limits_hit",
			      "installed", "scan");
	x->needs = (struct needs){ .fleet = f, .said = install_said, .done = install_done };
	timer_init(&x->go, f->loop, go_on);
	timer_init(&x->tick, f->loop, look);
	timer_init(&x->install, f->loop, install_late);
	timer_set(&x->go, 0);
	timer_set(&x->tick, TICK_MS);
	for (x->at = &f->executions; *x->at; x->at = &(*x->at)->next)
		; /* the oldest first */
	*x->at = x;
	return x;
}
