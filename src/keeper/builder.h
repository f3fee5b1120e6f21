/* builder.h - threads that create boxes, so that the loop is not blocked.
 * Owns:         the threads and the jobs in progress: first those that a client waits for, in their
 *               order, then those for the pool.
 * Does not own: the keeper_box of a job; it belongs to the builder until the job is done, and the
 *               loop only keeps it in the table. */
#pragma once
#include "base/err.h"
#include "keeper/host_state.h"
#include "keeper/keeper_box.h"
#include "keeper/late_cgroup.h"
#include "keeper/root_table.h"
#include "keeper/zygote.h"

struct keeper;

/* The kinds of work of a builder thread; builder_kinds (builder.c) has the functions. */
enum build_kind {
	BUILD_BOX,     /* build_box.c; its result goes to request.c or warm_pool.c */
	BUILD_LIMIT,   /* limit_job.c */
	BUILD_FREEZE,  /* freeze_job.c */
	BUILD_VOLUME,  /* volume.c */
	BUILD_CAPTURE, /* capture_job.c */
	BUILD_NETNS,   /* keeper.c: maintains the pool of network namespaces */
	BUILD_KINDS
};

struct make_job {
	/* clang-format off */
	struct keeper_box *box;
	struct late_cgroup *cgroup; /* NULL: none, or the builder creates it */
	int tasks[CG_NCTL], ntasks; /* of the cgroup of the box if it came from the cache: high
				     * numbers */
	void *start;       /* for the box, until it is created: keeper_box.h */
	size_t start_len;
	uint64_t without, zygote_without; /* test builds */
	unsigned pool_class; /* class of the pool that it is for, or would have been */
	int orders; /* -1, or the socket of a zygote that forks an interpreter into the box */
	const struct warm_start *starts; /* init starts this interpreter in it */
	const struct warm_kind *kind;    /* kind of the pool class */
	const struct warm_kind *home_of; /* starts this zygote in the box ... */
	unsigned home_pool_class;              /* ... for this pool class */
	struct zygote_handle zygote;      /* the started zygote */
	uint64_t disk_promised; /* to other boxes: disk_service.h */
	uint16_t flags;   /* of the CREATE */
	struct wire_tier_facts *facts; /* of its tier, a copy; NULL: a container box */
	int guest_reported; /* with a tier: the guest is ready, or will never be */
	int warm; /* runs a program in it before it is needed, or warms up its interpreter */
	int warm_pool_failed;  /* the box was created, but no interpreter could be forked or started
			        * in it */
	uint64_t zygote_number; /* number of the zygote at the other end of `orders` */
	/* clang-format on */
};

struct limit_job {
	char id[WIRE_ID], cgroup[WIRE_ID];
	struct wire_limits was, want;
	uint16_t tier;
};

struct freeze_job {
	char id[WIRE_ID], cgroup[WIRE_ID];
	int on;
};

struct volume_job {
	char id[WIRE_VOLUME_ID];
	uint64_t bytes; /* 0: delete it */
};

struct capture_job {
	char id[WIRE_ID];
	int ns;      /* the network namespace, or a pidfd of a process in it */
	int sockets; /* the result, see capture_job.c */
};

struct build_job {
	struct build_job *next;
	enum build_kind kind; /* which member of the union is valid */
	int for_pool;         /* no client waits for it: after all jobs that clients wait for */
	uint64_t client;      /* number of the client that waits, and ref of its request */
	uint32_t ref;
	struct err err; /* kind 0: success */
	uint64_t began_ns;
	union {
		struct make_job make;       /* BUILD_BOX */
		struct limit_job limit;     /* BUILD_LIMIT */
		struct freeze_job freeze;   /* BUILD_FREEZE */
		struct volume_job volume;   /* BUILD_VOLUME */
		struct capture_job capture; /* BUILD_CAPTURE */
	};
};

struct build_job *build_job_new(enum build_kind kind); /* empty; never NULL */
/* The job is done, on the thread of the loop: answers its client and frees it. */
void build_job_finish(struct keeper *k, struct build_job *take_job);

/* The functions of a kind of job: on a builder thread, and after that on the thread of the loop. */
must_check int build_box(const struct host_state *h, struct build_job *j, struct err *e);
/* Sends init the command line of an interpreter that waits in the box. */
must_check int build_start_interpreter(const struct keeper_box *b, const struct warm_start *how,
				       struct err *e);
must_check int limit_work(const struct host_state *h, struct build_job *j, struct err *e);
void limit_back(struct keeper *k, struct build_job *take_job);
must_check int freeze_work(const struct host_state *h, struct build_job *j, struct err *e);
void freeze_back(struct keeper *k, struct build_job *take_job);
must_check int volume_work(const struct host_state *h, struct build_job *j, struct err *e);
void volume_back(struct keeper *k, struct build_job *take_job);
must_check int capture_work(const struct host_state *h, struct build_job *j, struct err *e);
void capture_back(struct keeper *k, struct build_job *take_job);
must_check int netns_work(const struct host_state *h, struct build_job *j, struct err *e);
void netns_back(struct keeper *k, struct build_job *take_job);
void request_made(struct keeper *k, struct build_job *take_job); /* BUILD_BOX */

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
