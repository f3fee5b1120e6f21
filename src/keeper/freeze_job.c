/* freeze_job.c - freezes and thaws a box: its memory, programs and connections stay unchanged.
 *
 * The state is in the kernel. The record says "frozen" before the freeze starts and until the thaw
 * has finished, so that a keeper that ends a box after a crash knows that it must thaw the box
 * first. A builder thread does the work, because the kernel needs a moment to stop
 * every program. */
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <string.h>

int freeze_work(const struct host_state *h, struct build_job *j, struct err *e)
{
	return (j->freeze.on ? cgroup_freeze : cgroup_thaw)(&h->cgroups, j->freeze.cgroup, e);
}

void freeze_back(struct keeper *k, struct build_job *take_job)
{
	auto_free struct build_job *j = take_job;
	struct keeper_box *b = keeper_box_find(&k->boxes, j->freeze.id);
	struct frame done = sock_head(WIRE_DONE, j->ref);
	int running = j->freeze.on == !!j->err.kind; /* thawed, or not frozen because of an error */
	struct err e = j->err;

	if (!b) { /* the box was removed; removes the resources that this job has created for it */
		struct err ignored;

		(void)!cgroup_remove(&k->host.cgroups, j->freeze.cgroup, &ignored);
	} else {
		b->changing = 0;
	}
	if (b &&
	    b->meta.about.state == WIRE_BOX_DYING) /* its end was requested in between: it must not
						    * stay frozen */
		teardown_kill(k, b);
	if (!b || b->meta.about.state != WIRE_BOX_TAKEN)
		err_set(&e, ERR_NOT_FOUND, "box %s has ended meanwhile", j->freeze.id);
	else if (running) {
		struct err late;

		b->meta.about.frozen = 0;
		/* A record that has "frozen" too long is harmless. */
		(void)!keeper_box_record(&k->host, b, &late);
	}
	if (e.kind)
		client_error(k, j->client, j->ref, &e);
	else
		client_send(k, j->client, &done, sizeof(done), -1);
}

static int freeze_possible(struct keeper *k, struct keeper_box *b, int on, struct err *e)
{
	if (b->meta.about.state != WIRE_BOX_TAKEN)
		return err_set(e, ERR_NOT_FOUND, "box %s is ending", b->meta.about.id);
	if (b->changing)
		return err_set(e, ERR_CONFLICT, "box %s is being changed already",
			       b->meta.about.id);
	if (!b->meta.cgroup[0])
		return err_set(e, ERR_DENIED, "box %s has no cgroup that could be frozen",
			       b->meta.about.id);
	if (!on)
		return 0;
	b->meta.about.frozen = 1;
	return keeper_box_record(&k->host, b, e);
}

static void freeze_begin_request(struct keeper *k, struct keeper_box *b, int on, uint64_t client,
				 uint32_t ref)
{
	struct build_job *j = build_job_new(BUILD_FREEZE);

	j->client = client;
	j->ref = ref;
	j->freeze.on = on;
	memcpy(j->freeze.id, b->meta.about.id, sizeof(j->freeze.id));
	memcpy(j->freeze.cgroup, b->meta.cgroup, sizeof(j->freeze.cgroup));
	b->changing = b->changed = 1;
	builder_submit(k->builder, j);
}

int freeze_box(struct keeper *k, struct keeper_box *b)
{
	struct err e;

	if (freeze_possible(k, b, 1, &e) < 0)
		return -1;
	freeze_begin_request(k, b, 1, 0, 0);
	return 0;
}

void freeze_request(struct keeper *k, struct client *c, const struct frame *f)
{
	struct keeper_box *b = request_named(k, c, f);
	int on = !(f->flags & WIRE_FREEZE_OFF);
	struct err e;

	if (!b || request_too_many(k, c, f))
		return;
	if (freeze_possible(k, b, on, &e) < 0)
		client_error(k, c->number, f->ref, &e);
	else
		freeze_begin_request(k, b, on, c->number, f->ref);
}
