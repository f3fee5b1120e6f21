/* accounts.h - E2B's teams and API keys, mapped to Atoll's: the caller's team, and its keys. */
#pragma once
#include "api/fields.h"
#include "e2b/e2b.h"

extern const struct field accounts_key_fields[], accounts_max_query[];
void accounts_teams(struct call *c);
void accounts_metrics(struct call *c);
void accounts_metrics_max(struct call *c);
void accounts_keys(struct call *c);
void accounts_key_new(struct call *c);
void accounts_key_delete(struct call *c);
