/* join.h - POST /cluster/join on a gateway's port for machines: {token, request, name} -> {number, certificate, ca}.
 * Owns: the request, until it has ended. The only request that is answered without a client certificate. */
#pragma once
struct cluster_client;
struct http_req;

/* From on_head of the server of cluster.listen. */
void gateway_join(struct http_req *r, struct cluster_client *client);
