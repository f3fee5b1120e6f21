/* limit_job.c - changes the limits of a running box.
 *
 * The kernel may have to reclaim memory before a lower limit fits, which takes time, so a builder
 * thread does it. The box may end before that, so the job has only its id. */
#include "base/cleanup.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>

static struct box_limits limit_of(const struct wire_limits *l, uint16_t tier)
{
	const struct keeper_box like = { .meta.about = { .limits = *l, .tier = tier } };

	return keeper_box_limits(&like);
}

int limit_work(const struct host_state *h, struct build_job *j, struct err *e)
{
	struct box_limits was = limit_of(&j->limit.was, j->limit.tier);
	struct box_limits want = limit_of(&j->limit.want, j->limit.tier);

	return cgroup_change(&h->cgroups, j->limit.cgroup, &was, &want, e);
}

void limit_back(struct keeper *k, struct build_job *take_job)
{
	auto_free struct build_job *j = take_job;
	struct keeper_box *b = keeper_box_find(&k->boxes, j->limit.id);
	struct wire_box out;
	struct err e = j->err;

	if (!b || b->meta.about.state != WIRE_BOX_TAKEN)
		err_set(&e, ERR_NOT_FOUND, "box %s has ended meanwhile", j->limit.id);
	if (b)
		b->changing = 0;
	if (!e.kind) {
		b->meta.about.limits = j->limit.want;
		if (keeper_box_record(&k->host, b, &e) == 0)
			e.kind = ERR_NONE;
	}
	if (e.kind) {
		client_error(k, j->client, j->ref, &e);
		return;
	}
	out = b->meta.about;
	out.head = sock_head(WIRE_BOX, j->ref);
	client_send(k, j->client, &out, sizeof(out), -1);
}

/* Limits that are not in the request keep their value. */
static struct wire_limits limit_resolve(const struct wire_limits *now,
					const struct wire_limits *want)
{
	struct wire_limits l = *want;

	l.mem_bytes = l.mem_bytes == WIRE_DEFAULT ? now->mem_bytes : l.mem_bytes;
	l.disk_bytes = l.disk_bytes == WIRE_DEFAULT ? now->disk_bytes : l.disk_bytes;
	l.disk_files = l.disk_files == WIRE_DEFAULT ? now->disk_files : l.disk_files;
	l.cpu_ms = l.cpu_ms == WIRE_DEFAULT ? now->cpu_ms : l.cpu_ms;
	l.cpu_milli = l.cpu_milli == (uint32_t)WIRE_DEFAULT ? now->cpu_milli : l.cpu_milli;
	l.pids = l.pids == (uint32_t)WIRE_DEFAULT ? now->pids : l.pids;
	return l;
}

static int limit_possible(const struct keeper *k, const struct keeper_box *b,
			  const struct wire_limits *want, struct err *e)
{
	const struct wire_limits *now = &b->meta.about.limits;

	if (b->meta.about.state != WIRE_BOX_TAKEN)
		return err_set(e, ERR_NOT_FOUND, "box %s is ending", b->meta.about.id);
	if (b->changing)
		return err_set(e, ERR_CONFLICT, "the limits of box %s are being changed already",
			       b->meta.about.id);
	if (tier_box_supports(k, b, WIRE_NEED_LIMIT, e) < 0)
		return -1;
	if (want->disk_bytes != now->disk_bytes || want->disk_files != now->disk_files)
		return err_set(e, ERR_DENIED,
			       "the disk of a running box cannot be changed: it was made with "
			       "its size");
	if (want->cpu_ms != now->cpu_ms)
		return err_set(e, ERR_DENIED,
			       "the cpu time of a running box cannot be changed: it is counted "
			       "from its start");
	if (request_limits_sane(k, want, e) < 0)
		return -1;
	if (!b->meta.cgroup[0])
		return err_set(e, ERR_DENIED,
			       "box %s has no cgroups, so its limits cannot be changed",
			       b->meta.about.id);
	if (!b->meta.disk_image && want->mem_bytes && want->disk_bytes > want->mem_bytes / 2)
		return err_set(
			e, ERR_DENIED,
			"memory limit of %llu: the box's disk of %llu is kept in memory, and may be half "
			"of it at most",
			(unsigned long long)want->mem_bytes, (unsigned long long)want->disk_bytes);
	return 0;
}

void limit_request(struct keeper *k, struct client *c, const struct frame *f)
{
	const struct wire_limit *w = (const struct wire_limit *)f;
	struct keeper_box *b = request_named(k, c, f);
	struct wire_limits want;
	struct build_job *j;
	struct err e;

	if (!b || request_too_many(k, c, f))
		return;
	want = limit_resolve(&b->meta.about.limits, &w->limits);
	if (limit_possible(k, b, &want, &e) < 0) {
		client_error(k, c->number, f->ref, &e);
		return;
	}
	j = build_job_new(BUILD_LIMIT);
	j->client = c->number;
	j->ref = f->ref;
	j->limit.was = b->meta.about.limits;
	j->limit.want = want;
	j->limit.tier = b->meta.about.tier;
	memcpy(j->limit.id, b->meta.about.id, sizeof(j->limit.id));
	memcpy(j->limit.cgroup, b->meta.cgroup, sizeof(j->limit.cgroup));
	b->changing = b->changed = 1;
	builder_submit(k->builder, j);
}
