/* resolver.c - see resolver.h. evdns runs on the loop, so a slow DNS server does not block
 * others. */
#include "egress/resolver.h"
#include "egress/net_rule.h"

#include <arpa/inet.h>
#include <event2/dns.h>
#include <event2/event.h>
#include <event2/util.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct resolver_request {
	struct evdns_getaddrinfo_request *request; /* NULL: answered, or not handled by evdns */
	struct timer later;
	void (*told)(void *ctx, const struct name_address *v, unsigned n, const char *why);
	void *ctx;
	int forgotten, asking;
	struct name_address found[RESOLVER_ADDRESSES];
	unsigned nfound;
	const char *why;
};

static const struct {
	const char *name, *value;
} options[] = {
	{ "timeout", "3" },
	{ "attempts", "3" },
	{ "max-inflight", "256" },
};

int resolver_init(struct resolver *n, struct loop *l, const char *const *servers, struct err *e)
{
	int own = servers && *servers;

	n->dns = evdns_base_new(l->base, 0);
	if (!n->dns)
		return err_set(e, ERR_SYS, "make a resolver");
	if (evutil_secure_rng_init() < 0)
		return err_set(e, ERR_SYS, "no randomness for the resolver");
	evdns_base_load_hosts(n->dns, "/etc/hosts");
	/* Without DNS servers /etc/hosts still works: not a failure. */
	if (!own)
		(void)!evdns_base_resolv_conf_parse(n->dns, DNS_OPTION_NAMESERVERS,
						    "/etc/resolv.conf");
	for (; own && *servers; servers++)
		if (evdns_base_nameserver_ip_add(n->dns, *servers) != 0)
			return err_set(e, ERR_INVALID,
				       "egress.dns: '%.60s' is not an address of a server",
				       *servers);
	/* Names are absolute: no search domains are tried. */
	evdns_base_search_clear(n->dns);
	for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		evdns_base_set_option(n->dns, options[i].name, options[i].value);
	return 0;
}

static void resolver_drop(struct resolver_request *a)
{
	timer_fini(&a->later);
	free(a);
}

static void resolver_tell(struct timer *t)
{
	struct resolver_request *a = loop_owner(t, struct resolver_request, later);

	if (!a->forgotten)
		a->told(a->ctx, a->found, a->nfound, a->why);
	resolver_drop(a);
}

static void resolver_take(struct resolver_request *a, const struct evutil_addrinfo *list)
{
	for (; list && a->nfound < RESOLVER_ADDRESSES; list = list->ai_next) {
		struct name_address *to = &a->found[a->nfound];

		if (list->ai_addrlen > sizeof(to->to))
			continue;
		memcpy(&to->to, list->ai_addr, list->ai_addrlen);
		to->len = (socklen_t)list->ai_addrlen;
		a->nfound++;
	}
}

static void resolver_answered(int err, struct evutil_addrinfo *list, void *arg)
{
	struct resolver_request *a = arg;

	a->request = NULL;
	if (err == 0)
		resolver_take(a, list);
	if (list)
		evutil_freeaddrinfo(list);
	a->why = a->nfound ? NULL : err ? evutil_gai_strerror(err) : "it has no address";
	if (a->forgotten && !a->asking)
		resolver_drop(a);
	else /* maybe from within resolver_request() */
		timer_set(&a->later, 0);
}

static int resolver_literal(struct resolver_request *a, const char *host, uint16_t port)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct name_address *to = &a->found[0];

	if (inet_pton(AF_INET, host, &v4.sin_addr) == 1) {
		memcpy(&to->to, &v4, sizeof(v4));
		to->len = sizeof(v4);
	} else if (inet_pton(AF_INET6, host, &v6.sin6_addr) == 1) {
		memcpy(&to->to, &v6, sizeof(v6));
		to->len = sizeof(v6);
	} else {
		return 0;
	}
	a->nfound = 1;
	return 1;
}

struct resolver_request *resolver_request(struct resolver *n, struct loop *l, const char *host,
					  uint16_t port,
					  void (*told)(void *ctx, const struct name_address *v,
						       unsigned n, const char *why),
					  void *ctx)
{
	struct evutil_addrinfo hints = { .ai_family = AF_UNSPEC,
					 .ai_socktype = SOCK_STREAM,
					 .ai_flags = EVUTIL_AI_NUMERICSERV };
	struct resolver_request *a = calloc(1, sizeof(*a));
	char service[8];

	if (!a)
		abort();
	a->told = told;
	a->ctx = ctx;
	timer_init(&a->later, l, resolver_tell);
	if (resolver_literal(a, host, port)) {
		timer_set(&a->later, 0);
		return a;
	}
	snprintf(service, sizeof(service), "%u", port);
	a->asking = 1;
	a->request = evdns_getaddrinfo(n->dns, host, service, &hints, resolver_answered, a);
	a->asking = 0;
	return a;
}

void resolver_cancel(struct resolver_request *a)
{
	if (!a)
		return;
	a->forgotten = 1;
	if (a->request)
		evdns_getaddrinfo_cancel(
			a->request); /* resolver_answered() follows, from the loop */
	else
		resolver_drop(a);
}

void resolver_fini(struct resolver *n)
{
	if (n->dns)
		evdns_base_free(n->dns, 1);
	n->dns = NULL;
}
