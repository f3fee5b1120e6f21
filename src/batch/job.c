/* job.c - see job.h. */
#include "lang/lang.h"
#include "batch/job.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/cleanup.h"
#include "wire/sock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
	WINDOW = 256 * 1024, /* bytes of output in transit */
	LOG = 128 * 1024,    /* stored by init until the server has read them */
	SLACK = 64 *
		1024, /* bytes beyond the expected output that are still compared, e.g. blanks */
	STDIN_PIECE = 32 * 1024,
	STUCK_MS = 5000,    /* after its time limit */
	BEHIND_SAID = 4096, /* bytes of output of a command after the program */
	PACK_MS = 20000,
};

static const char *const verdicts[VERDICT_COUNT] = {
	[VERDICT_PASSED] = "passed",
	[VERDICT_FAILED] = "failed",
	[VERDICT_ERROR] = "error",
};

const char *verdict_name(enum verdict v)
{
	return v < VERDICT_COUNT ? verdicts[v] : "error";
}

const char *why_name(unsigned why)
{
	static const char *const more[] = { "stdout", "output", "compile", "invalid", "quota" };

	_Static_assert(ARRAY_LEN(more) == WHY_COUNT - CAUSE_COUNT, "a reason without a name");
	if (why < CAUSE_COUNT)
		return cause_name((enum cause)why);
	return why < WHY_COUNT ? more[why - CAUSE_COUNT] : "host";
}

static uint64_t now_us(void)
{
	return now_ns() / 1000;
}

/* ---- the verdict ---- */

static void close_box(struct batch_job *j)
{
	init_conn_remove_call(&j->init_call);
	init_conn_remove_call(&j->laid);
	if (j->open)
		init_conn_close(&j->line); /* and with it ends the box */
	j->open = 0;
}

static void job_fail(struct batch_job *j, unsigned why, const struct err *e)
{
	struct batch_job_end end = { .verdict = VERDICT_ERROR, .why = why, .e = *e };

	close_box(j);
	j->done(j, &end);
}

static struct exit_info ending_of(const struct batch_job *j, const struct wire_counters *figures)
{
	const struct batch_item_step *s = &j->item.steps[j->step];
	struct exit_info end = {
		.program = s->argv[0],
		.cwd = j->item.cwd,
		.end = j->exited ? STREAM_EXITED : STREAM_BOX_DIED,
		.exited = j->exited,
		.exit = j->exit,
		.evidence = figures != NULL,
		.limits = j->about.limits,
		.engine = j->about.tier != WIRE_TIER_CONTAINER,
		.wall_ms = s->wall_ms,
		.run_us = j->exited ? j->exit.wall_us : now_us() - j->began_us,
	};

	if (figures)
		end.figures = *figures;
	if (figures && end.figures.cpu_us != UINT64_MAX)
		end.figures.cpu_us -= end.figures.cpu_us < j->cpu_before_us ? end.figures.cpu_us
									    : j->cpu_before_us;
	if (j->overdue && !j->exited) { /* the server ended it, because init did not */
		end.exited = 1;
		end.exit = (struct wire_exit){ .why = WIRE_WHY_WALL, .status = 9 };
		end.end = STREAM_EXITED;
	}
	return end;
}

static int ended_well(const struct batch_job *j, const struct exit_info *end)
{
	return end->exited && end->exit.why == WIRE_WHY_EXIT &&
	       (j->item.any_code || end->exit.status == j->item.want_code);
}

static int says_it(const struct batch_job *j, struct batch_job_end *end)
{
	const struct batch_item *x = &j->item;

	if (!x->want)
		return 1;
	end->differs_line =
		output_compare_line(x->how, j->out[0].p, j->out[0].len, x->want, x->want_len);
	return end->differs_line == 0;
}

/* Of the whole box, where the kernel counts it; else of this step. */
static uint64_t cpu_of(const struct batch_job *j, const struct exit_info *end,
		       const struct wire_counters *last)
{
	uint64_t us = cause_cpu_us(end);

	if (last && last->cpu_us != UINT64_MAX)
		return last->cpu_us;
	return (us == UINT64_MAX ? 0 : us) + j->cpu_before_us;
}

