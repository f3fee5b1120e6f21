/* allow_rule.h - hosts that a box may reach: "registry.example", "registry.example:8080",
 * "*.example". */
#pragma once
#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

enum { RULE_HOST = 254, RULE_TEXT = RULE_HOST + 12, RULES_MAX = 64 };

struct allow_rule {
	char host[RULE_HOST];
	uint16_t port;    /* 0: 80 and 443 */
	uint8_t below;    /* "*.host": every name below host, not host itself */
	uint8_t internal; /* its address may be internal */
};

must_check int rule_parse(struct allow_rule *out, const char *text, struct err *e);
/* The same for a URL, "https://host:port/path": its host and port. */
must_check int rule_of_url(struct allow_rule *out, const char *url, struct err *e);
/* Parses "host" or "host:port" in canonical form; *out_port 0: no port. -1: invalid. */
must_check int rule_authority(const char *text, size_t n, char out_host[RULE_HOST],
			      uint16_t *out_port);
int rule_fits(const struct allow_rule *r, const char *host, uint16_t port);
/* The first rule that matches, or NULL. */
const struct allow_rule *rule_find(const struct allow_rule *v, unsigned n, const char *host,
				   uint16_t port);
/* Does `wide` permit some hosts of `narrow`? A named port must be the same. */
int rule_covers(const struct allow_rule *wide, const struct allow_rule *narrow);
const char *rule_text(const struct allow_rule *r, char out[RULE_TEXT]);
int rule_is_literal(const char *host); /* an address, not a name */
