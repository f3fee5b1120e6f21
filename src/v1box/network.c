/* network.c - see network.h. */
#include "v1box/network.h"
#include "api/network_answer.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "egress/net_policy.h"
#include "fleet/box_link.h"
#include "fleet/box_network.h"
#include "store/network.h"
#include "v1box/links.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BANDWIDTH_MAX (INT64_C(1) << 40)
enum { FOR_DEFAULT_S = 3600, FOR_MAX_S = 30 * 86400 };

const struct field box_network_fields[] = {
	/* clang-format off */
	{ "allow", FIELD_TEXTS, 0, 0, RULES_MAX, "destinations that the box may reach: host, *.host, address, CIDR, each with :port or :first-last, open, or \"GET,HEAD host/path*\"; the operator must permit each (egress.allow)", NULL },
	{ "deny", FIELD_TEXTS, 0, 0, RULES_MAX, "destinations that it may not reach, whatever is allowed", NULL },
	{ "budgets", FIELD_ANY, 0, 0, 0, "limits for destinations, at most 8: [{rule, bytes_in, bytes_out, connections}]; counted in the lifetime of the box", NULL },
	{ "links", FIELD_MAP, 0, 0, BOX_LINKS, "boxes of the team that the box reaches under these names: {\"db\": id or name of a box}", NULL },
	{ "registries", FIELD_BOOL, 0, 0, 0, "the package registries of the operator may be reached (default true; false in a run of code)", NULL },
	{ "ask", FIELD_BOOL, 0, 0, 0, "a destination without a rule waits for an approval: GET /v1/boxes/{box}/network/requests", NULL },
	{ "bandwidth", FIELD_INT, 0, 0, BANDWIDTH_MAX, "bytes per second in each direction, for example \"10M\"; 0: no limit", NULL },
	{ 0 },
	/* clang-format on */
};
static const struct field decision_values[] = {
	FIELD_VALUE("once"), FIELD_VALUE("for"), FIELD_VALUE("always"), FIELD_VALUE("deny"), { 0 }
};
const struct field network_decide_fields[] = {
	/* clang-format off */
	{ "decision", FIELD_CHOICE, 1, 0, 0, "once: the connections that wait now; for: also later ones, for `seconds`; always: a rule of the box; deny: refuse those that wait now", decision_values },
	{ "seconds", FIELD_INT, 0, 1, FOR_MAX_S, "with for: how long (default 3600)", NULL },
	{ 0 },
	/* clang-format on */
};

/* ---- reading ---- */

/* Adds each text as the parsed rule prints it, so that the API shows exactly what is enforced. */
static void network_add(json_t *lines, const char *word, const struct net_rule *r)
{
	char text[RULE_TEXT];
	json_t *line = json_sprintf("%s%s", word, net_rule_text(r, text)), *has;
	size_t i;

	json_array_foreach(lines, i, has) if (json_equal(has, line))
	{
		json_decref(line);
		return;
	}
	json_array_append_new(lines, line);
}

static int network_covered(const struct net_rule *v, unsigned n, const struct net_rule *r)
{
	for (unsigned i = 0; i < n; i++)
		if (net_rule_covers(&v[i], r))
			return 1;
	return 0;
}

static int network_team_policy(struct call *c, struct net_policy *out, struct err *e)
{
	auto_free char *lines = NULL;
	auto_buf struct buf text = { 0 };

	if (store_network_rules_get(c->api->store, c->who.team, &lines, e) < 0)
		return -1;
	box_network_text(lines, "team ", &text);
	return net_policy_parse(out, buf_str(&text), text.len, e);
}

static int network_permitted(struct call *c, const struct net_policy *team,
			     const struct net_rule *r, struct err *e)
{
	const struct api_conf *conf = &c->api->conf;
	char text[RULE_TEXT];

	if (!network_covered(conf->rules, conf->nrules, r))
		return err_set(e, ERR_DENIED,
			       "this daemon permits no box to reach '%.100s' (egress.allow%s)",
			       net_rule_text(r, text), conf->nrules ? "" : " is empty");
	if (team->team_only && !network_covered(team->team_allow.v, team->team_allow.n, r))
		return err_set(e, ERR_DENIED,
			       "the network rules of team '%.64s' do not permit '%.100s' (PUT "
			       "/v1/teams/%.64s/network)",
			       c->who.team, net_rule_text(r, text), c->who.team);
	return 0;
}

