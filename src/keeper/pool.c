/* pool.c - boxes that are created in advance.
 *
 * A pooled box is complete: namespaces, root, filter, a waiting init. Only on v1 hosts it has no
 * cgroups of its own, because entering them late takes microseconds and an idle cgroup is
 * expensive; on v2 it is created inside its own. Refilling waits for an idle moment, so that it
 * does not compete with the request that took a box, unless the pool runs low. */
#include "base/clock.h"
#include "base/id.h"
#include "base/cleanup.h"
#include "jail/feature.h"
#include "keeper/keeper_internal.h"
#include "wire/sock.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define QUIET_MS 3
#define RUSH_MS 50
#define PAUSE_MS 1000
#define CGROUP_CACHE_LOW 2
#define LOG_AGAIN_MS 60000

/* Pooled boxes use ids, descriptors and processes that requests need: an eighth of each at most. */
static unsigned pool_room(const struct keeper *k)
{
	unsigned room = POOL_MOST;

	room = room < RANGE_PER_SHARE / 8 ? room : RANGE_PER_SHARE / 8;
	room = room < k->host.files_most / 8 ? room : k->host.files_most / 8;
	return room < k->host.pids_most / 8 ? room : k->host.pids_most / 8;
}

void pool_set_depth(struct keeper *k, unsigned depth)
{
	unsigned room = pool_room(k);

	k->pool_depth = depth < room ? depth : room;
	if (k->host.tier_host.no_namespaces[0])
		k->pool_depth = 0; /* pools have containers */
}

struct wire_limits pool_common_limits(const struct keeper *k)
{
	uint64_t can = k->host.layers;

	return (struct wire_limits){
		.mem_bytes = can & FEATURE_BIT(FEATURE_MEM) ? WIRE_USUAL_MEM : 0,
		.disk_bytes = WIRE_USUAL_DISK,
		.disk_files = WIRE_USUAL_FILES,
		.cpu_milli = can & FEATURE_BIT(FEATURE_CPU) ? WIRE_USUAL_CPU_MILLI : 0,
		.pids = can & FEATURE_BIT(FEATURE_TASKS) ? WIRE_USUAL_PIDS : 0,
	};
}

/* Cgroup limits are written when a client gets a box, but the disk is mounted when the box is
 * created. */
int pool_fits(const struct keeper *k, const struct wire_limits *want)
{
	return want->disk_bytes == k->common.disk_bytes &&
	       want->disk_files == k->common.disk_files && keeper_box_disk_in_memory(want);
}

struct keeper_box *pool_take(struct keeper *k, unsigned pool_class)
{
	struct keeper_box *b = k->pool_classes[pool_class].first;

	if (b) {
		pool_drop(k, b);
		b->of_warm_pool = 0;
	}
	pool_stay_quiet(k);
	return b;
}

void pool_stay_quiet(struct keeper *k)
{
	k->quiet_ns = now_ns() + QUIET_MS * 1000000ull;
}

static struct pool_class *pool_of(struct keeper *k, const struct keeper_box *b)
{
	if (b->of_root_pool)
		return &root_pool_of(k, b)->boxes;
	return b->of_tier_pool ? &tier_pool_of(k, b)->boxes : &k->pool_classes[b->pool_class];
}

void pool_add(struct keeper *k, struct keeper_box *b)
{
	struct pool_class *l = pool_of(k, b);

	b->next = NULL;
	if (l->last)
		l->last->next = b;
	else
		l->first = b;
	l->last = b;
	l->pooled++;
	k->pooled++;
}

void pool_drop(struct keeper *k, struct keeper_box *b)
{
	struct pool_class *l = pool_of(k, b);
	struct keeper_box *before = NULL;

	for (struct keeper_box *at = l->first; at; before = at, at = at->next) {
		if (at != b)
			continue;
		if (before)
			before->next = b->next;
		else
			l->first = b->next;
		if (l->last == b)
			l->last = before;
		b->next = NULL;
		l->pooled--;
		k->pooled--;
		return;
	}
}

/* Takes a cached cgroup, or chooses a name of the same form, so that the cgroup can be cached
 * later. */
static int name_cgroup(struct keeper *k, struct build_job *j, struct err *e)
{
	char id[ID_MAX + 1];

	if (!j->make.box->meta.about.tier)
		cgroup_cache_take_for_job(k, j);
	if (j->make.ntasks)
		return 0;
	if (id_new(id, e) < 0)
		return -1;
	memcpy(j->make.box->meta.cgroup, id, sizeof(id));
	return 0;
}

