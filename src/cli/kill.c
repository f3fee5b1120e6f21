/* kill.c - `atoll kill`: ends boxes, and returns when nothing of them is left. */
#include "base/own.h"
#include "box/box.h"
#include "cli/nearest.h"
#include "cli/session.h"
#include "cli/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KILL_ALL, KILL_NFLAGS };
enum { PAGE = 200 };

static const struct flag flags[KILL_NFLAGS] = {
	[KILL_ALL] = { "all", 'a', FLAG_SWITCH, NULL, "every box of this keeper" },
};

static int no_such_box(const struct cli *cli, struct keeper_link *k, const char *id)
{
	struct wire_box page[PAGE];
	const char *ids[PAGE + 1] = { 0 }, *close;
	char shown[SHOWN];
	struct trouble t;
	struct err e;
	int n = k->fd < 0 ? 0 : keeper_boxes(k, "", page, PAGE, &e);

	for (int i = 0; i < n; i++)
		ids[i] = page[i].id;
	trouble_what(&t, "not_found", "no box named '%s'", trouble_shown(id, shown));
	close = nearest_of(id, ids);
	if (close)
		trouble_hint(&t, "close", "%s", close);
	trouble_hint(&t, "list", "atoll ps");
	return trouble_say(&t, cli->json, STATUS_NOT_FOUND);
}

static int kill_one(const struct cli *cli, struct keeper_link *k, const char *id)
{
	struct err e;

	if (strlen(id) >= WIRE_ID || k->fd < 0)
		return no_such_box(cli, k, id);
	if (box_end(k, id, &e) < 0) {
		if (e.kind == ERR_NOT_FOUND)
			return no_such_box(cli, k, id);
		session_failed(cli, &e);
		return STATUS_FAILED;
	}
	if (!cli->quiet && !cli->json)
		puts(id);
	return 0;
}

static int kill_all(const struct cli *cli, struct keeper_link *k)
{
	struct wire_box page[PAGE];
	struct err e;
	int n = 0;

	while (k->fd >= 0 && (n = keeper_boxes(k, "", page, PAGE, &e)) > 0)
		for (int i = 0; i < n; i++)
			if (box_end(k, page[i].id, &e) < 0 && e.kind != ERR_NOT_FOUND)
				return session_failed(cli, &e), STATUS_FAILED;
	return n < 0 ? (session_failed(cli, &e), STATUS_FAILED) : 0;
}

static int kill_boxes(const struct cli *cli, const struct args *a)
{
	struct keeper_link k;
	struct trouble t;
	struct err e;
	int status = 0;

	if (!a->nwords && !args_has(a, KILL_ALL)) {
		trouble_what(&t, "usage", "kill which box?");
		trouble_hint(&t, "list", "atoll ps");
		trouble_hint(&t, "all", "atoll kill --all");
		return trouble_say(&t, cli->json, STATUS_USAGE);
	}
	if (keeper_open(&k, 0, &e) < 0 && e.sys != ENOENT && e.sys != ECONNREFUSED)
		return session_failed(cli, &e), STATUS_FAILED;
	if (args_has(a, KILL_ALL))
		status = kill_all(cli, &k);
	for (unsigned i = 0; i < a->nwords; i++) {
		int one = kill_one(cli, &k, a->words[i]);

		status = one ? one : status;
	}
	keeper_close(&k);
	return status;
}

static const struct example examples[] = {
	{ "atoll kill k3v7qe2xn4ab", "end one box" },
	{ "atoll kill --all", "end all of them" },
	{ 0 },
};

const struct verb verb_kill = {
	.name = "kill",
	.group = "Run",
	.usage = "BOX... | --all",
	.summary = "end boxes and all that is in them",
	.flags = flags,
	.nflags = KILL_NFLAGS,
	.max_words = 1000,
	.examples = examples,
	.run = kill_boxes,
};
