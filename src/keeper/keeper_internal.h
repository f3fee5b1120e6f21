/* keeper_internal.h - the state of the keeper, shared by its files, all on the loop's thread.
 *   keeper.c        start, loop, clients     request.c    requests of clients
 *   limit_job.c     changes limits of a running box
 *   freeze_job.c    freezes and thaws a box
 *   capture_job.c   directs outbound connections of a box to egress
 *   deadline.c      ends a lifetime when no server does it
 *   volume.c        named disks that exist longer than boxes
 *   service.c       services of the keeper that have ended are started again
 *   layer.c         read-only layers, named by their content
 *   root_request.c  roots: lists of layers
 *   checkpoint.c    checkpoints: the files of a running box, captured; boxes that start from them
 *   procimage_request.c  process images: the programs of a box, captured, and copies of them
 *   pool.c          boxes created in advance
 *   root_pool.c     boxes of roots, created in advance
 *   warm_pool.c     interpreters loaded in advance
 *   tier_request.c  isolation tiers: facts, and whether a request may have one
 *   tier_pool.c     boxes of isolation tiers, created in advance
 *   node_number.c   the number of this machine in its cluster
 *   guest_wait.c    new boxes whose guest is still booting
 *   cgroup_cache.c  cgroups created in advance, or reused
 *   netns_pool.c    the same for network namespaces; mount_reaper.c: mounts of boxes that have ended
 *   teardown.c      the end of a box, and its final counters
 *   sweep.c         boxes and files of an earlier keeper */
#pragma once
#include "base/err.h"
#include "keeper/host_state.h"
#include "keeper/keeper_box.h"
#include "keeper/builder.h"
#include "keeper/uid_range.h"
#include "keeper/record_file.h"
#include "keeper/root_pool.h"
#include "keeper/root_table.h"
#include "keeper/tier_pool.h"
#include "keeper/warm_pool.h"
#include "wire/wire.h"

#define EXIT_COUNTERS 1024
#define POOL_MOST 1000u   /* largest depth that can be set; less on a small machine */
#define WAITING_MOST 1024 /* requests that builder threads have not finished yet */

/* Which boxes a clean cgroup fits: one that has had three processes fits only boxes that start with
 * three. */
enum cgroup_cache_kind { CACHED_CGROUP_ANY, CACHED_CGROUP_WARM, CACHED_CGROUP_KINDS };

struct layer_store_request;

struct client {
	struct source src;
	uint64_t number; /* never reused */
	uint32_t len;    /* length of the frame that is being handled */
	int is_server;   /* it has set deadlines, and executes them first */
	struct client *next;
};

struct keeper {
	struct host_state host;
	struct kboxes boxes;
	struct uid_ranges ranges;
	struct record_file records;
	struct builder *builder;
	struct mount_reaper *mount_reaper;
	struct client *clients;
	uint64_t last_client;
	unsigned nclients;
	int epoll, timer;
	uint64_t wake_ns; /* when the timer fires; 0: never */
	int stopping;
	unsigned idle_exit_s; /* 0: never exit */
	uint64_t busy_ns;     /* last time there was a client or a box of one */

	struct pool_class pool_classes[POOL_CLASSES]; /* of the pool: 0 plain boxes, others with a
						       * warm interpreter */
	struct root_pool root_pools[ROOT_POOLS];
	uint64_t root_maintain_ns; /* next time at which unused pools of roots are emptied */
	unsigned pooled, pool_depth, pool_making; /* of all classes; pool_depth: of the plain one */
	struct zygote zygotes[POOL_CLASSES];
	uint64_t last_zygote;
	unsigned homes;                   /* number of zygote boxes */
	pid_t unreaped[2 * POOL_CLASSES]; /* zygotes that were killed and are not reaped */
	unsigned nunreaped;
	uint64_t maintain_ns; /* next time at which unused pool classes are removed */
	uint64_t quiet_ns;    /* no refill before this time: a request is being served, ... */
	uint64_t pause_ns;    /* ... or the last attempt has failed */
	struct err pool_err;  /* the last error, and when it was logged */
	uint64_t pool_err_ns;
	struct wire_limits common; /* limits of pooled boxes */
	uint64_t hits, misses;
	struct waiter filler; /* the client that waits for the answer to FILL */

	struct cgroup_cache {
		struct cached_cgroup *first;
		unsigned n;
	} cached_cgroups[CACHED_CGROUP_KINDS];
	struct cached_cgroup *ended[16]; /* of boxes that have ended, not inspected yet */
	unsigned nended, held;           /* held: boxes that use a cached cgroup */

