/* net.c - `atoll net`: which destinations a box may reach, what it has reached, and approvals. */
#include "base/cleanup.h"
#include "base/units.h"
#include "cli/list_output.h"
#include "commands/commands.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { NET_FOLLOW, NET_FOR, NET_ALWAYS, NET_NFLAGS };
enum { TRIES = 5, LOOK_MS = 500 };

static const struct flag flags[NET_NFLAGS] = {
	[NET_FOLLOW] = { "follow", 'f', FLAG_SWITCH, NULL, "log: continue with new connections" },
	[NET_FOR] = { "for", 0, FLAG_TIME, "TIME",
		      "approve: also later connections, for this time" },
	[NET_ALWAYS] = { "always", 0, FLAG_SWITCH, NULL,
			 "approve: also later connections, as a rule of the box" },
};

/* ---- show ---- */

static void net_print_rules(const char *word, const json_t *rules)
{
	json_t *v;
	size_t i;

	json_array_foreach((json_t *)rules, i, v) printf("%-9s %s\n", word, json_string_value(v));
}

static void net_print(const json_t *doc)
{
	const json_t *until = json_object_get(doc, "allow_until"),
		     *team = json_object_get(doc, "team");
	char text[UNITS_TEXT], other[UNITS_TEXT];
	json_t *v;
	size_t i;

	net_print_rules("allow", json_object_get(doc, "allow"));
	json_array_foreach((json_t *)until, i, v)
		printf("%-9s %s (for %s)\n", "allow", api_client_text(v, "rule"),
		       api_client_until(text, v, "until"));
	net_print_rules("deny", json_object_get(doc, "deny"));
	if (json_is_true(json_object_get(doc, "ask")))
		printf("%-9s %s\n", "ask", "other destinations wait for an approval");
	if (json_is_integer(json_object_get(doc, "bandwidth")))
		printf("%-9s %s per second\n", "bandwidth",
		       units_size(text, (uint64_t)api_client_int(doc, "bandwidth", 0)));
	if (json_is_array(json_object_get(team, "allow")))
		net_print_rules("team only", json_object_get(team, "allow"));
	net_print_rules("team deny", json_object_get(team, "deny"));
	printf("%-9s %lld connections, %lld refused, %s in, %s out\n", "used",
	       (long long)api_client_int(doc, "connections", 0),
	       (long long)api_client_int(doc, "refused", 0),
	       units_size(text, (uint64_t)api_client_int(doc, "bytes_in", 0)),
	       units_size(other, (uint64_t)api_client_int(doc, "bytes_out", 0)));
}

static json_t *net_get(struct api_client *r, const char *box)
{
	json_t *doc = api_client_get(r, "/v1/boxes/%s/network", box);

	if (!doc)
		api_client_explain_box(r, box);
	return doc;
}

static int net_show(struct api_client *r, const struct args *a)
{
	json_t *doc = net_get(r, a->words[1]);

	if (!doc)
		return r->status;
	if (r->cli->json)
		api_client_print(doc);
	else
		net_print(doc);
	json_decref(doc);
	return 0;
}

/* ---- change ---- */

static void net_remove(json_t *list, const char *rule)
{
	for (size_t i = json_array_size(list); i-- > 0;)
		if (!strcmp(json_string_value(json_array_get(list, i)), rule))
			json_array_remove(list, i);
}

/* The network rules of the box as they will be, from those that it has. */
static json_t *net_changed(const struct args *a, const json_t *now)
{
	const char *what = a->words[0];
	json_t *allow = json_deep_copy(json_object_get(now, "allow"));
	json_t *deny = json_deep_copy(json_object_get(now, "deny"));
	json_t *doc = json_pack("{s:o, s:o}", "allow", allow, "deny", deny);

	for (unsigned i = 2; i < a->nwords; i++) {
		net_remove(allow, a->words[i]);
		net_remove(deny, a->words[i]);
		if (!strcmp(what, "allow"))
			json_array_append_new(allow, json_string(a->words[i]));
		else if (!strcmp(what, "deny"))
			json_array_append_new(deny, json_string(a->words[i]));
	}
	if (!strcmp(what, "reset") && a->nwords == 2) {
		json_array_clear(allow);
		json_array_clear(deny);
		json_object_set_new(doc, "ask", json_false());
		json_object_set_new(doc, "bandwidth", json_integer(0));
	}
	return doc;
}

