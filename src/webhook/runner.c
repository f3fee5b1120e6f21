/* runner.c - see runner.h. */
#include "webhook/runner.h"

#include <stdlib.h>

enum {
	GATHER_MS = 50,
	RELOAD_MS = 10000
}; /* events are queued together; changes by other servers */

struct webhook_runner {
	struct fleet_subscriber subscriber;
	struct fleet *fleet;
	struct outbound *outbound;
	struct dispatch_conf conf;
	struct dispatch *dispatch; /* NULL: not started */
	json_t *(*e2b_event)(void *ctx, const struct store_event *ev);
	void *e2b_ctx;
	struct timer work, reload;
	int gathering; /* work is due soon */
};

static int64_t runner_now(void *ctx)
{
	(void)ctx;
	return fleet_now_ns();
}

static int runner_send(void *ctx, struct outbound_request *q, const struct outbound_message *m,
		       struct err *e)
{
	return outbound_send(((struct webhook_runner *)ctx)->outbound, q, m, e);
}

static void runner_cancel(void *ctx, struct outbound_request *q)
{
	(void)ctx;
	outbound_cancel(q);
}

static void runner_soon(struct webhook_runner *r, uint64_t ms)
{
	if (r->dispatch)
		timer_set(&r->work, ms);
	r->gathering = 1;
}

static void runner_finished(void *ctx, int at_once)
{
	struct webhook_runner *r = ctx;

	if (at_once)
		runner_soon(r, 0);
	else if (!r->gathering)
		runner_soon(r, GATHER_MS);
}

static json_t *runner_e2b(void *ctx, const struct store_event *ev)
{
	struct webhook_runner *r = ctx;

	return r->e2b_event ? r->e2b_event(r->e2b_ctx, ev) : NULL;
}

static void runner_on_event(struct fleet_subscriber *x, const struct store_event *ev,
			    const json_t *data)
{
	struct webhook_runner *r = loop_owner(x, struct webhook_runner, subscriber);

	(void)ev;
	(void)data;
	if (!r->gathering && r->dispatch && dispatch_webhooks(r->dispatch))
		runner_soon(r, GATHER_MS);
}

static void runner_work(struct timer *t)
{
	struct webhook_runner *r = loop_owner(t, struct webhook_runner, work);
	int64_t next, now = fleet_now_ns();

	r->gathering = 0;
	next = dispatch_work(r->dispatch);
	if (next < now + INT64_C(1000000) * RELOAD_MS)
		timer_set(&r->work, next > now ? (uint64_t)(next - now) / 1000000 + 1 : 1);
}

static void runner_reload(struct timer *t)
{
	struct webhook_runner *r = loop_owner(t, struct webhook_runner, reload);

	dispatch_reload(r->dispatch);
	if (dispatch_webhooks(r->dispatch))
		runner_soon(r, 0);
	timer_set(&r->reload, RELOAD_MS);
}

struct webhook_runner *webhook_runner_new(struct fleet *f, struct outbound *o)
{
	struct webhook_runner *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	*r = (struct webhook_runner){ .subscriber.on_event = runner_on_event,
				      .fleet = f,
				      .outbound = o };
	r->conf = (struct dispatch_conf){ .store = f->store,
					  .vault = f->vault,
					  .now_ns = runner_now,
					  .send = runner_send,
					  .cancel = runner_cancel,
					  .finished = runner_finished,
					  .e2b_event = runner_e2b,
					  .ctx = r };
	timer_init_late(&r->work, f->loop, runner_work);
	timer_init_late(&r->reload, f->loop, runner_reload);
	fleet_subscribe(f, &r->subscriber);
	return r;
}

void webhook_runner_free(struct webhook_runner *r)
{
	if (!r)
		return;
	webhook_runner_stop(r);
	fleet_unsubscribe(r->fleet, &r->subscriber);
	timer_fini(&r->work);
	timer_fini(&r->reload);
	free(r);
}

void webhook_runner_set_e2b(struct webhook_runner *r,
			    json_t *(*event)(void *ctx, const struct store_event *ev), void *ctx)
{
	r->e2b_event = event;
	r->e2b_ctx = ctx;
}

void webhook_runner_start(struct webhook_runner *r)
{
	if (r->dispatch)
		return;
	r->dispatch = dispatch_new(&r->conf);
	timer_set(&r->reload, 0);
}

void webhook_runner_stop(struct webhook_runner *r)
{
	timer_clear(&r->work);
	timer_clear(&r->reload);
	if (r->dispatch)
		dispatch_save(r->dispatch);
	dispatch_free(r->dispatch);
	r->dispatch = NULL;
}

void webhook_runner_changed(struct webhook_runner *r)
{
	if (r->dispatch)
		timer_set(&r->reload, 0);
}

int webhook_runner_settle(struct webhook_runner *r, const char *webhook, struct err *e)
{
	return r->dispatch ? dispatch_settle(r->dispatch, webhook, e) : 0;
}
