/* teams.h - /v1/teams, /v1/usage: teams (tenants), their quotas and their usage. */
#pragma once
#include "api/api.h"

extern const struct field teams_put_fields[], teams_network_fields[], teams_list_query[];

void teams_list(struct call *c);
void teams_show(struct call *c);
void teams_put(struct call *c);
void teams_network_show(struct call *c);
void teams_network_put(struct call *c);
void teams_delete(struct call *c);
void usage_show(struct call *c);
