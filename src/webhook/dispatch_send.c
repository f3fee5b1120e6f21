/* dispatch_send.c - see dispatch.h: attempts. */
#include "base/log.h"
#include "secret/vault.h"
#include "webhook/dispatch_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAUSE_NS (INT64_C(1) * 1000000000) /* after the first failure of a receiver; then doubled */
#define PAUSE_LONGEST_NS (INT64_C(60) * 1000000000)

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

void dispatch_release(struct dispatch_attempt *a)
{
	free(a->delivery.body);
	a->delivery.body = NULL;
	a->webhook[0] = 0;
}

/* 1: the delivery waited in memory, and nothing is to be changed in the store. */
static int dispatch_over_direct(struct dispatch *x, struct dispatch_webhook *w, int64_t seq,
				int arrived, struct err *e)
{
	struct direct_item *it = direct_find(&w->direct, seq);

	if (!it)
		return 0;
	if (arrived) {
		direct_arrived(&w->direct, it);
		return 1;
	}
	if (dispatch_spill(x, w, e) == 0)
		return 0;
	log_warn("webhook", LOG_E(e));
	it->state = DIRECT_WAITING; /* sent again */
	return 1;
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
		if (dispatch_over_direct(x, w, d->seq, status >= 200 && status < 300, &e)) {
			;
		} else if (status >= 200 && status < 300) {
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

static unsigned dispatch_window(const struct dispatch_webhook *w)
{
	return w->is_quick ? DISPATCH_QUICK : DISPATCH_WEBHOOK;
}

static void dispatch_send_direct(struct dispatch *x, struct dispatch_webhook *w);

static void dispatch_done(struct outbound_request *r, const struct outbound_answer *answer,
			  const struct err *e)
{
	struct dispatch_attempt *a = loop_owner(r, struct dispatch_attempt, request);
	struct dispatch *x = a->all;
	struct dispatch_webhook *w = dispatch_find(x, a->webhook);

	dispatch_over(a, answer ? answer->status : 0, e ? e->msg : "");
	if (w && answer)
		w->is_quick = answer->took_ms < DIRECT_QUICK_MS;
	/* Several are sent together. */
	if (w && w->direct.n && w->sending <= dispatch_window(w) / 2)
		dispatch_send_direct(x, w);
	/* Arrivals are stored together, but not so late that the next events of many boxes wait. */
	x->conf.finished(x->conf.ctx, !w || !w->direct.n || w->direct.arrived >= DIRECT_STORED);
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

static int dispatch_unseal(struct dispatch *x, struct dispatch_webhook *w, struct err *e)
{
	if (w->secret.len || vault_unseal(x->conf.vault, w->row.id, w->row.sealed, w->row.sealed_n,
					  &w->secret, e) == 0)
		return 0;
	return err_in(e, "secret of the webhook");
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
	rc = dispatch_unseal(x, w, &e);
	if (rc == 0) {
		dispatch_message_make(&message, buf_str(&w->secret), &w->row, &a->delivery,
				      dispatch_now(x));
		rc = x->conf.send(x->conf.ctx, &a->request, &message.m, &e);
		dispatch_message_fini(&message);
	}
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

static void dispatch_send_direct(struct dispatch *x, struct dispatch_webhook *w)
{
	struct direct_item *it;

	while (w->sending < dispatch_window(w) && !w->failures && w->pause_ns <= dispatch_now(x) &&
	       (it = direct_next(&w->direct))) {
		struct store_delivery copy = it->d;
		unsigned sending = w->sending;

		copy.body = strdup(it->d.body);
		if (!copy.body)
			abort();
		it->state = DIRECT_SENDING;
		dispatch_try(x, w, &copy);
		free(copy.body); /* if it was not taken */
		if (w->sending ==
		    sending) { /* no slot, or it has failed; then w may be another queue */
			it = direct_find(&w->direct, copy.seq);
			if (it)
				it->state = DIRECT_WAITING;
			return;
		}
	}
}

int64_t dispatch_send(struct dispatch *x, struct dispatch_webhook *w)
{
	struct store_deliveries due = { 0 };
	int64_t now_ns = dispatch_now(x), next = INT64_MAX;
	struct err e;

	if (w->direct.n) {
		dispatch_send_direct(x, w);
		if (w->direct.n) {
			next = w->direct.v[0]->d.queued_ns + DIRECT_NS + 1;
			return w->pause_ns > now_ns && w->pause_ns < next ? w->pause_ns : next;
		}
	}

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
