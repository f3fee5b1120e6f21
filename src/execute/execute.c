/* execute.c - see execute.h. */
#include "execute/execute.h"
#include "execute/harness.h"
#include "execute/result_phase.h"
#include "execute/scan.h"
#include "execute/execution_unit.h"
#include "store/pipelines.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	BOXES = 4, /* parallel boxes of one execution */
	BOXES_PER_CPU = 4,
	TRIES = 3, /* retries of a box that was lost without fault of the program */
	TICK_MS = 1000,
	AGAIN_MS = 20,
	WAIT_MS = 500, /* wait for boxes in use; a released box wakes the next execution */
	TEAMS = 32,    /* executions that are compared then */
	INSTALL_MS = 120000,
	TESTS = 50,
	EXAMPLES = 200,
};

struct execution {
	struct execution *next, **at; /* in fleet->executions */
	struct fleet *fleet;
	char team[STORE_NAME + 1];
	json_t *artifact, *result;
	struct execution_owner *owner;
	struct timer go, tick, install;
	struct artifact_packages needs;
	uint64_t install_began;
	int renewed; /* layers were lost once */
	struct execution_unit *units;
	unsigned nunits, flying;
	int waiting; /* for boxes */
	int late;    /* an example reached its time limit: the others would, too */
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

/* A free box goes to the team with the fewest boxes, and there to the oldest execution. */
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
		struct execution_unit *u = &x->units[i];

		if (u->begun && !u->over) {
			batch_job_fini(&u->job);
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
	for (unsigned i = 0; i < x->nunits; i++)
		execution_unit_fini(&x->units[i]);
	free(x->units);
	artifact_packages_fini(&x->needs);
	timer_fini(&x->go);
	timer_fini(&x->tick);
	timer_fini(&x->install);
	json_decref(x->artifact);
	json_decref(x->result);
	free(x);
}

/* The execution may be freed after this. */
static void execute_finish(struct execution *x, int success, const char *phase)
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
	execute_finish(x, 0, phase);
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

/* The program first; of examples and tests the first failure is reported completely. */
static void execute_conclude(struct execution *x)
{
	json_t *checks = json_object_get(x->result, "checks"),
	       *examples = json_object_get(x->result, "examples");
	const struct execution_unit *told = NULL;
	const char *phase = "run";
	int good = 1;

	for (unsigned i = 0; i < x->nunits; i++) {
		struct execution_unit *u = &x->units[i];

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
		/* It exited normally, but the output was wrong. */
		if (!strcmp(phase, "run") &&
		    json_integer_value(json_object_get(last, "exit_code")) == 0 &&
		    !strcmp(doc_text(last, "cause"), "exit"))
			phase = "check";
		good = 0;
	}
	execute_finish(x, good, phase);
}

/* ---- one box ---- */

static void execute_pump(struct execution *x);

static int is_lost_layer(const struct batch_job_end *end)
{
	return end->verdict == VERDICT_ERROR && end->e.kind == ERR_NOT_FOUND &&
	       strstr(end->e.msg, "there is no layer");
}

static void unit_done(struct batch_job *j, const struct batch_job_end *end)
{
	struct execution_unit *u = loop_owner(j, struct execution_unit, job);
	struct execution *x = u->x;
	const struct fleet_accounts *a = &x->fleet->accounts;

	x->flying--;
	wake_next(x->fleet);
	if (is_lost_layer(end) && !x->renewed) {
		x->renewed = 1;
		artifact_packages_lost(&x->needs);
		batch_job_fini(j);
		u->begun = 0;
		x->stage = 0;
		timer_set(&x->go, 0);
		return;
	}
	if (end->verdict == VERDICT_ERROR && end->why == CAUSE_HOST && ++u->tries < TRIES) {
		batch_job_fini(j);
		u->begun = 0;
		timer_set(&x->go, AGAIN_MS);
		return;
	}
	if (a->used)
		a->used(a->ctx, x->team, end->cpu_us, j->seen[0] + j->seen[1]);
	if (end->verdict != VERDICT_ERROR)
		batch_job_charge_pipeline(j, end, x->team, x->owner->key, x->owner->pipeline);
	note_limit(x, end->why);
	x->late |= end->why == CAUSE_WALL || end->why == CAUSE_CPU;
	execution_unit_judge(u, end, json_object_get(x->result, "checks"));
	batch_job_fini(j);
	execute_pump(x);
}

static void unit_said(struct batch_job *j, const char *step, unsigned stream, const char *bytes,
		      size_t n)
{
	struct execution_unit *u = loop_owner(j, struct execution_unit, job);

	u->x->owner->said(u->x->owner, step, stream, bytes, n);
}

/* ---- the boxes ---- */

static unsigned execute_cpus(void)
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
	return all < execute_cpus() * BOXES_PER_CPU &&
	       (!a->may_have || team_flies(x->fleet, x->team) < a->may_have(a->ctx, x->team));
}

