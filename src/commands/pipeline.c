/* pipeline.c - `atoll pipeline`: a task in words, and its result, stage by stage.
 * A stream that breaks continues after the last event; the daemon works on it meanwhile. */
#include "base/clock.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/list_output.h"
#include "commands/pipeline_task.h"
#include "commands/commands.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { AGAIN_MS = 100, GIVE_UP_MS = 60000 };

static const struct flag flags[PIPELINE_NFLAGS] = {
	[PIPELINE_ISOLATION] = OPTION_ISOLATION,
	[PIPELINE_TRUST] = OPTION_TRUST,
	[PIPELINE_LANGUAGE] = { "language", 'l', FLAG_TEXT, "NAME",
				"programming language (default: from the task text)" },
	[PIPELINE_FILE] = { "file", 'f', FLAG_WORDS, "FILE",
			    "existing source file; the first one is the starting point" },
	[PIPELINE_EXAMPLE] = { "example", 'e', FLAG_WORDS, "IN=>OUT",
			       "an input and its expected output, or add(2, 3)=>5" },
	[PIPELINE_TEST] = { "test", 0, FLAG_WORDS, "FILE", "file of tests" },
	[PIPELINE_STDIN] = { "stdin", 0, FLAG_TEXT, "TEXT", "input of the program" },
	[PIPELINE_PACKAGE] = { "package", 'p', FLAG_WORDS, "MANAGER:NAME",
			       "package to install before the run" },
	[PIPELINE_MODE] = { "mode", 0, FLAG_TEXT, "MODE",
			    "planner: heuristic (rules only), llm, or auto (rules first)" },
	[PIPELINE_RACE] = { "race", 0, FLAG_COUNT, "N",
			    "candidate programs at the same time, 1 to 4" },
	[PIPELINE_BOX] = { "box", 0, FLAG_TEXT, "BOX",
			   "run each program in a copy of the files of this box" },
	[PIPELINE_ATTEMPTS] = { "attempts", 0, FLAG_COUNT, "N", "maximum number of attempts (3)" },
	[PIPELINE_TIME] = { "time", 't', FLAG_TIME, "TIME", "time limit of one run (30s)" },
	[PIPELINE_FORGET] = { "no-memory", 0, FLAG_SWITCH, NULL, "do not store successful fixes" },
	[PIPELINE_FOLLOW] = { "follow", 0, FLAG_SWITCH, NULL,
			      "also print the output of the program; show: wait for the end" },
	[PIPELINE_ATTEMPT] = { "attempt", 0, FLAG_COUNT, "N",
			       "replay: number of the attempt (the last one)" },
	[PIPELINE_SCAN] = { "scan", 0, FLAG_TEXT, "HOW",
			    "policy: what to do with a scanner match: block, warn or off" },
	[PIPELINE_MEMORY] = { "memory", 0, FLAG_TEXT, "on|off",
			      "policy: store successful fixes for the team" },
};

struct story {
	struct api_client *r;
	char id[32];
	int64_t last;
	uint64_t received_ns;
	int shows, follows, unread;
	json_t *report, *question;
};

/* ---- what comes ---- */

/* Control characters in untrusted text must not move the cursor. */
static void put_clean(FILE *to, const char *text, int lines)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n' && !lines)
			fputc(' ', to);
		else
			fputc((c < 32 && c != '\n' && c != '\t') || c == 127 ? '?' : c, to);
	}
}

static int went_well(const json_t *event)
{
	static const char *const bad[] = { "failed",          "check failed",   "compile failed",
					   "install failed",  "blocked",        "not understood",
					   "no repair found", "not_understood", "cancelled" };

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		if (!strcmp(bad[i], api_client_text(event, "outcome")))
			return 0;
	return 1;
}

