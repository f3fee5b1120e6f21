/* figures_route.h - GET /cluster/figures: the figures of this node (metrics/definitions.h) for a gateway, over tunnels only.
 *
 *   {"figures": [[name, [value of a label, ...], [slot, ...]], ...]}
 *
 * One slot, or METRICS_SLOTS of a histogram. Figures with METRIC_LOCAL are left out. */
#pragma once
#include "api/api.h"

extern const struct api_surface figures_route_surface;
