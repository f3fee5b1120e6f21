/* agent.c - `atoll agent`: a task for an agent in a box of its own. Its steps are printed to
 * standard error as they happen, its result to standard output. When this process ends, the
 * agent ends. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "cli/list_output.h"
#include "cli/options.h"
#include "commands/commands.h"
#include "commands/race.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
	AGENT_FILE,
	AGENT_STEPS,
	AGENT_ROLE,
	AGENT_MODEL,
	AGENT_TOOL,
	AGENT_TIME,
	AGENT_CALLS,
	AGENT_TOKENS,
	AGENT_ALLOW,
	AGENT_KEEP,
	AGENT_BOX,
	AGENT_ATTEMPTS,
	AGENT_CHECK,
	AGENT_BEST,
	AGENT_ISOLATION,
	AGENT_TRUST,
	AGENT_NFLAGS,
};
enum { TASK = 64 * 1024, FILE_MOST = 4 << 20, SHOWN_LINES = 3 };

static const struct flag flags[AGENT_NFLAGS] = {
	/* clang-format off */
	[AGENT_FILE] = { "file", 'f', FLAG_WORDS, "FILE", "copy this file into the workspace; may be repeated" },
	[AGENT_STEPS] = { "max-steps", 0, FLAG_COUNT, "N", "maximum number of actions, including the last one (5)" },
	[AGENT_ROLE] = { "role", 0, FLAG_TEXT, "ROLE", "use the model of this role (agent)" },
	[AGENT_MODEL] = { "model", 0, FLAG_TEXT, "MODEL", "use this model" },
	[AGENT_TOOL] = { "tool", 0, FLAG_WORDS, "NAME", "allow this tool; may be repeated (all five)" },
	[AGENT_TIME] = { "time", 't', FLAG_TIME, "TIME", "total time limit (10m)" },
	[AGENT_CALLS] = { "max-calls", 0, FLAG_COUNT, "N", "maximum number of requests to the model (twice max-steps)" },
	[AGENT_TOKENS] = { "max-tokens", 0, FLAG_COUNT, "N", "maximum number of tokens, input and output together (200000)" },
	[AGENT_ALLOW] = { "allow", 0, FLAG_WORDS, "HOST", "allow the box to connect to this host; may be repeated" },
	[AGENT_KEEP] = { "keep", 0, FLAG_SWITCH, NULL, "keep the box" },
	[AGENT_BOX] = { "box", 0, FLAG_TEXT, "BOX", "work in this box, which stays (a new one, which ends)" },
	[AGENT_ATTEMPTS] = { "attempts", 0, FLAG_COUNT, "N", "with --box: as many agents, each in a copy of the box; it gets the files of one that passes" },
	[AGENT_CHECK] = { "check", 'c', FLAG_TEXT, "COMMAND", "with --attempts: runs after each agent in its copy; exit code 0 means passed" },
	[AGENT_BEST] = { "best", 0, FLAG_SWITCH, NULL, "with --attempts: wait for all; the highest number in the last line of the check wins" },
	[AGENT_ISOLATION] = OPTION_ISOLATION,
	[AGENT_TRUST] = OPTION_TRUST,
	/* clang-format on */
};

struct local_run {
	struct api_client *r;
	json_t *report, *error;
	int unread;
};

/* ---- what happens, for people ---- */

/* Prints untrusted text to the terminal: no control characters, and a limited number of lines. */
static void print_safe(FILE *to, const char *text, unsigned lines)
{
	for (; *text; text++) {
		if (*text == '\n' && lines && --lines == 0) {
			fputs("\n    ...", to);
			return;
		}
		if (*text == '\n')
			fputs(lines ? "\n    " : "\n", to);
		else
			fputc((unsigned char)*text < 32 && *text != '\t' ? '?'
			      : *text == 127                             ? '?'
									 : *text,
			      to);
	}
}

/* The argument of an action that describes it best. */
static const char *agent_gist(const json_t *args)
{
	static const char *const names[] = { "command", "path" };

	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		if (json_is_string(json_object_get(args, names[i])))
			return json_string_value(json_object_get(args, names[i]));
	return "";
}

