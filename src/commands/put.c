/* put.c - `atoll put`: writes stdin into a file of a box, completely or not at all. */
#include "base/cleanup.h"
#include "cli/box_path.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PUT_MODE, PUT_NEW, PUT_NFLAGS };

static const struct flag flags[PUT_NFLAGS] = {
	[PUT_MODE] = { "mode", 0, FLAG_TEXT, "OCTAL", "mode of the file (unchanged, or 0644)" },
	[PUT_NEW] = { "new", 0, FLAG_SWITCH, NULL, "fail if the file exists" },
};

static int put_put(struct api_client *r, const struct args *a)
{
	struct api_client_bytes x = {
		.method = "PUT", .type = "application/octet-stream", .from = 0, .to = -1
	};
	auto_buf struct buf path = { 0 };
	auto_free char *begin = NULL;
	struct box_path at;

	if (box_path_words(r, a, &at))
		return r->status;
	if (isatty(0) && !r->cli->quiet)
		fputs("atoll: reading from the terminal; Ctrl-D ends it\n", stderr);
	begin = api_client_path("/v1/boxes/%s/files?path=%s", at.box, at.path);
	buf_puts(&path, begin);
	if (args_has(a, PUT_MODE)) {
		buf_puts(&path, "&mode=");
		api_client_escape(&path, args_text(a, PUT_MODE, ""));
	}
	if (args_has(a, PUT_NEW))
		buf_puts(&path, "&new=true");
	x.path = buf_str(&path);
	if (api_client_bytes(r, &x)) {
		api_client_explain_box(r, at.box);
		return r->status;
	}
	if (r->cli->json && x.answer)
		api_client_print(x.answer);
	json_decref(x.answer);
	return 0;
}

static int run_put(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, put_put);
}

static const struct example examples[] = {
	{ "echo hello | atoll put demo:notes.txt", "the file appears completely or not at all" },
	{ "atoll put demo:bin/tool --mode 755 <tool", "write an executable file" },
	{ 0 },
};

const struct command command_put = {
	.name = "put",
	.group = "Files",
	.usage = "[FLAGS] BOX:PATH | BOX PATH",
	.summary = "write stdin to a file of a box",
	.flags = flags,
	.nflags = PUT_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_put,
};
