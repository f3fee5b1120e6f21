/* command.c - run_command, run_code. They are run requests of /v1, and have run records. */
#include "v1run/run_request.h"
#include "base/cleanup.h"
#include "fleet/exec.h"
#include "lang/install.h"
#include "tools/tool.h"

#include <stdio.h>
#include <string.h>

enum { COMMAND_MS = 120000, INSTALL_MS = 300000 };

static struct tool_job *job_of(const struct call *c)
{
	return ((struct tool_call *)c->surface)->job;
}

/* ---- while it runs ---- */

static void command_started(struct call *c, const struct exec *r, const char *step)
{
	struct tool_job *j = job_of(c);

	(void)step;
	memcpy(j->exec, r->id, sizeof(j->exec));
}

static int command_keep(struct tool_job *j, unsigned stream, const struct buf *text)
{
	if (!text->len)
		return 0;
	head_tail_add(&j->out[stream], text->p, text->len);
	return j->on->said ? j->on->said(j, stream, text->p, text->len) : 0;
}

static int command_said(struct call *c, unsigned stream, const char *bytes, size_t n)
{
	struct tool_job *j = job_of(c);
	auto_buf struct buf plain = { 0 };

	stream = stream ? 1 : 0;
	redact_pass(&j->redact, stream, bytes, n, &plain);
	return command_keep(j, stream, &plain);
}

static void command_flush(struct tool_job *j)
{
	for (unsigned i = 0; i < 2; i++) {
		auto_buf struct buf plain = { 0 };

		redact_flush(&j->redact, i, &plain);
		command_keep(j, i, &plain);
	}
}

/* ---- its end ---- */

static void stream_text(const struct tool_job *j, unsigned stream, struct buf *out)
{
	const struct head_tail *c = &j->out[stream];
	char gap[160];

	snprintf(gap, sizeof(gap), "%llu bytes left out; read_output exec=%s stream=%s offset=%zu",
		 (unsigned long long)head_tail_lost(c), j->exec, stream ? "stderr" : "stdout",
		 c->head.len);
	head_tail_text(c, gap, out);
}

static void end_line(struct buf *b)
{
	if (b->len && b->p[b->len - 1] != '\n')
		buf_putc(b, '\n');
}

/* The text for the model: output first, then the exit. */
static void command_tell(struct buf *text, const struct buf out[2], const json_t *record)
{
	const json_t *code = json_object_get(record, "exit_code");
	const char *cause = json_string_value(json_object_get(record, "cause")),
		   *summary = json_string_value(json_object_get(record, "summary")),
		   *step = json_string_value(json_object_get(record, "step"));
	json_int_t us =
		json_integer_value(json_object_get(json_object_get(record, "timings"), "run_us"));

	buf_add(text, buf_str(&out[0]), out[0].len);
	if (out[1].len) {
		end_line(text);
		buf_puts(text, "[stderr]\n");
		buf_add(text, out[1].p, out[1].len);
	}
	end_line(text);
	if (step && strcmp(step, "run") != 0)
		buf_printf(text, "[%s failed] ", step);
	if (json_is_integer(code))
		buf_printf(text, "[exit %lld", (long long)json_integer_value(code));
	else
		buf_printf(text, "[%s", summary ? summary : cause ? cause : "ended");
	if (us > 0)
		buf_printf(text, ", %.1f s", (double)us / 1e6);
	buf_puts(text, "]");
}

static void command_copy(json_t *to, const json_t *from, const char *name)
{
	json_t *v = json_object_get(from, name);

	if (v)
		json_object_set(to, name, v);
}