static void show_entry(const json_t *e)
{
	const json_t *result = json_object_get(e, "result");
	const char *tool = api_client_text(e, "tool"), *bad = api_client_text(e, "malformed");

	if (*tool) {
		fprintf(stderr, "%lld  %s  ", (long long)api_client_int(e, "step", 0), tool);
		print_safe(stderr, agent_gist(json_object_get(e, "args")), SHOWN_LINES);
		fputc('\n', stderr);
	} else if (*bad) {
		fprintf(stderr, "%lld  refused: ", (long long)api_client_int(e, "step", 0));
		print_safe(stderr, bad, SHOWN_LINES);
		fputc('\n', stderr);
	} else if (json_is_object(result)) {
		fputs("    ", stderr);
		print_safe(stderr, api_client_text(result, "text"), SHOWN_LINES);
		fputc('\n', stderr);
	}
}

static int take_line(void *ctx, json_t *line)
{
	struct local_run *s = ctx;
	const char *type = api_client_text(line, "type");

	if (!strcmp(type, "report"))
		s->report = json_incref(line);
	else if (!strcmp(type, "error"))
		s->error = json_incref(line);
	else if (!strcmp(type, "log") && !s->r->cli->json && !s->r->cli->quiet)
		show_entry(json_object_get(line, "entry"));
	if (s->r->cli->json && strcmp(type, "keepalive") != 0) {
		api_client_print(line);
		s->unread = fflush(stdout) != 0;
	}
	return s->unread || s->report || s->error;
}

static void print_result(const json_t *result)
{
	auto_free char *text = NULL;

	if (json_is_string(result) && isatty(1)) {
		print_safe(stdout, json_string_value(result), 0);
	} else if (json_is_string(result)) {
		fwrite(json_string_value(result), 1, json_string_length(result), stdout);
	} else {
		text = json_dumps(result, JSON_ENCODE_ANY | JSON_INDENT(2));
		fputs(text ? text : "", stdout);
	}
	putchar('\n');
}

static int agent_tell(struct local_run *s)
{
	const json_t *u = json_object_get(s->report, "usage");
	const char *outcome = api_client_text(s->report, "outcome");
	int done = !strcmp(outcome, "done");

	if (s->r->cli->json)
		return done ? 0 : 1;
	if (done)
		print_result(json_object_get(s->report, "result"));
	if (!s->r->cli->quiet)
		fprintf(stderr,
			"atoll: %lld of %lld steps, %lld calls, %lld tokens, cost %.6g, %.1f s%s%s\n",
			(long long)api_client_int(s->report, "steps", 0),
			(long long)api_client_int(s->report, "max_steps", 0),
			(long long)api_client_int(u, "calls", 0),
			(long long)(api_client_int(u, "in", 0) + api_client_int(u, "out", 0)),
			json_number_value(json_object_get(u, "cost")),
			(double)api_client_int(s->report, "ms", 0) / 1e3,
			json_is_true(json_object_get(s->report, "kept")) ? ", box " : "",
			json_is_true(json_object_get(s->report, "kept"))
				? api_client_text(s->report, "box")
				: "");
	if (done)
		return 0;
	s->r->status = 1;
	cli_error_what(&s->r->error, outcome, "the agent did not finish the task: %s", outcome);
	cli_error_why(&s->r->error, "%s", api_client_text(s->report, "why"));
	return 1;
}

/* ---- what is asked for ---- */

static int add_file(struct api_client *r, json_t *files, const char *path)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	auto_buf struct buf text = { 0 };
	const char *slash = strrchr(path, '/'),
		   *name = slash && (*path == '/' || strstr(path, "..")) ? slash + 1 : path;
	json_t *value;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && text.len <= FILE_MOST)
		if ((n = read(fd, buf_space(&text, 65536), 65536)) > 0)
			buf_grew(&text, (size_t)n);
	if (fd < 0 || n < 0)
		return api_client_usage(r, "%s: %s", path, strerror(errno));
	if (text.len > FILE_MOST)
		return api_client_usage(r, "%s: more than 4 MiB", path);
	value = json_stringn(buf_str(&text), text.len);
	if (!value)
		return api_client_usage(r, "%s: is not UTF-8 text", path);
	json_object_set_new(files, name, value);
	return 0;
}

