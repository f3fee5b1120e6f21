/* plan.h - the calls that a copy of a program executes, from its image.
 * Owns: nothing; it fills the lists of the caller. */
#pragma once
#include "procimage/call_list.h"
#include "procimage/image.h"

struct err;

/* Descriptors, working folder, limits, handlers, timers, memory of its own. */
void plan_add_program(const struct image *im, struct call_list *l, struct call_data *d);
void plan_add_descriptors(const struct image *im, struct call_list *l, struct call_data *d);
/* What a thread executes last. */
void plan_add_thread(const struct image *im, const struct image_thread *t, struct call_list *l,
		     struct call_data *d);
/* Number of descriptors that the caller must supply: those of DESCRIPTOR_OUTSIDE, in order. */
unsigned plan_count_outside(const struct image *im);
/* A number above all descriptors of the image. */
int plan_first_high(const struct image *im);
