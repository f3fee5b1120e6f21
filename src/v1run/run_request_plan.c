/* run_request_plan.c - see run_request_plan.h. */
#include "v1run/run_request_plan.h"
#include "v1run/artifacts.h"
#include "v1run/hermetic.h"
#include "v1box/box_spec.h"
#include "v1run/run_request.h"
#include "base/base64.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INSTALL_MS = 300000, VERSION_MS = 10000 };

#define EXEC_FIELDS                                                                                                   \
	{                                                                                                             \
		"command", FIELD_COMMAND,                                                                             \
		0,         0,                                                                                         \
		1 << 20,   "a command line for the shell, or a program and its arguments",                            \
		NULL                                                                                                  \
	},                                                                                                            \
		{ "code", FIELD_TEXT, 0, 0, 1 << 22, "the program text; needs language", NULL },                      \
		{ "language",                                                                                         \
		  FIELD_TEXT,                                                                                         \
		  0,                                                                                                  \
		  0,                                                                                                  \
		  64,                                                                                                 \
		  "language of the code: python, js, c++, ..., or with a version: python@3.11",                       \
		  NULL },                                                                                             \
		{ "compiler", FIELD_NAME, 0,                                                                          \
		  0,          32,         "compiler, if the language supports several: gcc, clang",                   \
		  NULL },                                                                                             \
		{ "files", FIELD_ANY,                                                                                 \
		  0,       0,                                                                                         \
		  0,       "files to write before the start: {path: text or {\"base64\": ...}}",                      \
		  NULL },                                                                                             \
		{ "entry", FIELD_TEXT, 0, 0, 255, "the file to run", NULL },                                          \
		{ "args", FIELD_TEXTS, 0, 0, 1000, "arguments for the program in code or entry",                      \
		  NULL },                                                                                             \
		{ "test", FIELD_BOOL, 0, 0, 0, "run the test command of the language instead", NULL },                \
		{ "install", FIELD_COMMAND, 0,                                                                        \
		  0,         1 << 20,       "command to run first, for example to install packages",                  \
		  NULL },                                                                                             \
		{ "cwd", FIELD_TEXT, 0, 0, 4095, "working folder (default /home/user)", NULL },                       \
		{ "env", FIELD_MAP, 0, 0, 1000, "environment variables, added to those of the box",                   \
		  NULL },                                                                                             \
		{ "stdin", FIELD_TEXT, 0, 0, 1 << 22, "the complete standard input", NULL },                          \
		{ "deterministic",                                                                                    \
		  FIELD_BOOL,                                                                                         \
		  0,                                                                                                  \
		  0,                                                                                                  \
		  0,                                                                                                  \
		  "constant clock and random values; needs a language of the tier wasm",                              \
		  NULL },                                                                                             \
		{ "timeout_ms",                                                                                       \
		  FIELD_INT,                                                                                          \
		  0,                                                                                                  \
		  1,                                                                                                  \
		  UINT32_MAX,                                                                                         \
		  "time limit of the program (default: 30 s with a language, limits.default_run_time for a command)", \
		  NULL },                                                                                             \
		{ "timeouts", FIELD_OBJECT, 0, 0, 0, "time limits of the steps", timeout_fields },                    \
		{ "user", FIELD_NAME, 0, 0, 16, "user, or root if the box allows it", NULL },                         \
		{ "tag", FIELD_NAME, 0, 0, STORE_NAME, "a tag for searching", NULL },                                 \
	{                                                                                                             \
		"max_output", FIELD_INT, 0, 0, 16 << 20,                                                              \
			"maximum number of bytes of each stream in a plain answer", NULL                              \
	}

static const struct field timeout_fields[] = {
	{ "install_ms", FIELD_INT, 0, 1, UINT32_MAX,
	  "time limit of install (default 30 s; for a command 5 minutes)", NULL },
	{ "compile_ms", FIELD_INT, 0, 1, UINT32_MAX, "time limit of the compiler (default 60 s)",
	  NULL },
	{ "run_ms", FIELD_INT, 0, 1, UINT32_MAX, "time limit of the program, same as timeout_ms",
	  NULL },
	{ 0 },
};

static const struct field pty_fields[] = {
	{ "rows", FIELD_INT, 0, 1, 10000, "height of the terminal (default 24)", NULL },
	{ "cols", FIELD_INT, 0, 1, 10000, "width of the terminal (default 80)", NULL },
	{ 0 },
};

const struct field run_request_exec_fields[] = {
	EXEC_FIELDS,
	{ "background", FIELD_BOOL, 0, 0, 0, "answer as soon as the program runs", NULL },
	{ "open_stdin", FIELD_BOOL, 0, 0, 0, "keep stdin open for POST .../stdin", NULL },
	{ "pty", FIELD_OBJECT, 0, 0, 0, "run on a terminal", pty_fields },
	{ 0 },
};

