/* batch.c - `atoll batch`: a file of programs, each in a fresh box; prints failures, reasons and
 * times.
 * A stream that breaks continues after the last result; the daemon runs the batch meanwhile. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "cli/options.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	BATCH_JOBS,
	BATCH_LANG,
	BATCH_TIME,
	BATCH_OUTPUT,
	BATCH_RESUME,
	BATCH_AFTER,
	BATCH_CANCEL,
	BATCH_LIST,
	BATCH_ISOLATION,
	BATCH_TRUST,
	BATCH_NFLAGS,
};
enum { AGAIN_MS = 100, GIVE_UP_MS = 60000, SHOW_MS = 200 };

static const struct flag flags[BATCH_NFLAGS] = {
	[BATCH_JOBS] = { "jobs", 'j', FLAG_COUNT, "N",
			 "maximum number of programs at the same time" },
	[BATCH_LANG] = { "lang", 'l', FLAG_TEXT, "NAME", "language of items without one" },
	[BATCH_TIME] = { "time", 't', FLAG_TIME, "TIME", "time limit of items without one (30s)" },
	[BATCH_OUTPUT] = { "max-output", 0, FLAG_SIZE, "SIZE", "maximum output per stream (16K)" },
	[BATCH_RESUME] = { "resume", 0, FLAG_TEXT, "ID", "print the results of an earlier batch" },
	[BATCH_AFTER] = { "after", 0, FLAG_COUNT, "N",
			  "with --resume: skip results up to number N" },
	[BATCH_CANCEL] = { "cancel", 0, FLAG_TEXT, "ID", "cancel a batch and print its progress" },
	[BATCH_LIST] = { "list", 0, FLAG_SWITCH, NULL, "list stored batches, newest first" },
	[BATCH_ISOLATION] = OPTION_ISOLATION,
	[BATCH_TRUST] = OPTION_TRUST,
};

struct sheet {
	struct api_client *r;
	char id[32];
	int64_t last, passed, failed, errors;
	uint64_t began_ns, received_ns, shown_ns;
	int unread, shows; /* shows: progress is shown on a terminal */
	json_t *end;
	json_t *refused;
};

/* ---- what comes ---- */

static double batch_seconds(uint64_t since_ns)
{
	return (double)(now_ns() - since_ns) / 1e9;
}

static void show_progress(struct sheet *s, int last)
{
	int64_t n = s->passed + s->failed + s->errors;

	if (!s->shows || (!last && now_ns() - s->shown_ns < SHOW_MS * UINT64_C(1000000)))
		return;
	s->shown_ns = now_ns();
	if (last)
		fprintf(stderr, "\r\033[K");
	else
		fprintf(stderr, "\r\033[K%lld done, %lld passed, %lld failed, %.0f/s", (long long)n,
			(long long)s->passed, (long long)(s->failed + s->errors),
			(double)n / batch_seconds(s->began_ns));
	fflush(stderr);
}

static void print_failure(struct sheet *s, const json_t *line)
{
	const json_t *id = json_object_get(line, "id");
	auto_free char *name = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
	const char *text = api_client_text(line, "message"), *err = api_client_text(line, "stderr");
	const char *end = err + strlen(err), *from;
	char shown[SHOWN];

	/* Of a traceback the last line has the reason, of a compiler's output the first. */
	while (end > err && end[-1] == '\n')
		end--;
	for (from = end; from > err && from[-1] != '\n'; from--)
		;
	if (!strcmp(api_client_text(line, "cause"), "compile"))
		end = (from = err) + strcspn(err, "\n");
	show_progress(s, 1);
	printf("%s  %s", api_client_text(line, "verdict"),
	       json_is_string(id) ? cli_error_shown(json_string_value(id), shown)
	       : name             ? name
				  : "");
	if (!id)
		printf("#%lld", (long long)api_client_int(line, "item", 0));
	printf("  %s", api_client_text(line, "cause"));
	if (*text)
		printf("  %s", text);
	else if (end > from) {
		char one[SHOWN * 4];

		snprintf(one, sizeof(one), "%.*s", (int)(end - from), from);
		for (char *c = one; *c; c++)
			if ((unsigned char)*c < 32 || *c == 127)
				*c = '?';
		printf("  %s", one);
	}
	putchar('\n');
}

static void take_result(struct sheet *s, const json_t *line)
{
	const char *verdict = api_client_text(line, "verdict");
	int passed = !strcmp(verdict, "passed");

	s->last = api_client_int(line, "n", s->last);
	s->passed += passed;
	s->failed += !strcmp(verdict, "failed");
	s->errors += !strcmp(verdict, "error");
	if (!s->r->cli->json && !s->r->cli->quiet && !passed)
		print_failure(s, line);
	show_progress(s, 0);
}

