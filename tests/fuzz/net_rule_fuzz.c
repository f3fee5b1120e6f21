/* net_rule_fuzz.c - a rule that is accepted prints as text that is accepted again and prints the same;
 * it fits no host that is not in canonical form. Lines of rules never crash the parser. */
#include "egress/net_policy.h"
#include "fuzz.h"

#include <assert.h>
#include <string.h>

static void check_rule(const char *text)
{
	char first[RULE_TEXT], second[RULE_TEXT];
	struct net_rule r, again;
	struct net_target t = { .host = "a.example", .port = 80, .method = "GET", .path = text };
	struct err e;

	if (net_rule_parse(&r, text, &e) < 0) {
		assert(e.kind == ERR_INVALID);
		return;
	}
	net_rule_text(&r, first);
	assert(net_rule_parse(&again, first, &e) == 0);
	assert(!strcmp(net_rule_text(&again, second), first));
	assert(net_rule_covers(&r, &again));
	(void)net_rule_allows(&r, &t);
	(void)net_rule_denies(&r, &t);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct net_policy p;
	char text[1024];
	struct err e;

	if (len >= sizeof(text))
		return 0;
	memcpy(text, bytes, len);
	text[len] = 0;
	check_rule(text);
	if (net_policy_parse(&p, text, len, &e) == 0)
		net_policy_fini(&p);
	else
		assert(e.kind == ERR_INVALID || e.kind == ERR_LIMIT);
	return 0;
}
