/* target.h - the destination of a request: the parts of its URL, and whether its addresses may be reached.
 * Owns: which addresses are refused. Public addresses are allowed; internal ones only if the operator names them. */
#pragma once
#include "base/err.h"
#include "egress/net_rule.h"
#include <sys/socket.h>

enum { OUTBOUND_URL = 2048 };

struct outbound_target {
	char host[RULE_HOST]; /* canonical */
	uint16_t port;
	int mail; /* smtp or smtps, else http or https */
};

/* URLs of http, https, smtp and smtps, without user, password and control characters. */
must_check int outbound_target_parse(struct outbound_target *out, const char *url, struct err *e);
/* A rule that fits the host and the port of this URL and nothing else. */
must_check int outbound_target_rule(struct net_rule *out, const char *url, struct err *e);

struct outbound_rules {               /* of the operator; borrowed */
	const struct net_rule *allow; /* outbound.allow: internal destinations of all requests */
	unsigned nallow;
	const struct net_rule
		*named; /* hosts of URLs in the settings: only for requests with allow_private */
	unsigned nnamed;
	const struct net_rule *deny; /* egress.deny */
	unsigned ndeny;
};
/* -1, ERR_INVALID: this address of the target may not be connected to. */
must_check int outbound_target_judge(const struct outbound_rules *r,
				     const struct outbound_target *t, const struct sockaddr *to,
				     socklen_t len, int allow_private, struct err *e);
