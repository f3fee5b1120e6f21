/* net_rule_test.c - rules about destinations: their text, what they fit, and the decision of judge.c
 * from the rules of operator, team and box. */
#include "base/cleanup.h"
#include "egress/judge.h"
#include "tap.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- text ---- */

static const char *again(const char *text)
{
	static char out[RULE_TEXT];
	static struct err e;
	struct net_rule r;

	return net_rule_parse(&r, text, &e) < 0 ? e.msg : net_rule_text(&r, out);
}

TEST(a_rule_is_parsed_and_printed)
{
	const struct {
		const char *text, *said;
	} rows[] = {
		{ "registry.example", "registry.example" },
		{ "Registry.EXAMPLE", "registry.example" },
		{ "registry.example:8080", "registry.example:8080" },
		{ "registry.example:8000-8100", "registry.example:8000-8100" },
		{ "registry.example:80-80", "registry.example:80" },
		{ "registry.example:*", "registry.example:*" },
		{ "registry.example:1-65535", "registry.example:*" },
		{ "*.example", "*.example" },
		{ "*.example:443", "*.example:443" },
		{ "127.0.0.1:80", "127.0.0.1:80" },
		{ "[::1]:80", "[::1]:80" },
		{ "[0:0::0:1]", "[::1]" },
		{ "a_b.example", "a_b.example" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "10.1.0.0/16", "10.1.0.0/16" },
		{ "10.1.0.0/16:5432", "10.1.0.0/16:5432" },
		{ "0.0.0.0/0", "0.0.0.0/0" },
		{ "192.0.2.7/32:1-9", "192.0.2.7/32:1-9" },
		{ "2001:db8::/32", "[2001:db8::]/32" },
		{ "[2001:DB8::]/32:443", "[2001:db8::]/32:443" },
		{ "::/0", "[::]/0" },
		{ "open", "open" },
		{ "open:443", "open:443" },
		{ "Open", "open" }, /* and not a host that prints as open */
		{ "openssl.example", "openssl.example" },
		{ "GET,HEAD api.example/v1/*", "GET,HEAD api.example/v1/*" },
		{ "api.example/v1/*", "api.example/v1/*" },
		{ "POST api.example:8080", "POST api.example:8080" },
		{ "GET api.example:8080/", "GET api.example:8080/" },
		{ "10.0.0.1/v1", "10.0.0.1/v1" },
		{ "10.0.0.1:80/8", "10.0.0.1:80/8" },
		{ "M-SEARCH a.example", "M-SEARCH a.example" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK_STR(again(rows[i].text), rows[i].said);
		CHECK_STR(again(rows[i].said), rows[i].said);
	}
}

/* Notations that a resolver or a server could take for something else, among others. */
TEST(an_invalid_rule_is_rejected_with_its_reason)
{
	const struct {
		const char *text, *why;
	} rows[] = {
		{ "", "empty" },
		{ "*", "letters" },
		{ "*.", "empty" },
		{ "a..b", "label" },
		{ ".a", "label" },
		{ "127.1", "four decimal" },
		{ "0x7f.1", "four decimal" },
		{ "0177.0.0.1", "four decimal" },
		{ "2130706433", "four decimal" },
		{ "127.0.0.01", "four decimal" },
		{ "1.2.3.4.5", "four decimal" },
		{ "a:0", "1 to 65535" },
		{ "a:65536", "1 to 65535" },
		{ "a:080", "1 to 65535" },
		{ "a:", "1 to 65535" },
		{ "a:1:2", "1 to 65535" },
		{ "a:5-", "1 to 65535" },
		{ "a:-5", "1 to 65535" },
		{ "a:9-5", "smaller" },
		{ "a:0-5", "1 to 65535" },
		{ "::1", "empty" },
		{ "[::1", "']'" },
		{ "[::1]x", "other text" },
		{ "[fe80::1%lo]", "IPv6" },
		{ "[::ffff:127.0.0.1]", "IPv4 address inside" },
		{ "[::ffff:7f00:1]", "IPv4 address inside" },
		{ "[::127.0.0.1]", "IPv4 address inside" },
		{ "a b", "methods" },
		{ "get a.example", "methods" },
		{ "GET, a.example", "methods" },
		{ "CONNECT a.example", "CONNECT" },
		{ "GET", NULL }, /* a host */
		{ "GET ", "empty" },
		{ "u@h", "user" },
		{ "a\nb", "letters" },
		{ "*.127.0.0.1", "not by an address" },
		{ "*.10.0.0.0/8", "not by an address" },
		{ "*.*.example", "letters" },
		{ "a.*.example", "letters" },
		{ "ex\xc3\xa4mple", "ASCII" },
		{ "a#b", "letters" },
		{ "a?b", "letters" },
		{ "registry.example.", "final dot" },
		{ "http://a.example", "without http" },
		{ "https://a.example/", "without http" },
		{ "10.0.0.0/33", "range" },
		{ "10.0.0.0/08", "range" },
		{ "10.0.0.1/8", "first address" },
		{ "2001:db8::1/32", "first address" },
		{ "2001:db8::/129", "range" },
		{ "a.example/v1?x", "path" },
		{ "a.example/v 1", "methods" },
		{ "open/v1", "after a port" },
		{ "Open/v1", "after a port" },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_rule r;
		struct err e = { 0 };
		int rc = net_rule_parse(&r, rows[i].text, &e);

		if (rc != (rows[i].why ? -1 : 0) || (rows[i].why && !strstr(e.msg, rows[i].why)))
			printf("# '%s': %s\n", rows[i].text, rc ? e.msg : "taken");
		CHECK_INT(rc, rows[i].why ? -1 : 0);
		CHECK(!rows[i].why || strstr(e.msg, rows[i].why));
		CHECK(!rows[i].why || e.kind == ERR_INVALID);
	}
}

TEST(addresses_that_are_never_reached_cannot_be_allowed)
{
	static const char *const never[] = { "0.0.0.0",        "0.0.0.0:80",    "169.254.169.254",
					     "169.254.0.0/16", "224.0.0.0/4",   "[fe80::]/10",
					     "ff02::/16",      "168.63.129.16", "[2002::]/16" };
	static const char *const maybe[] = { "0.0.0.0/0", "10.0.0.0/8", "127.0.0.2",
					     "open",      "[fc00::]/7", "8.8.8.8" };
	struct net_rule r;
	struct err e;

	for (unsigned i = 0; i < ARRAY_LEN(never); i++) {
		CHECK(net_rule_parse_allow(&r, never[i], &e) < 0);
		CHECK(strstr(e.msg, "never reached") != NULL);
		CHECK(net_rule_parse(&r, never[i], &e) == 0); /* may be denied */
	}
	for (unsigned i = 0; i < ARRAY_LEN(maybe); i++)
		CHECK(net_rule_parse_allow(&r, maybe[i], &e) == 0);
}

TEST(the_host_of_a_registry_url_is_parsed)
{
	const struct {
		const char *url, *rule;
	} rows[] = {
		{ "https://pip.example/simple", "pip.example:443" },
		{ "http://pip.example", "pip.example:80" },
		{ "https://pip.example:8443/x?y", "pip.example:8443" },
	};
	struct net_rule r;
	struct err e;
	char text[RULE_TEXT];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		CHECK(net_rule_of_url(&r, rows[i].url, &e) == 0);
		CHECK_STR(net_rule_text(&r, text), rows[i].rule);
	}
	CHECK(net_rule_of_url(&r, "https://user:word@pip.example/", &e) < 0);
	CHECK(net_rule_of_url(&r, "ftp://pip.example/", &e) < 0);
	CHECK(net_rule_of_url(&r, "", &e) < 0);
}

