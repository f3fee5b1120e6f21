/* schedule.c - `atoll schedule`: programs, batches and pipelines at fixed times. */
#include "base/base64.h"
#include "base/cleanup.h"
#include "cli/fields.h"
#include "cli/list_output.h"
#include "cli/options.h"
#include "commands/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	SCHEDULE_CRON,
	SCHEDULE_TZ,
	SCHEDULE_OVERLAP,
	SCHEDULE_CATCH_UP,
	SCHEDULE_CATCH_UP_MAX,
	SCHEDULE_JITTER,
	SCHEDULE_RETRIES,
	SCHEDULE_RETRY,
	SCHEDULE_TIME,
	SCHEDULE_VOLUME,
	SCHEDULE_SECRET,
	SCHEDULE_ENV,
	SCHEDULE_TEMPLATE,
	SCHEDULE_MEM,
	SCHEDULE_CPU,
	SCHEDULE_BATCH,
	SCHEDULE_PIPELINE,
	SCHEDULE_PAUSED,
	SCHEDULE_NFLAGS
};
enum { PROGRAM_MOST = 4 << 20, BATCH_MOST = 8 << 20 };

static const struct flag flags[SCHEDULE_NFLAGS] = {
	[SCHEDULE_CRON] = { "cron", 0, FLAG_TEXT, "WHEN",
			    "'0 6 * * 1-5', @daily, 'every 15m', 'at 2026-12-01T06:00' or once" },
	[SCHEDULE_TZ] = { "tz", 0, FLAG_TEXT, "ZONE", "time zone, such as Europe/Berlin (UTC)" },
	[SCHEDULE_OVERLAP] = { "overlap", 0, FLAG_TEXT, "WHAT",
			       "while the run before lasts: skip, queue or replace (skip)" },
	[SCHEDULE_CATCH_UP] = { "catch-up", 0, FLAG_TEXT, "WHAT",
				"times that no server could start: none, one or all (one)" },
	[SCHEDULE_CATCH_UP_MAX] = { "catch-up-max", 0, FLAG_COUNT, "N",
				    "all: at most so many (10)" },
	[SCHEDULE_JITTER] = { "jitter", 0, FLAG_TIME, "TIME", "start up to so much later" },
	[SCHEDULE_RETRIES] = { "retries", 0, FLAG_COUNT, "N", "attempts after a failure (0)" },
	[SCHEDULE_RETRY] = { "retry-pause", 0, FLAG_TIME, "TIME",
			     "pause before the first of them, then doubled (10s)" },
	[SCHEDULE_TIME] = { "time", 't', FLAG_TIME, "TIME", "time limit of one attempt" },
	[SCHEDULE_VOLUME] = FIELD_FLAG_VOLUME,
	[SCHEDULE_SECRET] = FIELD_FLAG_SECRET,
	[SCHEDULE_ENV] = OPTION_ENV,
	[SCHEDULE_TEMPLATE] = { "template", 0, FLAG_TEXT, "NAME", "template of the box (base)" },
	[SCHEDULE_MEM] = OPTION_MEM,
	[SCHEDULE_CPU] = OPTION_CPU,
	[SCHEDULE_BATCH] = { "batch", 0, FLAG_TEXT, "FILE",
			     "start a batch: a file with one item per line" },
	[SCHEDULE_PIPELINE] = { "pipeline", 0, FLAG_TEXT, "TASK",
				"start a pipeline with this task" },
	[SCHEDULE_PAUSED] = { "paused", 0, FLAG_SWITCH, NULL, "create it paused" },
};

/* ---- what it starts ---- */

static int schedule_read_file(struct api_client *r, const char *path, size_t most, struct buf *out)
{
	auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	char shown[SHOWN];
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && out->len <= most) {
		n = read(fd, buf_space(out, 65536), 65536);
		if (n > 0)
			buf_grew(out, (size_t)n);
	}
	if (fd < 0 || n < 0)
		return api_client_usage(r, "cannot read '%s': %s", cli_error_shown(path, shown),
					strerror(errno));
	if (out->len > most)
		return api_client_usage(r, "'%s' has more than %zu bytes",
					cli_error_shown(path, shown), most);
	return 0;
}

