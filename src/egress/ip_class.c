/* ip_class.c - see ip_class.h. Ranges are parsed from their strings each time: the printed ranges
 * are the checked ones, and an address is checked once per connection. */
#include "egress/ip_class.h"
#include "base/cleanup.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct ip_range ip_ranges[] = {
	{ "0.0.0.0/8", IP_NEVER, "this network" },
	{ "10.0.0.0/8", IP_INTERNAL, "private" },
	{ "100.64.0.0/10", IP_INTERNAL, "carrier NAT" },
	{ "127.0.0.0/8", IP_INTERNAL, "loopback" },
	{ "168.63.129.16/32", IP_NEVER, "Azure's metadata and agents" },
	{ "169.254.0.0/16", IP_NEVER, "link-local, metadata services" },
	{ "172.16.0.0/12", IP_INTERNAL, "private" },
	{ "192.0.0.0/24", IP_NEVER, "protocol assignments" },
	{ "192.0.2.0/24", IP_NEVER, "documentation" },
	{ "192.88.99.0/24", IP_NEVER, "6to4 relays" },
	{ "192.168.0.0/16", IP_INTERNAL, "private" },
	{ "198.18.0.0/15", IP_INTERNAL, "benchmarks" },
	{ "198.51.100.0/24", IP_NEVER, "documentation" },
	{ "203.0.113.0/24", IP_NEVER, "documentation" },
	{ "224.0.0.0/4", IP_NEVER, "multicast" },
	{ "240.0.0.0/4", IP_NEVER, "reserved, broadcast" },
	{ "::/128", IP_NEVER, "unspecified" },
	{ "::1/128", IP_INTERNAL, "loopback" },
	{ "::/96", IP_NEVER, "IPv4 in an old form" },
	{ "::ffff:0:0/96", IP_NEVER, "IPv4 in IPv6" },
	{ "64:ff9b::/96", IP_NEVER, "NAT64: hides an IPv4 address" },
	{ "64:ff9b:1::/48", IP_NEVER, "NAT64: hides an IPv4 address" },
	{ "100::/64", IP_NEVER, "discard" },
	{ "2001::/23", IP_NEVER, "protocol assignments, Teredo" },
	{ "2001:db8::/32", IP_NEVER, "documentation" },
	{ "2002::/16", IP_NEVER, "6to4: hides an IPv4 address" },
	{ "3fff::/20", IP_NEVER, "documentation" },
	{ "5f00::/16", IP_NEVER, "segment routing" },
	{ "fc00::/7", IP_INTERNAL, "unique local" },
	{ "fe80::/10", IP_NEVER, "link-local" },
	{ "fec0::/10", IP_NEVER, "site-local" },
	{ "ff00::/8", IP_NEVER, "multicast" },
};
const unsigned ip_nranges = ARRAY_LEN(ip_ranges);

/* Does the range of the table hold all addresses that start with these bits of addr? */
static int in_range(const char *range, int family, const uint8_t *addr, unsigned addr_bits)
{
	char net[INET6_ADDRSTRLEN + 4], *slash;
	uint8_t want[16];
	unsigned bits, bytes;

	snprintf(net, sizeof(net), "%s", range);
	slash = strchr(net, '/');
	*slash = 0;
	if ((strchr(net, ':') ? AF_INET6 : AF_INET) != family || inet_pton(family, net, want) != 1)
		return 0;
	bits = (unsigned)atoi(slash + 1);
	bytes = bits / 8;
	if (bits > addr_bits || memcmp(addr, want, bytes) != 0)
		return 0;
	return bits % 8 == 0 || (addr[bytes] ^ want[bytes]) >> (8 - bits % 8) == 0;
}

enum ip_class ip_class_of_range(int family, const uint8_t *addr, unsigned bits, const char **why)
{
	for (unsigned i = 0; i < ip_nranges; i++)
		if (in_range(ip_ranges[i].range, family, addr, bits)) {
			*why = ip_ranges[i].why;
			return ip_ranges[i].is;
		}
	*why = "public";
	return IP_PUBLIC;
}

enum ip_class ip_class_of(const struct sockaddr *to, const char **why)
{
	if (to->sa_family == AF_INET)
		return ip_class_of_range(
			AF_INET, (const uint8_t *)&((const struct sockaddr_in *)to)->sin_addr, 32,
			why);
	if (to->sa_family == AF_INET6)
		return ip_class_of_range(
			AF_INET6, (const uint8_t *)&((const struct sockaddr_in6 *)to)->sin6_addr,
			128, why);
	*why = "not an internet address";
	return IP_NEVER;
}

int ip_is_ours(const struct sockaddr *to, socklen_t len)
{
	auto_fd int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage from;
	socklen_t n = sizeof(from);

	/* For a local destination the kernel chooses the same address as source. */
	if (fd < 0 || connect(fd, to, len) < 0 || getsockname(fd, (struct sockaddr *)&from, &n) < 0)
		return 0;
	if (to->sa_family == AF_INET)
		return memcmp(&((const struct sockaddr_in *)to)->sin_addr,
			      &((struct sockaddr_in *)&from)->sin_addr, 4) == 0;
	return memcmp(&((const struct sockaddr_in6 *)to)->sin6_addr,
		      &((struct sockaddr_in6 *)&from)->sin6_addr, 16) == 0;
}