/* figures: at the end of the program; last: at the end of the box. Either may be NULL. */
static void conclude_with(struct batch_job *j, const struct wire_counters *figures,
			  const struct wire_counters *last)
{
	struct batch_job_end end = { .end = ending_of(j, figures),
				     .step = j->item.steps[j->step].what };
	enum cause cause = cause_of(&end.end);
	int compiling = j->step + 1 < j->item.nsteps;

	close_box(j);
	end.cpu_us = cpu_of(j, &end.end, last);
	end.verdict = VERDICT_FAILED;
	end.why = cause;
	if (j->flooded) {
		end.why = WHY_OUTPUT;
	} else if (cause == CAUSE_HOST || cause == CAUSE_OPERATOR) {
		end.verdict = VERDICT_ERROR;
		err_set(&end.e, ERR_SYS, "the box was lost");
	} else if (compiling) {
		end.why = cause == CAUSE_EXIT ? WHY_COMPILE : (unsigned)cause;
	} else if (ended_well(j, &end.end)) {
		int same = says_it(j, &end);

		end.verdict = same ? VERDICT_PASSED : VERDICT_FAILED;
		end.why = same ? CAUSE_EXIT : WHY_STDOUT;
	}
	j->done(j, &end);
}

static void job_conclude(struct batch_job *j, const struct wire_counters *figures)
{
	conclude_with(j, figures, figures);
}

static void on_gone(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct batch_job *j = ctx;

	(void)len;
	(void)fd;
	(void)e; /* it is gone already */
	j->asking = NULL;
	job_conclude(j, (const struct wire_counters *)f);
}

/* The end needs an explanation: reads the kernel's counters of the whole box, once it has ended. */
static void look_back(struct batch_job *j)
{
	if (j->asking)
		return;
	init_conn_remove_call(&j->init_call);
	j->asking = keeper_client_request_box(&j->fleet->keeper, WIRE_KILL, WIRE_KILL_FIGURES,
					      j->about.id, WIRE_DESTROYED, on_gone, j);
}

/* ---- input ---- */

static void push_input(struct batch_job *j, uint64_t room)
{
	const struct batch_item *x = &j->item;

	while (j->input_sent < x->input_len && j->input_sent < room) {
		size_t n = x->input_len - j->input_sent;

		n = n < STDIN_PIECE ? n : STDIN_PIECE;
		n = room - j->input_sent < n ? (size_t)(room - j->input_sent) : n;
		init_conn_stdin(&j->line, j->init_call.ref, x->input + j->input_sent, n);
		j->input_sent += n;
	}
	if (j->input_sent == x->input_len && !j->input_ended) {
		init_conn_stdin(&j->line, j->init_call.ref, NULL, 0);
		j->input_ended = 1;
	}
}

/* ---- behind the program ---- */

static void next_behind(struct batch_job *j);

static void ask_figures(struct batch_job *j, keeper_done *done)
{
	j->asking = keeper_client_request_box(&j->fleet->keeper, WIRE_COUNTERS, 0, j->about.id,
					      WIRE_COUNTERS_REPLY, done, j);
}

/* The CPU time of commands after the program counts for its team, too, but not for the program. */
static void on_all_counted(void *ctx, const struct frame *f, size_t len, int *fd,
			   const struct err *e)
{
	struct batch_job *j = ctx;

	(void)len;
	(void)fd;
	(void)e;
	j->asking = NULL;
	conclude_with(j, j->counted ? &j->figures : NULL, (const struct wire_counters *)f);
}

static void behind_said(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);
	struct buf *said = &j->behind[j->nbehind - 1].said;
	size_t room = said->len < BEHIND_SAID ? BEHIND_SAID - said->len : 0;

	buf_add(said, bytes, n < room ? n : room);
	init_conn_credit(x, stream, offset + n + WINDOW);
}

static void behind_ended(struct init_call *x, const struct wire_exit *exit)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);
	struct batch_job_post *b = &j->behind[j->nbehind - 1];
	struct exit_info end = {
		.program = "/bin/bash", .end = STREAM_EXITED, .exited = 1, .exit = *exit
	};

	b->ran = 1;
	b->cause = cause_of(&end);
	b->status = cause_status(&end);
	next_behind(j);
}

