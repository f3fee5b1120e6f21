/* renewals.h - certificates of nodes, renewed over their tunnels. The cluster process signs them; the server never has the
 * key of the CA.
 * Owns: the requests in progress. */
#pragma once
#include "cluster/tunnel.h"
#include "coordinator/cluster_client.h"

struct gateway_renewals;

/* Both live longer than the requests: free it first. */
struct gateway_renewals *gateway_renewals_new(struct tunnels *t, struct cluster_client *engines);
void gateway_renewals_free(struct gateway_renewals *r); /* allowed on NULL */
