/* network.c - see network.h.
 *
 *   not set              as e2b.internet: no hosts, or as in the next line
 *   internet: true       all hosts that the operator permits
 *   denyOut              removes addresses, and all hosts given by name: their addresses are not
 *                        known here
 *   allowOut             is added: each entry, as far as the operator permits it
 *   rules                set headers in requests to hosts; they allow no host */
#include "e2bcontrol/network.h"
#include "api/network_answer.h"
#include "base/cleanup.h"
#include "e2bcontrol/sandboxes.h"
#include "egress/net_rule.h"
#include "v1box/secrets.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { ENTRIES_MAX = 256 };

#define EGRESS_FIELDS                                                                                   \
	{ "allowOut", FIELD_TEXTS, 0,                                                                   \
	  0,          ENTRIES_MAX, "allowed targets: CIDR, address, name or *.name",                    \
	  NULL },                                                                                       \
		{ "denyOut", FIELD_TEXTS, 0, 0, ENTRIES_MAX, "denied targets: CIDR or address", NULL }, \
		{ "rules", FIELD_ANY,                                                                   \
		  0,       0,                                                                           \
		  0,       "headers that are set in requests: {host: [{transform: {headers}}]}",        \
		  NULL },                                                                               \
	{                                                                                               \
		"egressProxy", FIELD_ANY, 0, 0, 0, "not supported", NULL                                \
	}