static void behind_refused(struct init_call *x, const struct err *e)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);

	(void)e; /* it did not run: the result has the error */
	next_behind(j);
}

static const struct init_call_ops behind_on = {
	.output = behind_said,
	.exited = behind_ended,
	.refused = behind_refused,
};

static void next_behind(struct batch_job *j)
{
	const char *argv[] = { "/bin/bash", "-c", NULL, NULL };
	struct box_command cmd = { .argv = argv,
				   .env = j->item.env,
				   .cwd = j->item.cwd,
				   .wall_ms = j->item.steps[j->step].wall_ms,
				   .log_bytes = LOG,
				   .credit = WINDOW };
	struct err e;

	j->is_behind = 1;
	init_conn_remove_call(&j->init_call);
	while (j->nbehind < j->item.nbehind) {
		argv[2] = j->item.behind[j->nbehind++];
		j->deadline_ms = loop_now_ms() + cmd.wall_ms + STUCK_MS;
		if (init_conn_start(&j->line, &j->init_call, init_conn_new_ref(&j->line),
				    &behind_on, &cmd, &e) == 0)
			return;
	}
	ask_figures(j, on_all_counted);
}

/* ---- what a compiler has made ---- */

static void start_step(struct batch_job *j);

static void find_made(struct batch_job *j)
{
	const struct batch_item *x = &j->item;
	struct compile_inputs of = { .surface = "job",
				     .team = j->team,
				     .argv = x->steps[0].argv,
				     .env = x->env,
				     .cwd = x->cwd,
				     .source = x->program.source,
				     .code = x->code,
				     .code_len = x->code_len,
				     .files = x->files,
				     .support = x->program.lang ? x->program.lang->support : NULL,
				     .layers = (const char(*)[WIRE_LAYER_ID])x->layers,
				     .nlayers = x->nlayers };

	if (!j->team || !j->fleet->compile_caches || x->nsteps != 2 || !x->program.lang ||
	    x->nchain || compile_cache_uses_time(&of))
		return;
	of.program = lang_program(x->program.lang);
	compile_cache_key(&of, &j->key);
	j->keyed = 1;
	j->found = compile_cache_get(j->fleet->compile_caches, &j->key, &j->made);
}

static void start_helper(struct batch_job *j, const char **take_argv,
			 const struct init_call_ops *on)
{
	struct box_command cmd = { .argv = take_argv,
				   .env = j->item.env,
				   .wall_ms = PACK_MS,
				   .log_bytes = LOG,
				   .credit = WINDOW };
	struct err e;

	free(j->helper);
	j->helper = take_argv;
	init_conn_remove_call(&j->init_call);
	j->deadline_ms = loop_now_ms() + cmd.wall_ms + STUCK_MS;
	if (init_conn_start(&j->line, &j->init_call, init_conn_new_ref(&j->line), on, &cmd, &e) < 0)
		job_fail(j, CAUSE_HOST, &e);
}

static void job_start_step(struct batch_job *j, unsigned step)
{
	buf_fini(&j->made);
	init_conn_remove_call(&j->init_call);
	j->step = step;
	start_step(j);
}

static int went_well(const struct wire_exit *exit)
{
	return exit->why == WIRE_WHY_EXIT && exit->status == 0;
}

/* The output of a helper is ignored. */
static void helper_said(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	(void)bytes;
	init_conn_credit(x, stream, offset + n + WINDOW);
}

static void helper_refused(struct init_call *x, const struct err *e)
{
	struct err why = *e;

	job_fail(loop_owner(x, struct batch_job, init_call), CAUSE_HOST, &why);
}

static void job_unpacked(struct init_call *x, const struct wire_exit *exit)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);

	j->found = went_well(exit);
	job_start_step(j, j->found ? 1 : 0);
}

static const struct init_call_ops unpack_on = {
	.output = helper_said,
	.exited = job_unpacked,
	.refused = helper_refused,
};

static void pack_came(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
		      size_t n)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);

	if (stream == 0 && j->made.len <= COMPILE_CACHE_MOST)
		buf_add(&j->made, bytes, n);
	init_conn_credit(x, stream, offset + n + WINDOW);
}

