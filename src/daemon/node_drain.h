/* node_drain.h - `atoll node drain` and `undrain`: requests to a gateway, or to the node itself. */
#pragma once
#include "cli/args.h"

/* wait: until the node has no boxes. move: its boxes move to other nodes, and this returns when those have left that can.
 * Returns the exit status. */
int node_drain(const struct cli *cli, const struct args *a, int wait, int move);
/* Adds what the gateway of this machine knows (`draining`, `boxes`, `load`) to machines of `atoll node ls`. Without a
 * daemon that answers they stay as they are. */
struct json_t;
void node_drain_add_figures(const struct cli *cli, struct json_t *machines);