const struct field run_request_fields[] = {
	/* clang-format off */
	EXEC_FIELDS,
	BOX_LIMIT_FIELDS,
	{ "artifacts", FIELD_TEXTS, 0, 0, ARTIFACTS_PATTERNS, "patterns such as *.png: matching files that the run created are returned in its record", NULL },
	{ "network", FIELD_OBJECT, 0, 0, 0, "hosts that the box may reach (default: none)", box_network_fields },
	{ "secrets", FIELD_ANY, 0, 0, 0, "secrets of the team for the box: [{name, as, variable, path, hosts, in}]", NULL },
	{ "hermetic", FIELD_BOOL, 0, 0, 0, "the result depends on the request alone: no network, secrets or install; fixed random start values", NULL },
	{ "reuse", FIELD_BOOL, 0, 0, 0, "with hermetic: answer with the result of an earlier identical run of the team, if there is one", NULL },
	{ "volumes", FIELD_ANY, 0, 0, 0, "volumes to mount, at most 4: [{name, path, read_only}]", NULL },
	{ "packages", FIELD_ANY, 0, 0, 0, "packages: a list for the package manager of the language, or {\"pip\": [...]}; false: none", NULL },
	{ 0 },
	/* clang-format on */
};

static int check_files(const json_t *files, struct err *e)
{
	auto_buf struct buf bytes = { 0 };
	const char *path;
	json_t *v;

	if (files && !json_is_object(files))
		return err_set(e, ERR_INVALID, "files: must be an object of paths");
	json_object_foreach((json_t *)files, path, v)
	{
		const json_t *coded = json_object_get(v, "base64");

		if (!*path || strlen(path) > 400)
			return err_set(e, ERR_INVALID, "files: a path of %zu bytes, from 1 to 400",
				       strlen(path));
		buf_cut(&bytes, 0);
		if (!json_is_string(v) &&
		    (!json_is_string(coded) || base64_decode(&bytes, json_string_value(coded),
							     json_string_length(coded)) < 0))
			return err_set(e, ERR_INVALID,
				       "files: '%.60s' must be text, or {\"base64\": ...}", path);
	}
	return 0;
}

static void add_step(struct run_request_plan *p, struct run_step take_step)
{
	p->steps[p->nsteps++] = take_step;
}

/* How long a stage may take: the requested time, else the default. */
static void plan_stage_time(const struct run_request_plan *p, const char *name, uint64_t usual,
			    struct run_step *s)
{
	const json_t *ms = json_object_get(json_object_get(p->body, "timeouts"), name);

	s->is_usual = !json_is_integer(ms);
	s->wall_ms = s->is_usual ? (uint32_t)usual : (uint32_t)json_integer_value(ms);
}

/* For a program without a requested time: the default of its language; no limit for background and
 * interactive programs. */
static uint64_t usual_run_ms(const struct run_request_plan *p, uint64_t conf)
{
	int open = p->background || p->pty || json_is_true(json_object_get(p->body, "open_stdin"));

	return open ? 0 : p->program.lang ? p->program.lang->times.run : conf;
}

/* 1: the body has code, entry or files, and no command. */
static int plan_has_program(const json_t *body)
{
	return json_object_get(body, "code") || json_object_get(body, "entry") ||
	       (json_object_get(body, "language") && json_object_get(body, "files") &&
		!json_object_get(body, "command"));
}

static const char *plan_text(const struct run_request_plan *p, const char *name)
{
	return json_string_value(json_object_get(p->body, name));
}

static int plan_read_program(struct run_request_plan *p, struct err *e)
{
	const json_t *code = json_object_get(p->body, "code");
	auto_free struct program_file *files = program_files(json_object_get(p->body, "files"));
	struct program_spec spec = {
		.language = plan_text(p, "language"),
		.compiler = plan_text(p, "compiler"),
		.entry = plan_text(p, "entry"),
		.code = json_string_value(code),
		.code_len = json_string_length(code),
		.files = files,
		.any_entry = json_is_true(json_object_get(p->body, "test")),
		/* Packages of the distribution may contain the language. */
		.layered = p->layered || json_array_size(json_object_get(
						 json_object_get(p->body, "packages"), "apt")),
	};

	return program_plan(&p->program, &spec, e);
}

static void plan_install(struct run_request_plan *p)
{
	const json_t *install = json_object_get(p->body, "install");
	const struct lang *l = p->program.lang;
	struct run_step s = { .what = "install" };

	if (!install)
		return;
	s.argv = program_command(install);
	plan_stage_time(p, "install_ms", l ? l->times.install : INSTALL_MS, &s);
	add_step(p, s);
}