static void set_number(json_t *doc, const char *name, const struct args *a, unsigned flag)
{
	if (args_has(a, flag))
		json_object_set_new(doc, name, json_integer((json_int_t)args_value(a, flag, 0)));
}

static void set_text(json_t *doc, const char *name, const struct args *a, unsigned flag)
{
	if (args_has(a, flag))
		json_object_set_new(doc, name, json_string(args_text(a, flag, "")));
}

/* Members that are present only if they are not empty. */
static void set_full(json_t *doc, const char *name, json_t *take_value)
{
	if (json_object_size(take_value) || json_array_size(take_value))
		json_object_set(doc, name, take_value);
	json_decref(take_value);
}

/* NULL: r->status. */
static json_t *order_of(struct api_client *r, const struct args *a, const char *task)
{
	json_t *doc = json_pack("{s:s}", "task", task), *budget = json_object(),
	       *files = json_object(), *tools = json_array(), *hosts = json_array();
	int status = doc ? 0 : api_client_usage(r, "the task is not UTF-8 text");

	for (unsigned i = 0; i < a->ngiven && status == 0; i++) {
		const struct given *g = &a->given[i];

		if (g->flag == AGENT_FILE)
			status = add_file(r, files, g->text);
		else if (g->flag == AGENT_TOOL)
			json_array_append_new(tools, json_string(g->text));
		else if (g->flag == AGENT_ALLOW)
			json_array_append_new(hosts, json_string(g->text));
	}
	set_number(doc, "max_steps", a, AGENT_STEPS);
	set_text(doc, "role", a, AGENT_ROLE);
	set_text(doc, "model", a, AGENT_MODEL);
	set_text(doc, "isolation", a, AGENT_ISOLATION);
	set_text(doc, "trust", a, AGENT_TRUST);
	set_number(budget, "max_wall_ms", a, AGENT_TIME);
	set_number(budget, "max_calls", a, AGENT_CALLS);
	set_number(budget, "max_tokens", a, AGENT_TOKENS);
	if (args_has(a, AGENT_KEEP))
		json_object_set_new(doc, "keep", json_true());
	set_full(doc, "budget", budget);
	set_full(doc, "files", files);
	set_full(doc, "tools", tools);
	if (json_array_size(hosts))
		json_object_set_new(doc, "network", json_pack("{s:O}", "allow", hosts));
	json_decref(hosts);
	if (status == 0)
		return doc;
	json_decref(doc);
	return NULL;
}

/* "-": from the standard input. */
static int read_task(struct api_client *r, const char *word, struct buf *out)
{
	ssize_t n;

	if (strcmp(word, "-") != 0) {
		buf_puts(out, word);
		return 0;
	}
	while (out->len <= TASK && (n = read(0, buf_space(out, 65536), 65536)) > 0)
		buf_grew(out, (size_t)n);
	return out->len <= TASK ? 0 : api_client_usage(r, "the task has more than 64 KiB");
}

/* ---- those that were ---- */

static void agent_row(struct table *t, json_t *v)
{
	char text[24];

	table_cell(t, "%s", api_client_text(v, "id"));
	table_cell(t, "%s",
		   *api_client_text(v, "outcome") ? api_client_text(v, "outcome")
						  : api_client_text(v, "state"));
	table_cell(t, "%s", api_client_since(text, v, "created_at"));
	table_cell(t, "%.60s", api_client_text(v, "task"));
}

static int agent_list(struct api_client *r)
{
	static const char *const columns[] = { "AGENT", "OUTCOME", ">AGE", "TASK", NULL };

	return list_output_show(r, "/v1/agents", &(struct list_output){ columns, "id", agent_row });
}

static int agent_show(struct api_client *r, const char *id)
{
	auto_free char *path = api_client_path("/v1/agents/%s", id);
	json_t *doc = api_client_json(r, "GET", path, NULL);

	if (!doc)
		return r->status;
	api_client_print(doc);
	json_decref(doc);
	return 0;
}

