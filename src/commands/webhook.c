/* webhook.c - `atoll webhook`: events of the team, sent to a URL. */
#include "base/cleanup.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

enum { WEBHOOK_EVENT, WEBHOOK_SECRET_FLAG, WEBHOOK_NFLAGS };

static const struct flag flags[WEBHOOK_NFLAGS] = {
	[WEBHOOK_EVENT] = { "event", 0, FLAG_WORDS, "TYPE",
			    "new: only this type of events, with * for any text; may be repeated" },
	[WEBHOOK_SECRET_FLAG] = { "secret", 0, FLAG_TEXT, "TEXT",
				  "new: key of the signatures (default: a generated one, printed once)" },
};

static void webhook_row(struct table *t, json_t *v)
{
	const char *error = api_client_text(v, "error");
	json_t *events = json_object_get(v, "events"), *one;
	auto_buf struct buf all = { 0 };
	size_t i;

	json_array_foreach(events, i, one)
		buf_printf(&all, "%s%s", i ? " " : "", json_string_value(one));
	table_cell(t, "%s", api_client_text(v, "id"));
	table_cell(t, "%s", api_client_text(v, "name"));
	table_cell(t, "%s", api_client_text(v, "url"));
	table_cell(t, "%s", buf_str(&all));
	table_cell(t, "%lld", (long long)api_client_int(v, "delivered", 0));
	table_cell(t, "%lld", (long long)api_client_int(v, "waiting", 0));
	table_cell(t, "%lld", (long long)api_client_int(v, "failed", 0));
	table_cell(t, "%s",
		   !json_is_true(json_object_get(v, "enabled")) ? "disabled"
		   : *error                                     ? error
								: "ok");
}

static int webhook_list(struct api_client *r)
{
	static const char *const columns[] = { "WEBHOOK", "NAME",       "URL",
					       "EVENTS",  ">DELIVERED", ">WAITING",
					       ">FAILED", "STATE",      NULL };

	return list_output_show(r, "/v1/webhooks",
				&(struct list_output){ columns, "id", webhook_row });
}

static int webhook_new(struct api_client *r, const struct args *a)
{
	json_t *body = json_pack("{s:s, s:s}", "name", a->words[1], "url", a->words[2]),
	       *events = json_array(), *doc;
	const char *secret = args_text(a, WEBHOOK_SECRET_FLAG, NULL);

	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == WEBHOOK_EVENT)
			json_array_append_new(events, json_string(a->given[i].text));
	if (json_array_size(events))
		json_object_set(body, "events", events);
	json_decref(events);
	if (secret)
		json_object_set_new(body, "secret", json_string(secret));
	doc = api_client_json(r, "POST", "/v1/webhooks", body);
	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
	} else {
		printf("%s\n", api_client_text(doc, "id"));
		if (!secret && !r->cli->quiet)
			fprintf(stderr, "atoll: key of the signatures, shown only now: %s\n",
				api_client_text(doc, "secret"));
	}
	json_decref(doc);
	return 0;
}

static int webhook_drop(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/webhooks/%s", a->words[1]);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	json_decref(doc);
	return doc ? 0 : r->status;
}

static int webhook_test(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/webhooks/%s/test", a->words[1]);
	json_t *doc = api_client_json(r, "POST", path, NULL);
	int delivered = json_is_true(json_object_get(doc, "delivered"));

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else if (*api_client_text(doc, "error"))
		fprintf(stderr, "atoll: not delivered: %s\n", api_client_text(doc, "error"));
	else
		printf("%s, status %lld after %lld ms\n", delivered ? "delivered" : "not delivered",
		       (long long)api_client_int(doc, "status", 0),
		       (long long)api_client_int(doc, "took_ms", 0));
	json_decref(doc);
	return delivered ? 0 : STATUS_FAILED;
}

static void webhook_failed_row(struct table *t, json_t *v)
{
	char text[24];

	table_cell(t, "%lld", (long long)api_client_int(v, "seq", 0));
	table_cell(t, "%s", api_client_text(v, "type"));
	table_cell(t, "%s", api_client_text(v, "box"));
	table_cell(t, "%s", api_client_since(text, v, "queued"));
	table_cell(t, "%lld", (long long)api_client_int(v, "attempts", 0));
	table_cell(t, "%s", api_client_text(v, "error"));
}

static int webhook_failed(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { ">EVENT",    "TYPE",  "BOX", ">AGE",
					       ">ATTEMPTS", "ERROR", NULL };
	auto_free char *path = api_client_path("/v1/webhooks/%s/failed", a->words[1]);

	return list_output_show(r, path,
				&(struct list_output){ columns, "seq", webhook_failed_row });
}

static int webhook_replay(struct api_client *r, const struct args *a)
{
	auto_free char *path = api_client_path("/v1/webhooks/%s/replay", a->words[1]);
	json_t *body = json_object(), *doc;
	char *end = "";

	if (a->nwords == 3) {
		json_object_set_new(body, "seq", json_integer(strtoll(a->words[2], &end, 10)));
		if (*end || !*a->words[2]) {
			json_decref(body);
			api_client_usage(r, "webhook replay: the number of an event is needed");
			cli_error_hint(&r->error, "type", "atoll webhook failed NAME");
			return r->status;
		}
	}
	doc = api_client_json(r, "POST", path, body);
	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		printf("%lld\n", (long long)api_client_int(doc, "replayed", 0));
	json_decref(doc);
	return 0;
}

static int webhook_webhook(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls") && a->nwords < 2)
		return webhook_list(r);
	if (!strcmp(what, "new") && a->nwords == 3)
		return webhook_new(r, a);
	if (!strcmp(what, "rm") && a->nwords == 2)
		return webhook_drop(r, a);
	if (!strcmp(what, "test") && a->nwords == 2)
		return webhook_test(r, a);
	if (!strcmp(what, "failed") && a->nwords == 2)
		return webhook_failed(r, a);
	if (!strcmp(what, "replay") && (a->nwords == 2 || a->nwords == 3))
		return webhook_replay(r, a);
	api_client_usage(r, "webhook: missing or unknown subcommand");
	cli_error_hint(
		&r->error, "type",
		"atoll webhook new NAME URL | ls | test NAME | failed NAME | replay NAME | rm NAME");
	return r->status;
}

static int run_webhook(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, webhook_webhook);
}

static const struct example examples[] = {
	{ "atoll webhook new builds https://ci.example.org/atoll --event 'box.*'",
	  "send all events of boxes; prints the id and the key of the signatures" },
	{ "atoll webhook test builds", "send a test event now" },
	{ "atoll webhook failed builds", "deliveries that failed for a day" },
	{ "atoll webhook replay builds", "deliver them again" },
	{ 0 },
};

const struct command command_webhook = {
	.name = "webhook",
	.group = "Observe",
	.usage =
		"new NAME URL [--event TYPE] [--secret TEXT] | ls | test NAME | failed NAME | replay NAME [EVENT] | rm NAME",
	.summary = "send events of the team to a URL, signed",
	.notes = "A delivery is repeated for a day until the receiver answers 2xx.",
	.words = "new ls test failed replay rm",
	.flags = flags,
	.nflags = WEBHOOK_NFLAGS,
	.max_words = 3,
	.examples = examples,
	.run = run_webhook,
};
