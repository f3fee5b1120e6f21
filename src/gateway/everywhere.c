/* everywhere.c - see everywhere.h. */
#include "gateway/everywhere.h"
#include "api/identity.h"
#include "base/cleanup.h"
#include "gateway/fanout.h"
#include "gateway/gateway.h"

#include <stdlib.h>
#include <string.h>

struct everywhere {
	struct fanout fanout;
	struct call *call;
	struct buf target;
	int status;
	json_t *doc;
	call_merge *merge;
};

static void everywhere_drop(struct call *c)
{
	struct everywhere *x = c->state;

	c->state = NULL;
	fanout_free(&x->fanout);
	buf_fini(&x->target);
	json_decref(x->doc);
	free(x);
}

static const char *everywhere_target(void *user, unsigned node)
{
	struct everywhere *x = user;

	return node == id_own_node() ? NULL : buf_str(&x->target);
}

static void everywhere_done(struct fanout *f)
{
	struct everywhere *x = loop_owner(f, struct everywhere, fanout);
	struct call *c = x->call;
	json_t *doc = x->doc;
	int status = x->status;

	for (unsigned i = 0; i < f->n; i++)
		if (f->v[i].status == 200)
			x->merge(doc, f->v[i].doc);
		else if (f->v[i].status != 404) /* it has nothing of this */
			http_set(c->req, "Atoll-Incomplete", "%s", f->v[i].name);
	x->doc = NULL;
	c->drop = NULL;
	everywhere_drop(c);
	call_json(c, status, doc);
}

void gateway_everywhere(struct call *c, int status, json_t *take_doc, call_merge *merge)
{
	struct everywhere *x = calloc(1, sizeof(*x));
	const struct http_req *r = c->req;
	struct identity who = { .principal = c->who };
	int has_body = strcmp(r->method, "GET") != 0;
	auto_free char *body = has_body ? json_dumps(c->body, JSON_COMPACT) : NULL;
	char identity[IDENTITY_TEXT];

	if (!x)
		abort();
	*x = (struct everywhere){ .call = c, .status = status, .doc = take_doc, .merge = merge };
	buf_printf(&x->target, "%s%s%s", r->path, *r->query ? "?" : "", r->query);
	identity_text(&who, identity);
	x->fanout = (struct fanout){ .done = everywhere_done,
				     .user = x,
				     .method = r->method,
				     .timeout_ms = c->merged_ms,
				     .body = body,
				     .nbody = body ? strlen(body) : 0 };
	c->state = x;
	c->drop = everywhere_drop;
	fanout_begin(&x->fanout, c->api->gateway->tunnels, c->api->loop, everywhere_target,
		     identity);
}