/* ✓ executor      1  passed: exit 0 in 7 ms                   12 ms */
static void print_stage(const json_t *event)
{
	const char *detail = api_client_text(event, "detail");
	long long attempt = (long long)api_client_int(event, "attempt", 0);

	fprintf(stderr, "%s %-12s %lld  %s", went_well(event) ? "✓" : "✗",
		api_client_text(event, "stage"), attempt ? attempt : 1,
		api_client_text(event, "outcome"));
	if (*detail) {
		fputs(": ", stderr);
		put_clean(stderr, detail, 0);
	}
	fprintf(stderr, "  (%.0f ms)\n", json_number_value(json_object_get(event, "ms")));
}

static void print_event(const struct story *s, const json_t *event)
{
	const char *type = api_client_text(event, "type");

	if (s->shows && !strcmp(type, "stage_finished"))
		print_stage(event);
	else if (s->follows && !strcmp(type, "output"))
		put_clean(stderr, api_client_text(event, "text"), 1);
	else if (s->shows && !strcmp(type, "resumed"))
		fputs("· the daemon was restarted; the pipeline continues\n", stderr);
}

static int take_event(void *ctx, json_t *event)
{
	struct story *s = ctx;
	const char *type = api_client_text(event, "type");

	s->received_ns = now_ns();
	if (!strcmp(type, "ping"))
		return 0;
	s->last = api_client_int(event, "seq", s->last);
	if (!s->id[0] && *api_client_text(event, "run"))
		snprintf(s->id, sizeof(s->id), "%s", api_client_text(event, "run"));
	print_event(s, event);
	if (!strcmp(type, "run_finished"))
		s->report = json_incref(json_object_get(event, "report"));
	if (!strcmp(type, "waiting_input")) {
		json_decref(s->question);
		s->question = json_incref(json_object_get(event, "question"));
		return 1;
	}
	return s->report != NULL;
}

/* Follows it until its end or a question, over as many connections as needed. */
static int pipeline_follow(struct story *s)
{
	while (!s->report && !s->question) {
		auto_free char *path = api_client_path(
			"/v1/pipelines/%s/events?follow=true&after=%u", s->id, (uint64_t)s->last);
		int status = api_client_lines(s->r, "GET", path, NULL, take_event, s);

		if (s->report || s->question)
			break;
		if (status && !s->r->lost && s->r->http < 500)
			return status;
		if (now_ns() - s->received_ns > GIVE_UP_MS * UINT64_C(1000000)) {
			if (!status)
				cli_error_what(&s->r->error, "lost",
					       "the daemon sent no further data");
			cli_error_hint(&s->r->error, "later", "atoll pipeline show %s", s->id);
			return s->r->status = STATUS_OURS;
		}
		poll(NULL, 0, AGAIN_MS);
	}
	return 0;
}

/* ---- its end ---- */

static void print_files(const json_t *artifact)
{
	const json_t *files = json_object_get(artifact, "files");
	const char *path;
	json_t *text;

	json_object_foreach((json_t *)files, path, text)
	{
		const char *body = json_string_value(text);

		if (json_object_size(files) > 1)
			printf("── %s\n", path);
		put_clean(stdout, body ? body : "", 1);
		if (body && *body && body[strlen(body) - 1] != '\n')
			putchar('\n');
	}
}

static void print_report(const json_t *report)
{
	const char *output = api_client_text(report, "output"),
		   *outcome = api_client_text(report, "outcome"),
		   *category = api_client_text(report, "category");
	const json_t *one;
	size_t i;

	if (json_object_get(report, "artifact")) {
		print_files(json_object_get(report, "artifact"));
		puts("── output");
	}
	put_clean(stdout, output, 1);
	if (*output && output[strlen(output) - 1] != '\n')
		putchar('\n');
	fflush(stdout);
	fprintf(stderr, "%s%s%s: ", outcome, *category ? ", " : "", category);
	put_clean(stderr, api_client_text(report, "why"), 0);
	fprintf(stderr, "  (%lld attempt%s, %.0f ms)\n",
		(long long)api_client_int(report, "attempts", 0),
		api_client_int(report, "attempts", 0) == 1 ? "" : "s",
		json_number_value(json_object_get(report, "ms")));
	if (*api_client_text(report, "hint")) {
		fputs("  hint: ", stderr);
		put_clean(stderr, api_client_text(report, "hint"), 0);
		fputc('\n', stderr);
	}
	json_array_foreach(json_object_get(report, "nearest"), i, one)
	{
		fprintf(stderr, "  near: %s: %s\n", api_client_text(one, "template"),
			api_client_text(one, "says"));
	}
}