/* A binary that is too large, or cannot be packed, is used but not stored. */
static void job_packed(struct init_call *x, const struct wire_exit *exit)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);

	if (went_well(exit) && j->fleet->compile_caches)
		compile_cache_put(j->fleet->compile_caches, &j->key, j->made.p, j->made.len);
	job_start_step(j, j->step + 1);
}

static const struct init_call_ops pack_on = {
	.output = pack_came,
	.exited = job_packed,
	.refused = helper_refused,
};

/* ---- the program ---- */

static int is_last(const struct batch_job *j)
{
	return j->step + 1 == j->item.nsteps;
}

static void room_came(struct init_call *x, uint64_t until)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);

	if (is_last(j) && j->item.input)
		push_input(j, until);
}

static size_t job_keeps(const struct batch_job *j, unsigned stream)
{
	const struct batch_item *x = &j->item;
	size_t most = x->max_output;

	if (stream == 0 && x->want && is_last(j) && x->want_len + SLACK > most)
		most = x->want_len + SLACK;
	return most;
}

static void keep_tail(struct buf *tail, size_t most, const char *bytes, size_t n)
{
	buf_add(tail, bytes, n);
	if (tail->len < 2 * most)
		return;
	memmove(tail->p, tail->p + tail->len - most, most);
	buf_cut(tail, most);
}

static void output_came(struct init_call *x, unsigned stream, uint64_t offset, const char *bytes,
			size_t n)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);
	struct buf *out = &j->out[stream];
	size_t most = job_keeps(j, stream), room = out->len < most ? most - out->len : 0;

	buf_add(out, bytes, n < room ? n : room);
	if (n > room && j->item.tail)
		keep_tail(&j->tail[stream], j->item.tail, bytes + room, n - room);
	j->seen[stream] = offset + n;
	if (j->said)
		j->said(j, j->item.steps[j->step].what, stream, bytes, n);
	if (j->item.flood && j->seen[stream] > j->item.flood) {
		j->flooded = 1;
		look_back(j);
		return;
	}
	if (n > room && stream == 0 && j->item.want && is_last(j)) {
		j->flooded = 1; /* its further messages cannot be valid */
		look_back(j);
		return;
	}
	init_conn_credit(x, stream, j->seen[stream] + WINDOW);
}

static void job_continue(struct batch_job *j)
{
	int more = !is_last(j);

	if (more && j->counted && j->figures.cpu_us != UINT64_MAX)
		j->cpu_before_us = j->figures.cpu_us;
	if (more && j->keyed)
		start_helper(j, compile_cache_pack(j->item.program.binary), &pack_on);
	else if (more)
		job_start_step(j, j->step + 1);
	else if (j->item.nbehind)
		next_behind(j);
	else
		job_conclude(j, j->counted ? &j->figures : NULL);
}

/* NULL: the counters could not be read. */
static void on_counted(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct batch_job *j = ctx;

	(void)len;
	(void)fd;
	(void)e;
	j->asking = NULL;
	j->counted = f != NULL;
	if (f)
		j->figures = *(const struct wire_counters *)f;
	job_continue(j);
}

static void program_ended(struct init_call *x, const struct wire_exit *exit)
{
	struct batch_job *j = loop_owner(x, struct batch_job, init_call);
	int plain = exit->why == WIRE_WHY_EXIT &&
		    (exit->status == 0 ||
		     (is_last(j) && (j->item.any_code || exit->status == j->item.want_code)));

	j->exit = *exit;
	j->exited = 1;
	if (plain)
		ask_figures(j, on_counted);
	else
		look_back(j);
}

static void program_refused(struct init_call *x, const struct err *e)
{
	struct err why = *e;

	job_fail(loop_owner(x, struct batch_job, init_call), CAUSE_HOST, &why);
}

static void file_refused(struct init_call *x, const struct err *e)
{
	struct err why = *e;

	err_in(&why, "files");
	job_fail(loop_owner(x, struct batch_job, laid), WHY_INVALID, &why);
}

