/* late_cgroup.c - see late_cgroup.h. */
#include "keeper/late_cgroup.h"
#include "jail/launch.h"
#include "keeper/host_state.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct late_cgroup *late_cgroup_new(void)
{
	struct late_cgroup *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->there, NULL);
	return c;
}

void late_cgroup_make(const struct host_state *h, const char *name, struct box_limits lim,
		      struct late_cgroup *c)
{
	int n = cgroup_make(&h->cgroups, name, &lim, &c->err);

	if (n == 0)
		n = cgroup_tasks(&h->cgroups, name, c->fds, &c->err);
	pthread_mutex_lock(&c->lock);
	c->n = n;
	c->ready = 1;
	pthread_cond_signal(&c->there);
	pthread_mutex_unlock(&c->lock);
}

int late_cgroup_wait(struct spec *sp, struct err *e)
{
	struct late_cgroup *c = sp->bring_arg;

	pthread_mutex_lock(&c->lock);
	while (!c->ready)
		pthread_cond_wait(&c->there, &c->lock);
	pthread_mutex_unlock(&c->lock);
	if (c->n < 0) {
		*e = c->err;
		return -1;
	}
	sp->ntasks = c->n;
	memcpy(sp->tasks, c->fds, sizeof(c->fds));
	return 0;
}

void late_cgroup_end(struct late_cgroup *c)
{
	struct spec none = { .bring_arg = c };
	struct err e;

	if (!c)
		return;
	if (late_cgroup_wait(&none, &e) == 0)
		for (int i = 0; i < c->n; i++)
			close(c->fds[i]);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->there);
	free(c);
}
