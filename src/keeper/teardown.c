/* teardown.c - the end of a box.
 *
 * SIGKILL to init ends the whole pid namespace, setsid and double forks included. When its pidfd
 * reports the end, the kernel releases mounts and network; the keeper reads the final counters,
 * removes cgroups, record and socket, frees the uid range, and only then sends GONE. A box that is
 * still busy (a process in uninterruptible sleep) keeps its range and its cgroups, and is tried
 * again. Boxes of the tier process have no pid namespace: their supervisor (mux/supervise.h) ends their processes, and
 * if it was killed itself, the keeper ends those of their uid. */
#include "base/cleanup.h"
#include "jail/launch.h"
#include "jail/user.h"
#include "keeper/mount_reaper.h"
#include "keeper/netns_pool.h"
#include "keeper/keeper_internal.h"
#include "mux/packet.h"
#include "wire/sock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define RETRY_MS 5
#define METER_MS 50
#define DISCARD_MS 1000

void teardown_kill(struct keeper *k, struct keeper_box *b)
{
	/* The supervisor ends all processes of its box before it exits. */
	int how = b->meta.about.tier == WIRE_TIER_PROCESS ? SIGTERM : SIGKILL;
	struct err ignored;

	b->meta.about.state = WIRE_BOX_DYING;
	if (b->death.fd >= 0)
		syscall(SYS_pidfd_send_signal, b->death.fd, how, NULL, 0);
	/* Thawed after the signal: init dies before it does anything else, and all others
	 * with it. */
	if (b->meta.about.frozen)
		(void)!cgroup_thaw(&k->host.cgroups, b->meta.cgroup, &ignored);
}

void teardown_count(const struct keeper *k, const struct keeper_box *b, struct wire_counters *out)
{
	struct cgroup_counts n;

	memset(&n, 0xff, sizeof(n));
	if (b->meta.cgroup[0])
		cgroup_cache_count(k, b, &n);
	if (n.cpu_us != UINT64_MAX)
		n.cpu_us -= n.cpu_us < b->cpu_before_us ? n.cpu_us : b->cpu_before_us;
	*out = (struct wire_counters){
		.mem_now = n.mem_now,
		.mem_peak = n.mem_peak,
		.cpu_us = n.cpu_us,
		.oom_kills = n.oom_kills,
		.mem_hits = n.mem_hits,
		.pids_now = n.pids_now,
		.pids_peak = n.pids_peak,
		.pids_hits = n.pids_hits,
		.throttled_us = n.throttled_us,
		.over_cpu = b->over_cpu,
		.engine_status = b->engine_status,
		.by_operator = b->by_operator,
	};
}

const struct wire_counters *teardown_counters(const struct keeper *k, const char *id)
{
	for (unsigned i = 0; i < EXIT_COUNTERS; i++)
		if (strcmp(k->exit_counters[i].id, id) == 0)
			return &k->exit_counters[i];
	return NULL;
}

/* Cleanup that no client has to wait for: no process can reach these any longer. */
static void leave_behind(struct keeper *k, struct keeper_box *b)
{
	mount_reaper_close(k->mount_reaper, steal_fd(&b->mounts));
	if (b->cached_cgroup)
		cgroup_cache_keep(k, b);
	else
		cgroup_cache_forget(k, b);
	/* A zygote is in the network of its box, and may not have ended yet. */
	if (k->host.netns_pool && !b->home) {
		if (!b->captured)
			netns_pool_put(k->host.netns_pool, steal(&b->net), b->net_unchecked);
		keeper_maintain_netns(k);
	}
}

static void teardown_bury(struct keeper *k, struct keeper_box *b)
{
	char path[KEEPER_BOX_SOCKET];

	/* The record is removed last: as long as it exists, a new keeper can finish the cleanup. */
	keeper_box_socket(b, path);
	unlinkat(k->host.run, path, 0);
	record_file_drop(&k->records, b->place);
	if (b->meta.about.uid_base)
		uid_range_free(&k->ranges, b->meta.about.uid_base);
	k->exit_counters[k->exit_counters_next++ % EXIT_COUNTERS] = b->last;
	for (unsigned i = 0; i < b->nwaiters; i++) {
		b->last.head = sock_head(WIRE_DESTROYED, b->waiters[i].ref);
		client_send(k, b->waiters[i].client, &b->last, sizeof(b->last), -1);
	}
	leave_behind(k, b);
	checkpoint_box_ended(k, b);
	k->metered -= (unsigned)b->metered;
	keeper_box_free(&k->boxes, b);
}