	int maintaining; /* a builder thread maintains the pooled networks */

	struct keeper_box *dying; /* ended, but not completely removed yet */
	struct wire_counters exit_counters[EXIT_COUNTERS];
	unsigned exit_counters_next;
	unsigned metered;             /* boxes with a CPU time limit */
	uint64_t deadline_ns;         /* the earliest of all boxes, CLOCK_BOOTTIME; 0: none */
	uint64_t deadline_from_ns;    /* not before this time: deadlines of an earlier keeper */
	struct layer_job *layer_jobs; /* requests to the layer store in progress */
	struct procimage_job *images;
	struct root_table roots;

	struct {
		struct source src; /* the tier service; fd -1: it has exited */
		struct wire_tier_facts facts[WIRE_TIER_COUNT];
		uint64_t begun, done; /* rounds of collecting facts */
		/* Of the file of each engine, at the end of the last round; ino 0: not known. */
		struct tier_engine {
			uint64_t dev, ino, size;
			struct timespec modified, changed;
		} engines[WIRE_TIER_COUNT];
		int64_t begun_s; /* time of day at which the last round began */
		unsigned
			changed; /* bits: the engine was replaced, and no client has its new facts */
		struct tier_waiting *waiting;
	} tiers;
	struct tier_pool tier_pools[WIRE_TIER_COUNT][WARM_KINDS];
	uint64_t tier_maintain_ns; /* next time at which unused pools of tiers are emptied */
	struct guest_wait *guests; /* boxes whose guest is booting */
	unsigned nguests;
	struct build_job
		*boots_queued; /* boxes whose engine is not started yet: too many boot already */
	unsigned nqueued, booting;
};

/* keeper.c */
struct client *client_find(struct keeper *k, uint64_t number);
void client_send(struct keeper *k, uint64_t client, const void *frame, size_t len, int fd);
void client_error(struct keeper *k, uint64_t client, uint32_t ref, const struct err *e);
must_check int keeper_watch(struct keeper *k, struct source *s, struct err *e);
void keeper_unwatch(struct keeper *k, struct source *s); /* also closes it */
/* Now on a builder thread, or later by timer. */
void keeper_maintain_netns(struct keeper *k);
/* Sets the timer to this time, unless it is earlier. */
void keeper_wake_in(struct keeper *k, unsigned ms);

/* service.c */
must_check int services_init(struct keeper *k, struct err *e);
void service_ended(struct keeper *k, struct source *src);
void services_look(struct keeper *k);
/* Now, and at once: its socket was found to be closed. */
void service_renew(struct keeper *k, enum host_service which);

/* request.c */
/* F has been checked. *fd: the descriptor that came with it, or -1; a request that takes it sets
 * *fd to -1. */
void request_handle(struct keeper *k, struct client *c, const struct frame *f, int *fd);
/* The running box that a frame names; NULL: rejected. */
struct keeper_box *request_named(struct keeper *k, struct client *c, const struct frame *f);
int request_too_many(struct keeper *k, struct client *c, const struct frame *f); /* 1: rejected */
/* Checks that these limits are complete, and that cgroups of this host can enforce them. */
must_check int request_limits_sane(const struct keeper *k, const struct wire_limits *l,
				   struct err *e);

/* Fills in and checks limits of boxes for a pool. */
must_check int request_pool_limits(const struct keeper *k, const struct wire_limits *want,
				   struct wire_limits *out, struct err *e);

/* volume.c */
void volume_request(struct keeper *k, struct client *c, const struct frame *f);
/* Checks that a box may have the requested volumes now. */
must_check int volume_check(struct keeper *k, const struct wire_create *w, struct err *e);

/* layer.c */
void layer_request(struct keeper *k, struct client *c, const struct frame *f);
void layer_archive_request(struct keeper *k, struct client *c, const struct frame *f,
			   int archive); /* UNPACK, EXPORT; the descriptor is borrowed */
void layer_answered(struct keeper *k, struct source *s);
/* Checks that a box may have the requested layers. */
must_check int layer_check(const struct keeper *k, const struct wire_create *w, struct err *e);
must_check int layer_possible(const struct keeper *k, struct err *e); /* on this host */
/* Sends a request to the layer store; conn: -1, or a descriptor for it. The client gets `answer`.
 * After success a new root is added to the table. */
must_check int layer_order(struct keeper *k, struct client *c, const struct frame *f,
			   const struct layer_store_request *o, int conn, uint8_t answer,
			   struct err *e);
