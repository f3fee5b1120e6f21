/* dispatch.c - see dispatch.h. */
#include "webhook/dispatch.h"
#include "base/cleanup.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_NS (INT64_C(1) * 1000000000) /* after the first failure of a receiver; then doubled */
#define PAUSE_LONGEST_NS (INT64_C(60) * 1000000000)
#define STORE_AGAIN_NS (INT64_C(5) * 1000000000) /* after a failure of the store */
enum { SEQ_SAVED = 1000 }; /* events without a delivery after which the number is stored */

struct dispatch_webhook {
	struct store_webhook row;
	json_t *events;
	int64_t seen; /* all events up to this number were looked at; row.seq is the stored one */
	uint64_t waiting;           /* deliveries */
	unsigned sending, failures; /* attempts; failures of the receiver in a row */
	int64_t pause_ns;           /* no attempt before */
};

struct dispatch_attempt {
	struct outbound_request request;
	struct dispatch *all;
	char webhook[ID_LEN + 1]; /* "": free */
	struct store_delivery delivery;
};

struct dispatch {
	struct dispatch_conf conf;
	struct dispatch_webhook *v;
	unsigned n, turn;
	int stale; /* the subscriptions must be read again */
	struct dispatch_attempt attempts[DISPATCH_ALL];
};

static int64_t dispatch_now(const struct dispatch *x)
{
	return x->conf.now_ns(x->conf.ctx);
}

static struct dispatch_webhook *dispatch_find(struct dispatch *x, const char *id)
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
	}
	free(v);
}