static json_t *schedule_words(const struct args *a, unsigned from)
{
	json_t *all = json_array();

	for (unsigned i = from; i < a->nwords; i++)
		json_array_append_new(all, json_string(a->words[i]));
	return all;
}

/* A file of this machine, which becomes part of the schedule. */
static int schedule_program(struct api_client *r, json_t *run, const struct args *a)
{
	const char *path = a->words[2], *slash = strrchr(path, '/'),
		   *name = slash ? slash + 1 : path;
	auto_buf struct buf text = { 0 }, coded = { 0 };
	json_t *files = json_object(), *content;

	if (schedule_read_file(r, path, PROGRAM_MOST, &text)) {
		json_decref(files);
		cli_error_hint(&r->error, "type", "atoll schedule new NAME --cron WHEN -- COMMAND");
		return r->status;
	}
	content = json_stringn(buf_str(&text), text.len);
	if (!content) { /* not UTF-8 */
		base64_encode(&coded, text.p, text.len);
		content = json_pack("{s:s}", "base64", buf_str(&coded));
	}
	json_object_set_new(files, name, content);
	json_object_set_new(run, "files", files);
	json_object_set_new(run, "entry", json_string(name));
	if (a->nwords > 3)
		json_object_set_new(run, "args", schedule_words(a, 3));
	return 0;
}

static int schedule_run_body(struct api_client *r, json_t *doc, const struct args *a)
{
	json_t *run = json_object(), *limits = json_object();

	json_object_set_new(doc, "run", run);
	fields_text(run, a, SCHEDULE_TEMPLATE, "template");
	fields_number(limits, a, SCHEDULE_MEM, "mem");
	fields_number(limits, a, SCHEDULE_CPU, "cpu_milli");
	if (json_object_size(limits))
		json_object_set(run, "limits", limits);
	json_decref(limits);
	if (fields_pairs(r, run, a, SCHEDULE_ENV, "env") ||
	    fields_volumes(r, run, a, SCHEDULE_VOLUME) ||
	    fields_secrets(r, run, a, SCHEDULE_SECRET))
		return r->status;
	if (!a->dashes)
		return schedule_program(r, run, a);
	json_object_set_new(run, "command", schedule_words(a, 2));
	return 0;
}

