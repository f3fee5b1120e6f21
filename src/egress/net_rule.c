/* net_rule.c - see net_rule.h. */
#include "egress/net_rule.h"
#include "egress/ip_class.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LABEL = 63 };

/* ---- hosts ---- */

struct net_address {
	int family;
	uint8_t bytes[16];
};

static int net_address_parse(const char *text, struct net_address *out)
{
	*out = (struct net_address){ .family = strchr(text, ':') ? AF_INET6 : AF_INET };
	return inet_pton(out->family, text, out->bytes) == 1 ? 0 : -1;
}

static struct net_address net_address_of(const struct sockaddr *to)
{
	struct net_address a = { .family = to->sa_family };

	if (a.family == AF_INET)
		memcpy(a.bytes, &((const struct sockaddr_in *)to)->sin_addr, 4);
	else if (a.family == AF_INET6)
		memcpy(a.bytes, &((const struct sockaddr_in6 *)to)->sin6_addr, 16);
	return a;
}

int net_is_literal(const char *host)
{
	struct net_address any;

	return net_address_parse(host, &any) == 0;
}

static int net_in_range(const struct net_address *a, const struct net_address *net, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	if (a->family != net->family || memcmp(a->bytes, net->bytes, bytes) != 0)
		return 0;
	return !rest || (a->bytes[bytes] ^ net->bytes[bytes]) >> (8 - rest) == 0;
}

/* The last label decides: some resolvers take a name that ends in a number for an address. */
static int looks_numeric(const char *host)
{
	const char *last = strrchr(host, '.');

	last = last ? last + 1 : host;
	return isdigit((unsigned char)*last);
}

static int take_v4(const char *host, const char **why)
{
	struct in_addr a;
	char again[INET_ADDRSTRLEN];

	if (inet_pton(AF_INET, host, &a) == 1 && inet_ntop(AF_INET, &a, again, sizeof(again)) &&
	    strcmp(host, again) == 0)
		return 0;
	*why = "an address is written as four decimal numbers, like 192.0.2.7";
	return -1;
}

static int take_v6(const char *text, size_t n, char out[RULE_HOST], const char **why)
{
	struct in6_addr a;
	char copy[INET6_ADDRSTRLEN];

	*why = "an IPv6 address is written like [2001:db8::7]";
	if (n >= sizeof(copy) || memchr(text, 0, n))
		return -1;
	memcpy(copy, text, n);
	copy[n] = 0;
	if (inet_pton(AF_INET6, copy, &a) != 1)
		return -1;
	if (IN6_IS_ADDR_V4MAPPED(&a) || (IN6_IS_ADDR_V4COMPAT(&a) && !IN6_IS_ADDR_LOOPBACK(&a))) {
		*why = "an IPv4 address inside an IPv6 address is never reached; write the IPv4 "
		       "address";
		return -1;
	}
	return inet_ntop(AF_INET6, &a, out, RULE_HOST) ? 0 : -1;
}

/* What is wrong with a name that has this character. */
static const char *net_wrong_character(unsigned char c)
{
	return c > 127    ? "a name is written in its ASCII form, like xn--bcher-kva.example"
	       : c == '@' ? "a user before the host is not accepted"
			  : "a name has letters, digits, '-', '_' and '.' only";
}

static int take_name(const char *text, size_t n, char out[RULE_HOST], const char **why)
{
	size_t label = 0;

	if (n == 0) {
		*why = "the host is empty";
		return -1;
	}
	if (n >= RULE_HOST) {
		*why = "a name has at most 253 characters";
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c != '.' && (c > 127 || (!isalnum(c) && c != '-' && c != '_'))) {
			*why = net_wrong_character(c);
			return -1;
		}
		if ((c == '.' && label == 0) || label == LABEL + (c == '.')) {
			*why = "a label between dots has 1 to 63 characters";
			return -1;
		}
		label = c == '.' ? 0 : label + 1;
		out[i] = (char)tolower(c);
	}
	out[n] = 0;
	if (label == 0) {
		*why = "a final dot is not accepted; write the name without it";
		return -1;
	}
	return looks_numeric(out) ? take_v4(out, why) : 0;
}

