/* usage.h - GET /v1/usage?by=: usage and cost by team, key, tag, template, runtime, day or month, as JSON or CSV. */
#pragma once
#include "api/api.h"

extern const struct field usage_query[];

int usage_is_report(struct call *c); /* 1: the query asks for it */
void usage_report(struct call *c);
/* Adds `cost` to each of the days ("day": "2026-11-18"), from rows by day. */
struct store_usage_rows;
void usage_add_costs(struct call *c, const struct store_usage_rows *rows, json_t *days);
