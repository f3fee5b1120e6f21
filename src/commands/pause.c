/* pause.c - `atoll pause` and `atoll resume`: freezes all processes of boxes, and thaws them. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>

enum { PAUSE_FILES, PAUSE_DISK, PAUSE_PORTABLE, PAUSE_NFLAGS };

static const struct flag flags[PAUSE_NFLAGS] = {
	[PAUSE_FILES] = { "files-only", 0, FLAG_SWITCH, NULL,
			  "end the programs and keep only the files" },
	[PAUSE_DISK] = { "disk", 0, FLAG_SWITCH, NULL,
			 "write the programs to the disk: they use no memory, and survive a restart of the daemon and of the machine" },
	[PAUSE_PORTABLE] = { "portable", 0, FLAG_SWITCH, NULL,
			     "with --disk: with the mapped files of the host, for a host with others" },
};

static int pause_ask(struct api_client *r, const char *name, const char *what, json_t *take_body)
{
	auto_free char *path = api_client_path("/v1/boxes/%s/%s", name, what);
	json_t *box = api_client_json(r, "POST", path, take_body);

	if (!box) {
		api_client_explain_box(r, name);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(box);
	json_decref(box);
	return 0;
}

static json_t *pause_body(const struct args *a)
{
	return args_has(a, PAUSE_DISK) ? json_pack("{s:s, s:b, s:b}", "to", "disk", "memory",
						   !args_has(a, PAUSE_FILES), "portable",
						   args_has(a, PAUSE_PORTABLE))
				       : json_pack("{s:b}", "memory", !args_has(a, PAUSE_FILES));
}

static int pause_each(struct api_client *r, const struct args *a)
{
	if (!a->nwords)
		return api_client_usage(r, "pause: missing box");
	for (unsigned i = 0; i < a->nwords; i++)
		if (pause_ask(r, a->words[i], "pause", pause_body(a)))
			return r->status;
	return 0;
}

static int resume_each(struct api_client *r, const struct args *a)
{
	if (!a->nwords)
		return api_client_usage(r, "resume: missing box");
	for (unsigned i = 0; i < a->nwords; i++)
		if (pause_ask(r, a->words[i], "resume", NULL))
			return r->status;
	return 0;
}

static int run_pause(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, pause_each);
}

static int run_resume(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, resume_each);
}

static const struct example pause_examples[] = {
	{ "atoll pause demo", "freeze the box; it uses no CPU time" },
	{ "atoll pause demo --disk", "write its programs to the disk; they use no memory" },
	{ "atoll pause demo --files-only", "end the programs and keep only the files" },
	{ 0 },
};

const struct command command_pause = {
	.name = "pause",
	.group = "Boxes",
	.usage = "BOX...",
	.summary = "freeze all processes of a box",
	.notes =
		"Memory, programs and files stay as they are. The lifetime of a paused box does not elapse.",
	.flags = flags,
	.nflags = PAUSE_NFLAGS,
	.max_words = 100,
	.examples = pause_examples,
	.run = run_pause,
};

static const struct example resume_examples[] = {
	{ "atoll resume demo", "continue all processes of demo" },
	{ 0 },
};

const struct command command_resume = {
	.name = "resume",
	.group = "Boxes",
	.usage = "BOX...",
	.summary = "resume a paused box",
	.max_words = 100,
	.examples = resume_examples,
	.run = run_resume,
};
