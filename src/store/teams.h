/* teams.h - teams, their quotas and their usage. Team "default" always exists. */
#pragma once
#include "store/store.h"

#define TEAM_DEFAULT "default"

struct store_team {
	char name[STORE_NAME + 1];
	int64_t created_ns;
	char plan[STORE_NAME + 1];      /* "": none */
	char isolation[STORE_WORD + 1]; /* minimum tier of its boxes; "": none */
	/* quotas; 0: none */
	uint64_t boxes; /* at once */
	uint64_t executions_per_day;
	uint64_t compute_ms_per_month;
	uint64_t output_bytes_per_day;
	uint32_t requests_per_second;
};
struct store_teams {
	struct store_team *v;
	unsigned n;
};
void store_teams_fini(struct store_teams *l);

must_check int store_team_get(struct store *s, const char *name, struct store_team *out,
			      struct err *e);
/* Creates it or changes its quotas, its plan and its minimum tier; created_ns is used for a new one only. */
must_check int store_team_put(struct store *s, const struct store_team *t, struct err *e);
/* A team of a gateway, on a node: that it exists, and its minimum tier. Not a change that other gateways must know. */
must_check int store_team_mirror(struct store *s, const char *name, const char *isolation,
				 int64_t at_ns, struct err *e);
/* By name, after the given one (NULL: from the start), at most STORE_PAGE_MAX. */
must_check int store_team_list(struct store *s, const char *after, struct store_teams *out,
			       struct err *e);
/* ERR_CONFLICT while it has keys, volumes or boxes that are not deleted; its usage is removed
 * with it. */
must_check int store_team_remove(struct store *s, const char *name, struct err *e);

struct store_usage {
	uint64_t executions, compute_ms, output_bytes, boxes_created;
};
int32_t store_day(int64_t ns); /* days since 1970, UTC; the day of store_usage_* */
/* Adds to the usage; a team that does not exist (or was removed) is ERR_NOT_FOUND. */
must_check int store_usage_add(struct store *s, const char *team, int32_t day,
			       const struct store_usage *more, struct err *e);
/* The sum over both days and those between. */
must_check int store_usage_get(struct store *s, const char *team, int32_t from_day, int32_t to_day,
			       struct store_usage *out, struct err *e);
