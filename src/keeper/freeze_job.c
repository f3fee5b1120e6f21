/* freeze_job.c - a box that stands still: its memory, programs and connections stay as they are.
 *
 * The state is the kernel's. The record says "frozen" before it may be true and until it no longer
 * can be, so whoever has to end a box after a crash knows that it must be thawed for that.
 * A maker does the work: the kernel needs a moment to stop every program. */
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <string.h>

static int freeze_work(const struct host_state *h, struct build_job *j, struct err *e)
{
	return (j->freeze.on ? cgroup_freeze : cgroup_thaw)(&h->cgroups, j->freeze.cgroup, e);
}

static void freeze_back(struct keeper *k, struct build_job *take_job)
{
	auto_free struct build_job *j = take_job;
	struct keeper_box *b = keeper_box_find(&k->boxes, j->freeze.id);
	struct frame done = sock_head(WIRE_DONE, j->ref);
	int running = j->freeze.on == !!j->err.kind; /* thawed, or never frozen */
	struct err e = j->err;

	if (!b) { /* what we made for it after it was removed */
		struct err ignored;

		(void)!cgroup_remove(&k->host.cgroups, j->freeze.cgroup, &ignored);
	} else {
		b->changing = 0;
	}
	if (b &&
	    b->meta.about.state == WIRE_BOX_DYING) /* its end came between: it must not sleep */
		teardown_kill(k, b);
	if (!b || b->meta.about.state != WIRE_BOX_TAKEN)
		err_set(&e, ERR_NOT_FOUND, "box %s has ended meanwhile", j->freeze.id);
	else if (running) {
		struct err late;

		b->meta.about.frozen = 0;
		(void)!keeper_box_record(&k->host, b, &late); /* "may be so" is true as well */
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
		return err_set(e, ERR_DENIED, "box %s has no cgroup of its own to freeze",
			       b->meta.about.id);
	if (!on)
		return 0;
	b->meta.about.frozen = 1;
	return keeper_box_record(&k->host, b, e);
}

static void freeze_begin_request(struct keeper *k, struct keeper_box *b, int on, uint64_t client,
				 uint32_t ref)
{
	struct build_job *j = build_job_new();

	j->work = freeze_work;
	j->back = freeze_back;
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