static const struct init_call_ops init_call_on = {
	.output = output_came,
	.room = room_came,
	.exited = program_ended,
	.refused = program_refused,
};
static const struct init_call_ops laid_on = { .refused = file_refused };

static void lay_files(struct batch_job *j)
{
	const struct batch_item *x = &j->item;
	uint32_t ref = init_conn_new_ref(&j->line);
	const char *path;
	char full[512];
	json_t *v;

	init_conn_add_call(&j->line, &j->laid, ref, &laid_on);
	json_object_foreach((json_t *)x->files, path, v)
	{
		auto_buf struct buf bytes = { 0 };
		const char *at = program_path(path, full);

		if (json_is_string(v)) {
			init_conn_put_early(&j->line, ref, at, json_string_value(v),
					    json_string_length(v));
			continue;
		}
		v = json_object_get(v, "base64");
		(void)!base64_decode(&bytes, json_string_value(v), json_string_length(v));
		init_conn_put_early(&j->line, ref, at, bytes.p, bytes.len);
	}
	if (x->code)
		init_conn_put_early(&j->line, ref, x->program.source, x->code, x->code_len);
	for (const struct lang_pair *f = x->program.lang ? x->program.lang->support : NULL;
	     f && f->key; f++)
		init_conn_put_early(&j->line, ref, f->key, f->value, strlen(f->value));
	if (j->made.len)
		init_conn_put_early(&j->line, ref, COMPILE_CACHE_FILE, j->made.p, j->made.len);
}

/* How the program is started; this and box_wanted() decide whether it gets a warm interpreter. */
static struct box_command command_of(const struct batch_job *j)
{
	const struct batch_item_step *s = &j->item.steps[j->step];

	return (struct box_command){
		.argv = s->argv,
		.env = j->item.env,
		.cwd = j->item.cwd,
		.wall_ms = s->wall_ms,
		.log_bytes = LOG,
		.credit = WINDOW,
		.flags = (uint16_t)((is_last(j) && j->item.input ? WIRE_START_STDIN : 0) |
				    (is_last(j) && !j->item.nbehind ? WIRE_START_ONE_SHOT : 0) |
				    (is_last(j) && j->item.program.warm ? WIRE_START_WARM : 0)),
	};
}

static struct wire_create box_wanted(const struct batch_job *j)
{
	struct wire_create want = { .head = sock_head(WIRE_CREATE, 0),
				    .template = "base",
				    .limits = j->item.limits,
				    .nlayers = j->item.nlayers,
				    .nchain = j->item.nchain };
	const char *warm = j->tier.no_zygote ? NULL : j->item.program.warm;
	const char *team = j->warm_team ? j->warm_team : j->team;

	want.head.flags = j->tier.flags;
	memcpy(want.layer, j->item.layers, sizeof(want.layer));
	memcpy(want.chain, j->item.chain, sizeof(want.chain));
	/* Without a team there is no zygote that the box may share. */
	if (warm && team) {
		snprintf(want.warm, sizeof(want.warm), "%s", warm);
		want.warm_group = fleet_zygote_group(team);
	}
	return want;
}

static void start_step(struct batch_job *j)
{
	struct box_command cmd = command_of(j);
	struct err e;

	for (unsigned i = 0; i < 2; i++) {
		buf_cut(&j->out[i], 0);
		buf_cut(&j->tail[i], 0);
		j->seen[i] = 0;
	}
	j->exited = j->counted = 0;
	j->began_us = now_us();
	j->deadline_ms = loop_now_ms() + cmd.wall_ms + STUCK_MS;
	if (init_conn_start(&j->line, &j->init_call, init_conn_new_ref(&j->line), &init_call_on,
			    &cmd, &e) < 0)
		job_fail(j, WHY_INVALID, &e);
}

/* ---- the box ---- */

static void line_gone(struct init_conn *l, const struct err *why)
{
	struct batch_job *j = l->user;

	(void)why;
	if (j->is_behind) { /* the end of the program is known; the command after it ended with the box */
		if (!j->asking)
			ask_figures(j, on_all_counted);
		return;
	}
	look_back(j); /* it died: for its memory, its CPU time, or with the host */
}

