/* charges.c - see charges.h. */
#include "api/charges.h"
#include "fleet/charge.h"

#include <stdio.h>
#include <string.h>

enum { CHARGES_LOOK_MS = 60000 };

static void charges_price(void *ctx, struct store_use *use, json_t *record)
{
	const struct api *a = ctx;
	const struct rates *r = &a->conf.rates;
	json_t *cost;

	use->cost_nano = rates_cost(r, use);
	memcpy(use->currency, r->currency, sizeof(use->currency));
	if (!record)
		return;
	cost = rates_amount_json(use);
	/* Rates change: a record keeps those that it was charged at. */
	json_object_set_new(cost, "rates", rates_json(r));
	json_object_set_new(record, "usage", rates_use_json(use));
	json_object_set_new(record, "cost", cost);
}

void charges_init(struct api *a)
{
	a->fleet.accounts.ctx = a;
	a->fleet.accounts.price = charges_price;
}

json_t *charges_total_json(struct api *a, const char *subject)
{
	struct store_use use = { 0 };
	struct err e;

	run_writer_flush(&a->fleet.run_writer);
	(void)!store_usage_total(a->store, subject, a->conf.rates.currency, &use, &e);
	memcpy(use.currency, a->conf.rates.currency, sizeof(use.currency));
	return rates_amount_json(&use);
}

static int charges_write_disk(struct api *a, struct err *e)
{
	struct store_disk_uses all;
	int rc = store_usage_disk(a->store, fleet_now_ns(), &all, e);

	for (unsigned i = 0; rc == 0 && i < all.n; i++) {
		const struct store_disk_use *u = &all.v[i];
		struct store_charge c = { .use = { .disk_mib_s = u->mib_s } };

		snprintf(c.tag, sizeof(c.tag), "%s", u->box[0] ? STORE_TAG_BOX : STORE_TAG_DISK);
		snprintf(c.team, sizeof(c.team), "%s", u->team);
		snprintf(c.key, sizeof(c.key), "%s", u->key);
		snprintf(c.template, sizeof(c.template), "%s", u->template);
		snprintf(c.subject, sizeof(c.subject), "%s", u->box);
		charge_price(&a->fleet, &c, NULL);
		rc = charge_write(&a->fleet, &c, e);
	}
	store_disk_uses_fini(&all);
	return rc;
}

void charges_second(struct api *a)
{
	struct err e;

	if (!a->fleet.alone || loop_now_ms() < a->disk_due_ms)
		return;
	a->disk_due_ms = loop_now_ms() + CHARGES_LOOK_MS;
	if (store_begin(a->store, &e) < 0)
		return;
	if (charges_write_disk(a, &e) < 0)
		store_rollback(a->store); /* the next call tries again */
	else
		(void)!store_commit(a->store, &e);
}

void charges_model_call(struct api *a, const struct principal *who, const json_t *usage)
{
	charge_tokens(&a->fleet, who->team, who->id, "", usage);
}
