/* guest_wait.c - new boxes whose guest is still booting.
 *
 * mux reports on the first connection that the guest stub is connected, or why it is not. An engine
 * may need seconds, so the loop waits for the report, not a builder thread. Until then the job of
 * the box is kept here. The end of the box is a report, too, and so is the end of the time.
 *
 * Engines that boot use a processor each. If all boot that clients have requested, the last ones of many are
 * too late, so only some boot at a time; the time of the others begins when they are started. */
#include "base/clock.h"
#include "base/cleanup.h"
#include "jail/launch.h"
#include "keeper/keeper_internal.h"
#include "tier/tier.h"
#include "wire/sock.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GUEST_MS 10000
enum { SCORE_ROUNDS = 8, BOOTS_PER_PROCESSOR = 2 };

struct guest_wait {
	struct source src; /* a second descriptor of the first connection */
	struct build_job *job;
	uint64_t until_ns;
	struct guest_wait *next;
};

static void guest_wait_remove(struct keeper *k, struct guest_wait *take_w)
{
	struct guest_wait **at = &k->guests;

	while (*at != take_w)
		at = &(*at)->next;
	*at = take_w->next;
	k->nguests--;
	take_w->job->make.box->guest = NULL;
	keeper_unwatch(k, &take_w->src);
	free(take_w);
}

/* 1: the process had another score. */
static int guest_wait_score(int pid, void *arg)
{
	const struct keeper *k = arg;
	auto_fd int fd = -1;
	char path[40], score[16] = "";

	snprintf(path, sizeof(path), "%d/oom_score_adj", pid);
	fd = openat(k->host.proc, path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || read(fd, score, sizeof(score) - 1) <= 0 || strcmp(score, "500\n") == 0)
		return 0; /* it has ended, or has the score */
	return pwrite(fd, "500", 3, 0) == 3;
}

/* The engine may have been started before the keeper has raised the score of mux; and while its
 * processes get the score, one that has none yet may make another. */
static void guest_wait_offer_to_oom(struct keeper *k, const struct keeper_box *b)
{
	unsigned rounds = k->host.rootless || !b->meta.cgroup[0] ? 0 : SCORE_ROUNDS;

	while (rounds-- &&
	       cgroup_each_process(&k->host.cgroups, b->meta.cgroup, guest_wait_score, k))
		;
}

/* e->kind 0: the guest is ready. */
static void guest_wait_finish(struct keeper *k, struct guest_wait *take_w, const struct err *e)
{
	struct build_job *j = take_w->job;
	struct keeper_box *b = j->make.box;

	guest_wait_remove(k, take_w);
	j->make.guest_reported = 1;
	j->err = *e;
	b->meta.about.make_us = (uint32_t)((now_ns() - j->began_ns) / 1000);
	if (e->kind)
		err_in(&j->err, "isolation tier %s", tier_name(b->meta.about.tier));
	else
		guest_wait_offer_to_oom(k, b);
	request_made(k, j);
}

/* One frame: DONE, or ERROR with the reason. */
static void guest_wait_read(int fd, uint16_t *out_inner, struct err *e)
{
	_Alignas(8) char bytes[WIRE_MAX];
	const struct frame *f = (const struct frame *)bytes;
	unsigned nfds = 0;
	int n = sock_recv(fd, bytes, NULL, &nfds, e);

	if (n == 0) {
		err_set(e, ERR_SYS, "its engine ended before the guest was ready");
	} else if (n > 0 && f->type == WIRE_ERROR) {
		const struct wire_error *said = (const struct wire_error *)f;

		err_set(e, ERR_SYS, "%.*s", (int)sizeof(said->msg) - 1, said->msg);
	} else if (n > 0 && f->type != WIRE_DONE) {
		err_set(e, ERR_SYS, "mux: unexpected frame (type %u)", f->type);
	} else if (n > 0) {
		*e = (struct err){ 0 };
		*out_inner = f->flags;
	}
}

void guest_wait_ready(struct keeper *k, struct source *s)
{
	struct guest_wait *w = (struct guest_wait *)s;
	struct err e;

	guest_wait_read(w->src.fd, &w->job->make.box->meta.about.inner, &e);
	guest_wait_finish(k, w, &e);
}