/* Prepares a new box for a builder thread: id, uid range, record. */
int pool_begin_with(struct keeper *k, struct build_job *j, const struct wire_limits *lim,
		    int own_cgroup, const struct wire_create *w, struct err *e)
{
	struct wire_box *about;
	char id[ID_MAX + 1];
	uint32_t uid_base = 0, place;

	if (id_new(id, e) < 0 || record_file_take(&k->records, &place, e) < 0)
		return -1;
	if (!k->host.rootless && uid_range_take(&k->ranges, &uid_base, e) < 0) {
		record_file_drop(&k->records, place);
		return -1;
	}
	j->make.box = keeper_box_new(&k->boxes, id);
	j->make.box->place = place;
	j->make.box->pool_class = j->make.pool_class;
	about = &j->make.box->meta.about;
	about->head = sock_head(WIRE_BOX, 0);
	about->limits = *lim;
	about->layers = j->make.facts ? j->make.facts->features : k->host.layers;
	about->tier = j->make.facts ? (uint16_t)j->make.facts->tier : WIRE_TIER_CONTAINER;
	about->state = WIRE_BOX_MAKING;
	about->uid_base = uid_base;
	about->warm = j->make.pool_class != 0;
	about->created_ns = clock_ns(CLOCK_REALTIME);
	snprintf(about->template, sizeof(about->template), "base");
	j->make.box->meta.magic = BOX_RECORD_MAGIC;
	j->make.box->meta.boot = k->host.boot;
	if (!keeper_box_disk_in_memory(lim)) {
		j->make.disk_promised = keeper_box_disks(&k->boxes);
		j->make.box->meta.disk_image = 1;
	}
	if (own_cgroup && name_cgroup(k, j, e) < 0) {
		if (uid_base)
			uid_range_free(&k->ranges, uid_base);
		record_file_drop(&k->records, place);
		keeper_box_free(&k->boxes, j->make.box);
		return -1;
	}
	j->make.box->start = steal(&j->make.start);
	j->make.box->start_len = j->make.start_len;
	if (w) {
		j->make.box->meta.nmounts = w->nmounts;
		memcpy(j->make.box->meta.mounts, w->mounts, sizeof(w->mounts));
		j->make.box->meta.nlayers = w->nlayers;
		memcpy(j->make.box->meta.layer, w->layer, sizeof(w->layer));
		j->make.box->meta.nchain = w->nchain;
		memcpy(j->make.box->meta.chain, w->chain, sizeof(w->chain));
		if (w->root[0]) {
			memcpy(j->make.box->meta.root, w->root, TREE_ID);
			memcpy(about->template, w->template, sizeof(about->template));
			j->make.box->root = root_copy(root_table_find(&k->roots, w->root));
		}
	}
	guest_wait_submit(k, j);
	return 0;
}

int pool_begin(struct keeper *k, struct build_job *j, const struct wire_limits *lim, int own_cgroup,
	       struct err *e)
{
	return pool_begin_with(k, j, lim, own_cgroup, NULL, e);
}

/* Warming up delays a box that a client waits for. It makes the first program of an interpreter
 * faster but is more work in total, so it is skipped under load. */
static int has_time(const struct keeper *k, const struct pool_class *l, unsigned pool_class,
		    uint64_t now)
{
	if (pool_class)
		return l->pooled * 4 > l->depth || now >= k->quiet_ns + RUSH_MS * 1000000ull;
	return l->pooled * 2 >= l->depth;
}

/* An interpreter runs in the box before a client gets it, so such a box is created with its
 * cgroups. */
static int give_one(struct keeper *k, unsigned pool_class, uint64_t now, struct err *e)
{
	struct pool_class *l = &k->pool_classes[pool_class];
	const struct zygote *z = &k->zygotes[pool_class];
	struct wire_create of_root = { .template = "root" };
	struct build_job *j = build_job_new(BUILD_BOX);

	j->for_pool = 1;
	memcpy(of_root.root, z->root, sizeof(z->root));
	warm_pool_for_job(k, j, pool_class);
	j->make.warm = has_time(k, l, pool_class, now);
	if (pool_begin_with(k, j, z->root[0] ? &z->limits : &k->common,
			    pool_class || k->host.cgroups.version == 2,
			    z->root[0] ? &of_root : NULL, e) < 0) {
		own_close_fd(&j->make.orders);
		free(j);
		return -1;
	}
	j->make.box->of_warm_pool = z->root[0] != 0;
	l->making++;
	k->pool_making++;
	return 0;
}

