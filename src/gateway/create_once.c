/* create_once.c - the node of a request with an Idempotency-Key: a repetition at any gateway reaches the node that has
 * stored the answer, also when the nodes that are connected have changed meanwhile.
 *
 * One row (team, key) -> node in the database of the cluster. If it does not answer in time, the node is the own one of the
 * key (create.c), which is the same at all gateways as long as they are connected to the same nodes. */
#include "coordinator/cluster_client.h"
#include "coordinator/queries.h"
#include "gateway/gateway_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ONCE_MS = 250, ONCE_KEY = 256 };

struct create_once {
	struct gateway_call *call;
	struct cluster_request request;
	struct timer late;
	unsigned node; /* that this gateway would choose */
	void (*go)(struct gateway_call *x, unsigned node);
};

static void create_once_go(struct create_once *o, unsigned node)
{
	struct gateway_call *x = o->call;
	void (*go)(struct gateway_call * x, unsigned node) = o->go;

	create_once_end(x);
	go(x, node);
}

static void create_once_answered(struct cluster_request *r, const json_t *answer,
				 const struct err *e)
{
	struct create_once *o = loop_owner(r, struct create_once, request);
	int64_t node = e ? 0 : query_int(json_array_get(query_rows(answer, 1), 0), 0);

	create_once_go(o, node > 0 ? (unsigned)node : o->node);
}

static void create_once_late(struct timer *t)
{
	struct create_once *o = loop_owner(t, struct create_once, late);

	create_once_go(o, o->node);
}

int create_once_begin(struct gateway_call *x, const char *key, unsigned node,
		      void (*go)(struct gateway_call *x, unsigned node))
{
	struct create_once *o;
	char number[16];

	if (!x->gateway->engines || !*key || strlen(key) > ONCE_KEY)
		return 0;
	o = calloc(1, sizeof(*o));
	if (!o)
		abort();
	*o = (struct create_once){
		.call = x, .node = node, .go = go, .request.done = create_once_answered
	};
	x->once = o;
	snprintf(number, sizeof(number), "%u", node);
	timer_init(&o->late, x->call->api->loop, create_once_late);
	timer_set(&o->late, ONCE_MS);
	query_request(x->gateway->engines, &o->request, "idempotency",
		      json_pack("[s, s, s]", x->call->who.team, key, number));
	return 1;
}

void create_once_end(struct gateway_call *x)
{
	struct create_once *o = x->once;

	if (!o)
		return;
	x->once = NULL;
	cluster_client_cancel(&o->request);
	timer_fini(&o->late);
	free(o);
}