static int network_read_allow(struct call *c, const json_t *allow, json_t *lines, struct err *e)
{
	struct net_policy team = { 0 };
	struct net_rule r;
	json_t *text;
	size_t i;
	int rc = network_team_policy(c, &team, e);

	json_array_foreach((json_t *)allow, i, text)
	{
		if (rc == 0 && (net_rule_parse_allow(&r, json_string_value(text), e) < 0 ||
				network_permitted(c, &team, &r, e) < 0))
			rc = err_in(e, "network.allow[%zu]", i);
		if (rc == 0)
			network_add(lines, "", &r);
	}
	net_policy_fini(&team);
	return rc;
}

static int network_read_deny(const json_t *deny, json_t *lines, struct err *e)
{
	struct net_rule r;
	json_t *text;
	size_t i;

	json_array_foreach((json_t *)deny, i, text)
	{
		if (net_rule_parse(&r, json_string_value(text), e) < 0)
			return err_in(e, "network.deny[%zu]", i);
		network_add(lines, "deny ", &r);
	}
	return 0;
}

/* Copies the lines of one kind: those that start with the word, or (word "") allow rules. */
static void network_keep(const char *had, const char *word, json_t *lines)
{
	json_t *all = had ? json_loads(had, 0, NULL) : NULL, *line;
	int64_t now_s = fleet_now_ns() / 1000000000;
	size_t i;

	json_array_foreach(all, i, line)
	{
		const char *text = json_string_value(line), *kind = "";

		if (!strncmp(text, "deny ", 5))
			kind = "deny";
		else if (!strncmp(text, "bandwidth ", 10))
			kind = "bandwidth";
		else if (!strncmp(text, "budget ", 7))
			kind = "budget";
		else if (!strcmp(text, "ask"))
			kind = "ask";
		else if (box_link_is(text))
			kind = "link";
		else if (!strncmp(text, "until ", 6) && strtoll(text + 6, NULL, 10) <= now_s)
			continue;
		if (!strcmp(kind, word))
			json_array_append(lines, line);
	}
	json_decref(all);
}

static int network_read_ask(struct call *c, json_t *lines, struct err *e)
{
	if (!c->api->conf.nrules)
		return err_set(e, ERR_DENIED,
			       "network.ask: this daemon permits no box to reach anything "
			       "(egress.allow is empty)");
	json_array_append_new(lines, json_string("ask"));
	return 0;
}

static int network_read_bandwidth(const json_t *n, json_t *lines, struct err *e)
{
	json_int_t rate = json_integer_value(n);

	if (rate > 0 && rate < NET_BANDWIDTH_LEAST)
		return err_set(e, ERR_INVALID,
			       "network.bandwidth: %lld is less than %d bytes per second, which no "
			       "connection could use",
			       (long long)rate, NET_BANDWIDTH_LEAST);
	if (rate > 0)
		json_array_append_new(lines, json_sprintf("bandwidth %lld", (long long)rate));
	return 0;
}

