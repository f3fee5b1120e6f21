/* usage_sampler.c - see usage_sampler.h. */
#include "v1box/usage_sampler.h"
#include "base/cleanup.h"
#include "fleet/charge.h"

#include <string.h>

enum { SLOTS = 1024, PATIENCE_MS = 3000, RING_LEAST = 16 };

struct sampler_ring {
	struct usage_sample *v;
	uint32_t room, n, first, most;
};

struct gauge_box {
	struct gauge_box *next;
	struct usage_sampler *all;
	char id[ID_MAX + 1];
	struct sampler_ring seconds, tens;
	struct usage_watch *watches;
	uint64_t asked_ms, tens_ms; /* time of the last request; end of the present ten seconds */
	int asking;
	struct keeper_call *ask;
	struct init_call init_call;
	struct usage_now now;
};

struct usage_sampler {
	struct fleet *fleet;
	struct gauge_box *slots[SLOTS];
	unsigned turn; /* the slot of the fleet at which the next second starts */
	size_t bytes;  /* of all rings */
};

struct usage_sampler *usage_sampler_new(struct fleet *f)
{
	struct usage_sampler *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	g->fleet = f;
	return g;
}

/* ---- rings ---- */

static void sampler_grow(struct usage_sampler *g, struct sampler_ring *r)
{
	uint32_t room = r->room ? r->room * 2 : RING_LEAST;
	struct usage_sample *v;

	room = room < r->most ? room : r->most;
	if (g->bytes + (room - r->room) * sizeof(*v) > USAGE_BYTES)
		return; /* the ring does not grow: new samples replace the oldest earlier */
	v = malloc(room * sizeof(*v));
	if (!v)
		abort();
	for (uint32_t i = 0; i < r->n; i++)
		v[i] = r->v[(r->first + i) % r->room];
	free(r->v);
	g->bytes += (room - r->room) * sizeof(*v);
	r->v = v;
	r->room = room;
	r->first = 0;
}

static void sampler_add(struct usage_sampler *g, struct sampler_ring *r,
			const struct usage_sample *s)
{
	if (r->n == r->room && r->room < r->most)
		sampler_grow(g, r);
	if (!r->room)
		return;
	if (r->n == r->room) {
		r->first = (r->first + 1) % r->room;
		r->n--;
	}
	r->v[(r->first + r->n++) % r->room] = *s;
}

static void ring_fini(struct usage_sampler *g, struct sampler_ring *r)
{
	g->bytes -= r->room * sizeof(*r->v);
	free(r->v);
}

static uint32_t sampler_kib(uint64_t bytes)
{
	return bytes == UINT64_MAX        ? 0
	       : bytes >> 10 > UINT32_MAX ? UINT32_MAX
					  : (uint32_t)(bytes >> 10);
}

static uint16_t sampler_small(uint64_t n)
{
	return n == UINT64_MAX ? 0 : n > UINT16_MAX ? UINT16_MAX : (uint16_t)n;
}

static uint64_t disk_used(const struct wire_status *s)
{
	return s->disk_free < s->disk_size ? s->disk_size - s->disk_free : 0;
}

static void sampler_keep(struct gauge_box *x)
{
	const struct usage_now *now = &x->now;
	struct usage_sample s = {
		.cpu_us = now->kernel.cpu_us,
		.at_s = (uint32_t)(now->at_ns / 1000000000),
		.mem_kib = sampler_kib(now->kernel.mem_now),
		.disk_kib = now->told ? sampler_kib(disk_used(&now->inside)) : 0,
		.in_kib = sampler_kib(now->bytes_in + 1023),
		.out_kib = sampler_kib(now->bytes_out + 1023),
		.pids = sampler_small(now->kernel.pids_now),
		.running = sampler_small(now->running),
	};
	uint64_t ms = loop_now_ms();

	if (!now->counted)
		return;
	if (x->watches)
		sampler_add(x->all, &x->seconds, &s);
	if (ms < x->tens_ms)
		return;
	x->tens_ms = ms + USAGE_STEP_S * 1000 - 500; /* tolerance for an inexact timer */
	sampler_add(x->all, &x->tens, &s);
}

void usage_history(const struct usage_sampler *g, const char *box, int step_s, uint32_t since_s,
		   void (*each)(void *ctx, const struct usage_sample *s), void *ctx)
{
	const struct gauge_box *x = g->slots[id_hash(box) % SLOTS];
	const struct sampler_ring *r;

	while (x && strcmp(x->id, box) != 0)
		x = x->next;
	if (!x)
		return;
	r = step_s == 1 ? &x->seconds : &x->tens;
	for (uint32_t i = 0; i < r->n; i++) {
		const struct usage_sample *s = &r->v[(r->first + i) % r->room];

		if (s->at_s >= since_s)
			each(ctx, s);
	}
}

/* ---- sampling ---- */

static void sampler_tell(struct gauge_box *x, const struct usage_now *now)
{
	for (struct usage_watch *w = x->watches, *next; w; w = next) {
		next = w->next;
		if (w->once || !now)
			usage_unwatch(w);
		w->told(w, now);
	}
}

static void sampler_conclude(struct gauge_box *x)
{
	const struct box *b = fleet_find(x->all->fleet, x->id);

	keeper_client_cancel(&x->all->fleet->keeper, x->ask);
	init_conn_remove_call(&x->init_call);
	x->ask = NULL;
	x->asking = 0;
	x->now.at_ns = fleet_now_ns();
	x->now.running = b ? b->nruns : 0;
	x->now.bytes_in = b ? b->way.bytes_in : 0;
	x->now.bytes_out = b ? b->way.bytes_out : 0;
	sampler_keep(x);
	sampler_tell(x, &x->now);
}