static int take_port(const char *text, size_t n, uint16_t *out, const char **why)
{
	unsigned port = 0;

	*why = "a port is a number from 1 to 65535";
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

/* The host at the start of the text. Returns its length in the text, or -1. */
static long take_host(const char *text, size_t n, const char *ends, char out[RULE_HOST],
		      const char **why)
{
	const char *end = n && text[0] == '[' ? memchr(text, ']', n) : NULL;
	size_t host = 0;

	if (n && text[0] == '[') {
		*why = "the ']' after an IPv6 address is missing";
		if (!end || take_v6(text + 1, (size_t)(end - text - 1), out, why) < 0)
			return -1;
		return end + 1 - text;
	}
	while (host < n && !(text[host] && strchr(ends, text[host])))
		host++;
	return take_name(text, host, out, why) < 0 ? -1 : (long)host;
}

int net_authority_parse(const char *text, size_t n, char out_host[RULE_HOST], uint16_t *out_port,
			const char **why)
{
	long host = take_host(text, n, ":", out_host, why);

	*out_port = 0;
	if (host < 0)
		return -1;
	if ((size_t)host == n)
		return 0;
	if (text[host] != ':') {
		*why = "the host is followed by other text";
		return -1;
	}
	return take_port(text + host + 1, n - (size_t)host - 1, out_port, why);
}

/* ---- parts of a rule ---- */

static int rule_take_methods(struct net_rule *r, const char *text, size_t n, const char **why)
{
	size_t word = 0;

	*why = "methods are written like GET,HEAD before the host";
	if (n == 0 || n >= sizeof(r->methods))
		return -1;
	for (size_t i = 0; i < n; i++) {
		if (text[i] == ',' ? word == 0 : (text[i] < 'A' || text[i] > 'Z') && text[i] != '-')
			return -1;
		word = text[i] == ',' ? 0 : word + 1;
		r->methods[i] = text[i];
	}
	if (word == 0)
		return -1;
	if (strstr(r->methods, "CONNECT")) {
		*why = "CONNECT has no path: allow the host without a method";
		return -1;
	}
	return 0;
}

static int rule_take_ports(struct net_rule *r, const char *text, size_t n, const char **why)
{
	const char *dash = memchr(text, '-', n);
	size_t first = dash ? (size_t)(dash - text) : n;

	if (n == 1 && *text == '*') {
		r->port = 1;
		r->port_last = 65535;
		return 0;
	}
	if (take_port(text, first, &r->port, why) < 0)
		return -1;
	r->port_last = r->port;
	if (dash && take_port(dash + 1, n - first - 1, &r->port_last, why) < 0)
		return -1;
	*why = "the first port of a range is the smaller one";
	return r->port_last >= r->port ? 0 : -1;
}

static int rule_take_bits(struct net_rule *r, const char *text, size_t n, const char **why)
{
	struct net_address net;
	unsigned bits = 0, most, whole;

	*why = "a range of addresses is written like 10.1.0.0/16 or [2001:db8::]/32";
	if (net_address_parse(r->host, &net) < 0 || n == 0 || n > 3 || (n > 1 && text[0] == '0'))
		return -1;
	for (size_t i = 0; i < n; i++)
		bits = bits * 10 + (unsigned)(text[i] - '0');
	most = net.family == AF_INET ? 32 : 128;
	if (bits > most)
		return -1;
	whole = bits / 8;
	*why = "the address of a range has bits that its length leaves out; write the first address "
	       "of the range";
	if (bits % 8 && (net.bytes[whole] & (0xff >> bits % 8)))
		return -1;
	for (unsigned i = whole + !!(bits % 8); i < most / 8; i++)
		if (net.bytes[i])
			return -1;
	r->kind = NET_RULE_RANGE;
	r->bits = (uint8_t)bits;
	return 0;
}

static int rule_take_path(struct net_rule *r, const char *text, size_t n, const char **why)
{
	*why = "the destination is followed by other text";
	if (text[0] != '/')
		return -1;
	*why = "a path has no spaces, '?' and '#'";
	if (n >= sizeof(r->path)) {
		*why = "a path has at most 159 characters";
		return -1;
	}
	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] >= 127 || text[i] == '?' || text[i] == '#')
			return -1;
	memcpy(r->path, text, n);
	r->path[n] = 0;
	return 0;
}

/* "2001:db8::/32": the one form in which an IPv6 address needs no brackets. Returns the length of
 * the address, 0: it is not one. */