static int take_line(void *ctx, json_t *line)
{
	struct sheet *s = ctx;
	const char *type = api_client_text(line, "type");
	int told = !strcmp(type, "result") || !strcmp(type, "end") ||
		   (!strcmp(type, "batch") && !s->id[0]);

	s->received_ns = now_ns();
	if (!strcmp(type, "batch"))
		snprintf(s->id, sizeof(s->id), "%s", api_client_text(line, "id"));
	else if (!strcmp(type, "result"))
		take_result(s, line);
	else if (!strcmp(type, "end"))
		s->end = json_incref(line);
	else if (!strcmp(type, "error"))
		s->refused = json_incref(line);
	if (s->r->cli->json && told) {
		api_client_print(line);
		s->unread = fflush(stdout) != 0;
	}
	return s->unread;
}

/* ---- the whole ---- */

static void print_summary(const struct sheet *s)
{
	const json_t *causes = json_object_get(s->end, "causes");
	double took = json_number_value(json_object_get(s->end, "seconds"));
	int64_t all = api_client_int(s->end, "results", 0);
	const char *cause, *between = ": ";
	json_t *n;

	printf("%lld passed, %lld failed", (long long)api_client_int(s->end, "passed", 0),
	       (long long)(api_client_int(s->end, "failed", 0) +
			   api_client_int(s->end, "errors", 0)));
	json_object_foreach((json_t *)causes, cause, n)
	{
		printf("%s%s %lld", between, cause, (long long)json_integer_value(n));
		between = ", ";
	}
	printf("; %lld programs in %.1f s, %.0f/s\n", (long long)all, took,
	       took > 0 ? (double)all / took : 0);
	if (!strcmp(api_client_text(s->end, "state"), "cancelled"))
		puts("it was cancelled");
	else if (!json_is_true(json_object_get(s->end, "whole")))
		puts("not all items had been sent");
}

/* A daemon of version 0.1 sends "over". */
static const char *batch_state(const json_t *doc)
{
	const char *state = api_client_text(doc, "state");

	return strcmp(state, "over") ? state : "finished";
}

static int batch_conclude(struct sheet *s)
{
	const json_t *error = json_object_get(s->refused, "error");
	int well = s->end && !api_client_int(s->end, "failed", 0) &&
		   !api_client_int(s->end, "errors", 0) &&
		   !strcmp(batch_state(s->end), "finished") &&
		   json_is_true(json_object_get(s->end, "whole"));

	show_progress(s, 1);
	if (error) {
		cli_error_what(&s->r->error, "refused", "%s", api_client_text(error, "message"));
		return s->r->status = STATUS_FAILED;
	}
	if (s->end && !s->r->cli->json)
		print_summary(s);
	return well ? 0 : STATUS_FAILED;
}

/* Follows it until its end, over as many connections as needed. */
static int batch_follow(struct sheet *s)
{
	while (!s->end && !s->unread) {
		auto_free char *path =
			api_client_path("/v1/batch/%s/results?after=%u", s->id, (uint64_t)s->last);
		int status = api_client_lines(s->r, "GET", path, NULL, take_line, s);

		if (s->end || s->unread)
			break;
		if (status && !s->r->lost && s->r->http < 500)
			return status;
		if (now_ns() - s->received_ns > GIVE_UP_MS * UINT64_C(1000000)) {
			if (!status)
				cli_error_what(&s->r->error, "lost",
					       "the daemon sent no further data");
			cli_error_hint(&s->r->error, "later",
				       "atoll batch --resume %s --after %lld", s->id,
				       (long long)s->last);
			return s->r->status = STATUS_OURS;
		}
		poll(NULL, 0, AGAIN_MS);
	}
	return 0;
}

static void query_of(struct buf *path, const struct args *a)
{
	buf_puts(path, "/v1/batch?detach=true");
	if (args_has(a, BATCH_JOBS))
		buf_printf(path, "&jobs=%llu", (unsigned long long)args_value(a, BATCH_JOBS, 0));
	if (args_has(a, BATCH_TIME))
		buf_printf(path, "&timeout_ms=%llu",
			   (unsigned long long)args_value(a, BATCH_TIME, 0));
	if (args_has(a, BATCH_OUTPUT))
		buf_printf(path, "&max_output=%llu",
			   (unsigned long long)args_value(a, BATCH_OUTPUT, 0));
	if (args_has(a, BATCH_LANG)) {
		buf_puts(path, "&language=");
		api_client_escape(path, args_text(a, BATCH_LANG, ""));
	}
	if (args_has(a, BATCH_ISOLATION)) {
		buf_puts(path, "&isolation=");
		api_client_escape(path, args_text(a, BATCH_ISOLATION, ""));
	}
	if (args_has(a, BATCH_TRUST)) {
		buf_puts(path, "&trust=");
		api_client_escape(path, args_text(a, BATCH_TRUST, ""));
	}
}

