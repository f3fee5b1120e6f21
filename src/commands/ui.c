/* ui.c - `atoll ui`: a link that opens the web UI signed in. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { UI_ROLE, UI_NFLAGS };

static const struct flag flags[UI_NFLAGS] = {
	[UI_ROLE] = { "role", 0, FLAG_TEXT, "ROLE", "viewer, editor or owner (owner)" },
};

/* A daemon that was named by URL is opened at that URL: a daemon that is reached through a proxy
 * does not know its own address. */
static void ui_print(const struct api_client *r, const json_t *link)
{
	int by_url = !strncmp(r->reach.where, "http", 4);
	size_t n = strlen(r->reach.where);

	while (by_url && n && r->reach.where[n - 1] == '/')
		n--;
	if (by_url)
		printf("%.*s/#k=%s\n", (int)n, r->reach.where, api_client_text(link, "token"));
	else
		printf("%s\n", api_client_text(link, "url"));
	if (!r->cli->quiet)
		fputs("atoll: open this link in a browser; it works once, for five minutes\n",
		      stderr);
}

static int ui_make_link(struct api_client *r, const struct args *a)
{
	json_t *want = json_pack("{s:o}", "role", json_string(args_text(a, UI_ROLE, "owner")));
	json_t *link = api_client_json(r, "POST", "/v1/ui/links", want);
	int reachable = link && (json_is_string(json_object_get(link, "url")) ||
				 !strncmp(r->reach.where, "http", 4));

	if (link && r->cli->json) {
		api_client_print(link);
	} else if (reachable) {
		ui_print(r, link);
	} else if (link) {
		cli_error_what(
			&r->error, "not_found",
			"this daemon listens only on a unix socket, which browsers cannot use");
		cli_error_hint(&r->error, "serve", "atoll serve --listen 127.0.0.1:7070");
		r->status = STATUS_FAILED;
	}
	json_decref(link);
	return r->status;
}

static int run_ui(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, ui_make_link);
}

static const struct example examples[] = {
	{ "atoll ui", "print a link that opens the web UI signed in" },
	{ "atoll ui --role viewer", "print a link with read-only access" },
	{ 0 },
};

const struct command command_ui = {
	/* clang-format off */
	.name = "ui",
	.group = "Machine",
	.usage = "[--role ROLE]",
	.summary = "print a link that opens the web UI signed in",
	.notes = "The link works once, for five minutes. Its secret follows '#', which browsers do not send, so it is in\n"
		 "no log. The page exchanges it for its own key, which expires after a day. Without -H, this command\n"
		 "needs root or the daemon's own user; with -H, it needs an owner's key.",
	.flags = flags,
	.nflags = UI_NFLAGS,
	.max_words = 0,
	.examples = examples,
	.run = run_ui,
	/* clang-format on */
};
