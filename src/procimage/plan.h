/* plan.h - the calls that a copy of a program executes, from its image.
 * Owns: nothing; it fills the lists of the caller. */
#pragma once
#include "procimage/call_list.h"
#include "procimage/image.h"

struct err;

struct plan_tree { /* processes whose descriptions and shared memory are made once; parents first */
	const struct image *const *image;
	unsigned n;
	int high;    /* above all descriptors of all of them */
	int objects; /* number of object 0 */
	int shared;  /* number of the first shared memory */
};
struct plan_tree plan_tree_of(const struct image *const *image, unsigned n, int least_high);
/* What the first process makes for all of them. */
void plan_add_objects(const struct plan_tree *t, struct call_list *l, struct call_data *d);

/* Descriptors, working folder, limits, handlers, timers, memory of its own. */
void plan_add_program(const struct plan_tree *t, const struct image *im, struct call_list *l,
		      struct call_data *d);
void plan_add_descriptors(const struct plan_tree *t, const struct image *im, struct call_list *l,
			  struct call_data *d);
/* The number of the memory that shared areas with this inode have; -1: there is none. */
int plan_find_shared(const struct plan_tree *t, uint64_t inode);
/* What a thread executes last. */
void plan_add_thread(const struct image *im, const struct image_thread *t, struct call_list *l,
		     struct call_data *d);
/* Does the caller supply it? Those of all processes are supplied in order. */
static inline int plan_is_outside(const struct image_descriptor *d)
{
	return d->kind == DESCRIPTOR_OUTSIDE || d->kind == DESCRIPTOR_TERMINAL;
}
/* A leader of a session gets the slave of its terminal before its children are born; these come after all others. */
static inline int plan_leads_terminal(const struct image *im)
{
	const struct image_program *p = image_program(im);

	return p->terminal && p->session == p->pid;
}
static inline unsigned plan_count_terminals(const struct image *const *image, unsigned n)
{
	unsigned terminals = 0;

	for (unsigned k = 0; k < n; k++)
		terminals += (unsigned)plan_leads_terminal(image[k]);
	return terminals;
}
const struct image_descriptor *plan_outside(const struct image *const *image, unsigned n,
					    unsigned index, const struct image **out);
unsigned plan_count_outside(const struct image *const *image,
			    unsigned n); /* at most RESTORER_OUTSIDE + 1 */