static size_t rule_bare_range(const char *text)
{
	size_t n = strspn(text, "0123456789abcdefABCDEF:.");
	const char *colon = memchr(text, ':', n);

	return colon && text[n] == '/' && memchr(colon + 1, ':', n - (size_t)(colon + 1 - text))
		       ? n
		       : 0;
}

/* Returns the length of what it took, or -1. */
static long rule_take_host(struct net_rule *r, const char *text, const char **why)
{
	size_t bare = rule_bare_range(text), below = strncmp(text, "*.", 2) == 0 ? 2 : 0;
	long n;

	if (strncasecmp(text, "open", 4) == 0 && (!text[4] || text[4] == ':')) {
		r->kind = NET_RULE_OPEN;
		return 4;
	}
	if (bare)
		return take_v6(text, bare, r->host, why) < 0 ? -1 : (long)bare;
	r->kind = below ? NET_RULE_BELOW : NET_RULE_HOST;
	n = take_host(text + below, strlen(text + below), ":/", r->host, why);
	if (n >= 0 && below && net_is_literal(r->host)) {
		*why = "'*.' is followed by a name, not by an address";
		return -1;
	}
	if (n >= 0 && !below && strcmp(r->host, "open") == 0) {
		*why = "'open' is the public internet, and has a path only after a port";
		return -1;
	}
	return n < 0 ? -1 : n + (long)below;
}

static int rule_take_destination(struct net_rule *r, const char *text, const char **why)
{
	long host = rule_take_host(r, text, why);
	size_t part;

	if (host < 0)
		return -1;
	text += host;
	part = text[0] == '/' ? strspn(text + 1, "0123456789") : 0;
	if (part && (!text[1 + part] || text[1 + part] == ':') && net_is_literal(r->host)) {
		if (rule_take_bits(r, text + 1, part, why) < 0)
			return -1;
		text += 1 + part;
	}
	if (*text == ':') {
		part = strcspn(text + 1, "/");
		if (rule_take_ports(r, text + 1, part, why) < 0)
			return -1;
		text += 1 + part;
	}
	return *text ? rule_take_path(r, text, strlen(text), why) : 0;
}

/* ---- rules ---- */

/* Of a rule with an address: how many bits of it count. */
static unsigned rule_bits(const struct net_rule *r, int family)
{
	return r->kind == NET_RULE_RANGE ? r->bits : family == AF_INET ? 32 : 128;
}

int net_rule_parse(struct net_rule *out, const char *text, struct err *e)
{
	struct net_rule r = { 0 };
	const char *space = strchr(text, ' '), *why = "";

	if (strstr(text, "://"))
		why = "write the host without http:// or https://";
	else if ((!space || rule_take_methods(&r, text, (size_t)(space - text), &why) == 0) &&
		 rule_take_destination(&r, space ? space + 1 : text, &why) == 0) {
		*out = r;
		return 0;
	}
	return err_set(e, ERR_INVALID,
		       "'%.60s' is not a destination: %s. Examples: registry.example.org, "
		       "db.example.org:5432, *.example.org, 10.1.0.0/16, open",
		       text, why);
}

int net_rule_parse_allow(struct net_rule *out, const char *text, struct err *e)
{
	struct net_address a;
	struct net_rule r;
	const char *why;

	if (net_rule_parse(&r, text, e) < 0)
		return -1;
	if (r.kind != NET_RULE_OPEN && net_address_parse(r.host, &a) == 0 &&
	    ip_class_of_range(a.family, a.bytes, rule_bits(&r, a.family), &why) == IP_NEVER)
		return err_set(e, ERR_INVALID,
			       "'%.60s' cannot be allowed: such addresses are never reached (%s)",
			       text, why);
	*out = r;
	return 0;
}

int net_rule_parse_host(struct net_rule *out, const char *text, struct err *e)
{
	struct net_rule r;

	if (net_rule_parse(&r, text, e) < 0)
		return -1;
	if (r.kind > NET_RULE_BELOW || r.port != r.port_last || r.methods[0] || r.path[0])
		return err_set(e, ERR_INVALID,
			       "'%.60s' is not a host; write it like api.example.org, "
			       "api.example.org:8443 or *.example.org",
			       text);
	*out = r;
	return 0;
}

