/* dispatch.c - see dispatch.h: subscriptions and life. */
#include "base/log.h"
#include "secret/vault.h"
#include "webhook/dispatch_internal.h"

#include <stdlib.h>
#include <string.h>

int64_t dispatch_now(const struct dispatch *x)
{
	return x->conf.now_ns(x->conf.ctx);
}

struct dispatch_webhook *dispatch_find(struct dispatch *x, const char *id)
{
	for (unsigned i = 0; i < x->n; i++)
		if (strcmp(x->v[i].row.id, id) == 0)
			return &x->v[i];
	return NULL;
}

/* ---- subscriptions ---- */

static void dispatch_drop_webhooks(struct dispatch_webhook *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		store_webhook_fini(&v[i].row);
		json_decref(v[i].events);
		vault_wipe(&v[i].secret);
		direct_fini(&v[i].direct);
	}
	free(v);
}

static void dispatch_add(struct dispatch *x, struct dispatch_webhook *w, struct store_webhook *take)
{
	struct dispatch_webhook *old = dispatch_find(x, take->id);
	uint64_t failed;
	struct err e;

	w->row = *take;
	*take = (struct store_webhook){ 0 };
	w->events = json_loads(w->row.events, 0, NULL);
	w->seen = old && old->seen > w->row.seq ? old->seen : w->row.seq;
	if (old && old->row.seq >= w->row.seq) { /* else another server has advanced */
		w->direct = old->direct;
		old->direct.n = 0;
	}
	w->sending = old ? old->sending : 0;
	w->is_quick = old && old->is_quick;
	if (old && strcmp(old->row.url, w->row.url) == 0) {
		w->failures = old->failures;
		w->pause_ns = old->pause_ns;
	}
	/* An attempt further away than the longest wait: the clock was set back. */
	if (store_delivery_count(x->conf.store, w->row.id, &w->waiting, &failed, &e) < 0 ||
	    (w->waiting && store_delivery_wake(x->conf.store, w->row.id, dispatch_now(x),
					       dispatch_now(x) + WEBHOOK_LONGEST_NS, &e) < 0))
		log_warn("webhook", LOG_E(&e));
}

void dispatch_reload(struct dispatch *x)
{
	struct store_webhooks rows = { 0 };
	struct dispatch_webhook *v;
	struct err e;

	if (store_webhook_list(x->conf.store, NULL, &rows, &e) < 0) {
		log_warn("webhooks cannot be read", LOG_E(&e));
		return;
	}
	v = calloc(rows.n ? rows.n : 1, sizeof(*v));
	if (!v)
		abort();
	for (unsigned i = 0; i < rows.n; i++)
		dispatch_add(x, &v[i], &rows.v[i]);
	dispatch_drop_webhooks(x->v, x->n);
	x->v = v;
	x->n = rows.n;
	store_webhooks_fini(&rows);
}

unsigned dispatch_webhooks(const struct dispatch *x)
{
	return x->n;
}

int64_t dispatch_work(struct dispatch *x)
{
	int64_t next = INT64_MAX;

	if (dispatch_queue(x) < 0)
		next = dispatch_now(x) + STORE_AGAIN_NS;
	x->turn++; /* each webhook comes first in its turn */
	for (unsigned i = 0; i < x->n; i++) {
		int64_t due = dispatch_send(x, &x->v[(i + x->turn) % x->n]);

		next = due < next ? due : next;
	}
	return next;
}

struct dispatch *dispatch_new(const struct dispatch_conf *conf)
{
	struct dispatch *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->conf = *conf;
	dispatch_reload(x);
	return x;
}

void dispatch_free(struct dispatch *x)
{
	if (!x)
		return;
	for (unsigned i = 0; i < DISPATCH_ALL; i++)
		if (x->attempts[i].webhook[0]) {
			x->conf.cancel(x->conf.ctx, &x->attempts[i].request);
			dispatch_release(&x->attempts[i]);
		}
	dispatch_drop_webhooks(x->v, x->n);
	free(x);
}