static int is_good(const json_t *report)
{
	const char *outcome = api_client_text(report, "outcome");

	return !strcmp(outcome, "verified") || !strcmp(outcome, "examples_pass") ||
	       !strcmp(outcome, "plausible");
}

/* 1: a user is at the terminal, and the answer was sent. */
static int ask_here(struct story *s)
{
	auto_free char *path = api_client_path("/v1/pipelines/%s/answer", s->id);
	char line[4096];
	json_t *doc;

	if (!isatty(0) || !isatty(2) || s->r->cli->json)
		return 0;
	put_clean(stderr, api_client_text(s->question, "question"), 0);
	fputs(" ", stderr);
	if (!fgets(line, sizeof(line), stdin))
		return 0;
	line[strcspn(line, "\n")] = 0;
	doc = api_client_json(s->r, "POST", path,
			      json_pack("{s:s, s:s}", "name", api_client_text(s->question, "name"),
					"text", line));
	json_decref(doc);
	json_decref(s->question);
	s->question = NULL;
	return doc != NULL;
}

static int pipeline_conclude(struct story *s)
{
	int status = 0;

	while (!status && s->question && !s->report && ask_here(s))
		status = pipeline_follow(s);
	if (status)
		return status;
	if (s->report) {
		if (s->r->cli->json)
			api_client_print(s->report);
		else
			print_report(s->report);
		return is_good(s->report) ? 0 : STATUS_FAILED;
	}
	if (!s->question)
		return s->r->status;
	if (s->r->cli->json) {
		json_t *doc = json_pack("{s:s, s:s, s:O}", "run_id", s->id, "outcome",
					"needs_input", "question", s->question);

		api_client_print(doc);
		json_decref(doc);
		return STATUS_FAILED;
	}
	cli_error_what(&s->r->error, "needs_input", "%s", api_client_text(s->question, "question"));
	cli_error_hint(&s->r->error, "type", "atoll pipeline answer %s TEXT", s->id);
	return s->r->status = STATUS_FAILED;
}

/* ---- subcommands ---- */

static struct story new_story(struct api_client *r, const struct args *a)
{
	return (struct story){ .r = r,
			       .received_ns = now_ns(),
			       .shows = !r->cli->quiet && !r->cli->json,
			       .follows = args_has(a, PIPELINE_FOLLOW) && !r->cli->json };
}

static void story_fini(struct story *s)
{
	json_decref(s->report);
	json_decref(s->question);
}

static int pipeline_begin(struct api_client *r, const struct args *a)
{
	struct story s = new_story(r, a);
	json_t *task = pipeline_task(r, a), *doc;
	char once[ID_MAX + 1];
	struct err e;
	int status;

	if (!task)
		return r->status;
	/* So that one pipeline is created, even if the answer is lost and the request is
	 * repeated. */
	if (id_new(once, &e) == 0)
		r->once = once;
	doc = api_client_json(r, "POST", "/v1/pipelines", task);
	if (!doc)
		return r->status;
	snprintf(s.id, sizeof(s.id), "%s", api_client_text(doc, "id"));
	json_decref(doc);
	if (s.shows)
		fprintf(stderr, "· pipeline %s\n", s.id);
	status = pipeline_follow(&s);
	if (!status)
		status = pipeline_conclude(&s);
	story_fini(&s);
	return status;
}

static void pipeline_row(struct table *t, json_t *v)
{
	char text[24];

	table_cell(t, "%s", api_client_text(v, "id"));
	table_cell(t, "%s",
		   *api_client_text(v, "outcome") ? api_client_text(v, "outcome")
						  : api_client_text(v, "state"));
	table_cell(t, "%lld", (long long)api_client_int(v, "attempts", 0));
	table_cell(t, "%.0f ms", json_number_value(json_object_get(v, "ms")));
	table_cell(t, "%s", api_client_since(text, v, "created_at"));
	table_cell(t, "%.60s", api_client_text(v, "task"));
}

