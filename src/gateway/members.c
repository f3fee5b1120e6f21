/* members.c - see members.h.
 *
 *   REGISTER -> RENEW, every second -> the list of nodes -> nodes that are not in it: tunnels_forget()
 *
 * An engine that does not answer changes nothing: the last list counts. Before the first list every node with a valid
 * certificate is accepted, because a gateway that starts during an outage of the database must serve. */
#include "gateway/members.h"
#include "base/log.h"
#include "cluster/place.h"

#include <stdlib.h>
#include <string.h>

enum { MEMBERS_MS = 1000, MEMBERS_CONFLICT_MS = 10000 };

struct gateway_members {
	struct coordinator *coordinator;
	struct tunnels *tunnels;
	struct timer clock;
	unsigned number;
	const char *address, *version;
	int64_t incarnation; /* 0: not registered */
	int has_list, is_stopped, was_refused;
	uint8_t nodes[PLACE_NUMBERS / 8]; /* a bit each */
};

static int members_has(const struct gateway_members *m, uint32_t number)
{
	return number < PLACE_NUMBERS && m->nodes[number / 8] >> number % 8 & 1;
}

static int members_permits(void *user, uint32_t number)
{
	struct gateway_members *m = user;

	if (!m->has_list || members_has(m, number))
		return 1;
	if (!m->is_stopped &&
	    m->incarnation) /* it may have joined at another gateway a moment ago */
		timer_set(&m->clock, 0);
	return 0;
}

static void members_drop_removed(struct gateway_members *m)
{
	uint32_t removed[64];
	unsigned n = 0;

	for (struct tunnel_node *x = tunnels_next(m->tunnels, NULL); x;
	     x = tunnels_next(m->tunnels, x))
		if (!members_has(m, x->number) && n < 64)
			removed[n++] = x->number;
	for (unsigned i = 0; i < n; i++) {
		log_warn("node was removed from the cluster", LOG_U("node", removed[i]));
		tunnels_forget(m->tunnels, removed[i]);
	}
}

static void members_add(struct gateway_members *m, int number)
{
	if (number > 0 && number < PLACE_NUMBERS)
		m->nodes[number / 8] |= (uint8_t)(1 << number % 8);
}

/* A gateway may be a node, too (role both). */
static void members_listed(struct gateway_members *m, const struct coordinator_answer *a)
{
	memset(m->nodes, 0, sizeof(m->nodes));
	for (unsigned i = 0; i < a->nnodes; i++)
		members_add(m, a->nodes[i].number);
	for (unsigned i = 0; i < a->ngateways; i++)
		members_add(m, a->gateways[i].number);
	m->has_list = 1;
	members_drop_removed(m);
}

/* Another process has this number, or the gateway was removed. */
static void members_refused(struct gateway_members *m, const struct err *e)
{
	m->incarnation = 0;
	if (!m->was_refused)
		log_error("this gateway is not registered", LOG_U("gateway", m->number), LOG_E(e));
	m->was_refused = 1;
	timer_set(&m->clock, MEMBERS_CONFLICT_MS);
}

static void members_answered(void *user, const struct coordinator_answer *a, const struct err *e)
{
	struct gateway_members *m = user;

	if (m->is_stopped)
		return;
	timer_set(&m->clock, MEMBERS_MS);
	if (e && e->kind != ERR_SYS)
		members_refused(m, e);
	else if (e)
		return; /* not known */
	else if (!m->incarnation)
		m->incarnation = a->incarnation;
	else
		members_listed(m, a);
	if (!e && !m->has_list)
		timer_set(&m->clock, 0);
	m->was_refused &= e != NULL;
}

static void members_ask(struct timer *t)
{
	struct gateway_members *m = loop_owner(t, struct gateway_members, clock);
	struct coordinator_request q = { .op = m->incarnation ? COORDINATOR_RENEW
							      : COORDINATOR_REGISTER,
					 .gateway = (int)m->number,
					 .incarnation = m->incarnation,
					 .address = m->address,
					 .version = m->version };

	coordinator_ask(m->coordinator, &q, members_answered, m);
}

struct gateway_members *gateway_members_new(struct loop *l, struct coordinator *c,
					    struct tunnels *t, unsigned number, const char *address,
					    const char *version)
{
	struct gateway_members *m = calloc(1, sizeof(*m));
	struct tunnel_hooks hooks = { .user = m, .permitted = members_permits };

	if (!m)
		abort();
	m->coordinator = c;
	m->tunnels = t;
	m->number = number;
	m->address = address;
	m->version = version;
	timer_init(&m->clock, l, members_ask);
	timer_set(&m->clock, 0);
	tunnels_set_hooks(t, &hooks);
	return m;
}

void gateway_members_stop(struct gateway_members *m)
{
	if (!m)
		return;
	m->is_stopped = 1;
	timer_fini(&m->clock);
}

void gateway_members_free(struct gateway_members *m)
{
	gateway_members_stop(m);
	free(m);
}
