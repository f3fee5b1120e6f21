/* cluster_engine.h - for commands on a gateway: the database of its cluster, used without the daemon. The commands need the
 * rights to read cluster.secrets.
 * Owns: settings, connection, CA. */
#pragma once
#include "coordinator/membership.h"
#include "daemon/config.h"
#include "loop/loop.h"

struct cluster_engine {
	struct config config;
	struct loop loop;
	struct postgres *db;
	struct coordinator *coordinator;
	struct membership membership;
	struct timer look; /* while it connects */
	int answered;
	struct err e;
};

struct cluster_engine_flags { /* of a command; each may be NULL */
	const char *config, *state, *database, *name;
};

/* Settings only. ERR_INVALID: they do not name a database. */
must_check int cluster_engine_load(struct cluster_engine *x, const struct cluster_engine_flags *f,
				   struct err *e);
/* Creates the tables if they do not exist. */
must_check int cluster_engine_connect(struct cluster_engine *x, struct err *e);
void cluster_engine_close(struct cluster_engine *x); /* allowed on a zeroed one */
const char *cluster_engine_secrets(const struct cluster_engine *x);

/* The end of a function of membership.h: called in its done(); then cluster_engine_wait() returns. */
void cluster_engine_answer(struct cluster_engine *x, const struct err *e);
must_check int cluster_engine_wait(struct cluster_engine *x, struct err *e);
