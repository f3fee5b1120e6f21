/* renewals.c - see renewals.h. */
#include "gateway/renewals.h"
#include "base/log.h"

#include <stdlib.h>

struct renewal {
	struct cluster_request ask;
	struct gateway_renewals *all;
	struct renewal *next, **link;
	uint32_t node;
};

struct gateway_renewals {
	struct tunnels *tunnels;
	struct cluster_client *engines;
	struct renewal *first;
};

static void renewal_free(struct renewal *x)
{
	*x->link = x->next;
	if (x->next)
		x->next->link = x->link;
	free(x);
}

static void renewal_done(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	struct renewal *x = loop_owner(r, struct renewal, ask);
	const char *cert = json_string_value(json_object_get(answer, "certificate"));
	const char *why = e ? e->msg : "the answer has no certificate";

	if (cert && !e)
		log_info("the certificate of a node was renewed", LOG_U("node", x->node));
	else
		log_warn("the certificate of a node was not renewed", LOG_U("node", x->node),
			 LOG_S("why", why));
	tunnels_send_certificate(x->all->tunnels, x->node, e ? NULL : cert, why);
	renewal_free(x);
}

/* Role and number are those of the tunnel, which the certificate has proven. */
static void renewals_request(void *user, uint32_t number, const char *request)
{
	struct gateway_renewals *all = user;
	struct renewal *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->all = all;
	x->node = number;
	x->ask.done = renewal_done;
	x->next = all->first;
	x->link = &all->first;
	if (x->next)
		x->next->link = &x->next;
	all->first = x;
	cluster_client_send(all->engines, &x->ask,
			    json_pack("{s:{s:s, s:i, s:s}}", "renew", "role", "node", "number",
				      (int)number, "request", request));
}

struct gateway_renewals *gateway_renewals_new(struct tunnels *t, struct cluster_client *engines)
{
	struct gateway_renewals *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->tunnels = t;
	r->engines = engines;
	tunnels_set_renew(t, renewals_request, r);
	return r;
}

void gateway_renewals_free(struct gateway_renewals *r)
{
	if (!r)
		return;
	tunnels_set_renew(r->tunnels, NULL, NULL);
	while (r->first) {
		cluster_client_cancel(&r->first->ask);
		renewal_free(r->first);
	}
	free(r);
}