static void is_complete(struct gauge_box *x)
{
	if (!x->ask && !x->init_call.line)
		sampler_conclude(x);
}

static void sampler_counted(void *ctx, const struct frame *f, size_t len, int *fd,
			    const struct err *e)
{
	struct gauge_box *x = ctx;
	struct box *b = fleet_find(x->all->fleet, x->id);

	(void)len;
	(void)fd;
	(void)e; /* the box is ending: its usage is in its record */
	x->ask = NULL;
	if (f) {
		x->now.kernel = *(const struct wire_counters *)f;
		x->now.counted = 1;
		if (b) {
			box_count_cpu(b, &x->now.kernel);
			charge_box(b, &x->now.kernel);
		}
	}
	is_complete(x);
}

static void sampler_answered(struct init_call *l, const struct frame *f, size_t len, int *fd)
{
	struct gauge_box *x = loop_owner(l, struct gauge_box, init_call);

	(void)fd;
	if (f->type == WIRE_STATUS && len >= sizeof(struct wire_status)) {
		x->now.inside = *(const struct wire_status *)f;
		x->now.told = 1;
	}
	init_conn_remove_call(l);
	is_complete(x);
}

static void sampler_refused(struct init_call *l, const struct err *e)
{
	(void)e;
	init_conn_remove_call(l);
	is_complete(loop_owner(l, struct gauge_box, init_call));
}

static void sampler_lost(struct init_call *l)
{
	is_complete(loop_owner(l, struct gauge_box, init_call));
}

static const struct init_call_ops init_call_on = { .answer = sampler_answered,
						   .refused = sampler_refused,
						   .lost = sampler_lost };

static void sampler_ask(struct gauge_box *x, struct box *b)
{
	x->now.counted = x->now.told = 0;
	x->asking = 1;
	x->asked_ms = loop_now_ms();
	x->ask = keeper_client_request_box(&x->all->fleet->keeper, WIRE_COUNTERS, 0,
					   fleet_keeper_id(x->all->fleet, x->id),
					   WIRE_COUNTERS_REPLY, sampler_counted, x);
	if (init_conn_is_open(&b->line) && b->state != BOX_PAUSED) /* a paused box does
								    * not answer */
		init_conn_request(&b->line, &x->init_call, &init_call_on, WIRE_STAT, 0);
}

/* ---- boxes ---- */

static struct gauge_box *box_of(struct usage_sampler *g, const char *id)
{
	struct gauge_box **slot = &g->slots[id_hash(id) % SLOTS], *x = *slot;

	while (x && strcmp(x->id, id) != 0)
		x = x->next;
	if (x)
		return x;
	x = calloc(1, sizeof(*x));
	if (!x)
		abort();
	x->all = g;
	x->next = *slot;
	x->seconds.most = USAGE_SECONDS;
	x->tens.most = USAGE_TENS;
	memcpy(x->id, id, sizeof(x->id));
	*slot = x;
	return x;
}

static void sampled_box_free(struct gauge_box *x)
{
	keeper_client_cancel(&x->all->fleet->keeper, x->ask);
	init_conn_remove_call(&x->init_call);
	ring_fini(x->all, &x->seconds);
	ring_fini(x->all, &x->tens);
	free(x);
}

/* Removes deleted boxes, and requests without an answer: the keeper may be down. */
static void sampler_sweep(struct usage_sampler *g, uint64_t now)
{
	for (unsigned i = 0; i < SLOTS; i++)
		for (struct gauge_box **at = &g->slots[i], *x; (x = *at);) {
			if (x->asking && now - x->asked_ms > PATIENCE_MS)
				sampler_conclude(x);
			if (fleet_find(g->fleet, x->id)) {
				at = &x->next;
				continue;
			}
			sampler_tell(x, NULL);
			*at = x->next;
			sampled_box_free(x);
		}
}

void usage_sampler_tick(struct usage_sampler *g)
{
	uint64_t now = loop_now_ms();
	unsigned asks = 0;

	sampler_sweep(g, now);
	for (unsigned i = 0; i < FLEET_SLOTS; i++) {
		unsigned slot = (g->turn + i) % FLEET_SLOTS;

		for (struct box *b = g->fleet->slots[slot]; b; b = b->next) {
			struct gauge_box *x;

			if (b->state != BOX_RUNNING && b->state != BOX_STOPPED &&
			    b->state != BOX_PAUSED)
				continue;
			x = box_of(g, b->row.id);
			if (x->asking || (!x->watches && now < x->tens_ms))
				continue;
			sampler_ask(x, b);
			asks++;
		}
		if (asks >= USAGE_REQUESTS) {
			g->turn = slot + 1;
			return;
		}
	}
}

void usage_sampler_free(struct usage_sampler *g)
{
	for (unsigned i = 0; g && i < SLOTS; i++)
		while (g->slots[i]) {
			struct gauge_box *x = g->slots[i];

			g->slots[i] = x->next;
			sampled_box_free(x);
		}
	free(g);
}

void usage_watch(struct usage_sampler *g, const struct box *b, struct usage_watch *w, int once)
{
	struct gauge_box *x = box_of(g, b->row.id);

	w->of = x;
	w->once = once;
	w->next = x->watches;
	x->watches = w;
	if (!x->asking)
		sampler_ask(x, (struct box *)b);
}

void usage_unwatch(struct usage_watch *w)
{
	struct usage_watch **at;

	if (!w->of)
		return;
	for (at = &w->of->watches; *at != w; at = &(*at)->next)
		;
	*at = w->next;
	w->of = NULL;
}
