/* charges.c - see charges.h. */
#include "api/charges.h"

#include <string.h>

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
