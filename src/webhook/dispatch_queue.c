/* dispatch_queue.c - see dispatch.h: from events to deliveries. */
#include "base/log.h"
#include "webhook/dispatch_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQ_SAVED = 1000 }; /* events without a delivery after which the number is stored */

/* The body, to be freed by the caller; NULL: the webhook does not want it. */
static char *dispatch_body(struct dispatch *x, const struct dispatch_webhook *w,
			   const struct store_event *ev)
{
	struct buf text = { 0 };
	char *body = NULL;
	const char *type;
	json_t *doc;

	if (strcmp(w->row.format, "e2b") != 0) {
		if (!webhook_wants(w->events, ev->type))
			return NULL;
		webhook_event_text(&text, ev);
		return buf_steal(&text);
	}
	doc = x->conf.e2b_event ? x->conf.e2b_event(x->conf.ctx, ev) : NULL;
	type = json_string_value(json_object_get(doc, "type"));
	if (type && webhook_wants(w->events, type))
		body = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	return body;
}

/* 1: *out is set. */
static int dispatch_read_event(struct dispatch *x, const struct dispatch_webhook *w,
			       const struct store_event *ev, int64_t now_ns,
			       struct store_delivery *out)
{
	*out = (struct store_delivery){ .seq = ev->seq,
					.queued_ns = now_ns,
					.body = dispatch_body(x, w, ev) };
	snprintf(out->box, sizeof(out->box), "%s", ev->box);
	snprintf(out->type, sizeof(out->type), "%s", ev->type);
	return out->body != NULL;
}

/* Events before `first` were deleted before this webhook could queue them. */
static uint64_t dispatch_lost(const struct dispatch_webhook *w, int64_t first)
{
	return first > w->seen + 1 && w->seen ? (uint64_t)(first - w->seen - 1) : 0;
}

static int dispatch_store(struct dispatch *x, struct dispatch_webhook *w,
			  const struct store_delivery *v, unsigned n, uint64_t lost, struct err *e)
{
	int rc = 1;

	if (n || lost || w->seen - w->row.seq >= SEQ_SAVED) {
		rc = store_delivery_queue(x->conf.store, w->row.id, w->row.seq, w->seen, lost, v, n,
					  e);
		if (rc > 0) {
			w->row.seq = w->seen;
			w->waiting += n;
		}
	}
	return rc;
}

/* The deliveries of one page of events, at most `most`. Returns their number, or -1; *out_more: there are more events. */
static int dispatch_read_page(struct dispatch *x, struct dispatch_webhook *w, int64_t last,
			      struct store_delivery *out, unsigned most, int *out_more,
			      struct err *e)
{
	struct store_events rows = { 0 };
	int64_t now_ns = dispatch_now(x);
	unsigned n = 0;

	if (store_event_list(x->conf.store, w->seen, w->row.team, NULL, most, &rows, e) < 0)
		return -1;
	for (unsigned i = 0; i < rows.n; i++)
		n += (unsigned)dispatch_read_event(x, w, &rows.v[i], now_ns, &out[n]);
	*out_more = rows.more;
	w->seen = rows.more ? rows.v[rows.n - 1].seq : last;
	store_events_fini(&rows);
	return (int)n;
}

/* Another server has queued events, or has changed the webhook. */
static void dispatch_outdated(struct dispatch *x, struct dispatch_webhook *w)
{
	direct_fini(&w->direct);
	w->seen = w->row.seq;
	x->stale = 1;
}

/* One page of events. 1: there are more; 0: all were read, or the queue is full; -1. */
static int dispatch_queue_page(struct dispatch *x, struct dispatch_webhook *w, uint64_t lost,
			       int64_t last, struct err *e)
{
	struct store_delivery found[DISPATCH_PAGE];
	int n, more, rc;

	if (w->waiting >= WEBHOOK_QUEUE || w->seen >= last)
		return 0;
	n = dispatch_read_page(x, w, last, found, DISPATCH_PAGE, &more, e);
	if (n < 0)
		return -1;
	rc = dispatch_store(x, w, found, (unsigned)n, lost, e);
	for (int i = 0; i < n; i++)
		free(found[i].body);
	if (rc == 0)
		dispatch_outdated(x, w);
	else if (rc < 0)
		w->seen = w->row.seq;
	return rc < 0 ? -1 : rc && more;
}