static void on_box(void *ctx, const struct frame *f, size_t len, int *fd, const struct err *e)
{
	struct batch_job *j = ctx;
	struct err own;

	(void)len;
	j->asking = NULL;
	if (!f) {
		job_fail(j,
			 e->kind == ERR_INVALID || e->kind == ERR_DENIED ? WHY_INVALID : CAUSE_HOST,
			 e);
		return;
	}
	memcpy(&j->about, f, sizeof(j->about));
	j->about.id[sizeof(j->about.id) - 1] = 0;
	isolation_add_inner(&j->tier.text, j->about.inner);
	j->create_us = now_us() - j->asked_us;
	j->line.on_gone = line_gone;
	j->line.user = j;
	if (*fd < 0 ||
	    init_conn_open(&j->line, j->fleet->loop, steal_fd(fd), j->about.id, &own) < 0) {
		err_set(&own, ERR_SYS, "a box without a connection");
		job_fail(j, CAUSE_HOST, &own);
		return;
	}
	j->open = 1;
	j->line.post.watch.budget = fleet_budget(j->fleet, j->team ? j->team : "");
	init_conn_kill_on_close(&j->line);
	lay_files(j);
	if (j->made.len)
		start_helper(j, compile_cache_unpack(j->item.program.binary), &unpack_on);
	else
		start_step(j);
}

/* Emulated programs have longer; the plan of the team may lower the time of each step. */
static void job_limit_time(struct batch_job *j, const struct fleet_accounts *a)
{
	const char *team = j->warm_team ? j->warm_team : j->team;
	uint64_t most = a->max_run_ms && team ? a->max_run_ms(a->ctx, team) : 0;

	for (struct batch_item_step *s = j->item.steps; s < j->item.steps + j->item.nsteps; s++) {
		if (s->is_usual && j->tier.emulated)
			s->wall_ms *= ISOLATION_EMULATED_TIMES;
		s->is_usual = 0; /* an item whose box was lost starts again */
		if (most && (!s->wall_ms || s->wall_ms > most))
			s->wall_ms = (uint32_t)most;
	}
}

int batch_job_choose(struct batch_job *j, struct fleet *f, const char *key,
		     const struct choose_request *request, int describe, struct err *e)
{
	struct isolation_ask ask = { .team = j->warm_team ? j->warm_team : j->team,
				     .key = key,
				     .request = *request };
	uint64_t mem = j->item.limits.mem_bytes;

	if (j->item.nlayers)
		ask.request.needs |= UINT64_C(1) << WIRE_NEED_LAYERS;
	if (j->item.nchain)
		ask.request.needs |= BATCH_FILES_NEEDS;
	ask.request.mem_bytes = mem == WIRE_DEFAULT ? 0 : mem;
	ask.request.modules = j->item.program.lang && j->item.program.lang->module;
	if (isolation_choose(f, &ask, describe, &j->tier, e) < 0)
		return -1;
	j->is_chosen = 1;
	return 0;
}

void batch_job_start(struct batch_job *j, struct fleet *f)
{
	struct wire_create want = box_wanted(j);

	assert(j->is_chosen);
	j->fleet = f;
	job_limit_time(j, &f->accounts);
	find_made(j);
	j->asked_us = now_us();
	j->asking = keeper_client_request(&f->keeper, &want, sizeof(want), WIRE_BOX, on_box, j);
}

void batch_job_check(struct batch_job *j, uint64_t now_ms)
{
	if (!j->deadline_ms || now_ms < j->deadline_ms || j->asking)
		return;
	if (j->is_behind) {
		ask_figures(j, on_all_counted);
		return;
	}
	j->overdue = 1;
	look_back(j);
}

void batch_job_fini(struct batch_job *j)
{
	keeper_client_cancel(&j->fleet->keeper, j->asking);
	close_box(j);
	batch_item_fini(&j->item);
	for (unsigned i = 0; i < 2; i++) {
		buf_fini(&j->out[i]);
		buf_fini(&j->tail[i]);
	}
	for (unsigned i = 0; i < ITEM_BEHIND; i++)
		buf_fini(&j->behind[i].said);
	buf_fini(&j->made);
	free(j->helper);
	free(j->tier.text);
}
