/* attach.c - `atoll attach`: reconnects to a running program, at the exact byte of its output. */
#include "cli/exec_follow.h"
#include "cli/attach_io.h"
#include "cli/options.h"
#include "commands/commands.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ATTACH_FROM, ATTACH_NO_TTY, ATTACH_INTERACTIVE, ATTACH_NFLAGS };

static const struct flag flags[ATTACH_NFLAGS] = {
	[ATTACH_FROM] = { "from", 0, FLAG_TEXT, "N[,M]",
			  "start at this byte of stdout, and of stderr (all stored output)" },
	[ATTACH_NO_TTY] = OPTION_NO_TTY,
	[ATTACH_INTERACTIVE] = OPTION_INTERACTIVE,
};

static int read_from(struct api_client *r, const char *text, uint64_t out[2])
{
	char *end = (char *)text, shown[SHOWN];

	for (int i = 0; i < 2 && *end; i++) {
		if (!isdigit((unsigned char)*end))
			break;
		errno = 0;
		out[i] = strtoull(end, &end, 10);
		if (errno || out[i] > INT64_MAX)
			break;
		if (!*end)
			return 0;
		if (*end == ',')
			end++;
	}
	return api_client_usage(r, "--from: '%s' is not a byte offset, or two of them",
				cli_error_shown(text, shown));
}

static int attach_attach(struct api_client *r, const struct args *a)
{
	uint64_t from[2] = { 0, 0 };
	const char *at = args_text(a, ATTACH_FROM, NULL);
	char exec[64] = "";
	json_t *about;
	int terminal;

	r->runs = 1;
	if (!a->nwords) {
		api_client_usage(r, "attach: missing box");
		cli_error_hint(&r->error, "type", "atoll attach BOX [EXEC]");
		return r->status;
	}
	if (at && read_from(r, at, from))
		return r->status;
	if (a->nwords > 1)
		snprintf(exec, sizeof(exec), "%s", a->words[1]);
	else if (attach_newest(r, a->words[0], 1, exec))
		return r->status;
	if (!*exec) {
		cli_error_what(&r->error, "not_found", "no program runs in %s", a->words[0]);
		cli_error_hint(&r->error, "list", "atoll ps %s", a->words[0]);
		return r->status = STATUS_OURS;
	}
	about = api_client_get(r, "/v1/boxes/%s/execs/%s", a->words[0], exec);
	if (!about) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	terminal = json_is_true(json_object_get(about, "pty")) && exec_follow_has_terminal() &&
		   !args_has(a, ATTACH_NO_TTY) && !r->cli->json;
	json_decref(about);
	/* Its terminal may have another size than this one. */
	if (terminal) {
		char *path = api_client_path("/v1/boxes/%s/execs/%s/resize", a->words[0], exec);

		json_decref(api_client_json(r, "POST", path, exec_follow_size()));
		free(path);
	}
	return attach_join(r, a->words[0], exec, from, terminal,
			   terminal || args_has(a, ATTACH_INTERACTIVE));
}

static int run_attach(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, attach_attach);
}

static const struct example examples[] = {
	{ "atoll attach demo", "attach to the newest running program in demo" },
	{ "atoll attach demo k3v7qe2xn4ab --from 4096", "continue after byte 4096 of the output" },
	{ 0 },
};

const struct command command_attach = {
	.name = "attach",
	.group = "Run",
	.usage = "[FLAGS] BOX [EXEC]",
	.summary = "attach to a running program",
	.notes =
		"Without EXEC, attaches to the newest running program. Prints the stored output first, or the output\n"
		"after the byte given with --from. ~. at the start of a line detaches.",
	.flags = flags,
	.nflags = ATTACH_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_attach,
};
