/* keeper_info.c - see keeper_info.h. */
#include "api/keeper_info.h"
#include "wire/sock.h"

enum { CACHED_MS = 1000 };

struct keeper_info_asking {
	struct keeper_call *ask;
	void (*then)(struct call *c, const struct wire_info *a);
};

static void keeper_info_stop(struct call *c)
{
	struct keeper_info_asking *x = c->state;

	keeper_client_cancel(&c->api->fleet.keeper, x->ask);
}

static void keeper_info_answered(void *ctx, const struct frame *f, size_t len, int *fd,
				 const struct err *e)
{
	struct call *c = ctx;
	struct keeper_info_asking *x = c->state;

	(void)len;
	(void)fd;
	(void)e;
	c->drop = NULL;
	if (f) {
		c->api->about = *(const struct wire_info *)f;
		c->api->about_ms = loop_now_ms();
	}
	x->then(c, f ? &c->api->about : NULL);
}

void keeper_info_request(struct call *c, void (*then)(struct call *c, const struct wire_info *a))
{
	struct api *a = c->api;
	struct frame ask = sock_head(WIRE_INFO, 0);
	struct keeper_info_asking *x;

	if (a->about_ms && loop_now_ms() - a->about_ms < CACHED_MS) {
		then(c, &a->about);
		return;
	}
	if (!keeper_client_is_connected(&a->fleet.keeper)) {
		then(c, NULL);
		return;
	}
	x = call_alloc(c, sizeof(*x));
	x->then = then;
	c->state = x;
	c->drop = keeper_info_stop;
	x->ask = keeper_client_request(&a->fleet.keeper, &ask, sizeof(ask), WIRE_INFO_REPLY,
				       keeper_info_answered, c);
}
