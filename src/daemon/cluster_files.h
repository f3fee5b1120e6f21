/* cluster_files.h - the files of a machine in a cluster: <state>/cluster (number, ca.crt, own.crt, own.key) and the
 * folder cluster.secrets of gateways (ca.crt, ca.key, database). Both have mode 0700. */
#pragma once
#include "cluster/certificates.h"
#include "daemon/config.h"

/* <state>/cluster, with the error of a machine that has not joined. */
must_check int cluster_files_load(struct cluster_identity *id, const struct config *c,
				  struct err *e);
/* Replaces each file as a whole; the key first. */
must_check int cluster_files_store(const struct cluster_identity *id,
				   const struct cluster_peer *self, const struct config *c,
				   struct err *e);
/* The key that an earlier attempt has stored; else a new one, which is stored at once. And a request for a
 * certificate. */
must_check int cluster_files_key(const struct config *c, struct buf *out_key,
				 struct buf *out_request, struct err *e);
/* Only its owner can read the folder. */
must_check int cluster_files_check_secrets(const char *secrets, struct err *e);
/* Makes the folder, and a new CA in it. */
must_check int cluster_files_make_ca(const char *secrets, struct err *e);
/* cluster.name, else the host name in the letters that a name may have. */
void cluster_files_name(const struct config *c, char out[CLUSTER_NAME_MAX + 1]);
