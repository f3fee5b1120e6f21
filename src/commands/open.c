/* open.c - `atoll open`: opens a server of a box in a browser. */
#include "base/cleanup.h"
#include "commands/commands.h"
#include "commands/port.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPEN_PUBLIC, OPEN_WAIT, OPEN_PRINT, OPEN_NFLAGS };
enum { OPEN_WAIT_MS = 10000 };

static const struct flag flags[OPEN_NFLAGS] = {
	[OPEN_PUBLIC] = { "public", 0, FLAG_SWITCH, NULL,
			  "allow every client that knows the address" },
	[OPEN_WAIT] = { "wait", 0, FLAG_TIME, "TIME",
			"maximum time until a program listens (10s)" },
	[OPEN_PRINT] = { "print", 0, FLAG_SWITCH, NULL, "print the link, start no browser" },
};

extern char **environ;

/* A desktop has a display and a program for links. The browser must not write into this terminal
 * and must not end with it. */
static void open_browser(const char *link)
{
	char *const argv[] = { "xdg-open", (char *)link, NULL };
	posix_spawn_file_actions_t fds;
	posix_spawnattr_t how;
	pid_t pid;

	if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
		return;
	posix_spawn_file_actions_init(&fds);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&fds, fd, "/dev/null", O_RDWR, 0);
	posix_spawnattr_init(&how);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID);
	(void)!posix_spawnp(&pid, argv[0], &fds, &how, argv, environ); /* the link was printed */
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&fds);
}

static int open_port(struct api_client *r, const struct args *a)
{
	const char *box = a->words[0];
	auto_free char *path = NULL;
	uint32_t port;
	json_t *doc;

	if (a->nwords != 2) {
		api_client_usage(r, "open: missing box or port");
		cli_error_hint(&r->error, "type", "atoll open BOX PORT");
		return r->status;
	}
	if (port_parse(r, a->words[1], &port))
		return r->status;
	path = api_client_path("/v1/boxes/%s/ports/%u", box, (uint64_t)port);
	doc = api_client_json(r, "PUT", path,
			      args_has(a, OPEN_PUBLIC) ? json_pack("{s:b}", "public", 1) : NULL);
	if (doc && !json_is_true(json_object_get(doc, "listening"))) {
		json_decref(doc);
		doc = api_client_get(r, "/v1/boxes/%s/ports/%u?wait=%ums", box, (uint64_t)port,
				     args_value(a, OPEN_WAIT, OPEN_WAIT_MS));
	}
	if (!doc) {
		api_client_explain_box(r, box);
		return r->status;
	}
	port_report(r->cli, doc, box);
	if (*api_client_text(doc, "link") && !args_has(a, OPEN_PRINT) && !r->cli->json && isatty(1))
		open_browser(api_client_text(doc, "link"));
	json_decref(doc);
	return 0;
}

static int run_open(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, open_port);
}

static const struct example examples[] = {
	{ "atoll open demo 3000",
	  "wait until a server listens, print the link of its preview, open a browser" },
	{ 0 },
};

const struct command command_open = {
	.name = "open",
	.group = "Boxes",
	.usage = "[--public] [--wait TIME] [--print] BOX PORT",
	.summary = "open a server of a box in a browser",
	.notes =
		"Opens the port as a private preview (see `atoll port`), waits until a program listens on it, and\n"
		"prints the link. On a desktop, with a terminal as stdout, the link is also opened by xdg-open.",
	.flags = flags,
	.nflags = OPEN_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_open,
};