int net_rule_of_url(struct net_rule *out, const char *url, struct err *e)
{
	const char *from = strncmp(url, "sparse+", 7) == 0 ? url + 7 : url; /* cargo's */
	int tls = strncasecmp(from, "https://", 8) == 0;
	const char *host = from + (tls ? 8 : 7), *why = "";
	struct net_rule r = { 0 };

	if ((!tls && strncasecmp(from, "http://", 7) != 0) ||
	    net_authority_parse(host, strcspn(host, "/?#"), r.host, &r.port, &why) < 0)
		return err_set(e, ERR_INVALID,
			       "'%.60s' is not an address of a registry; write it like "
			       "https://registry.example.org/path, without a user",
			       url);
	if (!r.port)
		r.port = tls ? 443 : 80;
	r.port_last = r.port;
	*out = r;
	return 0;
}

/* ---- matching ---- */

/* Is name below host? By whole labels: "badexample.org" is not below "example.org". */
static int is_below(const char *name, const char *host)
{
	size_t n = strlen(name), h = strlen(host);

	return n > h + 1 && name[n - h - 1] == '.' && strcmp(name + n - h, host) == 0;
}

static int rule_fits_port(const struct net_rule *r, uint16_t port)
{
	if (r->port)
		return port >= r->port && port <= r->port_last;
	return r->kind == NET_RULE_OPEN || port == 80 || port == 443;
}

static int rule_denies_port(const struct net_rule *r, uint16_t port)
{
	return !r->port || (port >= r->port && port <= r->port_last);
}

static int rule_fits_host(const struct net_rule *r, const char *host)
{
	struct net_address a, net;

	switch ((enum net_rule_kind)r->kind) {
	case NET_RULE_OPEN:
		return 1;
	case NET_RULE_BELOW:
		return is_below(host, r->host) && !net_is_literal(host);
	case NET_RULE_RANGE:
		return net_address_parse(host, &a) == 0 && net_address_parse(r->host, &net) == 0 &&
		       net_in_range(&a, &net, r->bits);
	case NET_RULE_HOST:
		break;
	}
	return strcmp(host, r->host) == 0;
}

static int rule_has_method(const struct net_rule *r, const char *method)
{
	size_t n = strlen(method);

	if (!r->methods[0])
		return 1;
	for (const char *at = r->methods; *at;
	     at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == n && strncmp(at, method, n) == 0)
			return 1;
	return 0;
}

/* '*' matches any text, '/' included. Iterative, so that a pattern cannot take more than the
 * product of both lengths. */
