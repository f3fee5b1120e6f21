/* keeper_internal.h - the keeper's one state and the rooms that work on it, all on the loop's thread.
 *   keeper.c   start, loop, clients          request.c  what a client may ask
 *   limit.c    other limits for a living box
 *   freeze.c   a box that stands still
 *   deadline.c the end of a lifetime when no server acts on it
 *   volume.c   named disks that outlive boxes
 *   layer.c    read-only layers, named by what is in them
 *   pool.c     boxes made before they are asked for
 *   seed.c     interpreters loaded before they are asked for
 *   spare.c    cgroups made before they are asked for, or used again
 *   nets.c     the same with network namespaces; linger.c: mounts of boxes that have ended
 *   death.c    the end of a box, and what is remembered of it
 *   sweep.c    what an earlier keeper left */
#pragma once
#include "base/err.h"
#include "keeper/host_state.h"
#include "keeper/keeper_box.h"
#include "keeper/builder.h"
#include "keeper/uid_range.h"
#include "keeper/record_file.h"
#include "keeper/warm_pool.h"
#include "wire/wire.h"

#define EXIT_COUNTERS 1024
#define POOL_MOST 1000u   /* of what may be asked for; less on a small machine */
#define WAITING_MOST 1024 /* requests that makers have not done yet */

/* For whom a cgroup is as new: one that has had three processes only for those who bring three. */
enum cgroup_cache_kind { CACHED_CGROUP_ANY, CACHED_CGROUP_SEEDED, CACHED_CGROUP_KINDS };

struct client {
	struct source src;
	uint64_t number; /* never reused */
	uint32_t len;    /* of the frame that is being handled */
	int is_server;   /* it has set deadlines, and acts on them first */
	struct client *next;
};

struct keeper {
	struct host_state host;
	struct kboxes boxes;
	struct uid_ranges ranges;
	struct record_file records;
	struct builder *builder;
	struct linger *linger;
	struct client *clients;
	uint64_t last_client;
	unsigned nclients;
	int epoll, timer;
	uint64_t wake_ns; /* when the timer will say so; 0: never */
	int stopping;
	unsigned idle_exit_s; /* 0: stay */
	uint64_t busy_ns;     /* last time there was a taken box or a client */

	struct pool_class {
		struct keeper_box *first, *last; /* made, waiting, all alike; oldest first */
		unsigned pooled, depth, making;
	} pool_classes[POOL_CLASSES]; /* of the pool: 0 plain boxes, others with a seed */
	unsigned pooled, pool_depth, pool_making; /* of all lanes; the plain one's depth */
	struct zygote zygotes[POOL_CLASSES];
	uint64_t last_zygote;
	unsigned homes;                  /* boxes of theirs */
	pid_t corpses[2 * POOL_CLASSES]; /* zygotes that were ended and are not reaped */
	unsigned ncorpses;
	uint64_t tend_ns;    /* not before: what is not wanted any more goes */
	uint64_t quiet_ns;   /* no refill before this moment: a request is being served, ... */
	uint64_t pause_ns;   /* ... or the last try has failed */
	struct err pool_err; /* by this, logged at that time */
	uint64_t pool_err_ns;
	struct wire_limits common; /* limits of pooled boxes */
	uint64_t hits, misses;
	struct waiter filler; /* who asked for FILL and is not answered yet */

	struct cgroup_cache {
		struct cached_cgroup *first;
		unsigned n;
	} spares[CACHED_CGROUP_KINDS];
	struct cached_cgroup
		*ended[16];    /* of boxes that have ended: nobody has looked at them yet */
	unsigned nended, held; /* held: boxes with a spare of their own */

	int tending; /* a maker looks after the networks that wait */

	struct keeper_box *dying; /* dead, but something of theirs is still busy */
	struct wire_counters obituary[EXIT_COUNTERS];
	unsigned obituary_next;
	unsigned metered;             /* boxes with a CPU time limit */
	uint64_t deadline_ns;         /* the earliest of all boxes, CLOCK_BOOTTIME; 0: none */
	uint64_t deadline_from_ns;    /* not before: what an earlier keeper has left */
	struct layer_job *layer_jobs; /* orders to the stock that are under way */
};

/* keeper.c */
struct client *client_find(struct keeper *k, uint64_t number);
void client_send(struct keeper *k, uint64_t client, const void *frame, size_t len, int fd);
void client_error(struct keeper *k, uint64_t client, uint32_t ref, const struct err *e);
must_check int keeper_watch(struct keeper *k, struct source *s, struct err *e);
void keeper_unwatch(struct keeper *k, struct source *s); /* and closes it */
void keeper_tend_nets(struct keeper *k);                 /* now on a maker, or when it is time */
void keeper_wake_in(struct keeper *k, unsigned ms);      /* the timer, at the latest then */

/* request.c */
void request_handle(struct keeper *k, struct client *c, const struct frame *f); /* checked */
void request_made(struct keeper *k, struct build_job *take_job);
/* The living box a frame names, or NULL: it is refused. */
struct keeper_box *request_named(struct keeper *k, struct client *c, const struct frame *f);
int request_too_many(struct keeper *k, struct client *c, const struct frame *f); /* 1: refused */
/* Can cgroups here enforce these, and are they all there? */
must_check int request_limits_sane(const struct keeper *k, const struct wire_limits *l,
				   struct err *e);