static int open_items(struct api_client *r, const char *name)
{
	char shown[SHOWN];
	int fd;

	if (!strcmp(name, "-"))
		return dup(0);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		cli_error_what(&r->error, "not_found", "%s: %s", cli_error_shown(name, shown),
			       strerror(errno));
		r->status = STATUS_NOT_FOUND;
	}
	return fd;
}

static int send_items(struct sheet *s, const struct args *a)
{
	auto_buf struct buf path = { 0 };
	auto_fd int fd = open_items(s->r, a->words[0]);
	int status;

	if (fd < 0)
		return s->r->status;
	query_of(&path, a);
	status =
		api_client_lines_of(s->r, buf_str(&path), fd, "application/x-ndjson", take_line, s);
	if (s->end || s->refused || s->unread)
		return 0;
	/* The batch was started: after any failure the daemon continues, and so does this
	 * command. */
	return s->id[0] ? batch_follow(s) : status ? status : (s->r->status = STATUS_OURS);
}

static int batch_do_list(struct api_client *r)
{
	json_t *doc = api_client_get(r, "/v1/batch"), *one;
	size_t i;

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		json_array_foreach(json_object_get(doc, "items"), i, one)
			printf("%s  %s  %s  %lld passed, %lld failed\n", api_client_text(one, "id"),
			       api_client_text(one, "created"), api_client_text(one, "state"),
			       (long long)api_client_int(one, "passed", 0),
			       (long long)(api_client_int(one, "failed", 0) +
					   api_client_int(one, "errors", 0)));
	json_decref(doc);
	return 0;
}

static int batch_do_cancel(struct sheet *s, const char *id)
{
	auto_free char *path = api_client_path("/v1/batch/%s", id);

	s->end = api_client_json(s->r, "DELETE", path, NULL);
	if (!s->end)
		return s->r->status;
	if (s->r->cli->json)
		api_client_print(s->end);
	else
		print_summary(s);
	return 0;
}

static int batch_check(struct api_client *r, const struct args *a)
{
	int others =
		args_has(a, BATCH_RESUME) + args_has(a, BATCH_CANCEL) + args_has(a, BATCH_LIST);

	if (others + (a->nwords > 0) == 1)
		return 0;
	api_client_usage(r, others || a->nwords ? "batch: more than one action given"
						: "batch: missing file");
	cli_error_hint(&r->error, "type", "atoll batch items.jsonl");
	cli_error_hint(
		&r->error, "an item",
		"{\"id\":1,\"language\":\"python\",\"code\":\"print(1)\",\"expected\":\"1\"}");
	return r->status;
}

static int batch_batch(struct api_client *r, const struct args *a)
{
	struct sheet s = { .r = r,
			   .began_ns = now_ns(),
			   .received_ns = now_ns(),
			   .last = (int64_t)args_value(a, BATCH_AFTER, 0),
			   .shows = isatty(2) && !r->cli->quiet && !r->cli->json };
	int status;

	if (batch_check(r, a))
		return r->status;
	if (args_has(a, BATCH_LIST))
		return batch_do_list(r);
	snprintf(s.id, sizeof(s.id), "%s", args_text(a, BATCH_RESUME, ""));
	if (args_has(a, BATCH_CANCEL)) {
		status = batch_do_cancel(&s, args_text(a, BATCH_CANCEL, ""));
	} else {
		status = args_has(a, BATCH_RESUME) ? batch_follow(&s) : send_items(&s, a);
		if (!status && !s.unread)
			status = batch_conclude(&s);
	}
	json_decref(s.end);
	json_decref(s.refused);
	return status;
}

static int run_batch(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, batch_batch);
}

static const struct example examples[] = {
	{ "atoll batch items.jsonl", "run all items; print failed items and a summary" },
	{ "atoll batch --json items.jsonl", "print one line of JSON per result" },
	{ "generate | atoll batch -l python -", "read the items from another program" },
	{ 0 },
};

const struct command command_batch = {
	/* clang-format off */
	.name = "batch",
	.group = "Run",
	.usage = "[FLAGS] FILE | -",
	.summary = "run many small programs, each in a new box, and compare their output",
	.notes = "FILE has one item per line: {\"id\", \"language\" and \"code\" or \"command\",\n"
		 "\"files\", \"args\", \"env\", \"stdin\", \"expected\", \"limits\", \"timeout_ms\"}.\n"
		 "Exits 0 if all items passed, else 1. docs/batch.md describes all fields.",
	.flags = flags,
	.nflags = BATCH_NFLAGS,
	.max_words = 1,
	.examples = examples,
	.run = run_batch,
	/* clang-format on */
};