static void command_over(struct call *c, json_t *take_record)
{
	static const char *const told[] = { "exit_code", "status",   "signal",       "cause",
					    "summary",   "hint",     "step",         "timings",
					    "cpu_s",     "mem_peak", "errors",       "error",
					    "warnings",  "language", "stdout_bytes", "stderr_bytes",
					    "cached" };
	struct tool_job *j = job_of(c);
	auto_buf struct buf out = { 0 }, err = { 0 }, text = { 0 };
	json_t *data = json_object();
	const char *cause = json_string_value(json_object_get(take_record, "cause"));
	int failed = json_integer_value(json_object_get(take_record, "status")) != 0;

	command_flush(j);
	stream_text(j, 0, &out);
	stream_text(j, 1, &err);
	json_object_set_new(data, "exec", json_string(j->exec));
	for (unsigned i = 0; i < ARRAY_LEN(told); i++)
		command_copy(data, take_record, told[i]);
	json_object_set_new(data, "timed_out", json_boolean(cause && !strcmp(cause, "wall")));
	json_object_set_new(data, "stdout", json_stringn(buf_str(&out), out.len));
	json_object_set_new(data, "stderr", json_stringn(buf_str(&err), err.len));
	json_object_set_new(data, "truncated",
			    json_boolean(head_tail_lost(&j->out[0]) || head_tail_lost(&j->out[1])));
	command_tell(&text, (const struct buf[2]){ out, err }, take_record);
	json_decref(take_record);
	tool_result(j, failed, data, text.p, text.len);
}

static void command_running(struct call *c, const struct exec *r)
{
	tool_say(job_of(c), json_pack("{s:s, s:b}", "exec", r->id, "running", 1),
		 "[runs in the background as exec %s]", r->id);
}

static const struct run_callbacks surface = { command_over, command_running, command_started,
					      command_said };

void tool_program(struct tool_job *j, json_t *take_body)
{
	struct box *b = tool_box(j);

	if (b)
		run_request_in(j->call, b,
			       &(struct run_request_spec){ .body = take_body,
							   .surface = &surface,
							   .kill_on_close = &j->kill_on_close });
	json_decref(take_body);
}

void tool_command(struct tool_job *j)
{
	json_t *body = json_copy(j->args);

	if (!json_object_get(body, "timeout_ms") && !tool_flag(j, "background"))
		json_object_set_new(body, "timeout_ms", json_integer(COMMAND_MS));
	tool_program(j, body);
}

/* ---- install_packages ---- */

static const struct {
	const char *words[12];
	const char *source; /* the variable, or "--flag", that names the registry */
} managers[PM_COUNT] = {
	[PM_PIP] = { { "python3", "-m", "pip", "install", "--user", "--no-input",
		       "--disable-pip-version-check", "--break-system-packages" },
		     "PIP_INDEX_URL" },
	[PM_NPM] = { { "npm", "install", "--no-audit", "--no-fund" }, "npm_config_registry" },
	[PM_GEM] = { { "gem", "install", "--user-install", "--no-document" }, "--source" },
	[PM_GO] = { { "go", "get", "--" }, "GOPROXY" },
};

/* Each package is one argument of the manager and no option: package.h checks this. */
static int add_packages(struct tool_job *j, enum package_manager m, json_t *words, struct err *e)
{
	struct packages set = { .manager = m };
	const json_t *one;
	size_t i;
	int rc = 0;

	json_array_foreach(json_object_get(j->args, "packages"), i,
			   one) if (rc == 0 &&
				    (rc = packages_add(&set, json_string_value(one), e)) < 0)
		err_in(e, "packages[%zu]", i);
	for (unsigned k = 0; rc == 0 && k < set.n; k++)
		json_array_append_new(words, json_string(set.v[k]));
	packages_fini(&set);
	return rc;
}

/* A package manager without a registry retries for minutes before it fails. 0: answered. */
static int can_install(struct tool_job *j, enum package_manager m)
{
	const struct install_conf *conf = &j->call->api->fleet.conf.packages.install;
	const struct box *b = tool_box(j);
	char text[200];

	if (!b)
		return 0;
	if (!conf->source[m] && !egress_client_asked(b)) {
		snprintf(text, sizeof(text), "no registry for %s packages is configured: %s",
			 package_manager_name(m), install_setting(m));
		tool_fail(j, "not_configured", text, install_setting(m),
			  "the operator names one in the daemon's settings");
		return 0;
	}
	if (!egress_client_wanted(b)) {
		snprintf(text, sizeof(text), "box %s may not reach %.80s, the registry of %s",
			 b->row.id, conf->source[m], package_manager_name(m));
		tool_fail(
			j, "no_network", text, b->row.id,
			"create_box without \"registries\": false (packages.in_boxes of the daemon must be true), "
			"or POST /v1/boxes with \"packages\"");
		return 0;
	}
	return 1;
}

