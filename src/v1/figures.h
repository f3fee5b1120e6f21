/* figures.h - copies the counts of all modules to metrics/metrics.h: the source of figures of the
 * server. */
#pragma once
#include "api/api.h"

void figures_init(struct api *a); /* makes a->metrics; host, fleet and loop are set */
void figures_fini(struct api *a);
