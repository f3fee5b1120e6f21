/* resolver.h - resolves a host to its addresses, on the loop.
 * Owns: the resolver and its requests. Literal addresses are not resolved. */
#pragma once
#include "base/err.h"
#include "loop/loop.h"
#include <stdint.h>
#include <sys/socket.h>

enum { RESOLVER_ADDRESSES = 16 };

struct evdns_base;
struct resolver {
	struct evdns_base *dns;
};

struct name_address {
	struct sockaddr_storage to;
	socklen_t len;
};

struct resolver_request;

/* servers: "192.0.2.53" or "192.0.2.53:5353" each; none: those of /etc/resolv.conf. /etc/hosts
 * takes precedence. Both are read only now: a confined process cannot open files. */
must_check int resolver_init(struct resolver *n, struct loop *l, const char *const *servers,
			     struct err *e);
/* told is called once, after this function has returned: v[0..n), or n 0 and the reason. */
struct resolver_request *resolver_request(struct resolver *n, struct loop *l, const char *host,
					  uint16_t port,
					  void (*told)(void *ctx, const struct name_address *v,
						       unsigned n, const char *why),
					  void *ctx);
void resolver_cancel(struct resolver_request *a); /* told is not called; allowed on NULL */
void resolver_fini(struct resolver *n);
