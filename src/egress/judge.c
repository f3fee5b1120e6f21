/* judge.c - see judge.h. */
#include "egress/judge.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "egress/ip_class.h"
#include "egress/spent.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *judge_verdict_name(enum verdict v)
{
	static const char *const names[] = {
		[VERDICT_OK] = "ok",
		[VERDICT_DENIED] = "denied",
		[VERDICT_INTERNAL] = "internal",
		[VERDICT_BAD] = "bad",
		[VERDICT_UNRESOLVED] = "unresolved",
		[VERDICT_UNREACHABLE] = "unreachable",
		[VERDICT_TIMEOUT] = "timeout",
		[VERDICT_BUDGET] = "budget",
		[VERDICT_CUT] = "cut",
		[VERDICT_ASK] = "ask",
	};

	_Static_assert(ARRAY_LEN(names) == VERDICTS, "a verdict without a name");
	return names[v];
}

__attribute__((format(printf, 3, 4))) static enum verdict judge_refuse(struct judgement *out,
								       enum verdict v,
								       const char *fmt, ...)
{
	va_list ap;

	out->verdict = v;
	va_start(ap, fmt);
	vsnprintf(out->why, sizeof(out->why), fmt, ap);
	va_end(ap);
	return v;
}

__attribute__((format(printf, 2, 3))) static void judge_hint(struct judgement *out, const char *fmt,
							     ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(out->hint, sizeof(out->hint), fmt, ap);
	va_end(ap);
}

static enum verdict judge_permit(struct judgement *out)
{
	out->verdict = VERDICT_OK;
	out->why[0] = out->hint[0] = 0;
	return VERDICT_OK;
}

static struct net_target judge_target(const struct judge_request *r)
{
	return (struct net_target){ .host = r->host,
				    .port = r->port,
				    .method = r->path ? r->method : NULL,
				    .path = r->path };
}

static struct net_list judge_operator_deny(const struct judge_request *r)
{
	const struct egress_conf *c = &r->way->egress->conf;

	return (struct net_list){ .v = (struct net_rule *)c->deny, .n = c->ndeny };
}

/* A rule of the operator that permits the target; to: also one that names this address.
 * internal: only one of egress.allow_internal. */
static const struct net_rule *judge_operator(const struct judge_request *r, int internal,
					     const struct sockaddr *to)
{
	const struct egress_conf *c = &r->way->egress->conf;
	struct net_target t = judge_target(r);

	for (unsigned i = 0; i < c->nrules; i++)
		if (c->rules[i].internal >= internal &&
		    (net_rule_allows(&c->rules[i], &t) == NET_FIT_YES ||
		     (to && net_rule_allows_address(&c->rules[i], &t, to))))
			return &c->rules[i];
	return NULL;
}

static int64_t judge_now_s(void)
{
	return (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000);
}

enum verdict judge_budget(const struct egress_endpoint *w, struct judgement *out)
{
	const struct egress_limits *m = &w->egress->conf.limits;

	judge_permit(out);
	if ((!m->bytes_in || w->bytes_in <= m->bytes_in) &&
	    (!m->bytes_out || w->bytes_out <= m->bytes_out))
		return VERDICT_OK;
	return judge_refuse(out, VERDICT_BUDGET,
			    "this box has used what it may send or receive (egress.bytes_in, "
			    "egress.bytes_out)");
}

enum verdict judge_queries(const struct egress_endpoint *w, struct judgement *out)
{
	uint64_t most = w->egress->conf.limits.dns_queries;

	if (!most || w->dns_queries < most) {
		judge_permit(out);
		return VERDICT_OK;
	}
	return judge_refuse(out, VERDICT_BUDGET,
			    "this box has used its %llu DNS queries (egress.dns_queries)",
			    (unsigned long long)most);
}

/* ---- deny rules ---- */

static const struct {
	const char *whose, *hint;
} judge_levels[] = {
	{ "the operator", "The operator has it in egress.deny." },
	{ "the team",
	  "An operator can change the network rules of the team: PUT /v1/teams/TEAM/network" },
	{ "this box", NULL },
};

static enum verdict judge_denied(const struct judge_request *r, unsigned level,
				 const struct net_rule *rule, struct judgement *out)
{
	char text[RULE_TEXT];

	snprintf(out->rule, sizeof(out->rule), "deny %.*s", (int)sizeof(out->rule) - 8,
		 net_rule_text(rule, text));
	if (judge_levels[level].hint)
		judge_hint(out, "%s", judge_levels[level].hint);
	else
		judge_hint(out, "To change the rules of the box: atoll net show %s", r->way->id);
	return judge_refuse(out, VERDICT_DENIED, "a deny rule of %s refuses %s:%u: %.200s",
			    judge_levels[level].whose, r->host, r->port, text);
}

/* to: NULL, or an address of the host. */
static enum verdict judge_deny_rules(const struct judge_request *r, const struct sockaddr *to,
				     struct judgement *out)
{
	const struct net_policy *p = &r->way->policy;
	const struct net_list own = judge_operator_deny(r);
	const struct net_list *const lists[] = { &own, &p->team_deny, &p->deny };
	struct net_target t = judge_target(r);

	for (unsigned i = 0; i < ARRAY_LEN(lists); i++) {
		const struct net_rule *rule = to ? net_list_denies_address(lists[i], &t, to)
						 : net_list_denies(lists[i], &t);

		if (rule)
			return judge_denied(r, i, rule, out);
	}
	return VERDICT_OK;
}

/* ---- the host ---- */

/* No rule of the box matches. hidden: one names the host, but is about requests that cannot be
 * read. */
static enum verdict judge_no_rule(const struct judge_request *r, const struct net_rule *hidden,
				  struct judgement *out)
{
	int v6 = strchr(r->host, ':') != NULL;
	char text[RULE_TEXT];

