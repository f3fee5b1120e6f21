/* config_cmd.c - `atoll config`: the values of the settings, and where each was set. */
#include "base/buf.h"
#include "base/cleanup.h"
#include "daemon/config.h"
#include "daemon/commands.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

enum { SETTINGS_ORIGIN, SETTINGS_FILE, SETTINGS_NFLAGS };

static const struct flag flags[SETTINGS_NFLAGS] = {
	[SETTINGS_ORIGIN] = { "origin", 0, FLAG_SWITCH, NULL,
			      "also print the source of each value" },
	[SETTINGS_FILE] = { "config", 0, FLAG_TEXT, "FILE", "read only this file" },
};

static int bad_settings(const struct cli *cli, const struct err *e)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "%s", e->msg);
	cli_error_hint(&t, "meaning", "man atoll, under SETTINGS");
	return cli_error_print(&t, cli->json, STATUS_FAILED);
}

/* ---- show ---- */

static json_t *number_or_none(uint64_t n)
{
	return n ? json_integer((json_int_t)n) : json_null();
}

/* Sizes and times stay as written: a bare number would have no unit. */
static json_t *as_json(const struct config *c, enum config_key key)
{
	char shown[CONFIG_SHOWN];
	json_t *list;

	switch (config_rows[key].type) {
	case CONFIG_BOOL:
		return json_boolean(config_bool(c, key));
	case CONFIG_COUNT:
		return number_or_none(config_number(c, key));
	case CONFIG_LIST:
		list = json_array();
		for (const char *const *i = config_list(c, key); *i; i++)
			json_array_append_new(list, json_string(*i));
		return list;
	case CONFIG_SIZE:
	case CONFIG_TIME:
	case CONFIG_CPUS:
		if (!config_number(c, key))
			return json_null();
		break;
	default:
		break;
	}
	return config_text(c, key) ? json_string(config_shown(c, key, shown)) : json_null();
}

static void show_json(const struct config *c)
{
	static const char *const from[] = { [FROM_DEFAULT] = "default",
					    [FROM_FILE] = "file",
					    [FROM_ENV] = "environment",
					    [FROM_FLAG] = "flag" };
	json_t *doc = json_object();

	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		json_t *value = as_json(c, (enum config_key)i);

		/* Bytes of the environment that are no text. */
		json_object_set_new(doc, config_rows[i].name,
				    json_pack("{s:o, s:s, s:s, s:s, s:b, s:s}", "value",
					      value ? value : json_string("(not UTF-8)"), "from",
					      from[c->values[i].from], "where", c->values[i].where,
					      "env", config_rows[i].env, "reload",
					      config_rows[i].reload, "help", config_rows[i].help));
	}
	json_dumpf(doc, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(doc);
}

static int config_widest(const struct config *c, int names)
{
	char shown[CONFIG_SHOWN];
	size_t width = 0;

	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		size_t n = strlen(names ? config_rows[i].name
					: config_shown(c, (enum config_key)i, shown));

		width = n > width ? n : width;
	}
	return width > 40 ? 40 : (int)width;
}

static void show_lines(const struct config *c, int origin)
{
	int name = config_widest(c, 1), value = config_widest(c, 0);
	char shown[CONFIG_SHOWN];

	for (unsigned i = 0; i < CONFIG_NKEYS; i++) {
		config_shown(c, (enum config_key)i, shown);
		if (!*shown)
			strcpy(shown, "-");
		if (origin)
			printf("%-*s  %-*s  %s\n", name, config_rows[i].name, value, shown,
			       c->values[i].where);
		else
			printf("%-*s  %s\n", name, config_rows[i].name, shown);
	}
}

static int config_show(const struct cli *cli, const struct args *a, const struct config *c)
{
	if (cli->json)
		show_json(c);
	else
		show_lines(c, args_has(a, SETTINGS_ORIGIN));
	return 0;
}

/* ---- get ---- */

static int no_such_setting(const struct cli *cli, const char *name)
{
	const char *close = config_nearest(name);
	char shown[SHOWN];
	struct cli_error t;

	cli_error_what(&t, "not_found", "no setting named '%s'", cli_error_shown(name, shown));
	if (close)
		cli_error_hint(&t, "close", "atoll config get %s", close);
	cli_error_hint(&t, "list", "atoll config show");
	return cli_error_print(&t, cli->json, STATUS_NOT_FOUND);
}

