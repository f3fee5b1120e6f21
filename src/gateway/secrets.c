/* secrets.c - the secrets that a request names reach the node of its box before the request does (shared_rows.h). A name
 * that the team does not have is left to the node, which answers as on one machine. */
#include "gateway/gateway_call.h"
#include "gateway/restart.h"
#include "gateway/shared_rows.h"
#include "store/secrets.h"
#include "store/shared_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECRETS_DEPTH = 8, SECRETS_NODE_MS = 5000 };

struct gateway_secrets {
	struct gateway_call *call;
	struct node_request request;
	unsigned node;
};

static void secrets_add(struct gateway_call *x, unsigned node, const char *name, json_t *rows)
{
	struct api *a = x->call->api;
	struct store_secret row = { 0 };
	char id[STORE_SHARED_ID + 1];
	json_t *one;
	struct err e;

	if (strlen(name) > STORE_NAME ||
	    store_secret_find(a->store, x->call->who.team, name, &row, &e) < 0)
		return;
	snprintf(id, sizeof(id), "%s/%s", x->call->who.team, name);
	one = gateway_rows_has(x->gateway->rows, node, id, row.version, row.updated_ns)
		      ? NULL
		      : gateway_rows_json(a, "secret", id);
	if (one)
		json_array_append_new(rows, one);
	store_secret_fini(&row);
}

/* Every list `secrets` in the body: of a box, or of a program that a schedule or a tool starts later. */
static void secrets_find(struct gateway_call *x, unsigned node, json_t *doc, unsigned depth,
			 json_t *rows)
{
	const char *key, *name;
	json_t *v, *one;
	size_t i;

	if (depth == SECRETS_DEPTH)
		return;
	json_array_foreach(doc, i, one) secrets_find(x, node, one, depth + 1, rows);
	if (!json_is_object(doc))
		return;
	json_object_foreach(doc, key, v)
	{
		secrets_find(x, node, v, depth + 1, rows);
		if (strcmp(key, "secrets") != 0)
			continue;
		json_array_foreach(
			v, i, one) if ((name = json_string_value(json_object_get(one, "name"))))
			secrets_add(x, node, name, rows);
	}
}

static void secrets_answered(struct node_request *r, int status, const char *body, size_t n,
			     const char *why)
{
	struct gateway_secrets *s = loop_owner(r, struct gateway_secrets, request);
	struct gateway_call *x = s->call;
	unsigned node = s->node;

	if (status == 200) {
		gateway_rows_learn(x->gateway->rows, node, body, n);
		x->secrets_node = (int)node;
		forward_begin(x, node);
	} else if (x->refused && x->ntried < PLACE_ATTEMPTS) {
		x->refused(x);
	} else {
		x->node = node;
		forward_fail_unreachable(x, why ? why : "it did not take the secrets of the box");
	}
}

int secrets_begin(struct gateway_call *x, unsigned node)
{
	struct gateway_secrets *s;
	char *text, identity[128];
	json_t *rows;
	size_t n;

	if (!x->doc || !x->gateway->rows || x->secrets_node == (int)node)
		return 0;
	rows = json_array();
	secrets_find(x, node, x->doc, 0, rows);
	if (!json_array_size(rows)) {
		json_decref(rows);
		return 0;
	}
	secrets_end(x);
	s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	*s = (struct gateway_secrets){ .call = x, .node = node, .request.done = secrets_answered };
	x->secrets = s;
	text = gateway_rows_text(rows, NULL, &n);
	restart_identity(x->call->who.team, identity);
	node_request_send(&s->request, x->gateway->tunnels, x->call->api->loop, node,
			  &(struct node_request_what){ .method = "PUT",
						       .target = "/cluster/rows",
						       .identity = identity,
						       .body = text,
						       .n = n },
			  SECRETS_NODE_MS);
	gateway_rows_wipe(text);
	return 1;
}

void secrets_end(struct gateway_call *x)
{
	if (!x->secrets)
		return;
	node_request_cancel(&x->secrets->request);
	free(x->secrets);
	x->secrets = NULL;
}
