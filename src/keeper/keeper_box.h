/* keeper_box.h - one box as the keeper manages it, and the table of all boxes.
 * Owns:         the pidfd of a box, its connection while pooled, its entry in the table.
 * Does not own: its cgroups and files; builder.c creates them, teardown.c removes them. */
#pragma once
#include "jail/cgroup.h"
#include "keeper/box_record.h"
#include "wire/wire.h"
#include <stddef.h>

#define KEEPER_BOX_BUCKETS 4096
#define KEEPER_BOX_WAITERS 8

struct client;
struct host_state;
struct net;
struct cached_cgroup;
struct guest_wait;
struct root;

struct source { /* what epoll returns */
	enum {
		SRC_LISTENER,
		SRC_CLIENT,
		SRC_BOX,
		SRC_MADE,
		SRC_TIMER,
		SRC_SIGNAL,
		SRC_ZYGOTE,
		SRC_LAYER,
		SRC_TIERS,
		SRC_GUEST,
		SRC_IMAGE,
		SRC_SERVICE
	} kind;
	int fd; /* JAIL_FD_HIGH or above, unless it belongs to the keeper itself */
};

struct keeper_box {
	/* clang-format off */
	struct source death; /* pidfd; first, so that a source is its box */
	struct box_record meta;    /* id, state, limits, ids: the data on disk, ... */
	uint32_t place;      /* ... and where: record_file.h */
	struct net *net;     /* its network namespace, to be reused; or NULL */
	int mounts;          /* its mount namespace, for mount_reaper.h; or -1 */
	int events, touched; /* change tracking: checkpoint_track.h; or -1 */
	int net_unchecked;   /* test builds */
	int captured;        /* its network namespace has a route, and is not reused */
	int init;            /* connection to init until a client gets the box, else -1 */
	uint16_t over_cpu;
	uint16_t engine_status; /* with a tier: exit status of mux */
	uint32_t by_operator;
	uint64_t cpu_before_us; /* v2: CPU time of its cgroup before a client got it. A later keeper
				 * does not know it, and reports some milliseconds too much */
	int metered; /* has a CPU time limit, which the keeper checks */
	unsigned pool_class; /* of the pool: which warm interpreter waits in it; 0: none */
	int of_root_pool; /* created for the pool of its root; root_pool.h */
	unsigned of_tier_pool; /* 1 + kind of interpreter: created for this pool of its tier; tier_pool.h */
	int of_warm_pool; /* created for a pool class and not given to a client yet */
	struct root *root; /* a copy, until it is created; or NULL: base */
	int home;      /* the box of a zygote: no client ever gets it */
	struct cached_cgroup *own; /* its cgroups with open files; NULL: only their name is known,
				    * or it has none */
	int cached_cgroup;    /* it has ended, and its cgroups may be reused */
	struct guest_wait *guest; /* its guest is booting: guest_wait.c; or NULL */
	int changing; /* a builder thread is changing its limits */
	int changed;  /* its limits were changed, or it was frozen: its cgroups are not reused */
	int unread; /* its counters are not requested */
	void *start;      /* the START that came with its CREATE, until it was sent to init;
			   * or NULL */
	size_t start_len;
	int awaited;      /* the client that gets it waits for its end, too */
	int started;      /* START was sent before the client got the box: it may have
			   * ended already */
	struct wire_counters last; /* counters, read just before its cgroups were removed */
	struct waiter {
		uint64_t client; /* by number: the client may have disconnected by then */
		uint32_t ref;
	} waiters[KEEPER_BOX_WAITERS];
	unsigned nwaiters;
	struct wire_then deadline; /* stored next to the record */
	uint64_t deadline_client;  /* number of the client that has set it; 0: set before this
				    * keeper started */
	struct keeper_box *chain; /* same bucket */
	struct keeper_box *next;  /* in the pool, or in the list of dying boxes */
	/* clang-format on */
};

struct kboxes {
	struct keeper_box *bucket[KEEPER_BOX_BUCKETS];
	unsigned count;
};

#define KEEPER_BOX_SOCKET 48

struct keeper_box *keeper_box_new(struct kboxes *t, const char *id); /* zeroed, in the table */
struct keeper_box *keeper_box_find(struct kboxes *t, const char *id);
struct keeper_box *keeper_box_after(struct kboxes *t,
				    const char *id); /* any order, but complete; "": first */
uint64_t keeper_box_disks(const struct kboxes *t);   /* sizes of all disks that are images */
void keeper_box_free(struct kboxes *t, struct keeper_box *b); /* closes its descriptors */
/* Writes the present state to its record: one write. */
must_check int keeper_box_record(const struct host_state *h, const struct keeper_box *b,
				 struct err *e);
/* Path in the run folder on which init listens. */
void keeper_box_socket(const struct keeper_box *b, char out_path[KEEPER_BOX_SOCKET]);
/* Limits of its cgroups: those of its client, and what the engine of its tier needs itself. */
struct box_limits keeper_box_limits(const struct keeper_box *b);
/* Sends the START that came with its CREATE, unless there was none or it was sent. */
must_check int keeper_box_start(struct keeper_box *b, int to_init, struct err *e);
/* Moves a descriptor above JAIL_FD_HIGH, so that launches do not copy it. */
must_check int keeper_box_lift(int *fd, struct err *e);
/* A tmpfs is charged to the memory limit: it is used as the disk only if it leaves half of the
 * memory free. */
int keeper_box_disk_in_memory(const struct wire_limits *l);