static int schedule_batch_body(struct api_client *r, json_t *doc, const char *path)
{
	json_t *items = json_array(), *item;
	auto_buf struct buf text = { 0 };
	char *rest = NULL, shown[SHOWN];
	unsigned n = 0;

	json_object_set_new(doc, "batch", json_pack("{s:o}", "items", items));
	if (schedule_read_file(r, path, BATCH_MOST, &text))
		return r->status;
	if (!text.len)
		return api_client_usage(r, "'%s' is empty", cli_error_shown(path, shown));
	for (char *line = strtok_r(text.p, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		n++;
		item = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		if (!item)
			return api_client_usage(r, "'%s': line %u is not a JSON object",
						cli_error_shown(path, shown), n);
		json_array_append_new(items, item);
	}
	return 0;
}

static int schedule_body(struct api_client *r, json_t *doc, const struct args *a)
{
	const char *batch = args_text(a, SCHEDULE_BATCH, NULL),
		   *task = args_text(a, SCHEDULE_PIPELINE, NULL);

	json_object_set_new(doc, "name", json_string(a->words[1]));
	fields_text(doc, a, SCHEDULE_CRON, "cron");
	fields_text(doc, a, SCHEDULE_TZ, "tz");
	fields_text(doc, a, SCHEDULE_OVERLAP, "overlap");
	fields_text(doc, a, SCHEDULE_CATCH_UP, "catch_up");
	fields_number(doc, a, SCHEDULE_CATCH_UP_MAX, "catch_up_max");
	fields_number(doc, a, SCHEDULE_JITTER, "jitter_ms");
	fields_number(doc, a, SCHEDULE_RETRIES, "retries");
	fields_number(doc, a, SCHEDULE_RETRY, "retry_ms");
	fields_number(doc, a, SCHEDULE_TIME, "timeout_ms");
	if (args_has(a, SCHEDULE_PAUSED))
		json_object_set_new(doc, "paused", json_true());
	if (!args_has(a, SCHEDULE_CRON)) {
		api_client_usage(r, "schedule new: --cron is missing");
		cli_error_hint(&r->error, "type",
			       "atoll schedule new NAME --cron '0 6 * * 1-5' -- COMMAND");
		return r->status;
	}
	if ((a->nwords > 2) + (batch != NULL) + (task != NULL) != 1) {
		api_client_usage(
			r,
			"schedule new: give exactly one of -- COMMAND, FILE, --batch, --pipeline");
		cli_error_hint(&r->error, "type",
			       "atoll schedule new NAME --cron '0 6 * * 1-5' -- COMMAND");
		return r->status;
	}
	if (batch)
		return schedule_batch_body(r, doc, batch);
	if (!task)
		return schedule_run_body(r, doc, a);
	json_object_set_new(doc, "pipeline", json_pack("{s:s}", "task", task));
	return 0;
}

/* ---- for people ---- */

static void schedule_print_next(const json_t *doc)
{
	json_t *one;
	size_t i;

	json_array_foreach(json_object_get(doc, "next"), i, one)
		printf("%s%s\n", i ? "      " : "next  ", api_client_text(one, "local"));
}

static void schedule_print(const struct cli *cli, const json_t *doc)
{
	json_t *one;
	size_t i;

	if (cli->json) {
		api_client_print(doc);
		return;
	}
	if (cli->quiet) {
		puts(api_client_text(doc, "id"));
		return;
	}
	printf("%s  %s (%s), %s\n", api_client_text(doc, "name"), api_client_text(doc, "words"),
	       api_client_text(doc, "tz"), api_client_text(doc, "state"));
	if (*api_client_text(doc, "reason"))
		printf("why   %s\n", api_client_text(doc, "reason"));
	schedule_print_next(doc);
	json_array_foreach(json_object_get(doc, "warnings"), i, one)
		fprintf(stderr, "atoll: %s\n", json_string_value(one));
}

static void schedule_row(struct table *t, json_t *v)
{
	json_t *next = json_array_get(json_object_get(v, "next"), 0),
	       *last = json_array_get(json_object_get(v, "last"), 0);

	table_cell(t, "%s", api_client_text(v, "name"));
	table_cell(t, "%s", api_client_text(v, "cron"));
	table_cell(t, "%s", api_client_text(v, "tz"));
	table_cell(t, "%s", api_client_text(v, "kind"));
	table_cell(t, "%s", next ? api_client_text(next, "local") : "-");
	table_cell(t, "%s", last ? api_client_text(last, "state") : "-");
	table_cell(t, "%s", api_client_text(v, "state"));
}

static int schedule_list(struct api_client *r)
{
	static const char *const columns[] = { "SCHEDULE", "WHEN", "ZONE",  "STARTS",
					       "NEXT",     "LAST", "STATE", NULL };

	return list_output_show(r, "/v1/schedules",
				&(struct list_output){ columns, "name", schedule_row });
}

static void schedule_tick_row(struct table *t, json_t *v)
{
	char late[24] = "-";

	if (json_is_true(json_object_get(v, "late")))
		snprintf(late, sizeof(late), "%lld s",
			 (long long)(api_client_int(v, "late_ms", 0) / 1000));
	table_cell(t, "%s", api_client_text(v, "at"));
	table_cell(t, "%s", api_client_text(v, "state"));
	table_cell(t, "%lld", (long long)api_client_int(v, "attempt", 0));
	table_cell(t, "%s", late);
	table_cell(t, "%s", *api_client_text(v, "run") ? api_client_text(v, "run") : "-");
	table_cell(t, "%s", api_client_text(v, "detail"));
}

static int schedule_history(struct api_client *r, const char *name)
{
	static const char *const columns[] = { "TIME", "STATE", ">ATTEMPT", ">LATE",
					       "RUN",  "WHY",   NULL };
	auto_free char *path = api_client_path("/v1/schedules/%s/ticks", name);

	return list_output_show(r, path, &(struct list_output){ columns, "at", schedule_tick_row });
}

/* ---- the command ---- */

static int schedule_new(struct api_client *r, const struct args *a)
{
	json_t *doc = json_object();

	if (schedule_body(r, doc, a)) {
		json_decref(doc);
		return r->status;
	}
	doc = api_client_json(r, "POST", "/v1/schedules", doc);
	if (!doc)
		return r->status;
	schedule_print(r->cli, doc);
	json_decref(doc);
	return 0;
}

static int schedule_show(struct api_client *r, const char *name)
{
	json_t *doc = api_client_get(r, "/v1/schedules/%s", name);

	if (!doc)
		return r->status;
	schedule_print(r->cli, doc);
	json_decref(doc);
	return 0;
}

/* pause, resume and run: a POST without a body. */
static int schedule_post(struct api_client *r, const char *name, const char *what)
{
	auto_free char *path = api_client_path("/v1/schedules/%s/%s", name, what);
	json_t *doc = api_client_json(r, "POST", path, NULL);

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else if (!r->cli->quiet && !strcmp(what, "resume"))
		schedule_print_next(doc);
	json_decref(doc);
	return 0;
}

static int schedule_remove(struct api_client *r, const char *name)
{
	auto_free char *path = api_client_path("/v1/schedules/%s", name);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	json_decref(doc);
	return doc ? 0 : r->status;
}

static int schedule_schedule(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls") && a->nwords < 2)
		return schedule_list(r);
	if (!strcmp(what, "new") && a->nwords >= 2)
		return schedule_new(r, a);
	if (!strcmp(what, "show") && a->nwords == 2)
		return schedule_show(r, a->words[1]);
	if (!strcmp(what, "history") && a->nwords == 2)
		return schedule_history(r, a->words[1]);
	if (!strcmp(what, "rm") && a->nwords == 2)
		return schedule_remove(r, a->words[1]);
	if (a->nwords == 2 &&
	    (!strcmp(what, "run") || !strcmp(what, "pause") || !strcmp(what, "resume")))
		return schedule_post(r, a->words[1], what);
	api_client_usage(r, "schedule: missing or unknown subcommand");
	cli_error_hint(&r->error, "type",
		       "atoll schedule new NAME | ls | show NAME | run NAME | pause NAME | "
		       "resume NAME | rm NAME | history NAME");
	return r->status;
}

static int run_schedule(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, schedule_schedule);
}

static const struct example examples[] = {
	{ "atoll schedule new report --cron '0 6 * * 1-5' --tz Europe/Berlin -- ./report.sh",
	  "at 06:00 on working days" },
	{ "atoll schedule new clean --cron 'every 15m' --retries 2 clean.py",
	  "run a file of this machine every 15 minutes" },
	{ "atoll schedule history report", "what became of each time" },
	{ "atoll schedule run report", "start it now, too" },
	{ 0 },
};

const struct command command_schedule = {
	.name = "schedule",
	.group = "Run",
	.usage =
		"new NAME --cron WHEN [FILE | -- COMMAND...] | ls | show NAME | run NAME | pause NAME | resume NAME | rm NAME | history NAME",
	.summary = "run programs, batches and pipelines at fixed times",
	.notes =
		"Each time is run exactly once, also when the daemon is restarted or the clock is set. "
		"A time that does not exist because clocks were set forward runs right after the change; "
		"one that exists twice runs once.",
	.words = "new ls show run pause resume rm history",
	.flags = flags,
	.nflags = SCHEDULE_NFLAGS,
	.own_words = 3,
	.max_words = 3,
	.examples = examples,
	.run = run_schedule,
};
