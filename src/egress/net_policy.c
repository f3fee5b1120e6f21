/* net_policy.c - see net_policy.h. */
#include "egress/net_policy.h"

#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

static int list_add(struct net_list *l, const char *text, int allow, int64_t until_s, struct err *e)
{
	if (l->n == NET_POLICY_RULES)
		return err_set(e, ERR_LIMIT, "more than %d rules", NET_POLICY_RULES);
	if (!l->v) {
		l->v = calloc(NET_POLICY_RULES, sizeof(*l->v));
		l->until_s = calloc(NET_POLICY_RULES, sizeof(*l->until_s));
		if (!l->v || !l->until_s)
			abort();
	}
	if ((allow ? net_rule_parse_allow(&l->v[l->n], text, e)
		   : net_rule_parse(&l->v[l->n], text, e)) < 0)
		return -1;
	l->until_s[l->n++] = until_s;
	return 0;
}

/* The text after the word and a space; NULL: the line starts with another word. */
static const char *line_after(const char *line, const char *word)
{
	size_t n = strlen(word);

	return strncmp(line, word, n) == 0 && line[n] == ' ' ? line + n + 1 : NULL;
}

static int line_number(const char *text, uint64_t *out, const char **out_end)
{
	uint64_t v = 0;
	size_t n = strspn(text, "0123456789");

	for (size_t i = 0; i < n && n <= 18; i++)
		v = v * 10 + (unsigned)(text[i] - '0');
	*out = v;
	*out_end = text + n;
	return n && n <= 18 ? 0 : -1;
}

static int policy_take_until(struct net_policy *p, const char *text, struct err *e)
{
	const char *rule;
	uint64_t until;

	if (line_number(text, &until, &rule) < 0 || *rule != ' ')
		return err_set(e, ERR_INVALID, "'until %.40s' has no time and rule", text);
	return list_add(&p->allow, rule + 1, 1, (int64_t)until, e);
}

static int policy_take_bandwidth(struct net_policy *p, const char *text, struct err *e)
{
	const char *end;

	if (line_number(text, &p->bandwidth, &end) < 0 || *end ||
	    p->bandwidth < NET_BANDWIDTH_LEAST)
		return err_set(e, ERR_INVALID, "'bandwidth %.40s' is not a number from %d", text,
			       NET_BANDWIDTH_LEAST);
	return 0;
}

static int policy_take_budget(struct net_policy *p, const char *text, struct err *e)
{
	struct net_budget b;
	const char *at = text;
	uint64_t *const numbers[] = { &b.bytes_in, &b.bytes_out, &b.connections };

	if (p->nbudgets == NET_BUDGETS)
		return err_set(e, ERR_LIMIT, "more than %d budgets", NET_BUDGETS);
	for (unsigned i = 0; i < 3; i++) {
		if (line_number(at, numbers[i], &at) < 0 || *at != ' ')
			return err_set(e, ERR_INVALID, "'budget %.40s' has no three numbers", text);
		at++;
	}
	if (net_rule_parse(&b.rule, at, e) < 0)
		return -1;
	if (b.rule.methods[0] || b.rule.path[0])
		return err_set(e, ERR_INVALID,
			       "a budget is for destinations, not for methods and paths: '%.60s'",
			       at);
	if (!p->budgets)
		p->budgets = calloc(NET_BUDGETS, sizeof(*p->budgets));
	if (!p->budgets)
		abort();
	p->budgets[p->nbudgets++] = b;
	return 0;
}

static int policy_take_team(struct net_policy *p, const char *line, struct err *e)
{
	const char *denied = line_after(line, "deny");

	if (strcmp(line, "only") == 0) {
		p->team_only = 1;
		return 0;
	}
	return denied ? list_add(&p->team_deny, denied, 0, 0, e)
		      : list_add(&p->team_allow, line, 1, 0, e);
}

