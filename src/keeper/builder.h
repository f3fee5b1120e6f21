/* builder.h - threads that create boxes, so that the loop is not blocked.
 * Owns:         the threads and the jobs in progress: first those that a client waits for, in their
 *               order, then those for the pool.
 * Does not own: the keeper_box of a job; it belongs to the builder until the job is done, and the
 *               loop only keeps it in the table. */
#pragma once
#include "base/err.h"
#include "keeper/host_state.h"
#include "keeper/keeper_box.h"
#include "keeper/zygote.h"
#include <pthread.h>

/* Cgroups that the loop creates while a builder clones (v1). */
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
	/* Not a box but other slow work: done on a builder thread, finished on the loop. */
	/* NULL: create the box. */
	int (*work)(const struct host_state *h, struct build_job *j, struct err *e);
	void (*back)(struct keeper *k, struct build_job *take_job);
	struct keeper_box *box;
	struct late_cgroup *cgroup; /* NULL: none, or the builder creates it */
	int tasks[CG_NCTL], ntasks; /* of the cgroup of the box if it came from the cache: high
				     * numbers */
	void *start;       /* for the box, until it is created: keeper_box.h */
	size_t start_len;
	uint64_t without, seed_without; /* test builds */
	unsigned pool_class; /* class of the pool that it is for, or would have been */
	int orders; /* -1, or the socket of a zygote that forks an interpreter into the box */
	const struct seed_kind *starts;  /* init starts this interpreter in it */
	const struct seed_kind *kind;    /* kind of the pool class */
	const struct seed_kind *home_of; /* starts this zygote in the box ... */
	unsigned home_pool_class;              /* ... for this pool class */
	struct zygote_handle zygote;      /* the started zygote */
	uint64_t disk_promised; /* to other boxes: disk_service.h */
	uint16_t flags;   /* of the CREATE */
	int for_pool, warm; /* warm: run a program in it before it is needed, or warm up its
			     * interpreter */
	uint64_t client;  /* number of the client that waits, and ref of its request */
	uint32_t ref;
	struct {
		char id[WIRE_ID], cgroup[WIRE_ID];
		struct wire_limits was, want;
	} limit; /* limit_job.c */
	struct {
		char id[WIRE_ID], cgroup[WIRE_ID];
		int on;
	} freeze; /* freeze_job.c */
	struct {
		char id[WIRE_VOLUME_ID];
		uint64_t bytes; /* 0: delete it */
	} volume; /* volume.c */
	struct err err;   /* kind 0: success */
	int warm_pool_failed;  /* the box was created, but no interpreter could be forked or started
			        * in it */
	uint64_t zygote_number; /* number of the zygote behind `orders` */
	uint64_t began_ns;
	struct build_job *next;
	/* clang-format on */
};

struct build_job *build_job_new(void); /* empty; never NULL */

struct builder;
must_check int builder_start(struct builder **out, const struct host_state *h, unsigned threads,
			     struct err *e);
int builder_fd(const struct builder *m); /* readable when a job is done */
/* A job with a cgroup name on v1: this function creates its cgroups, on this thread, while another
 * thread clones the box. */
void builder_submit(struct builder *m, struct build_job *take_job);
struct build_job *builder_collect(struct builder *m); /* NULL: none */
/* Number of busy jobs that a client waits for. */
unsigned builder_waiting(const struct builder *m);
void builder_stop(struct builder *m);           /* joins the threads; no job may be in progress */
unsigned builder_busy(const struct builder *m); /* submitted and not collected yet */
