/* key.c - `atoll key`: keys are made where the daemon keeps them, so the first one needs no other.
 * A running daemon finds a new key at once, and forgets a removed one within a second. */
#include "base/clock.h"
#include "base/own.h"
#include "box/record.h"
#include "serve/home.h"
#include "serve/verbs.h"
#include "store/audit.h"
#include "store/keys.h"
#include "store/teams.h"

#include <stdio.h>
#include <string.h>

enum { KEY_ROLE, KEY_TEAM, KEY_BOX, KEY_EXPIRES, KEY_STATE, KEY_CONFIG, KEY_FLAGS };

static const struct flag flags[KEY_FLAGS] = {
	[KEY_ROLE] = { "role", 0, FLAG_TEXT, "ROLE", "viewer, editor or owner (default owner)" },
	[KEY_TEAM] = { "team", 0, FLAG_TEXT, "TEAM", "whose key it is (default: default)" },
	[KEY_BOX] = { "box", 0, FLAG_TEXT, "ID", "good for this box only" },
	[KEY_EXPIRES] = { "expires", 0, FLAG_TIME, "TIME", "good for this long, e.g. 24h" },
	[KEY_STATE] = { "state", 0, FLAG_TEXT, "DIR", "the daemon's state folder" },
	[KEY_CONFIG] = { "config", 0, FLAG_TEXT, "FILE", "the daemon's configuration" },
};

static int failed(const struct cli *cli, const struct err *e)
{
	struct trouble t;

	trouble_what(&t, err_kind_name(e->kind), "%s", e->msg);
	trouble_hint(&t, "list", "atoll key ls");
	return trouble_say(&t, cli->json,
			   e->kind == ERR_NOT_FOUND ? STATUS_NOT_FOUND :
			   e->kind == ERR_DENIED    ? STATUS_NOT_ALLOWED :
						      STATUS_FAILED);
}

static int open_store(const struct args *a, struct store **out, struct err *e)
{
	struct config_given given = { CONFIG_STATE, args_text(a, KEY_STATE, NULL) };
	struct config_source src = { .file = args_text(a, KEY_CONFIG, NULL),
				     .given = &given,
				     .ngiven = given.text != NULL };
	struct config c;
	struct home h;
	int rc;

	if (config_load(&c, &src, e) < 0)
		return -1;
	rc = home_open(&h, &c, e);
	config_fini(&c);
	return rc < 0 ? -1 : store_open(out, h.folder, e);
}

static void note(struct store *s, const struct store_key *k, const char *action)
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
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "id", k->id, "name", k->name,
				"team", k->team, "role", store_role_name(k->role), "box", k->box,
				"shown", k->shown, "revoked", k->revoked);

	json_object_set_new(doc, "created", record_when((uint64_t)k->created_ns));
	json_object_set_new(doc, "used", k->used_ns ? record_when((uint64_t)k->used_ns) : json_null());
	json_object_set_new(doc, "expires",
			    k->expires_ns ? record_when((uint64_t)k->expires_ns) : json_null());
	return doc;
}

static void print_json(json_t *take_doc)
{
	json_dumpf(take_doc, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(take_doc);
}

static int make(struct store *s, const struct cli *cli, const struct args *a, struct err *e)
{
	const char *role = args_text(a, KEY_ROLE, "owner");
	uint64_t expires = args_value(a, KEY_EXPIRES, 0);
	struct store_key k = { .created_ns = (int64_t)clock_ns(CLOCK_REALTIME) };
	char text[KEY_TEXT + 1];

	if (store_role_parse(role, &k.role) < 0)
		return err_set(e, ERR_INVALID, "--role: '%.20s' is not viewer, editor or owner", role);
	if (strlen(a->words[1]) > STORE_NAME)
		return err_set(e, ERR_INVALID, "a name has at most %d bytes", STORE_NAME);
	snprintf(k.name, sizeof(k.name), "%s", a->words[1]);
	snprintf(k.team, sizeof(k.team), "%s", args_text(a, KEY_TEAM, TEAM_DEFAULT));
	snprintf(k.box, sizeof(k.box), "%s", args_text(a, KEY_BOX, ""));
	if (expires)
		k.expires_ns = k.created_ns + (int64_t)expires * 1000000;
	if (store_key_make(text, &k, e) < 0 || store_key_add(s, &k, e) < 0)
		return -1;
	note(s, &k, "key.create");
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

static int list(struct store *s, const struct cli *cli, const struct args *a, struct err *e)
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

static int drop(struct store *s, const struct args *a, struct err *e)
{
	struct store_key k = { 0 };

	snprintf(k.team, sizeof(k.team), "%s", args_text(a, KEY_TEAM, TEAM_DEFAULT));
	snprintf(k.name, sizeof(k.name), "%.*s", STORE_NAME, a->words[1]);
	if (store_key_remove(s, k.team, a->words[1], e) < 0)
		return -1;
	note(s, &k, "key.delete");
	return 0;
}

static int run_key(const struct cli *cli, const struct args *a)
{
	const char *what = a->nwords ? a->words[0] : "ls";
	unsigned wants = !strcmp(what, "ls") ? 1 : !strcmp(what, "new") || !strcmp(what, "rm") ? 2 : 0;
	struct store *s = NULL;
	struct trouble t;
	struct err e;
	int rc;

	if (!wants || (a->nwords && a->nwords != wants)) {
		trouble_what(&t, "usage", "what about keys?");
		trouble_hint(&t, "type", "atoll key new NAME | ls | rm NAME");
		return trouble_say(&t, cli->json, STATUS_USAGE);
	}
	if (open_store(a, &s, &e) < 0)
		return failed(cli, &e);
	rc = !strcmp(what, "new") ? make(s, cli, a, &e) :
	     !strcmp(what, "rm")  ? drop(s, a, &e) :
				    list(s, cli, a, &e);
	store_close(s);
	return rc < 0 ? failed(cli, &e) : 0;
}

static const struct example examples[] = {
	{ "atoll key new laptop", "a key for this machine's daemon" },
	{ "atoll key new ci --role editor --quiet", "just the key" },
	{ "atoll key ls", "whose keys there are" },
	{ "atoll key rm laptop", "it opens nothing any more" },
	{ 0 },
};

const struct verb verb_key = {
	.name = "key",
	.group = "Access",
	.usage = "new NAME | ls | rm NAME",
	.summary = "API keys of this machine's daemon",
	.flags = flags,
	.nflags = KEY_FLAGS,
	.max_words = 2,
	.examples = examples,
	.run = run_key,
};
