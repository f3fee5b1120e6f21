/* judge.c - see judge.h. */
#include "egress/judge.h"
#include "base/cleanup.h"
#include "egress/ip_class.h"

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

/* internal: only a rule that permits internal addresses. */
static const struct allow_rule *judge_operator(const struct judge_request *r, int internal)
{
	const struct egress_conf *c = &r->way->egress->conf;

	for (unsigned i = 0; i < c->nrules; i++)
		if (c->rules[i].internal >= internal && rule_fits(&c->rules[i], r->host, r->port))
			return &c->rules[i];
	return NULL;
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

enum verdict judge_host(const struct judge_request *r, struct judgement *out)
{
	const struct egress_endpoint *w = r->way;
	const struct allow_rule *rule = rule_find(w->rules, w->nrules, r->host, r->port);

	*out = (struct judgement){ 0 };
	if (!rule) {
		judge_hint(out,
			   "It is made with the hosts that it may: \"network\": {\"allow\": "
			   "[\"%s:%u\"]}",
			   r->host, r->port);
		return judge_refuse(out, VERDICT_DENIED, "this box may not reach %s:%u", r->host,
				    r->port);
	}
	rule_text(rule, out->rule);
	if (!judge_operator(r, 0)) {
		judge_hint(out, "The operator would name it in egress.allow.");
		return judge_refuse(out, VERDICT_DENIED,
				    "the operator of this machine does not permit %s:%u", r->host,
				    r->port);
	}
	return judge_budget(w, out);
}

/* Every address must be allowed: one forbidden address makes the name suspicious. */
enum verdict judge_addresses(const struct judge_request *r, const struct name_address *v,
			     unsigned n, struct judgement *out)
{
	int internal = judge_operator(r, 1) != NULL;

	judge_permit(out);
	for (unsigned i = 0; i < n; i++) {
		const struct sockaddr *to = (const struct sockaddr *)&v[i].to;
		const char *why;
		enum ip_class is = ip_class_of(to, &why);

		if (is == IP_PUBLIC && ip_is_ours(to, v[i].len)) {
			is = IP_INTERNAL;
			why = "this machine's own";
		}
		if (is == IP_PUBLIC || (is == IP_INTERNAL && internal))
			continue;
		judge_hint(out, "%s",
			   is == IP_INTERNAL
				   ? "If it should be reached all the same, the operator names it "
				     "in egress.allow_internal."
				   : "Such addresses are never reached.");
		return judge_refuse(out, VERDICT_INTERNAL,
				    "%s has an address that is not out there (%s)", r->host, why);
	}
	return VERDICT_OK;
}