/* Agents in copies of a box: a race. */
static int agent_race(struct api_client *r, const struct args *a, json_t *take_order)
{
	json_t *attempts = json_array(), *body;

	if (!args_has(a, AGENT_BOX) || !args_has(a, AGENT_CHECK)) {
		json_decref(attempts);
		json_decref(take_order);
		api_client_usage(r, args_has(a, AGENT_BOX) ? "agent: --attempts needs --check"
							   : "agent: --attempts needs --box");
		cli_error_hint(
			&r->error, "type",
			"atoll agent run --box BOX --attempts 3 --check 'make test' \"the task\"");
		return r->status;
	}
	for (uint64_t i = 0; i < args_value(a, AGENT_ATTEMPTS, 1); i++)
		json_array_append_new(attempts, json_pack("{s:O}", "agent", take_order));
	body = json_pack("{s:o, s:{s:s}, s:s}", "attempts", attempts, "check", "command",
			 args_text(a, AGENT_CHECK, ""), "keep",
			 args_has(a, AGENT_BEST) ? "best" : "first");
	json_decref(take_order);
	if (args_has(a, AGENT_TIME))
		json_object_set_new(body, "budget",
				    json_pack("{s:I}", "wall_ms",
					      (json_int_t)args_value(a, AGENT_TIME, 0)));
	return race_run(r, args_text(a, AGENT_BOX, ""), body);
}

static int agent_agent(struct api_client *r, const struct args *a)
{
	struct local_run s = { .r = r };
	auto_buf struct buf task = { 0 };
	json_t *order;
	int status;

	if (a->nwords == 1 && !strcmp(a->words[0], "ls"))
		return agent_list(r);
	if (a->nwords == 2 && !strcmp(a->words[0], "show"))
		return agent_show(r, a->words[1]);
	if (a->nwords != 2 || strcmp(a->words[0], "run") != 0) {
		api_client_usage(r, "agent: missing task or subcommand");
		cli_error_hint(&r->error, "type", "atoll agent run \"the task\" | ls | show ID");
		return r->status;
	}
	if (read_task(r, a->words[1], &task) != 0 || !(order = order_of(r, a, buf_str(&task))))
		return r->status;
	if (args_has(a, AGENT_ATTEMPTS))
		return agent_race(r, a, order);
	if (args_has(a, AGENT_BOX))
		json_object_set_new(order, "box", json_string(args_text(a, AGENT_BOX, "")));
	status = api_client_lines(r, "POST", "/v1/agents", order, take_line, &s);
	if (s.report) {
		status = agent_tell(&s);
	} else if (s.error) {
		const json_t *error = json_object_get(s.error, "error");

		status = r->status = 1;
		cli_error_what(&r->error, "refused", "%s", api_client_text(error, "message"));
	} else if (status == 0 && !s.unread) {
		status = r->status = 1;
		cli_error_what(&r->error, "lost",
			       "the daemon disconnected before the agent had finished");
		cli_error_why(&r->error, "the box of the agent has ended, too");
	}
	json_decref(s.report);
	json_decref(s.error);
	return status;
}

static int run_agent(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, agent_agent);
}

static const struct example examples[] = {
	{ "atoll agent run \"Write fib.py, and a test of it that passes\"",
	  "run a task in a new box" },
	{ "atoll agent run \"What is the mean of column 2?\" --file data.csv",
	  "copy a file into the workspace" },
	{ "atoll agent run \"Make the tests pass\" --box demo --attempts 3 --check 'make test'",
	  "three agents in copies of a box; it gets the files of the first one that passes" },
	{ "atoll agent run - --max-steps 12 --json <task.txt",
	  "print every event as a line of JSON" },
	{ 0 },
};

const struct command command_agent = {
	.name = "agent",
	.group = "Run",
	.usage = "run TASK | ls | show ID",
	.summary = "let a language model work on a task in a box",
	.notes =
		"The model selects one action at a time, and the agent in the box executes it. The API key of the model\n"
		"never enters the box. The exit status is 0 if the task is done, and 1 if not.",
	.words = "run ls show",
	.flags = flags,
	.nflags = AGENT_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_agent,
};