/* The version is checked first, then packages are installed. */
static int plan_program(struct run_request_plan *p, struct err *e)
{
	struct program_step steps[PROGRAM_STEPS];
	int test = json_is_true(json_object_get(p->body, "test")), i = 0,
	    n = program_steps(&p->program, test, steps, e);

	if (n < 0)
		return -1;
	if (!strcmp(steps[0].what, RUN_REQUEST_VERSION))
		add_step(p, (struct run_step){ .what = steps[i].what,
					       .row = steps[i].row,
					       .wall_ms = VERSION_MS,
					       .is_usual = 1 });
	i = (int)p->nsteps;
	plan_install(p);
	for (; i < n; i++) {
		struct run_step s = { .what = steps[i].what, .row = steps[i].row };

		plan_stage_time(p, "compile_ms", p->program.lang->times.compile, &s);
		add_step(p, s);
	}
	return 0;
}

/* Variables of the language come first; variables of the request replace them. */
static void plan_env(struct run_request_plan *p)
{
	static const struct lang_pair none[1];
	static const char *const none_fixed[1];
	const struct lang_pair *first = p->program.lang ? p->program.lang->env : none;
	json_t *env = json_object_get(p->body, "env"), *all = json_object(), *value;
	size_t n = 0, need = 0;
	const char *name;
	char *to;

	for (const char *const *v = hermetic_is(p->body) ? hermetic_env : none_fixed; *v; v++) {
		char fixed[32];

		snprintf(fixed, sizeof(fixed), "%.*s", (int)strcspn(*v, "="), *v);
		json_object_set_new(all, fixed, json_string(*v + strlen(fixed) + 1));
	}
	for (; first->key; first++)
		json_object_set_new(all, first->key, json_string(first->value));
	json_object_update(all, env);
	if (json_is_true(json_object_get(p->body, "deterministic")))
		json_object_set_new(all, p->program.lang->deterministic, json_string("1"));
	json_object_foreach(all, name, value) need += strlen(name) + json_string_length(value) + 2;
	p->env = calloc(1, (json_object_size(all) + 1) * sizeof(char *) + need);
	if (!p->env)
		abort();
	to = (char *)(p->env + json_object_size(all) + 1);
	json_object_foreach(all, name, value)
	{
		p->env[n++] = to;
		to += sprintf(to, "%s=%s", name, json_string_value(value)) + 1;
	}
	json_decref(all);
}

static int plan_check_deterministic(const struct run_request_plan *p, struct err *e)
{
	const struct lang *l = p->program.lang;

	if (!json_is_true(json_object_get(p->body, "deterministic")) || (l && l->deterministic))
		return 0;
	return err_set(
		e, ERR_INVALID,
		"deterministic: %s has the clock and the random values of the machine; languages of "
		"the tier wasm can be given others: python-wasm",
		l ? l->name : "a command");
}

int run_request_plan_read(struct run_request_plan *p, const json_t *body, uint64_t run_ms,
			  struct err *e)
{
	const json_t *command = json_object_get(body, "command"),
		     *timeout = json_object_get(body, "timeout_ms"),
		     *pty = json_object_get(body, "pty");
	const char *user = json_string_value(json_object_get(body, "user"));
	int coded = plan_has_program(body);

	p->body = body;
	if (!command == !coded)
		return err_set(e, ERR_INVALID,
			       "give either command, or code (or entry) with language");
	if (user && strcmp(user, "user") && strcmp(user, "root"))
		return err_set(e, ERR_INVALID, "user: '%.40s' is neither user nor root", user);
	p->root = user && !strcmp(user, "root");
	p->cwd = json_string_value(json_object_get(body, "cwd"));
	p->background = json_is_true(json_object_get(body, "background"));
	p->pty = json_is_object(pty);
	p->rows = (uint16_t)json_integer_value(json_object_get(pty, "rows"));
	p->cols = (uint16_t)json_integer_value(json_object_get(pty, "cols"));
	if (check_files(json_object_get(body, "files"), e) < 0 ||
	    box_check_env(json_object_get(body, "env"), e) < 0 ||
	    artifacts_check(json_object_get(body, "artifacts"), e) < 0 ||
	    hermetic_check(body, e) < 0)
		return -1;
	if (coded) {
		if (plan_read_program(p, e) < 0 || plan_program(p, e) < 0)
			return -1;
	} else {
		plan_install(p);
		add_step(p, (struct run_step){ .what = "run", .argv = program_command(command) });
	}
	plan_stage_time(p, "run_ms", usual_run_ms(p, run_ms), &p->steps[p->nsteps - 1]);
	if (timeout) {
		p->steps[p->nsteps - 1].wall_ms = (uint32_t)json_integer_value(timeout);
		p->steps[p->nsteps - 1].is_usual = 0;
	}
	if (plan_check_deterministic(p, e) < 0)
		return -1;
	plan_env(p);
	if (hermetic_is(body))
		p->program.warm = NULL; /* a warm interpreter has chosen random values already */
	return 0;
}

void run_request_plan_fini(struct run_request_plan *p)
{
	for (unsigned i = 0; i < RUN_REQUEST_STEPS; i++)
		free(p->steps[i].argv);
	free(p->env);
	program_fini(&p->program);
}