static int remove_leftovers(struct keeper *k, struct keeper_box *b)
{
	struct err e;

	b->cached_cgroup = cgroup_cache_may_keep(k, b);
	if (b->cached_cgroup)
		return 0;
	if (!b->meta.cgroup[0] || cgroup_remove(&k->host.cgroups, b->meta.cgroup, &e) == 0)
		return 0;
	if (e.sys != EBUSY)
		fprintf(stderr, "atoll: keeper: %s\n", e.msg);
	/* All processes in this cgroup were started in this box: no others can enter. */
	cgroup_kill(&k->host.cgroups, b->meta.cgroup);
	return -1;
}

void teardown_seen(struct keeper *k, struct keeper_box *b)
{
	siginfo_t si = { 0 };

	if (b->guest) {
		guest_wait_died(k, b); /* its job fails, which discards the box */
		return;
	}
	/* ECHILD: the box was adopted, and another process reaps it. */
	if (b->death.fd >= 0)
		waitid((idtype_t)P_PIDFD, (id_t)b->death.fd, &si, WEXITED | WNOHANG | __WALL);
	/* Unless the supervisor has exited by itself, after its last child. */
	if (b->meta.about.tier == WIRE_TIER_PROCESS && b->meta.about.uid_base &&
	    si.si_code != CLD_EXITED)
		user_kill_all(b->meta.about.uid_base + JAIL_USER);
	if (tier_has_guest(b->meta.about.tier) && si.si_code == CLD_EXITED)
		b->engine_status = (uint16_t)si.si_status;
	if (packet_reason(b->engine_status))
		fprintf(stderr, "atoll: keeper: box %s: %s\n", b->meta.about.id,
			packet_reason(b->engine_status));
	keeper_unwatch(k, &b->death);
	if (b->home)
		warm_pool_box_died(k, b);
	if (b->meta.about.state == WIRE_BOX_POOLED) {
		pool_drop(k, b);
		if (b->of_tier_pool)
			tier_pool_died(k, b);
	}
	b->meta.about.state = WIRE_BOX_DYING;
	if (b->unread)
		memset(&b->last, 0xff, sizeof(b->last)); /* "unknown" */
	else
		teardown_count(k, b, &b->last);
	memcpy(b->last.id, b->meta.about.id, sizeof(b->last.id));
	b->last.by_operator = b->by_operator;
	b->last.engine_status = b->engine_status;
	if (remove_leftovers(k, b) < 0) {
		b->next = k->dying;
		k->dying = b;
		keeper_wake_in(k, RETRY_MS);
		return;
	}
	teardown_bury(k, b);
}

void teardown_discard(struct keeper *k, struct keeper_box *b)
{
	struct err e;

	teardown_kill(k, b);
	/* The kernel needs a moment to end the processes of a box. Only then can init be reaped, and only then are
	 * its ids free for another box. */
	if (b->death.fd >= 0) {
		if (keeper_watch(k, &b->death, &e) == 0 || e.sys == EEXIST)
			return;
		poll(&(struct pollfd){ .fd = b->death.fd, .events = POLLIN }, 1, DISCARD_MS);
	}
	teardown_seen(k, b);
}

void teardown_retry(struct keeper *k)
{
	struct keeper_box *todo = k->dying;

	k->dying = NULL;
	while (todo) {
		struct keeper_box *b = todo;

		todo = b->next;
		if (remove_leftovers(k, b) == 0) {
			teardown_bury(k, b);
			continue;
		}
		b->next = k->dying;
		k->dying = b;
		keeper_wake_in(k, RETRY_MS);
	}
}

void teardown_watch_cpu(struct keeper *k, struct keeper_box *b)
{
	if (!b->meta.about.limits.cpu_ms)
		return;
	b->metered = 1;
	k->metered++;
	keeper_wake_in(k, METER_MS);
}

void teardown_meter(struct keeper *k)
{
	struct wire_counters now;

	if (!k->metered)
		return;
	for (struct keeper_box *b = keeper_box_after(&k->boxes, ""); b;
	     b = keeper_box_after(&k->boxes, b->meta.about.id)) {
		uint64_t most_us = b->meta.about.limits.cpu_ms * 1000;

		if (!b->metered || b->meta.about.state != WIRE_BOX_TAKEN)
			continue;
		teardown_count(k, b, &now);
		if (now.cpu_us != UINT64_MAX && now.cpu_us > most_us) {
			b->over_cpu = 1;
			teardown_kill(k, b);
		}
	}
	keeper_wake_in(k, METER_MS);
}