static json_t *net_patch(struct api_client *r, const char *box, json_t *take_network)
{
	auto_free char *path = api_client_path("/v1/boxes/%s", box);

	return api_client_json(r, "PATCH", path, json_pack("{s:o}", "network", take_network));
}

static int net_told(struct api_client *r, json_t *take_box, const char *name)
{
	if (!take_box) {
		api_client_explain_box(r, name);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(json_object_get(take_box, "network"));
	json_decref(take_box);
	return 0;
}

/* Another client may change the rules at the same time: its change is not lost. */
static int net_change(struct api_client *r, const struct args *a)
{
	json_t *box = NULL;

	for (int tries = 0; tries < TRIES; tries++) {
		json_t *now = api_client_get(r, "/v1/boxes/%s", a->words[1]), *next;

		if (!now)
			break;
		next = net_changed(a, json_object_get(now, "network"));
		json_decref(now);
		r->match = r->etag;
		box = net_patch(r, a->words[1], next);
		if (box || r->http != 412)
			break;
	}
	return net_told(r, box, a->words[1]);
}

static int net_ask(struct api_client *r, const struct args *a)
{
	int on = !strcmp(a->words[2], "on");

	if (!on && strcmp(a->words[2], "off") != 0) {
		char shown[SHOWN];

		return api_client_usage(r, "net ask: '%s' is not on or off",
					cli_error_shown(a->words[2], shown));
	}
	return net_told(r, net_patch(r, a->words[1], json_pack("{s:b}", "ask", on)), a->words[1]);
}

static int net_bandwidth(struct api_client *r, const struct args *a)
{
	uint64_t rate = 0;
	struct err e;

	if (strcmp(a->words[2], "none") != 0 && units_parse_size(a->words[2], &rate, &e) < 0)
		return api_client_usage(r, "net bandwidth: %s", e.msg);
	return net_told(
		r, net_patch(r, a->words[1], json_pack("{s:I}", "bandwidth", (json_int_t)rate)),
		a->words[1]);
}

/* ---- log ---- */

static void net_print_connection(const struct cli *cli, const json_t *v)
{
	char in[UNITS_TEXT], out[UNITS_TEXT];

	if (cli->json) {
		api_client_print(v);
		return;
	}
	printf("%s  %-11s %s:%lld", api_client_text(v, "began"), api_client_text(v, "verdict"),
	       api_client_text(v, "host"), (long long)api_client_int(v, "port", 0));
	if (!strcmp(api_client_text(v, "verdict"), "ok"))
		printf("  %s in, %s out",
		       units_size(in, (uint64_t)api_client_int(v, "bytes_in", 0)),
		       units_size(out, (uint64_t)api_client_int(v, "bytes_out", 0)));
	else
		printf("  %s", api_client_text(v, "why"));
	if (*api_client_text(v, "hint"))
		printf(". %s", api_client_text(v, "hint"));
	putchar('\n');
}

static int net_log(struct api_client *r, const struct args *a)
{
	int64_t last = 0;

	for (;;) {
		json_t *doc = net_get(r, a->words[1]), *v;
		size_t i;

		if (!doc)
			return r->status;
		if (api_client_int(doc, "connections", 0) < last)
			last = 0; /* another server process counts from 1 */
		json_array_foreach(json_object_get(doc, "recent"), i, v)
		{
			if (api_client_int(v, "seq", 0) <= last)
				continue;
			last = api_client_int(v, "seq", 0);
			net_print_connection(r->cli, v);
		}
		json_decref(doc);
		if (fflush(stdout) != 0 || !args_has(a, NET_FOLLOW))
			return 0;
		poll(NULL, 0, LOOK_MS);
	}
}

/* ---- approvals ---- */

static void net_request_row(struct table *t, json_t *v)
{
	char text[24];

	table_cell(t, "%s", api_client_text(v, "id"));
	table_cell(t, "%s:%lld", api_client_text(v, "host"),
		   (long long)api_client_int(v, "port", 0));
	table_cell(t, "%s", api_client_since(text, v, "began"));
	table_cell(t, "%s", api_client_until(text, v, "expires"));
}

static int net_requests(struct api_client *r, const struct args *a)
{
	static const char *const columns[] = { "REQUEST", "DESTINATION", ">WAITS", ">ENDS IN",
					       NULL };
	auto_free char *path = api_client_path("/v1/boxes/%s/network/requests", a->words[1]);
	int status =
		list_output_show(r, path, &(struct list_output){ columns, "id", net_request_row });

	if (status)
		api_client_explain_box(r, a->words[1]);
	return status;
}

static int net_decide(struct api_client *r, const struct args *a)
{
	auto_free char *path =
		api_client_path("/v1/boxes/%s/network/requests/%s", a->words[1], a->words[2]);
	const char *decision = !strcmp(a->words[0], "refuse") ? "deny"
			       : args_has(a, NET_ALWAYS)      ? "always"
			       : args_has(a, NET_FOR)         ? "for"
							      : "once";
	json_t *doc = json_pack("{s:s}", "decision", decision);

	if (!strcmp(decision, "for"))
		json_object_set_new(
			doc, "seconds",
			json_integer((json_int_t)(args_value(a, NET_FOR, 0) + 999) / 1000));
	doc = api_client_json(r, "POST", path, doc);
	if (!doc) {
		api_client_explain_box(r, a->words[1]);
		return r->status;
	}
	if (r->cli->json)
		api_client_print(doc);
	json_decref(doc);
	return 0;
}

/* ---- the command ---- */

static const struct {
	const char *name;
	unsigned least, most; /* words */
	int (*run)(struct api_client *r, const struct args *a);
} net_commands[] = {
	{ "show", 2, 2, net_show },      { "allow", 3, 66, net_change },
	{ "deny", 3, 66, net_change },   { "reset", 2, 66, net_change },
	{ "ask", 3, 3, net_ask },        { "bandwidth", 3, 3, net_bandwidth },
	{ "log", 2, 2, net_log },        { "requests", 2, 2, net_requests },
	{ "approve", 3, 3, net_decide }, { "refuse", 3, 3, net_decide },
};

static int net_net(struct api_client *r, const struct args *a)
{
	for (unsigned i = 0; a->nwords && i < ARRAY_LEN(net_commands); i++)
		if (!strcmp(a->words[0], net_commands[i].name) &&
		    a->nwords >= net_commands[i].least && a->nwords <= net_commands[i].most)
			return net_commands[i].run(r, a);
	api_client_usage(r, "net: missing or unknown subcommand, or missing argument");
	cli_error_hint(&r->error, "type", "atoll net show BOX, atoll net allow BOX HOST:PORT, ...");
	return r->status;
}

static int run_net(const struct cli *cli, const struct args *a)
{
	return api_client_command(cli, a, net_net);
}

static const struct example examples[] = {
	{ "atoll net show demo", "print the rules of a box and what it has used" },
	{ "atoll net allow demo db.example.org:5432", "allow a destination, at once" },
	{ "atoll net deny demo '*.example.org'", "refuse destinations; open connections are cut" },
	{ "atoll net log demo -f", "print connections and refusals as they happen" },
	{ "atoll net ask demo on", "let unknown destinations wait for an approval" },
	{ "atoll net approve demo 1763430000000001 --for 1h", "approve one that waits" },
	{ 0 },
};

const struct command command_net = {
	/* clang-format off */
	.name = "net",
	.group = "Boxes",
	.usage = "show BOX | allow BOX RULE... | deny BOX RULE... | reset BOX [RULE...] | ask BOX on|off | "
		 "bandwidth BOX SIZE|none | log BOX | requests BOX | approve BOX REQUEST | refuse BOX REQUEST",
	.summary = "show and change what a box may reach",
	.notes = "A rule is a host, *.host, an address or a range like 10.1.0.0/16, each with :PORT or :FIRST-LAST;\n"
		 "open: the public internet; or \"GET,HEAD host/path*\" for plain HTTP. Without a port, an allow rule is\n"
		 "for 80 and 443, a deny rule for every port. Deny wins over allow. The operator must permit each\n"
		 "destination (egress.allow). approve without --for and --always is for the connections that wait now.",
	.words = "show allow deny reset ask bandwidth log requests approve refuse",
	.flags = flags,
	.nflags = NET_NFLAGS,
	.max_words = 66,
	.examples = examples,
	.run = run_net,
	/* clang-format on */
};
