/* keeper_box.h - one box as the keeper knows it, and the table of all of them.
 * Owns:         a box's pidfd, its connection while pooled, its place in the table.
 * Does not own: its cgroups and files; maker.c makes them, death.c removes them. */
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

struct source { /* what epoll hands back */
	enum {
		SRC_LISTENER,
		SRC_CLIENT,
		SRC_BOX,
		SRC_MADE,
		SRC_TIMER,
		SRC_SIGNAL,
		SRC_ZYGOTE,
		SRC_LAYER
	} kind;
	int fd; /* JAIL_FD_HIGH or above, unless the keeper's own */
};

struct keeper_box {
	/* clang-format off */
	struct source death; /* pidfd; first, so that a source is its box */
	struct box_record meta;    /* id, state, limits, ids: what is on disk, ... */
	uint32_t place;      /* ... and where: records.h */
	struct net *net;     /* its network namespace, to be used again; or NULL */
	int mounts;          /* its mount namespace, for linger.h; or -1 */
	int net_unchecked;   /* test builds */
	int init;            /* connection to init while nobody has taken it, else -1 */
	uint32_t over_cpu, by_operator;
	uint64_t cpu_before_us; /* v2: of its cgroup's CPU time, used before it was given out. A later keeper does
				 * not know it, and tells some milliseconds too much */
	int metered; /* given out with a CPU time limit: the keeper watches it */
	unsigned pool_class; /* of the pool: which seed waits in it; 0: none */
	int home;      /* a zygote's: nobody will ever be given it */
	struct cached_cgroup *own; /* its cgroups, open; NULL: only their name is known, or it has none */
	int cached_cgroup;    /* it has ended, and they may be another's */
	int changing; /* its limits are, on a maker */
	int changed;  /* they were, or it was frozen: its cgroups are nobody else's any more */
	int unread; /* whoever ends it does not want its figures */
	void *start;      /* the START that came with its CREATE, until init has it; or NULL */
	size_t start_len;
	int awaited;      /* whoever is given it waits for its end, too */
	int started;      /* init had it before anybody had the box: it may have ended already */
	struct wire_counters last; /* figures, read just before its cgroups went */
	struct waiter {
		uint64_t client; /* by number: a client may be gone by then */
		uint32_t ref;
	} waiters[KEEPER_BOX_WAITERS];
	unsigned nwaiters;
	struct wire_then deadline; /* recorded beside the record */
	uint64_t deadline_client;  /* the client that has set it, by number; 0: of an earlier keeper */
	struct keeper_box *chain; /* same bucket */
	struct keeper_box *next;  /* pool, or the list of dying ones */
	/* clang-format on */
};

struct kboxes {
	struct keeper_box *bucket[KEEPER_BOX_BUCKETS];
	unsigned count;
};

#define KEEPER_BOX_SOCKET 48

struct keeper_box *keeper_box_new(struct kboxes *t, const char *id); /* calloc'ed, in the table */
struct keeper_box *keeper_box_find(struct kboxes *t, const char *id);
struct keeper_box *keeper_box_after(struct kboxes *t,
				    const char *id); /* any order, but complete; "": first */
uint64_t keeper_box_disks(const struct kboxes *t);   /* sizes of all disks that are images */
void keeper_box_free(struct kboxes *t, struct keeper_box *b); /* closes what it owns */
/* Its record is as it is now: one write. */
must_check int keeper_box_record(const struct host_state *h, const struct keeper_box *b,
				 struct err *e);
void keeper_box_socket(
	const struct keeper_box *b,
	char out_path[KEEPER_BOX_SOCKET]); /* in the run folder: init listens there */
struct box_limits keeper_box_limits(const struct keeper_box *b);
/* Sends what came with its CREATE, if anything did and was not sent. */
must_check int keeper_box_start(struct keeper_box *b, int to_init, struct err *e);
/* Moves a descriptor above JAIL_FD_HIGH, where launches do not look and copy nothing. */
must_check int keeper_box_lift(int *fd, struct err *e);
/* A tmpfs is charged to the memory limit: it is the disk only while it leaves half of that free. */
int keeper_box_disk_in_memory(const struct wire_limits *l);
