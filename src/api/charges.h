/* charges.h - the cost of charges, at the rates of the settings, and costs in answers. */
#pragma once
#include "api/api.h"

/* Sets the price functions of the fleet's accounts. */
void charges_init(struct api *a);
void charges_second(
	struct
	api *a); /* charges the disk space of snapshots, volumes and stored boxes, once an hour */
/* Charges the tokens of a call of a language model: {"in": ..., "out": ...}, NULL: none. */
void charges_model_call(struct api *a, const struct principal *who, const json_t *usage);
/* {amount, currency} of a box, batch or pipeline so far. */
json_t *charges_total_json(struct api *a, const char *subject);
