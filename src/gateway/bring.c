/* bring.c - see bring.h. */
#include "gateway/bring.h"
#include "base/log.h"
#include "gateway/copy_job.h"
#include "gateway/objects.h"
#include "gateway/restart.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bring_job {
	struct bring_job *next;
	struct gateway_bring *all;
	struct bring_ask *asks;
	char snapshot[ID_MAX + 1], team[STORE_NAME + 1];
	unsigned owner, to;
	struct copy_job copy;
	struct objects_copy *object; /* NULL: not in progress */
	int is_missing;
};

struct gateway_bring {
	struct loop *loop;
	struct tunnels *tunnels;
	struct gateway_objects *objects;
	struct bring_job *jobs;
};

static void bring_end(struct bring_job *take_j, const char *why)
{
	struct bring_job **at = &take_j->all->jobs;

	while (*at != take_j)
		at = &(*at)->next;
	*at = take_j->next;
	if (why)
		log_warn("a snapshot was not copied to the node of a new box",
			 LOG_S("snapshot", take_j->snapshot), LOG_U("from", take_j->owner),
			 LOG_U("to", take_j->to), LOG_S("why", why));
	while (take_j->asks) {
		struct bring_ask *a = take_j->asks;

		take_j->asks = a->next;
		a->job = NULL;
		a->is_missing = take_j->is_missing;
		a->done(a, why);
	}
	free(take_j);
}

static void bring_copied(struct copy_job *c, const char *why)
{
	struct bring_job *j = loop_owner(c, struct bring_job, copy);

	j->is_missing = why && c->from.status == 404;
	bring_end(j, why);
}

static void bring_copy_through_gateway(struct bring_job *j)
{
	char identity[128];

	restart_identity(j->team, identity);
	j->copy.done = bring_copied;
	copy_job_begin(&j->copy, &(struct copy_job_what){ .loop = j->all->loop,
							  .tunnels = j->all->tunnels,
							  .from = j->owner,
							  .to = j->to,
							  .kind = "snapshots",
							  .snapshot = j->snapshot,
							  .identity = identity });
}

static void bring_object_came(void *user, const char *why)
{
	struct bring_job *j = user;

	j->object = NULL;
	if (why)
		bring_copy_through_gateway(j);
	else
		bring_end(j, NULL);
}

static void bring_copy(struct bring_job *j)
{
	struct gateway_objects *g = j->all->objects;

	if (g && !gateway_objects_are_away(g))
		j->object = objects_copy_new(g,
					     &(struct objects_what){ .snapshot = j->snapshot,
								     .team = j->team,
								     .name = "",
								     .owner = j->owner,
								     .to = j->to },
					     bring_object_came, j);
	else
		bring_copy_through_gateway(j);
}

void bring_begin(struct gateway_bring *g, struct bring_ask *a, const struct bring_what *w)
{
	struct bring_job *j = g->jobs;

	while (j && (strcmp(j->snapshot, w->snapshot) != 0 || strcmp(j->team, w->team) != 0 ||
		     j->to != w->to))
		j = j->next;
	if (!j) {
		j = calloc(1, sizeof(*j));
		if (!j)
			abort();
		*j = (struct bring_job){
			.next = g->jobs, .all = g, .owner = w->owner, .to = w->to
		};
		snprintf(j->snapshot, sizeof(j->snapshot), "%s", w->snapshot);
		snprintf(j->team, sizeof(j->team), "%s", w->team);
		g->jobs = j;
		bring_copy(j);
	}
	a->job = j;
	a->next = j->asks;
	j->asks = a;
}

void bring_cancel(struct bring_ask *a)
{
	struct bring_ask **at = a->job ? &a->job->asks : NULL;

	while (at && *at && *at != a)
		at = &(*at)->next;
	if (at && *at)
		*at = a->next;
	a->job = NULL;
}

struct gateway_bring *gateway_bring_new(struct loop *l, struct tunnels *t,
					struct gateway_objects *objects)
{
	struct gateway_bring *g = calloc(1, sizeof(*g));

	if (!g)
		abort();
	*g = (struct gateway_bring){ .loop = l, .tunnels = t, .objects = objects };
	return g;
}

void gateway_bring_free(struct gateway_bring *g)
{
	if (!g)
		return;
	while (g->jobs) {
		struct bring_job *j = g->jobs;

		g->jobs = j->next;
		copy_job_cancel(&j->copy);
		objects_copy_cancel(j->object);
		free(j);
	}
	free(g);
}
