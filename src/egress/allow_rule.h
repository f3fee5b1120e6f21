/* allow_rule.h - whom a box may reach: "registry.example", "registry.example:8080", "*.example".
 * Plain data. A host is a name in lower case without a dot at its end, or a literal address in the
 * one form that the kernel would print: everything else that some resolver takes for an address
 * ("127.1", "0x7f000001") is no host. */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum { RULE_HOST = 254, RULE_TEXT = RULE_HOST + 12, RULES_MAX = 64 };

struct allow_rule {
	char host[RULE_HOST];
	uint16_t port;    /* 0: 80 and 443 */
	uint8_t below;    /* "*.host": every name below it, not the name itself */
	uint8_t internal; /* its address may be one of the operator's own network */
};

must_check int rule_parse(struct allow_rule *out, const char *text, struct err *e);
/* The same of an URL, "https://host:port/path": its host, and the port that it leads to. */
must_check int rule_of_url(struct allow_rule *out, const char *url, struct err *e);
/* "host" or "host:port" in its one form; *out_port 0: there was none. -1: it is neither. */
must_check int rule_authority(const char *text, size_t n, char out_host[RULE_HOST],
			      uint16_t *out_port);
int rule_fits(const struct allow_rule *r, const char *host, uint16_t port);
/* The first that fits, or NULL. */
const struct allow_rule *rule_find(const struct allow_rule *v, unsigned n, const char *host,
				   uint16_t port);
/* Does `wide` permit some of what `narrow` asks for? Of a port that is named: exactly that one. */
int rule_covers(const struct allow_rule *wide, const struct allow_rule *narrow);
const char *rule_text(const struct allow_rule *r, char out[RULE_TEXT]);
int rule_is_literal(const char *host); /* an address, not a name */