const struct field network_fields[] = {
	EGRESS_FIELDS,
	{ "allowPublicTraffic", FIELD_BOOL, 0, 0, 0, "ports of the sandbox need no token", NULL },
	{ "maskRequestHost", FIELD_TEXT, 0, 0, 255,
	  "Host header of requests to ports of the sandbox", NULL },
	{ "httpsPorts", FIELD_ANY, 0, 0, 0, "not supported", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};
const struct field network_update_fields[] = {
	EGRESS_FIELDS,
	{ "allow_internet_access", FIELD_BOOL, 0, 0, 0,
	  "may reach all hosts that the server permits", NULL },
	{ .name = FIELDS_OTHERS },
	{ 0 },
};

void network_fini(struct network *n)
{
	json_decref(n->hosts);
	json_decref(n->headers);
	json_decref(n->said);
	*n = (struct network){ 0 };
}

/* ---- one entry ---- */

struct target {
	int range; /* addresses; else a name */
	int family;
	unsigned bits;
	uint8_t addr[16];
	struct net_rule name;
};

static int read_address(const char *text, struct target *out)
{
	out->range = 1;
	out->family = strchr(text, ':') ? AF_INET6 : AF_INET;
	out->bits = out->family == AF_INET ? 32 : 128;
	return inet_pton(out->family, text, out->addr) == 1 ? 0 : -1;
}

static int read_range(const char *text, struct target *out)
{
	const char *slash = strchr(text, '/');
	char addr[INET6_ADDRSTRLEN], *end;
	unsigned long bits;

	if ((size_t)(slash - text) >= sizeof(addr) || !slash[1] || strlen(slash + 1) > 3 ||
	    strspn(slash + 1, "0123456789") != strlen(slash + 1))
		return -1;
	snprintf(addr, sizeof(addr), "%.*s", (int)(slash - text), text);
	bits = strtoul(slash + 1, &end, 10);
	if (read_address(addr, out) < 0 || bits > out->bits)
		return -1;
	out->bits = (unsigned)bits;
	return 0;
}

static int read_target(const char *text, int names, struct target *out, struct err *e)
{
	*out = (struct target){ 0 };
	if (strchr(text, '/')) {
		if (read_range(text, out) < 0)
			return err_set(e, ERR_INVALID, "'%.60s' is not a CIDR", text);
		return 0;
	}
	if (read_address(text, out) == 0)
		return 0;
	out->range = 0;
	if (!names)
		return err_set(
			e, ERR_INVALID,
			"'%.60s' is neither an address nor a CIDR, and names cannot be denied",
			text);
	if (strchr(text, ':') || strchr(text, ' ') || net_rule_parse(&out->name, text, e) < 0 ||
	    out->name.kind > NET_RULE_BELOW)
		return err_set(e, ERR_INVALID, "'%.60s' is not an address, a CIDR or a host name",
			       text);
	return 0;
}

static int is_everything(const struct target *x)
{
	return x->range && x->bits == 0;
}

static int network_holds(const struct target *range, const char *host)
{
	uint8_t addr[16];
	unsigned whole = range->bits / 8, rest = range->bits % 8;

	if (inet_pton(range->family, host, addr) != 1 || memcmp(addr, range->addr, whole) != 0)
		return 0;
	return !rest || (addr[whole] ^ range->addr[whole]) >> (8 - rest) == 0;
}

/* The rule of an entry: all ports, because E2B's entries name none. */
static struct net_rule network_rule_of(const struct target *x)
{
	struct net_rule r = x->name;

	if (x->range) {
		uint8_t net[16] = { 0 };

		memcpy(net, x->addr, (x->bits + 7) / 8);
		if (x->bits % 8)
			net[x->bits / 8] &= (uint8_t)(0xff << (8 - x->bits % 8));
		r = (struct net_rule){ .kind = NET_RULE_RANGE, .bits = (uint8_t)x->bits };
		inet_ntop(x->family, net, r.host, sizeof(r.host));
	}
	r.port = 1;
	r.port_last = 65535;
	return r;
}

/* The part of the operator's rule that an entry requests. 0: none. */
static int network_meet(const struct target *x, const struct net_rule *permitted,
			struct net_rule *out)
{
	struct net_rule wide = *permitted, entry = network_rule_of(x);

	*out = *permitted;
	if (is_everything(x) || (x->range && network_holds(x, permitted->host)))
		return 1;
	wide.port = 1;
	wide.port_last = 65535;
	if (!x->range && net_rule_covers(&entry, &wide))
		return 1;
	if (!net_rule_covers(&wide, &entry))
		return 0;
	*out = entry;
	if (permitted->kind != NET_RULE_OPEN || permitted->port) {
		out->port = permitted->port;
		out->port_last = permitted->port_last;
	}
	return 1;
}

/* ---- all of them ---- */

struct targets {
	struct target *v;
	unsigned n;
	int names, everything;
};

static int read_targets(const json_t *from, const char *field, int names, struct targets *out,
			struct err *e)
{
	const json_t *list = json_object_get(from, field), *one;
	size_t i;

	*out = (struct targets){ .v = calloc(json_array_size(list) + 1, sizeof(*out->v)) };
	if (!out->v)
		abort();
	json_array_foreach(list, i, one)
	{
		struct target *x = &out->v[out->n];

		if (read_target(json_string_value(one), names, x, e) < 0)
			return err_in(e, "%s", field);
		out->n++;
		out->names |= !x->range;
		out->everything |= is_everything(x) && x->family == AF_INET;
	}
	return 0;
}

static int network_add(json_t *hosts, const struct net_rule *r, struct err *e)
{
	char text[RULE_TEXT];
	struct net_rule checked;
	const json_t *has;
	size_t i;

	net_rule_text(r, text);
	if (net_rule_parse_allow(&checked, text, e) < 0)
		return -1;
	json_array_foreach(hosts, i, has) if (!strcmp(json_string_value(has), text)) return 0;
	if (json_array_size(hosts) == RULES_MAX)
		return err_set(e, ERR_INVALID, "more than %d hosts", RULES_MAX);
	json_array_append_new(hosts, json_string(text));
	return 0;
}

static int is_denied(const struct targets *deny, const struct net_rule *r)
{
	if (!net_is_literal(r->host))
		return deny->n > 0;
	for (unsigned i = 0; i < deny->n; i++)
		if (network_holds(&deny->v[i], r->host))
			return 1;
	return 0;
}

static int network_fill(const struct api_conf *conf, int internet, const struct targets *allow,
			const struct targets *deny, json_t *hosts, struct err *e)
{
	struct net_rule met;

	for (unsigned i = 0; i < conf->nrules; i++) {
		const struct net_rule *r = &conf->rules[i];

		if (internet && !deny->everything && !is_denied(deny, r) &&
		    network_add(hosts, r, e) < 0)
			return -1;
		for (unsigned k = 0; k < allow->n; k++)
			if (network_meet(&allow->v[k], r, &met) && network_add(hosts, &met, e) < 0)
				return -1;
	}
	return 0;
}

static int refuse_others(const json_t *from, struct err *e)
{
	static const struct {
		const char *field, *why;
	} others[] = {
		{ "egressProxy",
		  "all egress goes through Atoll's own proxy, which uses no other proxy" },
		{ "httpsPorts", "ports of a sandbox are spoken to without TLS" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(others); i++) {
		const json_t *v = json_object_get(from, others[i].field);

		if (v && !json_is_null(v) && !(json_is_object(v) && !json_object_size(v)) &&
		    !(json_is_array(v) && !json_array_size(v)))
			return err_set(e, ERR_INVALID, "network.%s: %s", others[i].field,
				       others[i].why);
	}
	return 0;
}

/* ---- headers ---- */

/* Headers about the connection and the length of the body: only egress itself can write them. */
static int network_is_framing(const char *name)
{
	static const char *const own[] = {
		"host", "connection", "content-length", "upgrade", "transfer-encoding",
		"te",   "trailer",    "keep-alive",     "expect",  "proxy-authorization"
	};

	for (unsigned i = 0; i < ARRAY_LEN(own); i++)
		if (!strcasecmp(name, own[i]))
			return 1;
	return 0;
}

static int network_check_header(const char *name, const json_t *value, struct err *e)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
				    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *text = json_string_value(value), *why;

	if (!*name || strlen(name) > 128 || strspn(name, token) != strlen(name) ||
	    network_is_framing(name))
		return err_set(e, ERR_INVALID, "'%.60s' is not a header that can be set", name);
	if (!text)
		return err_set(e, ERR_INVALID, "%.60s: must be a text", name);
	if (strstr(text, "${e2b."))
		return err_set(e, ERR_INVALID,
			       "%.60s: placeholders \"${e2b...}\" are not supported", name);
	why = box_secrets_unfit("placeholder", text, json_string_length(value));
	return why ? err_set(e, ERR_INVALID, "%.60s: %s", name, why) : 0;
}

static int network_add_headers(const char *host, const json_t *headers, json_t *out, struct err *e)
{
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)headers, name, value)
	{
		if (network_check_header(name, value, e) < 0)
			return -1;
		if (json_array_size(out) == BOX_SECRETS_HEADERS)
			return err_set(e, ERR_LIMIT, "more than %d headers in all rules",
				       BOX_SECRETS_HEADERS);
		json_array_append_new(out, json_pack("{s:s, s:s, s:O}", "host", host, "name", name,
						     "value", value));
	}
	return 0;
}

