/* model.c - `atoll model`: lists language models, and sends a prompt to one of them. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_ROLE, MODEL_NAME, MODEL_LEVEL, MODEL_SYSTEM, MODEL_TOKENS, MODEL_NFLAGS };
enum { QUESTION = 1 << 20 };

static const struct flag flags[MODEL_NFLAGS] = {
	[MODEL_ROLE] = { "role", 0, FLAG_TEXT, "ROLE", "ask: use the model of this role (agent)" },
	[MODEL_NAME] = { "model", 0, FLAG_TEXT, "MODEL", "ask: use this model" },
	[MODEL_LEVEL] = { "level", 0, FLAG_COUNT, "N", "ask: use the Nth model of the role" },
	[MODEL_SYSTEM] = { "system", 0, FLAG_TEXT, "TEXT", "ask: system prompt" },
	[MODEL_TOKENS] = { "max-tokens", 0, FLAG_COUNT, "N", "ask: maximum length of the answer" },
};

static void roles_of(const json_t *doc, const char *model, struct buf *out)
{
	const char *role;
	json_t *levels, *id;
	size_t i;

	json_object_foreach(json_object_get(doc, "roles"), role, levels)
		json_array_foreach(levels, i,
				   id) if (strcmp(json_string_value(id) ?: "", model) == 0)
			buf_printf(out, i ? "%s%s:%zu" : "%s%s", out->len ? " " : "", role, i + 1);
}

static int model_list(struct api_client *r)
{
	static const char *const columns[] = { "MODEL", "NAME", "PROVIDER", "DIALECT",
					       ">IN",   ">OUT", "ROLES",    NULL };
	json_t *doc = api_client_get(r, "/v1/models"), *m;
	struct table t;
	size_t i;

	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
		json_decref(doc);
		return 0;
	}
	table_init(&t, columns);
	json_array_foreach(json_object_get(doc, "items"), i, m)
	{
		const json_t *price = json_object_get(m, "price");
		auto_buf struct buf roles = { 0 };

		roles_of(doc, api_client_text(m, "id"), &roles);
		table_cell(&t, "%s", api_client_text(m, "id"));
		table_cell(&t, "%s", api_client_text(m, "name"));
		table_cell(&t, "%s", api_client_text(m, "provider"));
		table_cell(&t, "%s", api_client_text(m, "dialect"));
		table_cell(&t, "%g", json_number_value(json_object_get(price, "in")));
		table_cell(&t, "%g", json_number_value(json_object_get(price, "out")));
		table_cell(&t, "%s", buf_str(&roles));
	}
	table_print(&t, isatty(1));
	json_decref(doc);
	return 0;
}

/* "-": from the standard input. */
static int read_question(struct api_client *r, const char *word, struct buf *out)
{
	ssize_t n;

	if (strcmp(word, "-") != 0) {
		buf_puts(out, word);
		return 0;
	}
	while (out->len <= QUESTION && (n = read(0, buf_space(out, 65536), 65536)) > 0)
		buf_grew(out, (size_t)n);
	return out->len <= QUESTION ? 0 : api_client_usage(r, "the prompt has more than 1 MiB");
}

static void say_usage(const json_t *doc)
{
	const json_t *u = json_object_get(doc, "usage");

	fprintf(stderr,
		"atoll: %s, %lld ms, %lld tries, tokens %lld in (%lld cached) %lld out, cost %.6f\n",
		api_client_text(doc, "why"), (long long)api_client_int(doc, "ms", 0),
		(long long)api_client_int(doc, "tries", 0),
		(long long)(api_client_int(u, "in", 0) + api_client_int(u, "cache_read", 0) +
			    api_client_int(u, "cache_write", 0)),
		(long long)api_client_int(u, "cache_read", 0),
		(long long)api_client_int(u, "out", 0),
		json_number_value(json_object_get(u, "cost")));
}

static int model_ask(struct api_client *r, const struct args *a)
{
	auto_buf struct buf text = { 0 };
	json_t *doc;

	if (read_question(r, a->words[1], &text) != 0)
		return r->status;
	doc = json_pack("{s:o}", "text", json_stringn(buf_str(&text), text.len));
	if (args_has(a, MODEL_ROLE))
		json_object_set_new(doc, "role", json_string(args_text(a, MODEL_ROLE, "")));
	if (args_has(a, MODEL_NAME))
		json_object_set_new(doc, "model", json_string(args_text(a, MODEL_NAME, "")));
	if (args_has(a, MODEL_LEVEL))
		json_object_set_new(doc, "level",
				    json_integer((json_int_t)args_value(a, MODEL_LEVEL, 1) - 1));
	if (args_has(a, MODEL_SYSTEM))
		json_object_set_new(doc, "system",
				    json_pack("[s]", args_text(a, MODEL_SYSTEM, "")));
	if (args_has(a, MODEL_TOKENS))
		json_object_set_new(doc, "max_tokens",
				    json_integer((json_int_t)args_value(a, MODEL_TOKENS, 0)));
	doc = api_client_json(r, "POST", "/v1/models/ask", doc);
	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
	} else {
		puts(api_client_text(doc, "text"));
		if (!r->cli->quiet)
			say_usage(doc);
	}
	json_decref(doc);
	return 0;
}

static int model_command(struct api_client *r, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";

	if (!strcmp(what, "ls") && a->nwords < 2)
		return model_list(r);
	if (!strcmp(what, "ask") && a->nwords == 2)
		return model_ask(r, a);
	api_client_usage(r, "model: missing or unknown subcommand");
	cli_error_hint(&r->error, "type", "atoll model ls | ask TEXT");
	return r->status;
}

static int run_model(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, model_command);
}

static const struct example examples[] = {
	{ "atoll model ls", "list models, prices and roles" },
	{ "atoll model ask \"What is 6 times 7?\" --role planner", "send one prompt" },
	{ "git diff | atoll model ask - --system \"Review this.\"", "read the prompt from stdin" },
	{ 0 },
};

const struct command command_model = {
	.name = "model",
	.group = "Machine",
	.usage = "ls | ask TEXT",
	.summary = "list language models, or send a prompt to one",
	.notes =
		"The models file of the daemon (serve.models) lists the models. Their API keys never leave the llm process.",
	.words = "ls ask",
	.flags = flags,
	.nflags = MODEL_NFLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_model,
};
