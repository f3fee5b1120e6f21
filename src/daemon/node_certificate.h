/* node_certificate.h - the certificate of a node: requested again over the tunnel 10 days before its end, stored in the folder
 * of the server (<state>/server/cluster.crt; the server cannot write <state>/cluster, which has the key).
 * Owns: the identity of this machine, the renewed context. */
#pragma once
#include "cluster/certificates.h"
#include "cluster/tunnel_node.h"

#define NODE_CERTIFICATE_FILE "cluster.crt"

struct node_certificate {
	struct cluster_identity id;
	struct cluster_peer self;
	const char *folder; /* of the server; borrowed */
	struct tunnel_client *client;
	struct ssl_ctx_st *tls; /* the renewed one; NULL: none yet */
	struct timer look;
};

/* Replaces the certificate of id by the stored one, if that is of the same machine and key and valid for longer. Before
 * the process is confined. */
void node_certificate_load(struct cluster_identity *id, const char *folder);
/* id, self and folder are set. */
void node_certificate_start(struct node_certificate *n, struct loop *l, struct tunnel_client *c);
/* For tunnel_client_hooks.certificate. */
void node_certificate_came(struct node_certificate *n, const char *cert, const char *why);
/* Allowed on a zeroed one; after the client has ended. */
void node_certificate_fini(struct node_certificate *n);
