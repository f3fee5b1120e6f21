/* gateway_certificate.h - renews the certificate of a gateway. The cluster process of the same machine signs it, so it is renewed also
 * when the stored one has expired. The new one is used for new connections; it is not stored, because the next server
 * requests another one when it needs it.
 * Owns: the identity of this machine, and the context that is made of it. */
#pragma once
#include "cluster/certificates.h"
#include "coordinator/cluster_client.h"

struct http_server;

struct gateway_certificate {
	struct cluster_identity id;
	struct cluster_peer self;
	struct cluster_client *client;
	struct http_server *http;
	struct ssl_ctx_st *tls; /* the renewed one; NULL: none yet */
	struct timer look;
	struct cluster_request ask;
};

/* id, self: already set. http: the server of cluster.listen; borrowed, as is the client. */
void gateway_certificate_start(struct gateway_certificate *g, struct loop *l,
			       struct cluster_client *client, struct http_server *http);
void gateway_certificate_fini(
	struct gateway_certificate *g); /* allowed on a zeroed one; before the client is freed */