void guest_wait_died(struct keeper *k, struct keeper_box *b)
{
	struct guest_wait *w = b->guest;
	struct pollfd p = { .fd = w->src.fd, .events = POLLIN };
	struct err e;

	/* The reason may still be in the socket. */
	if (poll(&p, 1, 0) > 0)
		guest_wait_read(w->src.fd, &b->meta.about.inner, &e);
	else
		e.kind = ERR_NONE;
	if (!e.kind)
		err_set(&e, ERR_SYS, "its engine ended before the guest was ready");
	guest_wait_finish(k, w, &e);
}

int guest_wait_begin(struct keeper *k, struct build_job *job)
{
	struct keeper_box *b = job->make.box;
	const struct tier *t = tier_find(b->meta.about.tier);
	unsigned ms = t && t->start_ms ? t->start_ms : GUEST_MS;
	struct guest_wait *w = calloc(1, sizeof(*w));
	int fd = fcntl(b->init, F_DUPFD_CLOEXEC, JAIL_FD_HIGH);

	if (!w)
		abort();
	*w = (struct guest_wait){ .src = { SRC_GUEST, fd },
				  .job = job,
				  .until_ns = now_ns() + ms * 1000000ull,
				  .next = k->guests };
	if (fd < 0)
		err_sys(&job->err, "descriptor of the first connection");
	if (fd < 0 || keeper_watch(k, &b->death, &job->err) < 0 ||
	    keeper_watch(k, &w->src, &job->err) < 0) {
		own_close_fd(&w->src.fd);
		free(w);
		return -1;
	}
	k->guests = w;
	k->nguests++;
	b->guest = w;
	keeper_wake_in(k, ms);
	return 0;
}

static unsigned guest_wait_boots_most(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return (unsigned)(n < 1 ? 1 : n) * BOOTS_PER_PROCESSOR;
}

/* Boxes that a client waits for come before those of pools. */
static void guest_wait_enqueue(struct keeper *k, struct build_job *take_job)
{
	struct build_job **at = &k->boots_queued;

	while (*at && (take_job->for_pool || !(*at)->for_pool))
		at = &(*at)->next;
	take_job->next = *at;
	*at = take_job;
	k->nqueued++;
}

static struct build_job *guest_wait_dequeue(struct keeper *k)
{
	struct build_job *j = k->boots_queued;

	k->boots_queued = j->next;
	k->nqueued--;
	k->booting++;
	j->next = NULL;
	return j;
}

void guest_wait_submit(struct keeper *k, struct build_job *take_job)
{
	if (!tier_has_guest(take_job->make.box->meta.about.tier)) {
		builder_submit(k->builder, take_job);
		return;
	}
	guest_wait_enqueue(k, take_job);
	if (k->booting < guest_wait_boots_most())
		builder_submit(k->builder, guest_wait_dequeue(k));
}

void guest_wait_booted(struct keeper *k)
{
	k->booting--;
	if (k->boots_queued && k->booting < guest_wait_boots_most())
		builder_submit(k->builder, guest_wait_dequeue(k));
}

static void guest_wait_end(struct keeper *k, uint64_t until_ns, const char *why)
{
	struct guest_wait *w = k->guests, *next;
	struct err e;

	err_set(&e, ERR_SYS, "%s", why);
	for (; w; w = next) {
		next = w->next;
		if (w->until_ns <= until_ns)
			guest_wait_finish(k, w, &e);
	}
}

void guest_wait_look(struct keeper *k)
{
	uint64_t now = now_ns(), first = UINT64_MAX;

	guest_wait_end(k, now, "the guest was not ready in time");
	for (const struct guest_wait *w = k->guests; w; w = w->next)
		first = w->until_ns < first ? w->until_ns : first;
	if (k->guests)
		keeper_wake_in(k, (unsigned)((first - now) / 1000000 + 1));
}

void guest_wait_end_all(struct keeper *k)
{
	struct build_job *all = steal(&k->boots_queued), *j;

	guest_wait_end(k, UINT64_MAX, "the keeper is stopping");
	k->nqueued = 0;
	while ((j = all) != NULL) {
		all = j->next;
		k->booting++;
		err_set(&j->err, ERR_SYS, "the keeper is stopping");
		request_made(k, j);
	}
}
