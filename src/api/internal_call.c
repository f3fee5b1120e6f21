/* internal_call.c - see internal_call.h. */
#include "api/internal_call.h"
#include "api/fields.h"

#include <stdlib.h>

struct internal_call {
	struct internal_call_spec spec;
	struct call *call;
	struct timer over;
	int status;
	json_t *doc;
};

static void internal_json(struct call *c, int status, json_t *take_doc)
{
	struct internal_call *x = c->surface;

	call_account(c, status < 400 ? "ok" : "error");
	c->req->status = status;
	x->status = status;
	json_decref(x->doc);
	x->doc = take_doc;
	timer_set(&x->over, 0); /* the handler may still use the call */
}

static const struct api_format internal_format = { .json = internal_json };

static void internal_free(struct internal_call *x)
{
	timer_fini(&x->over);
	http_internal_free(x->call->req);
	json_decref(x->doc);
	free(x);
}

static void internal_over(struct timer *t)
{
	struct internal_call *x = loop_owner(t, struct internal_call, over);
	struct internal_call_spec spec = x->spec;
	json_t *doc = json_incref(x->doc);
	int status = x->status;

	internal_free(x);
	spec.answered(spec.user, status, doc);
	json_decref(doc);
}

struct internal_call *internal_call_begin(const struct internal_call_spec *spec, json_t *take_body)
{
	struct internal_call *x = calloc(1, sizeof(*x));
	struct http_req *r = http_internal_new(&spec->api->http, spec->method, spec->path);
	struct err e;

	if (!x)
		abort();
	x->spec = *spec;
	timer_init(&x->over, spec->api->loop, internal_over);
	x->call = call_internal(spec->api, r, spec->who, &internal_format);
	x->call->surface = x;
	x->call->body = take_body;
	if (x->call->row->body && fields_check(take_body, x->call->row->body, "", &e) < 0) {
		call_error(x->call, 400, "invalid", e.msg, NULL, NULL);
		return x;
	}
	if (x->call->row->body)
		fields_prune(take_body, x->call->row->body);
	if (spec->run)
		spec->run(x->call, spec->user);
	else
		x->call->row->run(x->call);
	return x;
}

void internal_call_drop(struct internal_call *x)
{
	internal_free(x);
}
