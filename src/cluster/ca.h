/* ca.h - the certificate authority of a cluster: signs the certificates of its machines.
 * Owns: the key of the authority, from load to free.
 *
 * Role and number of a certificate are decided by the caller, never by the request: from a request only
 * its public key is used. Pure functions over memory: docs/cluster.md has the files and the messages. */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "cluster/certificates.h"
#include <stdint.h>
#include <time.h>

enum {
	CLUSTER_CA_DAYS = 3650,
	CLUSTER_CERT_DAYS = 30,  /* a number is not used again for as long after `atoll node rm` */
	CLUSTER_RENEW_DAYS = 10, /* before its end a certificate is renewed */
	CLUSTER_REQUEST_MAX = 4096,
};

struct cluster_ca;

/* A new authority (ECDSA P-256), as PEM. */
must_check int cluster_ca_make(struct buf *out_cert, struct buf *out_key, struct err *e);
/* ERR_INVALID: not a certificate of an authority, or not its key. */
must_check int cluster_ca_load(struct cluster_ca **out, const struct buf *cert,
			       const struct buf *key, struct err *e);
void cluster_ca_free(struct cluster_ca *ca); /* allowed on NULL */
must_check int cluster_ca_fingerprint(const struct buf *cert,
				      unsigned char out[CLUSTER_FINGERPRINT], struct err *e);

/* A new key of a machine and the request (PKCS #10) for its certificate, as PEM. */
must_check int cluster_ca_request(struct buf *out_request, struct buf *out_key, struct err *e);
/* The same for the key that the machine has: renewal. */
must_check int cluster_ca_request_for(const struct buf *key, struct buf *out_request,
				      struct err *e);
/* ERR_INVALID: the request is malformed, has another kind of key, or was not made with that key. */
must_check int cluster_ca_sign(const struct cluster_ca *ca, const char *request, size_t n,
			       const struct cluster_peer *peer, time_t now, struct buf *out_cert,
			       struct err *e);
/* SHA-256 of the public key of a request, which is checked as by cluster_ca_sign(): a machine that joins again
 * with the same key gets the same number. */
must_check int cluster_ca_request_key(const char *request, size_t n, unsigned char out[32],
				      struct err *e);
/* When the certificate has to be renewed, in seconds since 1970. */
must_check int cluster_ca_renew_at(const struct buf *cert, int64_t *out_s, struct err *e);
