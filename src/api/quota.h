/* quota.h - what a team may use: requests per second, boxes at once, executions and output per
 * day, computing per month. What is over is answered 429 with Retry-After and the reason.
 * Owns: the counts since they were last written to the store. */
#pragma once
#include "api/api.h"

/* The limits that are in force: the team's own, else those of the configuration; 0: none. In a
 * store_team 0 says that the team has none of its own, QUOTA_NONE that it is not limited. */
#define QUOTA_NONE UINT64_MAX
#define QUOTA_NONE_RATE UINT32_MAX
struct store_team quota_limits(const struct api *a, const struct store_team *own);

must_check int quota_init(struct api *a, struct err *e);
void quota_fini(struct api *a); /* writes what is not written yet */
void quota_second(struct api *a);

/* Each answers 429 itself and returns 0 when there is no more to be had. */
int quota_request(struct call *c);
int quota_box(struct call *c);
int quota_run(struct call *c);
/* For programs that no request waits for. 0: no more, and e says which. Counts one. */
int quota_item(struct api *a, const char *team, struct err *e);
unsigned quota_boxes_left(struct api *a, const char *team);
void quota_used(struct api *a, const char *team, uint64_t cpu_us, uint64_t output_bytes);
int quota_helper(
	struct call *
		c); /* the same as quota_run() for a program of our own: it does not count as one */
uint64_t quota_cpu_us(const struct api *a); /* of all teams, since the start */
void quota_computed(struct api *a, const char *team, uint64_t cpu_us); /* boxes of this team */
json_t *quota_json(struct api *a, const char *team);
void quota_changed(struct api *a, const char *team); /* its limits, or that it is no more */
