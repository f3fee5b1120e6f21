/* kill.c - `atoll kill`: ends boxes, and returns when they are destroyed; or ends one program in
 * a box. Sends the request to the daemon; for boxes that it does not know, and without a daemon,
 * to the keeper. */
#include "base/cleanup.h"
#include "client/box_handle.h"
#include "base/suggest.h"
#include "cli/api_client.h"
#include "cli/local_run.h"
#include "commands/commands.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KILL_ALL, KILL_SIGNAL, KILL_LOCAL, KILL_NFLAGS };
enum { PAGE = 200 };

static const struct flag flags[KILL_NFLAGS] = {
	[KILL_ALL] = { "all", 'a', FLAG_SWITCH, NULL, "every box of this keeper" },
	[KILL_SIGNAL] = { "signal", 's', FLAG_TEXT, "NAME",
			  "send this signal to EXEC: INT, TERM, 10" },
	[KILL_LOCAL] = { "local", 0, FLAG_SWITCH, NULL, "use the keeper, not the daemon" },
};

static int no_such_box(const struct cli *cli, struct keeper_sync *k, const char *id)
{
	struct wire_box page[PAGE];
	const char *ids[PAGE + 1] = { 0 }, *close;
	char shown[SHOWN];
	struct cli_error t;
	struct err e;
	int n = k->fd < 0 ? 0 : keeper_sync_boxes(k, "", page, PAGE, &e);

	for (int i = 0; i < n; i++)
		ids[i] = page[i].id;
	cli_error_what(&t, "not_found", "no box named '%s'", cli_error_shown(id, shown));
	close = suggest_nearest(id, ids);
	if (close)
		cli_error_hint(&t, "close", "%s", close);
	cli_error_hint(&t, "list", "atoll ps");
	return cli_error_print(&t, cli->json, STATUS_NOT_FOUND);
}

static int kill_one(const struct cli *cli, struct keeper_sync *k, const char *id)
{
	struct err e;

	if (strlen(id) >= WIRE_ID || k->fd < 0)
		return no_such_box(cli, k, id);
	if (boxh_end(k, id, &e) < 0) {
		if (e.kind == ERR_NOT_FOUND)
			return no_such_box(cli, k, id);
		local_run_failed(cli, &e);
		return STATUS_FAILED;
	}
	if (!cli->quiet && !cli->json)
		puts(id);
	return 0;
}

static int kill_all(const struct cli *cli, struct keeper_sync *k)
{
	struct wire_box page[PAGE];
	struct err e;
	int n = 0;

	while (k->fd >= 0 && (n = keeper_sync_boxes(k, "", page, PAGE, &e)) > 0)
		for (int i = 0; i < n; i++)
			if (boxh_end(k, page[i].id, &e) < 0 && e.kind != ERR_NOT_FOUND)
				return local_run_failed(cli, &e), STATUS_FAILED;
	return n < 0 ? (local_run_failed(cli, &e), STATUS_FAILED) : 0;
}

static int kill_local(const struct cli *cli, const struct args *a)
{
	struct keeper_sync k;
	struct err e;
	int status = 0;

	if (keeper_sync_open(&k, 0, &e) < 0 && e.sys != ENOENT && e.sys != ECONNREFUSED)
		return local_run_failed(cli, &e), STATUS_FAILED;
	if (args_has(a, KILL_ALL))
		status = kill_all(cli, &k);
	for (unsigned i = 0; i < a->nwords; i++) {
		int one = kill_one(cli, &k, a->words[i]);

		status = one ? one : status;
	}
	keeper_sync_close(&k);
	return status;
}

/* ---- the daemon's ---- */

static int is_exec(struct api_client *r, const struct args *a)
{
	json_t *doc;

	if (a->nwords != 2)
		return 0;
	doc = api_client_get(r, "/v1/boxes/%s/execs/%s", a->words[0], a->words[1]);
	json_decref(doc);
	return doc != NULL;
}

static json_t *signal_json(const char *text)
{
	char *end;
	long n = strtol(text, &end, 10);

	return json_pack("{s:o}", "signal", *text && !*end ? json_integer(n) : json_string(text));
}