static void dispatch_add(struct dispatch *x, struct dispatch_webhook *w, struct store_webhook *take)
{
	const struct dispatch_webhook *old = dispatch_find(x, take->id);
	uint64_t failed;
	struct err e;

	w->row = *take;
	*take = (struct store_webhook){ 0 };
	w->events = json_loads(w->row.events, 0, NULL);
	w->seen = old && old->seen > w->row.seq ? old->seen : w->row.seq;
	w->sending = old ? old->sending : 0;
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

/* ---- from events to deliveries ---- */

/* 1: *out is set. */
static int dispatch_read_event(struct dispatch *x, const struct dispatch_webhook *w,
			       const struct store_event *ev, int64_t now_ns,
			       struct store_delivery *out)
{
	int e2b = strcmp(w->row.format, "e2b") == 0;
	json_t *doc = !e2b                ? webhook_event_json(ev)
		      : x->conf.e2b_event ? x->conf.e2b_event(x->conf.ctx, ev)
					  : NULL;
	const char *type = json_string_value(json_object_get(doc, "type"));

	*out = (struct store_delivery){ .seq = ev->seq, .queued_ns = now_ns };
	if (type && webhook_wants(w->events, type)) {
		snprintf(out->box, sizeof(out->box), "%s", ev->box);
		snprintf(out->type, sizeof(out->type), "%s", ev->type);
		out->body = json_dumps(doc, JSON_COMPACT);
	}
	json_decref(doc);
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

/* One page of events. 1: there are more; 0: all were read, or the queue is full; -1. */
static int dispatch_queue_page(struct dispatch *x, struct dispatch_webhook *w, int64_t first,
			       int64_t last, struct err *e)
{
	struct store_delivery found[DISPATCH_PAGE];
	struct store_events rows = { 0 };
	uint64_t lost = dispatch_lost(w, first);
	int64_t now_ns = dispatch_now(x);
	unsigned n = 0;
	int more, rc;

	if (w->waiting >= WEBHOOK_QUEUE || w->seen >= last)
		return 0;
	if (store_event_list(x->conf.store, w->seen, w->row.team, NULL, DISPATCH_PAGE, &rows, e) <
	    0)
		return -1;
	for (unsigned i = 0; i < rows.n; i++)
		n += (unsigned)dispatch_read_event(x, w, &rows.v[i], now_ns, &found[n]);
	more = rows.more;
	w->seen = more ? rows.v[rows.n - 1].seq : last;
	store_events_fini(&rows);
	rc = dispatch_store(x, w, found, n, lost, e);
	for (unsigned i = 0; i < n; i++)
		free(found[i].body);
	if (rc < 1) {
		w->seen = w->row.seq;
		x->stale |=
			rc == 0; /* another server has queued them, or has changed the webhook */
	}
	return rc < 0 ? -1 : rc && more;
}

/* -1: the store failed. */
static int dispatch_queue(struct dispatch *x)
{
	int64_t first, last;
	struct err e;
	int rc = 0;

	if (store_event_range(x->conf.store, &first, &last, &e) < 0)
		rc = -1;
	for (unsigned i = 0; i < x->n && rc == 0; i++)
		do {
			rc = dispatch_queue_page(x, &x->v[i], first, last, &e);
		} while (rc > 0);
	if (rc < 0)
		log_warn("events cannot be queued for webhooks", LOG_E(&e));
	if (x->stale) {
		x->stale = 0;
		dispatch_reload(x);
	}
	return rc;
}

/* ---- attempts ---- */

static void dispatch_failed(struct dispatch *x, struct dispatch_webhook *w,
			    struct store_delivery *d, int64_t now_ns, struct err *e)
{
	int64_t next = webhook_next_attempt(d->queued_ns, ++d->attempts, now_ns);
	int rc;

	d->next_ns = next;
	if (next) {
		rc = store_delivery_retry(x->conf.store, w->row.id, d, e);
	} else {
		log_warn("a webhook delivery failed for a day", LOG_S("webhook", w->row.id),
			 LOG_S("team", w->row.team), LOG_S("why", d->error));
		rc = store_delivery_fail(x->conf.store, w->row.id, d, now_ns, WEBHOOK_FAILED, e);
		w->waiting -= w->waiting > 0;
	}
	if (rc < 0)
		log_warn("webhook", LOG_E(e));
}

static void dispatch_delivered(struct dispatch *x, struct dispatch_webhook *w,
			       const struct store_delivery *d, int64_t now_ns, struct err *e)
{
	if (store_delivery_done(x->conf.store, w->row.id, d, now_ns, e) < 0)
		log_warn("webhook", LOG_E(e)); /* it is delivered again */
	w->waiting -= w->waiting > 0;
	/* The receiver is back: what waits for another attempt need not wait longer. */
	if (w->failures && store_delivery_wake(x->conf.store, w->row.id, now_ns, now_ns, e) < 0)
		log_warn("webhook", LOG_E(e));
}

/* A receiver that does not work is left alone for a while, with all deliveries; one that rejects a
 * certain delivery works. */
static void dispatch_judge(struct dispatch_webhook *w, int status, int64_t now_ns)
{
	int64_t pause;

	if (status && status < 500 && status != 429) {
		w->failures = 0;
		w->pause_ns = 0;
		return;
	}
	pause = w->failures > 6 ? PAUSE_LONGEST_NS : PAUSE_NS << w->failures;
	w->failures++;
	w->pause_ns = now_ns + (pause < PAUSE_LONGEST_NS ? pause : PAUSE_LONGEST_NS);
}

static void dispatch_release(struct dispatch_attempt *a)
{
	free(a->delivery.body);
	a->delivery.body = NULL;
	a->webhook[0] = 0;
}

static void dispatch_over(struct dispatch_attempt *a, int status, const char *why)
{
	struct dispatch *x = a->all;
	struct dispatch_webhook *w = dispatch_find(x, a->webhook);
	int64_t now_ns = dispatch_now(x);
	struct store_delivery *d = &a->delivery;
	struct err e;

	if (w) { /* else it was deleted or disabled */
		w->sending--;
		d->status = status;
		if (status >= 200 && status < 300) {
			dispatch_delivered(x, w, d, now_ns, &e);
		} else {
			if (status)
				snprintf(d->error, sizeof(d->error), "the receiver answered %d",
					 status);
			else
				snprintf(d->error, sizeof(d->error), "%s", why);
			dispatch_failed(x, w, d, now_ns, &e);
		}
		dispatch_judge(w, status, now_ns);
	}
	dispatch_release(a);
}

static void dispatch_done(struct outbound_request *r, const struct outbound_answer *answer,
			  const struct err *e)
{
	struct dispatch_attempt *a = loop_owner(r, struct dispatch_attempt, request);
	struct dispatch *x = a->all;

	dispatch_over(a, answer ? answer->status : 0, e ? e->msg : "");
	x->conf.finished(x->conf.ctx);
}

static struct dispatch_attempt *dispatch_slot(struct dispatch *x, const char *webhook, int64_t seq)
{
	struct dispatch_attempt *free_one = NULL;

	for (unsigned i = 0; i < DISPATCH_ALL; i++) {
		struct dispatch_attempt *a = &x->attempts[i];

		if (!a->webhook[0])
			free_one = free_one ? free_one : a;
		else if (a->delivery.seq == seq && strcmp(a->webhook, webhook) == 0)
			return NULL; /* in progress */
	}
	return free_one;
}

/* Takes the body of d. */
static void dispatch_try(struct dispatch *x, struct dispatch_webhook *w, struct store_delivery *d)
{
	struct dispatch_attempt *a = dispatch_slot(x, w->row.id, d->seq);
	struct dispatch_message message;
	struct err e;
	int rc;

	if (!a)
		return;
	*a = (struct dispatch_attempt){ .request.done = dispatch_done, .all = x, .delivery = *d };
	d->body = NULL;
	snprintf(a->webhook, sizeof(a->webhook), "%s", w->row.id);
	w->sending++;
	rc = dispatch_message_make(&message, x->conf.vault, &w->row, &a->delivery, dispatch_now(x),
				   &e);
	if (rc == 0)
		rc = x->conf.send(x->conf.ctx, &a->request, &message.m, &e);
	dispatch_message_fini(&message);
	if (rc == 0)
		return;
	if (e.kind == ERR_LIMIT) { /* too many requests of this server: soon again */
		w->sending--;
		w->pause_ns = dispatch_now(x) + PAUSE_NS;
		dispatch_release(a);
	} else {
		dispatch_over(a, 0, e.msg);
	}
}

/* Returns when the next attempt of this webhook is due. */
static int64_t dispatch_send(struct dispatch *x, struct dispatch_webhook *w)
{
	struct store_deliveries due = { 0 };
	int64_t now_ns = dispatch_now(x), next = INT64_MAX;
	struct err e;

	if (w->sending >= DISPATCH_WEBHOOK)
		return INT64_MAX; /* finished() is called before */
	if (w->pause_ns > now_ns && w->pause_ns <= now_ns + PAUSE_LONGEST_NS)
		return w->waiting ? w->pause_ns : INT64_MAX;
	/* A receiver that failed gets one attempt, not DISPATCH_WEBHOOK. */
	if (!w->waiting || (w->failures && w->sending))
		return INT64_MAX;
	if (store_delivery_due(x->conf.store, w->row.id, now_ns, DISPATCH_WEBHOOK + w->sending,
			       &due, &e) < 0) {
		log_warn("webhook", LOG_E(&e));
		return now_ns + STORE_AGAIN_NS;
	}
	for (unsigned i = 0; i < due.n && w->sending < (w->failures ? 1 : DISPATCH_WEBHOOK); i++)
		dispatch_try(x, w, &due.v[i]);
	store_deliveries_fini(&due);
	if (!w->sending && store_delivery_next(x->conf.store, w->row.id, &next, &e) < 0)
		next = now_ns + STORE_AGAIN_NS;
	return next > w->pause_ns ? next : w->pause_ns;
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