static int pipeline_list(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "PIPELINE", "OUTCOME", ">TRIES", ">TOOK",
					       ">AGE",     "TASK",    NULL };

	(void)a;
	return list_output_show(r, "/v1/pipelines",
				&(struct list_output){ columns, "id", pipeline_row });
}

static void print_document(const json_t *one)
{
	const json_t *doc = json_object_get(one, "document");
	const char *kind = api_client_text(one, "kind");
	long long attempt = (long long)api_client_int(one, "attempt", 0);

	printf("%-10s %lld  ", kind, attempt);
	if (!strcmp(kind, "task"))
		put_clean(stdout, api_client_text(doc, "task"), 0);
	else if (!strcmp(kind, "plan"))
		printf("%s %s (%s)", api_client_text(doc, "language"),
		       api_client_text(doc, "template"), api_client_text(doc, "source"));
	else if (!strcmp(kind, "artifact"))
		printf("%s %.12s", api_client_text(doc, "provenance"),
		       api_client_text(doc, "hash"));
	else if (!strcmp(kind, "result"))
		printf("%s, %s",
		       json_is_true(json_object_get(doc, "success")) ? "passed" : "failed",
		       api_client_text(doc, "phase"));
	else if (!strcmp(kind, "diagnosis"))
		put_clean(stdout, api_client_text(doc, "root_cause"), 0);
	else if (!strcmp(kind, "question"))
		put_clean(stdout, api_client_text(doc, "question"), 0);
	else if (!strcmp(kind, "answer"))
		put_clean(stdout, api_client_text(doc, "text"), 0);
	else if (!strcmp(kind, "report"))
		printf("%s", api_client_text(doc, "outcome"));
	putchar('\n');
}

static int pipeline_show(struct api_client *r, const struct args *a)
{
	struct story s = new_story(r, a);
	const json_t *one, *last;
	json_t *doc;
	size_t i;

	snprintf(s.id, sizeof(s.id), "%.30s", a->words[1]);
	if (args_has(a, PIPELINE_FOLLOW)) {
		int status = pipeline_follow(&s);

		if (!status)
			status = pipeline_conclude(&s);
		story_fini(&s);
		return status;
	}
	doc = api_client_get(r, "/v1/pipelines/%s", a->words[1]);
	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
		json_decref(doc);
		return 0;
	}
	json_array_foreach(json_object_get(doc, "documents"), i, one)
	{
		print_document(one);
	}
	last = json_array_get(json_object_get(doc, "documents"),
			      json_array_size(json_object_get(doc, "documents")) - 1);
	if (!strcmp(api_client_text(last, "kind"), "report"))
		print_report(json_object_get(last, "document"));
	json_decref(doc);
	return 0;
}

static int pipeline_replay(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/pipelines/%s/replay", a->words[1]);
	json_t *body = json_object(), *doc;
	int same;

	if (args_has(a, PIPELINE_ATTEMPT))
		json_object_set_new(body, "attempt",
				    json_integer((json_int_t)args_value(a, PIPELINE_ATTEMPT, 1)));
	doc = api_client_json(r, "POST", path, body);
	if (!doc)
		return r->status;
	same = json_is_true(json_object_get(doc, "same"));
	if (r->cli->json)
		api_client_print(doc);
	else
		printf("attempt %lld: %s%s\n", (long long)api_client_int(doc, "attempt", 0),
		       same ? "the same" : "differs in ",
		       same ? "" : api_client_text(doc, "differs"));
	json_decref(doc);
	return same ? 0 : STATUS_FAILED;
}

static int pipeline_change(struct api_client *r, const char *method, const char *fmt,
			   const char *id, json_t *take_body)
{
	auto_free char *path = api_client_path(fmt, id);
	json_t *doc = api_client_json(r, method, path, take_body);

	if (!doc)
		return r->status;
	if (r->cli->json && json_is_object(doc))
		api_client_print(doc);
	json_decref(doc);
	return 0;
}

