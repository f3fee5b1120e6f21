/* judge.h - decides whether a box may connect to a host.
 * Owns:         the order of the checks and the texts of refusals.
 * Does not own: connections, names and sockets; the caller resolves the host, between judge_host() and
 *               judge_addresses(), and shows the refusal in its protocol.
 *
 *   judge_host()  the rules of operator, team and box, the budget         (before a name is resolved)
 *   judge_addresses()  every address of the host                         (before one is connected) */
#pragma once
#include "egress/way.h"

enum verdict {
	VERDICT_OK,
	VERDICT_DENIED,   /* no rule matches */
	VERDICT_INTERNAL, /* a rule matches, but the address is not public */
	VERDICT_BAD,      /* not a valid request */
	VERDICT_UNRESOLVED,
	VERDICT_UNREACHABLE,
	VERDICT_TIMEOUT,
	VERDICT_BUDGET,
	VERDICT_CUT, /* a peer closed before the end */
	VERDICT_ASK, /* no rule of the box matches, but an approval would permit it; not reported */
	VERDICTS,
};

struct judge_request {
	const struct egress_endpoint *way;
	const char *host; /* canonical, see net_authority_parse() */
	uint16_t port;
	const char *method, *path; /* of an HTTP request; path NULL: not known */
	int approved;              /* no rule of the box is needed */
	int connected;             /* it was permitted before, and is judged again */
};

enum { JUDGE_TEXT = 700 };

struct judgement {
	enum verdict verdict;
	char rule
		[RULE_TEXT]; /* the rule of the box that matched, or the rule that denies it, or "" */
	char why[JUDGE_TEXT];  /* a sentence without its full stop; "" for VERDICT_OK */
	char hint[JUDGE_TEXT]; /* a sentence: what would permit it; or "" */
};

const char *judge_verdict_name(enum verdict v);

/* Returns out->verdict. */
enum verdict judge_host(const struct judge_request *r, struct judgement *out);
/* The same for the addresses of the host; out->rule is not changed. */
enum verdict judge_addresses(const struct judge_request *r, const struct name_address *v,
			     unsigned n, struct judgement *out);
/* May the name be resolved at all: does a connection to some port of it have a chance? For answers to
 * DNS queries of the box. */
enum verdict judge_name(const struct egress_endpoint *w, const char *host, struct judgement *out);
/* Is it the name of a linked box? Its connections have a budget, and no rule. */
int judge_is_link(const struct egress_endpoint *w, const char *host);
/* The box has used its budget of names: VERDICT_BUDGET with the reason, else VERDICT_OK. */
enum verdict judge_queries(const struct egress_endpoint *w, struct judgement *out);
/* The box has used its budget of bytes: VERDICT_BUDGET with the reason, else VERDICT_OK. */
enum verdict judge_budget(const struct egress_endpoint *w, struct judgement *out);
