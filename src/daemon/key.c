/* key.c - `atoll key`: keys are made in the store of the daemon, so the first one needs no other
 * key. For a daemon that -H or ATOLL_HOST names they are made through its API.
 * A running daemon accepts a new key at once, and rejects a removed one within a second. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "record/record.h"
#include "cli/list_output.h"
#include "cli/api_client.h"
#include "daemon/state_dir.h"
#include "daemon/endpoint.h"
#include "daemon/commands.h"
#include "fleet/isolation.h"
#include "store/audit.h"
#include "store/keys.h"
#include "store/teams.h"

#include <stdio.h>
#include <string.h>

enum { KEY_ROLE, KEY_TEAM, KEY_BOX, KEY_EXPIRES, KEY_STATE, KEY_CONFIG, KEY_ISOLATION, KEY_FLAGS };

static const struct flag flags[KEY_FLAGS] = {
	[KEY_ROLE] = { "role", 0, FLAG_TEXT, "ROLE", "viewer, editor or owner (default owner)" },
	[KEY_TEAM] = { "team", 0, FLAG_TEXT, "TEAM", "team of the key (default: default)" },
	[KEY_BOX] = { "box", 0, FLAG_TEXT, "ID", "restrict the key to this box" },
	[KEY_EXPIRES] = { "expires", 0, FLAG_TIME, "TIME", "validity, e.g. 24h" },
	[KEY_STATE] = { "state", 0, FLAG_TEXT, "DIR", "state folder of the daemon" },
	[KEY_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "configuration file of the daemon" },
	[KEY_ISOLATION] = { "isolation", 0, FLAG_TEXT, "TIER",
			    "minimum isolation tier of its boxes" },
};

static int key_failed(const struct cli *cli, const struct err *e)
{
	struct cli_error t;

	cli_error_what(&t, err_kind_name(e->kind), "%s", e->msg);
	cli_error_hint(&t, "list", "atoll key ls");
	return cli_error_print(&t, cli->json,
			       e->kind == ERR_NOT_FOUND ? STATUS_NOT_FOUND
			       : e->kind == ERR_DENIED  ? STATUS_NOT_ALLOWED
							: STATUS_FAILED);
}

static int open_store(const struct args *a, struct store **out, struct err *e)
{
	struct state_dir h;

	return state_dir_find(&h, args_text(a, KEY_STATE, NULL), args_text(a, KEY_CONFIG, NULL),
			      e) < 0
		       ? -1
		       : store_open(out, h.folder, e);
}

static void key_note(struct store *s, const struct store_key *k, const char *action)
{
	struct store_audit row = { .at_ns = (int64_t)clock_ns(CLOCK_REALTIME), .result = "ok" };
	struct err e;

	snprintf(row.who, sizeof(row.who), "uid:%u", (unsigned)getuid());
	snprintf(row.team, sizeof(row.team), "%s", k->team);
	snprintf(row.action, sizeof(row.action), "%s", action);
	snprintf(row.subject, sizeof(row.subject), "%s", k->id[0] ? k->id : k->name);
	if (store_audit_add(s, &row, &e) < 0)
		fprintf(stderr, "atoll: not in the audit log: %s\n", e.msg);
}

static json_t *key_json(const struct store_key *k)
{
	json_t *doc =
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:s}", "id", k->id, "name", k->name,
			  "team", k->team, "role", store_role_name(k->role), "box", k->box, "shown",
			  k->shown, "revoked", k->revoked, "isolation", k->isolation);

	json_object_set_new(doc, "created", json_time((uint64_t)k->created_ns));
	json_object_set_new(doc, "used",
			    k->used_ns ? json_time((uint64_t)k->used_ns) : json_null());
	json_object_set_new(doc, "expires",
			    k->expires_ns ? json_time((uint64_t)k->expires_ns) : json_null());
	return doc;
}

static void print_json(json_t *take_doc)
{
	json_dumpf(take_doc, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(take_doc);
}

static int key_make(struct store *s, const struct cli *cli, const struct args *a, struct err *e)
{
	const char *role = args_text(a, KEY_ROLE, "owner");
	uint64_t expires = args_value(a, KEY_EXPIRES, 0);
	struct store_key k = { .created_ns = (int64_t)clock_ns(CLOCK_REALTIME) };
	char text[KEY_TEXT + 1];

	if (store_role_parse(role, &k.role) < 0)
		return err_set(e, ERR_INVALID, "--role: '%.20s' is not viewer, editor or owner",
			       role);
	if (strlen(a->words[1]) > STORE_NAME)
		return err_set(e, ERR_INVALID, "a name has at most %d bytes", STORE_NAME);
	snprintf(k.name, sizeof(k.name), "%s", a->words[1]);
	snprintf(k.team, sizeof(k.team), "%s", args_text(a, KEY_TEAM, TEAM_DEFAULT));
	snprintf(k.box, sizeof(k.box), "%s", args_text(a, KEY_BOX, ""));
	snprintf(k.isolation, sizeof(k.isolation), "%s", args_text(a, KEY_ISOLATION, ""));
	if (expires)
		k.expires_ns = k.created_ns + (int64_t)expires * 1000000;
	if (isolation_check_key(s, &k, "", 1, e) < 0)
		return err_in(e, "--isolation");
	if (store_key_make(text, &k, e) < 0 || store_key_add(s, &k, e) < 0)
		return -1;
	key_note(s, &k, "key.create");
	if (cli->json) {
		json_t *doc = key_json(&k);

		json_object_set_new(doc, "key", json_string(text));
		print_json(doc);
	} else if (cli->quiet) {
		puts(text);
	} else {
		printf("%s\n", text);
		fprintf(stderr, "atoll: key '%s' (%s of team %s); it is not shown again\n", k.name,
			store_role_name(k.role), k.team);
	}
	return 0;
}

static int key_list(struct store *s, const struct cli *cli, const struct args *a, struct err *e)
{
	struct store_keys keys = { 0 };
	json_t *all = json_array();

	if (store_key_list(s, args_text(a, KEY_TEAM, NULL), NULL, STORE_PAGE_MAX, &keys, e) < 0) {
		json_decref(all);
		return -1;
	}
	if (!cli->json && !cli->quiet && isatty(1))
		printf("%-16s %-8s %-10s %-8s %s\n", "NAME", "ROLE", "TEAM", "KEY", "STATE");
	for (unsigned i = 0; i < keys.n; i++) {
		const struct store_key *k = &keys.v[i];

		if (cli->json)
			json_array_append_new(all, key_json(k));
		else if (cli->quiet)
			puts(k->name);
		else
			printf("%-16s %-8s %-10s %-8s %s\n", k->name, store_role_name(k->role),
			       k->team, k->shown, k->revoked ? "revoked" : "good");
	}
	if (cli->json)
		print_json(json_pack("{s:O, s:n}", "items", all, "next"));
	json_decref(all);
	store_keys_fini(&keys);
	return 0;
}

static int key_drop(struct store *s, const struct args *a, struct err *e)
{
	struct store_key k = { 0 };

	snprintf(k.team, sizeof(k.team), "%s", args_text(a, KEY_TEAM, TEAM_DEFAULT));
	snprintf(k.name, sizeof(k.name), "%.*s", STORE_NAME, a->words[1]);
	if (store_key_remove(s, k.team, a->words[1], e) < 0)
		return -1;
	key_note(s, &k, "key.delete");
	return 0;
}

/* ---- a daemon that was named ---- */