static int pipeline_do_cancel(struct api_client *r, const struct args *a)
{
	return pipeline_change(r, "POST", "/v1/pipelines/%s/cancel", a->words[1], NULL);
}

static int pipeline_do_answer(struct api_client *r, const struct args *a)
{
	json_t *body = json_pack("{s:s}", "text", a->words[2]);

	return body ? pipeline_change(r, "POST", "/v1/pipelines/%s/answer", a->words[1], body)
		    : api_client_usage(r, "the answer is not text");
}

static int pipeline_drop(struct api_client *r, const struct args *a)
{
	return pipeline_change(r, "DELETE", "/v1/pipelines/%s", a->words[1], NULL);
}

/* The policy of the team; with a flag it is changed first. */
static int pipeline_policy(struct api_client *r, const struct args *a)
{
	const char *scan = args_text(a, PIPELINE_SCAN, NULL),
		   *memory = args_text(a, PIPELINE_MEMORY, NULL);
	json_t *body = json_object(), *doc;

	if (memory && strcmp(memory, "on") != 0 && strcmp(memory, "off") != 0) {
		json_decref(body);
		return api_client_usage(r, "--memory is on or off");
	}
	if (scan)
		json_object_set_new(body, "scan", json_string(scan));
	if (memory)
		json_object_set_new(body, "memory", json_boolean(!strcmp(memory, "on")));
	if (scan || memory) {
		doc = api_client_json(r, "PUT", "/v1/pipelines/policy", body);
	} else {
		json_decref(body);
		doc = api_client_json(r, "GET", "/v1/pipelines/policy", NULL);
	}
	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		printf("scan    %s\nmemory  %s\n", api_client_text(doc, "scan"),
		       json_is_true(json_object_get(doc, "memory")) ? "on" : "off");
	json_decref(doc);
	return 0;
}

static const struct {
	const char *name;
	unsigned words; /* with itself */
	int (*run)(struct api_client *r, const struct args *a);
} words[] = {
	{ "run", 2, pipeline_begin },        { "ls", 1, pipeline_list },
	{ "show", 2, pipeline_show },        { "replay", 2, pipeline_replay },
	{ "cancel", 2, pipeline_do_cancel }, { "answer", 3, pipeline_do_answer },
	{ "rm", 2, pipeline_drop },          { "policy", 1, pipeline_policy },
};

static int pipeline_pipeline(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (!strcmp(words[i].name, what) && (a->nwords == words[i].words || !a->nwords))
			return words[i].run(r, a);
	api_client_usage(r, "pipeline: missing or unknown subcommand");
	cli_error_hint(
		&r->error, "type",
		"atoll pipeline run TASK | ls | show ID | replay ID | cancel ID | answer ID TEXT | rm ID | policy");
	return r->status;
}

static int run_pipeline(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, pipeline_pipeline);
}

static const struct example examples[] = {
	{ "atoll pipeline run 'the mean and the median of 3, 1 and 2, in Python'",
	  "write, run and check a program" },
	{ "atoll pipeline run 'make it work' --file broken.py --example 'add(2, 3)=>5'",
	  "repair an existing program" },
	{ "atoll pipeline show ID", "print every document of a pipeline" },
	{ 0 },
};

const struct command command_pipeline = {
	/* clang-format off */
	.name = "pipeline",
	.group = "Run",
	.usage = "run TASK | ls | show ID | replay ID | cancel ID | answer ID TEXT | rm ID | policy",
	.summary = "turn a task description into tested code",
	.notes =
		"Makes a plan, writes a program, runs it in a new box and analyses its failure, at most three times.\n"
		"The exit status is 0 only for the outcomes verified, examples_pass and plausible.",
	.words = "run ls show replay cancel answer rm policy",
	.flags = flags,
	.nflags = PIPELINE_NFLAGS,
	.max_words = 3,
	.examples = examples,
	.run = run_pipeline,
	/* clang-format on */
};
