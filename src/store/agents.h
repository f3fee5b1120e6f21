/* agents.h - agent sessions that had a box of their own: one row each, and the report of those
 * that have ended. */
#pragma once
#include "store/store.h"

struct store_agent {
	char id[ID_MAX + 1];
	char team[STORE_NAME + 1];
	char who[STORE_NAME + 1];
	char title[201];              /* how the task begins */
	int64_t created_ns, ended_ns; /* ended 0: not yet */
	char outcome[STORE_WORD + 1]; /* "" until it has ended */
};
struct store_agents {
	struct store_agent *v;
	unsigned n;
	int more;
};
void store_agents_fini(struct store_agents *l);

must_check int store_agent_insert(struct store *s, const struct store_agent *x, struct err *e);
/* report: JSON, or NULL. */
must_check int store_agent_end(struct store *s, const char *id, int64_t ended_ns,
			       const char *outcome, const char *report, struct err *e);
/* out_report: the caller frees it; "": it has none. A session of another team is ERR_NOT_FOUND. */
must_check int store_agent_get(struct store *s, const char *team, const char *id,
			       struct store_agent *out, char **out_report, struct err *e);
/* Newest first. */
must_check int store_agent_list(struct store *s, const char *team, const struct store_cursor *after,
				unsigned limit, struct store_agents *out, struct err *e);
/* Sessions that have not ended, of all teams; at most STORE_PAGE_MAX. */
must_check int store_agent_running(struct store *s, struct store_agents *out, struct err *e);
/* Removes sessions that ended before then (0: none), and of each team all but the newest `keep`.
 * Sessions that began before `lost_ns` and have no end are removed, too: their server process
 * ended without writing one. */
must_check int store_agent_purge(struct store *s, int64_t before_ns, int64_t lost_ns, unsigned keep,
				 struct err *e);
