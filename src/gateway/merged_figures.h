/* merged_figures.h - the figures of all nodes (metrics/definitions.h), as a part of those of this gateway.
 * Owns: the last values that each node has reported.
 *
 *   GET /metrics of a client ─► GET /cluster/figures of all nodes ─► metrics_put() ─► /metrics, stats, history, alert rules
 *
 * Counters are sums that do not decrease: a node that is away or gone keeps what it has counted, and one that starts
 * again from 0 continues. Gauges are those of connected nodes. What a node had counted before this process knew the node
 * is in the sums, but no increase in the history. Without requests each node is asked once a minute. */
#pragma once
#include "api/api.h"

struct gateway;
struct merged_figures;

/* Sets api->figures_of_nodes. */
struct merged_figures *merged_figures_new(struct gateway *g);
void merged_figures_free(struct merged_figures *x); /* allowed on NULL; after the last request */