/* The owner is asked for each box: layers of a checkpoint are merged while executions run. */
static int execute_add_files(struct execution *x, struct batch_item *item, struct err *e)
{
	struct batch_files files = { 0 };

	if (!x->owner->files)
		return 0;
	return x->owner->files(x->owner, &files, e) < 0 ? -1
							: batch_item_begin_with(item, &files, e);
}

static void begin_unit(struct execution_unit *u)
{
	struct execution *x = u->x;
	const struct fleet_accounts *a = &x->fleet->accounts;
	unsigned tries = u->tries;
	struct err e;

	u->job = (struct batch_job){ .done = unit_done, .fleet = x->fleet, .warm_team = x->team };
	if (x->owner->said && u->kind == UNIT_MAIN)
		u->job.said = unit_said;
	if (execution_unit_make(u, &x->needs, &x->fleet->conf, &e) < 0 ||
	    execute_add_files(x, &u->job.item, &e) < 0) {
		execution_unit_refuse(u, WHY_INVALID, &e);
		batch_job_fini(&u->job);
		return;
	}
	if (!tries && a->may_run && !a->may_run(a->ctx, x->team, &e)) {
		execution_unit_refuse(u, WHY_QUOTA, &e);
		batch_job_fini(&u->job);
		return;
	}
	if (batch_job_choose(&u->job, x->fleet, x->owner->key, &x->owner->isolation, 0, &e) < 0) {
		execution_unit_refuse(u, WHY_INVALID, &e);
		batch_job_fini(&u->job);
		return;
	}
	u->begun = 1;
	x->flying++;
	batch_job_start(&u->job, x->fleet);
}

/* After a failed program the rest is not tried. */
static int is_settled(const struct execution *x)
{
	const struct execution_unit *first = x->units;

	return x->late ||
	       (first->over && !first->pass && (first->kind == UNIT_MAIN || !first->ran));
}