static int path_fits(const char *pattern, const char *path, size_t n)
{
	const char *star = NULL, *end = path + n, *kept = NULL;

	while (path < end) {
		if (*pattern == '*') {
			star = pattern++;
			kept = path;
		} else if (*pattern == *path) {
			pattern++;
			path++;
		} else if (star) {
			pattern = star + 1;
			path = ++kept;
		} else {
			return 0;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == 0;
}

static int path_hex(const char *p)
{
	static const char digits[] = "0123456789abcdef";
	const char *high = strchr(digits, tolower((unsigned char)p[0])),
		   *low = p[0] ? strchr(digits, tolower((unsigned char)p[1])) : NULL;

	return p[0] && p[1] && high && low ? (int)((high - digits) << 4 | (low - digits)) : -1;
}

/* Is this the only spelling of the path? A server may treat "/a/../b", "/a//b" and "/%62" as "/b",
 * so a rule cannot be compared with them. */
static int path_is_plain(const char *path, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t dots;
		int c;

		if (path[i] == '\\')
			return 0;
		if (path[i] == '/') {
			dots = strspn(path + i + 1, ".");
			if (path[i + 1] == '/' ||
			    ((dots == 1 || dots == 2) &&
			     (i + 1 + dots >= n || path[i + 1 + dots] == '/' ||
			      path[i + 1 + dots] == ';')))
				return 0;
		}
		if (path[i] != '%')
			continue;
		c = path_hex(path + i + 1);
		if (c < 32 || c == '/' || c == '\\' || c == 127 || isalnum(c) || strchr("-._~", c))
			return 0;
	}
	return 1;
}

static enum net_fit rule_fits_http(const struct net_rule *r, const struct net_target *t)
{
	const char *path = t->path && *t->path && *t->path != '?' ? t->path : "/";
	size_t n = strcspn(path, "?#");

	if (!r->methods[0] && !r->path[0])
		return NET_FIT_YES;
	if (!t->method)
		return NET_FIT_HIDDEN;
	if (!rule_has_method(r, t->method))
		return NET_FIT_NO;
	if (!r->path[0])
		return NET_FIT_YES;
	if (*path != '/' || !path_is_plain(path, n))
		return NET_FIT_HIDDEN;
	return path_fits(r->path, path, n) ? NET_FIT_YES : NET_FIT_NO;
}

enum net_fit net_rule_allows(const struct net_rule *r, const struct net_target *t)
{
	if (!rule_fits_port(r, t->port) || !rule_fits_host(r, t->host))
		return NET_FIT_NO;
	return rule_fits_http(r, t);
}

int net_rule_denies(const struct net_rule *r, const struct net_target *t)
{
	return rule_denies_port(r, t->port) && rule_fits_host(r, t->host) &&
	       rule_fits_http(r, t) != NET_FIT_NO;
}

static int rule_holds(const struct net_rule *r, const struct sockaddr *to)
{
	struct net_address a = net_address_of(to), net;

	if ((r->kind != NET_RULE_RANGE && r->kind != NET_RULE_HOST) ||
	    net_address_parse(r->host, &net) < 0)
		return 0;
	return net_in_range(&a, &net, rule_bits(r, net.family));
}

int net_rule_allows_address(const struct net_rule *r, const struct net_target *t,
			    const struct sockaddr *to)
{
	return rule_fits_port(r, t->port) && rule_holds(r, to) &&
	       rule_fits_http(r, t) == NET_FIT_YES;
}

int net_rule_denies_address(const struct net_rule *r, const struct net_target *t,
			    const struct sockaddr *to)
{
	return rule_denies_port(r, t->port) && rule_holds(r, to) &&
	       rule_fits_http(r, t) != NET_FIT_NO;
}

static int rule_covers_port(const struct net_rule *wide, const struct net_rule *narrow)
{
	if (narrow->port)
		return rule_fits_port(wide, narrow->port) &&
		       rule_fits_port(wide, narrow->port_last);
	if (narrow->kind == NET_RULE_OPEN)
		return 1;
	return rule_fits_port(wide, 80) || rule_fits_port(wide, 443);
}

int net_rule_covers(const struct net_rule *wide, const struct net_rule *narrow)
{
	if (!rule_covers_port(wide, narrow))
		return 0;
	if (wide->kind == NET_RULE_OPEN)
		return 1;
	switch ((enum net_rule_kind)narrow->kind) {
	case NET_RULE_OPEN:
		return 0;
	case NET_RULE_BELOW:
		return wide->kind == NET_RULE_BELOW &&
		       (is_below(narrow->host, wide->host) || !strcmp(narrow->host, wide->host));
	case NET_RULE_RANGE:
		return wide->kind == NET_RULE_RANGE && narrow->bits >= wide->bits &&
		       rule_fits_host(wide, narrow->host);
	case NET_RULE_HOST:
		break;
	}
	return rule_fits_host(wide, narrow->host);
}

static void rule_ports_text(const struct net_rule *r, char out[16])
{
	if (!r->port)
		*out = 0;
	else if (r->port == 1 && r->port_last == 65535)
		snprintf(out, 16, ":*");
	else if (r->port == r->port_last)
		snprintf(out, 16, ":%u", r->port);
	else
		snprintf(out, 16, ":%u-%u", r->port, r->port_last);
}

const char *net_rule_text(const struct net_rule *r, char out[RULE_TEXT])
{
	int v6 = strchr(r->host, ':') != NULL;
	char ports[16], bits[8] = "";

	rule_ports_text(r, ports);
	if (r->kind == NET_RULE_RANGE)
		snprintf(bits, sizeof(bits), "/%u", r->bits);
	snprintf(out, RULE_TEXT, "%s%s%s%s%s%s%s%s%s", r->methods, r->methods[0] ? " " : "",
		 r->kind == NET_RULE_BELOW ? "*." : "", v6 ? "[" : "",
		 r->kind == NET_RULE_OPEN ? "open" : r->host, v6 ? "]" : "", bits, ports, r->path);
	return out;
}