static int network_read_number(const json_t *one, const char *name, uint64_t *out, struct err *e)
{
	const json_t *v = json_object_get(one, name);

	*out = 0;
	if (!v || json_is_null(v))
		return 0;
	if (json_is_string(v) && strcmp(name, "connections") != 0)
		return units_parse_size(json_string_value(v), out, e);
	if (!json_is_integer(v) || json_integer_value(v) < 1 ||
	    json_integer_value(v) > BANDWIDTH_MAX)
		return err_set(e, ERR_INVALID, "%s must be a number from 1 to %lld", name,
			       (long long)BANDWIDTH_MAX);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

static int network_read_budget(const json_t *one, json_t *lines, struct err *e)
{
	static const char *const names[] = { "rule", "bytes_in", "bytes_out", "connections" };
	const char *rule = json_string_value(json_object_get(one, "rule")), *name;
	uint64_t in, out, connections;
	char text[RULE_TEXT];
	struct net_rule r;
	json_t *v;

	json_object_foreach((json_t *)one, name, v)
	{
		unsigned i = 0;

		while (i < ARRAY_LEN(names) && strcmp(names[i], name) != 0)
			i++;
		if (i == ARRAY_LEN(names))
			return err_set(e, ERR_INVALID, "there is no member '%.40s'", name);
	}
	if (!rule)
		return err_set(e, ERR_INVALID, "rule must be a text, for example api.example.org");
	if (net_rule_parse(&r, rule, e) < 0 || network_read_number(one, "bytes_in", &in, e) < 0 ||
	    network_read_number(one, "bytes_out", &out, e) < 0 ||
	    network_read_number(one, "connections", &connections, e) < 0)
		return -1;
	json_array_append_new(lines,
			      json_sprintf("budget %llu %llu %llu %s", (unsigned long long)in,
					   (unsigned long long)out, (unsigned long long)connections,
					   net_rule_text(&r, text)));
	return 0;
}

static int network_read_budgets(const json_t *budgets, json_t *lines, struct err *e)
{
	json_t *one;
	size_t i;

	if (!json_is_array(budgets))
		return err_set(e, ERR_INVALID, "network.budgets must be a list");
	json_array_foreach((json_t *)budgets, i, one)
	{
		if (!json_is_object(one))
			return err_set(e, ERR_INVALID, "network.budgets[%zu] must be an object", i);
		if (network_read_budget(one, lines, e) < 0)
			return err_in(e, "network.budgets[%zu]", i);
	}
	return 0;
}

/* The text of the lines, within what egress accepts. */
static int network_dump(json_t *lines, char **out, struct err *e)
{
	struct net_policy p;
	auto_free char *dump = json_dumps(lines, JSON_COMPACT);
	auto_buf struct buf text = { 0 };

	box_network_text(dump, "", &text);
	if (text.len > NET_POLICY_TEXT) {
		err_set(e, ERR_LIMIT, "network: rules of %zu bytes are too many, at most %d",
			text.len, NET_POLICY_TEXT);
		e->sys = E2BIG;
		return -1;
	}
	if (net_policy_parse(&p, buf_str(&text), text.len, e) < 0) {
		e->kind = ERR_INVALID;
		return err_in(e, "network");
	}
	if (p.allow.n > RULES_MAX) {
		net_policy_fini(&p);
		return err_set(e, ERR_INVALID, "network.allow: %u rules are too many, at most %d",
			       p.allow.n, RULES_MAX);
	}
	net_policy_fini(&p);
	*out = json_array_size(lines) ? steal(&dump) : NULL;
	return 0;
}

int network_read_lines(struct call *c, const json_t *doc, const char *had, char **out,
		       struct err *e)
{
	const json_t *allow = json_object_get(doc, "allow"), *deny = json_object_get(doc, "deny"),
		     *ask = json_object_get(doc, "ask"), *rate = json_object_get(doc, "bandwidth"),
		     *links = json_object_get(doc, "links"),
		     *budgets = json_object_get(doc, "budgets");
	json_t *lines = json_array();
	int rc = 0;

	if (allow)
		rc = network_read_allow(c, allow, lines, e);
	else
		network_keep(had, "", lines);
	if (rc == 0 && deny)
		rc = network_read_deny(deny, lines, e);
	else
		network_keep(had, "deny", lines);
	if (!ask)
		network_keep(had, "ask", lines);
	else if (rc == 0 && json_is_true(ask))
		rc = network_read_ask(c, lines, e);
	if (rc == 0 && rate)
		rc = network_read_bandwidth(rate, lines, e);
	else
		network_keep(had, "bandwidth", lines);
	if (rc == 0 && budgets)
		rc = network_read_budgets(budgets, lines, e);
	else
		network_keep(had, "budget", lines);
	if (rc == 0 && links)
		rc = links_read(c, links, lines, e);
	else
		network_keep(had, "link", lines);
	if (rc == 0)
		rc = network_dump(lines, out, e);
	json_decref(lines);
	return rc;
}

int network_read_team_lines(const json_t *doc, char **out, struct err *e)
{
	const json_t *allow = json_object_get(doc, "allow");
	json_t *lines = json_array(), *text;
	struct net_rule r;
	size_t i;
	int rc = network_read_deny(json_object_get(doc, "deny"), lines, e);

	if (json_is_array(allow))
		json_array_append_new(lines, json_string("only"));
	json_array_foreach((json_t *)allow, i, text)
	{
		if (rc == 0 && net_rule_parse_allow(&r, json_string_value(text), e) < 0)
			rc = err_in(e, "allow[%zu]", i);
		if (rc == 0)
			network_add(lines, "", &r);
	}
	*out = rc == 0 && json_array_size(lines) ? json_dumps(lines, JSON_COMPACT) : NULL;
	json_decref(lines);
	return rc;
}

/* ---- show ---- */

void network_show(struct call *c)
{
	struct box *b = call_box_peek(c, 0);

	if (b)
		call_json(c, 200, egress_client_json(b));
}

void network_requests(struct call *c)
{
	struct box *b = call_box_peek(c, 0);

	if (b)
		call_list(c, egress_client_requests(b), NULL);
}

/* ---- approvals ---- */

static int network_add_line(struct box *b, const char *line, struct err *e)
{
	json_t *lines = json_array();
	char *had = b->row.network;

	network_keep(had, "", lines);
	json_array_append_new(lines, json_string(line));
	network_keep(had, "deny", lines);
	network_keep(had, "ask", lines);
	network_keep(had, "bandwidth", lines);
	network_keep(had, "budget", lines);
	network_keep(had, "link", lines);
	if (network_dump(lines, &b->row.network, e) < 0) {
		json_decref(lines);
		return -1;
	}
	json_decref(lines);
	if (box_changed(b, e) < 0) {
		free(b->row.network);
		b->row.network = had;
		return -1;
	}
	free(had);
	egress_client_change(b);
	return 0;
}

static int network_apply(struct call *c, struct box *b, const json_t *request, const char *decision,
			 struct err *e)
{
	const char *host = json_string_value(json_object_get(request, "host"));
	int v6 = strchr(host, ':') != NULL;
	char rule[RULE_TEXT], line[RULE_TEXT + 40];
	int64_t until_s = fleet_now_ns() / 1000000000 + call_int(c, "seconds", FOR_DEFAULT_S);

	snprintf(rule, sizeof(rule), "%s%s%s:%lld", v6 ? "[" : "", host, v6 ? "]" : "",
		 (long long)json_integer_value(json_object_get(request, "port")));
	if (!strcmp(decision, "for"))
		snprintf(line, sizeof(line), "until %lld %s", (long long)until_s, rule);
	else
		snprintf(line, sizeof(line), "%s", rule);
	if (!strcmp(decision, "for") || !strcmp(decision, "always"))
		return network_add_line(b, line, e);
	return egress_client_decide(b, call_param(c, 1), !strcmp(decision, "once"), e);
}

void network_decide(struct call *c)
{
	struct box *b = call_box_any(c, 0);
	const char *decision = call_text(c, "decision", "");
	json_t *request;
	struct err e;

	if (!b)
		return;
	if (c->who.box[0]) {
		call_error(c, 403, "denied",
			   "this key is bound to one box, and cannot approve its connections",
			   c->who.box, "an editor of the team can");
		return;
	}
	request = json_deep_copy(egress_client_request(b, call_param(c, 1)));
	if (!request) {
		call_error(c, 404, "not_found", "no connection waits with this id",
			   call_param(c, 1),
			   "it may have timed out (egress.ask_timeout); list those that wait: GET "
			   "/v1/boxes/BOX/network/requests");
		return;
	}
	if (network_apply(c, b, request, decision, &e) < 0) {
		json_decref(request);
		call_fail(c, &e);
		return;
	}
	call_audit_more(c, "network.decide", b->row.id, "ok",
			json_pack("{s:s, s:O, s:O}", "decision", decision, "host",
				  json_object_get(request, "host"), "port",
				  json_object_get(request, "port")));
	json_object_set_new(request, "decision", json_string(decision));
	fleet_emit(&c->api->fleet, b->row.team, b->row.id, "network.answered",
		   json_incref(request));
	network_answer(c, b, 200, request);
}
