/* show.c - `atoll show`: prints all properties of a box. */
#include "base/units.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>

static void show_row(const char *name, const char *value)
{
	char clean[400];
	size_t n = 0;

	for (; *value && n + 1 < sizeof(clean); value++)
		clean[n++] = (unsigned char)*value < 32 || *value == 127 ? '?' : *value;
	clean[n] = 0;
	if (n)
		printf("%-12s %s\n", name, clean);
}

static void size_row(const char *name, const json_t *limits, const char *key)
{
	char text[UNITS_TEXT];

	if (api_client_int(limits, key, 0))
		show_row(name, units_size(text, (uint64_t)api_client_int(limits, key, 0)));
}

static void number_row(const char *name, const json_t *doc, const char *key, double by)
{
	char text[32];

	if (!json_is_number(json_object_get(doc, key)))
		return;
	snprintf(text, sizeof(text), "%g", json_number_value(json_object_get(doc, key)) / by);
	show_row(name, text);
}

static void pair_rows(const char *name, const json_t *map)
{
	char text[400];
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)map, key, v)
	{
		snprintf(text, sizeof(text), "%s=%s", key, json_string_value(v));
		show_row(name, text);
	}
}

static void limit_rows(const json_t *limits)
{
	size_row("memory", limits, "mem");
	number_row("cpus", limits, "cpu_milli", 1000);
	size_row("disk", limits, "disk");
	number_row("files", limits, "files", 1);
	number_row("processes", limits, "pids", 1);
	number_row("cpu seconds", limits, "cpu_ms", 1000);
}

static void print_box(const json_t *box)
{
	char text[24];

	show_row("id", api_client_text(box, "id"));
	show_row("name", api_client_text(box, "name"));
	show_row("session", api_client_text(box, "session"));
	show_row("state", api_client_state(box));
	show_row("cause", api_client_text(box, "cause"));
	show_row("template", api_client_text(box, "template"));
	number_row("programs", box, "running", 1);
	show_row("age", api_client_since(text, box, "created"));
	if (json_is_string(json_object_get(box, "ends")) && !json_object_get(box, "ended"))
		show_row("ends in", api_client_until(text, box, "ends"));
	if (json_is_string(json_object_get(box, "kept_until")))
		show_row("kept for", api_client_until(text, box, "kept_until"));
	show_row("on timeout", api_client_text(box, "on_timeout"));
	if (*api_client_text(box, "on_loss") &&
	    strcmp(api_client_text(box, "on_loss"), "keep") != 0)
		show_row("on loss", api_client_text(box, "on_loss"));
	limit_rows(json_object_get(box, "limits"));
	pair_rows("metadata", json_object_get(box, "metadata"));
	pair_rows("env", json_object_get(box, "env"));
}

static int show_show(struct api_client *r, const struct args *a)
{
	json_t *box;

	if (!a->nwords) {
		api_client_usage(r, "show: missing box");
		cli_error_hint(&r->error, "list", "atoll ls");
		return r->status;
	}
	box = api_client_get(r, "/v1/boxes/%s", a->words[0]);
	if (!box) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(box);
	else if (r->cli->quiet)
		puts(api_client_text(box, "id"));
	else
		print_box(box);
	json_decref(box);
	return 0;
}

static int run_show(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, show_show);
}

static const struct example examples[] = {
	{ "atoll show demo", "print state, limits and remaining time" },
	{ "atoll show demo --json", "print the same as JSON" },
	{ 0 },
};

const struct command command_show = {
	.name = "show",
	.group = "Boxes",
	.usage = "BOX",
	.summary = "print all properties of a box",
	.max_words = 1,
	.examples = examples,
	.run = run_show,
};