/* ---- without the store, while the receiver works ---- */

static int dispatch_queue_direct(struct dispatch *x, struct dispatch_webhook *w, int64_t last,
				 struct err *e)
{
	struct store_delivery found[DIRECT_MOST];
	int more = 1;

	while (more && w->direct.n < DIRECT_MOST && w->seen < last) {
		int n = dispatch_read_page(x, w, last, found, DIRECT_MOST - w->direct.n, &more, e);

		if (n < 0)
			return -1;
		for (int i = 0; i < n; i++)
			direct_add(&w->direct, &found[i]);
	}
	return 0;
}

/* Stores what has arrived. */
static int dispatch_save_direct(struct dispatch *x, struct dispatch_webhook *w, struct err *e)
{
	int64_t until = direct_until(&w->direct, w->seen);
	int rc;

	if (!w->direct.arrived && until - w->row.seq < SEQ_SAVED)
		return 0;
	rc = store_webhook_arrived(x->conf.store, w->row.id, w->row.seq, until, w->direct.arrived,
				   dispatch_now(x), e);
	if (rc > 0) {
		w->row.seq = until;
		direct_stored(&w->direct, until);
	} else if (rc == 0) {
		dispatch_outdated(x, w);
	}
	return rc < 0 ? -1 : 0;
}

int dispatch_spill(struct dispatch *x, struct dispatch_webhook *w, struct err *e)
{
	struct store_delivery v[DIRECT_MOST];
	unsigned n = 0;
	int rc;

	if (!w->direct.n)
		return 0;
	if (dispatch_save_direct(x, w, e) < 0)
		return -1;
	for (unsigned i = 0; i < w->direct.n; i++)
		if (w->direct.v[i]->state != DIRECT_ARRIVED)
			v[n++] = w->direct.v[i]->d;
	rc = store_delivery_queue(x->conf.store, w->row.id, w->row.seq, w->seen, 0, v, n, e);
	if (rc < 0)
		return -1;
	if (rc == 0) {
		dispatch_outdated(x, w);
	} else {
		w->row.seq = w->seen;
		w->waiting += n;
		direct_fini(&w->direct);
	}
	return 0;
}

static int dispatch_is_slow(const struct dispatch_webhook *w, int64_t now_ns)
{
	return w->direct.n && (now_ns - w->direct.v[0]->d.queued_ns > DIRECT_NS ||
			       now_ns < w->direct.v[0]->d.queued_ns);
}

static int dispatch_queue_one(struct dispatch *x, struct dispatch_webhook *w, int64_t first,
			      int64_t last, struct err *e)
{
	uint64_t lost = dispatch_lost(w, first);
	int rc = dispatch_save_direct(x, w, e);

	if (rc < 0)
		return -1;
	if (!w->waiting && !w->failures && !lost && !dispatch_is_slow(w, dispatch_now(x)))
		return dispatch_queue_direct(x, w, last, e);
	if (dispatch_spill(x, w, e) < 0)
		return -1;
	do {
		rc = dispatch_queue_page(x, w, lost, last, e);
		lost = 0;
	} while (rc > 0);
	return rc;
}

int dispatch_settle(struct dispatch *x, const char *webhook, struct err *e)
{
	struct dispatch_webhook *w = dispatch_find(x, webhook);

	return w ? dispatch_spill(x, w, e) : 0;
}

void dispatch_save(struct dispatch *x)
{
	struct err e;

	for (unsigned i = 0; i < x->n; i++)
		if (dispatch_save_direct(x, &x->v[i], &e) < 0)
			log_warn("webhook", LOG_E(&e));
}

int dispatch_queue(struct dispatch *x)
{
	int64_t first, last;
	struct err e;
	int rc = 0;

	if (store_event_range(x->conf.store, &first, &last, &e) < 0)
		rc = -1;
	for (unsigned i = 0; i < x->n && rc == 0; i++)
		rc = dispatch_queue_one(x, &x->v[i], first, last, &e);
	if (rc < 0)
		log_warn("events cannot be queued for webhooks", LOG_E(&e));
	if (x->stale) {
		x->stale = 0;
		dispatch_reload(x);
	}
	return rc;
}
