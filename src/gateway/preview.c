/* preview.c - a preview by the name of its box: the request has no key and so no team, and the directory knows which nodes
 * have boxes of that name. If it is one node, that node resolves the name as on one machine; the path of several is not
 * known (502). */
#include "coordinator/queries.h"
#include "gateway/gateway_call.h"

#include <stdlib.h>

enum { PREVIEW_MS = 500 };

struct gateway_preview {
	struct gateway_call *call;
	struct cluster_request request;
	struct timer late;
};

static void preview_go(struct gateway_preview *p, int node)
{
	struct gateway_call *x = p->call;

	preview_end(x);
	gateway_named(x, node);
}

static void preview_answered(struct cluster_request *r, const json_t *answer, const struct err *e)
{
	const json_t *rows = e ? NULL : query_rows(answer, 0);

	preview_go(loop_owner(r, struct gateway_preview, request),
		   json_array_size(rows) == 1 ? (int)query_int(json_array_get(rows, 0), 0) : -1);
}

static void preview_late(struct timer *t)
{
	preview_go(loop_owner(t, struct gateway_preview, late), -1);
}

void preview_begin(struct gateway_call *x)
{
	struct gateway_preview *p;

	if (!x->gateway->engines || !target_is_plain_name(x->target.object)) {
		gateway_named(x, -1);
		return;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		abort();
	*p = (struct gateway_preview){ .call = x, .request.done = preview_answered };
	x->preview = p;
	forward_hold_body(x);
	timer_init(&p->late, x->call->api->loop, preview_late);
	timer_set(&p->late, PREVIEW_MS);
	query_request(x->gateway->engines, &p->request, "boxes_named",
		      json_pack("[s]", x->target.object));
}

void preview_end(struct gateway_call *x)
{
	struct gateway_preview *p = x->preview;

	if (!p)
		return;
	x->preview = NULL;
	cluster_client_cancel(&p->request);
	timer_fini(&p->late);
	free(p);
}