/* ---- matching ---- */

TEST(a_rule_fits_hosts_and_ports)
{
	const struct {
		const char *rule, *host;
		uint16_t port;
		int allows, denies;
	} rows[] = {
		{ "a.example", "a.example", 443, 1, 1 },
		{ "a.example", "a.example", 80, 1, 1 },
		{ "a.example", "a.example", 22, 0, 1 },
		{ "a.example:22", "a.example", 22, 1, 1 },
		{ "a.example:22", "a.example", 443, 0, 0 },
		{ "a.example:20-30", "a.example", 20, 1, 1 },
		{ "a.example:20-30", "a.example", 30, 1, 1 },
		{ "a.example:20-30", "a.example", 31, 0, 0 },
		{ "a.example:*", "a.example", 65535, 1, 1 },
		{ "a.example", "b.a.example", 443, 0, 0 },
		{ "*.example", "a.example", 443, 1, 1 },
		{ "*.example", "a.b.example", 443, 1, 1 },
		{ "*.example", "example", 443, 0, 0 },
		{ "*.example", "badexample", 443, 0, 0 },
		{ "*.example", "a.badexample", 443, 0, 0 },
		{ "*.example", "a.example.org", 443, 0, 0 },
		{ "10.1.0.0/16", "10.1.2.3", 80, 1, 1 },
		{ "10.1.0.0/16", "10.2.0.0", 80, 0, 0 },
		{ "10.1.0.0/16", "10.1.2.3", 22, 0, 1 },
		{ "10.1.0.0/17", "10.1.128.0", 80, 0, 0 },
		{ "10.1.0.0/17", "10.1.127.255", 80, 1, 1 },
		{ "0.0.0.0/0", "a.example", 80, 0, 0 },
		{ "0.0.0.0/0", "2001:db8::1", 80, 0, 0 },
		{ "2001:db8::/32", "2001:db8::7", 80, 1, 1 },
		{ "open", "a.example", 22, 1, 1 },
		{ "open:22", "a.example", 23, 0, 0 },
		{ "open", "10.0.0.1", 22, 1, 1 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_target t = { .host = rows[i].host, .port = rows[i].port };
		struct net_rule r;
		struct err e;

		CHECK(net_rule_parse(&r, rows[i].rule, &e) == 0);
		CHECK_INT(net_rule_allows(&r, &t) == NET_FIT_YES, rows[i].allows);
		CHECK_INT(net_rule_denies(&r, &t), rows[i].denies);
	}
}

TEST(methods_and_paths_are_compared_where_they_can_be_read)
{
	const struct {
		const char *rule, *method, *path;
		enum net_fit allows;
	} rows[] = {
		{ "GET,HEAD a.example", "GET", "/", NET_FIT_YES },
		{ "GET,HEAD a.example", "HEAD", "/x", NET_FIT_YES },
		{ "GET,HEAD a.example", "POST", "/", NET_FIT_NO },
		{ "GET,HEAD a.example", "GE", "/", NET_FIT_NO },
		{ "GET,HEAD a.example", NULL, NULL, NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/", NET_FIT_YES },
		{ "a.example/v1/*", "GET", "/v1/a/b?q=/../", NET_FIT_YES },
		{ "a.example/v1/*", "GET", "/v1", NET_FIT_NO },
		{ "a.example/v1/*", "GET", "/v2/", NET_FIT_NO },
		{ "a.example/v1/*", "GET", "/v1/../admin", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/..", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/./a", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/%2e%2e/admin", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/..%2fadmin", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/..;/admin", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1//admin", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/\\..\\admin", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/%61", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/%", NET_FIT_HIDDEN },
		{ "a.example/v1/*", "GET", "/v1/...", NET_FIT_YES },
		{ "a.example/v1/*", "GET", "/v1/a%20b%C3%A4", NET_FIT_YES },
		{ "a.example/", "GET", "", NET_FIT_YES },
		{ "a.example/", "GET", "?a", NET_FIT_YES },
		{ "a.example/*/x*y", "GET", "/a/b/xzzy", NET_FIT_YES },
		{ "a.example/*/x*y", "GET", "/a/b/xzz", NET_FIT_NO },
		{ "a.example/*aaaaaaaaaaaaaaaab", "GET", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		  NET_FIT_NO },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_target t = { .host = "a.example",
					.port = 80,
					.method = rows[i].method,
					.path = rows[i].path };
		struct net_rule r;
		struct err e;

		CHECK(net_rule_parse(&r, rows[i].rule, &e) == 0);
		CHECK_INT(net_rule_allows(&r, &t), rows[i].allows);
		/* A request that cannot be compared is not permitted, and is denied. */
		CHECK_INT(net_rule_denies(&r, &t), rows[i].allows != NET_FIT_NO);
	}
}

TEST(the_rules_of_a_box_are_limited_to_those_of_the_operator)
{
	const struct {
		const char *wide, *narrow;
		int so;
	} rows[] = {
		{ "a.example", "a.example", 1 },
		{ "a.example", "a.example:443", 1 },
		{ "a.example", "a.example:22", 0 },
		{ "a.example:443", "a.example", 1 },
		{ "a.example:22", "a.example", 0 },
		{ "a.example", "*.a.example", 0 },
		{ "*.example", "a.example", 1 },
		{ "*.example", "*.a.example", 1 },
		{ "*.example", "*.example", 1 },
		{ "*.example", "example", 0 },
		{ "*.a.example", "*.example", 0 },
		{ "a.example", "b.example", 0 },
		{ "a.example:*", "a.example:1-9", 1 },
		{ "a.example:5-9", "a.example:1-9", 0 },
		{ "10.0.0.0/8", "10.1.0.0/16", 1 },
		{ "10.1.0.0/16", "10.0.0.0/8", 0 },
		{ "10.0.0.0/8", "10.1.2.3", 1 },
		{ "10.0.0.0/8", "a.example", 0 },
		{ "open", "a.example:22", 1 },
		{ "open", "open", 1 },
		{ "a.example", "open", 0 },
		{ "open:443", "a.example", 1 },
		{ "open:22", "a.example", 0 },
		{ "10.0.0.0/8", "open", 0 },
		{ "10.0.0.0/8", "*.example", 0 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct net_rule wide, narrow;
		struct err e;

		CHECK(net_rule_parse(&wide, rows[i].wide, &e) == 0);
		CHECK(net_rule_parse(&narrow, rows[i].narrow, &e) == 0);
		CHECK_INT(net_rule_covers(&wide, &narrow), rows[i].so);
	}
}

/* ---- the decision ---- */

static struct net_rule own[8], own_deny[8];
static struct egress egress = { .conf = { .rules = own, .deny = own_deny } };
static struct egress_endpoint way = { .egress = &egress, .id = "abcdefghijkl" };
static struct judgement judged;

/* operator: rules, "!" in front: egress.deny, "~": egress.allow_internal. */
static void rules(const char *const *operator, const char * box)
{
	struct err e;

	egress.conf.nrules = egress.conf.ndeny = 0;
	for (; *operator; operator++) {
		int deny = **operator== '!', internal = **operator== '~';
		struct net_rule *r =
			deny ? &own_deny[egress.conf.ndeny++] : &own[egress.conf.nrules++];

		if (net_rule_parse(r, *operator+(deny || internal), &e) < 0)
			abort();
		r->internal = (uint8_t)internal;
	}
	net_policy_fini(&way.policy);
	if (net_policy_parse(&way.policy, box, strlen(box), &e) < 0) {
		printf("# %s\n", e.msg);
		abort();
	}
}

static const char *judge(const char *host, uint16_t port)
{
	struct judge_request r = { .way = &way, .host = host, .port = port };

	return judge_verdict_name(judge_host(&r, &judged));
}

static const char *judge_to(const char *host, uint16_t port, const char *address)
{
	struct judge_request r = { .way = &way, .host = host, .port = port };
	struct name_address to = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)&to.to;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&to.to;

	if (judge_host(&r, &judged) != VERDICT_OK)
		return judge_verdict_name(judged.verdict);
	if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		to.len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		to.len = sizeof(*v6);
	}
	return judge_verdict_name(judge_addresses(&r, &to, 1, &judged));
}

#define OPERATOR(...) ((const char *const[]){ __VA_ARGS__, NULL })

TEST(a_destination_needs_operator_team_and_box)
{
	rules(OPERATOR("*.example", "b.test"), "a.example\nb.test\nc.test");
	CHECK_STR(judge("a.example", 443), "ok");
	CHECK_STR(judged.rule, "a.example");
	CHECK_STR(judge("b.example", 443), "denied");
	CHECK_STR(judged.hint, "To allow it: atoll net allow abcdefghijkl b.example:443");
	CHECK_STR(judge("c.test", 443), "denied");
	CHECK(strstr(judged.hint, "egress.allow") != NULL);
	rules(OPERATOR("*.example"), "open\nteam only\nteam a.example");
	CHECK_STR(judge("a.example", 443), "ok");
	CHECK_STR(judge("b.example", 443), "denied");
	CHECK(strstr(judged.why, "team") != NULL);
	rules(OPERATOR("*.example"), "open\nteam only");
	CHECK_STR(judge("a.example", 443), "denied");
	rules(OPERATOR("*.example"), "open\nteam deny b.example");
	CHECK_STR(judge("a.example", 443), "ok");
	CHECK_STR(judge("b.example", 443), "denied");
}

TEST(deny_wins_over_allow_at_every_level)
{
	const char *const operator[] = { "open", "!bad.example", "!192.0.2.0/24", NULL };

	rules(operator,
	      "open\na.example:*\ndeny a.example\nteam only\nteam open\nteam deny t.example");
	CHECK_STR(judge("a.example", 443), "denied");
	CHECK_STR(judged.rule, "deny a.example");
	CHECK_STR(judge("a.example", 22), "denied");
	CHECK_STR(judge("bad.example", 80), "denied");
	CHECK_STR(judge("t.example", 80), "denied");
	CHECK_STR(judge("c.example", 80), "ok");
	CHECK_STR(judge_to("c.example", 80, "93.184.216.34"), "ok");
	/* A range is also compared with what a name resolves to. */
	CHECK_STR(judge_to("c.example", 80, "192.0.2.9"), "denied");
	rules(OPERATOR("open"), "open\ndeny 93.184.0.0/16:22");
	CHECK_STR(judge_to("c.example", 80, "93.184.216.34"), "ok");
	CHECK_STR(judge_to("c.example", 22, "93.184.216.34"), "denied");
	CHECK_STR(judge("93.184.216.34", 22), "denied");
}

TEST(an_internal_address_needs_the_operator_and_a_rule_that_names_it)
{
	rules(OPERATOR("open", "~db.corp:5432", "~10.1.0.0/16:*", "*.corp:*"),
	      "open\ndb.corp:5432\n10.1.2.3:9");
	CHECK_STR(judge_to("x.example", 80, "10.1.0.1"), "internal");
	CHECK_STR(judge_to("x.example", 80, "127.0.0.1"), "internal");
	CHECK_STR(judge_to("db.corp", 5432, "10.9.9.9"), "ok");
	CHECK_STR(judge_to("db.corp", 5433, "10.9.9.9"), "internal"); /* by open only */
	CHECK_STR(judge_to("10.1.2.3", 9, "10.1.2.3"), "ok");
	CHECK_STR(judge_to("10.1.2.4", 9, "10.1.2.4"), "internal");
	CHECK_STR(judge_to("10.2.0.1", 80, "10.2.0.1"), "internal");
	/* Never, whatever the rules say. */
	CHECK_STR(judge_to("db.corp", 5432, "169.254.169.254"), "internal");
	CHECK_STR(judge_to("0.0.0.0", 80, "0.0.0.0"), "internal");
	/* A name whose address is in a range of egress.allow_internal. */
	rules(OPERATOR("*.corp:*", "~10.1.0.0/16:*"), "a.corp:80");
	CHECK_STR(judge_to("a.corp", 80, "10.1.0.1"), "ok");
	CHECK_STR(judge_to("a.corp", 80, "10.2.0.1"), "internal");
}

TEST(a_destination_without_a_rule_asks_if_the_operator_permits_it)
{
	rules(OPERATOR("*.example"), "ask\na.example\ndeny d.example");
	CHECK_STR(judge("a.example", 80), "ok");
	CHECK_STR(judge("b.example", 80), "ask");
	CHECK_STR(judge("d.example", 80), "denied");
	CHECK_STR(judge("b.test", 80), "denied");
	CHECK_INT(judge_name(&way, "b.example", &judged), VERDICT_OK);
	CHECK_INT(judge_name(&way, "a.example", &judged), VERDICT_OK);
	CHECK_INT(judge_name(&way, "b.test", &judged), VERDICT_DENIED);
}

TEST(a_rule_with_an_end_is_ignored_after_it)
{
	char text[100];

	snprintf(text, sizeof(text), "until %lld a.example\nuntil 1000 b.example",
		 (long long)time(NULL) + 1000);
	rules(OPERATOR("open"), text);
	CHECK_STR(judge("a.example", 80), "ok");
	CHECK_STR(judge("b.example", 80), "denied");
}

TEST(a_rule_about_http_does_not_permit_a_tunnel)
{
	struct judge_request r = { .way = &way, .host = "a.example", .port = 80 };

	rules(OPERATOR("*.example"), "GET a.example/v1/*");
	r.method = "GET";
	r.path = "/v1/x";
	CHECK_INT(judge_host(&r, &judged), VERDICT_OK);
	r.path = "/v2";
	CHECK_INT(judge_host(&r, &judged), VERDICT_DENIED);
	r.method = "CONNECT";
	r.path = NULL;
	CHECK_INT(judge_host(&r, &judged), VERDICT_DENIED);
	CHECK(strstr(judged.why, "plain HTTP") != NULL);
}

TEST(lines_of_rules_are_checked)
{
	static const char *const bad[] = { "a b",
					   "deny a b",
					   "until a.example",
					   "until 5",
					   "bandwidth 5",
					   "bandwidth 1M",
					   "team a b",
					   "\n",
					   "deny 1.2.3",
					   "169.254.1.1",
					   "team 0.0.0.0",
					   "budget 1 2 a.example",
					   "budget 1 2 3 GET a.example",
					   "budget 1 2 3" };
	static const char good[] = "ask\nbandwidth 4096\na.example\ndeny b.example";
	struct net_policy p = { 0 };
	struct err e;
	char many[4096] = "";

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		if (net_policy_parse(&p, bad[i], strlen(bad[i]), &e) == 0)
			printf("# taken: '%s'\n", bad[i]);
		CHECK(net_policy_parse(&p, bad[i], strlen(bad[i]), &e) < 0);
	}
	CHECK(net_policy_parse(&p, good, strlen(good), &e) == 0);
	CHECK(p.ask && p.bandwidth == 4096 && p.allow.n == 1 && p.deny.n == 1 && !p.team_only);
	net_policy_fini(&p);
	for (int i = 0; i < NET_POLICY_RULES + 1; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "a%d.example\n", i);
	CHECK(net_policy_parse(&p, many, strlen(many), &e) < 0 && e.kind == ERR_LIMIT);
	net_policy_fini(&way.policy);
}