static int kill_exec(struct api_client *r, const struct args *a)
{
	const char *signal = args_text(a, KILL_SIGNAL, NULL);
	auto_free char *path =
		api_client_path(signal ? "/v1/boxes/%s/execs/%s/signal" : "/v1/boxes/%s/execs/%s",
				a->words[0], a->words[1]);
	json_t *doc = signal ? api_client_json(r, "POST", path, signal_json(signal))
			     : api_client_json(r, "DELETE", path, NULL);

	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json && !json_is_null(doc))
		api_client_print(doc);
	else if (!r->cli->quiet && !r->cli->json)
		puts(a->words[1]);
	json_decref(doc);
	return 0;
}

/* 0: no box of the daemon; 1: done, *status has the result. */
static int kill_box(struct api_client *r, const char *box, int *status)
{
	auto_free char *path = api_client_path("/v1/boxes/%s", box);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	if (!doc && r->http == 404)
		return 0;
	if (!doc)
		*status = cli_error_print(&r->error, r->cli->json, r->status);
	else if (!r->cli->quiet && !r->cli->json)
		puts(box);
	json_decref(doc);
	return 1;
}

static int kill_words(struct api_client *r, const struct args *a)
{
	struct keeper_sync k = { .fd = -1 };
	struct err e;
	int status = 0;

	if (args_has(a, KILL_SIGNAL) || is_exec(r, a)) {
		if (a->nwords != 2) {
			api_client_usage(r, "--signal is for one program in one box");
			cli_error_hint(&r->error, "type", "atoll kill -s INT BOX EXEC");
			return r->status;
		}
		return kill_exec(r, a);
	}
	if (r->lost)
		return r->status;
	for (unsigned i = 0; i < a->nwords; i++) {
		int one = 0;

		if (kill_box(r, a->words[i], &one)) {
			status = one ? one : status;
			continue;
		}
		/* Perhaps the private box of an `atoll run`. */
		if (k.fd < 0 && !r->reach.chosen)
			(void)!keeper_sync_open(&k, 0, &e);
		if (k.fd < 0) {
			api_client_explain_box(r, a->words[i]);
			one = cli_error_print(&r->error, r->cli->json, r->status);
		} else {
			one = kill_one(r->cli, &k, a->words[i]);
		}
		status = one ? one : status;
	}
	keeper_sync_close(&k);
	r->error.what[0] = 0; /* all errors were printed */
	return status;
}

static int kill_boxes(const struct cli *cli, const struct args *a)
{
	struct api_client r;
	struct cli_error t;
	int status;

	if (!a->nwords && !args_has(a, KILL_ALL)) {
		cli_error_what(&t, "usage", "kill: missing box");
		cli_error_hint(&t, "list", "atoll ls, atoll ps --local");
		cli_error_hint(&t, "all", "atoll kill --all");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (args_has(a, KILL_ALL) || args_has(a, KILL_LOCAL))
		return kill_local(cli, a);
	status = api_client_open(&r, cli);
	if (!status)
		status = kill_words(&r, a);
	api_client_close(&r);
	if (status && r.never && !r.reach.chosen && !args_has(a, KILL_SIGNAL))
		return kill_local(cli, a);
	return status && r.error.what[0] ? cli_error_print(&r.error, cli->json, status) : status;
}

static const struct example examples[] = {
	{ "atoll kill k3v7qe2xn4ab", "end one box" },
	{ "atoll kill demo 5xq2mbw7trka", "end one program in a box" },
	{ "atoll kill -s INT demo 5xq2mbw7trka", "send a signal to a program" },
	{ "atoll kill --all", "end all boxes of this machine" },
	{ 0 },
};

const struct command command_kill = {
	.name = "kill",
	.group = "Run",
	.usage = "BOX... | BOX EXEC | --all",
	.summary = "end boxes, or one program in a box",
	.flags = flags,
	.nflags = KILL_NFLAGS,
	.max_words = 1000,
	.examples = examples,
	.run = kill_boxes,
};
