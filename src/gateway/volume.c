/* volume.c - E2B's answers about one volume contain a token for its files, which is the API key of the request. Nodes get no
 * keys, so the gateway adds it to the answer of the node. */
#include "gateway/gateway_call.h"
#include "record/changes.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { VOLUME_MS = 30000 };

struct gateway_volume {
	struct node_request request;
	struct gateway_call *call;
};

static const char *volume_key(const struct call *c)
{
	const char *key = http_header(c->req, "x-api-key"),
		   *bearer = http_header(c->req, "authorization");

	if (!key && bearer && !strncasecmp(bearer, "Bearer ", 7))
		key = bearer + 7;
	return key ? key : "";
}

static void volume_answered(struct node_request *r, int status, const char *body, size_t n,
			    const char *why)
{
	struct gateway_call *x = loop_owner(r, struct gateway_volume, request)->call;
	json_t *doc = body ? json_loadb(body, n, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (!status || !doc) {
		json_decref(doc);
		forward_fail_unreachable(x, status ? "the answer of its node is not JSON" : why);
		return;
	}
	if (status < 300 && json_is_object(doc))
		json_object_set_new(doc, "token", json_text(volume_key(x->call)));
	call_send(x->call, status, doc);
}

void volume_begin(struct gateway_call *x, unsigned node)
{
	struct gateway_volume *v = calloc(1, sizeof(*v));

	if (!v)
		abort();
	volume_end(x);
	x->volume = v;
	v->call = x;
	v->request.done = volume_answered;
	node_request_send(&v->request, x->gateway->tunnels, x->call->api->loop, node,
			  &(struct node_request_what){ .method = x->call->req->method,
						       .target = x->call->req->path,
						       .identity = x->identity,
						       .body = x->body ? x->body->p : NULL,
						       .n = x->body ? x->body->len : 0 },
			  VOLUME_MS);
}

void volume_end(struct gateway_call *x)
{
	if (!x->volume)
		return;
	node_request_cancel(&x->volume->request);
	free(x->volume);
	x->volume = NULL;
}
