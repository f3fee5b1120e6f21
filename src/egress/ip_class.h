/* ip_class.h - the class of an address: public, internal, or never allowed.
 * Owns: the table of ranges. */
#pragma once
#include <stdint.h>
#include <sys/socket.h>

enum ip_class {
	IP_PUBLIC,
	IP_INTERNAL, /* only if the operator allows it for that host */
	IP_NEVER,    /* never allowed: metadata services, and addresses that embed another one */
};

/* By the table only; *why names the range. */
enum ip_class ip_class_of(const struct sockaddr *to, const char **why);
/* The class of a range, if the table has one for all of it; else IP_PUBLIC: each address has its
 * own. */
enum ip_class ip_class_of_range(int family, const uint8_t *addr, unsigned bits, const char **why);
/* Is it an address of this machine? Queries the kernel for the route; sends no packet. */
int ip_is_ours(const struct sockaddr *to, socklen_t len);

struct ip_range {
	const char *range; /* "10.0.0.0/8" */
	enum ip_class is;
	const char *why;
};
extern const struct ip_range ip_ranges[];
extern const unsigned ip_nranges;
