/* fanout.c - see fanout.h. */
#include "gateway/fanout.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fanout_over(struct timer *t)
{
	struct fanout *f = loop_owner(t, struct fanout, none);

	f->done(f);
}

static void fanout_answered(struct node_request *x, int status, const char *body, size_t n,
			    const char *why)
{
	struct fanout_answer *a = loop_owner(x, struct fanout_answer, request);
	struct fanout *f = a->all;

	(void)why;
	a->status = status;
	a->doc = body ? json_loadb(body, n, JSON_REJECT_DUPLICATES, NULL) : NULL;
	if (--f->waiting == 0)
		timer_set(&f->none, 0);
}

void fanout_begin(struct fanout *f, struct tunnels *t, struct loop *l, fanout_target *target,
		  const char *identity)
{
	unsigned n = 0;

	for (struct tunnel_node *x = tunnels_next(t, NULL); x; x = tunnels_next(t, x))
		n++;
	timer_init(&f->none, l, fanout_over);
	f->v = calloc(n ? n : 1, sizeof(*f->v));
	if (!f->v)
		abort();
	for (struct tunnel_node *x = tunnels_next(t, NULL); x && f->n < n; x = tunnels_next(t, x)) {
		struct fanout_answer *a = &f->v[f->n];
		const char *text = target(f->user, x->number);

		if (!text)
			continue;
		f->n++;
		a->all = f;
		a->request.node = x->number;
		snprintf(a->name, sizeof(a->name), "%s", x->name);
		if (x->state != TUNNEL_UP)
			continue;
		f->waiting++;
		a->request.done = fanout_answered;
		node_request_send(&a->request, t, l, x->number,
				  &(struct node_request_what){ .method = f->method,
							       .headers = f->headers,
							       .target = text,
							       .identity = identity,
							       .body = f->body,
							       .n = f->nbody },
				  f->timeout_ms ? f->timeout_ms : FANOUT_MS);
	}
	if (!f->waiting)
		timer_set(&f->none, 0);
}

void fanout_free(struct fanout *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		node_request_cancel(&f->v[i].request);
		json_decref(f->v[i].doc);
	}
	if (f->v)
		timer_fini(&f->none);
	free(f->v);
	*f = (struct fanout){ 0 };
}
