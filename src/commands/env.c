/* env.c - `atoll env`: the variables that every program of a box gets. */
#include "base/cleanup.h"
#include "cli/api_client.h"
#include "commands/commands.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { ENV_UNSET, ENV_NFLAGS };
enum { TRIES = 5 }; /* another client may change them at the same time */

static const struct flag flags[ENV_NFLAGS] = {
	[ENV_UNSET] = { "unset", 'u', FLAG_WORDS, "NAME", "remove this variable; may be repeated" },
};

/* NAME=VALUE with a name that a shell could use. The name is written to out. */
static int env_name(const char *text, char out[256])
{
	size_t n = 0;

	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	if (n == 0 || n >= 256 || isdigit((unsigned char)text[0]) || text[n] != '=')
		return -1;
	memcpy(out, text, n);
	out[n] = 0;
	return 0;
}

static int env_check(struct api_client *r, const struct args *a)
{
	char name[256], shown[SHOWN];

	for (unsigned i = 1; i < a->nwords; i++)
		if (env_name(a->words[i], name) < 0) {
			api_client_usage(
				r, "'%s' is not NAME=VALUE with a name of letters, digits and _",
				cli_error_shown(a->words[i], shown));
			cli_error_hint(&r->error, "remove one", "atoll env BOX --unset NAME");
			return r->status;
		}
	return 0;
}

static void env_change(json_t *env, const struct args *a)
{
	char name[256];

	for (unsigned i = 0; i < a->ngiven; i++)
		if (a->given[i].flag == ENV_UNSET)
			json_object_del(env, a->given[i].text);
	for (unsigned i = 1; i < a->nwords; i++)
		if (env_name(a->words[i], name) == 0)
			json_object_set_new(env, name, json_string(strchr(a->words[i], '=') + 1));
}

/* A value may have any byte; a line of output has no control characters in it. */
static void env_print(const json_t *env)
{
	const char *name;
	json_t *v;

	json_object_foreach((json_t *)env, name, v)
	{
		printf("%s=", name);
		for (const char *c = json_string_value(v); c && *c; c++)
			putchar((unsigned char)*c < 32 || *c == 127 ? '?' : *c);
		putchar('\n');
	}
}

static int env_of_box(struct api_client *r, const struct args *a)
{
	int changes = a->nwords > 1 || args_has(a, ENV_UNSET);
	auto_free char *path = NULL;
	json_t *doc = NULL;

	if (!a->nwords) {
		api_client_usage(r, "env: missing box");
		cli_error_hint(&r->error, "type", "atoll env BOX [NAME=VALUE...]");
		return r->status;
	}
	if (env_check(r, a))
		return r->status;
	path = api_client_path("/v1/boxes/%s/env", a->words[0]);
	for (int tries = 0; !doc && tries < TRIES; tries++) {
		doc = api_client_json(r, "GET", path, NULL);
		if (!doc || !changes)
			break;
		env_change(json_object_get(doc, "env"), a);
		r->match = r->etag;
		doc = api_client_json(r, "PUT", path, doc);
		if (!doc && r->http != 412)
			break;
	}
	if (!doc) {
		api_client_explain_box(r, a->words[0]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(json_object_get(doc, "env"));
	else if (!changes)
		env_print(json_object_get(doc, "env"));
	json_decref(doc);
	return 0;
}

static int run_env(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, env_of_box);
}

static const struct example examples[] = {
	{ "atoll env demo", "print the variables" },
	{ "atoll env demo API_URL=http://127.0.0.1:8000 DEBUG=1",
	  "set two variables, keep the others" },
	{ "atoll env demo --unset DEBUG", "remove one variable" },
	{ 0 },
};

const struct command command_env = {
	.name = "env",
	.group = "Boxes",
	.usage = "BOX [NAME=VALUE...]",
	.summary = "print or set the environment variables of a box",
	.notes = "New programs get the changed variables; running programs keep theirs.",
	.flags = flags,
	.nflags = ENV_NFLAGS,
	.max_words = 1000,
	.examples = examples,
	.run = run_env,
};