void tool_install(struct tool_job *j)
{
	const struct install_conf *conf = &j->call->api->fleet.conf.packages.install;
	int m = package_manager_named(tool_text(j, "manager", "pip"));
	json_t *words, *body;
	struct err e;

	if (m < 0 || !managers[m].words[0]) {
		tool_fail(j, "invalid", "manager: is none of pip, npm, gem, go",
			  tool_text(j, "manager", ""), NULL);
		return;
	}
	if (!json_array_size(json_object_get(j->args, "packages"))) {
		tool_fail(j, "invalid", "packages: is empty", NULL, NULL);
		return;
	}
	words = json_array();
	for (unsigned i = 0; managers[m].words[i]; i++)
		json_array_append_new(words, json_string(managers[m].words[i]));
	if (conf->source[m] && !strncmp(managers[m].source, "--", 2)) {
		json_array_append_new(words, json_string(managers[m].source));
		json_array_append_new(words, json_string(conf->source[m]));
	}
	if (add_packages(j, (enum package_manager)m, words, &e) < 0) {
		json_decref(words);
		tool_fail(j, "invalid", e.msg, NULL, NULL);
		return;
	}
	if (!can_install(j, (enum package_manager)m)) {
		json_decref(words);
		return;
	}
	body = json_pack("{s:o, s:I}", "command", words, "timeout_ms",
			 (json_int_t)tool_int(j, "timeout_ms", INSTALL_MS));
	if (conf->source[m] && strncmp(managers[m].source, "--", 2) != 0)
		json_object_set_new(body, "env",
				    json_pack("{s:s}", managers[m].source, conf->source[m]));
	tool_program(j, body);
}

/* ---- bash, as Anthropic's models know it ---- */

/* A new shell for each command, which starts in the state of the previous one: variables and
 * directory are stored in a file. So a command that hangs or exits does not end the session. */
static const char carry_on[] =
	"f=${TMPDIR:-/tmp}/.atoll-shell\n"
	"[ -r \"$f\" ] && . \"$f\" 2>/dev/null\n"
	"trap '{ r=$?; trap - EXIT; { declare -p | grep -v \"^declare -[a-zA-Z]*r\"; declare -f; shopt -p; set +o; "
	"printf \"cd %q\\n\" \"$PWD\"; } >\"$f.$$\" && mv -f \"$f.$$\" \"$f\"; exit $r; } 2>/dev/null' EXIT\n"
	"eval \"$1\"\n";

void tool_bash(struct tool_job *j)
{
	const char *command = tool_text(j, "command", NULL);

	if (tool_flag(j, "restart"))
		tool_program(j,
			     json_pack("{s:[s, s, s], s:i}", "command", "bash", "-c",
				       "rm -f \"${TMPDIR:-/tmp}/.atoll-shell\"; echo 'a new shell'",
				       "timeout_ms", COMMAND_MS));
	else if (!command)
		tool_fail(j, "invalid", "command: is missing", NULL, NULL);
	else
		tool_program(j, json_pack("{s:[s, s, s, s, s], s:I}", "command", "bash", "-c",
					  carry_on, "bash", command, "timeout_ms",
					  (json_int_t)tool_int(j, "timeout_ms", COMMAND_MS)));
}

void tool_code(struct tool_job *j)
{
	json_t *body = json_copy(j->args);

	if (!json_object_get(body, "language"))
		json_object_set_new(body, "language", json_string("python"));
	tool_program(j, body);
}