/* The state folder is that of this machine's settings, unless -H, ATOLL_HOST or `host` in a file
 * names another daemon; a state folder given as a flag always counts. */
static int names_daemon(const struct cli *cli, const struct args *a, int *out_named, struct err *e)
{
	struct endpoint reach;

	*out_named = cli->host != NULL;
	if (*out_named && (args_has(a, KEY_STATE) || args_has(a, KEY_CONFIG)))
		return err_set(
			e, ERR_INVALID,
			"-H names a daemon and --state or --config another one; give one of them");
	if (*out_named || args_has(a, KEY_STATE) || args_has(a, KEY_CONFIG))
		return 0;
	if (endpoint_find(&reach, e) < 0)
		return -1;
	*out_named = reach.chosen;
	return 0;
}

static char *key_path(const struct args *a, const char *name)
{
	const char *team = args_text(a, KEY_TEAM, NULL);

	if (name && team)
		return api_client_path("/v1/keys/%s?team=%s", name, team);
	if (name)
		return api_client_path("/v1/keys/%s", name);
	return team ? api_client_path("/v1/keys?team=%s", team) : api_client_path("/v1/keys");
}

static int remote_make(struct api_client *r, const struct args *a)
{
	json_t *want = json_pack("{s:o, s:o}", "name", json_string(a->words[1]), "role",
				 json_string(args_text(a, KEY_ROLE, "owner"))),
	       *doc;

	if (args_has(a, KEY_TEAM))
		json_object_set_new(want, "team", json_string(args_text(a, KEY_TEAM, "")));
	if (args_has(a, KEY_BOX))
		json_object_set_new(want, "box", json_string(args_text(a, KEY_BOX, "")));
	if (args_has(a, KEY_EXPIRES))
		json_object_set_new(want, "expires_ms",
				    json_integer((json_int_t)args_value(a, KEY_EXPIRES, 0)));
	if (args_has(a, KEY_ISOLATION))
		json_object_set_new(want, "isolation",
				    json_string(args_text(a, KEY_ISOLATION, "")));
	doc = api_client_json(r, "POST", "/v1/keys", want);
	if (!doc)
		return r->status;
	if (r->cli->json) {
		api_client_print(doc);
	} else {
		puts(api_client_text(doc, "key"));
		if (!r->cli->quiet)
			fprintf(stderr,
				"atoll: key '%s' (%s of team %s) of the daemon at %s; it is not shown again\n",
				api_client_text(doc, "name"), api_client_text(doc, "role"),
				api_client_text(doc, "team"), r->reach.where);
	}
	json_decref(doc);
	return 0;
}

