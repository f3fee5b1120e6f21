/* warm_pool.h - which interpreters can wait in a box, and who loads them.
 * Owns: the table of seeds; a keeper's zygotes, their homes, and how deep each lane of the pool is.
 * A lane is one kind of interpreter for one group of boxes (a team of the daemon): what is forked from one
 * zygote shares its addresses and its hash seed, so a zygote serves one group. A lane is filled only after a
 * client has asked for its seed, and emptied when no client does any more or memory is short. */
#pragma once
#include "keeper/keeper_box.h"
#include <stdint.h>
#include <sys/types.h>

struct keeper;
struct build_job;

struct seed_kind {
	const char *name;    /* as a client asks for it */
	const char *program; /* in the box */
	const char *script;  /* NULL: forked from a zygote; else started in the box with this */
	unsigned
		depth; /* boxes that wait with one, once it is in demand; shared by the lanes of a kind */
	unsigned mib; /* memory of its zygote, about */
};
enum { SEED_KINDS = 4 };
enum { POOL_CLASSES = 1 + 32 }; /* 0 is the plain lane */
extern const struct seed_kind seed_kinds[SEED_KINDS];

struct zygote {                       /* of a lane */
	struct source src;            /* its socket, or -1; first, so that a source is its zygote */
	const struct seed_kind *kind; /* NULL: the lane is free */
	uint32_t group;
	pid_t pid;
	struct keeper_box *home;
	int making, ready;
	uint64_t number; /* never reused */
	unsigned forks;
	unsigned failures; /* children that failed in set-up since the last that did not */
	uint64_t asked_ns; /* when somebody wanted its seed last; 0: never */
	uint64_t retry_ns; /* not before */
};

/* The lane of this seed and group, made now if need be. 0: no such seed, or as many zygotes as memory allows
 * are in use by other groups. */
unsigned warm_pool_class(struct keeper *k, const char *name, uint32_t group);
/* Somebody wants one: from now on they are made in advance. 1: a box can have one now. */
int warm_pool_wanted(struct keeper *k, unsigned pool_class);
int warm_pool_is_ready(const struct keeper *k, unsigned pool_class);
void warm_pool_for_job(struct keeper *k, struct build_job *j,
		       unsigned pool_class); /* the box it makes will have one */
void warm_pool_worked(struct keeper *k, const struct build_job *j);
/* The box could not have one. Ends the zygote after several in a row, not after one. */
void warm_pool_failed(struct keeper *k, const struct build_job *j);
void warm_pool_box_created(struct keeper *k, struct build_job *take_job);
void warm_pool_on_message(struct keeper *k, struct zygote *z);
void warm_pool_box_died(struct keeper *k, struct keeper_box *home);
void warm_pool_maintain(struct keeper *k); /* at times: who is not wanted any more goes */
void warm_pool_end_all(struct keeper *k);
