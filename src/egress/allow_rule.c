/* allow_rule.c - see allow_rule.h. */
#include "egress/allow_rule.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LABEL = 63 };

/* ---- hosts ---- */

int rule_is_literal(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

/* The last label decides: some resolvers take a name that ends in a number for an address. */
static int looks_numeric(const char *host)
{
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	return isdigit((unsigned char)*last);
}

static int take_v4(const char *host)
{
	struct in_addr a;
	char again[INET_ADDRSTRLEN];

	if (inet_pton(AF_INET, host, &a) != 1 || !inet_ntop(AF_INET, &a, again, sizeof(again)))
		return -1;
	return strcmp(host, again) == 0 ? 0 : -1;
}

static int take_v6(const char *text, size_t n, char out[RULE_HOST])
{
	struct in6_addr a;
	char copy[INET6_ADDRSTRLEN];

	if (n >= sizeof(copy))
		return -1;
	memcpy(copy, text, n);
	copy[n] = 0;
	if (memchr(copy, 0, n) || inet_pton(AF_INET6, copy, &a) != 1)
		return -1;
	return inet_ntop(AF_INET6, &a, out, RULE_HOST) ? 0 : -1;
}

static int take_name(const char *text, size_t n, char out[RULE_HOST])
{
	size_t label = 0;

	if (n && text[n - 1] == '.') /* the final dot of a root-relative name */
		n--;
	if (n == 0 || n >= RULE_HOST)
		return -1;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '.' ? label == 0 : !isalnum(c) && c != '-' && c != '_')
			return -1;
		label = c == '.' ? 0 : label + 1;
		if (label > LABEL || c > 127)
			return -1;
		out[i] = (char)tolower(c);
	}
	out[n] = 0;
	if (label == 0)
		return -1;
	return looks_numeric(out) ? take_v4(out) : 0;
}

static int take_port(const char *text, size_t n, uint16_t *out)
{
	unsigned port = 0;

	if (n == 0 || n > 5 || text[0] == '0')
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -1;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	*out = (uint16_t)port;
	return port <= 65535 ? 0 : -1;
}

int rule_authority(const char *text, size_t n, char out_host[RULE_HOST], uint16_t *out_port)
{
	const char *end = n && text[0] == '[' ? memchr(text, ']', n) : NULL;
	const char *colon = end ? end + 1 : memchr(text, ':', n);
	size_t host = colon ? (size_t)(colon - text) : n;

	*out_port = 0;
	if (n && text[0] == '[') {
		if (!end || take_v6(text + 1, (size_t)(end - text - 1), out_host) < 0)
			return -1;
		host = (size_t)(end + 1 - text);
	} else if (take_name(text, host, out_host) < 0) {
		return -1;
	}
	if (host == n)
		return 0;
	return text[host] == ':' ? take_port(text + host + 1, n - host - 1, out_port) : -1;
}

/* ---- rules ---- */

int rule_parse(struct allow_rule *out, const char *text, struct err *e)
{
	struct allow_rule r = { .below = strncmp(text, "*.", 2) == 0 };
	const char *host = text + (r.below ? 2 : 0);

	if (rule_authority(host, strlen(host), r.host, &r.port) < 0 ||
	    (r.below && rule_is_literal(r.host)))
		return err_set(e, ERR_INVALID,
			       "'%.60s' is not a host; write it like registry.example.org, "
			       "registry.example.org:8443 or *.example.org",
			       text);
	*out = r;
	return 0;
}

int rule_of_url(struct allow_rule *out, const char *url, struct err *e)
{
	const char *from = strncmp(url, "sparse+", 7) == 0 ? url + 7 : url; /* cargo's */
	int tls = strncasecmp(from, "https://", 8) == 0;
	const char *host = from + (tls ? 8 : 7);
	struct allow_rule r = { 0 };

	if ((!tls && strncasecmp(from, "http://", 7) != 0) ||
	    rule_authority(host, strcspn(host, "/?#"), r.host, &r.port) < 0)
		return err_set(e, ERR_INVALID,
			       "'%.60s' is not an address of a registry; write it like "
			       "https://registry.example.org/path, without a user",
			       url);
	if (!r.port)
		r.port = tls ? 443 : 80;
	*out = r;
	return 0;
}

/* Is name below host? By whole labels: "badexample.org" is not below "example.org". */
static int is_below(const char *name, const char *host)
{
	size_t n = strlen(name), h = strlen(host);

	return n > h + 1 && name[n - h - 1] == '.' && strcmp(name + n - h, host) == 0;
}

static int port_fits(const struct allow_rule *r, uint16_t port)
{
	return r->port ? r->port == port : port == 80 || port == 443;
}

int rule_fits(const struct allow_rule *r, const char *host, uint16_t port)
{
	if (!port_fits(r, port))
		return 0;
	return r->below ? is_below(host, r->host) && !rule_is_literal(host)
			: strcmp(host, r->host) == 0;
}

const struct allow_rule *rule_find(const struct allow_rule *v, unsigned n, const char *host,
				   uint16_t port)
{
	for (unsigned i = 0; i < n; i++)
		if (rule_fits(&v[i], host, port))
			return &v[i];
	return NULL;
}

int rule_covers(const struct allow_rule *wide, const struct allow_rule *narrow)
{
	int same = strcmp(wide->host, narrow->host) == 0;

	if (narrow->port ? !port_fits(wide, narrow->port)
			 : wide->port && wide->port != 80 && wide->port != 443)
		return 0;
	if (!wide->below)
		return same && !narrow->below;
	return is_below(narrow->host, wide->host) || (same && narrow->below);
}

const char *rule_text(const struct allow_rule *r, char out[RULE_TEXT])
{
	int v6 = strchr(r->host, ':') != NULL;
	int n = snprintf(out, RULE_TEXT, "%s%s%s%s", r->below ? "*." : "", v6 ? "[" : "", r->host,
			 v6 ? "]" : "");

	if (r->port)
		snprintf(out + n, RULE_TEXT - (size_t)n, ":%u", r->port);
	return out;
}