/* 1: refill later, because a request is being served and the pool is not nearly empty. */
static int may_wait(struct keeper *k, const struct pool_class *l, uint64_t now)
{
	if (now >= k->quiet_ns || (l->pooled + l->making) * 2 <= l->depth)
		return 0;
	keeper_wake_in(k, (unsigned)((k->quiet_ns - now) / 1000000 + 1));
	return 1;
}

static int refill_pool_class(struct keeper *k, unsigned pool_class, uint64_t now, struct err *e)
{
	struct pool_class *l = &k->pool_classes[pool_class];

	if (pool_class && !warm_pool_is_ready(k, pool_class))
		return 0;
	if (l->pooled + l->making >= l->depth || may_wait(k, l, now))
		return 0;
	while (l->pooled + l->making < l->depth)
		if (give_one(k, pool_class, now, e) < 0)
			return -1;
	return 0;
}

void pool_refill(struct keeper *k)
{
	uint64_t now = now_ns();
	struct err e;

	if (k->stopping)
		return;
	if (now < k->pause_ns) {
		keeper_wake_in(k, PAUSE_MS);
		return;
	}
	k->pool_classes[0].depth = k->pool_depth;
	/* This takes half a millisecond of the loop, and a client that just got a box may wait for
	 * the same CPU. */
	if (now >= k->quiet_ns || k->cached_cgroups[CACHED_CGROUP_ANY].n < CGROUP_CACHE_LOW)
		cgroup_cache_refill(k);
	else
		keeper_wake_in(k, (unsigned)((k->quiet_ns - now) / 1000000 + 1));
	for (unsigned i = 0; i < POOL_CLASSES; i++)
		if (refill_pool_class(k, i, now, &e) < 0) {
			pool_failed(k, &e);
			return;
		}
	if (now < k->quiet_ns)
		keeper_wake_in(k, (unsigned)((k->quiet_ns - now) / 1000000 + 1));
	else if (root_pool_refill(k, now, &e) < 0 || tier_pool_refill(k, now, &e) < 0)
		pool_failed(k, &e);
}

/* If the run folder was deleted, records of boxes would be lost with the keeper. So the keeper ends
 * all boxes and exits. */
static void leave_if_lost(struct keeper *k)
{
	struct stat st;

	if (fstat(k->host.run, &st) < 0 || st.st_nlink > 0)
		return;
	fprintf(stderr, "atoll: keeper: the run folder is gone; ending all boxes\n");
	for (struct keeper_box *b = keeper_box_after(&k->boxes, ""); b;
	     b = keeper_box_after(&k->boxes, b->meta.about.id))
		if (b->meta.about.state == WIRE_BOX_TAKEN)
			teardown_kill(k, b);
	k->stopping = 1;
}

void pool_log(struct keeper *k, const char *what, const struct err *e)
{
	uint64_t now = now_ns();

	if (strcmp(k->pool_err.msg, e->msg) == 0 &&
	    now - k->pool_err_ns < LOG_AGAIN_MS * 1000000ull)
		return;
	fprintf(stderr, "atoll: keeper: %s: %s\n", what, e->msg);
	k->pool_err = *e;
	k->pool_err_ns = now;
}

/* After a failure the pool waits before it tries again. */
void pool_failed(struct keeper *k, const struct err *e)
{
	pool_log(k, "pool", e);
	k->pause_ns = now_ns() + PAUSE_MS * 1000000ull;
	leave_if_lost(k);
}

void pool_about(const struct keeper *k, uint32_t ref, struct wire_info *out)
{
	*out = (struct wire_info){
		.head = sock_head(WIRE_INFO_REPLY, ref),
		.layers = k->host.layers,
		.boxes = k->boxes.count - k->pooled - k->pool_making - k->homes,
		.pooled = k->pooled,
		.making = builder_busy(k->builder),
		.pool_depth = k->pool_depth,
		.pid = (uint32_t)getpid(),
		.cgroup_version = (uint32_t)k->host.cgroups.version,
		.hits = k->hits,
		.misses = k->misses,
		.waiting = builder_waiting(k->builder),
		.waiting_most = WAITING_MOST,
	};
	out->head.flags = WIRE_INFO_ALL;
}

void pool_filled(struct keeper *k)
{
	struct wire_info a;

	if (!k->filler.client || k->pool_classes[0].pooled < k->pool_depth)
		return;
	pool_about(k, k->filler.ref, &a);
	client_send(k, k->filler.client, &a, sizeof(a), -1);
	k->filler.client = 0;
}
