/* ip_class.h - what an address is to us: somewhere out there, the operator's own, or nowhere to go.
 * Owns: the table of ranges. */
#pragma once
#include <sys/socket.h>

enum ip_class {
	IP_PUBLIC,
	IP_INTERNAL, /* only where the operator said so for that host */
	IP_NEVER, /* nobody serves packages there; but metadata services, and forms that hide another */
};

/* By the table alone; *why names the range. */
enum ip_class ip_class_of(const struct sockaddr *to, const char **why);
/* Is it this machine's own? Asks the kernel which way packets would go; sends none. */
int ip_is_ours(const struct sockaddr *to, socklen_t len);

struct ip_range {
	const char *range; /* "10.0.0.0/8" */
	enum ip_class is;
	const char *why;
};
extern const struct ip_range ip_ranges[];
extern const unsigned ip_nranges;