	judge_hint(out, "To allow it: atoll net allow %s %s%s%s:%u", r->way->id, v6 ? "[" : "",
		   r->host, v6 ? "]" : "", r->port);
	if (hidden)
		return judge_refuse(out, VERDICT_DENIED,
				    "the rule '%.200s' of this box permits plain HTTP requests "
				    "that egress can read, and this is none",
				    net_rule_text(hidden, text));
	if (r->way->policy.ask)
		return judge_refuse(out, VERDICT_ASK, "%s:%u waits for an approval", r->host,
				    r->port);
	return judge_refuse(out, VERDICT_DENIED, "this box may not reach %s:%u", r->host, r->port);
}

static enum verdict judge_allow_rules(const struct judge_request *r, struct judgement *out)
{
	const struct net_policy *p = &r->way->policy;
	const struct net_rule *rule, *hidden = NULL;
	struct net_target t = judge_target(r);
	int64_t now_s = judge_now_s();

	if (!judge_operator(r, 0, NULL)) {
		judge_hint(out, "The operator would name it in egress.allow.");
		return judge_refuse(out, VERDICT_DENIED,
				    "the operator of this machine does not permit %s:%u", r->host,
				    r->port);
	}
	if (p->team_only && !net_list_allows(&p->team_allow, &t, now_s, NULL)) {
		judge_hint(out, "An operator can change the network rules of the team: PUT "
				"/v1/teams/TEAM/network");
		return judge_refuse(out, VERDICT_DENIED,
				    "the network rules of the team do not permit %s:%u", r->host,
				    r->port);
	}
	rule = net_list_allows(&p->allow, &t, now_s, &hidden);
	if (rule)
		net_rule_text(rule, out->rule);
	else if (r->approved)
		snprintf(out->rule, sizeof(out->rule), "approved");
	else
		return judge_no_rule(r, hidden, out);
	return VERDICT_OK;
}

enum verdict judge_host(const struct judge_request *r, struct judgement *out)
{
	*out = (struct judgement){ 0 };
	if (judge_deny_rules(r, NULL, out) != VERDICT_OK || judge_allow_rules(r, out) != VERDICT_OK)
		return out->verdict;
	if (judge_budget(r->way, out) != VERDICT_OK)
		return out->verdict;
	return spent_judge(r->way, spent_find(r->way, r->host, r->port), !r->connected, out);
}

static int judge_list_names(const struct net_rule *v, unsigned n, const char *host)
{
	for (unsigned i = 0; i < n; i++) {
		struct net_rule any = v[i];
		struct net_target t = { .host = host, .port = 1 };

		any.port = 1;
		any.port_last = 65535;
		if (net_rule_allows(&any, &t) != NET_FIT_NO)
			return 1;
	}
	return 0;
}

static int judge_names(const struct egress_endpoint *w, const char *host)
{
	const struct egress_conf *c = &w->egress->conf;
	const struct net_policy *p = &w->policy;

	return judge_list_names(c->rules, c->nrules, host) &&
	       (!p->team_only || judge_list_names(p->team_allow.v, p->team_allow.n, host)) &&
	       (p->ask || judge_list_names(p->allow.v, p->allow.n, host));
}

int judge_is_link(const struct egress_endpoint *w, const char *host)
{
	for (unsigned i = 0; i < w->nlinks; i++)
		if (strcmp(w->links[i], host) == 0)
			return 1;
	return 0;
}

enum verdict judge_name(const struct egress_endpoint *w, const char *host, struct judgement *out)
{
	*out = (struct judgement){ 0 };
	if (judge_is_link(w, host) || judge_names(w, host))
		return judge_permit(out);
	judge_hint(out, "To allow it: atoll net allow %s %s", w->id, host);
	return judge_refuse(out, VERDICT_DENIED, "this box may not reach %s", host);
}

/* ---- its addresses ---- */

/* open means the public internet: an internal address needs a rule that names its host, of the
 * operator, of the team and of the box. */
static int judge_internal(const struct judge_request *r, const struct sockaddr *to)
{
	const struct net_policy *p = &r->way->policy;
	struct net_target t = judge_target(r);
	int64_t now_s = judge_now_s();

	return judge_operator(r, 1, to) &&
	       (!p->team_only || net_list_names(&p->team_allow, &t, now_s)) &&
	       (r->approved || net_list_names(&p->allow, &t, now_s));
}

static enum verdict judge_address(const struct judge_request *r, const struct name_address *a,
				  struct judgement *out)
{
	const struct sockaddr *to = (const struct sockaddr *)&a->to;
	const char *why;
	enum ip_class is = ip_class_of(to, &why);

	if (judge_deny_rules(r, to, out) != VERDICT_OK)
		return out->verdict;
	if (is == IP_PUBLIC && ip_is_ours(to, a->len)) {
		is = IP_INTERNAL;
		why = "this machine's own";
	}
	if (is == IP_PUBLIC || (is == IP_INTERNAL && judge_internal(r, to)))
		return VERDICT_OK;
	judge_hint(out, "%s",
		   is == IP_INTERNAL
			   ? "If it should be reached all the same, the operator names it "
			     "in egress.allow_internal, and the box by its name."
			   : "Such addresses are never reached.");
	return judge_refuse(out, VERDICT_INTERNAL, "%s has an address that is not public (%s)",
			    r->host, why);
}

/* Every address must be allowed: one forbidden address makes the name suspicious. */
enum verdict judge_addresses(const struct judge_request *r, const struct name_address *v,
			     unsigned n, struct judgement *out)
{
	judge_permit(out);
	for (unsigned i = 0; i < n; i++)
		if (judge_address(r, &v[i], out) != VERDICT_OK)
			return out->verdict;
	return VERDICT_OK;
}
