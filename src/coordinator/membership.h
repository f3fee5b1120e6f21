/* membership.h - which machines belong to a cluster: join tokens, numbers, certificates.
 * Owns:         the CA.
 * Does not own: the connection to the database, the coordinator.
 *
 * Used by the cluster process of a gateway, and by commands on a gateway. All functions are asynchronous; done() is
 * called once, perhaps before the function returns. */
#pragma once
#include "cluster/ca.h"
#include "cluster/join_token.h"
#include <jansson.h>

struct coordinator;
struct postgres;

struct membership {
	struct postgres *db;             /* borrowed */
	struct coordinator *coordinator; /* borrowed; assigns numbers */
	struct cluster_ca *ca;           /* NULL: this machine does not have its key */
	struct buf ca_cert;
	unsigned char fingerprint[CLUSTER_FINGERPRINT];
};

struct membership_answer { /* valid during done() */
	struct cluster_peer peer;
	const char *cert; /* PEM */
	json_t *machines;
	const char *
		fingerprint; /* of the CA that the database belongs to, 64 hex digits; "": of none yet */
};
/* e: NULL; ERR_DENIED: a token that is not accepted, a machine that was removed; ERR_INVALID: the request;
 * ERR_CONFLICT: the name belongs to another machine; ERR_SYS: the database does not answer. Then a is NULL. */
typedef void membership_done(void *user, const struct membership_answer *a, const struct err *e);

/* Reads ca.crt and ca.key of the folder cluster.secrets. ERR_NOT_FOUND: they are not there. */
must_check int membership_load(struct membership *m, const char *secrets, struct err *e);
/* The password of the database: the first line of the file `database` of the folder; "" if there is none. */
must_check int membership_read_password(const char *secrets, struct buf *out, struct err *e);
void membership_fini(struct membership *m); /* allowed on a zeroed one */

/* A machine joins with a token: peer and cert. A machine that repeats this with the same key and name gets the same
 * number, and the token is not used again. */
void membership_join(struct membership *m, const char *token, const char *request, const char *name,
		     membership_done *done, void *user);
/* A gateway gets its number: peer and cert. */
void membership_add_gateway(struct membership *m, const char *name, const char *request,
			    membership_done *done, void *user);
/* Another certificate for a machine that has not been removed: cert. peer is the one of its certificate. */
void membership_renew(struct membership *m, const struct cluster_peer *peer, const char *request,
		      membership_done *done, void *user);
/* fingerprint; and if the database belongs to no CA yet and `claim`: to the one of m from now on. */
void membership_authority(struct membership *m, int claim, membership_done *done, void *user);
void membership_add_token(struct membership *m, const struct join_token *t, unsigned uses,
			  uint64_t ttl_ms, membership_done *done, void *user);
/* machines: [{"role", "number", "name", "state"}], without removed ones; of a node also "gateways": the numbers of
 * gateways that it is connected to. */
void membership_list(struct membership *m, membership_done *done, void *user);
/* ERR_NOT_FOUND: there is no such node. */
void membership_remove(struct membership *m, unsigned node, membership_done *done, void *user);
