/* builder.h - boxes are made off the loop, on threads of their own.
 * Owns:         the threads and the jobs in flight: first those that a client waits for, in the order
 *               they came, then the pool's.
 * Does not own: the kbox of a job; the loop lends it until the job is back, and touches it no more
 *               than the table does. */
#pragma once
#include "base/err.h"
#include "keeper/host_state.h"
#include "keeper/keeper_box.h"
#include "keeper/zygote.h"
#include <pthread.h>

/* Cgroups that the loop makes while a maker clones (v1). */
struct late_cgroup {
	pthread_mutex_t lock;
	pthread_cond_t there;
	int ready;
	int fds[CG_NCTL], n;
	struct err err;
};

struct keeper;

struct build_job {
	/* clang-format off */
	/* Not a box but something else that takes a while: done on a maker, told on the loop. */
	int (*work)(const struct host_state *h, struct build_job *j, struct err *e); /* NULL: make the box */
	void (*back)(struct keeper *k, struct build_job *take_job);
	struct keeper_box *box;
	struct late_cgroup *cgroup; /* NULL: none, or the maker makes it */
	int tasks[CG_NCTL], ntasks; /* of the box's own cgroup if it was a spare: high numbers */
	void *start;       /* for the box, until it is there: kbox.h */
	size_t start_len;
	uint64_t without, seed_without; /* test builds */
	unsigned pool_class; /* of the pool it is for, or would have been */
	int orders; /* -1, or a zygote's socket: have it fork a seed into the box */
	const struct seed_kind *starts;  /* have init start this seed in it */
	const struct seed_kind *kind;    /* what the lane has */
	const struct seed_kind *home_of; /* start this zygote in the box ... */
	unsigned home_pool_class;              /* ... for this lane */
	struct zygote_birth zygote;      /* and here it is */
	uint64_t disk_promised; /* to other boxes: disk.h */
	uint16_t flags;   /* of the CREATE */
	int for_pool, warm; /* warm: run something in it before it is needed, or have its seed practise */
	uint64_t client;  /* who waits for it, and for what request */
	uint32_t ref;
	struct {
		char id[WIRE_ID], cgroup[WIRE_ID];
		struct wire_limits was, want;
	} limit; /* limit.c */
	struct {
		char id[WIRE_ID], cgroup[WIRE_ID];
		int on;
	} freeze; /* freeze.c */
	struct {
		char id[WIRE_VOLUME_ID];
		uint64_t bytes; /* 0: drop it */
	} volume; /* volume.c */
	struct err err;   /* kind 0: it lives */
	int warm_pool_failed;  /* the box was made, but no interpreter could be forked or started in it */
	uint64_t zygote_number; /* of the zygote that `orders` leads to */
	uint64_t began_ns;
	struct build_job *next;
	/* clang-format on */
};

struct build_job *build_job_new(void); /* empty; never NULL */

struct builder;
must_check int builder_start(struct builder **out, const struct host_state *h, unsigned threads,
			     struct err *e);
int builder_fd(const struct builder *m); /* readable when a job is back */
/* A job with a cgroup name and v1: comes back from here with its cgroups made, on this thread, while
 * the box is being cloned on another. */
void builder_submit(struct builder *m, struct build_job *take_job);
struct build_job *builder_collect(struct builder *m); /* NULL: none */
unsigned builder_waiting(const struct builder *m);    /* of those busy: somebody waits for them */
void builder_stop(struct builder *m);           /* joins the threads; nothing may be in flight */
unsigned builder_busy(const struct builder *m); /* given and not yet back; the loop's view */
