/* network_answer.c - see network_answer.h. */
#include "api/network_answer.h"
#include "fleet/box.h"

struct network_waiting {
	struct egress_client_wait wait;
	struct call *call;
	int status;
	json_t *doc;
};

static void network_answer_send(struct call *c, int status, json_t *take_doc)
{
	if (take_doc)
		call_json(c, status, take_doc);
	else
		call_empty(c, status);
}

static void network_answer_applied(struct egress_client_wait *w)
{
	struct network_waiting *x = loop_owner(w, struct network_waiting, wait);

	x->call->drop = NULL;
	network_answer_send(x->call, x->status, x->doc);
}

static void network_answer_stop(struct call *c)
{
	struct network_waiting *x = c->state;

	egress_client_cancel_wait(&c->api->fleet.egress_client, &x->wait);
	json_decref(x->doc);
}

void network_answer(struct call *c, struct box *b, int status, json_t *take_doc)
{
	struct network_waiting *x = call_alloc(c, sizeof(*x));

	*x = (struct network_waiting){
		.wait.applied = network_answer_applied, .call = c, .status = status, .doc = take_doc
	};
	if (!b || !egress_client_await_change(b, &x->wait)) {
		network_answer_send(c, status, take_doc);
		return;
	}
	c->state = x;
	c->drop = network_answer_stop;
}
