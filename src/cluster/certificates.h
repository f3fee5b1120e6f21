/* certificates.h - the certificates of tunnels: which machine is at the other end.
 *
 * Every certificate of a cluster is signed by the cluster's CA and by no other. Its subject has one
 * entry, CN "node=<number>" or "gateway=<number>". Host names are not checked: an address may change,
 * the number does not. The certificate of a node is for TLS clients only; the one of a gateway is for
 * both sides, because gateways connect to each other.
 *
 * Owns: nothing; a context belongs to the caller, until tls_free(). */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cluster/role.h"

struct ssl_ctx_st;
struct ssl_st;

enum { CLUSTER_FINGERPRINT = 32 }; /* SHA-256 of the certificate of the cluster's CA */

/* The texts (PEM) of <state>/cluster: ca.crt, own.crt, own.key. */
struct cluster_identity {
	struct buf ca, cert, key;
};

struct cluster_peer {
	enum cluster_role role; /* CLUSTER_NODE or CLUSTER_GATEWAY */
	unsigned number;
};

/* A small file that may be a key, of at most 16 KiB. ERR_NOT_FOUND: it does not exist. */
must_check int cluster_read_file(const char *folder, const char *name, struct buf *out,
				 struct err *e);
/* Reads the files of the folder; before the process is confined. On -1 the identity is empty. */
must_check int cluster_identity_load(struct cluster_identity *id, const char *folder,
				     struct err *e);
void cluster_identity_fini(
	struct cluster_identity *id); /* clears the key; allowed on a zeroed one */
/* The peer that the identity itself is. */
must_check int cluster_identity_self(const struct cluster_identity *id, struct cluster_peer *out,
				     struct err *e);

enum cluster_clients {
	CLUSTER_CLIENTS_KNOWN, /* the handshake fails without a client certificate of this cluster */
	/* The handshake fails with a certificate of another CA, and succeeds without one: for the
	 * port that machines join at. cluster_peer() then fails, and only POST /cluster/join may be
	 * answered. */
	CLUSTER_CLIENTS_JOINING,
};

/* TLS 1.3, certificates of the cluster's CA only, no resumption (a resumed session would outlive its
 * certificate). */
must_check int cluster_tls_server(const struct cluster_identity *id, enum cluster_clients clients,
				  struct ssl_ctx_st **out_ctx, struct err *e);
must_check int cluster_tls_client(const struct cluster_identity *id, struct ssl_ctx_st **out_ctx,
				  struct err *e);
/* For a machine that has no certificate yet: accepts a gateway of the cluster whose CA has this fingerprint
 * (of the join token), which stays valid as long as the context. */
must_check int cluster_tls_joining(const unsigned char fingerprint[CLUSTER_FINGERPRINT],
				   struct ssl_ctx_st **out_ctx, struct err *e);

/* After the handshake: the machine at the other end, from its verified certificate. -1, ERR_DENIED:
 * it has none, or one without a role. */
must_check int cluster_peer(struct ssl_st *ssl, struct cluster_peer *out, struct err *e);
/* The common name of a certificate: exactly "node=<number>" or "gateway=<number>". */
must_check int cluster_peer_parse(const char *name, size_t n, struct cluster_peer *out,
				  struct err *e);
