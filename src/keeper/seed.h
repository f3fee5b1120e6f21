/* seed.h - which interpreters can wait in a box, and who loads them.
 * Owns: the table of seeds; a keeper's zygotes, their homes, and how deep each lane of the pool is.
 * A lane is filled only after somebody has asked for its seed, and emptied when nobody does any more
 * or memory is short. */
#pragma once
#include "keeper/kbox.h"
#include <stdint.h>
#include <sys/types.h>

struct keeper;
struct job;

struct seed_kind {
	const char *name;    /* as a client asks for it */
	const char *program; /* in the box */
	const char *script;  /* NULL: forked from a zygote; else started in the box with this */
	unsigned depth;      /* boxes that wait with one, once it is in demand */
};
enum { SEED_LANES = 4 }; /* 0 is the plain lane */
extern const struct seed_kind seed_kinds[SEED_LANES];

struct zygote {
	struct source src; /* its socket, or -1 */
	pid_t pid;
	struct kbox *home;
	int making, ready;
	unsigned forks;
	uint64_t asked_ns; /* when somebody wanted its seed last; 0: never */
	uint64_t retry_ns; /* not before */
};

unsigned seed_lane(const char *name); /* 0: no such seed */
/* Somebody wants one: from now on they are made in advance. 1: a box can have one now. */
int seed_wanted(struct keeper *k, unsigned lane);
int seed_ready(const struct keeper *k, unsigned lane);
void seed_for_job(struct keeper *k, struct job *j, unsigned lane); /* the box it makes will have one */
void seed_failed(struct keeper *k, unsigned lane); /* a box could not have one: not again for a while */
void seed_home_made(struct keeper *k, struct job *take_job);
void seed_news(struct keeper *k, struct zygote *z);
void seed_home_died(struct keeper *k, struct kbox *home);
void seed_tend(struct keeper *k); /* at times: who is not wanted any more goes */
void seed_end_all(struct keeper *k);