/* [{transform: {headers: {name: value}}}] of one host; null and missing members set nothing. */
static int network_read_rules_of(const char *host, const json_t *list, json_t *out, struct err *e)
{
	struct net_rule rule;
	char text[RULE_TEXT];
	const json_t *one;
	size_t i;

	if (net_rule_parse_host(&rule, host, e) < 0)
		return -1;
	net_rule_text(&rule, text);
	if (!json_is_array(list))
		return err_set(e, ERR_INVALID, "must be an array of {transform: {headers}}");
	json_array_foreach(list, i, one)
	{
		const json_t *transform = json_object_get(one, "transform"),
			     *headers = json_object_get(transform, "headers");

		if (!json_is_object(one) ||
		    (transform && !json_is_null(transform) && !json_is_object(transform)) ||
		    (headers && !json_is_null(headers) && !json_is_object(headers)))
			return err_set(e, ERR_INVALID,
				       "must be an array of {transform: {headers}}");
		if (network_add_headers(text, headers, out, e) < 0)
			return -1;
	}
	return 0;
}

static int network_read_rules(const json_t *from, json_t *out, struct err *e)
{
	json_t *rules = json_object_get(from, "rules"), *list;
	const char *host;

	if (rules && !json_is_null(rules) && !json_is_object(rules))
		return err_set(e, ERR_INVALID, "network.rules: must be {host: [{transform}]}");
	json_object_foreach(rules, host, list) if (network_read_rules_of(host, list, out, e) <
						   0) return err_in(e, "network.rules.%.60s", host);
	return 0;
}

/* The rules as in the request, without the values: they may be keys of the caller. */
static json_t *network_said_rules(const json_t *headers)
{
	json_t *all = json_object(), *one;
	size_t i;

	json_array_foreach((json_t *)headers, i, one)
	{
		const char *host = json_string_value(json_object_get(one, "host"));
		json_t *has = json_object_get(all, host), *set;

		if (!has) {
			has = json_pack("[{s:{s:{}}}]", "transform", "headers");
			json_object_set_new(all, host, has);
		}
		set = json_object_get(json_object_get(json_array_get(has, 0), "transform"),
				      "headers");
		json_object_set_new(set, json_string_value(json_object_get(one, "name")),
				    json_string("[hidden]"));
	}
	return all;
}

static json_t *network_said(const json_t *from, const json_t *headers)
{
	static const char *const told[] = { "allowOut", "denyOut", "allowPublicTraffic",
					    "maskRequestHost" };
	json_t *doc = json_object();

	for (unsigned i = 0; i < ARRAY_LEN(told); i++)
		if (json_object_get(from, told[i]))
			json_object_set(doc, told[i], json_object_get(from, told[i]));
	if (json_array_size(headers))
		json_object_set_new(doc, "rules", network_said_rules(headers));
	return doc;
}

