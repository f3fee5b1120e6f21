/* target.c - see target.h. */
#include "outbound/target.h"
#include "base/cleanup.h"
#include "egress/ip_class.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *scheme;
	uint16_t port;
	int mail;
} target_schemes[] = {
	{ "http://", 80, 0 },
	{ "https://", 443, 0 },
	{ "smtp://", 25, 1 },
	{ "smtps://", 465, 1 },
};

/* Bytes of the scheme; 0: another one. */
static size_t target_scheme(struct outbound_target *out, const char *url)
{
	for (unsigned i = 0; i < ARRAY_LEN(target_schemes); i++) {
		size_t n = strlen(target_schemes[i].scheme);

		if (strncmp(url, target_schemes[i].scheme, n) == 0) {
			out->port = target_schemes[i].port;
			out->mail = target_schemes[i].mail;
			return n;
		}
	}
	return 0;
}

int outbound_target_parse(struct outbound_target *out, const char *url, struct err *e)
{
	const char *why = NULL;
	uint16_t port = 0;
	size_t at, n;

	*out = (struct outbound_target){ 0 };
	if (strlen(url) > OUTBOUND_URL)
		return err_set(e, ERR_INVALID, "the URL has more than %d bytes", OUTBOUND_URL);
	for (const char *c = url; *c; c++)
		if (!isgraph((unsigned char)*c) || *c == '\\')
			return err_set(
				e, ERR_INVALID,
				"the URL has the character 0x%02x, which must be written as %%%02X",
				(unsigned char)*c, (unsigned char)*c);
	at = target_scheme(out, url);
	if (!at)
		return err_set(e, ERR_INVALID,
			       "'%.60s' is not a URL; write it like https://host.example/path",
			       url);
	n = strcspn(url + at, "/?#");
	if (memchr(url + at, '@', n))
		return err_set(e, ERR_INVALID,
			       "the URL has a user name or a password: write it without them");
	if (net_authority_parse(url + at, n, out->host, &port, &why) < 0)
		return err_set(e, ERR_INVALID, "'%.60s' names no host: %s", url, why);
	if (port)
		out->port = port;
	return 0;
}

int outbound_target_rule(struct net_rule *out, const char *url, struct err *e)
{
	struct outbound_target t;

	if (outbound_target_parse(&t, url, e) < 0)
		return -1;
	memset(out, 0, sizeof(*out)); /* rules are compared as bytes */
	snprintf(out->host, sizeof(out->host), "%s", t.host);
	out->kind = NET_RULE_HOST;
	out->port = out->port_last = t.port;
	return 0;
}

/* A rule without a port fits every port, as in egress.deny. */
static int target_fits(const struct net_rule *v, unsigned n, const struct net_target *t,
		       const struct sockaddr *to)
{
	for (unsigned i = 0; i < n; i++)
		if (net_rule_denies(&v[i], t) || net_rule_denies_address(&v[i], t, to))
			return 1;
	return 0;
}

int outbound_target_judge(const struct outbound_rules *r, const struct outbound_target *t,
			  const struct sockaddr *to, socklen_t len, int allow_private,
			  struct err *e)
{
	struct net_target target = { .host = t->host, .port = t->port };
	const char *why;
	enum ip_class is = ip_class_of(to, &why);

	if (target_fits(r->deny, r->ndeny, &target, to))
		return err_set(e, ERR_INVALID,
			       "the operator does not permit %.200s:%u (egress.deny)", t->host,
			       t->port);
	if (is == IP_PUBLIC && ip_is_ours(to, len)) {
		is = IP_INTERNAL;
		why = "this machine's own";
	}
	if (is == IP_PUBLIC || (is == IP_INTERNAL &&
				(target_fits(r->allow, r->nallow, &target, to) ||
				 (allow_private && target_fits(r->named, r->nnamed, &target, to)))))
		return 0;
	return err_set(e, ERR_INVALID, "%.150s has an address that is not public (%s)%s", t->host,
		       why,
		       is == IP_INTERNAL ? "; the operator can name it in outbound.allow" : "");
}