must_check int layer_order_with(struct keeper *k, struct client *c, const struct frame *f,
				const struct layer_store_request *o, const int *fds, unsigned nfds,
				uint8_t answer, struct err *e);
must_check int layer_may_order(const struct keeper *k, struct err *e); /* not too many at present */
int layer_makes_root(const struct keeper *k, const char *id); /* or checks it, at present */
/* Removes the name of a folder of layers immediately, and its content later. */
must_check int layer_order_removal(struct keeper *k, struct client *c, const struct frame *f,
				   const char *name, struct err *e);

/* layer_list.c */
void layer_list_request(struct keeper *k, struct client *c, const struct frame *f);
/* root_request.c */
void root_request(struct keeper *k, struct client *c, const struct frame *f);
/* Checks that a box may have the requested root. */
must_check int root_check(const struct keeper *k, const struct wire_create *w, struct err *e);

/* checkpoint.c */
void checkpoint_request(struct keeper *k, struct client *c, const struct frame *f);
/* CHECKPOINT_MERGE; index: -1: none. */
/* EXPORT, IMPORT; archive: -1: none was sent. */
void checkpoint_archive_request(struct keeper *k, struct client *c, const struct frame *f,
				int archive);
void checkpoint_merge_request(struct keeper *k, struct client *c, const struct frame *f, int index);
/* Checks that a box may have the requested chain of checkpoints. */
must_check int checkpoint_check(const struct keeper *k, const struct wire_create *w, struct err *e);
/* The process that took a checkpoint of the box has answered, or has ended. */
void checkpoint_taken(struct keeper *k, const char *box, const char *cgroup);
/* A box of an earlier keeper, which may have ended during a checkpoint: its programs continue. */
void checkpoint_adopt(struct keeper *k, struct keeper_box *b);
/* The box no longer exists: mounts of its chain may be closed. */
void checkpoint_box_ended(struct keeper *k, const struct keeper_box *b);

/* procimage_request.c */
void procimage_request(struct keeper *k, struct client *c, const struct frame *f);
void procimage_answered(struct keeper *k, struct source *s);
void procimage_client_left(struct keeper *k,
			   uint64_t client); /* programs that it keeps stopped continue */
int procimage_holds(struct keeper *k, const char *box); /* its programs are stopped for an image */
/* The files of such a box were captured, or could not be: its programs continue. */
void procimage_files_done(struct keeper *k, const char *box, int done);

/* limit_job.c */
void limit_request(struct keeper *k, struct client *c, const struct frame *f);

/* freeze_job.c */
void freeze_request(struct keeper *k, struct client *c, const struct frame *f);
/* The same without a client. -1: the box is being changed, or has no cgroup for freezing. */
must_check int freeze_box(struct keeper *k, struct keeper_box *b);

/* tier_request.c */
must_check int tiers_init(struct keeper *k, struct err *e);
void tier_request(struct keeper *k, struct client *c, const struct frame *f); /* TIERS */
void tiers_learned(struct keeper *k); /* the tier service has sent something */
/* Checks that a box may have the tier of the CREATE. 1: not known yet; the request is handled again
 * when it is. */
must_check int tier_admit(struct keeper *k, struct client *c, const struct wire_create *w,
			  const struct wire_limits *limits, struct err *e);
/* Rejects a request about a running box that its tier does not support. */
must_check int tier_box_supports(const struct keeper *k, const struct keeper_box *b,
				 enum wire_need need, struct err *e);
struct wire_tier_facts *tier_facts_copy(const struct keeper *k, unsigned tier); /* never NULL */

/* guest_wait.c */
/* Passes the job of a new box to the builder, or keeps it until another guest has booted. */
void guest_wait_submit(struct keeper *k, struct build_job *take_job);
void guest_wait_booted(struct keeper *k); /* one guest less boots, or has failed to */
/* Keeps the job until the guest has reported, and then calls request_made(). -1: job->err is set. */
must_check int guest_wait_begin(struct keeper *k, struct build_job *job);
void guest_wait_ready(struct keeper *k, struct source *s);
void guest_wait_died(struct keeper *k, struct keeper_box *b); /* its mux has ended */
void guest_wait_look(struct keeper *k);                       /* ends those that took too long */
void guest_wait_end_all(struct keeper *k);

/* capture_job.c */
void capture_request(struct keeper *k, struct client *c, const struct frame *f);

