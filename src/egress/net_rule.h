/* net_rule.h - one rule about destinations of a box, in one line of text:
 *
 *   registry.example           this name, ports 80 and 443 (in a deny rule: every port)
 *   *.example:8443             every name below example, not example itself
 *   db.example:5000-5010       a range of ports; ":*" is every port
 *   192.0.2.7, [2001:db8::7]   an address, as the kernel prints it
 *   10.1.0.0/16:5432           a range of addresses; [2001:db8::]/32 for IPv6
 *   open                       every public address and name, every port
 *   GET,HEAD api.example/v1/_  methods and a path (* matches any text) of plain HTTP
 *
 * (_ stands for * above.) A range in an allow rule fits addresses that a program names itself; in a
 * deny rule it also fits the addresses that a name resolves to. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	RULE_HOST = 254,
	RULE_METHODS = 48,
	RULE_PATH = 160,
	RULE_TEXT = RULE_METHODS + RULE_HOST + RULE_PATH + 24,
	RULES_MAX = 64, /* of a box, of a team */
};

enum net_rule_kind {
	NET_RULE_HOST,  /* a name or an address */
	NET_RULE_BELOW, /* "*.host" */
	NET_RULE_RANGE, /* host/bits */
	NET_RULE_OPEN,
};

struct net_rule {
	char host[RULE_HOST];                        /* in canonical form; "" for open */
	char methods[RULE_METHODS], path[RULE_PATH]; /* "": any */
	uint16_t port, port_last;                    /* 0: 80 and 443, or every port (deny, open) */
	uint8_t kind, bits;
	uint8_t internal; /* of the operator: its address may be internal */
};

/* A destination. method and path are NULL where egress cannot read a request: TLS, or a protocol
 * other than HTTP. */
struct net_target {
	const char *host;
	uint16_t port;
	const char *method, *path;
};

must_check int net_rule_parse(struct net_rule *out, const char *text, struct err *e);
/* The same for an allow rule: it must not name addresses that are never reached. */
must_check int net_rule_parse_allow(struct net_rule *out, const char *text, struct err *e);
/* The same for a name or an address with at most one port: no range, no open, no method or path. */
must_check int net_rule_parse_host(struct net_rule *out, const char *text, struct err *e);
/* The same for a URL, "https://host:port/path": its host and port. */
must_check int net_rule_of_url(struct net_rule *out, const char *url, struct err *e);
/* Parses "host" or "host:port" in canonical form; *out_port 0: no port. -1: invalid, *why has the
 * reason. */
must_check int net_authority_parse(const char *text, size_t n, char out_host[RULE_HOST],
				   uint16_t *out_port, const char **why);

enum net_fit {
	NET_FIT_NO,
	NET_FIT_HIDDEN, /* host and port fit, but the rule is about HTTP that cannot be read */
	NET_FIT_YES,
};
enum net_fit net_rule_allows(const struct net_rule *r, const struct net_target *t);
/* A rule with methods or a path also denies requests that cannot be read. */
int net_rule_denies(const struct net_rule *r, const struct net_target *t);
/* The same for an address that the host of the target has: a rule with this address or a range that
 * holds it. The host of the target is not compared. */
int net_rule_allows_address(const struct net_rule *r, const struct net_target *t,
			    const struct sockaddr *to);
int net_rule_denies_address(const struct net_rule *r, const struct net_target *t,
			    const struct sockaddr *to);
/* Does `wide` permit some destinations of `narrow`? A named port must be in both. */
int net_rule_covers(const struct net_rule *wide, const struct net_rule *narrow);
const char *net_rule_text(const struct net_rule *r, char out[RULE_TEXT]);
int net_is_literal(const char *host); /* an address, not a name */