int network_read(const struct api *a, const json_t *from, int internet, struct network *out,
		 struct err *e)
{
	struct targets allow = { 0 }, deny = { 0 };
	json_t *hosts = json_array(), *headers = json_array();
	int ok = refuse_others(from, e) == 0 && network_read_rules(from, headers, e) == 0 &&
		 read_targets(from, "allowOut", 1, &allow, e) == 0 &&
		 read_targets(from, "denyOut", 0, &deny, e) == 0;

	deny.everything |= internet == 0;
	if (ok && allow.names && !deny.everything) {
		err_set(e, ERR_INVALID,
			"allowOut: names of hosts need \"0.0.0.0/0\" in denyOut, or nothing would be denied");
		ok = 0;
	}
	ok = ok && network_fill(&a->conf, internet < 0 ? a->conf.e2b_internet : internet, &allow,
				&deny, hosts, e) == 0;
	free(allow.v);
	free(deny.v);
	if (!ok) {
		json_decref(hosts);
		json_decref(headers);
		return -1;
	}
	*out = (struct network){ .hosts = hosts,
				 .registries = !deny.everything,
				 .headers = headers,
				 .said = network_said(from, headers) };
	return 0;
}

/* ---- of a sandbox that runs ---- */

/* The settings of its ports are kept: the update concerns outgoing connections alone. */
static void keep_ports(const struct box *b, json_t *now)
{
	json_t *before = e2b_box_more(b, "network");

	json_object_del(before, "allowOut");
	json_object_del(before, "denyOut");
	json_object_del(before, "rules");
	json_object_update_missing(now, before);
	json_decref(before);
}

/* What a change replaces in the row of a box. */
struct network_columns {
	char *surface, *network, *metadata, *secrets;
};

static struct network_columns network_swap(struct box *b, struct network_columns next)
{
	struct network_columns old = { b->row.surface, b->row.network, b->row.metadata,
				       b->row.secrets };

	b->row.surface = next.surface;
	b->row.network = next.network;
	b->row.metadata = next.metadata;
	b->row.secrets = next.secrets;
	return old;
}

static void network_columns_fini(struct network_columns *x)
{
	free(x->surface);
	free(x->network);
	free(x->metadata);
	free(x->secrets);
}

static int network_take(struct call *c, struct box *b, struct network *n, int internet,
			struct err *e)
{
	struct network_columns next = { 0 }, old;
	char *surface;

	if (!json_array_size(n->headers) && !box_secrets_any(b))
		next.secrets = b->row.secrets ? strdup(b->row.secrets) : NULL;
	else if (secrets_set_headers(c, b->row.secrets, n->headers, &next.secrets, e) < 0)
		return -1;
	keep_ports(b, n->said);
	surface = e2b_box_text_with(b->row.surface, "network", json_incref(n->said));
	next.surface = e2b_box_text_with(surface, "internet",
					 internet < 0 ? json_null() : json_boolean(internet));
	free(surface);
	next.network = json_array_size(n->hosts) ? json_dumps(n->hosts, JSON_COMPACT) : NULL;
	next.metadata =
		box_metadata_with(b->row.metadata, BOX_REGISTRIES, n->registries ? "1" : "0");
	old = network_swap(b, next);
	if (box_changed(b, e) < 0) {
		next = network_swap(b, old);
		network_columns_fini(&next);
		return -1;
	}
	box_read_marks(b);
	network_columns_fini(&old);
	return 0;
}

/* Programs of the box trust the certificates of egress from here on: answers the requests that wait
 * for it. */
static void network_placed(struct box *b, const struct err *e)
{
	struct api *a = loop_owner(b->fleet, struct api, fleet);

	for (struct call *c = a->calls, *next; c; c = next) {
		next = c->next;
		if (!c->row || c->row->run != network_put || c->drop ||
		    strcmp(c->held, b->row.id) != 0)
			continue;
		if (e)
			call_fail(c, e);
		else
			network_answer(c, b, 204, NULL);
	}
}

void network_put(struct call *c)
{
	struct box *b = sandboxes_find(c);
	int internet = call_get(c, "allow_internet_access")
			       ? call_flag(c, "allow_internet_access", 0)
			       : -1;
	struct network n = { 0 };
	struct err e;

	if (!b)
		return;
	if (sandboxes_paused(b)) {
		call_error(c, 409, "conflict", "this sandbox is paused", b->row.id, NULL);
		return;
	}
	if (network_read(c->api, c->body, internet, &n, &e) < 0 ||
	    network_take(c, b, &n, internet, &e) < 0) {
		call_fail(c, &e);
	} else {
		egress_client_change(b);
		call_hold(c, b);
		if (!json_array_size(n.headers) || !box_secrets_place(b, network_placed))
			network_answer(c, b, 204, NULL);
	}
	network_fini(&n);
}