static int config_get(const struct cli *cli, const struct args *a, const struct config *c)
{
	int found = config_find(a->words[1]);
	enum config_key key = (enum config_key)found;
	char shown[CONFIG_SHOWN];

	if (found < 0)
		return no_such_setting(cli, a->words[1]);
	if (cli->json) {
		json_t *value = as_json(c, key);

		json_dumpf(value, stdout, JSON_COMPACT | JSON_ENCODE_ANY);
		putchar('\n');
		json_decref(value);
		return 0;
	}
	if (!config_text(c, key))
		return STATUS_FAILED; /* not set: nothing is printed, and the exit status shows it */
	if (config_rows[key].type == CONFIG_LIST)
		for (const char *const *i = config_list(c, key); *i; i++)
			puts(*i);
	else if (config_rows[key].type == CONFIG_SECRET)
		puts(config_shown(c, key, shown));
	else
		puts(config_text(c, key));
	return 0;
}

/* ---- check ---- */

static int config_check(const struct cli *cli, const struct args *a, const struct config *c)
{
	unsigned set = 0;

	(void)a;
	for (unsigned i = 0; i < CONFIG_NKEYS; i++)
		set += c->values[i].from != FROM_DEFAULT;
	if (cli->json) {
		json_t *files = json_array(), *doc;

		for (unsigned i = 0; i < c->nfiles; i++)
			json_array_append_new(files, json_string(c->files[i]));
		doc = json_pack("{s:o, s:i}", "files", files, "settings", (int)set);
		json_dumpf(doc, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(doc);
	} else if (!cli->quiet) {
		for (unsigned i = 0; i < c->nfiles; i++)
			printf("read %s\n", c->files[i]);
		printf("%u settings differ from the defaults, and all are good\n", set);
	}
	return 0;
}

/* ---- example ---- */

static int config_example(const struct cli *cli, const struct args *a, const struct config *c)
{
	auto_buf struct buf text = { 0 };

	(void)cli, (void)a, (void)c;
	config_print_example(&text);
	fputs(buf_str(&text), stdout);
	return 0;
}

static const struct part {
	const char *name;
	unsigned least, most; /* arguments after it */
	int (*run)(const struct cli *cli, const struct args *a, const struct config *c);
} parts[] = {
	{ "show", 0, 0, config_show },
	{ "get", 1, 1, config_get },
	{ "check", 0, 1, config_check },
	{ "example", 0, 0, config_example },
};

static const struct part *find_part(const struct args *a)
{
	for (unsigned i = 0; i < ARRAY_LEN(parts) && a->nwords; i++)
		if (!strcmp(parts[i].name, a->words[0]) && a->nwords - 1 >= parts[i].least &&
		    a->nwords - 1 <= parts[i].most)
			return &parts[i];
	return NULL;
}

static int config_config(const struct cli *cli, const struct args *a)
{
	struct config_source src = { .file = args_text(a, SETTINGS_FILE, NULL), .client = 1 };
	const struct part *part = find_part(a);
	struct cli_error t;
	struct config c;
	struct err e;
	int status;

	if (!part) {
		cli_error_what(
			&t, "usage",
			"config: missing subcommand: show, get NAME, check [FILE] or example");
		cli_error_hint(&t, "list", "atoll config show");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (part->run == config_check && a->nwords > 1) {
		src.file = a->words[1];
		src.no_env = 1; /* the file by itself: it may be for another machine */
	}
	if (part->run == config_example) /* works beside a file that is invalid */
		return config_example(cli, a, NULL);
	if (config_load(&c, &src, &e) < 0)
		return bad_settings(cli, &e);
	status = part->run(cli, a, &c);
	config_fini(&c);
	return status;
}

static const struct example examples[] = {
	{ "atoll config show --origin", "print every setting and its source" },
	{ "atoll config get serve.listen", "print one setting" },
	{ "atoll config check /etc/atoll/config.toml", "validate a file" },
	{ "atoll config example >/etc/atoll/config.toml",
	  "start with a file that explains every setting" },
	{ 0 },
};

const struct command command_config = {
	.name = "config",
	.group = "Machine",
	.usage = "show | get NAME | check [FILE] | example",
	.summary = "show effective settings and their source",
	.notes =
		"Precedence: a flag, ATOLL_* variables, atoll.toml in this folder or a folder above,\n"
		"$XDG_CONFIG_HOME/atoll/config.toml, /etc/atoll/config.toml, the default. Only the first letters\n"
		"of keys are shown.",
	.flags = flags,
	.nflags = SETTINGS_NFLAGS,
	.words = "show get check example",
	.max_words = 2,
	.examples = examples,
	.run = config_config,
};