/* volume.c */
void volume_request(struct keeper *k, struct client *c, const struct frame *f);
/* May this box have the volumes it asks for, now? */
must_check int volume_check(struct keeper *k, const struct wire_create *w, struct err *e);

/* layer.c */
void layer_request(struct keeper *k, struct client *c, const struct frame *f);
void layer_answered(struct keeper *k, struct source *s);
/* May this box have the layers it asks for? */
must_check int layer_check(const struct keeper *k, const struct wire_create *w, struct err *e);

/* limit.c */
void limit_request(struct keeper *k, struct client *c, const struct frame *f);

/* freeze.c */
void freeze_request(struct keeper *k, struct client *c, const struct frame *f);
/* The same without a client. -1: it is being changed, or has no cgroup for it. */
must_check int freeze_box(struct keeper *k, struct keeper_box *b);

/* deadline.c */
void deadline_request(struct keeper *k, struct client *c, const struct frame *f);
void deadline_adopt(struct keeper *k,
		    struct keeper_box *b); /* from the record, of a box that lives */
void deadline_look(struct keeper *k);      /* acts on those that are due */
void deadline_server_gone(struct keeper *k);

/* pool.c */
struct wire_limits pool_common_limits(const struct keeper *k);
int pool_fits(const struct keeper *k, const struct wire_limits *want);
struct keeper_box *pool_take(struct keeper *k, unsigned pool_class); /* NULL: empty */
void pool_add(struct keeper *k, struct keeper_box *b);
void pool_drop(struct keeper *k, struct keeper_box *b); /* taken, or it died while waiting */
void pool_refill(struct keeper *k);
void pool_set_depth(struct keeper *k, unsigned depth); /* or as many as this machine has room for */
void pool_failed(struct keeper *k, const struct err *e);
void pool_log(struct keeper *k, const char *what,
	      const struct err *e); /* the same text once a minute */
void pool_filled(struct keeper *k); /* answers a FILL if the depth is reached */
/* own_cgroup: made with its limits now; otherwise it waits in the parent's. */
must_check int pool_begin(struct keeper *k, struct build_job *j, const struct wire_limits *lim,
			  int own_cgroup, struct err *e);
/* The same for a box with volumes. */
must_check int pool_begin_with(struct keeper *k, struct build_job *j, const struct wire_limits *lim,
			       int own_cgroup, const struct wire_create *w, struct err *e);
void pool_about(const struct keeper *k, struct wire_info *out);

/* spare.c */
/* Cgroups with these limits for a process to enter; returns how many descriptors, -1 on error.
 * The name is on its way to the record before anything exists by it. */
must_check int cgroup_cache_take(struct keeper *k, struct keeper_box *b, int out_fds[CG_NCTL],
				 struct err *e);
/* The same for a box that is yet to be made, if there is a spare. */
void cgroup_cache_take_for_job(struct keeper *k, struct build_job *j);
/* It is in them, and is somebody's: n descriptors of cgroup_cache_take() are not needed any more. */
void cgroup_cache_given(struct keeper *k, struct keeper_box *b, int *fds, int n);
/* What it has computed while it waited in the pool is not the client's. */
void cgroup_cache_restart_cpu(const struct keeper *k, struct keeper_box *b);
void cgroup_cache_count(const struct keeper *k, const struct keeper_box *b,
			struct cgroup_counts *out);
/* Could the cgroups of this box, which has ended, be a spare? Nobody is in them, if so ... */
int cgroup_cache_may_keep(struct keeper *k, const struct keeper_box *b);
/* ... and nobody has to wait for this: it is one soon, if it is as new, and else removed. */
void cgroup_cache_keep(struct keeper *k, struct keeper_box *b);
void cgroup_cache_forget(struct keeper *k, struct keeper_box *b); /* closes what is open */
void cgroup_cache_inspect(struct keeper *k);                      /* at those */
void cgroup_cache_refill(struct keeper *k);
void cgroup_cache_drop_all(struct keeper *k);

/* death.c */
void teardown_kill(struct keeper *k, struct keeper_box *b); /* SIGKILL to the whole pid namespace */
void teardown_seen(struct keeper *k, struct keeper_box *b); /* its init is gone */
/* Kills a box that was never handed out. It is reaped and cleaned up when its init has ended. */
void teardown_discard(struct keeper *k, struct keeper_box *b);
void teardown_retry(struct keeper *k);
void teardown_count(const struct keeper *k, const struct keeper_box *b, struct wire_counters *out);
const struct wire_counters *teardown_counters(const struct keeper *k, const char *id);
void teardown_watch_cpu(struct keeper *k, struct keeper_box *b); /* if it has a CPU time limit */
void teardown_meter(struct keeper *k); /* ends boxes that are over their CPU time */

/* sweep.c */
must_check int sweep_start(struct keeper *k, struct err *e);