static int policy_take(struct net_policy *p, const char *line, struct err *e)
{
	const char *rest;

	if (line_after(line, "link"))
		return 0;
	if ((rest = line_after(line, "team")))
		return policy_take_team(p, rest, e);
	if ((rest = line_after(line, "deny")))
		return list_add(&p->deny, rest, 0, 0, e);
	if ((rest = line_after(line, "until")))
		return policy_take_until(p, rest, e);
	if ((rest = line_after(line, "bandwidth")))
		return policy_take_bandwidth(p, rest, e);
	if ((rest = line_after(line, "budget")))
		return policy_take_budget(p, rest, e);
	if (strcmp(line, "ask") == 0) {
		p->ask = 1;
		return 0;
	}
	return list_add(&p->allow, line, 1, 0, e);
}

static void list_fini(struct net_list *l)
{
	free(l->v);
	free(l->until_s);
	*l = (struct net_list){ 0 };
}

/* Lists are allocated for NET_POLICY_RULES rules while they are read. */
static void list_fit(struct net_list *l)
{
	struct net_rule *v = l->n ? realloc(l->v, l->n * sizeof(*l->v)) : NULL;

	if (v)
		l->v = v;
}

int net_policy_parse(struct net_policy *out, const char *text, size_t n, struct err *e)
{
	struct net_policy p = { 0 };
	char line[RULE_TEXT + 40];

	while (n) {
		const char *end = memchr(text, '\n', n);
		size_t len = end ? (size_t)(end - text) : n;
		int bad = len >= sizeof(line) || memchr(text, 0, len);

		if (bad)
			err_set(e, ERR_INVALID, "a rule of %zu bytes, or with a zero byte", len);
		if (!bad) {
			memcpy(line, text, len);
			line[len] = 0;
			bad = policy_take(&p, line, e) < 0;
		}
		if (bad) {
			net_policy_fini(&p);
			return -1;
		}
		text += len + !!end;
		n -= len + !!end;
	}
	list_fit(&p.allow);
	list_fit(&p.deny);
	list_fit(&p.team_allow);
	list_fit(&p.team_deny);
	*out = p;
	return 0;
}

void net_policy_fini(struct net_policy *p)
{
	list_fini(&p->allow);
	list_fini(&p->deny);
	list_fini(&p->team_allow);
	list_fini(&p->team_deny);
	free(p->budgets);
	*p = (struct net_policy){ 0 };
}

/* ---- matching ---- */

static enum net_fit list_fits(const struct net_list *l, unsigned i, const struct net_target *t,
			      int64_t now_s)
{
	if (l->until_s && l->until_s[i] && l->until_s[i] <= now_s)
		return NET_FIT_NO;
	return net_rule_allows(&l->v[i], t);
}

const struct net_rule *net_list_allows(const struct net_list *l, const struct net_target *t,
				       int64_t now_s, const struct net_rule **out_hidden)
{
	for (unsigned i = 0; i < l->n; i++) {
		enum net_fit fit = list_fits(l, i, t, now_s);

		if (fit == NET_FIT_YES)
			return &l->v[i];
		if (fit == NET_FIT_HIDDEN && out_hidden)
			*out_hidden = &l->v[i];
	}
	return NULL;
}

int net_list_names(const struct net_list *l, const struct net_target *t, int64_t now_s)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->v[i].kind != NET_RULE_OPEN && list_fits(l, i, t, now_s) == NET_FIT_YES)
			return 1;
	return 0;
}

const struct net_rule *net_list_denies(const struct net_list *l, const struct net_target *t)
{
	for (unsigned i = 0; i < l->n; i++)
		if (net_rule_denies(&l->v[i], t))
			return &l->v[i];
	return NULL;
}

const struct net_rule *net_list_denies_address(const struct net_list *l, const struct net_target *t,
					       const struct sockaddr *to)
{
	for (unsigned i = 0; i < l->n; i++)
		if (net_rule_denies_address(&l->v[i], t, to))
			return &l->v[i];
	return NULL;
}