/* deadline.c */
void deadline_request(struct keeper *k, struct client *c, const struct frame *f);
void deadline_adopt(struct keeper *k, struct keeper_box *b); /* from the record of a running box */
void deadline_look(struct keeper *k);                        /* executes those that are due */
void deadline_server_gone(struct keeper *k);

/* node_number.c */
void node_number_load(struct keeper *k);
void node_number_request(struct keeper *k, struct client *c, const struct frame *f);
int node_number_is_own(const struct keeper_box *b); /* its id is one that this keeper makes now */
void node_number_drop_others(struct keeper *k);     /* of the pool */

/* pool.c */
struct wire_limits pool_common_limits(const struct keeper *k);
int pool_fits(const struct keeper *k, const struct wire_limits *want);
struct keeper_box *pool_take(struct keeper *k, unsigned pool_class); /* NULL: empty */
void pool_add(struct keeper *k, struct keeper_box *b);
/* A client gets it, or it died in the pool. */
void pool_drop(struct keeper *k, struct keeper_box *b);
void pool_refill(struct keeper *k);
void pool_stay_quiet(struct keeper *k); /* a request is being served: refill a little later */
void pool_set_depth(struct keeper *k,
		    unsigned depth); /* limited to the number that this machine can hold */
void pool_failed(struct keeper *k, const struct err *e);
void pool_log(struct keeper *k, const char *what,
	      const struct err *e); /* logs the same text once a minute */
void pool_filled(struct keeper *k); /* answers a FILL if the depth is reached */
/* own_cgroup: it is created with the box, with its limits; otherwise the box stays in the parent
 * cgroup. */
must_check int pool_begin(struct keeper *k, struct build_job *j, const struct wire_limits *lim,
			  int own_cgroup, struct err *e);
/* The same for a box with volumes. */
must_check int pool_begin_with(struct keeper *k, struct build_job *j, const struct wire_limits *lim,
			       int own_cgroup, const struct wire_create *w, struct err *e);
void pool_about(const struct keeper *k, uint32_t ref,
		struct wire_info *out); /* the whole INFO_REPLY */

/* cgroup_cache.c */
/* Cgroups with these limits for a process to enter; returns the number of descriptors, -1 on error.
 * The name is set in the record before the cgroup is created. */
must_check int cgroup_cache_take(struct keeper *k, struct keeper_box *b, int out_fds[CG_NCTL],
				 struct err *e);
/* The same for a box that is not created yet, if there is a cached cgroup. */
void cgroup_cache_take_for_job(struct keeper *k, struct build_job *j);
/* The box is in its cgroups, and a client has it: n descriptors of cgroup_cache_take() are no
 * longer needed. */
void cgroup_cache_given(struct keeper *k, struct keeper_box *b, int *fds, int n);
/* CPU time that the box used in the pool is not charged to the client. */
void cgroup_cache_restart_cpu(const struct keeper *k, struct keeper_box *b);
void cgroup_cache_count(const struct keeper *k, const struct keeper_box *b,
			struct cgroup_counts *out);
/* 1: the cgroups of this box, which has ended, are empty and may be reused ... */
int cgroup_cache_may_keep(struct keeper *k, const struct keeper_box *b);
/* ... and are inspected later: cached if clean, else removed. No client waits for that. */
void cgroup_cache_keep(struct keeper *k, struct keeper_box *b);
void cgroup_cache_forget(struct keeper *k, struct keeper_box *b); /* closes its open files */
/* Inspects the cgroups of cgroup_cache_keep(). */
void cgroup_cache_inspect(struct keeper *k);
void cgroup_cache_refill(struct keeper *k);
void cgroup_cache_drop_all(struct keeper *k);

/* teardown.c */
void teardown_kill(struct keeper *k, struct keeper_box *b); /* SIGKILL to the whole pid namespace */
void teardown_seen(struct keeper *k, struct keeper_box *b); /* its init has ended */
/* Kills a box that was never handed out. It is reaped and cleaned up when its init has ended. */
void teardown_discard(struct keeper *k, struct keeper_box *b);
void teardown_retry(struct keeper *k);
void teardown_count(const struct keeper *k, const struct keeper_box *b, struct wire_counters *out);
const struct wire_counters *teardown_counters(const struct keeper *k, const char *id);
/* If the box has a CPU time limit. */
void teardown_watch_cpu(struct keeper *k, struct keeper_box *b);
void teardown_meter(struct keeper *k); /* ends boxes that have exceeded their CPU time */

/* sweep.c */
must_check int sweep_start(struct keeper *k, struct err *e);
