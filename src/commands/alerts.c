/* alerts.c - `atoll alerts`: what is wrong with the daemon, by which rules, and a test of the notices. */
#include "base/cleanup.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

static void alerts_row(struct table *t, json_t *v)
{
	char text[24];

	table_cell(t, "%lld", (long long)api_client_int(v, "id", 0));
	table_cell(t, "%s", api_client_text(v, "rule"));
	table_cell(t, "%s", api_client_text(v, "state"));
	table_cell(t, "%s", api_client_since(text, v, "pending"));
	table_cell(t, "%g", json_number_value(json_object_get(v, "value")));
	table_cell(t, "%s", api_client_text(v, "summary"));
}

static int alerts_list(struct api_client *r)
{
	static const char *const columns[] = { ">ALERT", "RULE",    "STATE", ">SINCE",
					       ">VALUE", "SUMMARY", NULL };

	return list_output_show(r, "/v1/alerts",
				&(struct list_output){ columns, "id", alerts_row });
}

static void alerts_rule_row(struct table *t, json_t *v)
{
	const char *per = api_client_text(v, "per");
	const json_t *value = json_object_get(v, "value");

	table_cell(t, "%s", api_client_text(v, "name"));
	table_cell(t, "%s", json_is_true(json_object_get(v, "enabled")) ? "on" : "off");
	table_cell(t, "%s of %s%s%s", api_client_text(v, "aggregate"), api_client_text(v, "figure"),
		   *per ? " / " : "", per);
	table_cell(t, "%s %g", api_client_text(v, "when"),
		   json_number_value(json_object_get(v, "threshold")));
	if (json_is_number(value))
		table_cell(t, "%g", json_number_value(value));
	else
		table_cell(t, "-");
	table_cell(t, "%s", api_client_text(v, "summary"));
}

static int alerts_rules(struct api_client *r)
{
	static const char *const columns[] = { "RULE",   "STATE",   "FIGURE", "WHEN",
					       ">VALUE", "SUMMARY", NULL };

	return list_output_show(r, "/v1/alerts/rules",
				&(struct list_output){ columns, "name", alerts_rule_row });
}

static int alerts_test(struct api_client *r)
{
	json_t *doc = api_client_json(r, "POST", "/v1/alerts/test", NULL), *one;
	size_t i;

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		json_array_foreach(json_object_get(doc, "channels"), i, one)
			printf("%s\n", json_string_value(one));
	json_decref(doc);
	return 0;
}

static int alerts_alerts(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls"))
		return alerts_list(r);
	if (!strcmp(what, "rules"))
		return alerts_rules(r);
	if (!strcmp(what, "test"))
		return alerts_test(r);
	api_client_usage(r, "alerts: unknown subcommand");
	cli_error_hint(&r->error, "type", "atoll alerts ls | rules | test");
	return r->status;
}

static int run_alerts(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, alerts_alerts);
}

static const struct example examples[] = {
	{ "atoll alerts", "list alerts, newest first" },
	{ "atoll alerts rules", "rules with their thresholds and values" },
	{ "atoll alerts test", "send a test to all channels of the settings" },
	{ 0 },
};

const struct command command_alerts = {
	.name = "alerts",
	.group = "Observe",
	.usage = "[ls | rules | test]",
	.summary = "show what is wrong with the daemon, and by which rules",
	.words = "ls rules test",
	.max_words = 1,
	.examples = examples,
	.run = run_alerts,
};