static void key_row(struct table *t, json_t *k)
{
	table_cell(t, "%s", api_client_text(k, "name"));
	table_cell(t, "%s", api_client_text(k, "role"));
	table_cell(t, "%s", api_client_text(k, "team"));
	table_cell(t, "%s", api_client_text(k, "shown"));
	table_cell(t, "%s", json_is_true(json_object_get(k, "revoked")) ? "revoked" : "good");
}

static int remote_drop(struct api_client *r, const struct args *a)
{
	auto_free char *path = key_path(a, a->words[1]);
	json_t *doc = api_client_json(r, "DELETE", path, NULL);

	json_decref(doc);
	return doc ? 0 : r->status;
}

static int remote_key(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "NAME", "ROLE", "TEAM", "KEY", "STATE", NULL };
	auto_free char *path = key_path(a, NULL);

	if (a->nwords == 2)
		return !strcmp(a->words[0], "new") ? remote_make(r, a) : remote_drop(r, a);
	return list_output_show(r, path, &(struct list_output){ columns, "name", key_row });
}

static int run_key(const struct cli *cli, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";
	unsigned wants = !strcmp(what, "ls")                           ? 1
			 : !strcmp(what, "new") || !strcmp(what, "rm") ? 2
								       : 0;
	struct store *s = NULL;
	struct cli_error t;
	struct err e;
	int rc, named;

	if (!wants || (a->nwords && a->nwords != wants)) {
		cli_error_what(&t, "usage", "key: missing subcommand: new, ls or rm");
		cli_error_hint(&t, "type", "atoll key new NAME | ls | rm NAME");
		return cli_error_print(&t, cli->json, STATUS_USAGE);
	}
	if (names_daemon(cli, a, &named, &e) < 0)
		return key_failed(cli, &e);
	if (named)
		return api_client_command(cli, a, remote_key);
	if (open_store(a, &s, &e) < 0)
		return key_failed(cli, &e);
	rc = !strcmp(what, "new")  ? key_make(s, cli, a, &e)
	     : !strcmp(what, "rm") ? key_drop(s, a, &e)
				   : key_list(s, cli, a, &e);
	store_close(s);
	return rc < 0 ? key_failed(cli, &e) : 0;
}

static const struct example examples[] = {
	{ "atoll key new laptop", "create a key for this machine's daemon" },
	{ "atoll key new ci --role editor --quiet", "print only the key" },
	{ "atoll key ls", "list keys" },
	{ "atoll key rm laptop", "revoke the key" },
	{ 0 },
};

const struct command command_key = {
	/* clang-format off */
	.name = "key",
	.group = "Access",
	.usage = "new NAME | ls | rm NAME",
	.summary = "create, list and revoke API keys",
	.notes = "Without -H, ATOLL_HOST or `host` in the settings, uses the state folder of this machine's daemon,\n"
		 "which need not run. With one of them, uses the API of that daemon, which needs an owner's key.",
	.flags = flags,
	.nflags = KEY_FLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_key,
	/* clang-format on */
};
