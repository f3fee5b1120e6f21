/* link.c - requests of links without a key, and without the id of a box: the nodes are asked which of them knows the token
 * or the signature, at most LINK_NODES of them. A client that sends too many wrong ones gets 429 before any node is asked. */
#include "api/auth.h"
#include "gateway/gateway_call.h"

#include <stdio.h>
#include <string.h>

enum { LINK_NODES = 64 };

static int link_fits(struct gateway_call *x)
{
	unsigned n = 0;

	for (struct tunnel_node *t = tunnels_next(x->gateway->tunnels, NULL); t;
	     t = tunnels_next(x->gateway->tunnels, t))
		n++;
	if (n <= LINK_NODES)
		return 1;
	call_error(x->call, 400, "invalid",
		   "a link without the id of a box is served by clusters of up to 64 nodes only",
		   x->call->req->path,
		   "use the host <port>-<id>.DOMAIN, or the header E2b-Sandbox-Id");
	return 0;
}

static void link_begin(struct gateway_call *x, const char *path, const char *method,
		       const char *headers, void (*found)(struct gateway_call *x, int node))
{
	if (!auth_may_guess(x->call->api, x->call->req))
		call_fail_throttled(x->call);
	else if (link_fits(x))
		find_begin_path(x, path, method, headers, found);
}

/* The node that answers it; -1: none has it, and the client receives this status. */
static void link_found(struct gateway_call *x, int node, int status, const char *code,
		       const char *text)
{
	if (node >= 0)
		forward_begin(x, (unsigned)node);
	else if (x->missing[0])
		find_fail_missing(x);
	else if (auth_failed(x->call->api, x->call->req))
		call_fail_throttled(x->call);
	else
		call_error(x->call, status, code, text, NULL, NULL);
}

/* ---- a run that was shared ---- */

static void link_run_found(struct gateway_call *x, int node)
{
	link_found(x, node, 404, "not_found", "this link does not exist, or has expired");
}

/* The token has 64 hexadecimal digits: no other text makes the gateway ask the nodes. */
void link_run(struct gateway_call *x)
{
	size_t n = strlen(x->target.object);

	forward_hold_body(x);
	if (n == 64 && strspn(x->target.object, "0123456789abcdef") == n)
		link_begin(x, x->call->req->path, NULL, NULL, link_run_found);
	else
		link_run_found(x, -1);
}

/* ---- a file of a box that E2B's client has signed ---- */

static void link_file_found(struct gateway_call *x, int node)
{
	link_found(x, node, 401, "unauthorized", "missing or invalid API key, or signature");
}

void link_file(struct gateway_call *x)
{
	const struct http_req *r = x->call->req;
	auto_buf struct buf path = { 0 };

	forward_hold_body(x);
	buf_printf(&path, "%s?%s", r->path, r->query);
	link_begin(x, buf_str(&path), strcmp(r->method, "POST") == 0 ? "POST" : "GET",
		   "Atoll-Find: box\r\n", link_file_found);
}
