/* warm_pool.h - which interpreters can wait in a box, and the zygotes that they are forked from.
 * Owns: the table of warm interpreters; the zygotes of the keeper, their boxes, and the depth of
 *  each pool class.
 * A pool class is one kind of interpreter for one group of boxes (a team of the daemon): children
 * of one zygote share its addresses and its hash seed, so a zygote serves one group. A pool class
 * is filled only after a client has requested its interpreter, and emptied when no client has
 * requested it for a while or memory is short. */
#pragma once
#include "keeper/keeper_box.h"
#include <stdint.h>
#include <sys/types.h>

struct keeper;
struct build_job;

struct warm_kind {
	const char *name;    /* as clients request it */
	const char *program; /* in the box */
	const char *script;  /* NULL: forked from a zygote; else started in the box with this */
	unsigned depth;      /* boxes that wait with one, once it was requested; shared by the pool
		        * classes of a kind */
	unsigned mib;        /* memory of its zygote, about */
};
enum { WARM_KINDS = 4 };
enum { POOL_CLASSES = 1 + 32 }; /* 0 is the class of plain boxes */
extern const struct warm_kind warm_kinds[WARM_KINDS];

struct zygote {                       /* of a pool class */
	struct source src;            /* its socket, or -1; first, so that a source is its zygote */
	const struct warm_kind *kind; /* NULL: the class is unused */
	uint32_t group;
	pid_t pid;
	struct keeper_box *home;
	int making, ready;
	uint64_t number; /* never reused */
	unsigned forks;
	unsigned failures; /* consecutive children whose set-up failed */
	uint64_t asked_ns; /* when it was last requested; 0: never */
	uint64_t retry_ns; /* not started before this time */
};

/* The pool class of this interpreter and group, created if necessary. 0: no such interpreter, or
 * other groups use as many zygotes as memory allows. */
unsigned warm_pool_class(struct keeper *k, const char *name, uint32_t group);
/* Called for each request: from now on boxes are created in advance. 1: a box can have one now. */
int warm_pool_wanted(struct keeper *k, unsigned pool_class);
int warm_pool_is_ready(const struct keeper *k, unsigned pool_class);
void warm_pool_for_job(struct keeper *k, struct build_job *j,
		       unsigned pool_class); /* the box of this job will have one */
void warm_pool_worked(struct keeper *k, const struct build_job *j);
/* No interpreter could be started in the box. Ends the zygote after several failures in a row. */
void warm_pool_failed(struct keeper *k, const struct build_job *j);
void warm_pool_box_created(struct keeper *k, struct build_job *take_job);
void warm_pool_on_message(struct keeper *k, struct zygote *z);
void warm_pool_box_died(struct keeper *k, struct keeper_box *home);
int warm_pool_memory_is_low(const struct keeper *k); /* of the host */
void warm_pool_maintain(struct keeper *k); /* called periodically: removes unused pool classes */
void warm_pool_end_all(struct keeper *k);
