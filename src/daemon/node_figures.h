/* node_figures.h - the state of this node, for its heartbeats.
 * Owns: the lists of templates and labels, which are read from the database every few seconds. */
#pragma once
#include "api/api.h"
#include "cluster/control.h"

struct node_figures;
struct node_figures *node_figures_new(struct api *a, const char *const *labels);
void node_figures_free(struct node_figures *f); /* fine on NULL */
/* All but seq. The lists become the caller's. */
void node_figures_read(struct node_figures *f, struct control_figures *out);
/* Thousandths of the capacity in use: the largest of memory, processors and boxes. Pure. */
uint32_t node_load(uint64_t memory_used, uint64_t memory_total, unsigned load_centi, unsigned cpus,
		   unsigned boxes, unsigned boxes_most);
