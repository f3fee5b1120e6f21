/* wait.c - `atoll wait`: waits until a program has ended. */
#include "cli/exec_follow.h"
#include "cli/attach_io.h"
#include "commands/commands.h"
#include "base/clock.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { WAIT_TIME, WAIT_NFLAGS };
enum { PIECE_MS = 60000, AGAIN_MS = 100, GIVE_UP_MS = 60000 };

static const struct flag flags[WAIT_NFLAGS] = {
	[WAIT_TIME] = { "time", 0, FLAG_TIME, "TIME", "maximum time to wait; then exit with 124" },
};

static uint64_t ms_since(uint64_t then_ns)
{
	return (now_ns() - then_ns) / 1000000;
}

static int wait_late(struct api_client *r, const char *exec)
{
	cli_error_what(&r->error, "timeout", "%s is still running", exec);
	return r->status = 124;
}

static int wait_for(struct api_client *r, const char *box, const char *exec, uint64_t limit_ms)
{
	uint64_t began = now_ns(), received = began;

	for (;;) {
		uint64_t left = limit_ms ? limit_ms - ms_since(began) : PIECE_MS;
		json_t *doc;
		int status;

		if (limit_ms && ms_since(began) >= limit_ms)
			return wait_late(r, exec);
		doc = api_client_get(r, "/v1/boxes/%s/execs/%s/wait?timeout_ms=%u", box, exec,
				     left < PIECE_MS ? left : PIECE_MS);
		if (!doc && r->lost && !r->never && ms_since(received) < GIVE_UP_MS) {
			poll(NULL, 0, AGAIN_MS);
			continue;
		}
		if (!doc)
			return r->status;
		received = now_ns();
		if (strcmp(api_client_state(doc), "exited") != 0) {
			json_decref(doc);
			continue;
		}
		if (r->cli->json)
			api_client_print(doc);
		status = exec_follow_report(r->cli, doc);
		json_decref(doc);
		return status;
	}
}

static int wait_exec(struct api_client *r, const struct args *a)
{
	char exec[64] = "";
	int status;

	r->runs = 1;
	if (!a->nwords) {
		api_client_usage(r, "wait: missing box");
		cli_error_hint(&r->error, "type", "atoll wait BOX [EXEC]");
		return r->status;
	}
	if (a->nwords > 1)
		snprintf(exec, sizeof(exec), "%s", a->words[1]);
	else if (attach_newest(r, a->words[0], 0, exec))
		return r->status;
	if (!*exec) {
		cli_error_what(&r->error, "not_found", "no program was started in %s", a->words[0]);
		return r->status = STATUS_OURS;
	}
	status = wait_for(r, a->words[0], exec, args_value(a, WAIT_TIME, 0));
	if (r->http == 404)
		api_client_explain_box(r, a->words[0]);
	return status;
}

static int exec_wait(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, wait_exec);
}

static const struct example examples[] = {
	{ "atoll wait demo k3v7qe2xn4ab; echo $?", "wait, then print the exit status" },
	{ 0 },
};

const struct command command_wait = {
	.name = "wait",
	.group = "Run",
	.usage = "BOX [EXEC]",
	.summary = "wait until a program has exited; exit with its status",
	.flags = flags,
	.nflags = WAIT_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = exec_wait,
};