static void execute_pump(struct execution *x)
{
	unsigned over = 0;

	if (x->stage != 2)
		return; /* its packages are being resolved again */
	x->waiting = 0;
	for (unsigned i = 0; i < x->nunits && x->flying < BOXES; i++) {
		struct execution_unit *u = &x->units[i];

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
		execute_conclude(x);
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

static void add_unit(struct execution *x, enum execution_unit_kind kind, size_t n)
{
	x->units[x->nunits++] = (struct execution_unit){
		.x = x, .artifact = x->artifact, .env = x->owner->env, .kind = kind, .n = n
	};
}

static void make_units(struct execution *x)
{
	const json_t *examples = json_object_get(x->artifact, "examples"),
		     *tests = json_object_get(x->artifact, "tests");
	size_t ne = json_array_size(examples), nt = json_array_size(tests);
	int alone = json_string_length(json_object_get(x->artifact, "stdin")) > 0 ||
		    (!has_inputs(examples) && (!(ne + nt) || harness_has_main(x->artifact)));

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

static void execute_installed(struct execution *x, uint64_t ms)
{
	json_t *all = json_object_get(x->result, "installed");

	timer_clear(&x->install);
	json_array_extend(all, json_object_get(x->artifact, "packages"));
	if (ms)
		add_phase(x, phase_plain("install", "exit", ms, ""));
	x->stage = 2;
	if (!x->nunits)
		make_units(x);
	execute_pump(x);
}

static void install_said(struct artifact_packages *n, unsigned stream, const char *bytes,
			 size_t len)
{
	struct execution *x = loop_owner(n, struct execution, needs);

	if (x->owner->said)
		x->owner->said(x->owner, "install", stream, bytes, len);
}

static void install_done(struct artifact_packages *n, uint64_t ms, const struct packages_failure *f)
{
	struct execution *x = loop_owner(n, struct execution, needs);

	if (!f) {
		execute_installed(x, ms ? ms : 1);
		return;
	}
	if (f->d.fault == INSTALL_TIMEOUT)
		note_limit(x, CAUSE_WALL);
	add_phase(x, phase_install(f, loop_now_ms() - x->install_began));
	execute_finish(x, 0, "install");
}

static void install_late(struct timer *t)
{
	struct execution *x = loop_owner(t, struct execution, install);
	struct err e;

	err_set(&e, ERR_LIMIT, "the packages were not installed within %llu ms",
		(unsigned long long)artifact_limit(x->artifact, "install_ms", INSTALL_MS));
	note_limit(x, CAUSE_WALL);
	give_up(x, "install", "wall", &e);
}

static void execute_begin(struct execution *x)
{
	struct err e;
	int there;

	x->stage = 1;
	x->install_began = loop_now_ms();
	there = artifact_packages_begin(&x->needs, x->artifact, x->team, &e);
	if (there < 0)
		give_up(x, "install", e.kind == ERR_DENIED ? "policy" : "invalid", &e);
	else if (there)
		execute_installed(x, 0);
	else
		timer_set(&x->install, artifact_limit(x->artifact, "install_ms", INSTALL_MS));
}

/* ---- the whole ---- */

static int execute_scan(struct execution *x)
{
	json_t *found = scan_files(doc_text(x->artifact, "language"),
				   json_object_get(x->artifact, "files"));
	struct store_policy policy = { 0 };
	struct err e;
	int blocked;

	/* Without a readable policy each rule decides. */
	if (x->fleet->store && store_policy_get(x->fleet->store, x->team, &policy, &e) < 0)
		policy.scan[0] = '\0';
	blocked = scan_apply(found, policy.scan) != 0;
	json_object_set_new(x->result, "scan_policy",
			    json_string(policy.scan[0] ? policy.scan : "block"));
	json_object_set_new(x->result, "scan", found);
	return blocked;
}

static void execute_continue(struct timer *t)
{
	struct execution *x = loop_owner(t, struct execution, go);
	struct err e;

	if (x->stage == 2) {
		execute_pump(x);
	} else if (x->stage == 0 && !x->renewed && execute_scan(x)) {
		err_set(&e, ERR_DENIED, "the program was not run: %.150s",
			doc_text(json_array_get(json_object_get(x->result, "scan"), 0), "why"));
		give_up(x, "scan", "policy", &e);
	} else if (x->stage == 0) {
		execute_begin(x);
	}
}

static void execute_look(struct timer *t)
{
	struct execution *x = loop_owner(t, struct execution, tick);
	uint64_t now = loop_now_ms();

	timer_set(t, TICK_MS);
	for (unsigned i = 0; i < x->nunits; i++) {
		struct batch_job *j = &x->units[i].job;
		int last = j->is_behind &&
			   now >= j->deadline_ms; /* may end at once and free the execution */

		if (!x->units[i].begun || x->units[i].over)
			continue;
		batch_job_check(j, now);
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
	x->needs = (struct artifact_packages){ .fleet = f,
					       .said = install_said,
					       .done = install_done };
	timer_init(&x->go, f->loop, execute_continue);
	timer_init(&x->tick, f->loop, execute_look);
	timer_init(&x->install, f->loop, install_late);
	timer_set(&x->go, 0);
	timer_set(&x->tick, TICK_MS);
	for (x->at = &f->executions; *x->at; x->at = &(*x->at)->next)
		; /* the oldest first */
	*x->at = x;
	return x;
}
