/* warm_pool.h - which interpreters can wait in a box, and the zygotes that they are forked from.
 * Owns: the table of warm interpreters; the zygotes of the keeper, their boxes, and the depth of
 *  each pool class.
 * A pool class is one kind of interpreter for one group of boxes (a team of the daemon): children
 * of one zygote share its addresses and its hash seed, so a zygote serves one group. A pool class
 * is filled only after a client has requested its interpreter, and emptied when no client has
 * requested it for a while or memory is short. */
#pragma once
#include "base/err.h"
#include "keeper/keeper_box.h"
#include "keeper/layer_tree.h"
#include "wire/wire.h"
#include <stdint.h>
#include <sys/types.h>

struct keeper;
struct build_job;

/* How init starts an interpreter that waits in its box. */
struct warm_start {
	const char *program; /* a path, or a name for init's PATH; NULL: it cannot */
	const char *option;  /* before the script, or NULL */
	const char *script;
	const char *mode; /* last argument; NULL: "warm" */
};

struct warm_kind {
	const char *name;            /* as clients request it */
	const char *program;         /* in a box of base */
	struct warm_start base;      /* program NULL: forked from a zygote */
	struct warm_start in_root;   /* in a box of a root. Never forked from a zygote: that has
				    * privileges, and would execute files of the root */
	struct warm_start in_engine; /* in the guest of an isolation tier, before the box waits in
				      * its pool; without a name: if no interpreter is requested: tier_pool.h */
	unsigned depth; /* boxes that wait with one, once it was requested; shared by the pool
		        * classes of a kind */
	unsigned mib;   /* memory of its zygote, about */
};
enum { WARM_KINDS = 4 };
enum { POOL_CLASSES = 1 + 32 }; /* 0 is the class of plain boxes */
extern const struct warm_kind warm_kinds[WARM_KINDS];

struct zygote {                       /* of a pool class */
	struct source src;            /* its socket, or -1; first, so that a source is its zygote */
	const struct warm_kind *kind; /* NULL: the class is unused */
	uint32_t group;
	char root[TREE_ID + 1];    /* of its boxes; empty: base */
	struct wire_limits limits; /* of boxes of the root; their disk cannot be changed */
	unsigned pinned;           /* boxes of the root that wait always */
	int closing;               /* the root is deleted */
	struct waiter filler;      /* the client that waits until they do */
	pid_t pid;
	struct keeper_box *home;
	int making, ready;
	uint64_t number; /* never reused */
	unsigned forks;
	unsigned failures; /* consecutive children whose set-up failed */
	uint64_t asked_ns; /* when it was last requested; 0: never */
	uint64_t retry_ns; /* not started before this time */
};

/* The pool class of this interpreter, group and root ("": base), created if necessary.
 * 0: no such interpreter, or other groups use as many zygotes as memory allows. */
unsigned warm_pool_class(struct keeper *k, const char *name, uint32_t group, const char *root,
			 const struct wire_limits *limits);
/* A pooled box of the class would have this disk. */
int warm_pool_fits(const struct keeper *k, unsigned pool_class, const struct wire_limits *want);
/* POOL_ROOT with an interpreter: so many boxes of the root wait with it; 0: no longer. */
must_check int warm_pool_pin(struct keeper *k, const struct waiter *who,
			     const struct wire_pool_root *w, const struct wire_limits *limits,
			     struct err *e);
/* A box for the pool was created. 0: it must be ended. */
int warm_pool_pooled(struct keeper *k, struct keeper_box *b);
/* A box of a root could not be created for the pool. */
void warm_pool_not_pooled(struct keeper *k, struct keeper_box *b, const struct err *e);
void warm_pool_close_root(struct keeper *k, const char *root); /* the root is deleted */
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
